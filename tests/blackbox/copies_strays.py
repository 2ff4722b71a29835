#!/usr/bin/env python3
"""What targets do not own any more since `copies` was lowered (cluster/placement/copies_reduce.h), where its removal
is held
up: by a file whose attribute cannot be read, by a disk; beside a resilver; what is said by an old
map does not
count; a target that joins meanwhile is given what is its own, and strays stay the job's to
remove."""

import os
import random

from copies import create, get, put, settled, wait_repaired
from copies_damage import ATTRIBUTE, named
from copies_lower import LOWERED, mirrors, on_disks, set_copies, wait_lowered, why
from lib import check, contents, equal, in_parallel, main, wait_for

NAMES = [f"n/{i:02d}" for i in range(24)]


def body_of(bucket, name):
    return random.Random(f"{bucket}/{name}").randbytes(3000)


def fill(c, bucket):
    create(c, bucket, 2)
    in_parallel(lambda name: put(c, bucket, name, body_of(bucket, name)), NAMES)


def again(c, target, faults=""):
    c.restart(target, *([f"--arg=--faults={faults}"] if faults else []))
    wait_repaired(c)


def wait_failed(c, words):
    """A job that a target fails so."""
    def is_one(job):
        return job["state"] == "failed" and words in repr(c.get_json(f"/v1/jobs/{job['id']}"))

    wait_for(lambda: any(is_one(job) for job in mirrors(c)), f"a job that fails: {words}", 300)


def all_are(c, bucket, more=()):
    """Each name is listed once, has its bytes, and lies on one target, those of `more` on two."""
    equal(sorted(c.names(bucket)), NAMES, f"names in {bucket}")
    found = on_disks(c)
    for name in NAMES:
        body = body_of(bucket, name)
        check(get(c, bucket, name).expect(200).body == body, f"{name}: other bytes")
        equal(found[body], 2 if name in more else 1, f"copies of {name}")


def strays_at(c, target, bucket):
    there = {contents(path) for path in c.object_files(target)}
    return [name for name in NAMES
            if body_of(bucket, name) in there and c.owner(bucket, name) != target]


def test_one_that_cannot_be_read_stays(c):
    fill(c, "even")
    fill(c, "odd")
    name, acting = NAMES[0], c.owner("odd", NAMES[0])
    other = next(t for t in c.targets()
                 if t != acting and any(named(p, name) for p in c.object_files(t)))
    path = next(p for p in c.object_files(other) if named(p, name))
    os.setxattr(path, ATTRIBUTE, b"\x01nonsense")
    set_copies(c, "odd", 1)
    set_copies(c, "even", 1)
    wait_failed(c, "cannot be read")
    wait_lowered(c, "even")  # by itself
    all_are(c, "even")
    check(LOWERED in why(c, "odd"), f"why: {why(c, 'odd')}")
    all_are(c, "odd", more=[name])
    check(os.path.exists(path), "it was removed")
    set_copies(c, "odd", 2)  # the way out: it is a copy again, and is mended
    wait_for(lambda: not why(c, "odd"), "both copies of all", 300)
    equal({on_disks(c)[body_of("odd", n)] for n in NAMES}, {2}, "copies")
    check(named(path, name), "it has no attribute")


def test_what_is_said_by_an_old_map_does_not_count(c):
    """Copies are removed for it."""
    state = c.get_json("/v1/cluster?what=state")
    bucket = next(b["id"] for b in state["bmd"]["buckets"] if b["name"] == "odd")
    target = c.owner("odd", NAMES[1])
    asked = [{"bucket": bucket, "name": NAMES[1], "version": "1.1.1"}]
    url = c.get_json("/v1/daemon", target)["data_url"] + "/v1/settled?question=held&dfcv="

    def ask(version):
        return c.member.request("POST", f"{url}{state['term']}.{version}",
                                str(asked).replace("'", '"').encode())

    equal(ask(state["version"]).expect(200).json()["settled"], [0], "held")
    ask(state["version"] + 1000).expect(503, "not_ready")


def test_one_that_joins_leaves_them_to_the_job(c):
    fill(c, "more")
    again(c, "t2", "trim_copies.remove=EIO")
    set_copies(c, "more", 1)
    wait_failed(c, "were not removed")
    strays = strays_at(c, "t2", "more")
    check(strays, "none lies there")
    c.setting("rebalance_delay", "0s")
    c.setting("rebalance_keep", "2s")
    c.add_target()
    wait_for(lambda: not settled(c), "moves")
    wait_for(lambda: settled(c), "the end of the moves", 300)
    check(any(c.owner("more", name) == "t4" for name in NAMES), "it owns nothing")
    check(set(strays) <= set(strays_at(c, "t2", "more")), "strays are gone")
    again(c, "t2")
    wait_lowered(c, "more")
    all_are(c, "more")


def test_it_goes_on_beside_a_resilver(c):
    """That cannot move anything, and so does not end."""
    fill(c, "third")
    again(c, "t1", "resilver.publish=EIO")
    mountpath = {"path": os.path.join(c.node_dir("t1"), "mp3"), "create": True}
    c.call("PUT", "/v1/daemon/mountpaths", {"action": "attach", "value": mountpath},
           node="t1").expect(200)
    set_copies(c, "third", 1)
    wait_lowered(c, "third")
    all_are(c, "third")
    mountpaths = c.get_json("/v1/daemon?what=mountpaths", node="t1")
    check(not mountpaths["settled"], "the resilver has ended")


if __name__ == "__main__":
    main(targets=3)
