#!/usr/bin/env python3
"""S3's uploads in parts at a proxy, at the upload's target and at other targets: the object has the
bytes and headers that were sent, and nothing of a part or a completion that is wrong."""

import base64
import hashlib
import http.client
import os
import socket
import tempfile
import xml.etree.ElementTree as ElementTree

from access_lib import GuardedCluster, make_user
from frozen import frozen
from lib import Cluster, check, equal, in_parallel, main, wait_for
from s3_lib import NAMESPACE, S3, refused, root_of, s3ref, time_text

NODES = ("p1", "t1", "t2", "t3")
MIN = 5 << 20  # bytes of each part but the last
DATA = os.urandom(2 * MIN + 1000)
DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'
PARTS = (DATA[:MIN], DATA[MIN:2 * MIN], DATA[2 * MIN:])
KEPT = {"Content-Type": "text/x", "Content-Encoding": "gzip", "Cache-Control": "max-age=60",
        "x-amz-meta-color": "red"}


def md5_of(data):
    return hashlib.md5(data).hexdigest()


def tag_of(parts):
    """The entity tag of an object that has these parts."""
    return f'"{hashlib.md5(b"".join(hashlib.md5(p).digest() for p in parts)).hexdigest()}-{len(parts)}"'


def texts(reply, root, *names):
    document = ElementTree.fromstring(reply.expect(200).body)
    equal(document.tag, NAMESPACE + root, "root of the reply")
    return [document.findtext(NAMESPACE + name) for name in names]


def begin(client, path, headers=None):
    reply = client.call("POST", path, b"", [("uploads", "")], headers)
    bucket, key, upload = texts(reply, "InitiateMultipartUploadResult", "Bucket", "Key", "UploadId")
    equal(f"/{bucket}/{key}", path, "bucket and key")
    return upload


def send(client, path, upload, number, data, headers=None, **more):
    return client.call("PUT", path, data, [("uploadId", upload), ("partNumber", str(number))],
                       headers, **more)


def document_of(parts):
    """`parts`: (number, entity tag) in their order."""
    rows = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{tag}</ETag></Part>"
                   for n, tag in parts)
    return f"<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>".encode()


def complete(client, path, upload, parts, headers=None):
    return client.call("POST", path, document_of(parts), [("uploadId", upload)], headers)


def abort(client, path, upload):
    return client.call("DELETE", path, pairs=[("uploadId", upload)])


def upload_of(client, path, parts=PARTS, headers=None):
    """A whole upload; the entity tag that its completion says."""
    upload = begin(client, path, headers)
    rows = [(n, send(client, path, upload, n, p).expect(200).headers["ETag"])
            for n, p in enumerate(parts, 1)]
    tag, = texts(complete(client, path, upload, rows), "CompleteMultipartUploadResult", "ETag")
    return tag


def test_each_node_takes_each_step(c):
    c.create("b")
    for i, node in enumerate(NODES):
        path = f"/b/dir/{node} x"
        upload = begin(root_of(c, node), path, KEPT)
        tags = {}
        for number in (2, 3, 1):
            client = root_of(c, NODES[(i + number) % len(NODES)])
            data = PARTS[number - 1]
            tags[number] = send(client, path, upload, number, data).expect(200).headers["ETag"]
            equal(tags[number], f'"{md5_of(data)}"', "entity tag of a part")
        refused(root_of(c).call("GET", path), 404, "NoSuchKey")
        client = root_of(c, NODES[(i + 1) % len(NODES)])
        reply = complete(client, path, upload, sorted(tags.items()))
        bucket, key, tag = texts(reply, "CompleteMultipartUploadResult", "Bucket", "Key", "ETag")
        equal((f"/{bucket}/{key}", tag), (path, tag_of(PARTS)), "reply to the completion")
        for other in NODES:
            shown(c, other, path, tag)
        again = complete(client, path, upload, sorted(tags.items()))
        equal(texts(again, "CompleteMultipartUploadResult", "ETag"), [tag], "the repetition")


def shown(c, node, path, tag):
    got = root_of(c, node).call("GET", path).expect(200)
    check(got.body == DATA, "the bytes")
    equal(got.headers["ETag"], tag, "entity tag of GET")
    head = root_of(c, node).call("HEAD", path).expect(200)
    equal({n: head.headers[n] for n in ("ETag", *KEPT)}, {"ETag": tag, **KEPT}, "HEAD")


