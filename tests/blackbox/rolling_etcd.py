#!/usr/bin/env python3
"""Proxies that share etcd are restarted one after the other, the primary first, under load.
Clients change buckets, read what only the primary knows, and use objects, at each proxy.  No
request fails: a change waits for the next primary, which takes its time to begin, also where it comes
back to a proxy that has passed it on.  Clients go to another proxy only when their own refuses the
connection.  DFC_ROUNDS (1) says how often each proxy is restarted."""

import os
import shutil
import threading
import time

from lib import check, equal, main, skip, wait_for
from rolling import OnceHttp

PROXIES = ("p1", "p2", "p3")
ROUNDS = int(os.environ.get("DFC_ROUNDS", "1"))
CREATE = b'{"action": "create"}'


class Guest(threading.Thread):
    """Makes and removes a bucket, and puts and gets an object; what goes wrong is noted."""

    def __init__(self, c, number):
        super().__init__()
        self.c, self.number = c, number
        self.home = PROXIES[number % len(PROXIES)]
        self.http = OnceHttp()
        self.over = threading.Event()
        self.changes = 0
        self.longest = 0.0
        self.wrong = []

    def ask(self, method, path, body, *statuses):
        """At its proxy, or at the next one that does not refuse the connection."""
        began = time.monotonic()
        for _ in PROXIES:
            try:
                reply = self.http.request(method, self.c.url(self.home) + path, body)
                break
            except ConnectionRefusedError:
                self.home = PROXIES[(PROXIES.index(self.home) + 1) % len(PROXIES)]
        check(reply.status in statuses, f"{method} {path} at {self.home}: {reply!r}")
        self.longest = max(self.longest, time.monotonic() - began)
        return reply

    def one(self):
        name = f"guest{self.number}-{self.changes}"
        self.ask("POST", f"/v1/buckets/{name}", CREATE, 201)
        self.ask("GET", "/v1/jobs", None, 200)
        self.ask("PUT", f"/v1/objects/kept/o{self.number}?redirect=never", name.encode(), 200)
        reply = self.ask("GET", f"/v1/objects/kept/o{self.number}?redirect=never", None, 200)
        equal(reply.body, name.encode(), "the last that was put")
        self.ask("DELETE", f"/v1/buckets/{name}", None, 204)
        self.changes += 1

    def run(self):
        while not self.over.is_set():
            try:
                self.one()
            except Exception as e:  # told by the test's own thread
                self.wrong.append(repr(e))
                self.number += 100  # other names
        self.http.close()


def primary(c):
    for proxy in PROXIES:
        reply = c.call("GET", "/v1/daemon", node=proxy)
        if reply.status == 200 and reply.json()["primary"]:
            return proxy
    return None


def is_back(c, node):
    nodes = c.get_json("/v1/cluster")["nodes"]
    return all(n["state"] == "active" for n in nodes) and \
        c.call("GET", "/v1/health", node=node).status == 200


def restart(c, node, guests):
    done = [guest.changes for guest in guests]
    wait_for(lambda: all(g.changes > n for g, n in zip(guests, done)), "all are at work")
    c.stop(node)
    c.start(node)
    wait_for(lambda: is_back(c, node), f"{node} is back in its place")


def test_proxies(c):
    c.create("kept")
    first = primary(c)
    guests = [Guest(c, i) for i in range(2 * len(PROXIES))]
    for guest in guests:
        guest.start()
    try:
        for node in (first, *(p for p in PROXIES if p != first)) * ROUNDS:
            restart(c, node, guests)
    finally:
        for guest in guests:
            guest.over.set()
        for guest in guests:
            guest.join()
    wrong = [w for guest in guests for w in guest.wrong]
    print(f"        {sum(g.changes for g in guests)} rounds of changes, the longest request took "
          f"{max(g.longest for g in guests):.2f} s", flush=True)
    check(not wrong, f"{len(wrong)} failed: {wrong[:8]}")


if __name__ == "__main__":
    if shutil.which("etcd") is None:
        skip("there is no etcd (Debian: etcd-server)")
    main(proxies=3, targets=2, metastore="etcd",
         args=("--proxy-arg=--faults=primary.begin=delay:300",))
