#!/usr/bin/env python3
"""Eviction: what can be read again makes room, and nothing else does.

How full a disk is cannot be chosen here: limits of 1 and 2 percent make it too full.  Which objects
go first is shown by target/store/evict_test.c."""

import os
import sys

from lib import ROOT, equal, in_parallel, main, wait_for

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

WEB = FakeS3(plain=True)
NAMES = [f"o/{i:03}" for i in range(50)]


def read_all(c, bucket):
    in_parallel(lambda n: equal(c.get(bucket, n).expect(200).body, n.encode() * 100, n), NAMES)


def restart(c, *args):
    c.restart("t1", *args)


def test_what_is_cached_here(c):
    for name in NAMES:
        WEB.put("", "base/" + name, name.encode() * 100)
    c.create("cold", backend=WEB.url + "/base")
    c.create("kept", backend=WEB.url + "/base", lru=False)
    done = c.dfcctl("bucket", "create", "young", "--backend", WEB.url + "/base", "--lru-min-age",
                    "1h")
    equal(done.returncode, 0, done.stderr)
    equal(c.get_json("/v1/buckets/young")["props"]["lru_min_age"], 3_600_000, "lru_min_age")
    c.call("POST", "/v1/buckets/never", {"action": "create", "value": {"lru": False}}
           ).expect(400, "invalid_argument", "backend")
    c.create("own")
    for name in NAMES:
        c.put("own", name, name.encode() * 100)
    for bucket in ("cold", "kept", "young"):
        read_all(c, bucket)
        equal(c.names(bucket, cached="true"), NAMES, f"what {bucket} has")


def test_the_job(c):
    done = c.dfcctl("job", "start", "lru", "--wait")
    equal(done.returncode, 0, done.stderr)
    equal(c.names("cold", cached="true"), [], "what is left")
    for bucket in ("kept", "young", "own"):
        equal(c.names(bucket, cached="true"), NAMES, f"what {bucket} has")
    jobs = c.get_json("/v1/jobs?kind=lru")["jobs"]
    equal([j["state"] for j in jobs], ["finished"], "the job")
    job = c.get_json("/v1/jobs/" + jobs[0]["id"])
    equal(job["targets"]["t1"]["status"]["objects"]["done"], len(NAMES),
          "objects that it has evicted")
    equal(job["progress"]["bytes"]["done"], sum(len(name) * 100 for name in NAMES), "bytes")


def test_it_is_read_again(c):
    before = WEB.count("base/" + NAMES[0])
    read_all(c, "cold")
    equal(WEB.count("base/" + NAMES[0]), before + 1, "requests to the backend")
    equal(c.names("cold", cached="true"), NAMES, "what cold has")


def test_by_itself(c):
    restart(c, "--arg=--space-low=1%", "--arg=--space-high=2%", "--arg=--space-out=100%",
            "--arg=--evict-interval=50ms")
    wait_for(lambda: c.names("cold", cached="true") == [], "cold is empty")
    for bucket in ("kept", "young", "own"):
        equal(c.names(bucket, cached="true"), NAMES, f"what {bucket} has")
    for _ in range(5):  # while it goes on
        read_all(c, "cold")
    read_all(c, "own")


if __name__ == "__main__":
    with WEB:
        main(targets=1, args=[f"--target-arg={a}" for a in (
            "--space-low=1%", "--space-high=99%", "--space-out=100%", "--evict-interval=50ms")])
