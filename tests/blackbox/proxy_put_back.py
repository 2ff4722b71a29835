#!/usr/bin/env python3
"""The primary's directory is lost, or put back to an earlier time: nobody forgets silently."""

import json
import os
import shutil

from lib import check, equal, main, wait_for


def names(c):
    return [b["name"] for b in c.get_json("/v1/buckets")["buckets"]]


def store(c):
    return os.path.join(c.node_dir("p1"), "metastore")


def state_of(c, node):
    """The state document as the node has it, from its control listener."""
    control = c.get_json("/v1/daemon", node)["control_url"]
    return c.member.request("GET", control + "/v1/cluster/state").expect(200).json()


def begin_from(c, node):
    """The way out: an empty directory, and the document that a node has kept."""
    copy = os.path.join(c.dir, "copy.json")
    with open(copy, "w", encoding="utf-8") as f:
        json.dump(state_of(c, node), f)
    c.kill("p1", "-9")
    shutil.rmtree(store(c))
    c.start("p1", f"--arg=--import={copy}")
    c.wait_node("t1", "active")


def test_an_earlier_directory_is_refused_by_those_who_know_better(c):
    c.create("one")
    c.put("one", "x", b"data")
    c.stop("p1")
    shutil.copytree(store(c), store(c) + ".backup")
    c.start("p1")
    c.create("two")
    wait_for(lambda: len(state_of(c, "t1")["bmd"]["buckets"]) == 2, "t1 knows of the bucket")
    c.kill("p1", "-9")
    shutil.rmtree(store(c))
    shutil.move(store(c) + ".backup", store(c))
    c.start("p1")
    equal(names(c), ["one"], "what the primary knows")
    wait_for(lambda: "a node has seen what this primary has not" in c.log("p1"), "the complaint")
    check("--import" in c.log("p1"), "the complaint does not say what to do")
    equal(len(state_of(c, "t1")["bmd"]["buckets"]), 2, "buckets that t1 knows")
    c.create("three")  # however far it goes on by itself, its past stays another one
    c.create("four")
    c.create("five")
    c.wait_node("t1", "unreachable")
    begin_from(c, "t1")
    equal(names(c), ["one", "two"], "buckets")
    equal(c.get("one", "x").expect(200).body, b"data", "contents")


def test_a_new_cluster_does_not_take_the_targets_of_the_old(c):
    c.kill("p1", "-9")
    shutil.rmtree(store(c))
    c.start("p1")
    equal(names(c), [], "buckets")
    wait_for(lambda: "wrong_cluster" in c.log("t1"), "t1 complains")
    equal([n["id"] for n in c.get_json("/v1/cluster")["nodes"]], ["p1"], "nodes of the new cluster")
    begin_from(c, "t1")
    equal(names(c), ["one", "two"], "buckets")
    equal(c.get("one", "x").expect(200).body, b"data", "contents")


if __name__ == "__main__":
    main(targets=1, args=("--proxy-arg=--keepalive-timeout=2s",))
