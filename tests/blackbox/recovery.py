#!/usr/bin/env python3
"""Backup and restore of the documents; a primary that lost its directory becomes the one of its
cluster again from what the targets have kept, and never a new one for them."""

import json
import os
import shutil

from lib import check, equal, main, wait_for
from node_identity import swap_ports

CREATE = {"action": "create"}


def names(c):
    return sorted(b["name"] for b in c.get_json("/v1/buckets")["buckets"])


def epoch(c):
    return c.get_json("/v1/cluster")["term"] >> 44


def ctl_json(c, *args):
    done = c.dfcctl(*args, "-o", "json")
    equal(done.returncode, 0, f"{args}: {done.stderr}")
    return json.loads(done.stdout)


def store(c):
    return os.path.join(c.node_dir("p1"), "metastore")


def targets_are_back(c):
    for target in c.targets():
        c.wait_node(target, "active")


def test_a_backup_is_one_file_that_can_be_checked(c):
    c.create("one")
    c.create("two", durability="async")
    c.put("one", "o", b"bytes")
    path = os.path.join(c.dir, "backup.json")
    said = ctl_json(c, "cluster", "backup", path)
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    equal(document["dfc_backup"], 1, "format")
    equal(document["state"]["version"], said["version"], "version")
    equal(c.dfcctl("cluster", "restore", path).returncode, 0, "the same")
    document["state"]["next_bucket_id"] += 1
    damaged = os.path.join(c.dir, "damaged.json")
    with open(damaged, "w", encoding="utf-8") as f:
        json.dump(document, f)
    done = c.dfcctl("cluster", "restore", damaged, "--yes")
    check(done.returncode == 1 and "checksum" in done.stderr, f"{done}")


def test_restore_shows_asks_and_does_only_that(c):
    path = os.path.join(c.dir, "backup.json")
    c.destroy("two")
    c.create("three")
    c.setting("jobs_max", "77")
    before = c.get_json("/v1/cluster")
    for more, code in ((("--dry-run",), 0), ((), 2)):  # nobody can be asked here
        done = c.dfcctl("cluster", "restore", path, *more)
        equal(done.returncode, code, f"{more}")
        for line in ("+ bucket 'two'", "- bucket 'three'", "setting 'jobs_max'"):
            check(line in done.stderr, f"{line}: {done.stderr}")
    equal(c.get_json("/v1/cluster")["version"], before["version"], "version")
    said = ctl_json(c, "cluster", "restore", path, "--yes")
    equal(len(said["changes"]), 3, f"changes of {said}")
    equal(names(c), ["one", "two"], "buckets")
    equal(c.get_json("/v1/cluster?what=config")["values"], {}, "settings")
    check(epoch(c) > before["term"] >> 44, "the epoch has grown")
    equal(c.get("one", "o").expect(200).body, b"bytes", "contents")
    c.put("two", "new", b"x")
    c.create("four")
    ids = [b["id"] for b in c.get_json("/v1/buckets")["buckets"]]
    equal(len(set(ids)), 3, "no id comes twice")
    check(max(ids) > 3, f"the new bucket has an id of its own: {ids}")
    targets_are_back(c)


def test_what_was_destroyed_does_not_come_back_with_its_bucket(c):
    """A target that was away when the bucket was destroyed has its objects still."""
    path = os.path.join(c.dir, "before.json")
    old = [f"o{i}" for i in range(40)]
    c.create("gone")
    for name in old:
        c.put("gone", name, b"old")
    check("t2" in {c.owner("gone", name) for name in old}, "t2 has some of them")
    ctl_json(c, "cluster", "backup", path)
    c.kill("t2")
    c.destroy("gone")
    said = ctl_json(c, "cluster", "restore", path, "--yes")
    equal([(one["change"], one["name"]) for one in said["changes"]], [("add", "gone")], "changes")
    c.start("t2")
    targets_are_back(c)
    equal(c.names("gone"), [], "what was destroyed")
    for name in old:
        c.get("gone", name).expect(404, "object_not_found")
    c.put("gone", "new", b"new")
    done = c.dfcctl("cluster", "restore", path, "--yes")  # it is there by now
    equal(done.returncode, 0, f"{done}")
    equal(c.get("gone", "new").expect(200).body, b"new", "what was put since")
    c.destroy("gone")


