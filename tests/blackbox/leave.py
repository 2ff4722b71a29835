#!/usr/bin/env python3
"""Targets leave: for maintenance, and come back; for good; and one that is dead.  What they have is
moved off first while clients read, list and write, also over a kill -9; and what would be lost is
refused."""

import json

from lib import check, equal, in_parallel, main, wait_for
from rebalance import (NAMES, Lister, Loop, Reader, Writer, check_object, check_whole, files,
                       moving, store, wait_settled, COUNT, SECONDS)


def ctl(c, *args, code=0):
    done = c.dfcctl(*args)
    equal(done.returncode, code, f"dfcctl {args}: {done.stdout} {done.stderr}")
    return done


def state_in_map(c, node):
    nodes = c.get_json("/v1/cluster?what=smap")["nodes"]
    return next((n["state"] for n in nodes if n["id"] == node), None)


def test_fill(c):
    c.setting("rebalance_delay", "300ms")
    c.setting("rebalance_keep", "2s")
    c.create("b", durability="async")
    c.create("w")
    in_parallel(lambda name: store(c, "b", name), NAMES)


def test_maintenance_and_back(c):
    writer = Writer(c, "w", 1)
    writer.fill()
    with Loop(Reader(c, "b")) as reader, Loop(Lister(c, "b")) as lister, Loop(writer):
        ctl(c, "node", "maintenance", "start", "t2")
        equal(state_in_map(c, "t2"), "maintenance", "t2")
        wait_settled(c)
    print(f"# t2 has moved off what it had: {reader.rounds} reads, {lister.rounds} pages meanwhile")
    equal(files(c, "t2"), 0, "files of t2")
    writer.check_all()
    c.stop("t2")  # nobody misses it
    check_whole(c, "b")
    c.start("t2")
    with Loop(Reader(c, "b")), Loop(Lister(c, "b")), Loop(writer):
        ctl(c, "node", "maintenance", "stop", "t2")
        wait_settled(c)
    held = sum(files(c, t) for t in c.targets())
    print(f"# t2 is back, and has {files(c, 't2') / held:.4f} of {held} files")
    check(files(c, "t2") > 0, "t2 has nothing")
    writer.check_all()
    check_whole(c, "b")


def test_turned_back_on_the_way(c):
    """What was written while it owned nothing wins over what it still has."""
    writer = Writer(c, "w", 2)
    writer.fill()
    c.setting("rebalance", "off")
    ctl(c, "node", "maintenance", "start", "t1")
    done = ctl(c, "node", "rm", "t1", "--yes", code=1)
    check("moved off" in done.stderr, f"a target that has not moved its objects off: {done.stderr}")
    for _ in range(60):
        writer()
    ctl(c, "node", "maintenance", "stop", "t1")
    writer.check_all()
    for _ in range(60):
        writer()
    job = json.loads(ctl(c, "-o", "json", "cluster", "rebalance").stdout)
    check(job["id"].startswith("rbl-"), f"{job}")
    c.setting("rebalance", "on")
    wait_settled(c)
    writer.check_all()
    check_whole(c, "b")


def test_decommission(c):
    c.setting("rebalance_rate", f"{COUNT * 40}")
    ctl(c, "node", "decommission", "t3", "--yes")
    wait_for(lambda: moving(c) or state_in_map(c, "t3") is None, "a rebalance that moves", SECONDS)
    with Loop(Reader(c, "b", "t3")):
        c.kill("t3", "-9")
        c.start("t3")
    c.setting("rebalance_rate", 0)
    with Loop(Reader(c, "b")), Loop(Lister(c, "b")):
        wait_for(lambda: state_in_map(c, "t3") is None, "t3 gone", SECONDS)
    equal(files(c, "t3"), 0, "files of t3")
    # It asks to be let in again, with what it remembers of the cluster.
    wait_for(lambda: "is not in the map" in c.log("t3"), "a refusal of t3")
    equal(state_in_map(c, "t3"), None, "t3")
    c.stop("t3")
    check_whole(c, "b")


def test_what_would_be_lost_is_refused(c):
    c.setting("rebalance", "off")
    others = [n for n in ("t2", "t3") if state_in_map(c, n) is not None]
    for node in others:
        c.kill(node, "-9")
        c.wait_node(node, "unreachable")
        done = ctl(c, "node", "decommission", node, "--yes", code=1)
        check("repeat this with --force" in done.stderr, done.stderr)
        ctl(c, "node", "maintenance", "start", node, code=1)
    done = ctl(c, "node", "maintenance", "start", "t1", code=1)
    check("no other target" in done.stderr, done.stderr)
    for node in others:
        ctl(c, "node", "decommission", node, "--force", "--yes")
        equal(state_in_map(c, node), None, node)
    ctl(c, "node", "maintenance", "start", "p1", code=2)
    ctl(c, "node", "maintenance", "end", "t1", code=2)
    ctl(c, "node", "decommission", "nobody", "--yes", code=3)
    for name in NAMES[:50]:  # what t1 has is there, what the others had is not, and can be written
        if c.get("b", name).status == 404:
            store(c, "b", name)
        check_object(c, "b", name)


if __name__ == "__main__":
    main(targets=3)
