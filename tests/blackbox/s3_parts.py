#!/usr/bin/env python3
"""The parts of completed S3 uploads: each is read by its number at every node and in buckets of
every kind, and stays known wherever the object is moved, until the object is written again."""

import os
import sys
import threading

from access_lib import GuardedCluster
from cold_meta import evict
from ec import patient
from lib import ROOT, Cluster, check, equal, main
from s3_lib import S3, refused, root_of, use_backend_keys
from s3_uploads import MIN, NODES, PARTS, begin, complete, copy, send, tag_of, upload_of

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

ACCESS, SECRET = "AKIDPARTS", "theSecretThatNobodyMaySee/+0123"
BACKEND = FakeS3({ACCESS: SECRET})

WHOLE = b"".join(PARTS)
SIZES = f"2x{MIN},1x{len(PARTS[2])}"
KINDS = {"one": {}, "copies": {"copies": 2}, "slices": {"ec": "1+1"}, "md5": {"etag": "md5"}}


def part(client, path, number, method="GET", headers=None):
    return client.call(method, path, pairs=[("partNumber", str(number))], headers=headers)


def shows_parts(client, path, parts=PARTS, tag=None):
    """Each part by GET and HEAD, and none behind the last."""
    whole, at = b"".join(parts), 0
    for number, data in enumerate(parts, 1):
        for method in ("GET", "HEAD"):
            got = part(client, path, number, method).expect(206)
            want = (f"bytes {at}-{at + len(data) - 1}/{len(whole)}", str(len(data)),
                    str(len(parts)))
            equal(tuple(got.headers[h] for h in ("Content-Range", "Content-Length",
                                                 "x-amz-mp-parts-count")), want,
                  f"{method} of part {number} of {path}")
            equal(got.headers["ETag"], tag or tag_of(parts), "entity tag")
            check(got.body == (data if method == "GET" else b""), f"bytes of part {number}")
        at += len(data)
    refused(part(client, path, len(parts) + 1), 416, "InvalidPartNumber")


def has_no_parts(client, path, data):
    got = part(client, path, 1).expect(206)
    equal((got.headers["Content-Range"], got.headers["x-amz-mp-parts-count"]),
          (f"bytes 0-{len(data) - 1}/{len(data)}", None), f"{path} is its only part")
    check(got.body == data, f"bytes of {path}")
    refused(part(client, path, 2), 416, "InvalidPartNumber")


def test_each_node_reads_each_part(c):
    for bucket, props in KINDS.items():
        c.create(bucket, **props)
        upload_of(root_of(c, "t2"), f"/{bucket}/dir/o x")
        for node in NODES:
            shows_parts(root_of(c, node), f"/{bucket}/dir/o x")
        equal(c.object("HEAD", bucket, "dir/o x").expect(200).headers["Dfc-Parts"], SIZES,
              "sizes by the native API")


def test_parts_count_in_the_order_of_their_bytes(c):
    """Parts 2, 7 and 9 of an upload, sent in another order, the last one empty."""
    client, path = root_of(c), "/one/gaps"
    upload = begin(client, path)
    tags = {n: send(client, path, upload, n, data).expect(200).headers["ETag"]
            for n, data in ((9, b""), (7, PARTS[1] + b"more"), (2, PARTS[0]), (3, b"not listed"))}
    complete(client, path, upload, [(n, tags[n]) for n in (2, 7, 9)]).expect(200)
    check(part(client, path, 2).expect(206).body == PARTS[1] + b"more", "the second part")
    empty = part(client, path, 3).expect(206)
    equal((empty.body, empty.headers["x-amz-mp-parts-count"], empty.headers["Content-Range"]),
          (b"", "3", None), "an empty part")
    refused(part(client, path, 4), 416, "InvalidPartNumber")
    upload_of(client, "/one/single", (b"one part",))
    shows_parts(client, "/one/single", (b"one part",))
    upload_of(client, "/one/nothing", (b"",))
    got = part(client, "/one/nothing", 1).expect(200)
    equal((got.body, got.headers["x-amz-mp-parts-count"]), (b"", "1"), "an object of no bytes")


def test_what_a_read_of_a_part_refuses(c):
    for node in NODES:
        client = root_of(c, node)
        for number in ("0", "-1", "x", "", "10001"):
            refused(part(client, "/one/single", number), 400, "InvalidArgument")
        refused(part(client, "/one/single", 1, headers={"Range": "bytes=0-1"}), 400,
                "InvalidRequest")
        refused(part(client, "/one/none", 1), 404, "NoSuchKey")
        refused(part(client, "/none/o", 1), 404, "NoSuchBucket")


def test_conditions(c):
    tag = tag_of(PARTS)
    for node in NODES:
        client, path = root_of(c, node), "/one/dir/o x"
        check(part(client, path, 2, headers={"If-Match": tag}).expect(206).body == PARTS[1],
              "bytes")
        part(client, path, 2, headers={"If-None-Match": tag}).expect(304)
        refused(part(client, path, 2, headers={"If-Match": '"x"'}), 412, "PreconditionFailed")


