#!/usr/bin/env python3
"""A backend that drips takes neither all the threads nor holds those that it has: reads of another
one go
on beside it, a least rate is asked of it, and what nobody waits for any more is dropped.

A server of the test's sends so many bytes of each object as it is told, a piece at a time."""

import contextlib
import http.client
import http.server
import socket
import threading
import urllib.parse

from lib import check, equal, in_parallel, main, wait_for

PARALLEL = 4  # cold_parallel, of which one server gets half
SIZE = 1 << 20


class Dripper(http.server.ThreadingHTTPServer):
    """Bytes of one object come piece by piece, as fast as `pause` lets them, until the test ends
    it."""

    daemon_threads = True

    def __init__(self, piece, pause):
        self.piece, self.pause, self.over = piece, pause, threading.Event()
        self.lock, self.running, self.most = threading.Lock(), 0, 0
        super().__init__(("127.0.0.1", 0), Drip)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def count(self, by):
        with self.lock:
            self.running += by
            self.most = max(self.most, self.running)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05},
                         daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass


class Drip(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        self.send_response(200)
        self.send_header("Content-Length", str(SIZE))
        self.end_headers()
        server.count(1)
        try:
            with contextlib.suppress(OSError):
                self.wfile.write(b"d" * 100_000)  # more than the target holds back from its clients
                while not server.over.wait(server.pause):
                    self.wfile.write(b"d" * server.piece)
        finally:
            server.count(-1)
            self.close_connection = True


class Quick(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(b"quick")

    do_HEAD = do_GET


@contextlib.contextmanager
def healthy():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quick)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05},
                     daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def begin_get(c, bucket, name):
    """A client that asks and does not read on."""
    where = c.object("GET", bucket, name, follow=False).expect(307).headers["Location"]
    parts = urllib.parse.urlsplit(where)
    s = socket.create_connection((parts.hostname, parts.port), timeout=60)
    s.sendall(f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
    return s


def read_quickly(c, names):
    replies = in_parallel(lambda n: c.get("healthy", n, headers={"Connection": "close"}), names, 4)
    equal([r.status for r in replies], [200] * len(names), "reads of the healthy backend")


def test_a_healthy_backend_is_read_beside_one_that_drips(c):
    c.run("stop", "t1")
    c.start("t1", "--arg=--backend-min-rate=0", "--arg=--backend-left-rate=0")
    c.wait_node("t1", "active")
    with Dripper(1, 0.05) as slow, healthy() as url:
        c.create("slow", backend=slow.url)
        c.create("slow-too", backend=slow.url.replace("127.0.0.1", "127.1"))
        c.create("healthy", backend=url)
        clients = [begin_get(c, ("slow", "slow-too")[i % 2], f"o{i}") for i in range(3 * PARALLEL)]
        wait_for(lambda: slow.running == PARALLEL // 2, "half of the threads wait for the slow one")
        read_quickly(c, [f"beside{i}" for i in range(20)])
        in_parallel(lambda i: c.object("HEAD", "healthy", f"h{i}").expect(200), range(8), 4)
        for client in clients:
            client.close()
        read_quickly(c, [f"after{i}" for i in range(20)])
        equal(slow.most, PARALLEL // 2, "threads that waited for the slow one at once")
    c.run("stop", "t1")
    c.start("t1")
    c.wait_node("t1", "active")


def test_a_least_rate_is_asked(c):
    with Dripper(1, 0.02) as slow:  # 50 bytes a second; 1 KiB is asked
        c.create("least", backend=slow.url)
        try:
            reply = c.get("least", "o")
            check(reply.status >= 500, f"{reply!r}")
        except (http.client.HTTPException, ConnectionError):
            c.http.close()
        wait_for(lambda: slow.running == 0, "the target has left it")
    check("comes at less than 1024 bytes a second" in c.log("t1"), "the log")


def test_what_nobody_waits_for_is_dropped_where_it_is_slow(c):
    with Dripper(200,
                 0.02) as slow:  # 10 KB a second: enough for who waits, 64 KiB are asked otherwise
        c.create("left", backend=slow.url)
        client = begin_get(c, "left", "o")
        wait_for(lambda: slow.running == 1, "it has begun")
        got = 0
        while got < 60_000:  # it goes on for longer than it is measured
            piece = client.recv(4096)
            check(piece, "the stream goes on while its client is there")
            got += len(piece)
        client.close()
        wait_for(lambda: slow.running == 0, "it is dropped")
    check("no client waits for it" in c.log("t1"), "the log")


if __name__ == "__main__":
    main(targets=1, mountpaths=1, args=[f"--target-arg=--{a}" for a in (
        f"cold-parallel={PARALLEL}", "backend-min-time=500ms", "backend-retries=0")])
