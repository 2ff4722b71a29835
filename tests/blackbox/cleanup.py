#!/usr/bin/env python3
"""The job `cleanup`: what nobody needs goes from the disks, what is needed stays."""

import json
import os
import time

from lib import check, equal, in_parallel, main, wait_for

ARGS = ("--target-arg=--tombstone-ttl=1s", "--target-arg=--sweep-interval=7d",
        "--target-arg=--abandoned-after=1m")
NAMES = [f"o{i}" for i in range(60)]


def clean(c, node="p1"):
    """The sums of what the targets removed."""
    reply = c.call("POST", "/v1/jobs", {"action": "start", "name": "cleanup"}, node=node)
    job_id = reply.expect(202).json()["id"]
    check(job_id.startswith("cln-"), job_id)

    def ended():
        job = c.get_json(f"/v1/jobs/{job_id}")
        return job if job["state"] in ("finished", "failed", "aborted") else None

    job = wait_for(ended, f"end of {job_id}")
    equal(job["state"], "finished", f"state; {job['errors']}")
    removed = [t["status"]["removed"] for t in job["targets"].values()]
    return {key: sum(r[key] for r in removed) for key in ("tombstones", "buckets", "files")}


def files(c):
    return sum(1 for t in c.targets() for _ in c.object_files(t))


def tmp_dirs(c):
    for t in c.targets():
        for mountpath in ("mp1", "mp2"):
            yield os.path.join(c.node_dir(t), mountpath, ".dfc", "tmp")


def test_old_tombstones_go(c):
    c.create("b", durability="async")
    in_parallel(lambda name: c.put("b", name, b"x"), NAMES)
    in_parallel(lambda name: c.object("DELETE", "b", name).expect(204), NAMES[:40])
    equal(files(c), 60, "files, tombstones too")
    wait_for(lambda: clean(c)["tombstones"] > 0, "the first is older than a second")
    wait_for(lambda: (clean(c), files(c))[1] == 20, "all are")
    equal(c.names("b"), sorted(NAMES[40:]), "names")
    for name in NAMES[:40]:
        c.get("b", name).expect(404, "object_not_found")
    for name in NAMES[40:]:
        equal(c.get("b", name).expect(200).body, b"x", name)


def test_a_name_comes_back_with_a_greater_version(c):
    before = c.put("b", "again", b"1").json()["version"]
    c.object("DELETE", "b", "again").expect(204)
    wait_for(lambda: clean(c)["tombstones"] == 1, "the tombstone goes")
    after = c.put("b", "again", b"2").json()["version"]
    check([int(n) for n in after.split(".")] > [int(n) for n in before.split(".")],
          f"{after} after {before}")


def test_young_tombstones_stay(c):
    c.put("b", "young", b"1")
    begun = time.monotonic()
    c.object("DELETE", "b", "young").expect(204)
    removed = clean(c)["tombstones"]
    if time.monotonic() - begun < 1:
        equal(removed, 0, "tombstones")


def test_abandoned_files_go(c):
    old = time.time() - 120
    for at in tmp_dirs(c):
        for name, when in (("left", old), ("busy", time.time())):
            with open(os.path.join(at, name), "w", encoding="ascii") as f:
                f.write("x")
            os.utime(os.path.join(at, name), (when, when))
    equal(clean(c)["files"], 6, "files removed")
    for at in tmp_dirs(c):
        equal(os.listdir(at), ["busy"], "what is left")
        os.unlink(os.path.join(at, "busy"))


def test_refusals(c):
    def refuse(body, code, text):
        c.call("POST", "/v1/jobs", body).expect(400, code, text)

    refuse({"action": "start", "name": "sort"}, "invalid_argument", "cleanup")
    refuse({"action": "start", "name": "none"}, "invalid_argument", "cleanup")
    refuse({"action": "begin", "name": "cleanup"}, "invalid_argument", "start")
    refuse({"action": "start"}, "invalid_json", "name")
    refuse({"action": "start", "name": "cleanup", "value": {"x": 1}}, "invalid_argument", "value")
    refuse({"action": "start", "name": "cleanup", "value": 1}, "invalid_json", "value")
    refuse({"action": "start", "name": "cleanup", "vale": {}}, "invalid_json", "vale")
    refuse([], "invalid_json", "object")
    c.call("POST", "/v1/jobs", b"{").expect(400, "invalid_json")


def test_by_another_proxy_and_dfcctl(c):
    clean(c, node="p2")
    done = c.dfcctl("job", "start", "cleanup", "--wait", "-o", "json")
    equal(done.returncode, 0, done.stderr)
    equal(json.loads(done.stdout)["state"], "finished", "state")
    equal(c.dfcctl("job", "start", "nothing").returncode, 2, "exit code")
    check("cleanup" in c.dfcctl("job", "ls", "--kind", "cleanup").stdout, "job ls")


def test_by_itself(c):
    """With a short sweep_interval nobody has to ask."""
    for target in c.targets():
        c.restart(target, "--arg=--sweep-interval=200ms")
    c.object("DELETE", "b", NAMES[50]).expect(204)
    wait_for(lambda: files(c) == len(c.names("b")), "no tombstone is left")


if __name__ == "__main__":
    main(targets=3, proxies=2, args=ARGS)
