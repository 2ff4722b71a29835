#!/usr/bin/env python3
"""What the primary pushes to a node, seen by a follower of the test's own."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lib import check, equal, main, wait_for

CREATE = {"action": "create"}
DELTA_MAX = 2 << 10


class Follower:
    """Takes pushes.  With `deltas` it says that it reads differences; `holds` replaces what it says
    that it holds after the next push."""

    def __init__(self, c, name, deltas):
        self.bodies = []
        self.deltas = deltas
        self.holds = None
        follower = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_PUT(self):
                reply = follower.take(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{self.server.server_port}"
        node = {"id": name, "role": "proxy", "public_url": url, "control_url": url, "data_url": "",
                "boot": "b-" + name, "exposure": "none"}
        c.administer("POST", "/v1/cluster/register", node).expect(200)

    def take(self, body):
        document = json.loads(body)
        head = document.get("delta", document)
        reply = self.holds or {"term": head["term"], "version": head["version"]}
        self.holds = None
        if self.deltas:
            reply = dict(reply, deltas=True)
        self.bodies.append((document, len(body)))
        return json.dumps(reply).encode()

    def version(self):
        document = self.bodies[-1][0]
        return document.get("delta", document)["version"]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def create(c, follower, name):
    """Makes a bucket, and waits for the push that brings it; the push."""
    c.call("POST", f"/v1/buckets/{name}", CREATE).expect(201)
    wait_for(lambda: f'"{name}"' in json.dumps(follower.bodies[-1][0]), f"{name} is pushed")
    return next(b for b in follower.bodies if f'"{name}"' in json.dumps(b[0]))


def follower_of(c, name, deltas):
    follower = Follower(c, name, deltas)
    wait_for(lambda: follower.bodies, "the state is pushed")
    check("smap" in follower.bodies[0][0], "the first push is not whole")
    return follower


def test_a_node_that_reads_differences_gets_them(c):
    for i in range(40):
        c.call("POST", f"/v1/buckets/many{i}", CREATE).expect(201)
    follower = follower_of(c, "p8", True)
    before = follower.version()
    document, length = create(c, follower, "fresh")
    check("delta" in document, "the push is not a difference")
    check(document["from"]["version"] >= before, "it begins with an earlier state")
    names = [b["name"] for b in document["delta"]["bmd"]["put"]]
    equal(names, ["fresh"], "the buckets of the difference")
    check(length <= DELTA_MAX < follower.bodies[0][1], f"{length} bytes of {follower.bodies[0][1]}")
    follower.close()


def test_a_node_that_holds_another_state_gets_the_whole(c):
    follower = follower_of(c, "p7", True)
    follower.holds = {"term": 0, "version": 0}
    seen = len(follower.bodies)
    c.call("POST", "/v1/buckets/again", CREATE).expect(201)
    wait_for(lambda: any("smap" in b[0] and b[0].get("format") for b in follower.bodies[seen:]),
             "the whole is pushed")
    follower.close()


def test_a_node_of_the_release_before_gets_wholes(c):
    follower = follower_of(c, "p6", False)
    document, _ = create(c, follower, "old")
    check("delta" not in document, "a node that does not read differences gets one")
    follower.close()


if __name__ == "__main__":
    main(targets=1, args=("--without-key",))
