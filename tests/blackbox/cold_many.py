#!/usr/bin/env python3
"""64 clients and a backend: one request for what they all want, and one for each object; and of the
end of a huge
object no more than that end.

What the first byte takes beside the backend's own is printed, not asserted.  DFC_COLD_MIB (64; 16
under sanitizers) is the size of the one object."""

import http.client
import os
import random
import socket
import threading
import time
import urllib.parse

from cold_lib import QUICK, FakeS3, Noughts, metric
from lib import SANITIZED, check, equal, escape, in_parallel, main, wait_for

S3 = FakeS3()
RANDOM = random.Random(64)
CLIENTS = 64
MIB = 1 << 20
SIZE = int(os.environ.get("DFC_COLD_MIB", 16 if SANITIZED else 64)) * MIB
PATTERN = RANDOM.randbytes(MIB + 1)  # no two MiB are the same
BIG = (PATTERN * (SIZE // MIB))[:SIZE]
NAMES = [f"o/{i:04d}" for i in range(1000)]


def test_buckets(c):
    S3.put("data", "seed", b"seed")
    c.create("s3", backend=f"s3://data?endpoint={S3.url}&auth=none")
    c.get("s3", "seed").expect(200)  # by the proxy: from here on the target knows the bucket


def ask(url, path):
    """A connection with the request sent."""
    parts = urllib.parse.urlsplit(url)
    s = socket.create_connection((parts.hostname, parts.port), timeout=600)
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
    return s


def read_reply(s):
    response = http.client.HTTPResponse(s, method="GET")
    response.begin()
    equal(response.status, 200, "status")
    return response


def is_right(s):
    response, at = read_reply(s), 0
    while piece := response.read(MIB):
        if piece != BIG[at:at + len(piece)]:
            return False
        at += len(piece)
    s.close()
    return at == SIZE


def test_one_object(c):
    """They ask while the backend has said no more than the head; all of them get all of it."""
    S3.put("data", "wanted", BIG)
    go = threading.Event()
    S3.fail("wanted", hold=go, held_bytes=MIB)
    before, fetched = metric(c, 'dfc_http_connections{listener="public"}'), metric(
        c, "dfc_cold_fetch_bytes_total")
    clients = [ask(c.url("t1"), "/v1/objects/s3/wanted") for _ in range(CLIENTS)]
    wait_for(lambda: metric(c, 'dfc_http_connections{listener="public"}') >= before + CLIENTS,
             "all are there")
    got = []
    threads = [threading.Thread(target=lambda s=s: got.append(is_right(s))) for s in clients]
    for thread in threads:
        thread.start()
    go.set()
    for thread in threads:
        thread.join()
    equal(got, [True] * CLIENTS, "who got it whole and right")
    equal(S3.count("wanted"), 1, "requests to the backend")
    equal(metric(c, "dfc_cold_fetch_bytes_total") - fetched, SIZE, "bytes that were fetched")


def body_of(name):
    return name.encode() * (1 + int(name[2:]) * 3)


def test_many_objects(c):
    for name in NAMES:
        S3.put("data", name, body_of(name))
    before = metric(c, "dfc_backend_requests_total")
    asked = NAMES * 8
    RANDOM.shuffle(asked)
    in_parallel(lambda n: check(c.get("s3", n, node="t1").expect(200).body == body_of(n), n), asked,
                CLIENTS)
    equal(metric(c, "dfc_backend_requests_total") - before, len(NAMES), "requests to the backend")
    equal({S3.count(n) for n in NAMES}, {1}, "requests for each")


def first_byte_ms(url, path):
    begun = time.monotonic()
    s = ask(url, path)
    response = read_reply(s)
    response.read(1)
    took = time.monotonic() - begun
    while response.read(MIB):
        pass
    s.close()
    return took * 1000


def test_first_bytes(c):
    """Side by side, and the middle of some."""
    straight, cold = [], []
    for i in range(15):
        S3.put("data", f"first/{i}", BIG[:MIB])
        cold.append(first_byte_ms(c.url("t1"), "/v1/objects/s3/" + escape(f"first/{i}")))
        straight.append(first_byte_ms(S3.url, f"/data/first/{i}"))
    own, ours = sorted(straight)[7], sorted(cold)[7]
    print(
        f"        first byte: the backend's own {own:.2f} ms, a cold one here {ours:.2f} ms "
        f"({ours / own:.2f}x)"
    )


def test_the_end_of_a_huge_object(c):
    """1 MiB of 4 GiB: that is asked for, once, and nothing else."""
    size = 4 << 30
    S3.store("data", "huge", Noughts(size), None, etag='"huge-1"')
    fetched = metric(c, "dfc_cold_fetch_bytes_total")
    wanted = f"bytes={size - MIB}-{size - 1}"
    reply = c.get("s3", "huge", {"Range": wanted}, node="t1").expect(206)
    equal(reply.body, bytes(MIB), "bytes")
    equal(reply.headers["Content-Range"], f"bytes {size - MIB}-{size - 1}/{size}", "Content-Range")
    equal([h.get("range") for h in S3.headers_of("huge")], [wanted],
          "what the backend was asked for")
    equal(metric(c, "dfc_cold_fetch_bytes_total"), fetched, "bytes that were fetched to be kept")


def test_an_overloaded_backend_is_asked_less(c):
    """After 503 upon 503 one at a time goes there, until it answers again."""
    for i in range(3):
        S3.put("data", f"busy/{i}", b"busy")
        S3.fail(f"busy/{i}", status=503, times=3)
        c.get("s3", f"busy/{i}").expect(503, "backend_unavailable")
    go, got, names = threading.Event(), [], [f"then/{i}" for i in range(6)]
    for name in names:
        S3.put("data", name, name.encode())
        S3.fail(name, stall=go)
    threads = [
        threading.Thread(target=lambda n=n: got.append(c.get("s3", n).status)) for n in names
    ]
    for thread in threads:
        thread.start()
    wait_for(
        lambda: metric(c, "dfc_backend_waiting") == len(names) - 1 and sum(map(S3.count, names)) ==
        1, "one is asked for, and the others wait")
    go.set()
    for thread in threads:
        thread.join()
    equal(got, [200] * len(names), "what they got")
    equal(metric(c, "dfc_backend_waiting"), 0, "requests that wait in the end")


if __name__ == "__main__":
    with S3:
        main(targets=1, args=QUICK)
