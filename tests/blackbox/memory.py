#!/usr/bin/env python3
"""Memory seen from outside: a target that serves 256 clients of 16 MiB objects stays below 300 MiB;
one that takes 64 large uploads at once, below 512 MiB (DFC_UPLOAD_MIB=1023 makes each nearly a
gigabyte)."""

import os
import select
import socket
import threading
import urllib.parse

from lib import WAIT_SECONDS, Failed, check, equal, in_parallel, main

CLIENTS = 256
SIZE = 16 << 20
LIMIT_KIB = 300 * 1024
UPLOADS = 64
UPLOAD_MIB = int(os.environ.get("DFC_UPLOAD_MIB", 4))  # that are sent of each
LARGE_LIMIT_KIB = 512 * 1024


def peak_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        fields = dict(line.split(":", 1) for line in f)
    return int(fields["VmHWM"].split()[0])


def test_readers(c):
    c.create("b", durability="async")
    for i in range(4):
        c.put("b", f"o{i}", bytes([i]) * SIZE)
    address = c.address("t1")
    ready = threading.Barrier(CLIENTS, timeout=WAIT_SECONDS)

    def read(i):
        with socket.create_connection(address, timeout=WAIT_SECONDS) as s:
            ready.wait()
            s.sendall(
                b"GET /v1/objects/b/o%d HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" %
                (i % 4))
            total, first = 0, b""
            buffer = bytearray(1 << 20)
            while n := s.recv_into(buffer):
                first = first or bytes(buffer[:12])
                total += n
        equal(first, b"HTTP/1.1 200", "status")
        check(total > SIZE, f"only {total} bytes came")

    in_parallel(read, range(CLIENTS), workers=CLIENTS)
    peak = peak_kib(c.pid("t1"))
    check(peak < LIMIT_KIB, f"the target needed {peak} KiB")


def test_writers(c):
    """The same with PUT: all uploads are under way before the first one ends."""
    address = c.address("t1")
    half, ready = b"w" * (SIZE // 16), threading.Barrier(CLIENTS, timeout=WAIT_SECONDS)

    def write(i):
        with socket.create_connection(address, timeout=WAIT_SECONDS) as s:
            s.sendall(
                b"PUT /v1/objects/b/w%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" %
                (i, 2 * len(half)))
            s.sendall(half)
            ready.wait()
            s.sendall(half)
            equal(s.recv(12), b"HTTP/1.1 200", "status")

    in_parallel(write, range(CLIENTS), workers=CLIENTS)
    peak = peak_kib(c.pid("t1"))
    check(peak < LIMIT_KIB, f"the target needed {peak} KiB")
    equal(len(c.names("b", prefix="w")), CLIENTS, "objects")


def test_through_the_proxy(c):
    def read(i):
        body = c.get("b", f"o{i % 4}", {"Dfc-Redirect": "never"}, follow=False).expect(200).body
        check(body == bytes([i % 4]) * SIZE, "contents")

    in_parallel(read, range(32), workers=16)
    peak = peak_kib(c.pid("p1"))
    check(peak < LIMIT_KIB, f"the proxy needed {peak} KiB")


def large_uploads(c, bucket, length=None):
    """UPLOADS that do not end, all under way at once; then their clients leave.  (With a length the
    targets take the whole room from the disk at once.)"""
    piece, head = b"L" * (1 << 20), b"Content-Length: %d" % (length or 0)
    if length is None:
        piece, head = b"100000\r\n" + piece + b"\r\n", b"Transfer-Encoding: chunked"
    ready = threading.Barrier(UPLOADS, timeout=4 * WAIT_SECONDS)

    def write(i):
        # By the redirect, from which a target learns of what it has not been told yet.
        location = c.get(bucket, f"l{i}", follow=False).expect(307).headers["Location"]
        at = urllib.parse.urlsplit(location)
        with socket.create_connection((at.hostname, at.port), timeout=4 * WAIT_SECONDS) as s:
            request = f"PUT {at.path}?{at.query} HTTP/1.1\r\nHost: localhost\r\n"
            s.sendall(request.encode() + head + b"\r\n\r\n")
            for _ in range(UPLOAD_MIB):
                s.sendall(piece)
            ready.wait()
            if select.select([s], [], [], 0)[0]:
                raise Failed(f"an answer before the end of upload {i}: {s.recv(500)}")

    in_parallel(write, range(UPLOADS), workers=UPLOADS)
    equal(c.names(bucket, prefix="l"), [], "objects of uploads that were cut")
    for target in c.targets():
        peak = peak_kib(c.pid(target))
        print(f"        {bucket}: {target} needed {peak >> 10} MiB")
        check(peak < LARGE_LIMIT_KIB, f"{target} needed {peak} KiB")


def test_large_uploads(c):
    large_uploads(c, "b")


def test_large_uploads_of_several_copies(c):
    c.create("two", copies=2, durability="async")
    c.add_target()
    large_uploads(c, "two")


def test_large_uploads_in_slices(c):
    while len(c.targets()) < 3:
        c.add_target()
    c.create("sliced", ec={"data": 2, "parity": 1}, durability="async")
    large_uploads(c, "sliced", (UPLOAD_MIB + 1) << 20)


if __name__ == "__main__":
    main(targets=1)
