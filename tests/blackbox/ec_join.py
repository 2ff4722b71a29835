#!/usr/bin/env python3
"""Targets join a cluster whose objects are in slices (docs/design/erasure-coding.md): the slices
that they would have by a write of today move to them, and only these, while clients read and write;
of each slice there is one all the time, and also where a target is killed meanwhile.  Every object
is readable then with any one target dead.

Two slices of data and one of parity on three targets, to which two more come.  DFC_KILLS (1): how
many of the old targets are dead, each alone, at the end."""

import os
import random
import re

from ec import SLICES, check_all, check_object, create, put, repair, smap, wait_repaired
from lib import check, contents, equal, main, wait_for
from rebalance import Loop

SECONDS = 240
OBJECTS = 24
ATTRIBUTE = "user.dfc"


def slices_of(c, bucket):
    """{slice's name: {target: its bytes}}.  One that is about to join is looked at, too, and last:
    moves are to it alone, so that each slice is seen."""
    number = c.get_json(f"/v1/buckets/{bucket}")["id"] | 1 << 62
    found = {}
    for t in sorted(name for name in os.listdir(c.dir) if re.fullmatch(r"t\d+", name)):
        for path in c.object_files(t):
            if f"/obj/{number}/" not in path:
                continue
            try:
                name = re.search(rb"[0-9a-f]{16}\.\d+", os.getxattr(path,
                                                                    ATTRIBUTE)).group().decode()
            except OSError:  # it has gone meanwhile
                continue
            data = contents(path)
            if data:
                found.setdefault(name, {})[t] = data
    return found


def wait_settled(c, joined):
    def settled():
        m = smap(c)
        return joined in [n["id"] for n in m["nodes"]] and not m.get("earlier")
    wait_for(settled, "the end of the moves", SECONDS)


def fill(c, bucket, count=OBJECTS):
    bodies = {f"o{i}": random.randbytes(random.randrange(110000, 400000)) for i in range(count)}
    for name, body in bodies.items():
        put(c, bucket, name, body)
    return bodies


def check_levelled(c, bucket, before, joined):
    """One of each, as it was; those that have moved are on one of `joined`, one of each object at
    the most.
    A slice may be there twice where a read met it on its way, and had it made anew: until a
    repair."""
    repair(c)
    after = slices_of(c, bucket)
    equal(sorted(after), sorted(before), "slices")
    moved = {}
    for name, holders in after.items():
        check(len(holders) == 1, f"{name} on {sorted(holders)}")
        (target, data), = holders.items()
        check(data in before[name].values(), f"{name}: other bytes")
        if target not in before[name]:
            check(target in joined, f"{name}: from {sorted(before[name])} to {target}")
            moved.setdefault((name.split(".")[0], target), []).append(name)
    check(moved, "nothing has moved")
    check(all(len(names) == 1 for names in moved.values()), f"two of one object: {moved}")
    return len(moved)


def dead_one_by_one(c, bucket, bodies, targets):
    for dead in targets:
        c.kill(dead)
        check_all(c, bucket, bodies, ranges=1)
        c.start(dead)
        c.wait_node(dead, "active")
        wait_repaired(c)


def some_of(targets):
    return random.sample(targets, min(len(targets), int(os.environ.get("DFC_KILLS", "1"))))


def test_slices_move_to_a_target_that_joins(c):
    c.setting("rebalance_delay", "100ms")
    c.setting("rebalance_keep", "2s")
    create(c, "b")
    create(c, "written")
    bodies, written, old = fill(c, "b"), {}, c.targets()
    before = slices_of(c, "b")
    equal(len(before), OBJECTS * SLICES, "slices")

    def read():
        name = random.choice(sorted(bodies))
        check_object(c, "b", name, bodies[name], ranges=1)
        all_are_looked_at = len(c.targets()) > len(
            old)  # its directory is there before who joins is one of them
        there = slices_of(c, "b")
        check(len(there) == len(before) or not all_are_looked_at,
              f"{len(before) - len(there)} slices are nowhere")

    def write():
        name, body = f"o{random.randrange(4)}", random.randbytes(150000)
        put(c, "written", name, body)
        written[name] = body
    with Loop(read), Loop(write):
        joined = c.add_target()
        wait_settled(c, joined)
    moved = check_levelled(c, "b", before, {joined})
    check(moved > OBJECTS / 4, f"{moved} slices of {OBJECTS} objects are on {joined}")  # 3/4 are to
    check_all(c, "b", bodies)
    check_all(c, "written", written)
    dead_one_by_one(c, "b", bodies, [joined, *some_of(old)])


def test_a_target_is_killed_while_they_move(c):
    """An old one, or the one that joins; at a rate at which all would take minutes."""
    create(c, "killed")
    bodies, old = fill(c, "killed"), c.targets()
    before = slices_of(c, "killed")
    c.setting("rebalance_rate", "10KiB")
    joined = c.add_target()
    victim = random.choice([joined, *old])

    def some_have_moved():
        return any(joined in holders for holders in slices_of(c, "killed").values())
    wait_for(some_have_moved, f"a slice on {joined}", SECONDS)
    c.kill(victim)
    check(smap(c).get("earlier"), "all has moved before the kill")
    check_all(c, "killed", bodies, ranges=1)
    c.start(victim)
    c.wait_node(victim, "active")
    c.setting("rebalance_rate", "0")
    wait_settled(c, joined)
    # The victim's slice may have been made anew at the one that joins, whose rank is higher: then
    # that replica stays, and the victim, a place without a slice, takes the one that has no place.
    check_levelled(c, "killed", before, {joined, victim})
    check_all(c, "killed", bodies)


if __name__ == "__main__":
    main(targets=SLICES)
