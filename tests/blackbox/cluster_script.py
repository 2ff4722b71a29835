#!/usr/bin/env python3
"""deploy/local/cluster itself: what it prints, how it ends, what it refuses."""

import json
import os
import subprocess
import sys

from lib import CLUSTER, check, equal, main


def test_status_has_every_field(c):
    nodes = json.loads(c.run("status", "--json").stdout)["nodes"]
    equal([n["name"] for n in nodes], ["p1", "t1", "t2"], "names")
    equal([n["role"] for n in nodes], ["proxy", "target", "target"], "roles")
    equal([n["primary"] for n in nodes], [True, False, False], "primary")
    for n in nodes:
        equal(n["state"], "active", f"state of {n['name']}")
        check(os.path.exists(f"/proc/{n['pid']}"), f"pid of {n['name']}")
        check(n["url"].startswith("http://127.0.0.1:"), f"url of {n['name']}")
    text = c.run("status").stdout
    check(all(n["url"] in text and str(n["pid"]) in text for n in nodes), f"the table:\n{text}")


def test_up_again_changes_nothing(c):
    before = c.status()
    done = c.run("up")
    equal(done.stdout, f"DFC_ENDPOINT={c.endpoint}\nDFC_CLUSTER_KEY_FILE={c.key_file}\n",
          "output of up")
    equal(c.status(), before, "nodes")


def test_up_does_not_make_another_cluster_of_it(c):
    done = c.run("up", "--targets", 5, ok=False)
    equal(done.returncode, 1, "status")
    check("has 2 targets, not 5" in done.stderr, done.stderr)


def test_up_takes_arguments_for_nodes_that_start(c):
    done = c.run("up", "--target-arg=--space-high=91%", ok=False)
    equal(done.returncode, 1, "status")
    check("these are running: t1, t2; `cluster down`" in done.stderr, done.stderr)
    c.run("down")
    c.run("up", "--target-arg=--space-high=91%")
    c.run("down")
    c.run("up")
    shown = c.dfcctl("config", "show", "space_high", "--node", "t1").stdout
    check("91%" in shown, f"what t1 was started with again: {shown}")


def test_states_of_a_node(c):
    before = {n["name"]: n for n in c.status()}
    c.kill("t1", "-9")
    equal(c.state("t1"), "dead", "after kill")
    equal(c.pid("t1"), None, "pid after kill")
    c.start("t1")
    equal(c.state("t1"), "active", "after start")
    equal(next(n["url"] for n in c.status() if n["name"] == "t1"), before["t1"]["url"], "url")
    check(c.pid("t1") != before["t1"]["pid"], "the pid is the old one")
    c.stop("t1")
    equal(c.state("t1"), "stopped", "after stop")
    c.start("t1")


def test_refusals_are_sentences(c):
    for args, text in ((("kill", "t9"), "has no node 't9'; it has p1, t1, t2"),
                       (("start", "t1"), "t1 is running already"),
                       (("start", "p1", "--arg=--no-such-option"), "running already")):
        done = c.run(*args, ok=False)
        equal(done.returncode, 1, f"status of {args}")
        check(text in done.stderr, f"{args}: {done.stderr}")
    c.stop("t2")
    for command in ("stop", "kill"):
        check("t2 is not running" in c.run(command, "t2", ok=False).stderr, command)
    failed = c.run("start", "t2", "--arg=--no-such-option=1", ok=False)
    check("t2 ended with status" in failed.stderr and "--no-such-option" in failed.stderr,
          f"a daemon that ends at once: {failed.stderr}")
    c.start("t2")


def test_only_up_makes_a_directory(c):
    nowhere = os.path.join(c.dir, "mistyped")
    for command in (["start", "t1"], ["stop", "t1"], ["kill", "t1"], ["down"], ["status"]):
        done = c.run(*command, "--dir", nowhere, ok=False)
        check("there is no cluster in" in done.stderr, f"{command}: {done.stderr}")
        check(not os.path.exists(nowhere), f"{command} made a directory")


def test_a_strangers_process_is_never_signalled(c):
    """The document names a pid that is somebody else's by now."""
    path = os.path.join(c.dir, "cluster.json")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        document = json.loads(text)
        document["nodes"][1]["pid"] = stranger.pid
        with open(path, "w", encoding="utf-8") as f:
            json.dump(document, f)
        check("not running" in c.run("kill", "t1", "-9", ok=False).stderr, "kill took a stranger")
        equal(stranger.poll(), None, "the stranger")
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        stranger.kill()
        stranger.wait()


def test_down_keeps_data_and_up_brings_it_back(c):
    c.create("b")
    c.put("b", "x", b"kept")
    c.run("down")
    equal({n["state"] for n in c.status()}, {"stopped"}, "states after down")
    c.run("up")
    equal(c.get("b", "x").expect(200).body, b"kept", "the object")


def test_its_directory_has_a_variable_of_its_own(c):
    """DFC_DIR is a daemon's `--dir`: whoever sets it for one does not mean the script."""
    env = {**os.environ, "DFC_DIR": "/nowhere/daemon", "DFC_CLUSTER_DIR": c.dir}
    shown = subprocess.run([sys.executable, CLUSTER, "status", "--json"], env=env,
                           capture_output=True, text=True, check=False)
    equal(shown.returncode, 0, f"status: {shown.stderr}")
    equal(json.loads(shown.stdout)["nodes"], c.status(), "the nodes of DFC_CLUSTER_DIR")
    del env["DFC_CLUSTER_DIR"]
    lost = subprocess.run([sys.executable, CLUSTER, "status"], env=env, capture_output=True,
                          text=True, cwd=c.node_dir("t1"), check=False)
    check(".dfc-cluster" in lost.stderr and "/nowhere" not in lost.stderr, lost.stderr)


def test_all_is_below_its_directory(c):
    with open(f"/proc/{c.pid('t1')}/cmdline", "rb") as f:
        arguments = f.read().split(b"\0")
    paths = [a for a in arguments if b"/" in a and b"http" not in a and b"dfc-targetd" not in a
             and not a.startswith(b"--backend-allow")]
    check(paths and all(c.dir.encode() in a for a in paths), f"{paths}")


def test_up_locks_a_cluster_that_is_down(c):
    """The last: from here on callers need a proof."""
    refused = c.run("up", "--auth", ok=False)
    equal(refused.returncode, 1, "status while the nodes run")
    check("--auth is for nodes that start, and these are running: p1, t1, t2; `cluster down`"
          in refused.stderr, refused.stderr)
    c.create("locked")
    c.put("locked", "x", b"kept")
    c.run("down")
    printed = c.run("up", "--auth", "--s3").stdout
    check("DFC_ACCESS_KEY=" in printed and "DFC_S3_ENDPOINT=" in printed, printed)
    equal(c.get("locked", "x").status, 401, "a read without a proof")
    equal(c.run("up").stdout, printed, "up again")


if __name__ == "__main__":
    main(targets=2)