def test_lists_show_the_tag(c):
    reply = root_of(c).call("GET", "/b").expect(200)
    root = ElementTree.fromstring(reply.body)
    equal([(e.findtext(NAMESPACE + "ETag"), e.findtext(NAMESPACE + "Size"))
           for e in root.findall(NAMESPACE + "Contents")],
          [(tag_of(PARTS), str(len(DATA)))] * len(NODES), "tags and sizes in a list")


def test_conditions_know_the_tag(c):
    client = root_of(c)
    for parts in ((b"one part",), PARTS):
        tag = upload_of(client, "/b/c", parts)
        equal(tag, tag_of(parts), "the tag")
        client.call("GET", "/b/c", headers={"If-Match": tag}).expect(200)
        client.call("GET", "/b/c", headers={"If-None-Match": tag}).expect(304)
        refused(client.call("PUT", "/b/c", b"x", headers={"If-Match": tag.replace("-", "0-")}),
                412, "PreconditionFailed")
        client.call("PUT", "/b/c", b"x", headers={"If-Match": tag}).expect(200)
        refused(client.call("GET", "/b/c", headers={"If-Match": tag}), 412, "PreconditionFailed")


def test_conditions_of_a_completion(c):
    client = root_of(c, "t1")
    upload = begin(client, "/b/c")
    rows = [(1, send(client, "/b/c", upload, 1, b"new").expect(200).headers["ETag"])]
    refused(complete(client, "/b/c", upload, rows, {"If-None-Match": "*"}), 412,
            "PreconditionFailed")
    refused(complete(client, "/b/c", upload, rows, {"If-Match": '"x"'}), 412, "PreconditionFailed")
    missing = begin(client, "/b/absent")
    same = [(1, send(client, "/b/absent", missing, 1, b"new").expect(200).headers["ETag"])]
    for tag in ("*", '"x"'):
        refused(complete(client, "/b/absent", missing, same, {"If-Match": tag}), 404, "NoSuchKey")
    complete(client, "/b/absent", missing, same, {"If-None-Match": "*"}).expect(200)
    tag = client.call("HEAD", "/b/c").expect(200).headers["ETag"]
    complete(client, "/b/c", upload, rows, {"If-Match": tag}).expect(200)
    equal(client.call("GET", "/b/c").expect(200).body, b"new", "bytes")


def test_an_empty_part(c):
    tag = upload_of(root_of(c), "/b/empty", (b"",))
    got = root_of(c, "t2").call("GET", "/b/empty").expect(200)
    equal((got.body, got.headers["ETag"], tag), (b"", tag_of((b"",)), tag_of((b"",))), "the object")


def test_a_part_that_is_sent_again_counts(c):
    client = root_of(c)
    upload = begin(client, "/b/again")
    first = send(client, "/b/again", upload, 1, PARTS[0]).expect(200).headers["ETag"]
    last = send(client, "/b/again", upload, 7, b"end").expect(200).headers["ETag"]
    second = send(client, "/b/again", upload, 1, PARTS[1]).expect(200).headers["ETag"]
    refused(complete(client, "/b/again", upload, [(1, first), (7, last)]), 400, "InvalidPart")
    complete(client, "/b/again", upload, [(1, second), (7, last)]).expect(200)
    check(client.call("GET", "/b/again").expect(200).body == PARTS[1] + b"end", "the bytes")


def test_what_a_completion_refuses(c):
    client = root_of(c)
    upload = begin(client, "/b/no")
    tags = [send(client, "/b/no", upload, n, b"small").expect(200).headers["ETag"]
            for n in (1, 2)]
    for body, status, code in (
            (document_of([(1, tags[0]), (2, tags[1])]), 400, "EntityTooSmall"),
            (document_of([(2, tags[1]), (1, tags[0])]), 400, "InvalidPartOrder"),
            (document_of([(1, tags[0]), (1, tags[0])]), 400, "InvalidPartOrder"),
            (document_of([(3, tags[0])]), 400, "InvalidPart"),
            (document_of([(1, '"' + "0" * 32 + '"')]), 400, "InvalidPart"),
            (document_of([(1, "x")]), 400, "InvalidPart"),
            (document_of([(0, tags[0])]), 400, "InvalidPart"),
            (document_of([(10001, tags[0])]), 400, "InvalidPart"),
            (document_of([]), 400, "MalformedXML"), (b"", 400, "MalformedXML"),
            (b"<Other/>", 400, "MalformedXML")):
        for node in ("p1", "t1"):
            refused(root_of(c, node).call("POST", "/b/no", body, [("uploadId", upload)]), status,
                    code)
    refused(client.call("GET", "/b/no"), 404, "NoSuchKey")
    complete(client, "/b/no", upload, [(2, tags[1].strip('"'))]).expect(200)
    equal(client.call("GET", "/b/no").expect(200).body, b"small", "bytes")


