#!/usr/bin/env python3
"""S3's copies: the same bytes and metadata under another key, in buckets of every kind, and nothing
of a copy whose conditions or rights do not hold."""

import os
import sys
import xml.etree.ElementTree as ElementTree

from access_lib import GuardedCluster, make_user
from lib import ROOT, Cluster, check, equal, in_parallel, main
from s3_lib import NAMESPACE, S3, refused, root_of, s3ref, use_backend_keys

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

ACCESS, SECRET = "AKIDCOPIES", "theSecretThatNobodyMaySee/+0123"
BACKEND = FakeS3({ACCESS: SECRET})

NODES = ("p1", "t1", "t2", "t3")
DATA = os.urandom(3 << 20)
KEPT = {"Content-Type": "text/x", "Content-Encoding": "gzip", "x-amz-meta-color": "red"}


def copy(client, source, path, headers=None, **more):
    """`source`: "/bucket/key", decoded."""
    source = s3ref.quote(source, "/-_.~")
    return client.call("PUT", path, b"", headers={"x-amz-copy-source": source, **(headers or {})},
                       **more)


def result(reply):
    """Entity tag and time of a CopyObjectResult."""
    root = ElementTree.fromstring(reply.expect(200).body)
    equal(root.tag, NAMESPACE + "CopyObjectResult", "root of the reply")
    return root.findtext(NAMESPACE + "ETag"), root.findtext(NAMESPACE + "LastModified")


def test_a_copy_at_any_node_has_bytes_and_metadata(c):
    c.create("b")
    for size in (0, 100, len(DATA)):
        root_of(c).call("PUT", f"/b/from {size}", DATA[:size], headers=KEPT).expect(200)
        for node in NODES:
            client = root_of(c, node)
            tag, _ = result(copy(client, f"/b/from {size}", f"/b/to/{node}/{size}"))
            got = client.call("GET", f"/b/to/{node}/{size}").expect(200)
            check(got.body == DATA[:size], "the bytes")
            equal(got.headers["ETag"], tag, "entity tag")
            for name, value in KEPT.items():
                equal(got.headers[name], value, name)


def test_buckets_that_a_target_has_not_heard_of(c):
    """Each of the two, and none that exists nowhere."""
    for i in range(5):
        for node in c.targets():
            c.create(f"from-{node}-{i}")
            c.put(f"from-{node}-{i}", "o", b"x").expect(200)
            c.create(f"to-{node}-{i}")
            result(copy(root_of(c, node), f"/from-{node}-{i}/o", f"/b/new-{node}"))
            result(copy(root_of(c, node), "/b/from 100", f"/to-{node}-{i}/o"))
    refused(copy(root_of(c, "t1"), "/nothing/o", "/b/no"), 404, "NoSuchBucket")
    refused(copy(root_of(c, "t1"), "/b/from 100", "/nothing/o"), 404, "NoSuchBucket")


def test_the_time_is_that_of_the_object(c):
    _, time = result(copy(root_of(c), "/b/from 100", "/b/time"))
    got = root_of(c).call("GET", "/b", pairs=[("list-type", "2"), ("prefix", "time")]).expect(200)
    listed = ElementTree.fromstring(got.body).find(f".//{NAMESPACE}LastModified").text
    equal(time[:19], listed[:19], "LastModified, in seconds")


def test_sources_in_all_their_forms(c):
    for form in ("b/from%20100", "/b/from%20100", "b/from%20100?versionId=null",
                 "%2Fb%2Ffrom%20100"):
        result(root_of(c).call("PUT", "/b/forms", b"", headers={"x-amz-copy-source": form}))
    for form, code in (("b", "InvalidArgument"), ("b/", "InvalidArgument"), ("", "InvalidArgument"),
                       ("b/from%20100?versionId=7", "InvalidArgument")):
        refused(root_of(c).call("PUT", "/b/no", b"", headers={"x-amz-copy-source": form}), 400,
                code)
    refused(copy(root_of(c), "/b/from 100", "/b/no", {"x-amz-copy-source-range": "bytes=0-9"}),
            400, "InvalidRequest")
    refused(root_of(c).call("GET", "/b/no"), 404, "NoSuchKey")


