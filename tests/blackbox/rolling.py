#!/usr/bin/env python3
"""Targets are restarted one after the other, under load, in buckets with two copies and with three:
no read fails, and no write.  Clients follow redirects, also those that they were given a second ago,
or have a proxy stream.  A follower is restarted, too, under clients that repeat nothing
but a refused connection. DFC_ROUNDS (1) says how often each target is restarted."""

import hashlib
import os
import random
import re
import threading
import time

from lib import Http, Reply, check, equal, escape, main, wait_for

SIZES = (0, 100, 20_000, 700_000)
CLIENTS = int(os.environ.get("DFC_CLIENTS", "6"))
ROUNDS = int(os.environ.get("DFC_ROUNDS", "1"))
NAMES = 12  # of each client, which alone writes them
STALE_SECONDS = 1.0


def content(key, turn):
    size = SIZES[turn % len(SIZES)]
    return (hashlib.sha256(f"{key} {turn}".encode()).digest() * (size // 32 + 1))[:size]


class OnceHttp(Http):
    """Repeats nothing: a kept connection that the server closes without a word is a failure."""

    def request_once(self, method, url, body, headers, timeout):
        scheme, netloc, rest = re.match(r"(https?)://([^/]+)(/.*)", url, re.S).groups()
        connection = self.connection(scheme, netloc, timeout)
        try:
            connection.request(method, rest, body=body, headers=headers)
            response = connection.getresponse()
            return Reply(response, response.read(), url)
        except BaseException:
            connection.close()
            raise


class Client(threading.Thread):
    """Reads, writes and deletes its names; what does not end as it should is noted."""

    def __init__(self, c, bucket, number, home="p1"):
        super().__init__()
        self.home = home
        self.c, self.bucket, self.number = c, bucket, number
        self.streams = number % 2 == 1
        self.random = random.Random(number)
        self.http = Http()
        self.there = {}  # name → what it has
        self.redirects = {}  # (method, name) → where, since when
        self.wrong = []
        self.counts = {"GET": 0, "PUT": 0, "DELETE": 0}
        self.over = threading.Event()

    def url(self, name):
        query = "?redirect=never" if self.streams else ""
        return f"{self.c.url(self.home)}/v1/objects/{self.bucket}/{escape(name)}{query}"

    def where(self, method, name):
        """An earlier redirect for this, while it is young; else another one."""
        known = self.redirects.get((method, name))
        if known is None or time.monotonic() - known[1] > STALE_SECONDS:
            reply = self.http.request(method, self.url(name), follow=False)
            known = (reply.expect(307).headers["Location"], time.monotonic())
            self.redirects[method, name] = known
        return known[0]

    def ask(self, method, name, body=None):
        self.counts[method] += 1
        url = self.url(name) if self.streams else self.where(method, name)
        return self.http.request(method, url, body)

    def one(self, turn):
        name = f"c{self.number}/{self.random.randrange(NAMES)}"
        kind = self.random.random()
        if kind < 0.45:
            body = content(name, turn)
            self.ask("PUT", name, body).expect(200)
            self.there[name] = body
        elif kind < 0.55 and name in self.there:
            self.ask("DELETE", name).expect(204)
            del self.there[name]
        else:
            reply = self.ask("GET", name)
            equal(reply.status, 200 if name in self.there else 404, f"GET {name}: {reply!r}")
            check(name not in self.there or reply.body == self.there[name],
                  f"GET {name}: not the last")

    def run(self):
        turn = 0
        while not self.over.is_set():
            turn += 1
            try:
                self.one(turn)
            except Exception as e:  # told by the test's own thread
                self.wrong.append(f"{'streamed' if self.streams else 'redirected'}: {e!r}")
                self.there = {}  # what is there now is not known
                self.random.seed(f"{self.number} {turn}")
                self.number += 100  # other names
        self.http.close()


class GuestOfAProxy(Client):
    """Goes to the other proxy when its own refuses the connection."""

    def __init__(self, c, bucket, number, home):
        super().__init__(c, bucket, number, home)
        self.http = OnceHttp()

    def ask(self, method, name, body=None):
        try:
            return super().ask(method, name, body)
        except ConnectionRefusedError:
            self.home = "p2" if self.home == "p1" else "p1"
            return super().ask(method, name, body)


def is_synced(c, target):
    return c.call("GET", "/v1/health?synced=true", node=target).status == 200


def roll(c, bucket, clients, restarts):
    """restarts: (node, when it is back in its place)."""
    for client in clients:
        client.start()
    try:
        for node, is_back in restarts * ROUNDS:
            done = {client: dict(client.counts) for client in clients}
            wait_for(lambda: all(client.counts["PUT"] > done[client]["PUT"] for client in clients),
                     "all are at work")
            c.stop(node)
            c.start(node)
            wait_for(lambda n=node, back=is_back: back(c, n), f"{node} is back in its place")
    finally:
        for client in clients:
            client.over.set()
        for client in clients:
            client.join()
    wrong = [w for client in clients for w in client.wrong]
    counts = {m: sum(client.counts[m] for client in clients) for m in ("GET", "PUT", "DELETE")}
    print(f"        {counts}, {len(wrong)} failed", flush=True)
    check(not wrong, f"{len(wrong)} of {counts} failed: {wrong[:8]}")


def roll_targets(c, bucket):
    roll(c, bucket, [Client(c, bucket, i) for i in range(CLIENTS)],
         [(t, is_synced) for t in c.targets()])


def test_copies(c):
    value = {"action": "setconfig", "name": "repair_delay", "value": "200ms"}
    c.call("PUT", "/v1/cluster", value).expect(200)
    c.create("two", copies=2)
    roll_targets(c, "two")


def test_three_copies(c):
    c.create("three", copies=3)
    roll_targets(c, "three")


def test_slices(c):
    """Two slices and one of parity, on four targets: one of them may be away."""
    c.create("slices", copies=2, ec={"data": 2, "parity": 1, "min_size": 10_000})
    roll_targets(c, "slices")


def is_active(c, node):
    return next(n["state"] for n in c.get_json("/v1/cluster")["nodes"]
                if n["id"] == node) == "active"


def test_a_follower(c):
    c.create("guests", copies=2)
    clients = [GuestOfAProxy(c, "guests", i, ("p1", "p2")[i // 2 % 2]) for i in range(2 * CLIENTS)]
    roll(c, "guests", clients, [("p2", is_active)])
    equal({client.home for client in clients}, {"p1"}, "where clients are in the end")


def test_the_primary(c):
    """Of the embedded metastore: its objects need no primary while it restarts."""
    c.create("subjects", copies=2)
    clients = [GuestOfAProxy(c, "subjects", i, ("p1", "p2")[i // 2 % 2])
               for i in range(2 * CLIENTS)]
    roll(c, "subjects", clients, [("p1", is_active)])
    equal({client.home for client in clients}, {"p2"}, "where clients are in the end")


if __name__ == "__main__":
    main(proxies=2, targets=4)