def test_what_changed_meanwhile_is_not_overwritten(c):
    state = c.get_json("/v1/cluster?what=state")
    value = {"state": state, "bmd": state["bmd"]["version"], "config": state["config"]["version"]}
    c.create("meanwhile")
    c.call("POST", "/v1/cluster/documents",
           {"action": "restore", "value": value}).expect(412, "precondition_failed")
    state["cluster"] = "c-another"
    value["bmd"] += 1
    c.call("POST", "/v1/cluster/documents",
           {"action": "restore", "value": value}).expect(409, "wrong_cluster")
    check("meanwhile" in names(c), "the bucket stays")


def health(c, code):
    done = c.dfcctl("cluster", "health", "-o", "json")
    equal(done.returncode, code, f"health: {done}")
    return json.loads(done.stdout)


def test_health_has_a_colour_and_reasons(c):
    wait_for(lambda: health(c, 0) == {"health": "green", "reasons": []}, "green")
    c.stop("t2")
    c.wait_node("t2", "unreachable")
    said = health(c, 1)
    equal((said["health"], [r["node"] for r in said["reasons"] if "node" in r]), ("red", ["t2"]),
          "health")
    overview = c.get_json("/v1/cluster")
    equal({"health": overview["health"], "reasons": overview["reasons"]}, said, "the cluster's")
    check(all("t2" in r["text"] for r in said["reasons"] if "node" not in r),
          f"of buckets: {said['reasons']}")
    c.start("t2")
    targets_are_back(c)
    wait_for(lambda: health(c, 0)["health"] == "green", "green again")
    done = c.dfcctl("cluster", "watch", "--count", 1)
    check(done.returncode == 0 and "Health: green" in done.stdout, f"{done}")


def empty_directory(c):
    c.kill("p1")
    shutil.rmtree(store(c))
    c.start("p1")


def strangers(c):
    return ctl_json(c, "cluster", "recover", "--dry-run")


def all_are_heard(c):
    """Both targets have asked to be let in, and were refused."""
    wait_for(lambda: len(c.get_json("/v1/cluster/documents")["copies"]) == 2, "both ask")


def test_an_empty_directory_is_no_new_cluster_for_old_targets(c):
    before, old = c.get_json("/v1/cluster"), names(c)
    empty_directory(c)
    all_are_heard(c)
    now = c.get_json("/v1/cluster")
    check(now["cluster"] != before["cluster"], "it is another cluster")
    equal([n["id"] for n in now["nodes"]], ["p1"], "nodes")
    c.call("POST", "/v1/buckets/one", CREATE).expect(409, "wrong_cluster", text="recover")
    shown = strangers(c)
    equal([(k["node"], k["buckets"]) for k in shown["copies"]],
          [("t1", len(old)), ("t2", len(old))], "copies")
    equal(len({k["digest"] for k in shown["copies"]}), 1, "they agree")
    equal(shown["plan"]["cluster"], before["cluster"], "to be believed")
    equal(shown["plan"]["unheard"], [], "nobody is missing")
    check("recover" in str(health(c, 1)["reasons"]), "health tells of it")
    equal(c.dfcctl("cluster", "recover").returncode, 2, "it asks")
    done = c.dfcctl("cluster", "recover", "--yes")
    equal(done.returncode, 0, done.stderr)
    check("To be believed" in done.stderr, done.stderr)
    equal(names(c), old, "buckets")
    after = c.get_json("/v1/cluster")
    equal(after["cluster"], before["cluster"], "cluster")
    check(after["term"] >> 44 > before["term"] >> 44, "the epoch has grown")
    targets_are_back(c)
    equal(c.get("one", "o").expect(200).body, b"bytes", "contents")
    c.create("after")
    done = c.dfcctl("cluster", "recover", "--yes")
    equal(done.returncode, 3, f"nothing more to recover: {done}")
    # It lasts.
    c.kill("p1")
    c.start("p1")
    equal(names(c), sorted(old + ["after"]), "buckets after a restart")
    targets_are_back(c)


