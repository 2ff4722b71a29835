#!/usr/bin/env python3
"""`copies` of a bucket is lowered while it is in use (cluster/placement/copies_reduce.h): what targets do not own any
more is
not read, not listed and not brought back, and goes, and the room on the disks is there again; under
a mixed load
with judged reads, over the end of a target and of the primary in the middle of it, with a target
that was away,
deletions whose tombstones are forgotten, and copies that are raised again.

DFC_SECONDS (1): how long the load runs at each stage."""

import json
import os
import random
from collections import Counter

from copies import Load, create, dead, get, patient, put, wait_repaired
from lib import check, contents, equal, in_parallel, main, wait_for
from object_jobs import ended

SECONDS = float(os.environ.get("DFC_SECONDS", 1))
LONG = 300
SIZE = 9000
NAMES = [f"still/{i:02d}" for i in range(30)]
LOWERED = "copies were lowered from"


def body_of(bucket, name, word="first"):
    return random.Random(f"{bucket}/{name}/{word}").randbytes(SIZE)


def fill(c, bucket, names, word="first"):
    in_parallel(lambda name: put(c, bucket, name, body_of(bucket, name, word)), names)


def set_copies(c, bucket, copies):
    done = c.dfcctl("bucket", "props", bucket, "--copies", str(copies))
    equal(done.returncode, 0, f"bucket props: {done.stderr}")


def why(c, bucket):
    return c.get_json(f"/v1/buckets/{bucket}").get("why", "")


def mirrors(c):
    return [j for j in c.get_json("/v1/jobs")["jobs"] if j["kind"] == "mirror"]


def wait_lowered(c, bucket):
    wait_for(lambda: LOWERED not in why(c, bucket), f"the end of what {bucket} has more", LONG)


def on_disks(c):
    """On how many targets these bytes lie."""
    found = Counter()
    for node in c.targets():
        for path in c.object_files(node):
            found[contents(path)] += 1
    return found


def still(c, bucket):
    return [name for name in sorted(c.names(bucket)) if name.startswith("still/")]


def all_are(c, bucket, bodies, copies):
    """Each name has these bytes, on so many targets, and the list has no others."""
    equal(still(c, bucket), sorted(bodies), f"names in {bucket}")
    for name, body in bodies.items():
        check(get(c, bucket, name).expect(200).body == body, f"{name}: other bytes")
    found = on_disks(c)
    equal({name: found[body]
           for name, body in bodies.items()}, dict.fromkeys(bodies, copies), "copies")


def test_room_comes_back_under_load(c):
    create(c, "load", 3)
    fill(c, "load", NAMES)
    bodies = {name: body_of("load", name) for name in NAMES}
    load = Load(c, "load", clients=4)
    for copies in (2, 1):
        load.run_for(SECONDS)
        set_copies(c, "load", copies)
        wait_for(lambda: LOWERED not in why(c, "load") or load.failed, "the end", LONG)
        all_are(c, "load", bodies, copies)
    load.run_for(SECONDS)
    load.end()
    load.check_all()
    last = mirrors(c)[-1]["id"]
    done = c.dfcctl("job", "ls", "--kind", "trim_copies")
    check(last in done.stdout and " mirror " not in done.stdout and done.stderr == "",
          f"its kind: {done.stdout}")
    equal(done.stdout.split("\n")[0].split()[3:5], ["PERCENT", "DONE"], "columns")
    done = c.dfcctl("job", "ls", "--kind", "mirror")
    check(last in done.stdout and "now called 'trim_copies'" in done.stderr,
          f"the old name: {done.stderr}")
    check(last in json.dumps(c.get_json("/v1/jobs?kind=trim_copies")), "a list of the kind's jobs")
    shown = json.loads(c.dfcctl("job", "show", last, "-o", "json").stdout)
    check(shown["progress"]["objects"]["done"] >= len(NAMES), f"removed: {shown}")
    check(shown["progress"]["bytes"]["done"] >= len(NAMES) * SIZE, f"removed: {shown}")
    for name in NAMES:
        patient(c, "DELETE", "load", name)
    equal(still(c, "load"), [], "names")
    found = on_disks(c)
    equal(sum(found[body] for body in bodies.values()), 0, "copies of what was deleted")


