#!/usr/bin/env python3
"""A resilver moves an object from one mountpath to another while a rebalance looks through both for
what another target owns by now: the object gets to its owner all the same."""

import os
import sys

from lib import check, equal, main, wait_for
from rebalance import jobs, settled

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "reference"))
import hrwref  # noqa: E402

T, NEW = "t1", "t2"
BYTES = b"bytes" * 100
SECONDS = 120


def names_of(bucket_id, owner):
    """Those that this one will own when both are there."""
    for name in (f"o{i}" for i in range(100000)):
        key = hrwref.xxh3(name.encode(), bucket_id)
        if hrwref.rank(key, [(T, 100), (NEW, 100)])[0] == (T, NEW).index(owner):
            yield name


def put(c, name):
    """Its mountpath."""
    before = set(c.object_files(T))
    c.put("b", name, BYTES)
    path, = set(c.object_files(T)) - before
    return path.removeprefix(c.node_dir(T) + "/").split("/")[0]


def fill(c):
    """One that will go lies on the second mountpath, and on the first are only such as stay."""
    while True:
        bucket_id = c.create("b").json()["id"]
        goes = next(names_of(bucket_id, NEW))
        if put(c, goes) == "mp2":
            break
        c.destroy("b")
    stay = names_of(bucket_id, T)
    while put(c, next(stay)) != "mp1":
        pass
    return goes


def mountpaths(c):
    return c.get_json("/v1/daemon?what=mountpaths", node=T)


def test_what_a_resilver_moves_is_found(c):
    c.setting("rebalance_delay", "0s")
    c.setting("rebalance_keep", "2s")
    goes = fill(c)
    names = c.names("b")
    c.stop(T)
    c.start(T, "--arg=--faults=rebalance.look=delay:8000@2"
            )  # a look at the second mountpath, if it is one
    c.wait_node(T, "active")
    equal(c.add_target(), NEW, "who joins")
    wait_for(lambda: any(j["state"] == "running" for j in jobs(c)) or settled(c), "a rebalance",
             SECONDS)
    path = os.path.join(c.node_dir(T), "mp2")
    c.call("PUT", "/v1/daemon/mountpaths", {"action": "detach", "value": {"path": path}},
           node=T).expect(200)
    wait_for(lambda: mountpaths(c)["settled"] and settled(c), "the end of both", SECONDS)
    equal([m["path"] for m in mountpaths(c)["mountpaths"]], [os.path.join(c.node_dir(T), "mp1")],
          "mountpaths")
    equal(c.owner("b", goes), NEW, "its owner")
    for name in names:
        equal(c.get("b", name).expect(200).body, BYTES, name)
    equal(c.names("b"), names, "names")
    check(not any(j["state"] == "failed" for j in jobs(c)), f"rebalances: {jobs(c)}")


if __name__ == "__main__":
    main(targets=1, mountpaths=2,
         args=("--proxy-arg=--keepalive-interval=100ms", "--target-arg=--keepalive-interval=100ms"))