def test_what_a_part_refuses(c):
    client = root_of(c)
    upload = begin(client, "/b/p")
    md5 = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    for number in ("0", "10001", "-1", "x", ""):
        refused(send(client, "/b/p", upload, number, b"x"), 400, "InvalidArgument")
    refused(client.call("PUT", "/b/p", b"x", [("uploadId", upload)]), 400, "InvalidArgument")
    for node in NODES:
        at = root_of(c, node)
        refused(send(at, "/b/p", upload, 1, b"x", {"Content-MD5": md5}), 400, "BadDigest")
        refused(send(at, "/b/p", upload, 1, b"x", {"Content-MD5": "x"}), 400, "InvalidDigest")
        refused(send(at, "/b/p", upload, 1, b"x", payload=s3ref.sha(b"y")), 400,
                "XAmzContentSHA256Mismatch")
        refused(send(at, "/b/p", upload, 1, PARTS[0], {"x-amz-checksum-crc32": "AAAAAA=="}), 400,
                "BadDigest")
    equal(parts_of(client, "/b/p", upload), ([], "false", None), "parts of the upload")
    abort(client, "/b/p", upload).expect(204)


def test_an_upload_that_is_not_there(c):
    gone = begin(root_of(c), "/b/gone")
    abort(root_of(c, "t2"), "/b/gone", gone).expect(204)
    for node in NODES:
        client = root_of(c, node)
        for upload in (gone, "x", "A" * 38, ""):
            for reply in (send(client, "/b/gone", upload, 1, b"x"), abort(client, "/b/gone", upload),
                          complete(client, "/b/gone", upload, [(1, md5_of(b"x"))]),
                          client.call("GET", "/b/gone", pairs=[("uploadId", upload)])):
                refused(reply, 404, "NoSuchUpload")
        other = begin(client, "/b/other")
        refused(send(client, "/b/gone", other, 1, b"x"), 404, "NoSuchUpload")
        refused(client.call("POST", "/none/o", b"", [("uploads", "")]), 404, "NoSuchBucket")
        abort(client, "/b/other", other).expect(204)


# --- bodies ---------------------------------------------------------------------------------------

def framed(client, path, upload, data, payload, spoil=lambda body: body, trailers=()):
    """Part 1 as an aws-chunked body in chunks of 64 KiB."""
    time, path = time_text(), client.prefix + path
    pairs = [("partNumber", "1"), ("uploadId", upload)]
    chunks = [data[i:i + 65536] for i in range(0, len(data), 65536)]
    head = {"x-amz-decoded-content-length": str(len(data)), "Content-Encoding": "aws-chunked"}
    if trailers:
        head["x-amz-trailer"] = ", ".join(n for n, _ in trailers)
    head = client.signed("PUT", path, pairs, head, payload, time)
    seed = head["Authorization"].rpartition("=")[2]
    body = s3ref.frame(chunks, payload, seed, list(trailers), time, client.region, client.secret)
    return client.c.http.request("PUT", client.url(path, pairs), spoil(body), head)


