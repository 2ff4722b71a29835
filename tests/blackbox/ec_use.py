#!/usr/bin/env python3
"""What users do with buckets whose large objects are in slices (docs/design/erasure-coding.md):
renames, jobs that copy from and to them, and what is shown of them."""

import json
import os
import random

from ec import DATA, PARITY, SLICES, create, get, put, slice_files, slices_of_bucket
from lib import check, equal, main, wait_for


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


def shown(c, bucket, name, *flags):
    done = c.dfcctl("object", "show", f"{bucket}/{name}", "-o", "json", *flags)
    equal(done.returncode, 0, f"object show: {done.stderr}")
    return json.loads(done.stdout)


def slices_at(document):
    """{slice: its entry}, of all targets."""
    return {s["slice"]: {**s, "node": e["node"]} for e in document["copies"]
            for s in e.get("slices", [])}


def test_object_show_says_where_each_slice_is(c):
    create(c, "shown")
    bodies = fill(c, "shown")
    document = shown(c, "shown", "dir/large", "--checksums")
    equal(document["ec"]["data"], DATA, "slices of data")
    equal(document["slices_missing"], [], "missing ones")
    found = slices_at(document)
    equal(sorted(found), list(range(SLICES)), "slices")
    equal(len({s["node"] for s in found.values()}), SLICES, "their targets")
    check(all(s["intact"] for s in found.values()), f"not intact: {found}")
    manifests = [e for e in document["copies"] if e["found"]]
    equal([e["size"] for e in manifests], [len(bodies["dir/large"])] * (PARITY + 1), "sizes")
    check("ec" not in shown(c, "shown", "dir/small"), "a small object is whole")


def files_of(c, bucket):
    number = c.get_json(f"/v1/buckets/{bucket}")["id"] | 1 << 62
    return [p for t in c.targets() for p in slice_files(c, t) if f"/obj/{number}/" in p]


def test_missing_and_damaged_slices_are_named(c):
    for path in files_of(c, "shown"):
        size = os.path.getsize(path)
        with open(path, "r+b") as f:
            f.seek(size // 2)
            byte = f.read(1)
            f.seek(size // 2)
            f.write(bytes([byte[0] ^ 1]))
        break
    document = shown(c, "shown", "dir/large", "--checksums")
    equal(len(document["slices_missing"]), 1, "damaged ones are missing")
    damaged = document["slices_missing"][0]
    equal(slices_at(document)[damaged]["intact"], False, "the damaged one")
    text = c.dfcctl("object", "show", "shown/dir/large", "--checksums").stdout
    check(f"slice {damaged}, DAMAGED" in text, text)
    check(
        f"{SLICES - 1} of {SLICES} slices are there, {DATA} are needed; missing: {damaged}" in text,
        text)


def summary(c, bucket):
    done = c.dfcctl("storage", "summary", bucket, "-o", "json")
    equal(done.returncode, 0, f"storage summary: {done.stderr}")
    return json.loads(done.stdout)[bucket]


def test_a_summary_counts_what_is_stored(c):
    create(c, "counted")
    bodies = fill(c, "counted")
    row = summary(c, "counted")
    equal(row["objects"], 2 * (PARITY + 1), "objects, each for each copy of it")
    equal((row["sliced"], row["slices"], row["slices_wanted"]), (1, SLICES, SLICES), "slices")
    stored = sum(map(os.path.getsize, files_of(c, "counted")))
    equal(row["bytes"], stored + (PARITY + 1) * len(bodies["dir/small"]), "bytes")
    os.unlink(files_of(c, "counted")[0])
    for t in c.targets():
        c.dfcctl("storage", "reindex", t, "--wait")
    row = summary(c, "counted")
    equal((row["slices"], row["slices_wanted"]), (SLICES - 1, SLICES), "slices, where one is lost")
    done = c.dfcctl("storage", "summary", "counted")
    check("slices that are missing: 1;" in done.stdout + done.stderr, f"{done.stdout}{done.stderr}")


def set_ec(c, bucket, ec):
    return c.call("PUT", f"/v1/buckets/{bucket}", {"action": "setprops", "value": {"ec": ec}})


def test_the_shape_stays_and_the_least_size_changes(c):
    set_ec(c, "counted", f"{DATA + 1}+{PARITY}").expect(400, "invalid_argument")
    set_ec(c, "counted", f"{DATA}+{PARITY}:100").expect(200)
    put(c, "counted", "by now sliced", bytes(1000))
    check("ec" in shown(c, "counted", "by now sliced"), "it is whole")


def test_slices_go_with_their_bucket(c):
    create(c, "first")
    bodies = fill(c, "first")
    c.call("POST", "/v1/buckets/first", {"action": "rename", "name": "second"}).expect(204)
    for name, body in bodies.items():
        check_is(c, "second", name, body)
    number = c.get_json("/v1/buckets/second")["id"] | 1 << 62
    equal(slices_of_bucket(c, "second"), SLICES, "slices")
    c.call("DELETE", "/v1/buckets/second").expect(204)
    wait_for(lambda: not any(f"/obj/{number}/" in path for t in c.targets()
                             for path in slice_files(c, t)), "the end of the slices", 60)


if __name__ == "__main__":
    main(targets=SLICES + 1)
