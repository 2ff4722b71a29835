#!/usr/bin/env python3
"""A mountpath that is detached waits for the samples of rings that it has: all are readable until no kept
generation needs them.  A target that leaves takes no pushes."""

import os

import ring_lib as ring
from lib import check, equal, main, wait_for

COUNT = 20


def one_generation(c, name):
    for i in range(COUNT):
        wait_for(lambda i=i: ring.push(c, name, ring.frames({"i": b"%d" % i})).status == 201, "a push")


def make(c, name):
    c.create(name, ring={"cap": COUNT, "keep": 1}, copies=2)
    one_generation(c, name)
    return ring.generation(ring.wait_generation(c, name, 1))


def files_below(path):
    return [os.path.join(at, f) for at, _, names in os.walk(os.path.join(path, ".dfc", "ring"))
            for f in names if f.endswith(".seg")]


def mountpath(c, node, number):
    return os.path.join(c.node_dir(node), f"mp{number}")


def jobs(c, kind):
    return c.call("GET", f"/v1/jobs?kind={kind}").body.decode()


def test_a_mountpath_is_detached(c):
    g = make(c, "disk")
    path = mountpath(c, "t1", 1)
    check(files_below(path), "it has samples")
    done = c.dfcctl("storage", "mountpath", "detach", "t1", path, "--yes")
    equal(done.returncode, 0, done.stderr)
    wait_for(lambda: "samples of rings are on" in jobs(c, "resilver"), "the job says what it waits for")
    had = files_below(path)
    equal(len(ring.read_generation(c, "disk", g)), COUNT, "samples that are there")
    for number in (2, 3):
        one_generation(c, "disk")
        ring.wait_generation(c, "disk", number)
    wait_for(lambda: not os.path.exists(os.path.join(path, ".dfc")), "it has left")
    check(had and not set(files_below(path)) - set(had), "no push came there")
    h = ring.head(c, "disk")
    equal([len(ring.read_generation(c, "disk", ring.generation(h, n))) for n in (2, 3)], [COUNT] * 2, "samples")
    c.destroy("disk")


def test_a_target_that_leaves_takes_no_push(c):
    """A client may know an older map."""
    make(c, "node")
    path = "/v1/rings/node/samples"
    c.call("POST", path, ring.frames({"i": b"1"}), node="t3").expect(201)
    equal(c.dfcctl("node", "maintenance", "start", "t3").returncode, 0, "maintenance")
    wait_for(lambda: c.call("POST", path, ring.frames({"i": b"2"}), node="t3").status != 201, "t3 knows")
    c.call("POST", path, ring.frames({"i": b"3"}), node="t3").expect(409, "stale_map", text="'t3'")
    for i in range(COUNT):
        ring.push(c, "node", ring.frames({"i": b"4"}), "maker", i).expect(201)
    equal(c.dfcctl("node", "maintenance", "stop", "t3").returncode, 0, "maintenance")
    wait_for(lambda: c.call("POST", path, ring.frames({"i": b"5"}), node="t3").status == 201, "t3 is back")


if __name__ == "__main__":
    main(targets=3, mountpaths=2, args=("--target-arg=--ring-grace=200ms",))