def test_chunked_parts(c):
    data = PARTS[0][:300000]
    good = [("x-amz-checksum-crc32c", s3ref.sum_text("crc32c", data))]
    bad = [("x-amz-checksum-crc32c", "AAAAAA==")]
    for node in NODES:
        client = root_of(c, node)
        upload = begin(client, "/b/framed")
        refused(framed(client, "/b/framed", upload, data, s3ref.SIGNED_CHUNKS,
                       lambda body: body.replace(data[70000:70010], b"0123456789")), 403,
                "SignatureDoesNotMatch")
        refused(framed(client, "/b/framed", upload, data, s3ref.UNSIGNED_TRAILER, trailers=bad),
                400, "BadDigest")
        equal(parts_of(client, "/b/framed", upload)[0], [], "parts of the upload")
        for payload, trailers in ((s3ref.SIGNED_CHUNKS, ()), (s3ref.SIGNED_TRAILER, good),
                                  (s3ref.UNSIGNED_TRAILER, good)):
            reply = framed(client, "/b/framed", upload, data, payload, trailers=trailers)
            equal(reply.expect(200).headers["ETag"], f'"{md5_of(data)}"', "entity tag")
            equal(reply.headers["x-amz-checksum-crc32c"], good[0][1] if trailers else None,
                  "checksum in the reply")
        complete(client, "/b/framed", upload, [(1, md5_of(data))]).expect(200)
        check(client.call("GET", "/b/framed").expect(200).body == data, "the bytes")


def test_a_part_that_is_cut_is_none(c):
    for node in NODES:
        client = root_of(c, node)
        upload = begin(client, "/b/cut")
        path, pairs = client.prefix + "/b/cut", [("partNumber", "1"), ("uploadId", upload)]
        head = client.signed("PUT", path, pairs, {"Content-Length": str(MIN)}, s3ref.UNSIGNED,
                             time_text())
        connection = http.client.HTTPConnection(*client.host().split(":"), timeout=30)
        connection.putrequest("PUT", path + "?" + s3ref.canonical_query(pairs), skip_host=True)
        for name, value in head.items():
            connection.putheader(name, value)
        connection.endheaders()
        connection.send(PARTS[0][:-1])
        connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
        send(client, "/b/cut", upload, 2, b"x").expect(200)
        equal([row[0] for row in parts_of(client, "/b/cut", upload)[0]], ["2"], "parts")
        abort(client, "/b/cut", upload).expect(204)


# --- checksums ------------------------------------------------------------------------------------

def kind_of(algorithm, kind):
    return {"x-amz-checksum-algorithm": algorithm, "x-amz-checksum-type": kind}


def test_a_checksum_of_the_whole_object(c):
    client = root_of(c)
    crc = s3ref.sum_text("crc32", DATA)
    for node in ("p1", "t1"):
        at, path = root_of(c, node), f"/b/sum-{node}"
        begun = at.call("POST", path, b"", [("uploads", "")], kind_of("CRC32", "FULL_OBJECT"))
        upload, = texts(begun, "InitiateMultipartUploadResult", "UploadId")
        equal((begun.headers["x-amz-checksum-algorithm"], begun.headers["x-amz-checksum-type"]),
              ("CRC32", "FULL_OBJECT"), "headers of the reply")
        rows = [(n, send(at, path, upload, n, p).expect(200).headers["ETag"])
                for n, p in enumerate(PARTS, 1)]
        refused(complete(at, path, upload, rows, {"x-amz-checksum-crc32": "AAAAAA=="}), 400,
                "BadDigest")
        refused(client.call("GET", path), 404, "NoSuchKey")
        reply = complete(at, path, upload, rows, {"x-amz-checksum-crc32": crc})
        equal(texts(reply, "CompleteMultipartUploadResult", "ChecksumCRC32", "ChecksumType"),
              [crc, "FULL_OBJECT"], "checksum in the reply")
        head = client.call("HEAD", path, headers={"x-amz-checksum-mode": "ENABLED"}).expect(200)
        equal((head.headers["x-amz-checksum-crc32"], head.headers["x-amz-checksum-type"]),
              (crc, "FULL_OBJECT"), "checksum of HEAD")


def test_kinds_of_checksums(c):
    client = root_of(c)
    for algorithm, kind in (("MD5", "FULL_OBJECT"), ("SHA256", "FULL_OBJECT"),
                            ("CRC64NVME", "COMPOSITE"), ("CRC32", "OTHER")):
        refused(client.call("POST", "/b/k", b"", [("uploads", "")], kind_of(algorithm, kind)), 400,
                "InvalidRequest")
    upload = begin(client, "/b/k", {"x-amz-checksum-algorithm": "CRC32"})
    rows = [(1, send(client, "/b/k", upload, 1, b"x").expect(200).headers["ETag"])]
    refused(complete(client, "/b/k", upload, rows, {"x-amz-checksum-crc32": "AAAAAA==-1"}), 400,
            "InvalidRequest")
    abort(client, "/b/k", upload).expect(204)


