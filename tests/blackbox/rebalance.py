#!/usr/bin/env python3
"""A fourth target joins three while clients read, list, write and delete: every object is readable
and every page complete all the time, what was written or deleted meanwhile stays so, and a kill -9
of any node on the way only delays the end.

DFC_REBALANCE_OBJECTS=20000 makes it as large as that, and then the share that moves is checked,
too."""

import http.client
import os
import random
import threading

from lib import check, equal, in_parallel, main, wait_for
from user_meta import NO_META, random_meta

COUNT = int(os.environ.get("DFC_REBALANCE_OBJECTS", "600"))
LARGE = COUNT >= 10000
NAMES = [f"o/{i:05d}" for i in range(COUNT)]
SECONDS = 600
CUT = (OSError, http.client.HTTPException)


def contents(name):
    return name.encode() * 20


def meta_of(name):
    """Every third object has some."""
    rng = random.Random(name)
    return random_meta(rng) if rng.random() < 1 / 3 else NO_META


def store(c, bucket, name):
    c.put(bucket, name, contents(name), meta_of(name).headers)


def check_object(c, bucket, name):
    reply = c.get(bucket, name).expect(200)
    equal(reply.body, contents(name), name)
    meta_of(name).check(reply, name)


def smap(c):
    return c.get_json("/v1/cluster?what=smap")


def settled(c):
    return not smap(c).get("earlier")


def wait_settled(c):
    wait_for(lambda: settled(c), "the end of the moves", SECONDS)


def jobs(c):
    return c.get_json("/v1/jobs?kind=rebalance")["jobs"]


def moving(c):
    """Is a rebalance under way that has moved something?"""
    return any(j["state"] == "running" and j["progress"]["objects"]["done"] > 0 for j in jobs(c))


class Loop:
    """Calls step() again and again in a thread, until the end of the with; says what it raised."""

    def __init__(self, step, rest=0.0):
        self.step, self.over, self.failure, self.rounds = step, threading.Event(), None, 0
        self.rest = rest
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.over.wait(self.rest):
            try:
                self.step()
                self.rounds += 1
            except Exception as e:  # told by __exit__
                self.failure = e
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *failed):
        self.over.set()
        self.thread.join()
        if self.failure is not None and failed[0] is None:
            raise self.failure


class Reader:
    """Reads all objects, one after the other, by redirects and through the proxy in turn."""

    def __init__(self, c, bucket, may_refuse=None):
        self.c, self.bucket, self.at, self.may_refuse = c, bucket, 0, may_refuse

    def __call__(self):
        name = NAMES[self.at % COUNT]
        headers = {"Dfc-Redirect": "never"} if self.at % 2 else None
        self.at += 1
        try:
            reply = self.c.get(self.bucket, name, headers=headers)
        except CUT:
            check(self.may_refuse is not None, f"{name}: cut")
            return
        if self.may_refuse is not None and reply.status in (502, 503, 504):
            named = (f"'{self.may_refuse}'", f'"{self.may_refuse}"', self.c.url(self.may_refuse))
            check(any(n in reply.body.decode() for n in named), f"{reply!r} names another node "
                                                                f"than {self.may_refuse}")
            return
        equal(reply.expect(200).body, contents(name), name)
        meta_of(name).check(reply, name)


class Lister:
    """Every page is complete, in order, without anything twice."""

    def __init__(self, c, bucket):
        self.c, self.bucket, self.rng = c, bucket, random.Random(1)

    def __call__(self):
        limit = self.rng.choice((7, 100, 1000)) if not LARGE else 1000
        after = self.rng.choice(NAMES)
        page = self.c.get_json(f"/v1/objects/{self.bucket}?limit={limit}&start_after={after}")
        at = NAMES.index(after) + 1
        got = [e["name"] for e in page["entries"]]
        equal(got, NAMES[at:at + len(got)], f"a page of {limit} behind {after}")
        check(got or at == COUNT or page["next"], f"nothing behind {after}, and no next page")


