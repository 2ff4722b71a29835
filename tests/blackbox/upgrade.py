#!/usr/bin/env python3
"""Documents and disk formats carry versions.  What a later release adds beside what we know is
passed over; a later *format* is refused with a sentence, and nothing is touched.

DFC_UPGRADE_FROM=REV (HEAD~1, say) also builds that commit in a temporary clone, and restarts a
cluster of it node by node with the programs under test, objects and changes going on throughout;
DFC_UPGRADE_BUILD=DIRECTORY names a build of another commit that is there already."""

import json
import os
import shutil
import subprocess
import tempfile

import lib
from lib import check, equal, main, wait_for

CREATE = {"action": "create"}
LATER = 9  # a format that this release does not know


def names(c):
    return sorted(b["name"] for b in c.get_json("/v1/buckets")["buckets"])


def save(c, name, document):
    path = os.path.join(c.dir, name)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(document, f)
    return path


def with_more(value):
    """The document as a later release may write it: a field more in each object of a known kind."""
    for part in [value, value["smap"], value["bmd"], value["config"], value["jobs"],
                 *value["smap"]["nodes"], *value["bmd"]["buckets"], *value["jobs"]["jobs"],
                 *[b["props"] for b in value["bmd"]["buckets"]]]:
        part["from_later"] = {"anything": [1, None, "x"]}
    return value


def begin_from(c, path, ok=True):
    c.kill("p1")
    shutil.rmtree(os.path.join(c.node_dir("p1"), "metastore"))
    if ok:
        c.start("p1", f"--arg=--import={path}")
        return ""
    return c.run("start", "p1", f"--arg=--import={path}", ok=False).stderr


def test_what_a_later_release_adds_is_passed_over(c):
    c.create("kept", durability="async")
    c.put("kept", "o", b"bytes")
    state = c.get_json("/v1/cluster?what=state")
    equal(state["format"], 1, "format")
    begin_from(c, save(c, "more.json", with_more(state)))
    equal(names(c), ["kept"], "buckets")
    c.wait_node("t1", "active")
    equal(c.get("kept", "o").expect(200).body, b"bytes", "contents")
    equal(c.get_json("/v1/buckets/kept")["props"]["durability"], "async", "a property")


def test_a_later_format_of_the_documents_is_refused(c):
    state = c.get_json("/v1/cluster?what=state")
    good = save(c, "good.json", state)
    state["format"] = LATER
    said = begin_from(c, save(c, "later.json", state), ok=False)
    check(f"'format' is {LATER}" in said and "this release reads" in said, said)
    c.ended_by_test.add("p1")
    c.start("p1", f"--arg=--import={good}")
    equal(names(c), ["kept"], "buckets")
    c.wait_node("t1", "active")


def edit(path, change):
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    change(document)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(document, f)


def formats(c):
    """The format.json of each of t1's mountpaths."""
    top = c.node_dir("t1")
    return [os.path.join(top, mp, ".dfc", "format.json") for mp in sorted(os.listdir(top))
            if mp.startswith("mp")]


def test_a_mountpath_of_a_later_layout_is_not_touched(c):
    c.stop("t1")
    for path in formats(c):
        edit(path, lambda d: d.update(format=d["format"] + 1))
    before = [open(path, "rb").read() for path in formats(c)]
    refused = c.run("start", "t1", ok=False)
    check(refused.returncode != 0 and "format" in refused.stderr, refused.stderr)
    equal([open(path, "rb").read() for path in formats(c)], before, "files")
    for path in formats(c):
        edit(path, lambda d: d.update(format=d["format"] - 1, from_later={"x": 1}))
    c.start("t1")
    c.wait_node("t1", "active")
    equal(c.get("kept", "o").expect(200).body, b"bytes", "contents")


def test_kept_documents_of_a_later_format_are_fetched_anew(c):
    """A target that was started with a later release meanwhile, and went back."""
    c.stop("t1")
    top = c.node_dir("t1")
    for mp in os.listdir(top):
        path = os.path.join(top, mp, ".dfc", "docs", "state.json")
        if os.path.exists(path):
            edit(path, lambda d: d.update(format=LATER))
    c.start("t1", "--arg=--mountpath-lost-ok=true")  # it has forgotten what it has seen
    c.wait_node("t1", "active")
    check("this release reads" in c.log("t1"), "its log tells why")
    equal(c.get("kept", "o").expect(200).body, b"bytes", "contents")


# --- another release's programs ------------------------------------------------------------------

def commit_of(revision):
    return subprocess.run(["git", "-C", lib.ROOT, "rev-parse", revision], check=True,
                          capture_output=True, text=True).stdout.strip()


def build_of(revision, top):
    source, build = os.path.join(top, "source"), os.path.join(top, "build")
    for argv in (["git", "clone", "-q", lib.ROOT, source],
                 ["git", "-C", source, "checkout", "-q", revision],
                 ["meson", "setup", build, source],
                 ["nice", "ninja", "-C", build, "-j2", "dfc-proxyd", "dfc-targetd", "dfcctl"]):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"{argv}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return build


def restart_with(c, node, build):
    c.stop(node)
    lib.BUILD = build
    c.start(node)
    wait_for(lambda: c.state(node) == "active", f"{node} is active")


def still_good(c, step):
    for name in c.names("old"):
        equal(c.get("old", name).expect(200).body, name.encode(), f"{name} after {step}")
    c.put("old", f"at-{step}", f"at-{step}".encode())
    wait_for(lambda: c.call("POST", f"/v1/buckets/b-{step}", CREATE).status in (201, 409),
             f"a change after {step}")


def test_a_cluster_of_another_commit_is_upgraded_node_by_node(_):
    revision, built = os.environ.get("DFC_UPGRADE_FROM"), os.environ.get("DFC_UPGRADE_BUILD")
    if not revision and not built:
        print("        (neither DFC_UPGRADE_FROM nor DFC_UPGRADE_BUILD is set)")
        return
    new = lib.BUILD
    with tempfile.TemporaryDirectory(prefix="dfc-upgrade-") as top:
        lib.BUILD = old = built or build_of(commit_of(revision), top)
        c = lib.Cluster(proxies=2, targets=3)
        try:
            c.create("old")
            for i in range(50):
                c.put("old", f"o{i}", f"o{i}".encode())
            for step, node in enumerate(["t1", "p1", "t2", "p2", "t3"]):
                restart_with(c, node, new)
                still_good(c, step)
            for step, node in enumerate(["t1", "p1"]):  # and back
                restart_with(c, node, old)
                still_good(c, f"back-{step}")
            equal(c.verdict(), [], "how they lived and ended")
        finally:
            lib.BUILD = new
            c.remove()


if __name__ == "__main__":
    main(targets=1)
