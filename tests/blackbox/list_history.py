#!/usr/bin/env python3
"""A list shows every object whose PUT was acknowledged before the list began, also while objects
move: a target joins, one leaves for maintenance and comes back, one leaves for good, and nodes are
killed on the way.  Plogs rest on it: they find their segments by lists.

Writers put new names all the time, as the segments and records of plogs are named.  Listers note
what is acknowledged, list a prefix page by page, and compare.  A list may be refused, never short.
"""

import contextlib
import http.client
import itertools
import random
import threading
import urllib.parse

from leave import ctl, state_in_map
from lib import check, equal, main, wait_for
from rebalance import Loop, moving, settled, wait_settled

CUT = (OSError, http.client.HTTPException)
BUSY = (409, 429, 500, 502, 503, 504)
FILL = 500
SECONDS = 600
CASES = {"one": 1, "two": 2}  # buckets and their copies


class History:
    """Names whose PUT was acknowledged, and whose removal has not begun."""

    def __init__(self):
        self.lock, self.there = threading.Lock(), set()

    def begin_removal(self, name):
        with self.lock:
            self.there.discard(name)

    def acknowledge(self, name):
        with self.lock:
            self.there.add(name)

    def below(self, prefix):
        with self.lock:
            return {name for name in self.there if name.startswith(prefix)}


class Writer:
    """Puts names that sort anywhere among those that are there; removes one now and then."""

    def __init__(self, c, bucket, history, seed):
        self.c, self.bucket, self.history, self.seed = c, bucket, history, seed
        self.rng, self.number, self.mine = random.Random(seed), 0, []

    def ask(self, method, name, body=None):
        def answer():
            try:
                reply = self.c.object(method, self.bucket, name, body)
            except CUT:
                return None
            return None if reply.status in BUSY else reply

        return wait_for(answer, f"an answer to {method} {name}", SECONDS)

    def __call__(self):
        self.number += 1
        name = (f".dfc-plog/{self.rng.randrange(4):032x}/s/{self.rng.randrange(1 << 32):08x}-"
                f"{self.seed:x}-{self.number:x}")
        self.ask("PUT", name, name.encode()).expect(200)
        self.history.acknowledge(name)
        self.mine.append(name)
        if len(self.mine) > 50 and self.rng.random() < 0.3:
            gone = self.mine.pop(self.rng.randrange(len(self.mine)))
            self.history.begin_removal(gone)
            check(self.ask("DELETE", gone).status in (204, 404), f"DELETE of {gone}")


class Lister:
    """Lists what is below a prefix, and compares it with what was there when the list began."""

    def __init__(self, c, bucket, history, seed):
        self.c, self.bucket, self.history = c, bucket, history
        self.rng, self.lists = random.Random(seed), 0

    def names(self, **query):
        """All pages; None: the list was refused."""
        names, token = [], ""
        while True:
            asked = urllib.parse.urlencode(query | ({"token": token} if token else {}))
            try:
                reply = self.c.call("GET", f"/v1/objects/{self.bucket}?{asked}")
            except CUT:
                return None
            if reply.status in BUSY:
                return None
            page = reply.expect(200).json()
            names += [e["name"] for e in page["entries"]]
            token = page["next"]
            if not token:
                return names

    def __call__(self):
        prefix = f".dfc-plog/{self.rng.randrange(4):032x}/s/"
        before = self.history.below(prefix)
        listed = self.names(prefix=prefix, limit=self.rng.choice((7, 50, 1000)))
        if listed is None:
            return
        self.lists += 1
        lacking = (before - set(listed)) & self.history.below(prefix)
        equal(sorted(lacking), [], f"acknowledged names that a list of {prefix} lacks")
        equal(listed, sorted(set(listed)), "names of a list, in order and each once")


SEEDS = itertools.count(1)
histories = {bucket: History() for bucket in CASES}


def watch(c, change):
    """change(), with writers and listers of all buckets at work."""
    listers = []
    with contextlib.ExitStack() as loops:
        for bucket, history in histories.items():
            listers += [Lister(c, bucket, history, next(SEEDS)) for _ in range(2)]
            for _ in range(2):
                loops.enter_context(Loop(Writer(c, bucket, history, next(SEEDS))))
        for lister in listers:
            loops.enter_context(Loop(lister))
        change()
    print(f"# {sum(lister.lists for lister in listers)} lists")
    check(all(lister.lists > 0 for lister in listers), "a lister has seen no list")


def move(c, begin):
    """What begin() begins is slow enough to be watched, and comes to its end."""
    c.setting("rebalance_rate", f"{FILL * 20}")
    begin()
    wait_for(lambda: moving(c) or settled(c), "a rebalance that moves", SECONDS)
    c.setting("rebalance_rate", 0)
    wait_settled(c)


def test_fill(c):
    c.setting("rebalance_delay", "300ms")
    c.setting("rebalance_keep", "2s")
    c.setting("rebalance_streams", 1)
    for bucket, copies in CASES.items():
        c.create(bucket, copies=copies)
        writer = Writer(c, bucket, histories[bucket], next(SEEDS))
        for _ in range(FILL):
            writer()


def test_a_target_joins(c):
    watch(c, lambda: move(c, c.add_target))


def test_maintenance_and_back(c):
    watch(c, lambda: move(c, lambda: ctl(c, "node", "maintenance", "start", "t2")))
    watch(c, lambda: move(c, lambda: ctl(c, "node", "maintenance", "stop", "t2")))


def test_a_target_is_killed_on_the_way(c):
    def change():
        c.setting("rebalance_rate", f"{FILL * 20}")
        name = c.add_target()
        wait_for(lambda: moving(c) or settled(c), "a rebalance that moves", SECONDS)
        for victim in ("t1", name):
            c.kill(victim, "-9")
            c.start(victim)
            c.wait_node(victim, "active")
        c.setting("rebalance_rate", 0)
        wait_settled(c)

    watch(c, change)


def test_decommission(c):
    def change():
        move(c, lambda: ctl(c, "node", "decommission", "t3", "--yes"))
        wait_for(lambda: state_in_map(c, "t3") is None, "t3 has left", SECONDS)

    watch(c, change)


def test_the_end(c):
    for bucket, history in histories.items():
        equal(c.names(bucket, prefix=".dfc-plog/"), sorted(history.below("")), "all names")


if __name__ == "__main__":
    main(targets=3)
