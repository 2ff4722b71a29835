#!/usr/bin/env python3
"""A repair goes on where it was: after kill -9 of the primary in the same job, after kill -9 of a
target, and its
return, in the next one; what was written while the target was away is compared again.  And it gets
through while a
target's mountpaths are not settled."""

import glob
import json
import os
import random
import shutil

from copies import create, holders, patient, put, wait_repaired
from lib import check, equal, in_parallel, main, wait_for

PATIENCE = 120
NAMES = [f"a/{i:03d}" for i in range(40)]
SMALL = 30
FEW = NAMES[:12]
LARGE = 300000
RATE = 1000  # the first large object takes five minutes, all small ones a moment


def body(bucket, name, size=SMALL):
    return random.Random(f"{bucket}/{name}").randbytes(size)


def store(c, bucket, names, size=SMALL):
    create(c, bucket, 2)
    in_parallel(lambda name: put(c, bucket, name, body(bucket, name, size)), names)


def are_whole(c, bucket, names, size=SMALL):
    for name in names:
        equal(len(set(holders(c, body(bucket, name, size)))), 2, f"copies of {bucket}/{name}")


def come_back_empty(c, target):
    c.kill(target)
    for mountpath in [d for d in os.listdir(c.node_dir(target)) if d.startswith("mp")]:
        shutil.rmtree(os.path.join(c.node_dir(target), mountpath))
    c.start(target, "--arg=--mountpath-lost-ok=true")
    c.wait_node(target, "active")


# --- where it is
# -----------------------------------------------------------------------------------


def names_at(c, bucket, target):
    """Those of NAMES of which the target has this bucket's bytes."""
    return [name for name in NAMES if target in holders(c, body(bucket, name))]


def has_passed(c, job, target, bucket_id, name):
    for path in glob.glob(os.path.join(c.node_dir(target), "mp*", ".dfc", "repair.json")):
        with open(path, encoding="utf-8") as f:
            walk = json.load(f)
        if walk["job"] == job and (walk["bucket_id"], walk["name"]) >= (bucket_id, name):
            return True
    return False


def repairs(c):
    return c.get_json("/v1/jobs?kind=repair")["jobs"]


def stick(c, small, large):
    """t3 comes back without its disks, and is brought what it lacks of the small bucket; with the
    large one, of which each target brings one object in five minutes, the repair is not through.
    Its id, and how many names of the small bucket t1 and t2 have compared."""
    c.setting("repair_rate", RATE)
    c.setting("repair_delay", "10s")
    store(c, small, NAMES)
    store(c, large, FEW, LARGE)
    bucket_id = c.get_json(f"/v1/buckets/{small}")["id"]
    there = {target: names_at(c, small, target) for target in ("t1", "t2")}
    before = {job["id"] for job in repairs(c)}
    come_back_empty(c, "t3")

    def through_the_small_ones():
        job = repairs(c)[-1]["id"] if repairs(c) else None
        return job not in before and all(
            has_passed(c, job, t, bucket_id, max(there[t])) for t in there) and job

    job = wait_for(through_the_small_ones, "the small ones", PATIENCE)
    c.setting("repair_delay", "1h")  # none begins while one is away
    return job, sum(map(len, there.values()))


def next_repair(c, job):
    """Lets the one after this begin, and end."""
    c.setting("repair_delay", "0s")
    found = wait_for(lambda: repairs(c)[-1]["id"] != job and repairs(c)[-1], "the next repair",
                     PATIENCE)
    c.setting("repair_rate", 0)
    return c.wait_job(found["id"], "finished", seconds=PATIENCE)["progress"]["names"]


def test_what_was_done_is_not_done_again(c):
    job, compared = stick(c, "s", "l")
    c.kill("p1")
    c.start("p1")
    wait_for(lambda: c.get_json(f"/v1/jobs/{job}")["state"] == "running", "the same job", PATIENCE)
    c.kill("t2")
    c.start("t2")
    c.wait_node("t2", "active")
    names = next_repair(c, job)
    check(names["passed"] >= compared, f"{compared} names had been compared: {names}")
    wait_repaired(c)
    are_whole(c, "s", NAMES)
    are_whole(c, "l", FEW, LARGE)
    for bucket in ("s", "l"):
        c.destroy(
            bucket
        )  # a repair goes by the buckets' ids, and the next one is to come to the next small one


def test_what_was_written_without_a_target_is_compared(c):
    job, compared = stick(c, "s2", "l2")
    both = set(names_at(c, "s2", "t1")) & set(names_at(c, "s2",
                                                       "t2"))  # whom t3, which lags, is no owner of
    half = len(both) // 2
    changed, gone = sorted(both)[:half], sorted(both)[half:]
    c.kill("t2")
    c.wait_node("t2", "unreachable")
    for name in changed:
        put(c, "s2", name, body("s2 again", name))
    for name in gone:
        patient(c, "DELETE", "s2", name)
    c.start("t2")
    c.wait_node("t2", "active")
    names = next_repair(c, job)
    check(names["passed"] >= compared - 2 * len(both), f"of {compared} names: {names}")
    wait_repaired(c)
    are_whole(c, "s2 again", changed)
    are_whole(c, "s2", [name for name in NAMES if name not in both])
    are_whole(c, "l2", FEW, LARGE)
    for name in both:
        equal(holders(c, body("s2", name)), [], f"what {name} was")
    for bucket in ("s2", "l2"):
        c.destroy(bucket)


# --- beside a resilver
# -----------------------------------------------------------------------------


def leave_unsettled(c, target):
    """A resilver begins, and is aborted: what it was to move stays where it is."""
    c.restart(target, "--arg=--faults=resilver.rename=delay:300")
    value = {"path": os.path.join(c.node_dir(target), "mp3"), "create": True}
    c.call("PUT", "/v1/daemon/mountpaths", {"action": "attach", "value": value},
           node=target).expect(200)
    job = wait_for(lambda: c.get_json("/v1/jobs?kind=resilver&state=running")["jobs"],
                   "the resilver", PATIENCE)[0]["id"]
    c.call("DELETE", f"/v1/jobs/{job}").expect(202)
    c.wait_job(job, "aborted", seconds=PATIENCE)
    equal(c.get_json("/v1/daemon?what=mountpaths", node=target)["settled"], False, "settled")


def test_it_gets_through_while_names_are_on_their_way_between_disks(c):
    store(c, "b", NAMES)
    leave_unsettled(c, "t1")
    come_back_empty(c, "t2")
    wait_repaired(c)
    are_whole(c, "b", NAMES)


if __name__ == "__main__":
    main(targets=3, mountpaths=2, args=("--target-arg=--repair-save-interval=0",))
