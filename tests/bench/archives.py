#!/usr/bin/env python3
"""The job `archive` beside a sort of the same bytes. Many small objects become shuffled shards, and so
do the same objects as members of shards. A third side makes one tar of the objects."""

import http.client
import sys
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import benchlib
from benchlib import KIB, MIB, log
from peers import Cluster

OBJECTS, SIZE = 100_000, 10 * KIB
SHARDS, WRITERS = 10, 8
SHARD_SIZE = str(64 * MIB)
ENDED = ("finished", "failed", "aborted")


def put_part(url, numbers):
    at = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=60)
    body = bytes(range(256)) * (SIZE // 256)
    for i in numbers:
        connection.request("PUT", f"/v1/objects/raw/{i % SHARDS}/{i:07}?redirect=never",
                           body)
        answer = connection.getresponse()
        if answer.status not in (200, 201):
            raise RuntimeError(f"PUT of {i}: {answer.status} {answer.read()[:200]}")
        answer.read()


def put_all(url, count):
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda w: put_part(url, range(w, count, WRITERS)), range(WRITERS)))


def wait(cluster, job_id):
    """→ its document."""
    while True:
        job = cluster.call("GET", f"/v1/jobs/{job_id}")
        if job["state"] == "finished":
            return job
        if job["state"] in ENDED:
            raise RuntimeError(f"{job_id}: {job['errors']}")
        time.sleep(0.02)


def start(cluster, value):
    return cluster.call("POST", "/v1/buckets/raw", {"action": "archive", "value": value})["id"]


def timed(cluster, job_id_of, *arguments):
    """→ the seconds that the job takes; what it made is removed afterwards, untimed."""
    begun = time.monotonic()
    wait(cluster, job_id_of(cluster, *arguments))
    seconds = time.monotonic() - begun
    wait(cluster, cluster.call("POST", "/v1/buckets/sorted",
                               {"action": "delete", "value": {"prefix": ""}})["id"])
    return seconds


def archive(cluster):
    return start(cluster, {"prefix": "", "shard_size": SHARD_SIZE, "order": "shuffle", "seed": 1,
                           "to": {"bucket": "sorted", "template": "out-{0000..9999}.tar"}})


def one(cluster):
    return start(cluster, {"prefix": "", "archive": "all.tar", "to": "sorted"})


def sort(cluster):
    spec = {"input_bck": "shards", "output_bck": "sorted", "input_format": f"s-{{0..{SHARDS - 1}}}",
            "output_format": "out-{0000..9999}", "extension": ".tar",
            "output_shard_size": SHARD_SIZE, "algorithm": {"kind": "shuffle", "seed": "1"}}
    return cluster.call("POST", "/v1/sort", spec)["id"]


def main():
    parser = benchlib.arguments(__doc__)
    parser.add_argument("--objects", type=int, default=OBJECTS, help="objects of 10 KiB")
    args = parser.parse_args()
    count = args.objects if not args.quick else 500
    document = {"machine": benchlib.begin(args), "objects": count, "size": SIZE}
    with benchlib.WorkDir(args.dir) as work, Cluster(work / "dfc", args.build, targets=3) as cluster:
        for bucket in ("raw", "shards", "sorted"):
            cluster.call("POST", f"/v1/buckets/{bucket}",
                         {"action": "create", "value": {"durability": "async"}})
        log(f"PUT of {count} objects")
        put_all(cluster.proxy["url"], count)
        for i in range(SHARDS):
            wait(cluster, start(cluster, {"prefix": f"{i}/", "archive": f"s-{i}.tar", "to": "shards"}))
        sides = {side.__name__: lambda side=side: timed(cluster, side) for side in (archive, one, sort)}
        runs = benchlib.interleave(sides, 1 if args.quick else args.rounds)
    document["seconds"] = {side: [round(s, 3) for s in of] for side, of in runs.items()}
    document["objects_per_s"] = {side: round(count / benchlib.median(of)) for side, of in runs.items()}
    for side in ("archive", "one"):
        document[f"{side}_of_a_sort"] = benchlib.paired_ratio(runs["sort"], runs[side])
    benchlib.table([f"{count} objects of {benchlib.size_text(SIZE)}", "seconds", "objects/s"],
                   [[side, round(benchlib.median(of), 2), document["objects_per_s"][side]]
                    for side, of in runs.items()])
    log(f"archive: {document['archive_of_a_sort']['median']} of the speed of a sort, "
        f"one archive: {document['one_of_a_sort']['median']}")
    benchlib.finish(args, "archives", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