def test_a_plog_is_no_source(c):
    client = root_of(c)
    client.call("PUT", "/b/plog", b"{}", headers={"Content-Type": "application/vnd.dfc.plog+json"}).expect(200)
    refused(copy(client, "/b/plog", "/b/no"), 400, "InvalidRequest")
    refused(copy(client, "/b/plog", "/b/plog", {"x-amz-metadata-directive": "REPLACE"}), 400, "InvalidRequest")
    refused(client.call("GET", "/b/no"), 404, "NoSuchKey")
    tags = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
    client.call("PUT", "/b/plog", tags, pairs=[("tagging", "")]).expect(200)


def test_metadata_can_be_replaced(c):
    client = root_of(c)
    client.call("PUT", "/b/meta", b"bytes", headers=KEPT).expect(200)
    given = {"x-amz-metadata-directive": "REPLACE", "Content-Type": "image/png",
             "x-amz-meta-shape": "round"}
    result(copy(client, "/b/meta", "/b/replaced", given))
    got = client.call("GET", "/b/replaced").expect(200)
    equal((got.body, got.headers["Content-Type"], got.headers["x-amz-meta-shape"],
           got.headers["x-amz-meta-color"], got.headers["Content-Encoding"]),
          (b"bytes", "image/png", "round", None, None), "the copy")
    result(copy(client, "/b/meta", "/b/kept", {"Content-Type": "image/png"}))
    equal(client.call("GET", "/b/kept").expect(200).headers["Content-Type"], "text/x", "type")
    refused(copy(client, "/b/meta", "/b/no", {"x-amz-metadata-directive": "MOVE"}), 400,
            "InvalidArgument")


def test_an_object_is_copied_to_itself_only_with_new_metadata(c):
    client = root_of(c)
    client.call("PUT", "/b/self", DATA, headers=KEPT).expect(200)
    refused(copy(client, "/b/self", "/b/self"), 400, "InvalidRequest")
    result(copy(client, "/b/self", "/b/self", {"x-amz-metadata-directive": "REPLACE",
                                               "x-amz-meta-color": "blue"}))
    got = client.call("GET", "/b/self").expect(200)
    equal((got.body == DATA, got.headers["x-amz-meta-color"]), (True, "blue"), "the object")


def test_conditions_of_source_and_destination(c):
    client = root_of(c)
    tag = client.call("PUT", "/b/cond", b"one").expect(200).headers["ETag"]
    past, future = "Mon, 01 Jan 2001 00:00:00 GMT", "Mon, 01 Jan 2035 00:00:00 GMT"
    prefix = "x-amz-copy-source-if-"
    for name, value, holds in (("match", tag, True), ("match", '"x"', False),
                               ("none-match", '"x"', True), ("none-match", tag, False),
                               ("modified-since", past, True), ("modified-since", future, False),
                               ("unmodified-since", future, True),
                               ("unmodified-since", past, False)):
        reply = copy(client, "/b/cond", "/b/held", {prefix + name: value})
        if holds:
            result(reply)
            client.call("DELETE", "/b/held").expect(204)
        else:
            refused(reply, 412, "PreconditionFailed")
            refused(client.call("GET", "/b/held"), 404, "NoSuchKey")
    result(copy(client, "/b/cond", "/b/once", {"If-None-Match": "*"}))
    refused(copy(client, "/b/cond", "/b/once", {"If-None-Match": "*"}), 412, "PreconditionFailed")
    refused(copy(client, "/b/cond", "/b/held", {"If-Match": "*"}), 404, "NoSuchKey")


def test_what_is_missing(c):
    client = root_of(c)
    refused(copy(client, "/b/nothing", "/b/no"), 404, "NoSuchKey")
    refused(copy(client, "/nothing/o", "/b/no"), 404, "NoSuchBucket")
    refused(copy(client, "/b/from 100", "/nothing/o"), 404, "NoSuchBucket")
    refused(client.call("PUT", "/b/no", b"body", headers={"x-amz-copy-source": "b/from%20100"}),
            400, "InvalidRequest")
    refused(client.call("GET", "/b/no"), 404, "NoSuchKey")


def test_both_rights_are_needed(c):
    client = root_of(c)
    client.call("PUT", "/b/secret/o", b"secret").expect(200)
    client.call("PUT", "/b/open/o", b"open").expect(200)
    user = make_user(c, "half", [{"rights": ["read"], "bucket": "b", "prefix": "open/"},
                                 {"rights": ["read", "write"], "bucket": "b", "prefix": "mine/"}])
    for node in NODES:
        half = S3(c, user.access, user.secret, node)
        refused(copy(half, "/b/secret/o", "/b/mine/o"), 403, "AccessDenied")
        refused(copy(half, "/b/open/o", "/b/open/p"), 403, "AccessDenied")
        result(copy(half, "/b/open/o", f"/b/mine/{node}"))
        equal(half.call("GET", f"/b/mine/{node}").expect(200).body, b"open", "bytes")
    refused(client.call("GET", "/b/mine/o"), 404, "NoSuchKey")


