#!/usr/bin/env python3
"""S3's objects through proxies and targets: the same bytes and metadata as by the native API, and
nothing of a body that is not what its request says."""

import base64
import hashlib
import http.client
import os
import urllib.parse

from access_lib import GuardedCluster, make_user
from lib import Cluster, check, equal, in_parallel, main, wait_for
from s3_lib import S3, refused, root_of, s3ref, time_text

NODES = ("p1", "t1", "t2", "t3")
DATA = os.urandom(3 << 20)
ESTABLISHED = "01"  # in /proc/net/tcp


def test_bytes_written_at_any_node_are_read_at_all_others(c):
    c.create("b")
    for size in (0, 1, 100, len(DATA)):
        for node in NODES:
            root = root_of(c, node)
            put = root.call("PUT", f"/b/dir/{node}/{size}", DATA[:size]).expect(200)
            equal(put.body, b"", "body of the reply to a PUT")
            for other in NODES:
                got = root_of(c, other).call("GET", f"/b/dir/{node}/{size}").expect(200)
                equal((len(got.body), got.body == DATA[:size]), (size, True), "the bytes")
                equal(got.headers["ETag"], put.headers["ETag"], "entity tag")
    check(put.headers["ETag"].endswith('-1"') and len(put.headers["ETag"]) == 36,
          f"the tag {put.headers['ETag']}")


def test_the_native_api_has_the_same_objects(c):
    headers = {"Content-Type": "text/x", "x-amz-meta-Color": "red", "Content-Encoding": "gzip"}
    root_of(c).call("PUT", "/b/o", b"hello", headers=headers).expect(200)
    native = c.get("b", "o").expect(200)
    equal(native.body, b"hello", "bytes")
    equal(native.headers["Content-Type"], "text/x", "type")
    equal(native.headers["Dfc-Meta-Color"], "red", "metadata")
    c.put("b", "native", b"bytes", {"Dfc-Meta-Shape": "round"}).expect(200)
    got = root_of(c).call("GET", "/b/native").expect(200)
    equal((got.body, got.headers["x-amz-meta-shape"]), (b"bytes", "round"), "object and metadata")
    head = root_of(c).call("HEAD", "/b/o").expect(200)
    equal((head.headers["Content-Length"], head.headers["x-amz-meta-color"],
           head.headers["Content-Encoding"]), ("5", "red", "gzip"), "HEAD")
    check(not [h for h in head.headers if h.lower().startswith("dfc-meta")], "native metadata")


def test_odd_keys(c):
    root = root_of(c)
    for key in ("a b", "\u00e9\u2603", "a/../b", "x//y", "a+b=c&d?e#f", "dir/", "%41"):
        root.call("PUT", "/b/" + key, key.encode()).expect(200)
        equal(root.call("GET", "/b/" + key).expect(200).body, key.encode(), key)


def test_ranges(c):
    root = root_of(c)
    root.call("PUT", "/b/r", DATA[:1000]).expect(200)
    for text, status, part, shown in (("bytes=0-9", 206, DATA[:10], "bytes 0-9/1000"),
                                      ("bytes=990-", 206, DATA[990:1000], "bytes 990-999/1000"),
                                      ("bytes=-5", 206, DATA[995:1000], "bytes 995-999/1000"),
                                      ("lines=1-2", 200, DATA[:1000], None)):
        got = root.call("GET", "/b/r", headers={"Range": text}).expect(status)
        equal((got.body == part, got.headers["Content-Range"]), (True, shown), text)
    far = root.call("GET", "/b/r", headers={"Range": "bytes=1000-"})
    refused(far, 416, "InvalidRange")
    equal(far.headers["Content-Range"], "bytes */1000", "Content-Range")