# --- parts from objects ---------------------------------------------------------------------------

def copy(client, path, upload, number, source, part_range=None):
    headers = {"x-amz-copy-source": source}
    if part_range is not None:
        headers["x-amz-copy-source-range"] = f"bytes={part_range}"
    return send(client, path, upload, number, b"", headers)


def test_parts_from_an_object(c):
    c.create("copies", copies=2)
    root_of(c).call("PUT", "/copies/source", DATA).expect(200)
    for node in NODES:
        client, path = root_of(c, node), "/b/from"
        upload = begin(client, path)
        reply = copy(client, path, upload, 1, "/copies/source", f"0-{MIN - 1}")
        equal(texts(reply, "CopyPartResult", "ETag"), [f'"{md5_of(PARTS[0])}"'], "the reply")
        copy(client, path, upload, 2, "copies/source").expect(200)
        for part_range, status, code in ((f"{len(DATA)}-{len(DATA) + 5}", 416, "InvalidRange"),
                                         (f"0-{len(DATA)}", 416, "InvalidRange"),
                                         ("5-4", 400, "InvalidArgument"),
                                         ("0-", 400, "InvalidArgument")):
            refused(copy(client, path, upload, 3, "/copies/source", part_range), status, code)
        refused(copy(client, path, upload, 3, "/copies/none"), 404, "NoSuchKey")
        refused(copy(client, path, upload, 3, "/none/o"), 404, "NoSuchBucket")
        refused(copy(client, path, "x", 3, "/copies/source"), 404, "NoSuchUpload")
        refused(send(client, path, upload, 3, b"",
                     {"x-amz-copy-source": "/copies/source",
                      "x-amz-copy-source-if-match": '"x"'}), 412, "PreconditionFailed")
        complete(client, path, upload, [(1, md5_of(PARTS[0])), (2, md5_of(DATA))]).expect(200)
        check(client.call("GET", path).expect(200).body == PARTS[0] + DATA, "the bytes")


# --- lists ----------------------------------------------------------------------------------------

def parts_of(client, path, upload, **pairs):
    """(number, tag, size) of each part, whether the page is cut, and the next marker."""
    reply = client.call("GET", path, pairs=[("uploadId", upload), *pairs.items()]).expect(200)
    root = ElementTree.fromstring(reply.body)
    equal((root.tag, root.findtext(NAMESPACE + "UploadId")), (NAMESPACE + "ListPartsResult", upload),
          "root and upload")
    rows = [tuple(e.findtext(NAMESPACE + n) for n in ("PartNumber", "ETag", "Size"))
            for e in root.findall(NAMESPACE + "Part")]
    return (rows, root.findtext(NAMESPACE + "IsTruncated"),
            root.findtext(NAMESPACE + "NextPartNumberMarker"))


def test_parts_are_listed_in_pages(c):
    client = root_of(c)
    upload = begin(client, "/b/list")
    rows = [(str(n), send(client, "/b/list", upload, n, b"x" * n).expect(200).headers["ETag"],
             str(n)) for n in (9, 1, 5)]
    rows.sort()
    for node in NODES:
        at = root_of(c, node)
        equal(parts_of(at, "/b/list", upload), (rows, "false", "9"), "all parts")
        equal(parts_of(at, "/b/list", upload, **{"max-parts": "2"}), (rows[:2], "true", "5"),
              "the first page")
        equal(parts_of(at, "/b/list", upload, **{"max-parts": "2", "part-number-marker": "5"}),
              (rows[2:], "false", "9"), "the second page")
        equal(parts_of(at, "/b/list", upload, **{"max-parts": "0"}), ([], "false", None), "none")
    refused(client.call("GET", "/b/list", pairs=[("uploadId", upload), ("max-parts", "x")]), 400,
            "InvalidArgument")
    abort(client, "/b/list", upload).expect(204)