def test_parts_stay_with_the_bytes(c):
    for bucket in KINDS:
        c.object("POST", bucket, "dir/o x", {"action": "rename", "name": "renamed"}).expect(204)
        shows_parts(root_of(c), f"/{bucket}/renamed")
        c.create("copy-of-" + bucket, copies=2)
        job = c.call("POST", f"/v1/buckets/{bucket}", {
            "action": "copy", "value": {"prefix": "renamed", "to": "copy-of-" + bucket}})
        c.wait_job(job.expect(202).json()["id"], "finished")
        shows_parts(root_of(c), f"/copy-of-{bucket}/renamed")


def test_an_owner_that_dies_does_not_take_them(c):
    names = [f"k{i}" for i in range(3)]
    for bucket in ("copies", "slices"):
        for name in names:
            upload_of(root_of(c), f"/{bucket}/{name}", PARTS[1:])
    c.kill("t2", "-9")
    for bucket in ("copies", "slices"):
        for name in names:
            reply = patient(c, "HEAD", bucket, name).expect(200)
            equal(reply.headers["Dfc-Parts"], f"1x{MIN},1x{len(PARTS[2])}", f"{bucket}/{name}")
            check(part(root_of(c), f"/{bucket}/{name}", 2).expect(206).body == PARTS[2], "bytes")
    c.start("t2")
    c.wait_node("t2", "active")


def test_other_objects_have_none(c):
    client = root_of(c)
    path = "/one/renamed"
    client.call("PUT", "/one/copy", b"", headers={"x-amz-copy-source": path}).expect(200)
    has_no_parts(client, "/one/copy", WHOLE)
    upload = begin(client, "/one/from")
    copy(client, "/one/from", upload, 1, path).expect(200)
    complete(client, "/one/from", upload, [(1, part_tag(client, "/one/from", upload))]).expect(200)
    shows_parts(client, "/one/from", (WHOLE,))
    client.call("PUT", path, b"written again").expect(200)
    has_no_parts(client, path, b"written again")
    c.object("PUT", "one", "mine", b"x", {"Dfc-Parts": "1x1"}).expect(200)
    equal(c.object("HEAD", "one", "mine").expect(200).headers["Dfc-Parts"], None, "of a PUT")
    c.object("PUT", "one", "mine", b"x", {"Dfc-Meta-Entity-Parts": "1x1"}).expect(
        400, "invalid_argument", "own")


def part_tag(client, path, upload):
    body = client.call("GET", path, pairs=[("uploadId", upload)]).expect(200).body
    return body.split(b"<ETag>")[1].split(b"</ETag>")[0].decode().replace("&quot;", "").strip('"')


def test_metadata_may_leave_no_room(c):
    """The object has its tag then, and is its only part."""
    room = 2048 - len("entity-md5") - len(tag_of(PARTS)) - len("a") - 10
    upload_of(root_of(c), "/one/full", PARTS[:2], {"x-amz-meta-a": "m" * room})
    has_no_parts(root_of(c), "/one/full", PARTS[0] + PARTS[1])


def test_backends_keep_them(c):
    BACKEND.put("data", "seed", b"seed")
    c.create("through", backend=f"s3://data/through?endpoint={BACKEND.url}", write_policy="through")
    upload_of(root_of(c), "/through/o")
    equal(BACKEND.meta("data", "through/o"), {"dfc-parts": SIZES}, "at the backend")
    for step in (lambda: None, lambda: evict(c, "through")):
        step()
        tag = root_of(c).call("HEAD", "/through/o").expect(200).headers["ETag"]
        for node in NODES:
            shows_parts(root_of(c, node), "/through/o", tag=tag)
    BACKEND.put("data", "through/theirs", b"theirs", {"Dfc-Parts": "2x9"})
    has_no_parts(root_of(c), "/through/theirs", b"theirs")
    room = 1536 - len("a") - 10
    upload_of(root_of(c), "/through/full", (b"x",), {"x-amz-meta-a": "m" * room})
    has_no_parts(root_of(c), "/through/full", b"x")


def test_writers_at_once(c):
    """A reply has the bytes of one object, also if the object is written between the two calls."""
    path, over = "/copies/contested", threading.Event()
    bodies = [b"x" * 1000, b"y" * 2000]
    root_of(c).call("PUT", path, bodies[0]).expect(200)

    def write():
        while not over.is_set():
            for body in bodies:
                root_of(c, "t1").call("PUT", path, body).expect(200)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for i in range(40):
            got = part(root_of(c, NODES[i % len(NODES)]), path, 1)
            if got.status == 503:
                refused(got, 503, "SlowDown")
                continue
            check(got.expect(206).body in bodies, "bytes of one object")
            equal(got.headers["Content-Range"], f"bytes 0-{len(got.body) - 1}/{len(got.body)}",
                  "their range")
    finally:
        over.set()
        writer.join()


def test_without_access_control(_):
    c = Cluster(targets=1)
    c.create("b")
    upload_of(S3(c), "/b/o")
    shows_parts(S3(c), "/b/o")
    c.restart("t1")
    shows_parts(S3(c), "/b/o")
    c.remove()


if __name__ == "__main__":
    use_backend_keys(ACCESS, SECRET)
    with BACKEND:
        main(GuardedCluster, targets=3)
