"""An upload in parts of one object, by the native API and by S3, and the same bytes by one PUT."""

import concurrent.futures
import hashlib
import json
import os
import time
import xml.etree.ElementTree as ElementTree

import peers
from benchlib import MIB

PART = os.urandom(16 * MIB)
TAG = hashlib.md5(PART).hexdigest()
UNSIGNED = {"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}


def ask(method, url, body=None):
    status, _, data = peers.request(method, url, body, UNSIGNED)
    if status not in (200, 201):
        raise RuntimeError(f"{method} {url}: {status} {data.decode(errors='replace')}")
    return data


def send_parts(url_of, parts, connections):
    with concurrent.futures.ThreadPoolExecutor(connections) as pool:
        for _ in pool.map(lambda n: ask("PUT", url_of(n), PART), range(1, parts + 1)):
            pass


def native(url, bucket, parts, connections):
    at = f"{url}/v1/uploads/{bucket}/o"
    upload = json.loads(ask("POST", at))["upload"]
    send_parts(lambda n: f"{at}?upload={upload}&part={n}", parts, connections)
    listed = [{"part": n, "tag": TAG} for n in range(1, parts + 1)]
    ask("POST", f"{at}?upload={upload}", json.dumps(listed))


def by_s3(url, bucket, parts, connections):
    at = f"{url}/s3/{bucket}/o"
    root = ElementTree.fromstring(ask("POST", f"{at}?uploads="))
    upload = next(e.text for e in root if e.tag.endswith("UploadId"))
    send_parts(lambda n: f"{at}?partNumber={n}&uploadId={upload}", parts, connections)
    listed = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{TAG}</ETag></Part>"
                     for n in range(1, parts + 1))
    reply = ask("POST", f"{at}?uploadId={upload}",
                f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>")
    if b"<Error>" in reply:
        raise RuntimeError(f"the completion: {reply.decode(errors='replace')}")


def one_put(url, bucket, parts, _):
    ask("PUT", f"{url}/v1/objects/{bucket}/o", PART * parts)


def cpu_us(pids):
    """CPU time of the processes so far."""
    ticks = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks * 1e6 / os.sysconf("SC_CLK_TCK")


def measure(cluster, send, url, bucket, parts, connections):
    """→ the fields of a run of dfc-load; the request is the whole object."""
    before, began = cpu_us(cluster.all_pids()), time.monotonic()
    send(url, bucket, parts, connections)
    seconds = time.monotonic() - began
    return {"requests_per_s": 1 / seconds, "mb_per_s": parts * len(PART) / seconds / 1e6,
            "server_cpu_us_per_request": cpu_us(cluster.all_pids()) - before}