def test_conditions(c):
    root = root_of(c)
    tag = root.call("PUT", "/b/c", b"one").expect(200).headers["ETag"]
    root.call("GET", "/b/c", headers={"If-Match": tag}).expect(200)
    root.call("GET", "/b/c", headers={"If-Match": tag.strip('"')}).expect(200)
    same = root.call("GET", "/b/c", headers={"If-None-Match": f'"x", {tag}'}).expect(304)
    equal((same.body, same.headers["ETag"]), (b"", tag), "304")
    reply = root.call("GET", "/b/c", headers={"If-Match": '"x"'})
    refused(reply, 412, "PreconditionFailed")
    check(b"entity tag" not in reply.body, f"the tag is not that of S3: {reply.body}")
    refused(root.call("PUT", "/b/c", b"two", headers={"If-None-Match": "*"}), 412,
            "PreconditionFailed")
    root.call("PUT", "/b/c", b"two", headers={"If-Match": tag}).expect(200)
    refused(root.call("PUT", "/b/c", b"three", headers={"If-Match": tag}), 412,
            "PreconditionFailed")
    equal(root.call("GET", "/b/c").expect(200).body, b"two", "bytes")


def test_conditions_of_an_object_that_is_not_there(c):
    c.create("copied", copies=2)
    for node in ("p1", "t1", "t2"):
        client = root_of(c, node)
        for bucket in ("b", "copied"):
            for tag in ("*", '"x"'):
                for method, body in (("PUT", b"one"), ("DELETE", None)):
                    refused(client.call(method, f"/{bucket}/no", body, headers={"If-Match": tag}),
                            404, "NoSuchKey")
            refused(client.call("GET", f"/{bucket}/no"), 404, "NoSuchKey")
            client.call("PUT", f"/{bucket}/no", b"one", headers={"If-None-Match": "*"}).expect(200)
            client.call("DELETE", f"/{bucket}/no", headers={"If-Match": "*"}).expect(204)
            refused(client.call("DELETE", f"/{bucket}/no", headers={"If-Match": "*"}), 404,
                    "NoSuchKey")


def test_headers_of_a_read_can_be_replaced(c):
    root = root_of(c)
    root.call("PUT", "/b/v", b"x", headers={"Content-Type": "text/plain"}).expect(200)
    pairs = [("response-content-type", "image/png"),
             ("response-content-disposition", "attachment; filename=a b")]
    got = root.call("GET", "/b/v", pairs=pairs).expect(200)
    equal((got.headers.get_all("Content-Type"), got.headers["Content-Disposition"]),
          (["image/png"], "attachment; filename=a b"), "headers")


def test_what_is_missing(c):
    root = root_of(c)
    for node in NODES:
        refused(root_of(c, node).call("GET", "/b/nothing"), 404, "NoSuchKey")
        refused(root_of(c, node).call("GET", "/nothing/o"), 404, "NoSuchBucket")
        root_of(c, node).call("HEAD", "/b/nothing").expect(404)
    root.call("PUT", "/b/d", b"x").expect(200)
    for _ in range(2):
        root.call("DELETE", "/b/d").expect(204)
    refused(root.call("GET", "/b/d"), 404, "NoSuchKey")


def test_rights_hold_at_the_target_too(c):
    user = make_user(c, "half", [{"rights": ["read"], "bucket": "b", "prefix": "pub/"}])
    root_of(c).call("PUT", "/b/pub/o", b"x").expect(200)
    for node in NODES:
        client = S3(c, user.access, user.secret, node)
        equal(client.call("GET", "/b/pub/o").expect(200).body, b"x", "bytes")
        equal(client.call("GET", "/b/pub/o", headers={"Range": "bytes=0-0"}).expect(206).body,
              b"x", "a range")
        refused(client.call("PUT", "/b/pub/o", b"y"), 403, "AccessDenied")
    url = root_of(c).presigned("GET", "/b/pub/o")
    equal(c.http.request("GET", url).body, b"x", "by a presigned URL")


# --- what the request says of its body -------------------------------------------------------------

def put_framed(client, key, data, payload, spoil=lambda body: body, headers=None, trailers=(),
               bucket="b"):
    """An aws-chunked PUT in chunks of 64 KiB."""
    time = time_text()
    chunks = [data[i:i + 65536] for i in range(0, len(data), 65536)]
    path = f"{client.prefix}/{bucket}/{key}"
    head = {"x-amz-decoded-content-length": str(len(data)), "Content-Encoding": "aws-chunked",
            **(headers or {})}
    if trailers:
        head["x-amz-trailer"] = ", ".join(n for n, _ in trailers)
    head = client.signed("PUT", path, [], head, payload, time)
    seed = head["Authorization"].rpartition("=")[2]
    body = s3ref.frame(chunks, payload, seed, list(trailers), time, client.region, client.secret)
    return client.c.http.request("PUT", client.url(path, []), spoil(body), head)


