#!/usr/bin/env python3
"""kill -9 of a target at each step of a PUT that writes an object in slices over another one: what
was there, or
what was written, is read afterwards, whole; what was acknowledged is; and it can be written again.
A mountpath
that is lost is made up for.

DFC_POINTS (2; 0: all): at how many of the steps."""

import os
import random
import shutil

from ec import (METAS, SIZES, SLICES, check_all, check_object, create, fill, get, put,
                slices_of_bucket, wait_repaired)
from lib import check, equal, main, wait_for

SECONDS = 120
ACTING = ("ec.slice", "ec.stored", "copies.decided", "copies.own", "copies.answer")
OTHERS = ("ec.slice", "copies.stage", "copies.commit", "copies.committed")


def restart(c, targets, *args):
    for t in targets:
        if c.pid(t) is not None:
            c.kill(t)
        c.start(t, *(f"--arg={a}" for a in args))
    for t in targets:
        c.wait_node(t, "active")
    wait_repaired(c)


def try_to_put(c, name, body):
    """The status, or None: nothing was heard."""
    try:
        return c.object("PUT", "kills", name, body, METAS["kills", name].headers, timeout=30).status
    except OSError:
        return None


def put_until(c, victims, name, body):
    """Until it is written, or one of them has ended of it: what else may pass is repeated."""
    def step():
        status = try_to_put(c, name, body)
        ended = [t for t in victims if c.pid(t) is None]
        return (status, ended) if ended or status == 200 else None
    return wait_for(step, f"the end of one of {' '.join(victims)}, or of the PUT", SECONDS)


def steps():
    points = [(point, True) for point in ACTING] + [(point, False) for point in OTHERS]
    count = int(os.environ.get("DFC_POINTS", 2))
    return random.sample(points, count) if count else points


def test_a_target_ends_at_any_step(c):
    create(c, "kills")
    for point, acting in steps():
        name, old, new = point, random.randbytes(400000), random.randbytes(410000)
        put(c, "kills", name, old)
        owner = c.owner("kills", name)
        victims = [owner] if acting else [t for t in c.targets() if t != owner]
        restart(c, victims, f"--faults={point}=kill")
        status, ended = put_until(c, victims, name, new)
        print(f"        {point} at {' '.join(victims)}: {status}, ended: {' '.join(ended)}")
        restart(c, victims)
        body = get(c, "kills", name).expect(200).body
        check(body in (old, new), f"{point}: {len(body)} bytes that nobody wrote")
        check(status != 200 or body == new, f"{point}: an acknowledged write is lost")
        check_object(c, "kills", name, body)
        put(c, "kills", name, old)
        check_object(c, "kills", name, old)


def test_a_mountpath_is_lost(c):
    create(c, "disk")
    bodies = fill(c, "disk", SIZES[:4])
    wait_repaired(c)
    victim = random.choice(c.targets())
    c.kill(victim)
    shutil.rmtree(os.path.join(c.node_dir(victim), "mp1"))
    check_all(c, "disk", bodies)
    c.start(victim, "--arg=--mountpath-lost-ok=true")
    c.wait_node(victim, "active")
    wait_repaired(c)
    wait_for(lambda: slices_of_bucket(c, "disk") == len(bodies) * SLICES, "all slices", SECONDS)
    check_all(c, "disk", bodies)
    equal(slices_of_bucket(c, "disk"), len(bodies) * SLICES, "slices")


if __name__ == "__main__":
    main(targets=SLICES + 1)
