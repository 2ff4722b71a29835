#!/usr/bin/env python3
"""Full disks by the watermarks: PUT is refused in time and with a way out, all else goes on, and who
looks is told."""

import os
import re
import tempfile

from lib import check, equal, in_parallel, main, skip, wait_for

FULL = ("--space-low=1%", "--space-high=2%", "--space-out=3%")


def used_percent(path):
    fs = os.statvfs(path)
    return 100 * (fs.f_blocks - fs.f_bavail) / fs.f_blocks


def restart(c, node, *args):
    c.restart(node, *(f"--arg={a}" for a in args))


def owned_by(c, node, stem):
    return next(f"{stem}{i}" for i in range(1000) if c.owner("b", f"{stem}{i}") == node)


def space_states(c, node):
    text = c.call("GET", "/metrics", node=node).expect(200).body.decode()
    return sorted(int(n) for n in re.findall(r"dfc_mountpath_space_state\{[^}]*\} (\d)", text))


def node(c, name):
    return next(n for n in c.get_json("/v1/cluster")["nodes"] if n["id"] == name)


def capacity(c, name):
    """Of a target, which has told none yet where it has just come."""
    return node(c, name).get("capacity", {})


def test_room(c):
    c.create("b")
    for target in c.targets():
        c.put("b", owned_by(c, target, "o"), b"x" * 1000)
    wait_for(lambda: capacity(c, "t1").get("mountpaths_high") == 0, "no warning")
    check("Warning" not in c.dfcctl("cluster", "status").stdout, "cluster status")


def test_put_is_refused_with_a_way_out(c):
    restart(c, "t1", *FULL)
    name = owned_by(c, "t1", "n")
    reply = c.object("PUT", "b", name, b"x").expect(507, "no_space", "space_out (3%)")
    message = reply.json()["message"]
    check(os.path.join(c.dir, "t1", "mp") in message, message)
    check("delete objects, or add a mountpath" in message, message)
    c.get("b", name).expect(404, "object_not_found")
    c.object("PUT", "b", owned_by(c, "t1", "o"), b"over").expect(507, "no_space")
    c.put("b", owned_by(c, "t2", "n"), b"others have room")


def test_reads_lists_and_deletes_go_on(c):
    name = owned_by(c, "t1", "o")
    equal(c.get("b", name).expect(200).body, b"x" * 1000, "bytes")
    check(name in c.names("b"), "list")
    c.object("DELETE", "b", name).expect(204)
    c.get("b", name).expect(404)


def test_a_copy_fails_and_says_why(c):
    names = [f"c{i}" for i in range(30)]
    c.create("from", durability="async")
    in_parallel(lambda n: c.object("PUT", "from", n, b"x"), names)
    c.create("to")
    job_id = c.call("POST", "/v1/buckets/from", {"action": "copy", "value": {"to": "to"}}).expect(
        202).json()["id"]

    def ended():
        job = c.get_json(f"/v1/jobs/{job_id}")
        return job if job["state"] in ("finished", "failed") else None

    job = wait_for(ended, "end of the copy")
    equal(job["state"], "failed", "state")
    equal(job["errors"][0]["code"], "no_space", "code")
    check("space_out" in job["errors"][0]["message"], job["errors"])


def test_who_looks_is_told(c):
    wait_for(lambda: space_states(c, "t1") == [2, 2], "metric")
    equal(space_states(c, "t2"), [0, 0], "metric of another target")
    wait_for(lambda: capacity(c, "t1").get("mountpaths_out") == 2, "cluster's document")
    out = c.dfcctl("cluster", "status").stdout
    check("Warning: t1 has 2 mountpaths above space_high, 2 of them above space_out" in out, out)
    check("t2 has" not in out, out)
    lines = [line for line in c.log("t1").splitlines() if "takes no more objects" in line]
    equal(len(lines), 2, "one line for each mountpath")


def test_nobody_leaves_for_whose_objects_there_is_no_room(c):
    for action in ("startmaintenance", "decommission"):
        reply = c.call("PUT", "/v1/cluster", {"action": action, "name": "t2"})
        message = reply.expect(507, "no_space", "target 't1'").json()["message"]
        check("target 't2' has" in message and "force" in message, message)
        equal(node(c, "t2")["state"], "active", f"t2 after {action}")
    done = c.dfcctl("node", "maintenance", "start", "t2")
    check(done.returncode != 0 and "add a target" in done.stderr, f"{done}")


def test_only_a_warning(c):
    restart(c, "t1", "--space-low=1", "--space-high=2")
    c.put("b", owned_by(c, "t1", "n"), b"x")
    wait_for(lambda: space_states(c, "t1") == [1, 1], "metric")
    wait_for(lambda: capacity(c, "t1").get("mountpaths_out") == 0, "cluster's document")
    out = c.dfcctl("cluster", "status").stdout
    check("Warning: t1 has 2 mountpaths above space_high\n" in out, out)


def test_limits_in_the_wrong_order(c):
    c.stop("t1")
    done = c.run("start", "t1", "--arg=--space-high=60%", ok=False)
    check(done.returncode != 0, "it started")
    check("space_low (75%), space_high (60%)" in c.log("t1"), "the log says why")
    done = c.run("start", "t1", "--arg=--space-out=101%", ok=False)
    check("'101%' is out of bounds: at least 2%, at most 100%" in c.log("t1"), "the log says why")
    c.start("t1")
    c.wait_node("t1", "active")
    c.put("b", owned_by(c, "t1", "z"), b"x")


if __name__ == "__main__":
    if not 4 < used_percent(tempfile.gettempdir()) < 75:
        skip("the disk of the temporary directory must be used to 4% to 75%")
    main(targets=2)