def test_all_kinds_of_bodies(c):
    data = DATA[:200000]
    crc = s3ref.sum_text("crc32c", data)
    for node in ("p1", "t1"):
        root = root_of(c, node)
        for payload, trailers in ((s3ref.SIGNED_CHUNKS, ()),
                                  (s3ref.SIGNED_TRAILER, [("x-amz-checksum-crc32c", crc)]),
                                  (s3ref.UNSIGNED_TRAILER, [("x-amz-checksum-crc32c", crc)])):
            for length in (0, len(data)):
                if length == 0 and trailers:
                    continue
                put_framed(root, "framed", data[:length], payload, trailers=trailers).expect(200)
                got = root.call("GET", "/b/framed").expect(200)
                check(got.body == data[:length], f"the bytes of {payload}")
                equal(got.headers["Content-Encoding"], None, "Content-Encoding")
        root.call("PUT", "/b/plain", data, payload=s3ref.UNSIGNED).expect(200)


def test_a_body_that_is_not_what_was_signed_is_not_stored(c):
    root = root_of(c)
    data = DATA[:200000]
    bad = base64.b64encode(b"\0" * 4).decode()
    md5 = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    for reply, status, code in (
            (root.call("PUT", "/b/no", data, payload=s3ref.sha(b"other")), 400,
             "XAmzContentSHA256Mismatch"),
            (root.call("PUT", "/b/no", b"", payload=s3ref.sha(b"other")), 400,
             "XAmzContentSHA256Mismatch"),
            (root.call("PUT", "/b/no", data, headers={"Content-MD5": md5}), 400, "BadDigest"),
            (root.call("PUT", "/b/no", data, headers={"Content-MD5": "x"}), 400, "InvalidDigest"),
            (root.call("PUT", "/b/no", data, headers={"x-amz-checksum-crc32c": bad}), 400,
             "BadDigest"),
            (put_framed(root, "no", data, s3ref.SIGNED_CHUNKS,
                        lambda body: body.replace(data[70000:70010], b"0123456789")), 403,
             "SignatureDoesNotMatch"),
            (put_framed(root, "no", data, s3ref.UNSIGNED_TRAILER,
                        trailers=[("x-amz-checksum-crc32c", bad)]), 400, "BadDigest"),
            (put_framed(root, "no", data, s3ref.SIGNED_CHUNKS,
                        headers={"x-amz-decoded-content-length": "199999"}), 400,
             "IncompleteBody")):
        refused(reply, status, code)
        refused(root.call("GET", "/b/no"), 404, "NoSuchKey")


def test_what_is_too_much(c):
    root = root_of(c)
    refused(root.call("PUT", "/b/m", b"x", headers={"x-amz-meta-a": "y" * 2050}), 400,
            "MetadataTooLarge")
    refused(root.call("GET", "/b/m", pairs=[("versionId", "7")]), 400, "InvalidArgument")


def test_copies_and_slices(c):
    for bucket, props in (("copies", {"copies": 2}), ("slices", {"ec": "1+1"})):
        c.create(bucket, **props)
        for node in NODES:
            root = root_of(c, node)
            root.call("PUT", f"/{bucket}/{node}", DATA).expect(200)
            check(root.call("GET", f"/{bucket}/{node}").expect(200).body == DATA, "the bytes")
            got = root.call("GET", f"/{bucket}/{node}", headers={"Range": "bytes=5-104"})
            check(got.expect(206).body == DATA[5:105], "a range")
            root.call("DELETE", f"/{bucket}/{node}").expect(204)


def test_many_at_once(c):
    def one(i):
        root = root_of(c, NODES[i % len(NODES)])
        data = DATA[i:i + 300000]
        root.call("PUT", f"/b/many/{i}", data).expect(200)
        check(root.call("GET", f"/b/many/{i}").expect(200).body == data, "the bytes")
    in_parallel(one, range(64))


