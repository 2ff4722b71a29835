#!/usr/bin/env python3
"""/v1/health: ready means that it serves and belongs to the map; synced=true, that it has what it
missed, too, and does not wait for what cannot end by itself."""

import os

from lib import check, main, wait_for


def act(c, action, name, value=None):
    body = {"action": action, "name": name, **({} if value is None else {"value": value})}
    return c.call("PUT", "/v1/cluster", body).expect(200)


def health(c, node, query=""):
    return c.call("GET", "/v1/health" + query, node=node)


def wait_synced(c, node):
    wait_for(lambda: health(c, node, "?synced=true").status == 200, f"{node} is synced")


def test_synced_waits_for_the_repair(c):
    act(c, "setconfig", "repair_delay", "1h")
    c.create("two", copies=2)
    c.put("two", "o", b"x")
    for node in c.targets():
        health(c, node, "?synced=true").expect(200)
    c.stop("t1")
    c.put("two", "later", b"y")
    c.start("t1")
    health(c, "t1").expect(200)
    wait_for(lambda: b"a repair brings target" in health(c, "t1", "?synced=true").body,
             "the primary lets t1 in")
    health(c, "t1", "?synced=true").expect(503, "not_ready", "a repair brings target")
    health(c, "t1", "?synced=true&live=true").expect(200)
    health(c, "p1", "?synced=true").expect(200)
    act(c, "setconfig", "repair_delay", "0s")
    wait_synced(c, "t1")


def test_it_does_not_wait_for_room_on_a_disk(c):
    act(c, "setconfig", "repair_delay", "1h")
    c.stop("t1")
    c.start("t1", "--arg=--space-low=0%", "--arg=--space-high=1%", "--arg=--space-out=2%")
    wait_for(lambda: health(c, "t1", "?synced=true").status == 200, "its disks count as full")
    check("waits for room" in health(c, "t1", "?synced=true").json()["why"], "it says why")
    c.stop("t1")
    c.start("t1")
    health(c, "t1", "?synced=true").expect(503, "not_ready")
    act(c, "setconfig", "repair", "false")
    wait_for(lambda: "is off" in health(c, "t1", "?synced=true").json().get("why", ""), "it is off")
    act(c, "setconfig", "repair", "true")
    act(c, "setconfig", "repair_delay", "0s")
    wait_synced(c, "t1")


def test_who_has_left_is_not_ready(c):
    ready = os.path.join(c.node_dir("t4"), "ready.json")
    check(os.path.exists(ready), "it was ready")
    act(c, "decommission", "t4")
    wait_for(lambda: health(c, "t4").status == 503, "t4 is not ready any more")
    health(c, "t4").expect(503, "not_ready", "t4")
    wait_for(lambda: not os.path.exists(ready), "ready.json is gone")
    c.stop("t4")
    c.run("start", "t4", "--ready-seconds", 2, ok=False)
    wait_for(lambda: health(c, "t4").status == 503, "it is refused")
    health(c, "t4").expect(503, "not_ready", "refuses target 't4'")
    wait_for(lambda: not os.path.exists(ready), "ready.json is gone again")
    health(c, "t4", "?live=true").expect(200)


if __name__ == "__main__":
    main(targets=4)
