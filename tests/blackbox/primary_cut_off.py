#!/usr/bin/env python3
"""Three hosts, each with a member of etcd, a proxy and a target; the primary's is cut off from the
others, but not from its clients.  Another one is elected and takes changes; the old one makes none,
and tells its clients to repeat: 503 with Retry-After.  When the network is back it follows.

DFC_CUTS names what is cut: both (ways), in, out, etcd (nothing but etcd's ports); default:
both,etcd."""

import os
import shutil
import threading
import time

import namespaces
from failover import (CREATE, PROXIES, REPEAT, all_know, buckets, change_in_the_end, others,
                      primary, primary_in_the_end)
from lib import check, equal, main, skip, wait_for

CUTS = os.environ.get("DFC_CUTS", "both,etcd").split(",")
ETCD_PORTS = ("-p", "tcp", "-m", "multiport", "--ports", "2379,2380")


def cut(c, kind, host):
    if kind == "etcd":
        c.hosts.cut(host, more=ETCD_PORTS)
    else:
        c.hosts.cut(host, ("in", "out") if kind == "both" else (kind,))


class Client:
    """One that knows only this proxy, and asks it for one new bucket after the other."""

    def __init__(self, c, proxy, stem):
        self.c, self.proxy, self.stem = c, proxy, stem
        self.asked = []  # (name, began, status, code)
        self.wrong = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        try:
            while not self.over.wait(0.05):
                self.one(f"{self.stem}-{len(self.asked)}")
        except Exception as e:  # told by the test's own thread
            self.wrong = e

    def one(self, name):
        began = time.monotonic()
        reply = self.c.call("POST", f"/v1/buckets/{name}", CREATE, node=self.proxy)
        code = None
        if reply.status != 201:
            code = reply.expect(503).json()["code"]
            check(code in REPEAT, f"{reply!r}")
            check(int(reply.headers["Retry-After"]) > 0, f"{reply!r} has no Retry-After")
        self.asked.append((name, began, reply.status, code))

    def names(self, status, *codes):
        return {name for name, _, s, code in self.asked
                if s == status and (not codes or code in codes)}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *failed):
        self.over.set()
        self.thread.join()
        if self.wrong is not None and failed[0] is None:
            raise self.wrong


def others_are_served(c, old):
    """Through every proxy, also that which is cut off: objects of the targets that are not."""
    for name in (n for n in c.kept if c.kept[n] != "t" + old[1:]):
        for proxy in PROXIES:
            equal(c.get("kept", name, node=proxy).expect(200).body, name.encode(),
                  f"{name} by {proxy}")


def term_of(c, proxy):
    return c.get_json("/v1/cluster?what=state", proxy)["term"]


def a_primary_is_cut_off(c, kind):
    old = primary_in_the_end(c)
    left = others(old)
    term = term_of(c, left[0])
    with Client(c, old, f"{kind}-old") as client:
        wait_for(lambda: client.names(201), "it is at work")
        cut(c, kind, c.host(old))
        began = time.monotonic()
        change_in_the_end(c, "POST", f"{kind}-new", left[0])
        taken = time.monotonic() - began
        new = primary(c, left)
        check(new, "another one is primary")
        next_term = term_of(c, new)
        check(next_term > term, "its term is greater")
        change_in_the_end(c, "POST", f"{kind}-new2", left[1])
        wait_for(lambda: primary(c, [old]) is None, f"{old} knows that it is not the primary")
        since = time.monotonic()
        others_are_served(c, old)
        if kind != "etcd":
            wait_for(lambda: any(at > since for _, at, _, _ in client.asked), "it is asked again")
            made = [a for a in client.asked if a[1] > began and a[2] == 201]
            late = [a for a in made if a[1] > since]
            check(not late, f"{old} took changes without a lease: {late}")
        c.hosts.heal(c.host(old))
        healed = time.monotonic()
        wait_for(lambda: any(at > healed and s == 201 for _, at, s, _ in client.asked),
                 f"{old} passes changes on")
    if primary(c, [old]):
        check(
            term_of(c, old) > next_term, f"{old} came back as a primary, and was not elected anew")
    certain = client.names(201) | {f"{kind}-new", f"{kind}-new2"}
    never = client.names(503, "not_primary", "not_ready")
    for proxy in PROXIES:
        wait_for(lambda p=proxy: certain <= buckets(c, p), f"{proxy} knows {certain}")
        both = never & buckets(c, proxy)
        check(not both, f"{proxy} has what was refused: {both}")
    print(f"        {kind}: cut off, changes were taken after {taken:.2f} s; the old primary told "
          f"{len(client.names(503))} times to repeat, {len(client.names(503, 'in_doubt'))} of them "
          f"in doubt")
    for name in buckets(c, old) - {"kept"}:
        change_in_the_end(c, "DELETE", name, old)
    all_know(c, {"kept"})
    for target in c.targets():
        c.wait_node(target, "active")


def test_prepare(c):
    """Objects of every target."""
    c.create("kept")
    c.kept = {}
    for i in range(30):
        c.put("kept", f"o{i}", f"o{i}".encode())
        c.kept[f"o{i}"] = c.owner("kept", f"o{i}")
    equal(set(c.kept.values()), set(c.targets()), "owners")


def test_primaries_are_cut_off(c):
    for kind in CUTS:
        a_primary_is_cut_off(c, kind)


def test_nothing_was_lost(c):
    for name in c.kept:
        equal(c.get("kept", name).expect(200).body, name.encode(), name)
    equal(c.names("kept"), sorted(c.kept), "names")


if __name__ == "__main__":
    if shutil.which("etcd") is None:
        skip("there is no etcd (Debian: etcd-server)")
    namespaces.enter("--net")
    main(make=namespaces.HostCluster, count=3)
