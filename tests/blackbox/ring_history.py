#!/usr/bin/env python3
"""A ring of two samples a generation, which swaps as fast as makers push, while the target that leads
its head changes: it is put into maintenance, again and again.  What is pushed, and what a reader sees
in each head, is judged as in ring_kills.py; the head has two copies.

A second reader waits for each next generation by a long poll: it never sees an older one, and misses none.

DFC_SECONDS (8): for how long."""

import os
import random
import time

import ring_kills as kills
import ring_lib as ring
from lib import check, equal, main, wait_for

HEARTBEAT = 60  # seconds: what has to come soon does not wait for it
SECONDS = float(os.environ.get("DFC_SECONDS", 8))
kills.CAP = 2
kills.AHEAD = kills.CAP * (kills.KEEP // 2)


def poll(run):
    """Each reply has a later generation, or the time is over."""
    node, last = kills.Node(run.c), 0
    while not run.stop.is_set():
        path = f"/v1/rings/ring/status?after={last}&wait=1s"
        last = run.note("poll", node.patiently("GET", path, wanted=(200,))[1].json()["head"], last)


def look(run):
    """The head as an object never goes back, and has what the others have seen."""
    node, last = kills.Node(run.c), 0
    while not run.stop.wait(0.05):
        last = run.look(node, last)


def resume(run):
    """An operator's call, which stores a head: done, or to be repeated, whatever the keeper's lot is."""
    node = kills.Node(run.c)
    while not run.stop.wait(0.2):
        reply = node.call("PUT", "/v1/rings/ring/resume")
        check(reply.status in (200, 503) or reply.json()["code"] == "stale_map", repr(reply))


def keeper_of(c, name="ring"):
    reply = ring.status(c, name)
    return reply.json()["keeper"] if reply.status == 200 else None


def fill_of(c, name):
    reply = ring.status(c, name)
    return reply.json()["fill"] if reply.status == 200 else None


def change_keepers(c, run):
    until, changes = time.monotonic() + SECONDS, 0
    while time.monotonic() < until and not run.stop.is_set():
        wait_for(lambda: keeper_of(c) is not None, "a keeper")
        old = keeper_of(c) or random.choice(c.targets())
        for verb in ("start", "stop"):
            done = c.dfcctl("node", "maintenance", verb, old)
            equal(done.returncode, 0, f"maintenance {verb}: {done.stderr}")
            if verb == "start":
                wait_for(lambda: keeper_of(c) not in (None, old), "another keeper")
                changes += 1
    return changes


def test_swaps_while_the_keeper_changes(c):
    c.create("ring", copies=2, ring={"cap": kills.CAP, "keep": kills.KEEP})
    ring.push(c, "ring", ring.frames(*(kills.body_of(f"first-{i}") for i in range(kills.CAP)))).expect(201)
    ring.wait_generation(c, "ring", 1)
    run = kills.Run(c, ("poll",))
    run.acknowledged += [f"first-{i}" for i in range(kills.CAP)]
    threads = [run.guarded(run.make, i) for i in range(kills.MAKERS)]
    threads += [run.guarded(look, run), run.guarded(poll, run), run.guarded(resume, run)]
    began = time.monotonic()
    changes = change_keepers(c, run)
    seconds = time.monotonic() - began
    stopped = run.stop.is_set()
    run.stop.set()
    for thread in threads:
        thread.join()
    if run.failed:
        raise run.failed[0]
    check(not stopped, "a thread has ended early")
    swaps = len(run.generations)
    kills.finish(c, run)
    print(f"        {changes} changes of the keeper, {swaps} swaps, {swaps / seconds:.0f} a second")
    check(changes > 0, "the keeper has changed")


def test_the_next_keeper_knows_all_samples(c):
    """Long before the next heartbeat: targets report to it when the map changes."""
    c.create("few", copies=2, ring="cap=1000")
    for i in range(24):
        ring.push(c, "few", ring.frames({"i": b"%d" % i}), f"m{i}").expect(201)
    wait_for(lambda: fill_of(c, "few") == 24, "24 samples", HEARTBEAT / 2)
    for _ in range(3):
        keeper = ring.status(c, "few").expect(200).json()["keeper"]
        for verb in ("start", "stop"):
            equal(c.dfcctl("node", "maintenance", verb, keeper).returncode, 0, f"maintenance {verb}")
            if verb == "start":
                wait_for(lambda k=keeper: keeper_of(c, "few") not in (None, k), "another keeper")
            wait_for(lambda: fill_of(c, "few") == 24, "24 samples", HEARTBEAT / 2)


if __name__ == "__main__":
    main(targets=4, mountpaths=1, args=("--target-arg=--ring-grace=10m",
                                        f"--target-arg=--ring-heartbeat={HEARTBEAT}s"))