def test_an_earlier_directory_is_recovered_too(c):
    c.stop("p1")
    shutil.copytree(store(c), store(c) + ".earlier")
    c.start("p1")
    c.create("later")
    targets_are_back(c)
    state = c.get_json("/v1/cluster")
    wait_for(lambda: all(c.get_json("/v1/daemon", t)["version"] >= state["version"]
                         for t in c.targets()), "the targets know")
    c.kill("p1")
    shutil.rmtree(store(c))
    shutil.move(store(c) + ".earlier", store(c))
    c.start("p1")
    check("later" not in names(c), "it is the past")
    all_are_heard(c)
    equal(c.dfcctl("cluster", "recover", "--yes").returncode, 0, "recover")
    check("later" in names(c), "what the nodes have seen counts")
    targets_are_back(c)


def restart_with_the_others_ports(c):
    c.stop("t1")
    c.stop("t2")
    swap_ports(c, "t1", "t2")
    c.start("t1")
    c.start("t2")

    def are_known():
        urls = {n["id"]: n["public_url"] for n in c.get_json("/v1/cluster")["nodes"]}
        return all(urls[t] == c.url(t) for t in c.targets())

    wait_for(are_known, "the map has their addresses")
    targets_are_back(c)


def test_copies_of_targets_that_have_moved_are_read(c):
    """By the map of the earlier directory each has the other's address."""
    c.stop("p1")
    shutil.copytree(store(c), store(c) + ".earlier")
    c.start("p1")
    targets_are_back(c)
    restart_with_the_others_ports(c)
    c.create("moved")
    state = c.get_json("/v1/cluster")
    wait_for(lambda: all(c.get_json("/v1/daemon", t)["version"] >= state["version"]
                         for t in c.targets()), "the targets know")
    c.kill("p1")
    shutil.rmtree(store(c))
    shutil.move(store(c) + ".earlier", store(c))
    c.start("p1")
    all_are_heard(c)
    done = c.dfcctl("cluster", "recover", "--yes")
    equal(done.returncode, 0, f"{done}")
    check("moved" in names(c), "what the nodes have seen counts")
    targets_are_back(c)


def recover_needs_a_word(c, lacking, heard):
    """`lacking` may know more: only an operator can say that it is lost."""
    before = c.get_json("/v1/cluster")["cluster"]
    done = c.dfcctl("cluster", "recover", "--yes")
    check(done.returncode == 1 and f"node '{lacking}' has not given" in done.stderr and
          f"--node {heard}" in done.stderr, f"{done}")
    equal(c.get_json("/v1/cluster")["cluster"], before, "nothing is recovered")
    equal(c.dfcctl("cluster", "recover", "--yes", "--node", heard).returncode, 0, "recover")


def test_a_copy_that_cannot_be_read_is_as_none(c):
    old = names(c)
    empty_directory(c)
    all_are_heard(c)
    c.kill("t1")
    recover_needs_a_word(c, "t1", "t2")
    c.start("t1")
    targets_are_back(c)
    equal(names(c), old, "buckets")


def test_a_target_that_is_away_is_named_and_follows(c):
    c.stop("t2")
    old = names(c)
    empty_directory(c)
    wait_for(lambda: len(c.get_json("/v1/cluster/documents")["copies"]) == 1, "t1 asks")
    equal(strangers(c)["plan"]["unheard"], ["t2"], "who may know more")
    recover_needs_a_word(c, "t2", "t1")
    c.start("t2")
    targets_are_back(c)
    equal(names(c), old, "buckets")


def test_a_backup_begins_a_cluster_whose_documents_are_lost(c):
    path = os.path.join(c.dir, "last.json")
    old = names(c)
    ctl_json(c, "cluster", "backup", path)
    c.kill("p1")
    shutil.rmtree(store(c))
    c.start("p1", f"--arg=--import={path}")
    equal(names(c), old, "buckets")
    targets_are_back(c)


if __name__ == "__main__":
    main(targets=2, args=("--proxy-arg=--keepalive-timeout=2s",))
