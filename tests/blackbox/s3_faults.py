#!/usr/bin/env python3
"""S3's objects where something goes wrong: bodies that lie, cut connections, targets that die or
stand still, and disks without room; at a proxy, at the target that leads the object, and at another
target."""

import contextlib
import http.client
import os

from access_lib import GuardedCluster
from cold_lib import FakeS3, files_open
from frozen import frozen
from lib import Failed, check, equal, in_parallel, main, raw_exchange, wait_for
from s3_lib import code_of, refused, root_of, s3ref, time_text, use_backend_keys

DATA = os.urandom(3 << 20)
ACCESS, SECRET = "AKIDEXAMPLE", "secret"
BACKEND = FakeS3({ACCESS: SECRET})
BUCKETS = {"one": {}, "copies": {"copies": 2}, "slices": {"ec": "2+1"},
           "cold": {"backend": f"s3://data/pre?endpoint={BACKEND.url}", "write_policy": "through"}}
STALL = "2s"
FULL = ("--space-low=1%", "--space-high=2%", "--space-out=3%")  # of a disk that has a byte
LARGE = DATA * 16  # more than sockets and pipes hold


def key_of(c, bucket, owner):
    return next(k for k in map("k{}".format, range(200)) if c.owner(bucket, k) == owner)


def places(c, bucket):
    """→ (node that is asked, key): what it forwards as a proxy, what it leads, what it forwards."""
    key = key_of(c, bucket, "t1")
    return [("p1", key), ("t1", key), ("t2", key)]


def everywhere(c):
    return [(bucket, *place) for bucket in BUCKETS for place in places(c, bucket)]


def context(c):
    return c.http.context if c.endpoint.startswith("https:") else None


def exchange(c, node, head, body=b"", shut=False):
    """One request as it is."""
    return raw_exchange(c.address(node), head + body, shut=shut, context=context(c))


def head_of(client, path, headers, payload):
    """The head of a signed PUT; it has the headers as given, and no others."""
    time = time_text()
    path = client.prefix + path
    signed = client.signed("PUT", path, [], headers, payload, time)
    lines = [f"PUT {path} HTTP/1.1", *(f"{n}: {v}" for n, v in signed.items())]
    seed = signed["Authorization"].rpartition("=")[2]
    return "\r\n".join(lines).encode() + b"\r\n\r\n", seed, time


def framed(client, path, data, spoil=lambda chunks: chunks, **more):
    """Head and body of an aws-chunked PUT in chunks of 64 KiB, which spoil() changes."""
    headers = {"x-amz-decoded-content-length": str(len(data)), "Content-Encoding": "aws-chunked"}
    chunks = [data[i:i + 65536] for i in range(0, len(data), 65536)]
    sizes = [len(s3ref.frame([], s3ref.SIGNED_CHUNKS, "0" * 64, [], time_text(), client.region,
                             client.secret))]
    sizes += [len(f"{len(d):x}") + len(";chunk-signature=") + 64 + 4 + len(d) for d in chunks]
    length = more.get("length", sum(sizes))
    head, seed, time = head_of(client, path, {**headers, "Content-Length": str(length)},
                               s3ref.SIGNED_CHUNKS)
    body = s3ref.frame(chunks, s3ref.SIGNED_CHUNKS, seed, [], time, client.region, client.secret)
    equal(len(body), sum(sizes), "length of the body")
    parts, at = [], 0
    for size in sizes[1:] + sizes[:1]:
        parts.append(body[at:at + size])
        at += size
    return head, b"".join(spoil(parts))


def assert_absent(c, bucket, key):
    for node in ("p1", "t1", "t2"):
        refused(root_of(c, node).call("GET", f"/{bucket}/{key}"), 404, "NoSuchKey")


# --- bodies ----------------------------------------------------------------------------------------

def swapped(parts):
    return [parts[1], parts[0], *parts[2:]]


def lying(parts):
    """The second chunk says that it is longer than it is."""
    return [parts[0], b"20000" + parts[1][5:], *parts[2:]]


def shortened(parts):
    """A chunk is missing, and its place is filled up behind the last one."""
    return [parts[0], *parts[2:], b"\0" * len(parts[1])]


def test_chunks_that_are_not_what_they_say(c):
    for bucket, node, key in everywhere(c):
        for spoil, codes in ((swapped, ("SignatureDoesNotMatch",)),
                             (lying, ("SignatureDoesNotMatch", "InvalidRequest",
                                      "IncompleteBody")),
                             (shortened, ("SignatureDoesNotMatch",))):
            client = root_of(c, node)
            reply = exchange(c, node, *framed(client, f"/{bucket}/{key}", DATA[:200000], spoil))
            check(reply is not None and reply.status in (400, 403), f"{spoil.__name__}: {reply}")
            check(code_of(reply) in codes, f"{spoil.__name__} at {node}: {reply}")
        assert_absent(c, bucket, key)


