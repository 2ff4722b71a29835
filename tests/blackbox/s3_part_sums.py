#!/usr/bin/env python3
"""Checksums of S3 uploads in parts.  Each part and each object has the value that is computed here,
at every node, in buckets of every kind, and after a kill between a part and its completion."""

import base64
import functools
import hashlib
import os
import sys
import xml.etree.ElementTree as ElementTree
import zlib

from access_lib import GuardedCluster
from cold_meta import evict
from ec import patient
from lib import ROOT, check, equal, main
from s3_lib import NAMESPACE, refused, root_of, s3ref, use_backend_keys
from s3_uploads import MIN, NODES, abort, copy, framed, md5_of, send, texts
from uploads_lib import folder

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

ACCESS, SECRET = "AKIDSUMS", "theSecretThatNobodyMaySee/+0123"
BACKEND = FakeS3({ACCESS: SECRET})

PARTS = (os.urandom(MIN), os.urandom(MIN + 1), os.urandom(1000))
WHOLE = b"".join(PARTS)
KINDS = {"one": {}, "copies": {"copies": 2}, "slices": {"ec": "2+1"}, "md5": {"etag": "md5"}}
TYPES = (("CRC32", "COMPOSITE"), ("CRC32C", "COMPOSITE"), ("SHA1", "COMPOSITE"),
         ("SHA256", "COMPOSITE"), ("CRC32", "FULL_OBJECT"), ("CRC32C", "FULL_OBJECT"),
         ("CRC64NVME", "FULL_OBJECT"))
ENABLED = {"x-amz-checksum-mode": "ENABLED"}


# --- the values, without the code under test ------------------------------------------------------

@functools.lru_cache(None)
def table_of(polynomial):
    table = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (polynomial if i & 1 else 0)
        table.append(i)
    return table