def begin_put(client, path, length):
    """A PUT whose body has not come; its connection."""
    connection = http.client.HTTPConnection(*client.host().split(":"), timeout=30)
    path = client.prefix + path
    connection.putrequest("PUT", path, skip_host=True)
    head = client.signed("PUT", path, [], {"Content-Length": str(length)}, s3ref.UNSIGNED,
                         time_text())
    for name, value in head.items():
        connection.putheader(name, value)
    connection.endheaders()
    return connection


def test_a_body_that_is_cut_leaves_nothing(c):
    for length in (100, len(DATA)):
        connection = begin_put(root_of(c), "/b/cut", length)
        connection.send(DATA[:length - 1])
        connection.close()
        root_of(c).call("PUT", "/b/after", b"x").expect(200)
        refused(root_of(c).call("GET", "/b/cut"), 404, "NoSuchKey")


def test_a_refusal_comes_while_the_body_is_sent(c):
    c.create("full", quota_bytes="1MiB")
    for node in NODES:
        refused(root_of(c, node).call("PUT", "/nothing/o", DATA), 404, "NoSuchBucket")
        refused(root_of(c, node).call("GET", "/full/o"), 404, "NoSuchKey")  # it hears of the bucket
        refused(root_of(c, node).call("PUT", "/full/o", DATA), 403, "QuotaExceeded")


def test_more_requests_than_allowed_get_503(c):
    limit = {"action": "setparam", "name": "s3_forwards_max"}
    connection = begin_put(root_of(c), "/b/slow", 2)
    c.administer("PUT", "/v1/daemon", {**limit, "value": "1"}).expect(200)
    wait_for(lambda: root_of(c).call("GET", "/b/o").status == 503, "the limit to be reached")
    reply = root_of(c).call("GET", "/b/o")
    refused(reply, 503, "SlowDown")
    equal(reply.headers["Retry-After"], "1", "Retry-After")
    connection.send(b"ab")
    equal(connection.getresponse().status, 200, "status of the slow one")
    connection.close()
    c.administer("PUT", "/v1/daemon", {**limit, "value": "4096"}).expect(200)
    root_of(c).call("GET", "/b/slow").expect(200)


def key_of(c, owner):
    return next(k for k in map("k{}".format, range(100)) if c.owner("b", k) == owner)


def test_a_target_calls_nobody_for_its_own_objects(c):
    own, other = key_of(c, "t1"), key_of(c, "t2")
    limit = {"action": "setparam", "name": "s3_forwards_max"}
    client = root_of(c, "t1")
    connection = begin_put(client, "/b/" + other, 2)
    c.administer("PUT", "/v1/daemon", {**limit, "value": "1"}, "t1").expect(200)
    wait_for(lambda: client.call("GET", "/b/" + other).status == 503, "the limit to be reached")
    tag = client.call("PUT", "/b/" + own, DATA).expect(200).headers["ETag"]
    got = client.call("GET", "/b/" + own).expect(200)
    equal((got.body == DATA, got.headers["ETag"]), (True, tag), "the bytes and their tag")
    equal([h for h in got.headers if h.lower().startswith("dfc-")], ["Dfc-Node"],
          "native headers")
    put_framed(client, own, DATA, s3ref.SIGNED_CHUNKS).expect(200)
    equal(client.call("HEAD", "/b/" + own).expect(200).headers["Content-Length"],
          str(len(DATA)), "length")
    for _ in range(2):
        client.call("DELETE", "/b/" + own).expect(204)
    refused(client.call("GET", "/b/" + own), 404, "NoSuchKey")
    connection.send(b"ab")
    equal(connection.getresponse().status, 200, "status of the slow one")
    connection.close()
    c.administer("PUT", "/v1/daemon", {**limit, "value": "4096"}, "t1").expect(200)


