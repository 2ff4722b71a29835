#!/usr/bin/env python3
"""Makers push into a ring and a reader follows its head, while targets are killed (kill -9), the
keeper among them.

Each generation has exactly cap samples and begins in each lane where the last one ended.  The head
never goes back, and never goes away.  Every acknowledged sample is in a generation, with its bytes.
A sample is there twice only if its push was repeated.

DFC_SECONDS (20): for how long."""

import contextlib
import glob
import hashlib
import itertools
import os
import random
import threading
import time
from collections import Counter

import ring_lib as ring
from lib import Http, check, equal, main, wait_for

SECONDS = float(os.environ.get("DFC_SECONDS", 20))
CAP, KEEP, MAKERS, PATIENCE = 5, 16, 4, 60
AHEAD = CAP * (KEEP // 2)


class Node:
    """The cluster as one thread uses it: connections of its own."""

    def __init__(self, c):
        self.c, self.http = c, Http()

    def call(self, method, path, body=None, **options):
        return self.http.request(method, self.c.url() + path, body, **options)

    def patiently(self, method, path, body=None, wanted=(200, 201)):
        """Until it is done; how often it was repeated, and the reply."""
        until = time.monotonic() + PATIENCE
        for tries in range(1 << 30):
            with contextlib.suppress(OSError):
                reply = self.call(method, path, body, timeout=20)
                if reply.status in wanted:
                    return tries, reply
                check(reply.status in (429, 503, 502, 410) or reply.json()["code"] == "stale_map", repr(reply))
            check(time.monotonic() < until, f"{method} {path} was not done in {PATIENCE} s")
            time.sleep(0.02)


def body_of(name):
    data = hashlib.sha256(name.encode()).digest() * 50
    return {"name": name.encode(), "data": data}


def name_of(sample):
    name = bytes(sample.kinds["name"].data).decode()
    equal(bytes(sample.kinds["data"].data), body_of(name)["data"], f"bytes of {name}")
    return name


class Run:
    def __init__(self, c, followers=("head",)):
        self.c = c
        self.stop = threading.Event()
        self.acknowledged, self.repeated = [], set()
        self.generations = {}
        self.failed = []
        self.totals = dict.fromkeys(followers, 0)  # samples in generations, by the last head of each

    def guarded(self, fn, *args):
        def body():
            try:
                fn(*args)
            except BaseException as e:  # pylint: disable=broad-except
                self.failed.append(e)
                self.stop.set()
        thread = threading.Thread(target=body)
        thread.start()
        return thread

    def seen(self):
        """Samples in generations that each follower has seen."""
        return min(self.totals.values())

    def make(self, maker):
        node, dice = Node(self.c), random.Random(maker)
        for sequence in range(1 << 30):
            # So many generations are kept, and each is to be seen.
            while len(self.acknowledged) - self.seen() > AHEAD and not self.stop.is_set():
                time.sleep(0.005)
            if self.stop.is_set():
                return
            names = [f"{maker}-{sequence}-{i}" for i in range(dice.randrange(1, 4))]
            path = f"/v1/rings/ring/samples?producer=m{maker}&sequence={sequence}"
            tries, _ = node.patiently("POST", path, ring.frames(*map(body_of, names)))
            self.acknowledged += names
            if tries > 0:
                self.repeated.update(names)

    def follow(self):
        """Notes each generation of each head, as fast as it can."""
        node, last = Node(self.c), 0
        while not self.stop.is_set():
            last = self.look(node, last)

    def look(self, node, last):
        _, reply = node.patiently("GET", "/v1/objects/ring/head", wanted=(200,))
        return self.note("head", reply.json(), last)

    def note(self, follower, head, last):
        """No head is older than the last one that it has seen.  One of `followers` misses no generation."""
        check(head["generation"] >= last, f"the head went back from {last}")
        kept = [g["generation"] for g in head["generations"]]
        check(follower not in self.totals or last + 1 >= kept[0],
              f"generations between {last} and {kept[0]} were missed")
        for g in head["generations"]:
            equal(self.generations.setdefault(g["generation"], g), g, "a generation that was seen")
        if follower in self.totals:
            self.totals[follower] = head["samples_total"]
        return head["generation"]


def kill_some(c, run):
    until = time.monotonic() + SECONDS
    kills = 0
    while time.monotonic() < until and not run.stop.is_set():
        time.sleep(random.uniform(0.5, 2))
        target = random.choice(c.targets())
        c.kill(target)
        time.sleep(random.uniform(0, 1.5))
        c.start(target)
        c.wait_node(target, "active")
        kills += 1
    return kills


def check_cuts(run):
    """Each lane's cuts follow one another."""
    numbers = sorted(run.generations)
    equal(numbers, list(range(1, len(numbers) + 1)), "numbers of generations")
    ends = Counter()
    for number in numbers:
        for cut in run.generations[number]["cuts"]:
            equal(cut["from"], ends[cut["lane"]], f"generation {number}, lane {cut['lane']}")
            ends[cut["lane"]] = cut["to"]


def test_no_acknowledged_sample_is_lost(c):
    c.create("ring", copies=2, ring={"cap": CAP, "keep": KEEP})
    ring.push(c, "ring", ring.frames(*(body_of(f"first-{i}") for i in range(CAP)))).expect(201)
    ring.wait_generation(c, "ring", 1)
    run = Run(c)
    run.acknowledged += [f"first-{i}" for i in range(CAP)]
    makers = [run.guarded(run.make, i) for i in range(MAKERS)]
    follower = run.guarded(run.follow)
    kills = kill_some(c, run)
    stopped = run.stop.is_set()
    run.stop.set()
    for thread in (*makers, follower):
        thread.join()
    if run.failed:
        raise run.failed[0]
    check(not stopped, "a thread has ended early")
    finish(c, run)
    print(f"        {kills} kills, {len(run.generations)} generations, "
          f"{len(run.acknowledged)} samples, {len(run.repeated)} of pushes that were repeated")


def is_swept(node):
    """Swaps what is left; True: nothing is left."""
    _, reply = node.patiently("PUT", "/v1/rings/ring/generation", wanted=(200, 404))
    return reply.status == 404


def finish(c, run):
    node = Node(c)
    total = len(run.acknowledged)
    wait_for(lambda: is_swept(node) and ring.head(c, "ring")["samples_total"] >= total,
             "all samples in generations", PATIENCE)
    run.look(node, max(run.generations))
    check_cuts(run)
    sizes = [ring.size_of(run.generations[n]) for n in sorted(run.generations)]
    short = [i for i, size in enumerate(sizes) if size != CAP]
    check(all(size <= CAP for size in sizes), f"sizes {sizes}")
    check(all(i >= len(sizes) - KEEP for i in short), f"generations {short} are short: {sizes}")

    def call(method, path):
        return node.patiently(method, path, wanted=(200,))[1]
    found = Counter(name_of(s) for n in sorted(run.generations)
                    for cut in run.generations[n]["cuts"]
                    for s in ring.read_cut(c, "ring", cut, call))
    lost = set(run.acknowledged) - set(found)
    check(not lost, f"lost: {sorted(lost)[:5]} and so on, {len(lost)}")
    twice = {name for name, count in found.items() if count > 1}
    check(twice <= run.repeated, f"twice, though pushed once: {sorted(twice - run.repeated)[:5]}")
    check(len(run.acknowledged) > 100, "too little was pushed to show anything")


# What callers of a ring are told while it is removed, and there is a new one of its name.
TOLD = {201, 200, 404, 410, 429, 503}


def load(run, number, act):
    """Until the run stops: the statuses of act(node, count)."""
    node = Node(run.c)
    for count in itertools.count():
        if run.stop.is_set():
            return
        try:
            status = act(node, number, count).status
        except OSError:  # the target was killed
            continue
        run.told[status] += 1
        check(status in TOLD, f"status {status} of {act.__name__}")


def push_some(node, number, count):
    path = f"/v1/rings/gone/samples?producer=m{number}&sequence={count}&wait=200ms"
    return node.call("POST", path, ring.frames(*(body_of(f"{number}-{count}-{i}") for i in range(3))))


def wait_some(node, _number, _count):
    return node.call("GET", "/v1/rings/gone/status?after=1000000&wait=5s")


def read_some(node, _number, _count):
    reply = node.call("GET", "/v1/objects/gone/head")
    newest = reply.json()["generations"][-1:] if reply.status == 200 else []
    for cut in (cut for g in newest for cut in g["cuts"]):
        reply = node.call("GET", f"/v1/rings/gone/samples?lane={cut['lane']}&from={cut['from']}")
        if reply.status == 200:
            check([name_of(s) for s in ring.samples_of(reply.body)], "samples of a reply")
    return reply


def ring_folders(c, number):
    return [path for t in c.targets()
            for path in glob.glob(os.path.join(c.node_dir(t), "mp*", ".dfc", "ring", str(number)))]


def test_a_ring_is_removed_under_load(c):
    """Callers are told so, files go, also those of a target that was away, and a new ring of the
    name has nothing of the old one."""
    run = Run(c)
    run.told = Counter()
    acts = [push_some] * 3 + [wait_some, read_some]
    c.create("gone", copies=2, ring="cap=5,keep=1,bytes_max=4MiB")
    threads = [run.guarded(load, run, i, act) for i, act in enumerate(acts)]
    try:
        for round_ in range(4):
            number = c.get_json("/v1/buckets/gone")["id"]
            ring.wait_generation(c, "gone", 3)
            check(ring_folders(c, number), "the ring has files")
            if round_ == 2:
                c.kill("t2")
            c.destroy("gone")
            c.create("gone", copies=2, ring="cap=5,keep=1,bytes_max=4MiB")
            if round_ == 2:
                c.start("t2")
                c.wait_node("t2", "active")
            wait_for(lambda n=number: not ring_folders(c, n), "the end of its files")
            if run.failed:
                raise run.failed[0]
        h = ring.wait_generation(c, "gone", 1)
        lanes = {cut["lane"] for g in h["generations"] for cut in g["cuts"]}
        check(lanes <= {lane["lane"] for lane in h["lanes"]}, "lanes of the new ring")
    finally:
        run.stop.set()
        for thread in threads:
            thread.join()
    if run.failed:
        raise run.failed[0]
    check(run.told[201] > 20 and run.told[404] + run.told[503] > 0, f"{run.told}")
    print(f"        replies: {dict(sorted(run.told.items()))}")


if __name__ == "__main__":
    main(targets=3, mountpaths=2, args=("--target-arg=--ring-grace=10m",))
