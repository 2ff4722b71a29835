"""What the tests of buckets with a backend share: the backend of the tests, and what a target says
of itself."""

import http.client
import os
import sys

from lib import ROOT, check, equal

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3, Noughts  # noqa: E402,F401

# A backend's failures are over quickly, and few tries are made.
QUICK = [
    f"--target-arg={a}"
    for a in ("--backend-backoff=5ms", "--backend-backoff-max=1s", "--backend-retries=2")
]
NO_PAUSE = "--target-arg=--backend-pause=0"  # what failed is asked for anew at once
# failures: more than there are tries, each of which may be several where kept connections are reset
MANY = 99


def metric(c, name, node="t1"):
    """The sum of all lines that begin so."""
    text = c.call("GET", "/metrics", node=node).expect(200).body.decode()
    return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


def run_job(c, bucket, action, value, counts=("done", "skipped", "missing", "failed")):
    """A job over objects, to its end → these counts of its objects."""
    job_id = c.call("POST", f"/v1/buckets/{bucket}",
                    {"action": action, "value": value}).expect(202).json()["id"]
    job = c.wait_job(job_id)
    equal(job["state"], "finished", f"state of {job_id}: {job['errors']}")
    return tuple(job["progress"]["objects"][k] for k in counts)


def files_open(c, node="t1"):
    """Descriptors that a daemon has: connections, files."""
    return len(os.listdir(f"/proc/{c.pid(node)}/fd"))


def memory_kib(c, node="t1"):
    with open(f"/proc/{c.pid(node)}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def is_sanitized(c, node="t1"):
    """Then its memory says nothing: what is freed is kept for a while."""
    with open(f"/proc/{c.pid(node)}/maps", encoding="utf-8") as f:
        return any("libasan" in line or "libtsan" in line for line in f)


def get_or_none(c, *args, **kwargs):
    """The reply, if it came whole; None where the connection was cut, or ended too early."""
    try:
        return c.get(*args, **kwargs)
    except (http.client.HTTPException, ConnectionError):
        c.http.close()
        return None


def is_broken(c, bucket, name):
    """A GET that must not look complete: an error, or a connection that is cut."""
    reply = get_or_none(c, bucket, name)
    check(reply is None or reply.status >= 400, f"a broken object was served: {reply!r}")