def test_a_target_that_dies_in_a_reply_cuts_the_connection(c):
    c.create("cut")
    root = root_of(c)
    key = next(f"k{i}" for i in range(100) if c.owner("cut", f"k{i}") == "t3")
    root.call("PUT", "/cut/" + key, DATA * 8).expect(200)
    host, port = c.address("p1")
    connection = http.client.HTTPConnection(host, port, timeout=30)
    path = root.prefix + "/cut/" + key
    connection.request("GET", path, headers=root.signed("GET", path, [], {}, s3ref.EMPTY,
                                                        time_text()))
    reply = connection.getresponse()
    equal(reply.status, 200, "status")
    reply.read(1000)
    c.kill("t3", "-9")
    try:
        reply.read()
        check(False, "the reply looks complete")
    except (http.client.IncompleteRead, ConnectionError):
        pass
    connection.close()
    reply = root.call("GET", "/cut/" + key)
    refused(reply, 503, "SlowDown")
    equal(reply.headers["Retry-After"], "1", "Retry-After")
    c.start("t3")
    root.call("GET", "/cut/" + key).expect(200)


def test_what_asks_for_less_than_the_object_changes_nothing(c):
    s3 = root_of(c)
    s3.call("PUT", "/b/whole", b"one").expect(200)
    refused(s3.call("DELETE", "/b/whole", pairs=[("versionId", "other")]), 400, "InvalidArgument")
    refused(s3.call("PUT", "/b/whole", b"two", pairs=[("partNumber", "3")]), 501, "NotImplemented")
    refused(s3.call("PUT", "/b/whole", b"two", pairs=[("versionId", "other")]), 400,
            "InvalidArgument")
    for method, body in (("DELETE", None), ("PUT", b"two")):
        refused(s3.call(method, "/b/whole", body, headers={"If-Match": ""}), 412,
                "PreconditionFailed")
    equal(s3.call("GET", "/b/whole").expect(200).body, b"one", "what is there")
    s3.call("DELETE", "/b/whole", pairs=[("versionId", "null")]).expect(204)


def test_without_access_control(_):
    c = Cluster(targets=2)
    c.create("b")
    for client in (S3(c), S3(c, "ANYBODY", "anything", "t1")):
        client.call("PUT", "/b/o", b"x", payload=s3ref.sha(b"x")).expect(200)
        equal(client.call("GET", "/b/o").expect(200).body, b"x", "bytes")
    put_framed(S3(c, "ANYBODY", "anything"), "o", DATA[:100000], s3ref.SIGNED_CHUNKS).expect(200)
    check(S3(c).call("GET", "/b/o").expect(200).body == DATA[:100000], "the bytes")
    c.remove()


def ports_to(c, node):
    """→ the local ports of all connections to the node's public listener."""
    wanted = f"{urllib.parse.urlsplit(c.url(node)).port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split()[1:4] for line in list(f)[1:]]
    return {local for local, remote, state in rows
            if remote.endswith(":" + wanted) and state == ESTABLISHED}


def read_again_and_again(c, sizes):
    """By one client at the proxy → the connections from there to the target."""
    proxy = http.client.HTTPConnection(*c.address("p1"))
    ports, before = set(), ports_to(c, "t1")
    for method in ("GET", "HEAD") * 5:
        for size in sizes:
            proxy.request(method, f"/s3/b/{size}")
            reply = proxy.getresponse()
            equal(reply.status, 200, f"status of {method}")
            equal(reply.headers["Content-Length"], str(size), "length")
            check(reply.read() == (DATA[:size] if method == "GET" else b""), "the bytes")
            ports |= ports_to(c, "t1") - before
    proxy.close()
    return ports


def test_connections_to_targets_are_kept(_):
    sizes = (0, 1000, 64 << 10, 300000, len(DATA))
    for more, most in (((), 1), (("--node-arg=t1=--advertise=localhost",), 2)):
        c = Cluster(targets=1, args=more)
        c.create("b")
        for size in sizes:
            S3(c, node="t1").call("PUT", f"/b/{size}", DATA[:size]).expect(200)
        ports = read_again_and_again(c, sizes)
        check(1 <= len(ports) <= most, f"{more}: connections to the target: {ports}")
        c.remove()


if __name__ == "__main__":
    main(GuardedCluster, targets=3)
