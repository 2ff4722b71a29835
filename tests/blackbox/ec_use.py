#!/usr/bin/env python3
"""What users do with buckets whose large objects are in slices (ec/README.md): renames, and jobs that copy
from and to them."""

import random

from ec import SLICES, create, get, put, slices_of_bucket
from lib import check, equal, main


def fill(c, bucket):
    bodies = {"dir/large": random.randbytes(1500000), "dir/small": random.randbytes(1000)}
    for name, body in bodies.items():
        put(c, bucket, name, body, {"Content-Type": "a/b", "Dfc-Meta-Color": "red"})
    return bodies


def check_is(c, bucket, name, body):
    reply = get(c, bucket, name).expect(200)
    check(reply.body == body, f"{bucket}/{name}: other bytes")
    equal(reply.headers["Content-Type"], "a/b", f"the type of {bucket}/{name}")
    equal(reply.headers["Dfc-Meta-Color"], "red", f"metadata of {bucket}/{name}")


def test_a_rename_takes_the_slices_along(c):
    create(c, "b")
    bodies = fill(c, "b")
    for name, body in bodies.items():
        c.object("POST", "b", name, {"action": "rename", "name": f"new/{name}"}).expect(204)
        check_is(c, "b", f"new/{name}", body)
        get(c, "b", name).expect(404, "object_not_found")
    names = [e["name"] for page in c.pages("b") for e in page["entries"]]
    equal(sorted(names), ["new/dir/large", "new/dir/small"], "names")


def copy(c, source, to):
    done = c.dfcctl("bucket", "cp", source, to, "--wait")
    equal(done.returncode, 0, f"the copy from {source} to {to}: {done.stdout} {done.stderr}")


def test_jobs_copy_out_of_slices_and_into_them(c):
    """From slices to slices, to whole objects, and from these back to slices."""
    create(c, "from")
    bodies = fill(c, "from")
    create(c, "sliced")
    create(c, "again")
    c.call("POST", "/v1/buckets/whole", {"action": "create", "value": {}}).expect(201)
    for source, to in (("from", "sliced"), ("from", "whole"), ("whole", "again")):
        copy(c, source, to)
        for name, body in bodies.items():
            check_is(c, to, name, body)
    for bucket, count in (("sliced", SLICES), ("whole", 0), ("again", SLICES)):
        equal(slices_of_bucket(c, bucket), count, f"slices of {bucket}")
    first = c.object("HEAD", "sliced", "dir/large").headers["ETag"]
    copy(c, "from", "sliced")
    equal(c.object("HEAD", "sliced", "dir/large").headers["ETag"], first, "what had been copied")


if __name__ == "__main__":
    main(targets=SLICES + 1, args=("--proxy-arg=--faults=ec.refuse=skip",))