def test_a_target_and_the_primary_die_in_the_middle(c):
    """t2 is killed when it removes its third, and is away while names are deleted and written."""
    create(c, "killed", 3)
    fill(c, "killed", NAMES)
    c.restart("t2", "--arg=--faults=trim_copies.remove=kill@3")
    wait_repaired(c)
    load = Load(c, "killed", clients=3)
    load.run_for(SECONDS)
    elsewhere = [name for name in NAMES if c.owner("killed", name) != "t2"]
    set_copies(c, "killed", 1)
    wait_for(lambda: dead(c, "t2") or load.failed, "the kill of t2", LONG)
    c.ended_by_test.add("t2")
    c.kill("p1")
    c.start("p1")
    c.wait_node("t2", "unreachable")
    bodies = {name: body_of("killed", name) for name in NAMES}
    for name in elsewhere[::2]:
        patient(c, "DELETE", "killed", name)
        del bodies[name]
    refused = {"action": "setprops", "value": {"copies": 2}}
    create(c, "other", 3)
    c.call("PUT", "/v1/buckets/other", refused).expect(409, "node_state", "'t2' is unreachable")
    c.start("t2")
    c.wait_node("t2", "active")
    equal(still(c, "killed"), sorted(bodies), "names with t2 back")
    wait_repaired(c)
    wait_lowered(c, "killed")
    load.end()
    load.check_all()
    all_are(c, "killed", bodies, 1)
    job = ended(
        c,
        c.call("POST", "/v1/jobs", {"action": "start", "name": "cleanup"}).expect(202).json()["id"])
    equal(job["state"], "finished", "the cleanup")
    set_copies(c, "killed", 2)
    wait_for(lambda: "raised" not in why(c, "killed"), "the copies that were raised", LONG)
    all_are(c, "killed", bodies, 2)
    for name in set(NAMES) - set(bodies):
        get(c, "killed", name).expect(404)


def test_raised_again_before_the_others_are_removed(c):
    """t3 cannot remove anything: its copies are neither listed nor read, and become copies
    again."""
    create(c, "again", 3)
    fill(c, "again", NAMES)
    c.restart("t3", "--arg=--faults=trim_copies.remove=EIO")
    wait_repaired(c)
    known = {j["id"] for j in mirrors(c)}
    set_copies(c, "again", 1)
    for name in NAMES[:10]:
        patient(c, "DELETE", "again", name)
    fill(c, "again", NAMES[10:20], "second")
    bodies = {
        name: body_of("again", name, "second" if name in NAMES[:20] else "first")
        for name in NAMES[10:]
    }
    wait_for(lambda: any(j["id"] not in known and j["state"] == "failed" for j in mirrors(c)),
             "a job that t3 fails", LONG)
    check(LOWERED in why(c, "again"), f"why: {why(c, 'again')}")
    equal(sorted(c.names("again")), sorted(bodies), "names")
    c.call("POST", "/v1/jobs", {"action": "start", "name": "cleanup"}).expect(202)
    set_copies(c, "again", 3)
    wait_for(lambda: "raised" not in why(c, "again"), "the copies that were raised", LONG)
    found = on_disks(c)
    for name, body in bodies.items():
        check(get(c, "again", name).expect(200).body == body, f"{name}: other bytes")
        check(found[body] >= 3, f"{found[body]} copies of {name}")
    for name in NAMES[:10]:
        get(c, "again", name).expect(404)
    c.restart("t3")
    wait_lowered(c, "again")
    all_are(c, "again", bodies, 3)
    equal(sorted(c.names("again")), sorted(bodies), "names")


if __name__ == "__main__":
    main(targets=4, args=("--target-arg=--tombstone-ttl=1s", "--target-arg=--sweep-interval=7d"))