def uploads_of(client, bucket, **pairs):
    """Uploads and prefixes of a page, and the markers of the next."""
    reply = client.call("GET", "/" + bucket, pairs=[("uploads", ""), *pairs.items()]).expect(200)
    root = ElementTree.fromstring(reply.body)
    equal(root.tag, NAMESPACE + "ListMultipartUploadsResult", "root")
    rows = [(e.findtext(NAMESPACE + "Key"), e.findtext(NAMESPACE + "UploadId"))
            for e in root.findall(NAMESPACE + "Upload")]
    prefixes = [e.findtext(NAMESPACE + "Prefix")
                for e in root.findall(NAMESPACE + "CommonPrefixes")]
    markers = {name: root.findtext(NAMESPACE + tag)
               for name, tag in (("key-marker", "NextKeyMarker"),
                                 ("upload-id-marker", "NextUploadIdMarker"))}
    equal(root.findtext(NAMESPACE + "IsTruncated"),
          "false" if markers["key-marker"] is None else "true", "IsTruncated")
    return rows, prefixes, markers


def all_uploads(client, bucket, **pairs):
    rows, prefixes, markers = uploads_of(client, bucket, **pairs)
    while markers["key-marker"] is not None:
        more, folded, markers = uploads_of(client, bucket, **{**pairs, **markers})
        rows, prefixes = rows + more, prefixes + folded
    return rows, prefixes


def test_uploads_are_listed_in_pages(c):
    c.create("open")
    keys = ["a", "a", "d/1", "d/2", "e/1", "e/\u00e9 x", "z"]
    begun = [(key, begin(root_of(c, NODES[i % len(NODES)]), "/open/" + key))
             for i, key in enumerate(keys)]
    equal([key for key, _ in begun], sorted(keys), "the order of the test's names")
    plain = [row for row in begun if "/" not in row[0]]
    for node in NODES:
        client = root_of(c, node)
        equal(uploads_of(client, "open")[:2], (begun, []), "all of them")
        for count in ("1", "2", "3", "1000"):
            equal(all_uploads(client, "open", **{"max-uploads": count}), (begun, []),
                  f"pages of {count}")
            equal(all_uploads(client, "open", delimiter="/", **{"max-uploads": count}),
                  (plain, ["d/", "e/"]), f"pages of {count} with a delimiter")
        equal(uploads_of(client, "open", prefix="d/")[0], begun[2:4], "with a prefix")
        equal(uploads_of(client, "open", **{"key-marker": "d/2"})[0], begun[4:], "behind a key")
        equal(uploads_of(client, "open", **{"max-uploads": "0"})[:2], ([], []), "none")
        refused(client.call("GET", "/none", pairs=[("uploads", "")]), 404, "NoSuchBucket")
    for key, upload in begun:
        abort(root_of(c), "/open/" + key, upload).expect(204)
    equal(uploads_of(root_of(c), "open")[:2], ([], []), "after the aborts")


# --- rights, and buckets of other kinds ------------------------------------------------------------

def test_rights(c):
    reader = make_user(c, "reader", [{"rights": ["read", "list"], "bucket": "b"}])
    writer = make_user(c, "writer", [{"rights": ["write"], "bucket": "b", "prefix": "w/"}])
    upload = begin(root_of(c), "/b/w/o")
    for node in NODES:
        client = S3(c, reader.access, reader.secret, node)
        for reply in (client.call("POST", "/b/w/o", b"", [("uploads", "")]),
                      send(client, "/b/w/o", upload, 1, b"x"), abort(client, "/b/w/o", upload),
                      complete(client, "/b/w/o", upload, [(1, md5_of(b"x"))]),
                      client.call("GET", "/b/w/o", pairs=[("uploadId", upload)])):
            refused(reply, 403, "AccessDenied")
        equal(uploads_of(client, "b")[0], [("w/o", upload)], "the list")
        client = S3(c, writer.access, writer.secret, node)
        upload_of(client, f"/b/w/{node}", (b"x",))
        refused(client.call("POST", "/b/o", b"", [("uploads", "")]), 403, "AccessDenied")
        refused(client.call("GET", "/b", pairs=[("uploads", "")]), 403, "AccessDenied")
        refused(copy(client, "/b/w/o", upload, 1, "/b/from"), 403, "AccessDenied")
    abort(root_of(c), "/b/w/o", upload).expect(204)


def test_buckets_of_other_kinds(c):
    c.create("slices", ec="1+1")
    c.create("md5", etag="md5")
    for bucket in ("copies", "slices", "md5"):
        for node in NODES:
            tag = upload_of(root_of(c, node), f"/{bucket}/{node}")
            equal(tag, tag_of(PARTS), f"the tag in {bucket}")
            got = root_of(c).call("GET", f"/{bucket}/{node}").expect(200)
            check(got.body == DATA, "the bytes")
            equal(got.headers["ETag"], tag, f"entity tag of GET in {bucket}")


