#!/usr/bin/env python3
"""S3's headers of objects: those that an object keeps, those that a query replaces, and those that
ask for a part of it."""

import os

from access_lib import GuardedCluster
from lib import check, equal, main
from s3_lib import refused, root_of

NODES = ("p1", "t1", "t2", "t3")
DATA = os.urandom(1000)
KEPT = {"Content-Type": "text/x", "Content-Encoding": "gzip", "Content-Language": "de, en",
        "Content-Disposition": 'attachment; filename="a b.txt"',
        "Cache-Control": "max-age=60, public", "Expires": "Mon, 01 Jan 2035 00:00:00 GMT"}
KINDS = {"one": {}, "copies": {"copies": 2}, "slices": {"ec": "1+1"}, "md5": {"etag": "md5"}}


def shown(reply):
    return {name: reply.headers.get(name) for name in KEPT}


def test_an_object_keeps_its_headers(c):
    for bucket, props in KINDS.items():
        c.create(bucket, **props)
        for node in NODES:
            client = root_of(c, node)
            client.call("HEAD", "/" + bucket).expect(200)  # the node hears of it
            client.call("PUT", f"/{bucket}/{node}", DATA,
                        headers={**KEPT, "x-amz-meta-a": "b"}).expect(200)
            for method in ("GET", "HEAD"):
                got = client.call(method, f"/{bucket}/{node}").expect(200)
                equal(shown(got), KEPT, f"headers of {method} from {bucket}")
                equal([n for n in got.headers if n.lower().startswith("x-amz-meta-")],
                      ["x-amz-meta-a"], "user metadata")
            part = client.call("GET", f"/{bucket}/{node}", headers={"Range": "bytes=1-2"})
            equal(shown(part.expect(206)), KEPT, "headers of a range")
            same = client.call("GET", f"/{bucket}/{node}",
                               headers={"If-None-Match": got.headers["ETag"]}).expect(304)
            equal((same.headers["Cache-Control"], same.headers["Expires"]),
                  (KEPT["Cache-Control"], KEPT["Expires"]), "headers of a 304")


def test_the_native_api_has_the_same_headers(c):
    got = c.get("one", "t1").expect(200)
    equal(shown(got), KEPT, "headers of a native GET")
    equal([n.lower() for n in got.headers if n.lower().startswith("dfc-meta-")], ["dfc-meta-a"],
          "user metadata")
    c.put("one", "native", DATA, KEPT).expect(200)
    equal(shown(root_of(c).call("GET", "/one/native").expect(200)), KEPT, "headers of a native PUT")
    for name in ("entity-expires", "Entity-Cache-Control", "entity-md5", "backend-encoding"):
        c.object("PUT", "one", "no", DATA, {"Dfc-Meta-" + name: "x"}).expect(
            400, "invalid_argument")


def test_a_rename_keeps_them(c):
    for bucket in ("one", "copies", "slices"):
        c.put(bucket, "old", DATA, KEPT).expect(200)
        c.object("POST", bucket, "old", {"action": "rename", "name": "new"}).expect(204)
        equal(shown(c.get(bucket, "new").expect(200)), KEPT, f"headers in {bucket}")


def test_a_copy_has_them_unless_they_are_replaced(c):
    client = root_of(c, "t2")
    source = {"x-amz-copy-source": "one/t1"}
    client.call("PUT", "/copies/copy", b"", headers=source).expect(200)
    equal(shown(client.call("GET", "/copies/copy").expect(200)), KEPT, "headers of the copy")
    client.call("PUT", "/copies/copy", b"", headers={
        **source, "x-amz-metadata-directive": "REPLACE", "Cache-Control": "no-cache"}).expect(200)
    got = client.call("GET", "/copies/copy").expect(200)
    equal((got.headers["Cache-Control"], got.headers["Expires"]), ("no-cache", None), "replaced")


def test_more_than_an_object_keeps_is_refused(c):
    refused(root_of(c).call("PUT", "/one/long", DATA, headers={
        "x-amz-meta-a": "y" * 1500, "Cache-Control": "x" * 600}), 400, "InvalidArgument")
    refused(root_of(c).call("GET", "/one/long"), 404, "NoSuchKey")


def test_a_query_replaces_them(c):
    pairs = [("response-cache-control", "no-store"), ("response-expires", "0"),
             ("response-content-language", "fr"), ("response-content-disposition", "inline"),
             ("response-content-type", "a/b"), ("response-content-encoding", "br")]
    wanted = {"Content-Type": "a/b", "Content-Encoding": "br", "Content-Language": "fr",
              "Content-Disposition": "inline", "Cache-Control": "no-store", "Expires": "0"}
    got = root_of(c).call("GET", "/one/t1", pairs=pairs).expect(200)
    for name, value in wanted.items():
        equal(got.headers.get_all(name), [value], name)


def test_if_range(c):
    client = root_of(c)
    for bucket in KINDS:
        tag = client.call("HEAD", f"/{bucket}/t1").expect(200).headers["ETag"]
        for given, status, body in ((tag, 206, DATA[:10]), ('"other"', 200, DATA)):
            got = client.call("GET", f"/{bucket}/t1",
                              headers={"Range": "bytes=0-9", "If-Range": given}).expect(status)
            check(got.body == body, f"the bytes of {bucket} with {given}")


def test_head_of_a_range(c):
    for bucket in KINDS:
        for node in NODES:
            client = root_of(c, node)
            got = client.call("HEAD", f"/{bucket}/t1", headers={"Range": "bytes=5-14"}).expect(206)
            equal((got.headers["Content-Range"], got.headers["Content-Length"], got.body),
                  ("bytes 5-14/1000", "10", b""), "HEAD of a range")
            client.call("HEAD", f"/{bucket}/t1", headers={"Range": "bytes=1000-"}).expect(416)
            client.call("HEAD", f"/{bucket}/none", headers={"Range": "bytes=0-1"}).expect(404)
            equal(client.call("GET", f"/{bucket}/t1").expect(200).body, DATA, "the connection")


def test_head_of_a_large_range(c):
    """Its bytes are not read: the call that would bring them ends."""
    root_of(c).call("PUT", "/one/large", DATA * 16000).expect(200)
    for node in NODES * 3:
        got = root_of(c, node).call("HEAD", "/one/large", headers={"Range": "bytes=1-"}).expect(206)
        equal((got.headers["Content-Length"], got.body), ("15999999", b""), f"HEAD at {node}")
    check(root_of(c).call("GET", "/one/large").expect(200).body == DATA * 16000, "the bytes")


def test_part_one_is_the_whole_object(c):
    client = root_of(c)
    for method, body in (("GET", DATA), ("HEAD", b"")):
        got = client.call(method, "/one/t1", pairs=[("partNumber", "1")]).expect(206)
        equal((got.headers["Content-Range"], got.headers["Content-Length"], got.body),
              ("bytes 0-999/1000", "1000", body), f"part 1 by {method}")
    client.call("PUT", "/one/empty", b"").expect(200)
    equal(client.call("GET", "/one/empty", pairs=[("partNumber", "1")]).expect(200).body, b"",
          "an empty object")
    refused(client.call("GET", "/one/t1", pairs=[("partNumber", "2")]), 416, "InvalidPartNumber")
    refused(client.call("GET", "/one/t1", pairs=[("partNumber", "0")]), 400, "InvalidArgument")
    refused(client.call("GET", "/one/t1", pairs=[("partNumber", "1")],
                        headers={"Range": "bytes=0-1"}), 400, "InvalidRequest")


if __name__ == "__main__":
    main(GuardedCluster, targets=3)