def crc_of(bits, polynomial, data):
    table = table_of(polynomial)
    crc = (1 << bits) - 1
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return (crc ^ ((1 << bits) - 1)).to_bytes(bits // 8, "big")


DIGESTS = {
    "CRC32": lambda data: zlib.crc32(data).to_bytes(4, "big"),
    "CRC32C": lambda data: crc_of(32, 0x82F63B78, data),
    "CRC64NVME": lambda data: crc_of(64, 0x9A6C9329AC4BC9B5, data),
    "SHA1": lambda data: hashlib.sha1(data).digest(),
    "SHA256": lambda data: hashlib.sha256(data).digest(),
}


@functools.lru_cache(None)
def digest(algorithm, data):
    return DIGESTS[algorithm](data)


def text_of(algorithm, data):
    return base64.b64encode(digest(algorithm, data)).decode()


def sum_of(algorithm, kind, parts):
    """Of the object that has these parts."""
    if kind == "FULL_OBJECT":
        return text_of(algorithm, b"".join(parts))
    joined = b"".join(digest(algorithm, p) for p in parts)
    return f"{base64.b64encode(DIGESTS[algorithm](joined)).decode()}-{len(parts)}"


# --- calls ----------------------------------------------------------------------------------------

def header_of(algorithm):
    return f"x-amz-checksum-{algorithm.lower()}"


def begin(client, path, algorithm, kind=None):
    headers = {"x-amz-checksum-algorithm": algorithm}
    if kind is not None:
        headers["x-amz-checksum-type"] = kind
    reply = client.call("POST", path, b"", [("uploads", "")], headers)
    upload, = texts(reply, "InitiateMultipartUploadResult", "UploadId")
    equal(reply.headers["x-amz-checksum-algorithm"], algorithm, "algorithm of the upload")
    kind = kind or ("FULL_OBJECT" if algorithm == "CRC64NVME" else "COMPOSITE")
    equal(reply.headers["x-amz-checksum-type"], kind, "type")
    equal(listed_kind(client, path, upload), (algorithm, kind), "list of uploads")
    return upload


def listed_kind(client, path, upload):
    """Algorithm and type of an upload, as ListMultipartUploads shows them."""
    bucket, key = path[1:].split("/", 1)
    reply = client.call("GET", f"/{bucket}", pairs=[("uploads", ""), ("prefix", key)])
    root = ElementTree.fromstring(reply.expect(200).body)
    row, = (x for x in root.iter(NAMESPACE + "Upload")
            if x.findtext(NAMESPACE + "UploadId") == upload)
    return tuple(row.findtext(f"{NAMESPACE}Checksum{name}") for name in ("Algorithm", "Type"))


def row(algorithm, number, data, wrong=False):
    value = text_of(algorithm, b"other" if wrong else data)
    return (f"<Part><PartNumber>{number}</PartNumber><ETag>{md5_of(data)}</ETag>"
            f"<Checksum{algorithm}>{value}</Checksum{algorithm}></Part>")


def complete(client, path, upload, rows, headers=None):
    body = f"<CompleteMultipartUpload>{''.join(rows)}</CompleteMultipartUpload>"
    return client.call("POST", path, body.encode(), [("uploadId", upload)], headers)


def rows_of(algorithm, parts=PARTS):
    return [row(algorithm, n, data) for n, data in enumerate(parts, 1)]


def send_all(client, path, upload, algorithm, parts=PARTS):
    """The first without a checksum, the others with theirs."""
    for number, data in enumerate(parts, 1):
        given = {header_of(algorithm): text_of(algorithm, data)} if number > 1 else {}
        reply = send(client, path, upload, number, data, given).expect(200)
        equal(reply.headers[header_of(algorithm)], text_of(algorithm, data),
              f"{algorithm} of part {number}")


def upload_of(client, path, algorithm, kind, parts=PARTS):
    upload = begin(client, path, algorithm, kind)
    send_all(client, path, upload, algorithm, parts)
    complete(client, path, upload, rows_of(algorithm, parts)).expect(200)


def attributes(client, path, headers=None):
    """The <ObjectParts> and the <Checksum> of the reply."""
    asked = {"x-amz-object-attributes": "Checksum,ObjectParts", **(headers or {})}
    reply = client.call("GET", path, pairs=[("attributes", "")], headers=asked).expect(200)
    root = ElementTree.fromstring(reply.body)
    return root.find(NAMESPACE + "ObjectParts"), root.find(NAMESPACE + "Checksum")


def fields(element, *names):
    return tuple(element.findtext(NAMESPACE + name) for name in names)


def page(client, path, algorithm, **headers):
    """Fields of the page, and (number, size, checksum) of its parts."""
    asked = {f"x-amz-{name.replace('_', '-')}": str(n) for name, n in headers.items()}
    parts, _ = attributes(client, path, asked)
    return (fields(parts, "PartsCount", "PartNumberMarker", "NextPartNumberMarker", "MaxParts",
                   "IsTruncated"),
            [fields(p, "PartNumber", "Size", "Checksum" + algorithm)
             for p in parts.findall(NAMESPACE + "Part")])


def listed(algorithm, parts, first=1):
    return [(str(n), str(len(data)), text_of(algorithm, data))
            for n, data in enumerate(parts, first)]


def shows(client, path, algorithm, kind, parts=PARTS):
    """The object has the checksums of these parts, and its own."""
    want, header = (sum_of(algorithm, kind, parts), kind), header_of(algorithm)
    for method in ("HEAD", "GET"):
        got = client.call(method, path, headers=ENABLED).expect(200)
        equal((got.headers[header], got.headers["x-amz-checksum-type"]), want, f"{method} {path}")
    equal(client.call("HEAD", path).expect(200).headers[header], None, "without the mode")
    for number, data in enumerate(parts, 1):
        pairs = [("partNumber", str(number))]
        got = client.call("HEAD", path, pairs=pairs, headers=ENABLED).expect(206)
        equal((got.headers[header], got.headers["x-amz-checksum-type"]),
              (text_of(algorithm, data), kind), f"part {number} of {path}")
        equal(client.call("HEAD", path, pairs=pairs).expect(206).headers[header], None, "no mode")
    _, checksum = attributes(client, path)
    equal(fields(checksum, "Checksum" + algorithm, "ChecksumType"), want, "GetObjectAttributes")
    equal(page(client, path, algorithm),
          ((str(len(parts)), "0", str(len(parts)), "1000", "false"), listed(algorithm, parts)),
          f"parts of {path}")


# --- tests ----------------------------------------------------------------------------------------

def lists(client, path, upload, algorithm, kind):
    """ListParts."""
    reply = client.call("GET", path, pairs=[("uploadId", upload)]).expect(200)
    root = ElementTree.fromstring(reply.body)
    equal(fields(root, "ChecksumAlgorithm", "ChecksumType"), (algorithm, kind), "ListParts")
    equal([fields(p, "PartNumber", "Size", "Checksum" + algorithm)
           for p in root.findall(NAMESPACE + "Part")], listed(algorithm, PARTS), "parts")


def test_each_kind_in_each_bucket(c):
    for bucket, props in KINDS.items():
        c.create(bucket, **props)
    for i, (algorithm, kind) in enumerate(TYPES):
        bucket = list(KINDS)[i % len(KINDS)]
        client, path = root_of(c, NODES[i % len(NODES)]), f"/{bucket}/{algorithm}-{kind} x"
        upload = begin(client, path, algorithm, kind)
        send_all(client, path, upload, algorithm)
        lists(root_of(c, NODES[(i + 1) % len(NODES)]), path, upload, algorithm, kind)
        rows, whole = rows_of(algorithm), sum_of(algorithm, kind, PARTS)
        wrong = rows[:2] + [row(algorithm, 3, PARTS[2], wrong=True)]
        refused(complete(client, path, upload, wrong), 400, "InvalidPart")
        bad = sum_of(algorithm, kind, PARTS[:2] + (b"other",))
        refused(complete(client, path, upload, rows, {header_of(algorithm): bad}), 400, "BadDigest")
        refused(complete(client, path, upload, rows, {header_of(algorithm): "bad"}), 400,
                "BadDigest")
        for given in ({header_of(algorithm): whole, "x-amz-checksum-type": kind}, {}):
            reply = complete(client, path, upload, rows, given)
            equal(texts(reply, "CompleteMultipartUploadResult", "Checksum" + algorithm,
                        "ChecksumType"), [whole, kind], "the reply, and its repetition")
        for node in NODES:
            shows(root_of(c, node), path, algorithm, kind)


def test_defaults_and_one_part(c):
    client, parts = root_of(c), (b"one part",)
    for algorithm, kind in (("CRC32", "COMPOSITE"), ("CRC64NVME", "FULL_OBJECT"),
                            ("SHA256", "COMPOSITE")):
        upload_of(client, f"/one/default-{algorithm}", algorithm, None, parts)
        shows(client, f"/one/default-{algorithm}", algorithm, kind, parts)
    upload_of(client, "/one/empty", "CRC32C", "FULL_OBJECT", (b"",))
    _, checksum = attributes(client, "/one/empty")
    equal(fields(checksum, "ChecksumCRC32C"), ("AAAAAA==",), "of no bytes")


def test_parts_that_are_not_as_they_say(c):
    for node in ("p1", "t1"):
        client, path = root_of(c, node), "/one/wrong"
        upload = begin(client, path, "CRC32C")
        refused(send(client, path, upload, 1, b"x", {"x-amz-checksum-crc32c": "AAAAAA=="}), 400,
                "BadDigest")
        refused(send(client, path, upload, 1, b"x",
                     {"x-amz-checksum-crc32": text_of("CRC32", b"x")}), 400, "InvalidRequest")
        data = b"by trailer" * 10000
        bad = [("x-amz-checksum-crc32c", "AAAAAA==")]
        refused(framed(client, path, upload, data, s3ref.UNSIGNED_TRAILER, trailers=bad), 400,
                "BadDigest")
        good = [("x-amz-checksum-crc32c", text_of("CRC32C", data))]
        reply = framed(client, path, upload, data, s3ref.UNSIGNED_TRAILER, trailers=good)
        equal(reply.expect(200).headers["x-amz-checksum-crc32c"], good[0][1], "by trailer")
        refused(complete(client, path, upload, rows_of("CRC32", (data,))), 400, "InvalidPart")
        refused(complete(client, path, upload, rows_of("CRC32C", (data,)),
                         {"x-amz-checksum-crc32c": text_of("CRC32C", data)}), 400, "BadDigest")
        complete(client, path, upload, rows_of("CRC32C", (data,))).expect(200)
        shows(client, path, "CRC32C", "COMPOSITE", (data,))


def test_a_part_that_is_sent_again(c):
    client, path = root_of(c), "/copies/again"
    upload = begin(client, path, "SHA256")
    send_all(client, path, upload, "SHA256", (b"first",))
    send_all(client, path, upload, "SHA256", (b"second",))
    refused(complete(client, path, upload, rows_of("SHA256", (b"first",))), 400, "InvalidPart")
    complete(client, path, upload, rows_of("SHA256", (b"second",))).expect(200)
    shows(client, path, "SHA256", "COMPOSITE", (b"second",))


def test_parts_from_objects(c):
    client = root_of(c)
    client.call("PUT", "/one/source", WHOLE).expect(200)
    for algorithm, kind in (("CRC64NVME", "FULL_OBJECT"), ("SHA1", "COMPOSITE")):
        path = f"/copies/from-{algorithm}"
        upload = begin(client, path, algorithm, kind)
        part = f"Checksum{algorithm}"
        got, = texts(copy(client, path, upload, 1, "/one/source", f"0-{MIN - 1}"), "CopyPartResult",
                     part)
        equal(got, text_of(algorithm, PARTS[0]), "a range")
        got, = texts(copy(client, path, upload, 2, "/one/source"), "CopyPartResult", part)
        equal(got, text_of(algorithm, WHOLE), "all of it")
        parts = (PARTS[0], WHOLE)
        complete(client, path, upload, rows_of(algorithm, parts)).expect(200)
        shows(client, path, algorithm, kind, parts)
    client.call("PUT", "/one/copied", b"", headers={"x-amz-copy-source": "/copies/from-SHA1"}
                ).expect(200)
    got = client.call("HEAD", "/one/copied", headers=ENABLED).expect(200)
    equal((got.headers["x-amz-checksum-sha1"], got.headers["x-amz-checksum-type"]),
          (text_of("SHA1", PARTS[0] + WHOLE), "FULL_OBJECT"), "a copy has no parts")


def test_pages_of_parts(c):
    client, path = root_of(c), "/one/CRC32-COMPOSITE x"
    upload_of(client, path, "CRC32", "COMPOSITE")
    rows = listed("CRC32", PARTS)
    for node in NODES:
        at = root_of(c, node)
        equal(page(at, path, "CRC32", max_parts=1), (("3", "0", "1", "1", "true"), rows[:1]), "1")
        equal(page(at, path, "CRC32", max_parts=1, part_number_marker=1),
              (("3", "1", "2", "1", "true"), rows[1:2]), "2")
        equal(page(at, path, "CRC32", max_parts=5, part_number_marker=1),
              (("3", "1", "3", "5", "false"), rows[1:]), "the rest")
        equal(page(at, path, "CRC32", part_number_marker=9999),
              (("3", "9999", "9999", "1000", "false"), []), "behind the last")
        equal(page(at, path, "CRC32", max_parts=0), (("3", "0", "0", "0", "true"), []), "of none")
        for name in ("max-parts", "part-number-marker"):
            for value in ("x", "-1", ""):
                refused(at.call("GET", path, pairs=[("attributes", "")],
                                headers={"x-amz-object-attributes": "ObjectParts",
                                         "x-amz-" + name: value}), 400, "InvalidArgument")


def test_without_an_algorithm(c):
    """As of AWS: the count of the parts, and no rows."""
    client, path = root_of(c), "/one/plain"
    reply = client.call("POST", path, b"", [("uploads", "")])
    upload, = texts(reply, "InitiateMultipartUploadResult", "UploadId")
    equal(listed_kind(client, path, upload), (None, None), "list of uploads")
    send(client, path, upload, 1, b"x", {header_of("SHA1"): text_of("SHA1", b"x")}).expect(200)
    complete(client, path, upload, rows_of("SHA1", (b"x",))).expect(200)
    parts, checksum = attributes(client, path)
    equal((fields(parts, "PartsCount", "MaxParts"), checksum), (("1", None), None), "attributes")
    client.call("PUT", path, b"whole").expect(200)
    equal(attributes(client, path), (None, None), "of an object without parts")


def test_many_parts_leave_no_room_for_their_sums(c):
    """The sizes stay, and the checksum of the object."""
    client, path = root_of(c), "/one/many"
    upload = begin(client, path, "SHA256")
    for number in range(1, 25):
        copy(client, path, upload, number, "/one/source", f"0-{MIN - 1}").expect(200)
    parts = (PARTS[0],) * 24
    complete(client, path, upload, rows_of("SHA256", parts)).expect(200)
    _, checksum = attributes(client, path)
    equal(fields(checksum, "ChecksumSHA256"), (sum_of("SHA256", "COMPOSITE", parts),), "object")
    head, rows = page(client, path, "SHA256", part_number_marker=22)
    equal((head[0], rows), ("24", [("23", str(MIN), None), ("24", str(MIN), None)]), "parts")


def test_kills_between_a_part_and_the_completion(c):
    for bucket in ("one", "copies", "slices"):
        client, path = root_of(c), f"/{bucket}/killed"
        upload = begin(client, path, "CRC32C", "FULL_OBJECT")
        send_all(client, path, upload, "CRC32C")
        at = next(t for t in c.targets() if f"/{t}/" in folder(c, upload) + "/")
        c.kill(at, "-9")
        c.start(at)
        c.wait_node(at, "active")
        lists(client, path, upload, "CRC32C", "FULL_OBJECT")
        complete(client, path, upload, rows_of("CRC32C")).expect(200)
        patient(c, "HEAD", bucket, "killed").expect(200)
        shows(client, path, "CRC32C", "FULL_OBJECT")


def damage(c, upload, size):
    """The last byte of the first part, on the disk."""
    with open(os.path.join(folder(c, upload), "body"), "r+b") as f:
        f.seek(size - 1)
        old = f.read(1)
        f.seek(size - 1)
        f.write(bytes([old[0] ^ 1]))


def test_damage_is_found(c):
    """Bytes that changed on the disk become no object.  The part is sent again."""
    client = root_of(c)
    c.create("unsummed", checksum="none")
    for bucket in ("one", "copies", "slices", "unsummed"):
        for algorithm, kind in (("CRC32", "FULL_OBJECT"), ("SHA1", "COMPOSITE")):
            path = f"/{bucket}/damaged-{algorithm}"
            upload = begin(client, path, algorithm, kind)
            send_all(client, path, upload, algorithm)
            damage(c, upload, MIN)
            rows = rows_of(algorithm)
            refused(complete(client, path, upload, rows), 400, "InvalidPart")
            refused(client.call("GET", path), 404, "NoSuchKey")
            send(client, path, upload, 1, PARTS[0]).expect(200)
            complete(client, path, upload, rows).expect(200)
            shows(client, path, algorithm, kind)
            check(client.call("GET", path).expect(200).body == WHOLE, f"bytes of {path}")


def whole(algorithm, data):
    return {header_of(algorithm): text_of(algorithm, data)}


def plain(client, path, parts):
    """An upload without an algorithm, and the rows of its completion."""
    reply = client.call("POST", path, b"", [("uploads", "")])
    upload, = texts(reply, "InitiateMultipartUploadResult", "UploadId")
    for number, data in enumerate(parts, 1):
        send(client, path, upload, number, data).expect(200)
    return upload, rows_of("CRC32", parts)


def replied(reply, algorithm):
    value, = texts(reply, "CompleteMultipartUploadResult", "Checksum" + algorithm)
    return value


def test_values_that_nobody_computed(c):
    """Replies show the checksum that the bytes have, or none."""
    client = root_of(c)
    for bucket in KINDS:
        path = f"/{bucket}/said"
        upload, rows = plain(client, path, PARTS)
        refused(complete(client, path, upload, rows, whole("CRC32", b"other")), 400, "BadDigest")
        refused(client.call("GET", path), 404, "NoSuchKey")
        for _ in range(2):
            got = replied(complete(client, path, upload, rows, whole("CRC32", WHOLE)), "CRC32")
            equal(got, text_of("CRC32", WHOLE), f"the reply in {bucket}, and its repetition")
        refused(complete(client, path, upload, rows, whole("CRC32", b"other")), 400, "BadDigest")
    upload, rows = plain(client, "/one/said", (b"x",))
    equal(replied(complete(client, "/one/said", upload, rows), "CRC32"), None, "nothing was said")
    again = complete(client, "/one/said", upload, rows, whole("CRC32", b"other"))
    equal(replied(again, "CRC32"), None, "the first completion had no value")
    upload, _ = plain(client, "/one/said", (b"x",))
    value = base64.b64encode(DIGESTS["CRC32"](digest("CRC32", b"other"))).decode() + "-1"
    got = complete(client, "/one/said", upload, [row("CRC32", 1, b"x", wrong=True)],
                   {header_of("CRC32"): value})
    equal(replied(got, "CRC32"), None, "parts without checksums make none")


def test_the_longest_list(c):
    """It has room, with the longest checksums: what is wrong is the part."""
    client, path = root_of(c), "/one/longest"
    upload = begin(client, path, "SHA256")
    send(client, path, upload, 1, PARTS[0]).expect(200)
    one, two = row("SHA256", 1, PARTS[0]), row("SHA256", 2, b"x")
    rows = [one] + [two.replace(">2<", f">{n}<") for n in range(2, 10001)]
    reply = complete(client, path, upload, rows)
    refused(reply, 400, "InvalidPart")
    check(b"part 2" in reply.body, "the first part that is not there")
    abort(client, path, upload).expect(204)


def test_moves_carry_them(c):
    client = root_of(c)
    for bucket in KINDS:
        upload_of(client, f"/{bucket}/moved", "CRC32", "COMPOSITE")
        c.object("POST", bucket, "moved", {"action": "rename", "name": "renamed"}).expect(204)
        shows(client, f"/{bucket}/renamed", "CRC32", "COMPOSITE")
    client.call("PUT", "/one/renamed", b"written again").expect(200)
    equal(attributes(client, "/one/renamed"), (None, None), "of other bytes")
    for name in ("Dfc-Part-Sums", "Dfc-Upload-Sum", "Dfc-Upload-Part-Sums"):
        c.object("PUT", "one", "mine", b"x", {name: "CRC32:AQIDBA"}).expect(200)
        equal(c.object("HEAD", "one", "mine").expect(200).headers["Dfc-Part-Sums"], None, name)
    c.object("PUT", "one", "mine", b"x", {"Dfc-Meta-Entity-Part-Sums": "x"}).expect(
        400, "invalid_argument", "own")
    c.object("PUT", "one", "mine", b"x", {"Dfc-Sum": "CRC32:AQIDBA==-1"}).expect(
        400, "invalid_argument", "Dfc-Sum")


def test_backends(c):
    """What the bucket stores has them, until it is evicted."""
    BACKEND.put("data", "seed", b"seed")
    c.create("through", backend=f"s3://data/through?endpoint={BACKEND.url}", write_policy="through")
    client, parts = root_of(c), (b"x" * 100,)
    upload_of(client, "/through/o", "SHA256", None, parts)
    shows(client, "/through/o", "SHA256", "COMPOSITE", parts)
    equal(BACKEND.meta("data", "through/o"), {"dfc-parts": "1x100"}, "at the backend")
    evict(c, "through")
    equal(client.call("HEAD", "/through/o", headers=ENABLED).expect(200)
          .headers["x-amz-checksum-sha256"], None, "from the backend")


def test_native_calls(c):
    """docs/reference/http.md"""
    path = "/v1/uploads/one/native"
    for text in ("", "CRC32", "CRC64NVME COMPOSITE", "SHA1 FULL_OBJECT", "crc32 COMPOSITE"):
        c.call("POST", path, b"", headers={"Dfc-Upload-Sums": text}).expect(
            400, "invalid_argument", "Dfc-Upload-Sums")
    upload = c.call("POST", path, b"", headers={"Dfc-Upload-Sums": "CRC32C COMPOSITE"}
                    ).expect(201).json()["upload"]
    at, value = f"{path}?upload={upload}", "CRC32C:" + text_of("CRC32C", b"x")
    for text, status in (("CRC32C:AAAAAA==", 422), ("CRC32", 400), ("x", 400)):
        c.call("PUT", at + "&part=1", b"x", headers={"Dfc-Sum": text}).expect(status)
    reply = c.call("PUT", at + "&part=1", b"x", headers={"Dfc-Sum": value}).expect(200).json()
    equal(reply["sum"], value, "of the part")
    listing = c.call("GET", at).expect(200).json()
    equal((listing["sums"], listing["parts"][0]["sum"]), ("CRC32C COMPOSITE", value), "the list")
    rows = [{"part": 1, "tag": md5_of(b"x"), "sum": "CRC32C"}]
    c.call("POST", at, rows).expect(400, "invalid_argument", "sum")
    rows[0]["sum"] = "CRC32C:AAAAAA=="
    c.call("POST", at, rows).expect(400, "invalid_part", "checksum")
    rows[0]["sum"] = value
    want = "CRC32C:" + sum_of("CRC32C", "COMPOSITE", (b"x",))
    equal(c.call("POST", at, rows).expect(200).json()["sum"], want, "of the object")
    equal(c.object("HEAD", "one", "native").expect(200).headers["Dfc-Sum"], want, "HEAD")


if __name__ == "__main__":
    use_backend_keys(ACCESS, SECRET)
    with BACKEND:
        main(GuardedCluster, targets=3)
