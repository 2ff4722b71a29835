#!/usr/bin/env python3
"""A target starts with the disks that work.  One that is missing is red, and named, until an
operator decides: it is
enabled, or given up.  An empty directory in its place is never a new disk; without any disk nothing
starts."""

import json
import os

from lib import check, equal, main, wait_for

NAMES = [f"o{i}" for i in range(40)]
LOST = "mp2"


def path_of(c):
    return os.path.join(c.node_dir("t1"), LOST)


def take_away(c):
    """The disk is not mounted; its mount point is there."""
    c.stop("t1")
    os.rename(path_of(c), path_of(c) + ".away")
    os.mkdir(path_of(c))


def put_back(c):
    os.rmdir(path_of(c))
    os.rename(path_of(c) + ".away", path_of(c))


def health(c):
    return json.loads(c.dfcctl("cluster", "health", "-o", "json").stdout)


def red_reason(c):
    """That of the missing disk."""
    found = [r for r in health(c)["reasons"] if "was missing at its start" in r["text"]]
    return found[0] if found else None


def green(c):
    return health(c)["health"] == "green"


def states(c):
    listed = c.get_json("/v1/daemon?what=mountpaths", "t1")["mountpaths"]
    return {os.path.basename(m["path"]): m["state"] for m in listed}


def test_before(c):
    for bucket, copies in (("one", 1), ("two", 2)):
        c.create(bucket, copies=copies)
        for name in NAMES:
            c.put(bucket, name, name.encode()).expect(200)
    wait_for(lambda: green(c), "a green cluster")


def test_the_target_starts_with_the_other_disk(c):
    take_away(c)
    c.start("t1")
    equal(states(c), {"mp1": "enabled", "mp2": "disabled"}, "states")
    equal(os.listdir(path_of(c)), [], "what was made in the place of the missing disk")
    reason = wait_for(lambda: red_reason(c), "health names the missing disk")
    equal((reason["health"], reason["node"]), ("red", "t1"), "reason")
    check(f"'{path_of(c)}'" in reason["text"] and "--lost" in reason["text"], reason["text"])
    equal(c.dfcctl("cluster", "health").returncode, 1, "exit status of health")
    for name in NAMES:  # as soon as the map passes its copies over
        reply = wait_for(
            lambda n=name: next((r for r in [c.get("two", n)] if r.status == 200), None),
            f"two/{name}")
        equal(reply.body, name.encode(), name)
    answers = {c.get("one", name).status for name in NAMES}
    equal(answers, {200, 503}, "of objects with one copy")
    seen = c.call("GET", "/metrics", node="t1").body.decode()
    check(f'dfc_mountpath_state{{mountpath="{path_of(c)}",state="missing"}} 1\n' in seen,
          "metric of the missing disk")


def test_it_stays_so_until_somebody_decides(c):
    put_back(c)
    c.stop("t1")
    c.start("t1")
    equal(states(c)["mp2"], "disabled", "after a restart with the disk")
    wait_for(lambda: red_reason(c), "health still names it")
    done = c.dfcctl("storage", "mountpath", "enable", "t1", path_of(c))
    equal(done.returncode, 0, done.stderr)
    equal(states(c)["mp2"], "enabled", "as before")
    wait_for(lambda: green(c), "a green cluster")
    for bucket in ("one", "two"):
        for name in NAMES:
            equal(c.get(bucket, name).expect(200).body, name.encode(), f"{bucket}/{name}")


def test_an_empty_directory_is_not_the_disk(c):
    take_away(c)
    c.start("t1")
    reason = wait_for(lambda: red_reason(c), "health names the missing disk")
    check(f"mountpath enable t1 {path_of(c)}'" in reason["text"], reason["text"])
    for action in ("enable", "attach"):
        done = c.dfcctl("storage", "mountpath", action, "t1", path_of(c))
        check(
            done.returncode == 1 and "missing, or an empty directory" in done.stderr and
            "--lost" in done.stderr, f"{action}: {done}")
    equal(os.listdir(path_of(c)), [], "what was made in the place of the missing disk")


def test_it_can_be_given_up(c):
    done = c.dfcctl("storage", "mountpath", "detach", "t1", path_of(c), "--lost", "--yes")
    equal(done.returncode, 0, done.stderr)
    wait_for(lambda: red_reason(c) is None, "health has nothing to say of it")
    wait_for(lambda: green(c), "a green cluster")
    answers = {c.get("one", name).status for name in NAMES}
    check(503 not in answers, f"of objects with one copy: {answers}")
    for name in NAMES:
        equal(c.get("two", name).expect(200).body, name.encode(), name)
    c.stop("t1")
    c.start("t1")
    equal(states(c), {"mp1": "enabled"}, "what was given up is not opened again")


def test_the_empty_directory_is_then_a_new_disk(c):
    done = c.dfcctl("storage", "mountpath", "attach", "t1", path_of(c))
    equal(done.returncode, 0, done.stderr)
    equal(states(c), {"mp1": "enabled", "mp2": "enabled"}, "states")
    wait_for(lambda: green(c), "a green cluster")
    done = c.dfcctl("storage", "mountpath", "detach", "t1", path_of(c), "--lost", "--yes")
    equal(done.returncode, 0, done.stderr)


def test_without_any_disk_it_does_not_start(c):
    c.stop("t1")
    remaining = os.path.join(c.node_dir("t1"), "mp1", ".dfc", "index")
    os.rename(remaining, remaining + ".away")
    with open(remaining, "w", encoding="ascii"):
        pass
    refused = c.run("start", "t1", ok=False)
    check("no mountpath works" in refused.stderr, refused.stderr)
    os.unlink(remaining)
    os.rename(remaining + ".away", remaining)
    c.start("t1")
    wait_for(lambda: green(c), "a green cluster")


def test_one_may_insist_on_all(c):
    c.stop("t2")
    path = os.path.join(c.node_dir("t2"), "mp1")
    os.rename(path, path + ".away")
    refused = c.run("start", "t2", "--arg=--mountpath-missing-ok=false", ok=False)
    check(f"mountpath '{path}' is missing" in refused.stderr, refused.stderr)
    os.rmdir(path)  # the script's, which makes the directories of a target that it starts
    os.rename(path + ".away", path)
    c.start("t2")


if __name__ == "__main__":
    main(targets=3)