class Writer:
    """Overwrites and deletes names of its own, and knows what each has to be."""

    def __init__(self, c, bucket, seed):
        self.c, self.bucket, self.rng = c, bucket, random.Random(seed)
        self.names = [f"w{seed}/{i}" for i in range(40)]
        self.want = {}
        self.number = 0

    def fill(self):
        for name in self.names:
            self.put(name)

    def ask(self, method, name, body=None, headers=None):
        """Who is asked at the moment of the change may say: ask again (dfcctl does, by itself)."""
        def answer():
            reply = self.c.object(method, self.bucket, name, body, headers)
            return None if reply.status in (409, 503) else reply

        return wait_for(answer, f"an answer to {method} {name}")

    def put(self, name):
        self.number += 1
        body = f"{name} {self.number}".encode()
        meta = random_meta(self.rng)
        self.ask("PUT", name, body, meta.headers).expect(200)
        self.want[name] = body, meta

    def __call__(self):
        name = self.rng.choice(self.names)
        action = self.rng.random()
        if action < 0.4:
            self.put(name)
        elif action < 0.6:
            self.ask("DELETE", name).expect(204 if name in self.want else 404)
            self.want.pop(name, None)
        else:
            self.read(name)

    def read(self, name):
        reply = self.ask("GET", name)
        if name in self.want:
            body, meta = self.want[name]
            equal(reply.expect(200).body, body, name)
            meta.check(reply, name)
        else:
            reply.expect(404, "object_not_found")

    def check_all(self):
        for name in self.names:
            self.read(name)
        equal(self.c.names(self.bucket, prefix=self.names[0].split("/")[0] + "/"),
              sorted(self.want), "names")


def check_whole(c, bucket):
    in_parallel(lambda name: check_object(c, bucket, name), NAMES)
    equal(c.names(bucket, limit=1000), NAMES, "names")


def files(c, target):
    return len(list(c.object_files(target)))


def test_fill(c):
    c.setting("rebalance_delay", "300ms")
    c.create("b", durability="async")
    c.create("w")
    in_parallel(lambda name: store(c, "b", name), NAMES)


def test_a_target_joins(c):
    writers = [Writer(c, "w", seed) for seed in (1, 2)]
    for w in writers:
        w.fill()
    with Loop(Reader(c, "b")) as reader, Loop(Lister(c, "b")) as lister, \
            Loop(writers[0]), Loop(writers[1]):
        name = c.add_target()
        wait_settled(c)
    check(reader.rounds > 0 and lister.rounds > 0, "nobody read")
    for w in writers:
        w.check_all()
    check_whole(c, "b")
    job = jobs(c)[-1]
    equal(job["state"], "finished", "the job")
    check(job["progress"]["objects"]["done"] > 0, "nothing was moved")
    held = sum(files(c, t) for t in c.targets())
    share = files(c, name) / held
    print(f"# {name} has {share:.4f} of {held} files; {reader.rounds} reads, "
          f"{lister.rounds} pages")
    check(abs(share - 1 / 4) < (0.02 if LARGE else 0.1), f"{name} has {share} of the objects")
    check(held <= COUNT + 80, f"{held} files of {COUNT + 80} names")


def test_a_kill_in_the_middle(c):
    """Another one joins; its share is sent slowly, and each side of a move is killed."""
    writer = Writer(c, "w", 3)
    writer.fill()
    c.setting("rebalance_streams", 1)
    c.setting("rebalance_rate", f"{COUNT * 40}")  # a fifth of some 140 bytes each: a second or so
    name = c.add_target()
    for victim in ("t1", name):
        wait_for(lambda: moving(c) or settled(c), "a rebalance that moves", SECONDS)
        with Loop(Reader(c, "b", victim)):
            c.kill(victim, "-9")
            c.start(victim)
            c.wait_node(victim, "active")
    c.setting("rebalance_rate", 0)
    with Loop(Reader(c, "b")), Loop(Lister(c, "b")), Loop(writer):
        wait_settled(c)
    writer.check_all()
    check_whole(c, "b")


def test_the_primary_is_killed_in_the_middle(c):
    c.setting("rebalance_rate", f"{COUNT * 20}")
    name = c.add_target()
    wait_for(lambda: moving(c) or settled(c), "a rebalance that moves", SECONDS)
    c.kill("p1", "-9")
    c.start("p1")
    c.setting("rebalance_rate", 0)
    wait_settled(c)
    check_whole(c, "b")
    check(files(c, name) > 0, f"{name} has nothing")


if __name__ == "__main__":
    main(targets=3)
