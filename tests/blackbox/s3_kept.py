#!/usr/bin/env python3
"""Reads of S3 that share kept connections between nodes: each reply belongs to its request, also
where requests of all kinds mix, clients leave, and the target stops, dies and comes back."""

import hashlib
import http.client
import os
import random
import signal
import threading

from access_lib import GuardedCluster
from lib import check, equal, main, raw_connection
from s3_lib import root_of, s3ref, time_text

SIZES = (0, 1, 1000, 20000, 65536, 65537, 300000, 2 << 20)
BUCKET, OWNER = "kept", "t3"
NODES = ("p1", "t1")
KINDS = ("get", "head", "range", "past", "known", "other", "missing", "old", "body", "leave")


def content(size, salt):
    """Bytes that no other object has at any place."""
    block = hashlib.sha256(salt.encode()).digest() * 128
    return (block * (size // len(block) + 1))[:size]


def request(c, node, method, key, headers=None, version="1.1", tail=b""):
    client = root_of(c, node)
    path = f"{client.prefix}/{BUCKET}/{key}"
    headers = client.signed(method, path, [], headers or {}, s3ref.UNSIGNED, time_text())
    lines = [f"{method} {path} HTTP/{version}", *(f"{n}: {v}" for n, v in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + tail


class Wire:
    """A client's connection with requests one after the other, or several at once."""

    def __init__(self, c, node):
        context = c.http.context if c.endpoint.startswith("https:") else None
        self.socket = raw_connection(c.address(node), 60, context)
        self.file = self.socket.makefile("rb")

    def close(self):
        self.file.close()
        self.socket.close()

    def makefile(self, *_):
        """For http.client: a reader that goes on behind the reply."""
        return Unclosed(self.file)

    def reply(self, method):
        r = http.client.HTTPResponse(self, method=method)
        r.begin()
        return r, r.read()


class Unclosed:
    def __init__(self, file):
        self.file = file

    def __getattr__(self, name):
        return getattr(self.file, name)

    def close(self):
        pass


def bytes_of(kind, data, rng):
    """→ (method, headers, statuses, body that is expected)"""
    at = rng.randrange(len(data)) if data else 0
    end = rng.randrange(at, len(data)) if data else 0
    return {"get": ("GET", {}, 200, data), "head": ("HEAD", {}, 200, b""),
            "range": ("GET", {"Range": f"bytes={at}-{end}"}, 206 if data else 416,
                      data[at:end + 1] if data else None),
            "past": ("GET", {"Range": "bytes=99999999-"}, 416, None),
            "known": ("GET", {"If-None-Match": "*"}, 304, b""),
            "other": ("GET", {"If-Match": '"none"'}, 412, None),
            "missing": ("GET", {}, 404, None), "old": ("GET", {}, 200, data),
            "body": ("GET", {"Content-Length": "5", "Expect": "100-continue"}, 200, data),
            "leave": ("GET", {}, 200, data)}[kind]


def one(c, wire, node, names, rng, may_fail):
    """One request; a Wire for the next one, or None."""
    key, kind = rng.choice(list(names)), rng.choice(KINDS)
    method, headers, status, body = bytes_of(kind, names[key], rng)
    words = f"{kind} of {len(names[key])} bytes at {node}"
    wire = wire or Wire(c, node)
    wire.socket.sendall(request(c, node, method, key if kind != "missing" else "no-" + key, headers,
                                "1.0" if kind == "old" else "1.1",
                                b"12345" if kind == "body" else b""))
    if kind == "leave":
        wire.socket.recv(rng.randrange(1, 1000))
        wire.close()
        return None
    reply, got = wire.reply(method)
    if may_fail and reply.status in (503, 504):
        return None if reply.will_close else wire
    equal(reply.status, status, "status of " + words)
    if body is not None:
        check(got == body, f"{words}: the bytes are not those of the object")
    if method == "HEAD":
        equal(int(reply.headers["Content-Length"]), len(names[key]), "length of " + words)
    if reply.will_close:
        wire.close()
        return None
    return wire


def load(c, node, names, seed, over, may_fail):
    rng, wire, done = random.Random(seed), None, 0
    while not over.is_set():
        try:
            wire = one(c, wire, node, names, rng, may_fail)
            done += 1
        except (http.client.IncompleteRead, http.client.BadStatusLine, ConnectionError):
            if not may_fail:
                raise
            wire = None
    if wire is not None:
        wire.close()
    return done


def filled(c):
    """→ {key: its bytes}, all on one target."""
    names = {}
    keys = [k for k in map("k{}".format, range(400)) if c.owner(BUCKET, k) == OWNER]
    for key, size in zip(keys, SIZES * 2):
        names[key] = content(size, key)
        root_of(c).call("PUT", f"/{BUCKET}/{key}", names[key]).expect(200)
    return names


def under_load(c, names, disturb, may_fail, clients=4):
    over, counts, failures = threading.Event(), [], []

    def run(seed):
        try:
            counts.append(load(c, NODES[seed % len(NODES)], names, seed, over, may_fail))
        except Exception as e:  # pylint: disable=broad-exception-caught
            failures.append(e)
            over.set()
    threads = [threading.Thread(target=run, args=(i,)) for i in range(clients)]
    for t in threads:
        t.start()
    try:
        disturb(over)
    finally:
        over.set()
        for t in threads:
            t.join()
    if failures:
        raise failures[0]
    check(sum(counts) > 100, f"only {counts} requests")


def test_requests_of_all_kinds_mix(c):
    names = filled(c)
    under_load(c, names, lambda over: over.wait(10), False)


def test_the_target_stops_dies_and_comes_back(c):
    names = filled(c)

    def disturb(over):
        for _ in range(2):
            over.wait(1)
            os.kill(c.pid(OWNER), signal.SIGSTOP)
            over.wait(3)
            os.kill(c.pid(OWNER), signal.SIGCONT)
            over.wait(1)
            c.kill(OWNER, "-9")
            over.wait(0.5)
            c.start(OWNER)
            c.wait_node(OWNER, "active")
    under_load(c, names, disturb, True)


def test_pipelined_requests_are_answered_in_order(c):
    names = filled(c)
    for node in NODES:
        wire = Wire(c, node)
        keys = random.Random(7).choices(list(names), k=40)
        wants = b"".join(request(c, node, "GET", k) for k in keys)
        sender = threading.Thread(target=wire.socket.sendall, args=(wants,))
        sender.start()
        for key in keys:
            reply, got = wire.reply("GET")
            equal(reply.status, 200, "status")
            check(got == names[key], f"{key} at {node} has other bytes")
        sender.join()
        wire.close()


class KeptCluster(GuardedCluster):
    def __init__(self, **shape):
        super().__init__(**shape)
        self.create(BUCKET)


if __name__ == "__main__":
    main(KeptCluster, targets=3,
         args=[f"--{kind}-arg=--stall-timeout=2s" for kind in ("proxy", "target")])