def test_a_completion_that_takes_long(c):
    """The reply begins before the object is there; then the target ends its work, or dies."""
    path = "/b/" + next(f"s{i}" for i in range(100) if c.owner("b", f"s{i}") == "t3")
    ping = {"action": "setparam", "name": "s3_complete_ping", "value": "20ms"}
    with tempfile.TemporaryDirectory(prefix="dfc-held-") as held:
        c.stop("t3")
        c.start("t3", f"--arg=--faults=pool.job=hold:{held}")
        for node, dies in (("p1", False), ("t1", False), ("t1", True)):
            c.administer("PUT", "/v1/daemon", ping, node=node).expect(200)
            client = root_of(c, node)
            upload = begin(client, path)
            rows = [(1, send(client, path, upload, 1, b"slow").expect(200).headers["ETag"])]
            with open(held + "/assembler", "w", encoding="ascii"):
                connection, reply = begin_completion(client, path, upload, rows)
            equal((reply.status, reply.headers["Content-Type"]), (200, "application/xml"), "head")
            first = reply.read(len(DECLARATION) + 2)
            equal(first, DECLARATION + b"  ", "the first bytes")
            if dies:
                c.kill("t3", "-9")
            os.remove(held + "/assembler")
            root = ElementTree.fromstring(first + reply.read())
            connection.close()
            if not dies:
                equal(root.findtext(NAMESPACE + "ETag"), tag_of([b"slow"]), "the document")
            else:
                equal((root.tag, root.findtext("Code")), ("Error", "SlowDown"), "the error")
        c.start("t3")
    wait_for(lambda: complete(root_of(c), path, upload, rows).status == 200, "the repetition")
    equal(root_of(c).call("GET", path).expect(200).body, b"slow", "the bytes")


def test_a_completion_at_a_stopped_target(c):
    """It ends when the target has been unreachable for the stall timeout, and can be repeated."""
    path = "/b/" + next(f"q{i}" for i in range(100) if c.owner("b", f"q{i}") == "t3")
    c.restart("t1", "--arg=--stall-timeout=1s", "--arg=--s3-complete-ping=20ms")
    client = root_of(c, "t1")
    upload = begin(client, path)
    rows = [(1, send(client, path, upload, 1, b"doubt").expect(200).headers["ETag"])]
    with frozen(c, "t3"):
        connection, reply = begin_completion(client, path, upload, rows)
        root = ElementTree.fromstring(reply.read())
    connection.close()
    equal((root.tag, root.findtext("Code")), ("Error", "SlowDown"), "the error")
    check("repeat the request" in root.findtext("Message"), "what to do")
    wait_for(lambda: complete(client, path, upload, rows).status == 200, "the repetition")
    equal(client.call("GET", path).expect(200).body, b"doubt", "the bytes")
    c.restart("t1")


def begin_completion(client, path, upload, rows):
    """The connection of a completion, and its reply of which the head has come."""
    path, pairs, body = client.prefix + path, [("uploadId", upload)], document_of(rows)
    head = client.signed("POST", path, pairs, {}, s3ref.sha(body), time_text())
    connection = http.client.HTTPConnection(*client.host().split(":"), timeout=60)
    connection.request("POST", path + "?" + s3ref.canonical_query(pairs), body, head)
    return connection, connection.getresponse()


def test_many_at_once(c):
    def one(i):
        client = root_of(c, NODES[i % len(NODES)])
        upload_of(client, f"/b/many/{i}", (PARTS[i % 2], b"end"))
        check(client.call("GET", f"/b/many/{i}").expect(200).body == PARTS[i % 2] + b"end",
              "the bytes")
    in_parallel(one, range(12))


def test_without_access_control(_):
    c = Cluster(targets=2)
    c.create("b")
    upload_of(S3(c), "/b/o")
    check(S3(c).call("GET", "/b/o").expect(200).body == DATA, "the bytes")
    refused(send(S3(c), "/b/o", "x", 1, b"x"), 404, "NoSuchUpload")
    c.remove()


if __name__ == "__main__":
    main(GuardedCluster, targets=3)
