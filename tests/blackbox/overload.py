#!/usr/bin/env python3
"""Thousands of connections, readers that do not read and writers that do not write stop nobody."""

import contextlib
import resource
import socket

from lib import WAIT_SECONDS, Http, check, equal, in_parallel, main, wait_for

WANTED = 2000


def connections_possible():
    """Soft limit raised as far as it goes; some descriptors stay for everything else."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(WANTED, hard - 200)


def everybody_is_served(c, label):
    """Others' requests still do what they should; new connections each time."""
    for i in range(20):
        c.http.close()
        c.put("b", f"{label}-{i}", b"%d" % i)
        equal(c.get("b", f"{label}-{i}").expect(200).body, b"%d" % i, "contents")
    c.call("GET", "/v1/health").expect(200)


@contextlib.contextmanager
def open_connections(address, count):
    """So many connections, of which a server may have closed some."""
    with contextlib.ExitStack() as stack:
        connections = []
        for _ in range(count):
            s = stack.enter_context(socket.create_connection(address, timeout=WAIT_SECONDS))
            connections.append(s)
        yield connections


def test_idle_connections(c):
    c.create("b")
    count = connections_possible()
    check(count >= 1000, f"only {count} connections are possible here")
    with open_connections(c.address("t1"),
                          count // 2), open_connections(c.address("p1"), count // 2):
        everybody_is_served(c, "idle")


def test_unfinished_requests(c):
    """Half a request each: the server must not wait for any of them in a thread."""
    halves = (
        b"GET /v1/hea",
        b"PUT /v1/objects/b/half HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nx",
        b"PUT /v1/objects/b/half HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"5\r\nab"
    )
    with open_connections(c.address("t1"), 600) as connections:
        for i, s in enumerate(connections):
            with contextlib.suppress(ConnectionError):
                s.sendall(halves[i % len(halves)])
        everybody_is_served(c, "half")
    c.get("b", "half").expect(404, "object_not_found")


def test_slow_readers(c):
    """Each asks for 16 MiB and reads nothing."""
    c.put("b", "large", bytes(16 << 20))
    address = c.address(c.owner("b", "large"))
    with open_connections(address, 64) as connections:
        for s in connections:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(b"GET /v1/objects/b/large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        everybody_is_served(c, "slow")
        check(c.get("b", "large").expect(200).body == bytes(16 << 20), "the same object, read fast")


def test_slow_readers_through_the_proxy(c):
    with open_connections(c.address("p1"), 32) as connections:
        for s in connections:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.sendall(b"GET /v1/objects/b/large?redirect=never HTTP/1.1\r\nHost: localhost\r\n\r\n")
        everybody_is_served(c, "slowproxy")


def test_requests_on_all_connections_at_once(c):
    """2,000 clients ask at once: everybody gets the object, or a 503 that says when to come
    back."""
    c.put("b", "small", b"s" * 1000)
    request = b"GET /v1/objects/b/small HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    statuses = []
    with open_connections(c.address(c.owner("b", "small")), connections_possible()) as connections:
        for s in connections:
            with contextlib.suppress(ConnectionError):
                s.sendall(request)
        for s in connections:
            reply = b""
            with contextlib.suppress(ConnectionError):
                while piece := s.recv(65536):
                    reply += piece
            statuses.append(reply[9:12])
            if reply[9:12] == b"200":
                check(reply.endswith(b"\r\n\r\n" + b"s" * 1000), "a reply that is cut short")
    served = statuses.count(b"200")
    others = set(statuses) - {b"200", b"503", b""}
    equal(others, set(), "statuses")
    check(served >= len(statuses) / 2, f"only {served} of {len(statuses)} were served")


def test_afterwards_all_is_as_before(c):
    in_parallel(lambda i: c.get("b", "small").expect(200), range(200), workers=16)
    wait_for(lambda: Http().request("GET", c.url("t1") + "/v1/health").status == 200, "health")


if __name__ == "__main__":
    main(targets=2)
