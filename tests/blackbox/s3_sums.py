#!/usr/bin/env python3
"""S3's checksums of objects: kept with the bytes in buckets of every kind, and given again to who
asks; GetObjectAttributes."""

import base64
import os
import xml.etree.ElementTree as ElementTree

from access_lib import GuardedCluster
from lib import Cluster, check, equal, main
from s3_lib import NAMESPACE, S3, refused, root_of, s3ref
from s3_objects import put_framed

NODES = ("p1", "t1", "t2", "t3")
DATA = os.urandom(200000)
TYPES = ("crc32", "crc32c", "crc64nvme", "sha1", "sha256")
KINDS = {"one": {}, "copies": {"copies": 2}, "md5": {"etag": "md5"}}
PREFIX = "x-amz-checksum-"
ENABLED = {PREFIX + "mode": "ENABLED"}


def sums_of(reply):
    """The checksums that it has, with their type."""
    return {n.lower()[len(PREFIX):]: v for n, v in reply.headers.items()
            if n.lower().startswith(PREFIX)}


def wanted(kind, data=DATA):
    return {kind: s3ref.sum_text(kind, data), "type": "FULL_OBJECT"}


def test_a_checksum_in_a_header_is_kept(c):
    for bucket, props in KINDS.items():
        c.create(bucket, **props)
        for node, kind in zip(NODES * 2, TYPES):
            client, path = root_of(c, node), f"/{bucket}/{kind}"
            client.call("HEAD", "/" + bucket).expect(200)  # the node hears of it
            put = client.call("PUT", path, DATA, headers={
                PREFIX + kind: s3ref.sum_text(kind, DATA), "x-amz-meta-a": "b"}).expect(200)
            equal(sums_of(put), wanted(kind), f"{kind} in the reply to a PUT")
            for method in ("GET", "HEAD"):
                got = client.call(method, path, headers=ENABLED).expect(200)
                equal(sums_of(got), wanted(kind), f"{kind} by {method} from {bucket}")
                equal([n.lower() for n in got.headers if n.lower().startswith("x-amz-meta-")],
                      ["x-amz-meta-a"], "user metadata")
                equal(sums_of(client.call(method, path).expect(200)), {}, "without the mode")
            part = client.call("GET", path, headers={**ENABLED, "Range": "bytes=0-9"}).expect(206)
            equal(sums_of(part), {}, "of a range")


def test_a_checksum_in_a_trailer_is_kept(c):
    for bucket in KINDS:
        c.create("t" + bucket, **KINDS[bucket])
        root = root_of(c, "t1")
        root.call("HEAD", "/t" + bucket).expect(200)  # it hears of the bucket
        for kind in TYPES:
            put = put_framed(root, f"trailer-{kind}", DATA, s3ref.UNSIGNED_TRAILER,
                             bucket="t" + bucket,
                             trailers=[(PREFIX + kind, s3ref.sum_text(kind, DATA))]).expect(200)
            equal(sums_of(put), wanted(kind), "the reply to a PUT")
            got = root.call("GET", f"/t{bucket}/trailer-{kind}", headers=ENABLED).expect(200)
            equal((sums_of(got), got.body == DATA), (wanted(kind), True), f"{kind} in {bucket}")


def test_a_wrong_checksum_stores_nothing(c):
    bad = base64.b64encode(b"\0" * 4).decode()
    refused(root_of(c).call("PUT", "/one/no", DATA, headers={PREFIX + "crc32": bad}), 400,
            "BadDigest")
    c.object("PUT", "one", "no", DATA, {"Dfc-Sum": "CRC32:" + bad}).expect(422, "checksum_mismatch")
    for node in ("p1", "t1", "t2"):
        for method, path, headers in (("PUT", "/one/no", {}), ("POST", "/one?delete", {}),
                                      ("PUT", "/one/no", {"x-amz-copy-source": "one/no"})):
            path, _, query = path.partition("?")
            refused(root_of(c, node).call(method, path, pairs=[(query, "")] if query else (),
                                          headers={**headers, "x-amz-trailer": PREFIX + "crc32"}),
                    400, "MalformedTrailerError")
    for text in ("crc32", "CRC32:", "MD5", "CRC32:AAAA", ""):
        c.object("PUT", "one", "no", DATA, {"Dfc-Sum": text}).expect(400, "invalid_argument")
    refused(root_of(c).call("GET", "/one/no"), 404, "NoSuchKey")


