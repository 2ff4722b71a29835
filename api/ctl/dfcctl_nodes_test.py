#!/usr/bin/env python3
"""dfcctl and nodes that are to stop or leave: what it asks, what it says, and how long it waits.

DFC_BUILD names the build directory.  Python's standard library only."""
import http.server
import json
import os
import sys
import threading
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
from dfcctl_case import Case, terminal  # noqa: E402


class Primary:
    """Gives the overviews one after the other, the last one again and again."""

    def __init__(self, *overviews, buckets=()):
        self.puts = puts = []
        left = list(overviews)
        proxy = {"id": "p1", "role": "proxy", "state": "active", "primary": True}

        class Calls(http.server.BaseHTTPRequestHandler):
            def send(self, doc):
                body = json.dumps(doc).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                if self.path.startswith("/v1/buckets"):
                    self.send({"buckets": list(buckets)})
                else:
                    doc = left.pop(0) if len(left) > 1 else left[0]
                    self.send({**doc, "nodes": [*doc["nodes"], proxy]})

            def do_PUT(self):
                puts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send({})

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Calls)
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        proxy["public_url"] = proxy["control_url"] = self.url

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def overview(moving=False, lag=None, **protection):
    def target(name, **more):
        return {"id": name, "role": "target", "state": "active", "version": 1, **more}

    behind = {"lag": lag} if lag else {}
    return {"nodes": [target("t1"), target("t2", **behind)], "moving": moving,
            "protection": protection}


class Nodes(Case):
    def test_a_decommission_asks(self):
        with Primary(overview()) as p:
            words = ["node", "decommission", "t2", "--endpoint", p.url]
            self.run_ctl(*words, code=2)
            self.assertIn("Have node 't2' leave the cluster for good? Not a terminal", self.err)
            shown, code = terminal(self, words, b"n\n")
            self.assertIn(b"Have node 't2' leave the cluster for good? [y/N]", shown)
            self.assertEqual((code, p.puts), (1, []))
            shown, code = terminal(self, words, b"y\n")
            self.assertEqual((code, [a["action"] for a in p.puts]), (0, ["decommission"]), shown)
            self.run_ctl(*words, "--force", code=2)
            self.assertIn("lose the objects that only it has", self.err)

    def test_what_has_begun_is_not_done(self):
        with Primary(overview()) as p:
            said = self.text("node", "decommission", "t2", "-y", "--endpoint", p.url)
            self.assertIn("do not stop it while 'dfcctl node ls' shows it", said)
            said = self.text("node", "maintenance", "start", "t2", "--endpoint", p.url)
            self.assertIn("its objects are being moved; do not stop it before 'dfcctl node ok-to-stop'",
                          said)
            said = self.text("node", "maintenance", "stop", "t2", "--endpoint", p.url)
            self.assertEqual(said, "t2 is active\n")

    def test_a_wait_says_why(self):
        with Primary(overview(moving=True), overview(moving=True), overview(lag="missed"),
                     overview()) as p:
            said = self.text("node", "ok-to-stop", "t1", "--wait", "--endpoint", p.url)
        self.assertEqual(said, "t1 may be stopped\n")
        lines = self.err.splitlines()
        self.assertEqual(len(lines), 2, self.err)
        self.assertIn("dfcctl: waiting: objects are being moved", lines[0])
        self.assertIn("dfcctl: waiting: target 't2' has not got yet what it missed", lines[1])

    def test_a_wait_for_copies_that_nobody_makes(self):
        with Primary(overview(lag="missed", one_copy=1), overview(one_copy=1),
                     buckets=[{"name": "b", "protection": "one_copy"}]) as p:
            said = self.text("node", "ok-to-stop", "t1", "--wait", "--endpoint", p.url, code=1)
        self.assertIn("bucket 'b' keeps one copy of each object", said)
        self.assertIn("waiting: target 't2' has not got yet", self.err)
        self.assertIn("waiting makes no copies", self.err)


if __name__ == "__main__":
    unittest.main()
