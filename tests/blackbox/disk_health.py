#!/usr/bin/env python3
"""A disk dies under a target: it is found out, taken out, and told of; the target serves the rest,
restarts without it, and takes it back when it works again.

Skipped (77) without root, loop devices or the programs that make the file systems."""

import sys

from disks import Disk, DiskCluster, body_of, enter, on_disk
from lib import Failed, check, end_on_signals, equal, run_one, wait_for

NAMES = [f"o{i:02d}" for i in range(48)]
FAST = ["--target-arg=--health-interval=50ms", "--target-arg=--health-test-size=64KiB"]


def mountpaths(c):
    return c.get_json("/v1/daemon?what=mountpaths", node="t1")["mountpaths"]


def state_of(c, disk):
    return next(m for m in mountpaths(c) if m["path"] == disk.path)


def ask(c, action, disk):
    body = {"action": action, "value": disk.path}
    return c.call("PUT", "/v1/daemon/mountpaths", body, node="t1")


def is_out(c, disk):
    c.get("b", on_disk_names(c)[0])  # somebody has to meet the errors
    m = state_of(c, disk)
    return m if m["state"] == "disabled" and "objects" in m else None


def on_disk_names(c):
    return c.bad


def check_served(c):
    """The other disk's objects as ever; this one's are refused, by name."""
    for name in NAMES:
        reply = c.get("b", name)
        if name in c.bad:
            reply.expect(503, "mountpath_disabled", f"mountpath '{c.disk.path}' of target 't1'")
            c.object("PUT", "b", name, b"new").expect(503, "mountpath_disabled")
        else:
            equal(reply.expect(200).body, body_of(name), name)
            c.put("b", name, body_of(name))


def fill(c):
    c.create("b")
    for name in NAMES:
        c.put("b", name, body_of(name))
    c.bad = on_disk(c)
    check(len(c.bad) >= 12, f"only {len(c.bad)} objects lie on the disk")


def dies_and_comes_back(c):
    fill(c)
    c.disk.die()
    m = wait_for(lambda: is_out(c, c.disk), "the disk taken out")
    equal(m["objects"], len(c.bad), "what it held")
    check("test" in m["why"], f"why: {m['why']}")
    check_served(c)
    shown = c.dfcctl("storage", "mountpath", "ls", "t1").stdout
    check("disabled" in shown and str(len(c.bad)) in shown, shown)
    check("mountpath disabled" in c.log("t1"), "the log says nothing")
    wait_for(c.disk.unmounted, "its release")
    c.stop("t1")
    c.start("t1")  # without it
    c.wait_node("t1", "active")
    check_served(c)
    ask(c, "enable", c.disk).expect(409, "mountpath_state")
    c.disk.mount(c.disk.path)
    ask(c, "enable", c.disk).expect(200)
    for name in NAMES:
        equal(c.get("b", name).expect(200).body, body_of(name), name)
    equal(c.names("b"), NAMES, "the list")


def is_replaced(c):
    fill(c)
    c.disk.die()
    wait_for(lambda: is_out(c, c.disk), "the disk taken out")
    body = {"action": "detach", "value": {"path": c.disk.path, "lost": True}}
    c.call("PUT", "/v1/daemon/mountpaths", body, node="t1").expect(200)
    for name in NAMES:
        c.get("b", name).expect(404 if name in c.bad else 200)
        c.put("b", name, body_of(name, 2))
    equal(c.names("b"), NAMES, "the list")


def stays_when_read_only(c):
    fill(c)
    c.disk.protect()
    for name in c.bad:
        equal(c.object("PUT", "b", name, b"x").status, 500, "a PUT")
    wait_for(lambda: "read-only" in c.log("t1"), "the test")
    for name in NAMES:
        equal(c.get("b", name).expect(200).body, body_of(name), name)
    equal(state_of(c, c.disk)["state"], "enabled", "it")


def try_on(kind, function):
    disks = []
    try:
        for _ in range(2):
            disks.append(Disk(kind))
        c = DiskCluster(disks, *FAST)
        try:
            function(c)
        except Failed:
            c.print_logs()
            raise
        finally:
            c.run("down", ok=False)
            for disk in disks:
                disk.remove()
            c.remove()
    finally:
        for disk in disks:
            disk.remove()


def main():
    end_on_signals()
    enter()
    trials = [("ext4", dies_and_comes_back), ("xfs", dies_and_comes_back), ("ext4", is_replaced),
              ("ext4", stays_when_read_only)]
    passed = [run_one(f"a disk {f.__name__} ({kind})", try_on, kind, f) for kind, f in trials]
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