def test_buckets_of_every_kind(c):
    kinds = {"one": {}, "copies": {"copies": 2}, "slices": {"ec": "1+1"}, "md5": {"etag": "md5"}}
    for bucket, props in kinds.items():
        c.create(bucket, **props)
    for source in kinds:
        root_of(c).call("PUT", f"/{source}/o", DATA, headers=KEPT).expect(200)
        for node, destination in zip(NODES, kinds):
            client = root_of(c, node)
            tag, _ = result(copy(client, f"/{source}/o", f"/{destination}/from-{source}"))
            got = client.call("GET", f"/{destination}/from-{source}").expect(200)
            equal((got.body == DATA, got.headers["x-amz-meta-color"], got.headers["ETag"]),
                  (True, "red", tag), f"{source} to {destination}")
            equal(tag.endswith('-1"'), destination != "md5", f"form of {tag}")


def test_buckets_with_a_backend(c):
    BACKEND.put("data", "pre/there", b"there")
    c.create("cold", backend=f"s3://data/pre?endpoint={BACKEND.url}", write_policy="through")
    client = root_of(c)
    result(copy(client, "/one/o", "/cold/o"))
    check(BACKEND.get("data", "pre/o") == DATA, "the backend's bytes")
    for source, data in (("o", DATA), ("there", b"there")):
        result(copy(client, "/cold/" + source, "/one/from-cold"))
        check(client.call("GET", "/one/from-cold").expect(200).body == data, "the bytes")
    client.call("PUT", "/one/kept", b"x", headers={"Cache-Control": "no-cache"}).expect(200)
    result(copy(client, "/one/kept", "/cold/kept"))
    equal(BACKEND.meta("data", "pre/kept"), {"Cache-Control": "no-cache"}, "what the backend has")


def test_a_damaged_source_is_not_copied(c):
    client = root_of(c)
    for key, data in (("small", b"x" * 100), ("large", DATA)):
        client.call("PUT", "/one/" + key, data).expect(200)
        path = next(p for node in c.targets() for p in c.object_files(node)
                    if f"{key}\0".encode() in os.getxattr(p, "user.dfc"))
        with open(path, "r+b") as f:
            f.write(bytes([data[0] ^ 1]))
        refused(copy(client, "/one/" + key, "/one/no"), 500, "InternalError")
        refused(client.call("GET", "/one/no"), 404, "NoSuchKey")


def test_a_quota_holds_for_copies(c):
    c.create("small", quota_bytes="1MiB")
    refused(copy(root_of(c), "/one/o", "/small/o"), 403, "QuotaExceeded")
    refused(root_of(c).call("GET", "/small/o"), 404, "NoSuchKey")


def test_many_at_once(c):
    def one(i):
        client = root_of(c, NODES[i % len(NODES)])
        result(copy(client, "/one/o", f"/one/many/{i}"))
        check(client.call("GET", f"/one/many/{i}").expect(200).body == DATA, "the bytes")
    in_parallel(one, range(32))


def test_a_source_that_dies_leaves_nothing(c):
    c.create("cut")
    root = root_of(c)
    key = next(f"k{i}" for i in range(100) if c.owner("cut", f"k{i}") == "t3")
    to = next(f"d{i}" for i in range(100) if c.owner("cut", f"d{i}") == "t1")
    root.call("PUT", "/cut/" + key, DATA).expect(200)
    c.kill("t3", "-9")
    refused(copy(root, "/cut/" + key, "/cut/" + to), 503, "SlowDown")
    refused(root.call("GET", "/cut/" + to), 404, "NoSuchKey")
    c.start("t3")
    result(copy(root, "/cut/" + key, "/cut/" + to))


def test_without_access_control(_):
    c = Cluster(targets=2)
    c.create("b")
    S3(c).call("PUT", "/b/o", b"x").expect(200)
    result(copy(S3(c), "/b/o", "/b/p"))
    equal(S3(c).call("GET", "/b/p").expect(200).body, b"x", "bytes")
    c.remove()


if __name__ == "__main__":
    use_backend_keys(ACCESS, SECRET)
    with BACKEND:
        main(GuardedCluster, targets=3)
