#!/usr/bin/env python3
"""What is shown of an object's copies: `dfcctl object show`, by what lies on the targets' disks."""

import json
import re

from copies import create, put, wait_repaired
from lib import check, equal, main, wait_for

BODY = b"shown" * 100


def shown(c, name, *flags, status=0):
    """{target: its entry}"""
    done = c.dfcctl("object", "show", f"b/{name}", "-o", "json", *flags)
    equal(done.returncode, status, f"the end of {done.args}: {done.stderr}")
    document = json.loads(done.stdout)
    equal(document["copies_wanted"], 2, "copies_wanted")
    return {entry["node"]: entry for entry in document["copies"]}


def those(entries, field):
    return sorted(node for node, entry in entries.items() if entry.get(field))


def test_copies_lie_on_their_owners(c):
    create(c, "b", 2)
    stored = put(c, "b", "a/ü", BODY).json()
    entries = shown(c, "a/ü")
    equal(sorted(entries), ["t1", "t2", "t3"], "targets")
    equal(len(those(entries, "owner")), 2, "owners")
    equal(those(entries, "found"), those(entries, "owner"), "who has it")
    equal(those(entries, "acting"), [c.owner("b", "a/ü")], "who acts")
    for node in those(entries, "found"):
        entry = entries[node]
        equal((entry["version"], entry["checksum"], entry["size"], entry["tombstone"]),
              (stored["version"], stored["checksum"], len(BODY), False), f"at {node}")


def test_nothing_is_shown_of_what_never_was(c):
    equal(those(shown(c, "never", status=3), "found"), [], "who has it")
    check("object 'b/never' does not exist" in c.dfcctl("object", "show", "b/never").stderr,
          "of no object")
    check("bucket 'no' does not exist" in c.dfcctl("object", "show", "no/a").stderr, "of no bucket")


def test_damage_is_seen_and_left_alone(c):
    entries = shown(c, "a/ü", "--checksums")
    equal(those(entries, "intact"), those(entries, "found"), "intact ones")
    victim = those(entries, "found")[0]
    path = next(p for p in c.object_files(victim))
    with open(path, "r+b") as f:
        f.write(b"S")
    entries = shown(c, "a/ü", "--checksums")
    equal((entries[victim]["intact"], len(those(entries, "intact"))), (False, 1), "the damage")
    table = c.dfcctl("object", "show", "b/a/ü", "--checksums").stdout
    check("DAMAGED" in table and "intact" in table and "leader" in table, table)


def test_a_deletion_is_on_all_owners(c):
    put(c, "b", "gone", BODY)
    c.object("DELETE", "b", "gone").expect(204)
    entries = shown(c, "gone")
    equal(those(entries, "tombstone"), those(entries, "owner"), "tombstones")


def protection_is(c, word):
    """Of the only bucket, as its document and the metric say it."""
    metrics = c.call("GET", "/metrics").expect(200).body.decode()
    found = re.findall(r'cluster_buckets{protection="(\w+)"} 1$', metrics, re.M)
    return found == [word] and c.get_json("/v1/buckets/b")["protection"] == word


def what_lacks_is_named(c, victim):
    why = f"target '{victim}' is unreachable"
    c.create("one")
    one, several = c.get_json("/v1/buckets/one"), c.get_json("/v1/buckets/b")
    equal((one["protection"], one["why"]), ("unavailable", why), "of the bucket with one copy")
    equal((several["protection"], several["why"]), ("degraded", why), "of the bucket with two")
    done = c.dfcctl("storage", "summary", "-o", "json")
    equal(done.returncode, 6, f"the end of {done.args}: {done.stderr}")
    sums = json.loads(done.stdout)
    equal((sums["b"]["missing"], sums["b"]["objects"] > 0), ([victim], True), "the others' sums")
    check(victim in c.dfcctl("storage", "summary").stderr, "not named")
    health = c.dfcctl("cluster", "health").stdout
    for bucket, word in (("one", "unavailable"), ("b", "degraded")):
        check(f"bucket '{bucket}' is {word}: {why}" in health, health)
    check("Health: red;" in c.dfcctl("cluster", "status").stdout, "cluster status")
    c.destroy("one")
    check("Health: yellow;" in c.dfcctl("cluster", "status").stdout, "cluster status")


def repair_goes_without(c, victim):
    done = c.dfcctl("job", "start", "repair", "--wait", "-o", "json")
    equal(done.returncode, 0, f"the end of {done.args}: {done.stderr}")
    repairs = c.get_json("/v1/jobs?kind=repair")["jobs"]
    check(f"without '{victim}'" in repairs[-1]["description"], repairs[-1])


def test_one_copy_is_called_so_and_too_many_are_warned_of(c):
    c.create("one")
    one = c.get_json("/v1/buckets/one")
    equal((one["protection"], "why" in one), ("one_copy", False), "one copy")
    c.destroy("one")
    done = c.dfcctl("bucket", "create", "many", "--copies", "5")
    check(done.returncode == 0 and "5 copies are asked for, and there are 3 targets" in done.stderr,
          done.stderr)
    c.destroy("many")


def test_who_does_not_answer_is_named(c):
    check(protection_is(c, "protected"), "all are there")
    done = c.dfcctl("storage", "summary", "-o", "json")
    equal(json.loads(done.stdout)["b"]["protection"], "protected", "in the summary")
    victim = those(shown(c, "a/ü"), "owner")[0]
    c.kill(victim)
    entries = shown(c, "a/ü")
    check(entries[victim]["error"]["code"] in ("network_error", "node_unreachable", "timeout"),
          entries[victim])
    equal(len(those(entries, "found")), 1, "others that have it")
    wait_for(lambda: protection_is(c, "degraded"), "the end of the protection")
    check("degraded" in c.dfcctl("bucket", "ls").stdout, "bucket ls")
    what_lacks_is_named(c, victim)
    repair_goes_without(c, victim)
    c.start(victim)
    c.wait_node(victim, "active")
    wait_repaired(c)
    wait_for(lambda: protection_is(c, "protected"), "protection after the repair")


if __name__ == "__main__":
    main(targets=3)
