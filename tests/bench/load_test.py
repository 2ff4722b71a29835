#!/usr/bin/env python3
"""dfc-load against a scripted server: it must count what really happened.

usage: load_test.py DFC_LOAD"""

import json
import socket
import subprocess
import sys
import threading
import unittest

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else "dfc-load"


class Scripted:
    """Answers each request with what `script(method, path, head, connection)` returns: bytes to
    send, then None to keep the connection or "close" to end it."""

    def __init__(self, script):
        self.script = script
        self.requests = []
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            try:
                while self.serve_one(connection, stream):
                    pass
            except OSError:
                pass

    def serve_one(self, connection, stream):
        line = stream.readline().decode()
        if not line:
            return False
        method, path, _ = line.split()
        head = {}
        while (line := stream.readline().decode().strip()):
            name, _, value = line.partition(":")
            head[name.lower()] = value.strip()
        answer, after = self.script(method, path, head, stream)
        self.requests.append((method, path))
        connection.sendall(answer)
        return after != "close"


def answer(status, body=b"", *fields):
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


def run(url, *options):
    done = subprocess.run([PROGRAM, f"--url={url}", "--duration=20s", *options], timeout=30,
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


class LoadTest(unittest.TestCase):
    def test_get_takes_paths_in_turn(self):
        met, all_here = threading.local(), threading.Barrier(4, timeout=20)

        def script(*_):
            if not hasattr(met, "once"):  # the first request of each connection: none is left out
                met.once = all_here.wait()
            return answer(200, b"x" * 50000), None

        with Scripted(script) as server:
            r = run(server.url, "--path=/a", "--path=/b", "--requests=40", "--connections=4")
            self.assertEqual(server.connections, 4)
            self.assertEqual(sorted(set(server.requests)), [("GET", "/a"), ("GET", "/b")])
            self.assertEqual(server.requests.count(("GET", "/a")), 20)
        self.assertEqual((r["requests"], r["bytes_in"]), (40, 40 * 50000))
        self.assertEqual((r["status"], r["non_2xx"]), ({"200": 40}, 0))
        self.assertEqual(sum(r["errors"].values()), 0)
        self.assertGreater(r["latency_us"]["p50"], 0)

    def test_put_sends_all_of_the_body(self):
        sizes = []

        def script(method, path, head, stream):
            sizes.append(len(stream.read(int(head["content-length"]))))
            return answer(200), None

        with Scripted(script) as server:
            r = run(server.url, "--mode=put", "--prefix=/p/x", "--size=3MiB", "--requests=6",
                    "--connections=2")
            self.assertEqual(sorted(server.requests), [("PUT", f"/p/x{i:08d}") for i in range(6)])
        self.assertEqual(sizes, [3 << 20] * 6)
        self.assertEqual((r["bytes_out"], r["puts"]), (6 * (3 << 20), 6))

    def test_redirect_is_followed_each_time_or_once(self):
        with Scripted(lambda *_: (answer(200, b"data"), None)) as target:
            hop = answer(307, b"moved, says the body", f"Location: {target.url}/there?v=1")
            for how, hops in (("follow", 10), ("cache", 1)):
                with Scripted(lambda *_: (hop, None)) as proxy:
                    r = run(proxy.url, "--path=/here", "--requests=10", "--connections=1",
                            f"--redirect={how}")
                    self.assertEqual(len(proxy.requests), hops)
                self.assertEqual((r["redirects"], r["status"]), (hops, {"200": 10}))
            self.assertEqual(set(target.requests), {("GET", "/there?v=1")})
            with Scripted(lambda *_: (hop, None)) as proxy:
                r = run(proxy.url, "--path=/here", "--requests=3")
            self.assertEqual((r["status"], r["non_2xx"]), ({"307": 3}, 3))

    def test_redirected_put_sends_its_body_once(self):
        sizes = []

        def target(method, path, head, stream):
            sizes.append(len(stream.read(int(head["content-length"]))))
            return answer(200), None

        def proxy(method, path, head, stream):
            self.assertEqual(head["expect"], "100-continue")
            return answer(307, b"", f"Location: {t.url}{path}"), None

        with Scripted(target) as t, Scripted(proxy) as p:
            r = run(p.url, "--mode=put", "--prefix=/x", "--size=100000", "--requests=5",
                    "--connections=1", "--redirect=follow")
        self.assertEqual(sizes, [100000] * 5)
        self.assertEqual((r["redirects"], r["bytes_out"]), (5, 500000))

    def test_expect_waits_for_continue(self):
        class Continuing(Scripted):
            def serve_one(self, connection, stream):
                if not stream.readline():
                    return False
                while stream.readline().strip():
                    pass
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                self.requests.append(len(stream.read(5)))
                connection.sendall(answer(201))
                return True

        with Continuing(None) as server:
            r = run(server.url, "--mode=put", "--prefix=/x", "--size=5", "--requests=4",
                    "--connections=1", "--expect")
            self.assertEqual(server.requests, [5] * 4)
        self.assertEqual(r["status"], {"201": 4})

    def test_failures_are_counted_by_kind(self):
        cut = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"
        cases = {
            "io": (cut, "close"),
            "protocol": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", None),
            "timeout": (b"HTTP/1.1 200 OK\r\n", None),
        }
        for kind, result in cases.items():
            with Scripted(lambda *_: result) as server:
                r = run(server.url, "--path=/a", "--requests=3", "--connections=3",
                        "--timeout=200ms")
            self.assertEqual((kind, r["errors"][kind], r["requests"]), (kind, 3, 0))

    def test_early_refusal_of_a_put_is_an_answer(self):
        class Refusing(Scripted):
            def serve_one(self, connection, stream):
                stream.readline()
                connection.sendall(answer(507))
                stream.read()  # until the other side gives up: closing now would reset
                return False

        with Refusing(None) as server:
            r = run(server.url, "--mode=put", "--prefix=/x", "--size=64MiB", "--requests=2",
                    "--connections=1")
        self.assertEqual((r["status"], sum(r["errors"].values())), ({"507": 2}, 0))

    def test_closed_keep_alive_connection_is_opened_again(self):
        with Scripted(lambda *_: (answer(200), "close")) as server:
            r = run(server.url, "--path=/a", "--requests=10", "--connections=1")
            self.assertEqual(server.connections, 10)
        self.assertEqual((r["status"], sum(r["errors"].values())), ({"200": 10}, 0))

    def test_bad_options_are_refused(self):
        for options in (["--path=a"], ["--mode=post"], ["--connections=0"], ["--size=x"], []):
            done = subprocess.run([PROGRAM, "--url=http://127.0.0.1:1", *options],
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, 2, options)
            self.assertTrue(done.stderr.startswith(b"dfc-load: "))


if __name__ == "__main__":
    unittest.main()