def test_the_native_api_computes_and_gives_it(c):
    reply = c.object("PUT", "copies", "native", DATA, {"Dfc-Sum": "CRC64NVME"}).expect(200)
    text = "CRC64NVME:" + s3ref.sum_text("crc64nvme", DATA)
    equal(reply.headers["Dfc-Sum"], text, "the reply to a PUT")
    equal(c.get("copies", "native").expect(200).headers["Dfc-Sum"], text, "the reply to a GET")
    got = root_of(c).call("HEAD", "/copies/native", headers=ENABLED).expect(200)
    equal(sums_of(got), wanted("crc64nvme"), "S3's")


def test_it_stays_with_the_bytes(c):
    client = root_of(c, "t3")
    c.object("POST", "one", "crc32", {"action": "rename", "name": "renamed"}).expect(204)
    got = client.call("HEAD", "/one/renamed", headers=ENABLED).expect(200)
    equal(sums_of(got), wanted("crc32"), "after a rename")
    for headers, kind in (({}, "crc32"), ({PREFIX + "algorithm": "SHA256"}, "sha256")):
        reply = client.call("PUT", "/copies/copy", b"", headers={
            "x-amz-copy-source": "one/renamed", **headers}).expect(200)
        element = ElementTree.fromstring(reply.body).find(f"{NAMESPACE}Checksum{kind.upper()}")
        equal(element.text, s3ref.sum_text(kind, DATA), "the reply to a copy")
        got = client.call("HEAD", "/copies/copy", headers=ENABLED).expect(200)
        equal(sums_of(got), wanted(kind), f"of the copy with {headers}")
    refused(client.call("PUT", "/copies/copy", b"", headers={
        "x-amz-copy-source": "one/renamed", PREFIX + "algorithm": "MD4"}), 400, "InvalidRequest")


def test_both_owners_have_it(c):
    """Each computes it by itself."""
    attributes = [os.getxattr(path, "user.dfc") for node in c.targets()
                  for path in c.object_files(node)]
    for kind in TYPES:
        text = f"entity-sum\0{kind.upper()}:{s3ref.sum_text(kind, DATA)}\0".encode()
        having = [a for a in attributes if f"trailer-{kind}\0".encode() in a]
        equal([text in a for a in having], [True] * 4, f"{kind} on the disks")


def test_attributes(c):
    for node in NODES:
        check_attributes(root_of(c, node))


def check_attributes(client):
    tag = client.call("HEAD", "/one/sha1").expect(200).headers["ETag"].strip('"')
    names = "ETag,Checksum,ObjectSize,StorageClass,ObjectParts"
    reply = client.call("GET", "/one/sha1", pairs=[("attributes", "")],
                        headers={"x-amz-object-attributes": names}).expect(200)
    root = ElementTree.fromstring(reply.body)
    texts = {e.tag.replace(NAMESPACE, ""): e.text for e in root.iter() if e.text}
    equal(texts, {"ETag": tag, "ChecksumSHA1": s3ref.sum_text("sha1", DATA),
                  "ChecksumType": "FULL_OBJECT", "ObjectSize": str(len(DATA)),
                  "StorageClass": "STANDARD"}, "attributes")
    check(reply.headers["Last-Modified"] is not None, "no Last-Modified")
    reply = client.call("GET", "/one/sha1", pairs=[("attributes", "")],
                        headers={"x-amz-object-attributes": "ObjectSize"}).expect(200)
    equal([e.tag.replace(NAMESPACE, "") for e in ElementTree.fromstring(reply.body)],
          ["ObjectSize"], "the one that was asked for")
    refused(client.call("GET", "/one/none", pairs=[("attributes", "")],
                        headers={"x-amz-object-attributes": names}), 404, "NoSuchKey")
    for headers in ({}, {"x-amz-object-attributes": "Colour"}):
        refused(client.call("GET", "/one/sha1", pairs=[("attributes", "")], headers=headers), 400,
                "InvalidArgument")


def test_where_it_has_no_room(_):
    c = Cluster(targets=1)
    c.create("b")
    full = {"x-amz-meta-a": "y" * 2040, PREFIX + "crc32": s3ref.sum_text("crc32", DATA)}
    S3(c).call("PUT", "/b/full", DATA, headers=full).expect(200)
    got = S3(c).call("GET", "/b/full", headers=ENABLED).expect(200)
    equal((sums_of(got), got.headers["x-amz-meta-a"]), ({}, "y" * 2040), "metadata goes first")
    c.remove()


if __name__ == "__main__":
    main(GuardedCluster, targets=3)