def test_bodies_that_are_cut(c):
    for bucket, node, key in everywhere(c):
        client = root_of(c, node)
        for size in (200000, len(DATA)):
            head, body = framed(client, f"/{bucket}/{key}", DATA[:size])
            for cut in (1, 87, size // 2):
                reply = exchange(c, node, head, body[:-cut], shut=True)
                check(reply is None or reply.status in (400, 408), f"cut by {cut}: {reply}")
        assert_absent(c, bucket, key)


def test_two_lengths(c):
    for node, key in places(c, "one"):
        head, body = framed(root_of(c, node), f"/one/{key}", DATA[:100000])
        twice = head.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n")
        equal(exchange(c, node, twice, body).status, 400, "status of two lengths")
        chunked = head.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
        equal(exchange(c, node, chunked, body).status, 400, "status of a length beside chunks")
        short = framed(root_of(c, node), f"/one/{key}", DATA[:100000], length=5000)
        equal(exchange(c, node, *short).status, 400, "status of a length that is too small")
        assert_absent(c, "one", key)


# --- targets ---------------------------------------------------------------------------------------

@contextlib.contextmanager
def killed(c, node):
    c.kill(node, "-9")
    try:
        yield
    finally:
        c.start(node)
        c.wait_node(node, "active")


def begin(c, client, method, path, headers=None):
    """A request whose body, or reply, is on its way."""
    connection = (http.client.HTTPSConnection(*c.address(client.node), timeout=60,
                                              context=context(c))
                  if context(c) else http.client.HTTPConnection(*c.address(client.node),
                                                                timeout=60))
    path = client.prefix + path
    connection.putrequest(method, path, skip_host=True)
    for name, value in client.signed(method, path, [], headers or {}, s3ref.UNSIGNED,
                                     time_text()).items():
        connection.putheader(name, value)
    connection.endheaders()
    return connection


def at(c, node):
    client = root_of(c, node)
    client.node = node
    return client


def test_a_target_that_dies_or_stands_still_in_a_get_cuts_it(c):
    key = key_of(c, "one", "t3")
    root_of(c).call("PUT", "/one/" + key, LARGE).expect(200)
    for fault in (frozen, killed):
        for node in ("p1", "t1"):
            connection = begin(c, at(c, node), "GET", "/one/" + key)
            reply = connection.getresponse()
            equal(reply.status, 200, "status")
            equal(reply.read(1000), LARGE[:1000], "the first bytes")
            with fault(c, "t3"):
                try:
                    reply.read()
                    raise Failed(f"{fault.__name__}: the reply looks complete")
                except (http.client.IncompleteRead, ConnectionError):
                    pass
            connection.close()
    wait_for(lambda: root_of(c).call("GET", "/one/" + key).status == 200, "the object is back")
    check(root_of(c, "t1").call("GET", "/one/" + key).expect(200).body == LARGE, "the bytes")


def test_a_target_that_dies_or_stands_still_in_a_put_leaves_nothing(c):
    key = key_of(c, "one", "t3")
    root_of(c).call("PUT", "/one/" + key, b"before").expect(200)
    for fault in (frozen, killed):
        for node in ("p1", "t1"):
            connection = begin(c, at(c, node), "PUT", "/one/" + key,
                               {"Content-Length": str(len(LARGE))})
            connection.send(LARGE[:1 << 20])
            with fault(c, "t3"):
                with contextlib.suppress(ConnectionError):
                    connection.send(LARGE[1 << 20:])
                with contextlib.suppress(ConnectionError, http.client.BadStatusLine):
                    reply = connection.getresponse()
                    equal(reply.status, 503, "status")
                    check(b"<Code>SlowDown</Code>" in reply.read(), "the code")
            connection.close()
    wait_for(lambda: root_of(c).call("GET", "/one/" + key).status == 200, "the object is back")
    equal(root_of(c).call("GET", "/one/" + key).expect(200).body, b"before", "the bytes")


def test_a_client_that_leaves_ends_the_transfer(c):
    key = key_of(c, "one", "t3")
    root_of(c).call("PUT", "/one/" + key, LARGE).expect(200)
    open_before = files_open(c, "p1")

    def one(_):
        client = at(c, "p1")
        connection = begin(c, client, "GET", "/one/" + key)
        equal(connection.getresponse().read(100), LARGE[:100], "the first bytes")
        connection.close()
    in_parallel(one, range(32))
    wait_for(lambda: files_open(c, "p1") <= open_before + 16, "descriptors to be closed")


# --- room ------------------------------------------------------------------------------------------

def test_a_full_disk(c):
    fs = os.statvfs(c.dir)
    check(fs.f_bavail < 0.96 * fs.f_blocks, "the disk of the temporary directory is empty")
    c.restart("t1", *(f"--arg={a}" for a in FULL))
    for node, key in places(c, "one"):
        for size in (100, len(DATA)):
            refused(root_of(c, node).call("PUT", "/one/" + key, DATA[:size]), 507,
                    "InsufficientCapacity")
        refused(root_of(c, node).call("GET", "/one/" + key), 404, "NoSuchKey")
    c.restart("t1")
    root_of(c).call("PUT", "/one/" + key, DATA).expect(200)


class FaultyCluster(GuardedCluster):
    def __init__(self, **shape):
        super().__init__(**shape)
        for bucket, props in BUCKETS.items():
            self.create(bucket, **props)


if __name__ == "__main__":
    use_backend_keys(ACCESS, SECRET)
    with BACKEND:
        BACKEND.put("data", "pre/first", b"x")
        main(FaultyCluster, targets=3,
             args=[f"--{kind}-arg=--stall-timeout={STALL}" for kind in ("proxy", "target")])
