#!/usr/bin/env python3
"""Uploads in parts where disks of their target come and go: none is said to be gone while its disk
is away, and the limit of open uploads counts those that are there."""

import os

from lib import equal, main, wait_for
from uploads_lib import Upload, all_uploads, bodies_of, has_object, list_of, on_mountpath, patiently

T = "t1"
BODY = b"the only part"
LIMIT = 6  # of open uploads


def mountpath(c, name):
    return os.path.join(c.node_dir(T), name)


def restart(c):
    c.start(T, f"--arg=--uploads-max={LIMIT}")
    c.wait_node(T, "active")


def begin(c, count, name):
    """Uploads of t1 on one of its mountpaths, each with a part."""
    made, i = [], 0
    while len(made) < count:
        i += 1
        object_name = f"{name}-{i}"
        if c.owner("one", object_name) != T:
            continue
        u = Upload(c, "one", object_name)
        if on_mountpath(c, u.id) == mountpath(c, name):
            u.part(1, BODY)
            made.append(u)
        else:
            u.abort().expect(204)
    return made


def test_before(c):
    c.create("one")
    c.stop(T)
    restart(c)


def test_a_disk_is_away_and_returns(c):
    here, away = begin(c, LIMIT - 3, "mp1"), begin(c, 3, "mp2")
    c.stop(T)
    os.rename(mountpath(c, "mp2"), mountpath(c, "mp2") + ".away")
    os.mkdir(mountpath(c, "mp2"))
    restart(c)
    for u in here:
        equal(u.parts(), ([1], False), "parts on the other disk")
    for u in away:
        for reply in (u.call("GET", upload=u.id), u.try_part(1, BODY),
                      u.try_complete(list_of([BODY])), u.abort()):
            reply.expect(503, "mountpath_disabled", "mp2")
    c.call("GET", "/v1/uploads/one").expect(503, "mountpath_disabled")
    here += begin_more(c, 3)
    c.stop(T)
    os.rmdir(mountpath(c, "mp2"))
    os.rename(mountpath(c, "mp2") + ".away", mountpath(c, "mp2"))
    restart(c)
    c.call("PUT", "/v1/daemon/mountpaths", {"action": "enable", "value": mountpath(c, "mp2")},
           node=T).expect(200)
    wait_for(lambda: sorted(u.id for u in here + away) ==
             sorted(i for _, i in all_uploads_patiently(c)), "all uploads in the list")
    for u in away:
        equal(u.parts(), ([1], False), "parts on the disk that is back")
    c.call("POST", f"/v1/uploads/one/{away[0].name}", b"").expect(503, "overloaded")
    for u in here + away[1:]:
        u.abort().expect(204)
    away[0].complete(list_of([BODY]))
    has_object(c, "one", away[0].name, BODY)


def all_uploads_patiently(c):
    patiently(lambda: c.call("GET", "/v1/uploads/one")).expect(200)
    return all_uploads(c, "one")


def begin_more(c, count):
    """On the disk that is left."""
    made = []
    for name in (f"more-{i}" for i in range(100)):
        reply = c.call("POST", f"/v1/uploads/one/{name}", b"")
        if reply.status == 201:
            made.append(Upload(c, "one", name, reply.json()["upload"]))
        else:
            reply.expect(503, "mountpath_disabled")
        if len(made) == count:
            break
    equal(len(made), count, "uploads on the other disk")
    return made


def test_the_limit_is_what_it_was(c):
    """More have ended than were counted at the start."""
    for u in begin(c, LIMIT, "mp1"):
        u.abort().expect(204)


def test_a_disk_leaves(c):
    """It waits for the uploads that are open there, which end as elsewhere."""
    bodies = bodies_of(2, 100)
    both = begin(c, 2, "mp2")
    first, second = both[0], both[1]
    listed = [*list_of(bodies[:1]), {"part": 2, "tag": list_of(bodies)[1]["tag"]}]
    for number, body in enumerate(bodies, 1):
        first.part(number, body)
    done = c.dfcctl("storage", "mountpath", "detach", T, mountpath(c, "mp2"), "--yes")
    equal(done.returncode, 0, done.stderr)
    wait_for(lambda: "2 uploads in parts are open" in jobs(c), "the job says what it waits for")
    equal(first.complete(listed)["size"], sum(map(len, bodies)), "size")
    has_object(c, "one", first.name, b"".join(bodies))
    wait_for(lambda: "1 uploads in parts are open" in jobs(c), "the job waits for one")
    equal(second.parts(), ([1], False), "the parts of the other one")
    second.abort().expect(204)
    wait_for(lambda: not os.path.exists(os.path.join(mountpath(c, "mp2"), ".dfc")), "it has left")
    has_object(c, "one", first.name, b"".join(bodies))


def jobs(c):
    return c.call("GET", "/v1/jobs?kind=resilver").body.decode()


if __name__ == "__main__":
    main(targets=1)
