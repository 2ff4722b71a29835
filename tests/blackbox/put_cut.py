#!/usr/bin/env python3
"""PUTs that do not end well, and PUTs in pieces: chunked, Expect: 100-continue, slow, racing."""

import os
import socket

from lib import WAIT_SECONDS, check, equal, in_parallel, main, wait_for


def owner_address(c, name):
    return c.address(c.owner("b", name))


def request_head(name, *headers):
    lines = [f"PUT /v1/objects/b/{name} HTTP/1.1", "Host: localhost", *headers, "", ""]
    return "\r\n".join(lines).encode()


def temporary_files(c):
    found = []
    for target in c.targets():
        for mountpath in (d for d in os.listdir(c.node_dir(target)) if d.startswith("mp")):
            tmp = os.path.join(c.node_dir(target), mountpath, ".dfc", "tmp")
            found += [os.path.join(tmp, name) for name in os.listdir(tmp)]
    return found


def cut_put(c, name, announced, sent):
    with socket.create_connection(owner_address(c, name), timeout=WAIT_SECONDS) as s:
        s.sendall(request_head(name, f"Content-Length: {announced}"))
        s.sendall(b"x" * sent)


def test_a_cut_put_leaves_nothing(c):
    c.create("b")
    c.put("b", "old", b"old")
    for name, announced, sent in (("new1", 100, 50), ("new2", 10 << 20, 3 << 20), ("new3", 5, 0),
                                  ("old", 4 << 20, 1 << 20)):
        cut_put(c, name, announced, sent)
    wait_for(lambda: not temporary_files(c), "temporary files of cut PUTs are removed")
    equal(c.names("b"), ["old"], "names")
    equal(c.get("b", "old").expect(200).body, b"old", "the object that was not overwritten")
    for name in ("new1", "new2", "new3"):
        c.get("b", name).expect(404, "object_not_found")


def test_a_cut_put_through_the_proxy_leaves_nothing(c):
    with socket.create_connection(c.address("p1"), timeout=WAIT_SECONDS) as s:
        s.sendall(request_head("viaproxy", "Content-Length: 3000000", "Dfc-Redirect: never"))
        s.sendall(b"x" * 1500000)
    wait_for(lambda: not temporary_files(c), "temporary files are removed")
    c.get("b", "viaproxy").expect(404, "object_not_found")


def test_a_cut_chunked_put_leaves_nothing(c):
    with socket.create_connection(owner_address(c, "chunked"), timeout=WAIT_SECONDS) as s:
        s.sendall(request_head("chunked", "Transfer-Encoding: chunked") + b"5\r\nhello\r\n")
    wait_for(lambda: not temporary_files(c), "temporary files are removed")
    c.get("b", "chunked").expect(404, "object_not_found")


def test_chunked(c):
    pieces = [b"a" * 10, b"b" * 70000, b"c"]
    # http.client sends what has no length in chunks.
    c.object("PUT", "b", "pieces", iter(pieces), node=c.owner("b", "pieces")).expect(200)
    equal(c.get("b", "pieces").expect(200).body, b"".join(pieces), "contents")


def read_head(s):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        piece = s.recv(1)
        if not piece:
            return head
        head += piece
    return head


def test_expect_continue(c):
    with socket.create_connection(owner_address(c, "expected"), timeout=WAIT_SECONDS) as s:
        s.sendall(request_head("expected", "Content-Length: 5", "Expect: 100-continue"))
        check(read_head(s).startswith(b"HTTP/1.1 100"), "no 100 Continue")
        s.sendall(b"hello")
        check(read_head(s).startswith(b"HTTP/1.1 200"), "no 200 after the body")
    equal(c.get("b", "expected").expect(200).body, b"hello", "contents")


def test_expect_continue_is_refused_before_the_body(c):
    """At the proxy the answer is where to go; at a target, that there is no such bucket."""
    for address, path, status in ((c.address("p1"), "b/x", b"307"),
                                  (c.address("t1"), "nobucket/x", b"404")):
        with socket.create_connection(address, timeout=WAIT_SECONDS) as s:
            s.sendall(
                f"PUT /v1/objects/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                "100000000\r\n"
                "Expect: 100-continue\r\n\r\n".encode())
            head = read_head(s)
            check(head.startswith(b"HTTP/1.1 " + status), f"wanted {status}, got {head!r}")


def test_a_slow_put_hinders_nobody(c):
    with socket.create_connection(owner_address(c, "slow"), timeout=WAIT_SECONDS) as s:
        s.sendall(request_head("slow", "Content-Length: 10"))
        for i in range(10):
            s.sendall(b"%d" % i)
            c.put("b", f"meanwhile-{i}", b"y")
        check(read_head(s).startswith(b"HTTP/1.1 200"), "the slow PUT failed")
    equal(c.get("b", "slow").expect(200).body, b"0123456789", "contents")


def test_readers_see_the_old_or_the_new(c):
    """Two writers replace an object all the time; no reader sees a mixture."""
    size = 200000
    c.put("b", "race", b"\0" * size)

    def write(worker):
        for i in range(40):
            c.put("b", "race", bytes([worker * 40 + i]) * size)

    def read(_):
        for _ in range(60):
            body = c.get("b", "race").expect(200).body
            check(len(body) == size and body.count(body[:1]) == size, "an object of two versions")

    in_parallel(lambda job: job[0](job[1]), [(write, 1),
                                             (write, 2)] + [(read, i) for i in range(4)])
    read(None)


def test_many_writers_of_one_name_agree_in_the_end(c):
    bodies = [b"%d" % i * 1000 for i in range(40)]
    in_parallel(lambda body: c.put("b", "contended", body), bodies)
    check(c.get("b", "contended").expect(200).body in bodies, "the last version is nobody's")


if __name__ == "__main__":
    main(targets=2)
