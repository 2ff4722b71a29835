#!/usr/bin/env python3
"""A PUT of a body of unknown length is stored whole, or fails: Python's HTTP clients cannot send it
twice.

They follow a redirect with an empty body, and call that a success.  So a proxy redirects only a
client that waits
to be told to go on (Expect: 100-continue), as curl does."""

import http.client
import os
import random
import subprocess
import tempfile

import requests
import urllib3

import frame  # noqa: F401 (first: the next one is found by it)
from lib import check, equal, main

DATA = random.Random(7).randbytes(3_000_001)
PIECE = 100_000


def pieces(data=DATA):
    for at in range(0, len(data), PIECE):
        yield data[at:at + PIECE]


class OnlyRead:
    """A file that can be read once."""

    def __init__(self, data=DATA):
        self.data, self.at = data, 0

    def read(self, size=-1):
        end = len(self.data) if size is None or size < 0 else self.at + size
        piece, self.at = self.data[self.at:end], min(end, len(self.data))
        return piece


def url(c, name, node="p1"):
    return f"{c.url(node)}/v1/objects/b/{name}"


def check_stored(c, name, data=DATA):
    check(c.get("b", name).expect(200).body == data, f"{name} was stored as it was sent")


def test_requests(c):
    c.create("b")
    for name, body in (("generator", pieces()), ("file", OnlyRead()), ("none", iter(()))):
        reply = requests.put(url(c, name), data=body, timeout=60)
        equal(reply.status_code, 200, f"status of {name}")
        equal(reply.history, [], f"redirects of {name}")
        equal(reply.json()["size"], 0 if name == "none" else len(DATA), f"size of {name}")
        check_stored(c, name, b"" if name == "none" else DATA)


def test_requests_with_a_length(c):
    """What can be sent again still goes straight to the target."""
    reply = requests.put(url(c, "bytes"), data=DATA, timeout=60)
    equal((reply.status_code, [r.status_code for r in reply.history]), (200, [307]), "answers")
    check_stored(c, "bytes")


def test_urllib3(c):
    pool = urllib3.PoolManager(retries=urllib3.Retry(redirect=5))
    reply = pool.request("PUT", url(c, "iter"), body=iter(pieces()), timeout=60)
    equal(reply.status, 200, "status")
    check_stored(c, "iter")


def test_http_client(c):
    connection = http.client.HTTPConnection(*c.address(), timeout=60)
    connection.request("PUT", "/v1/objects/b/http", body=pieces(), encode_chunked=True,
                       headers={"Transfer-Encoding": "chunked"})
    equal(connection.getresponse().status, 200, "status")
    check_stored(c, "http")


def curl(c, name, *args):
    """What it printed, and the statuses of its answers."""
    with tempfile.NamedTemporaryFile() as head:
        done = subprocess.run(["curl", "-sS", "-D", head.name, *args, "-T", "-",
                               url(c, name)], input=DATA, check=False, capture_output=True,
                              timeout=60)
        equal(done.returncode, 0, f"curl: {done.stderr}")
        return [line.split()[1] for line in head.read().split(b"\r\n") if line.startswith(b"HTTP/")]


def test_curl(c):
    equal(curl(c, "curl", "-L"), [b"307", b"100", b"200"], "answers: it waits, and is redirected")
    check_stored(c, "curl")
    equal(curl(c, "curl-at-once", "-H", "Expect:"), [b"200"], "answers: it does not wait")
    check_stored(c, "curl-at-once")


def test_at_a_target_that_does_not_own_it(c):
    """A target streams nothing: it refuses, and what is refused is not there."""
    name = next(n for n in map(str, range(100)) if c.owner("b", n) != "t1")
    reply = requests.put(url(c, name, "t1"), data=pieces(), timeout=60)
    equal((reply.status_code, reply.json()["code"]), (409, "wrong_owner"), "answer")
    c.get("b", name).expect(404, "object_not_found")


if __name__ == "__main__":
    os.environ["no_proxy"] = "127.0.0.1"
    main(targets=3)
