#!/usr/bin/env python3
"""What an operator does with a running cluster: nodes are stopped safely and emptied, and a report of
a fault is made."""

import json
import os
import stat
import subprocess
import threading

from lib import BUILD, Failed, check, equal, main, wait_for

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
    doc = run_json(c, "node", "ok-to-stop", "t1", "--wait", status=FAILED)
    equal((doc["ok"], len(doc["reasons"])), (False, 1), "a wait that would not end")
    c.destroy("one")
    wait_quiet(c)


def test_the_cluster_key_is_enough_to_ask(c):
    """A hook that stops a node has the key and no login: the public ports are not asked."""
    by_key = ("--control", c.control_url(), "--endpoint", "http://127.0.0.1:1", "node", "ok-to-stop")
    run(c, *by_key, "t1", "--wait", "--timeout", "60s")
    c.create("one")
    said = run(c, *by_key, "t1", status=FAILED).stdout
    check("1 of the buckets are not protected" in said, said)
    by_environment = subprocess.run(
        [os.path.join(BUILD, "dfcctl"), *by_key[2:], "t1"], capture_output=True, text=True,
        env={**c.dfcctl_environment(), "DFC_CONTROL_ENDPOINT": c.control_url()}, check=False)
    equal((by_environment.returncode, by_environment.stdout), (FAILED, said),
          f"DFC_CONTROL_ENDPOINT: {by_environment.stderr}")
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


def test_a_bundle_has_no_specification_of_a_job(c):
    c.create("private")
    for name in ("secret-name", "other"):
        c.put("private", name, b"x")
    c.call("POST", "/v1/buckets/private",
           {"action": "delete", "value": {"list": ["secret-name", "other"]}}).expect(202)
    jobs = c.get_json("/v1/cluster?what=jobs")["jobs"]
    check(any("secret-name" in json.dumps(j["spec"]) for j in jobs), "the job has the name")
    text = run(c, "support", "bundle", "-").stdout
    check("secret-name" not in text, "a name of an object")
    kept = json.loads(text)["cluster"]["jobs"]["jobs"]
    others = {j["id"] for j in kept} ^ {j["id"] for j in jobs}
    began = {j["id"] for j in kept if j["id"].startswith("rpr-")}  # a repair, since the first look
    equal(others - began, set(), "jobs")
    check({j["id"] for j in jobs} <= {j["id"] for j in kept}, "a job is missing")
    check(not any("spec" in j or "plan" in j for j in kept), kept)


def test_a_bundle_has_what_nodes_say(c):
    path = os.path.join(c.dir, "bundle.json")
    equal(run(c, "support", "bundle", path).stdout, f"saved {path}\n", "a bundle")
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, "its mode")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    doc = json.loads(text)
    equal(set(doc["nodes"]), set(c.nodes), "nodes")
    equal(len(doc["nodes"]["t1"]["mountpaths"]["mountpaths"]), 2, "mountpaths of t1")
    for part in ("overview", "smap", "bmd", "config", "settings", "jobs", "events", "stats"):
        check("error" not in doc["cluster"][part], f"{part}: {doc['cluster'][part]}")
    check("health" in doc["health"] and doc["dfcctl"]["version"], "health and version")
    with open(c.key_file, encoding="ascii") as f:
        check(f.readline().strip() not in text, "the key is not in it")
    equal(set(json.loads(run(c, "support", "bundle", "-").stdout)), set(doc), "on standard output")
    run(c, "support", "bundle", os.path.join(c.dir, "none", "x"), status=FAILED)


def test_a_log_is_followed_over_a_restart(c):
    """The next run numbers its lines from 1 again."""
    command = [os.path.join(BUILD, "dfcctl"), "node", "logs", "t1", "--follow", "--limit", "1"]
    with subprocess.Popen(command, env=c.dfcctl_environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as follower:
        lines = []
        reader = threading.Thread(
            target=lambda: lines.extend(iter(follower.stdout.readline, "")))
        reader.start()
        try:
            wait_for(lambda: lines, "the last line")
            c.kill("t1")
            c.start("t1")
            wait_for(lambda: any("starting program=" in line for line in lines),
                     "the first line of the next run")
        finally:
            follower.terminate()
            follower.wait()
            reader.join()
    wait_quiet(c)


def test_the_last_lines_of_a_log(c):
    for node in ("t1", "p1"):
        lines = run(c, "node", "logs", node).stdout.splitlines()
        check(f" INFO {node} starting program=" in lines[0], lines[0])
        doc = run_json(c, "node", "logs", node, "--limit", "2")
        equal((len(doc["lines"]), doc["missed"]), (2, 0), "the last two")
        check(doc["next"] >= len(lines), doc)
    check("registered" in run(c, "node", "logs", "t1").stdout, "a target registers")
    equal(len(run(c, "node", "logs", "t1", "--limit", "1").stdout.splitlines()), 1, "one line")
    run(c, "node", "logs", "t9", status=NOT_FOUND)
    run(c, "node", "logs", "t1", "--follow", "-o", "json", status=USAGE)
    c.call("GET", "/v1/daemon/log", node="t1").expect(404)  # a public listener has no such call


def test_a_bundle_says_what_is_missing(c):
    c.stop("t3")
    c.wait_node("t3", "unreachable")
    path = os.path.join(c.dir, "bundle.json")
    done = run(c, "support", "bundle", path, "--retries", "0", status=PARTIAL)
    check("4 of 22 parts are missing" in done.stderr, done.stderr)
    with open(path, encoding="utf-8") as f:
        check("message" in json.load(f)["nodes"]["t3"]["info"]["error"], "the error is there")
    c.start("t3")
    wait_quiet(c)


def test_a_target_that_leaves_is_waited_for(c):
    run(c, "node", "decommission", "t3", "--yes", "--wait")
    check("t3" not in [n["id"] for n in c.get_json("/v1/cluster")["nodes"]], "it has left")
    for i in range(20):
        c.get("two", f"o{i}").expect(200)


if __name__ == "__main__":
    main(targets=3)
