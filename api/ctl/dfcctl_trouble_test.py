#!/usr/bin/env python3
"""dfcctl and a cluster in trouble: what is asked again, what is not, silence, dead nodes,
interrupts.

DFC_BUILD names the build directory.  Python's standard library only."""
import http.server
import os
import select
import signal
import socket
import sys
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
from dfcctl_case import Case, pattern, SLOW  # noqa: E402


class Trouble(Case):
    def setUp(self):
        super().setUp()
        self.mock.create("b", {"k": b"data"})

    def test_refusals_are_repeated(self):
        for step in ({"status": 503, "retry_after": 0}, {"status": 429, "retry_after": 1},
                     {"at": "target", "status": 503, "code": "overloaded"},
                     {"at": "target", "status": 409, "code": "stale_map"},
                     {"at": "target", "status": 504}):
            self.mock.plan(dict(step, do="status"))
            begin = time.monotonic()
            self.assertEqual(self.run_ctl("cat", "b/k"), b"data")
            self.assertGreaterEqual(time.monotonic() - begin, step.get("retry_after", 0))

    def test_attempts_are_bounded(self):
        self.mock.plan({"do": "status", "status": 503, "code": "not_ready", "times": 100})
        e = self.json_error("cat", "b/k", "--retries", "2", code=5)
        self.assertEqual((e["code"], e["status"], e["node"]), ("not_ready", 503, "p1"))
        self.assertEqual(len(self.mock.log), 3)

    def test_what_is_final_is_not_repeated(self):
        for status in (400, 401, 403, 404, 500, 501, 507):
            self.mock.log.clear()
            self.mock.plan({"do": "status", "status": status, "code": "x"})
            code = {400: 2, 401: 7, 403: 7, 404: 3, 501: 2}.get(status, 1)
            self.run_ctl("cat", "b/k", code=code)
            self.assertEqual(len(self.mock.log), 1, status)

    def test_a_creation_is_not_repeated_when_in_doubt(self):
        self.mock.plan({"method": "POST", "do": "act"})
        self.run_ctl("bucket", "create", "new", code=5)
        self.assertEqual(len(self.mock.requests(method="POST")), 1)
        self.mock.plan({"method": "POST", "do": "act"})
        self.run_ctl("sort", "start", "--input-bucket", "b", code=5)
        self.assertEqual(len(self.mock.jobs), 1)

    def test_a_refused_creation_is_repeated(self):
        self.mock.plan({"method": "POST", "do": "status", "status": 503})
        self.run_ctl("bucket", "create", "new")

    def test_a_file_is_put_again_after_a_cut(self):
        self.write("f", pattern(2 << 20))
        self.mock.plan({"at": "target", "method": "PUT", "do": "drop"})
        self.run_ctl("put", "f", "b/k")
        self.assertEqual(self.mock.objects("b")["k"], pattern(2 << 20))

    def test_a_conditional_put_is_not_put_again(self):
        self.write("f", b"1")
        self.mock.plan({"at": "target", "method": "PUT", "do": "act"})
        self.run_ctl("put", "f", "b/new", "--if-absent", code=5)
        self.assertEqual(len(self.mock.requests(at="target", method="PUT")), 1)

    def test_silence(self):
        self.mock.plan({"at": "target", "do": "stall", "seconds": 60, "times": 5})
        begin = time.monotonic()
        e = self.json_error("cat", "b/k", "--idle-timeout", "300ms", "--retries", "1", code=5)
        self.assertEqual(e["code"], "timeout")
        self.assertLess(time.monotonic() - begin, 20 * SLOW)

    def test_nobody_there(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
            e = self.json_error("ls", "--endpoint", "127.0.0.1:%d" % port, "--retries=0", code=5)
        self.assertEqual(e["code"], "network_error")
        self.assertNotIn("status", e)

    def test_next_endpoint(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            dead = "http://127.0.0.1:%d" % s.getsockname()[1]
            both = dead + ", " + self.mock.endpoint + "/"
            self.assertEqual(self.run_ctl("cat", "b/k", "--endpoint", both, "--retries", "1"),
                             b"data")

    def test_dead_target(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.mock.plan({"at": "proxy", "do": "status", "status": 307, "times": 2,
                            "location": "http://127.0.0.1:%d/v1/objects/b/k" % s.getsockname()[1]})
            self.assertEqual(self.run_ctl("cat", "b/k"), b"data")

    def test_redirect_loop_and_nowhere(self):
        self.mock.plan({"at": "proxy", "do": "status", "status": 307, "times": 100,
                        "location": "/v1/objects/b/k"})
        self.run_ctl("cat", "b/k", code=1)
        self.assertIn("redirects", self.err)
        self.mock.steps.clear()
        for location in ("ftp://x/y", "//host/x", ""):
            self.mock.plan({"at": "proxy", "do": "status", "status": 307, "location": location})
            self.run_ctl("cat", "b/k", code=1)
            self.assertIn("redirects to nowhere", self.err)

    def test_what_is_no_dfc(self):
        self.mock.plan({"do": "garbage", "times": 4})
        for words in (["bucket", "ls"], ["ls", "b"], ["job", "show", "j"], ["cluster", "status"]):
            self.run_ctl(*words, code=1)

    def test_an_endpoint_that_nobody_named(self):
        env = self.environment()
        del env["DFC_ENDPOINT"]
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", 8080)) == 0:
                return  # somebody listens at the default
        self.run_ctl("bucket", "ls", "--retries", "0", env=env, code=5)
        self.assertIn("neither --endpoint nor DFC_ENDPOINT", self.err)
        self.run_ctl("bucket", "ls", "--retries", "0", "--endpoint", "http://127.0.0.1:9", code=5)
        self.assertNotIn("DFC_ENDPOINT", self.err)

    def test_an_endpoint_that_is_no_proxy(self):
        self.mock.plan({"do": "status", "status": 404, "code": "no_such_route"})
        self.run_ctl("bucket", "ls", code=1)
        self.assertIn("the endpoint has to be a proxy's public address", self.err)

    def test_interrupt(self):
        self.mock.plan({"at": "target", "do": "stall", "seconds": 60})
        p = self.start("get", "b/k", "f")
        deadline = time.monotonic() + 30 * SLOW
        while self.mock.steps and time.monotonic() < deadline:
            select.select([], [], [], 0.01)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=30 * SLOW)
        self.assertEqual((p.returncode, self.files()), (130, []), err)

    def test_a_primary_that_does_not_wait_for_events(self):
        """It is asked again after a pause, which is no shorter on a slow machine."""
        asked = []

        class Primary(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(time.monotonic())
                body = b'{"events": [], "next": "run.0", "anew": false, "missed": 0}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Primary) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            p = self.start("cluster", "events", "--follow", "--endpoint",
                           "http://127.0.0.1:%d" % server.server_port)
            deadline = time.monotonic() + 30 * SLOW
            while len(asked) < 3 and time.monotonic() < deadline:
                select.select([], [], [], 0.01)
            p.send_signal(signal.SIGINT)
            _, err = p.communicate(timeout=30 * SLOW)
            server.shutdown()
        self.assertEqual(p.returncode, 130, err)
        self.assertGreaterEqual(asked[2] - asked[1], 1)

    def wait_to_stop(self, port, timeout):
        return self.start("node", "ok-to-stop", "p2", "--wait", "--timeout", timeout,
                          "--control", "http://127.0.0.1:%d" % port)

    def test_a_wait_outlives_a_proxy_that_is_away(self):
        """A hook of a node that stops begins while the proxy restarts."""
        node = '{"id": "%s", "role": "proxy", "state": "active", "version": 1}'
        body = ('{"nodes": [%s, %s], "moving": false}' % (node % "p1", node % "p2")).encode()

        class Proxy(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy,
                                             bind_and_activate=False) as server:
            server.server_bind()  # connections are refused until it listens
            p = self.wait_to_stop(server.server_port, "300s")
            self.assertIn(b"waiting for an answer", p.stderr.readline())
            server.server_activate()
            threading.Thread(target=server.serve_forever, daemon=True).start()
            out, err = p.communicate(timeout=60 * SLOW)
            server.shutdown()
        self.assertEqual((p.returncode, out), (0, b"p2 may be stopped\n"), err)

    def test_a_wait_ends_although_a_proxy_is_silent(self):
        """Silence is given up on after 60 s by default, and asked again: not within --timeout."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            p = self.wait_to_stop(silent.getsockname()[1], "1s")
            _, err = p.communicate(timeout=30 * SLOW)
        self.assertEqual(p.returncode, 5, err)
        self.assertIn(b"silent for", err)

    def test_interrupt_of_standard_input(self):
        p = self.start("put", "-", "b/new")
        p.stdin.write(b"x")
        p.stdin.flush()
        deadline = time.monotonic() + 30 * SLOW
        while time.monotonic() < deadline:  # until it waits for more
            with open("/proc/%d/wchan" % p.pid, encoding="ascii") as f:
                if "pipe" in f.read():
                    break
            with open("/proc/%d/stat" % p.pid, encoding="ascii") as f:
                if f.read().rsplit(") ", 1)[1][0] == "S":
                    break
        p.send_signal(signal.SIGINT)
        err = p.communicate(timeout=30 * SLOW)[1]
        self.assertEqual(p.returncode, 130, err)
        self.assertNotIn("new", self.mock.objects("b"))


if __name__ == "__main__":
    unittest.main()
