#!/usr/bin/env python3
"""Targets that buckets with copies go without, though the map does not call them unreachable: one
with a disabled mountpath, which is enabled again or given up as lost while the target runs; and one
in maintenance that does not answer."""

import os

from copies import create, get, holders, patient, put, wait_repaired
from lib import check, equal, in_parallel, main, wait_for

PATIENCE = 120
NAMES = [f"a/{i}" for i in range(24)]
BODIES = {}


def is_absent(c, node):
    nodes = {n["id"]: n for n in c.get_json("/v1/cluster")["nodes"]}
    return nodes[node].get("absent", False)


def store(c, names, word):
    BODIES.update({name: f"{name} {word} ".encode() * 40 for name in names})
    in_parallel(lambda name: put(c, "b", name, BODIES[name]), names)


def all_are_read(c):
    for name in NAMES:
        check(get(c, "b", name).expect(200).body == BODIES[name], f"{name}: other bytes")
    equal(sorted(c.names("b")), sorted(NAMES), "the list")


def all_are_whole(c):
    for name in NAMES:
        equal(len(set(holders(c, BODIES[name]))), 2, f"copies of {name}")


def mountpaths(c, action, path, **value):
    body = {"action": action, "value": {"path": path, **value}}
    return c.call("PUT", "/v1/daemon/mountpaths", body, node="t1")


def maintenance(c, verb, **value):
    c.call("PUT", "/v1/cluster",
           {"action": f"{verb}maintenance", "name": "t2", "value": value}).expect(200)


def health_says(c, *words):
    done = c.dfcctl("cluster", "health")
    for word in words:
        check(word in done.stdout, f"'{word}' is not in {done.stdout}")


def test_others_stand_in_for_a_disabled_mountpath(c):
    create(c, "b", 2)
    store(c, NAMES, "first")
    path = os.path.join(c.node_dir("t1"), "mp1")
    mountpaths(c, "disable", path).expect(200)
    wait_for(lambda: is_absent(c, "t1"), "t1 to be absent", PATIENCE)
    all_are_read(c)
    store(c, NAMES[:12], "second")
    all_are_read(c)
    health_says(c, "Health: yellow", "1 mountpath of 't1' is disabled",
                "bucket 'b' is degraded: target 't1'")
    mountpaths(c, "enable", path).expect(200)
    wait_for(lambda: not is_absent(c, "t1"), "t1 to be there again", PATIENCE)
    wait_repaired(c)
    all_are_read(c)
    all_are_whole(c)


def stage(c, name, body):
    """What another owner does whose word for the rest never comes; False: t1 does not own the
    name."""
    state = c.get_json("/v1/cluster?what=state")
    number = next(b["id"] for b in state["bmd"]["buckets"] if b["name"] == "b")
    url = c.get_json("/v1/daemon", "t1")["data_url"] + f"/v1/objects/b/{name}" \
        f"?dfcb={number}&dfcv={state['term']}.{state['version']}"
    return c.member.request("PUT", url, body,
                            {"Dfc-Copy": "stage", "Dfc-Stage": f"s-{name}"}).status == 200


def test_what_is_staged_keeps_no_mountpath(c):
    check(any([stage(c, f"staged-{i}", b"staged") for i in range(32)]), "t1 owns none of them")
    path = os.path.join(c.node_dir("t1"), "mp1")
    mountpaths(c, "disable", path).expect(200)
    wait_for(lambda: is_absent(c, "t1"), "t1 to be absent", PATIENCE)
    wait_for(lambda: mountpaths(c, "enable", path).status == 200, "nobody holds it any more",
             PATIENCE)
    wait_for(lambda: not is_absent(c, "t1"), "t1 to be there again", PATIENCE)
    wait_repaired(c)
    all_are_whole(c)


def test_a_mountpath_is_given_up_while_the_target_runs(c):
    patient(c, "DELETE", "b", NAMES.pop(0))
    mountpaths(c, "detach", os.path.join(c.node_dir("t1"), "mp1"), lost=True).expect(200)
    store(c, NAMES[:6], "third")
    wait_for(lambda: not is_absent(c, "t1"), "t1 to be there again", PATIENCE)
    wait_repaired(c)
    all_are_read(c)
    all_are_whole(c)


def test_others_stand_in_for_one_in_maintenance_that_does_not_answer(c):
    c.setting("rebalance_delay", "0s")
    c.setting("rebalance_keep", "2s")
    c.kill("t2")
    maintenance(c, "start", force=True)
    wait_for(lambda: c.get_json("/v1/buckets/b")["protection"] == "degraded", "the loss to be seen",
             PATIENCE)
    wait_for(lambda: is_absent(c, "t2"), "t2 to be absent", PATIENCE)
    all_are_read(c)
    store(c, NAMES[:8], "fourth")
    patient(c, "DELETE", "b", NAMES.pop())
    all_are_read(c)
    health_says(c, "Health: yellow",
                "'t2' is in state maintenance, and does not answer: a rebalance waits")
    check("the rebalance waits" in c.get_json("/v1/buckets/b")["why"], "why")
    c.start("t2")
    wait_for(lambda: not is_absent(c, "t2"), "t2 to answer", PATIENCE)
    maintenance(c, "stop")
    wait_for(lambda: c.get_json("/v1/buckets/b")["protection"] == "protected", "all to be well",
             PATIENCE)
    all_are_read(c)


if __name__ == "__main__":
    main(targets=3)
