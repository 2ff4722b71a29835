#!/usr/bin/env python3
"""What an operator does with a running cluster: nodes are stopped safely and emptied, and a report of
a fault is made."""

import json
import os
import stat

from lib import Failed, check, equal, main, wait_for

OK, FAILED, USAGE, NOT_FOUND, UNREACHABLE, PARTIAL = 0, 1, 2, 3, 5, 6


def run(c, *args, status=OK):
    done = c.dfcctl(*args)
    if done.returncode != status:
        raise Failed(f"dfcctl {' '.join(args)}: status {done.returncode}, wanted {status}: "
                     f"{done.stdout}{done.stderr}")
    return done


def run_json(c, *args, status=OK):
    return json.loads(run(c, *args, "-o", "json", status=status).stdout)


def wait_quiet(c):
    """Every node is active, has what it missed, and nothing moves."""
    def quiet():
        view = c.get_json("/v1/cluster")
        return not view["moving"] and all(n["state"] == "active" and "lag" not in n and
                                          "version" in n for n in view["nodes"])
    wait_for(quiet, "a quiet cluster")


def test_settings(c):
    for name in ("repair_delay", "rebalance_delay"):
        run(c, "config", "set", name, "0")
    c.create("two", copies=2)
    for i in range(20):
        c.put("two", f"o{i}", b"x" * 1000)
    wait_quiet(c)


def test_a_target_may_be_stopped_if_others_stand_in(c):
    equal(run(c, "node", "ok-to-stop", "t1").stdout, "t1 may be stopped\n", "t1")
    equal(run_json(c, "node", "ok-to-stop", "t1"), {"node": "t1", "ok": True, "reasons": []}, "t1")
    run(c, "node", "ok-to-stop", "t9", status=NOT_FOUND)
    run(c, "node", "ok-to-stop", "t1", "--timeout", "1s", status=USAGE)


def test_a_bucket_with_one_copy_is_a_reason_against_it(c):
    c.create("one")
    said = run(c, "node", "ok-to-stop", "t1", status=FAILED).stdout
    check("t1 must not be stopped now:\n  bucket 'one' keeps one copy" in said, said)
    doc = run_json(c, "node", "ok-to-stop", "t1", "--wait", "--timeout", "1s", status=UNREACHABLE)
    equal((doc["ok"], len(doc["reasons"])), (False, 1), "a wait that ran out")
    c.destroy("one")
    wait_quiet(c)


def test_the_only_proxy_is_not_stopped(c):
    check("no other proxy" in run(c, "node", "ok-to-stop", "p1", status=FAILED).stdout, "p1")


def test_one_after_the_other(c):
    c.stop("t2")
    c.wait_node("t2", "unreachable")
    check("target 't2' is unreachable" in run(c, "node", "ok-to-stop", "t1", status=FAILED).stdout,
          "t1 while t2 is down")
    run(c, "node", "ok-to-stop", "t2")
    c.start("t2")
    run(c, "node", "ok-to-stop", "t1", "--wait", "--timeout", "120s")
    wait_quiet(c)


def test_maintenance_waits_for_the_end_of_the_move(c):
    equal(run(c, "node", "maintenance", "start", "t2", "--wait").stdout,
          "t2: nothing is left to move\n", "start")
    view = c.get_json("/v1/cluster")
    equal((view["moving"], [n["state"] for n in view["nodes"] if n["id"] == "t2"]),
          (False, ["maintenance"]), "after it")
    run(c, "node", "ok-to-stop", "t2")
    equal(run_json(c, "node", "maintenance", "stop", "t2", "--wait"),
          {"node": "t2", "action": "stopmaintenance"}, "stop")
    check(not c.get_json("/v1/cluster")["moving"], "nothing moves after the wait")
    run(c, "node", "maintenance", "start", "t9", "--wait", status=NOT_FOUND)
    run(c, "node", "maintenance", "start", "t2", "--timeout", "1s", status=USAGE)


def test_a_wait_ends_when_its_time_is_over(c):
    run(c, "config", "set", "rebalance_delay", "1h")
    done = run(c, "node", "maintenance", "start", "t2", "--wait", "--timeout", "1s",
               status=UNREACHABLE)
    check("still being moved" in done.stderr, done.stderr)
    run(c, "config", "set", "rebalance_delay", "0")
    run(c, "node", "maintenance", "stop", "t2", "--wait")


def test_a_bundle_has_what_nodes_say(c):
    path = os.path.join(c.dir, "bundle.json")
    equal(run(c, "support", "bundle", path).stdout, f"saved {path}\n", "a bundle")
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, "its mode")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    doc = json.loads(text)
    equal(set(doc["nodes"]), set(c.nodes), "nodes")
    equal(len(doc["nodes"]["t1"]["mountpaths"]["mountpaths"]), 2, "mountpaths of t1")
    for part in ("overview", "smap", "bmd", "config", "settings", "jobs"):
        check("error" not in doc["cluster"][part], f"{part}: {doc['cluster'][part]}")
    check("health" in doc["health"] and doc["dfcctl"]["version"], "health and version")
    with open(c.key_file, encoding="ascii") as f:
        check(f.readline().strip() not in text, "the key is not in it")
    equal(set(json.loads(run(c, "support", "bundle", "-").stdout)), set(doc), "on standard output")
    run(c, "support", "bundle", os.path.join(c.dir, "none", "x"), status=FAILED)


def test_a_bundle_says_what_is_missing(c):
    c.stop("t3")
    c.wait_node("t3", "unreachable")
    path = os.path.join(c.dir, "bundle.json")
    done = run(c, "support", "bundle", path, "--retries", "0", status=PARTIAL)
    check("4 of 20 parts are missing" in done.stderr, done.stderr)
    with open(path, encoding="utf-8") as f:
        check("message" in json.load(f)["nodes"]["t3"]["info"]["error"], "the error is there")
    c.start("t3")
    wait_quiet(c)


def test_a_target_that_leaves_is_waited_for(c):
    run(c, "node", "decommission", "t3", "--wait")
    check("t3" not in [n["id"] for n in c.get_json("/v1/cluster")["nodes"]], "it has left")
    for i in range(20):
        c.get("two", f"o{i}").expect(200)


if __name__ == "__main__":
    main(targets=3)
