#!/usr/bin/env python3
"""Samples of a kept generation that are lost: a reader is told which ones, and reads the others.  It
is told something else when it was too slow."""

import io
import json
import os
import shutil
import tarfile

import ring_lib as ring
from lib import check, equal, main, wait_for

COUNT = 30


def make(c, name, **shape):
    """A ring with one generation, of pushes of one sample each."""
    c.create(name, ring={"cap": COUNT, "keep": 1, **shape}, copies=2)
    for i in range(COUNT):
        ring.push(c, name, ring.frames({"i": b"%d" % i, "data": b"x" * 5000})).expect(201)
    return ring.generation(ring.wait_generation(c, name, 1))


def read(c, name, cut):
    """What is there of a cut, and the ordinals of what is lost."""
    at, found, lost = cut["from"], [], []
    while at < cut["to"]:
        reply = c.call("GET", f"/v1/rings/{name}/samples?lane={cut['lane']}&from={at}&count=1000")
        if "Dfc-Ring-Lost" in reply.headers:
            reply.expect(410, "generation_gone", text=cut["lane"])
            count = int(reply.headers["Dfc-Ring-Lost"])
            lost += range(at, at + count)
        else:
            count = int(reply.expect(200).headers["Dfc-Ring-Count"])
            found += ring.samples_of(reply.body)
        check(count > 0, "it goes on")
        at += count
    return found, lost


def ring_dirs(c, node):
    for mp in (d for d in os.listdir(c.node_dir(node)) if d.startswith("mp")):
        path = os.path.join(c.node_dir(node), mp, ".dfc", "ring")
        if os.path.isdir(path):
            yield path


def cuts_of(g, node):
    return [cut for cut in g["cuts"] if cut["lane"].startswith(node + ".")]


def is_readable(c, name, cut):
    return c.call("GET", f"/v1/rings/{name}/samples?lane={cut['lane']}&from={cut['from']}").status in (200, 410)


def restart_with(c, node, name, g, change):
    c.kill(node, "-9")
    change()
    c.start(node)
    wait_for(lambda: all(is_readable(c, name, cut) for cut in g["cuts"]), f"the return of {node}")


def test_damage_takes_one_sample(c):
    g = make(c, "damaged")
    paths = [os.path.join(at, n) for top in ring_dirs(c, "t1") for at, _, names in os.walk(top) for n in names]
    check(paths, "t1 has samples")

    def damage():
        with open(paths[0], "r+b") as f:
            f.seek(3000)  # in the first sample
            f.write(b"damaged!")
    restart_with(c, "t1", "damaged", g, damage)
    results = [read(c, "damaged", cut) for cut in g["cuts"]]
    equal(sum(len(lost) for _, lost in results), 1, "lost samples")
    equal(sum(len(found) for found, _ in results), COUNT - 1, "others")


def test_verify_and_save_tell_what_is_lost(c):
    done = c.dfcctl("ring", "verify", "damaged", "-o", "json")
    equal((done.returncode, json.loads(done.stdout)["lost"]), (1, 1), done.stderr)
    c.create("saved")
    done = c.dfcctl("ring", "save", "damaged", "saved/part-", "--shards", "30KiB")
    equal(done.returncode, 1, done.stderr)
    check(f"{COUNT - 1} samples" in done.stdout and "1 lost" in done.stdout, done.stdout)
    names = c.names("saved")
    check(len(names) > 3 and names[0] == "part-000000.tar", f"{names}")
    found = set()
    for name in names:
        with tarfile.open(fileobj=io.BytesIO(c.get("saved", name).expect(200).body)) as tar:
            for member in tar:
                key, kind = member.name.split(".", 1)
                data = tar.extractfile(member).read()
                found.add((int(key), kind))
                equal(len(data) == 5000 if kind == "data" else 0 <= int(data) < COUNT, True, "a member")
    equal(len(found), 2 * (COUNT - 1), "members")
    again = c.dfcctl("ring", "save", "damaged", "saved/part-")
    equal(again.returncode, 1, again.stderr)
    check(f"{len(names) - 1} shards of an earlier save" in again.stderr and names[-1] in again.stderr, again.stderr)
    equal(c.dfcctl("ring", "save", "later-on", "saved/x").returncode, 3, "a ring that is not there")


def test_a_generation_has_no_damaged_sample(c):
    """What a start finds damaged, and no generation has, comes into none: each is as large as it says."""
    c.create("later", ring={"cap": COUNT, "keep": 1}, copies=2)
    for i in range(COUNT - 1):
        ring.push(c, "later", ring.frames({"i": b"%d" % i, "data": b"x" * 5000})).expect(201)
    lanes = ring.lanes(c, "later")
    path = next(p for p in (os.path.join(at, n) for top in ring_dirs(c, "t2") for at, _, names in os.walk(top)
                            for n in names) if "t2." + os.path.basename(os.path.dirname(p)) in lanes)

    def damage():
        with open(path, "r+b") as f:
            f.seek(3000)
            f.write(b"damaged!")
    restart_with(c, "t2", "later", {"cuts": []}, damage)
    for i in range(2):
        wait_for(lambda i=i: ring.push(c, "later", ring.frames({"i": b"new"}), "maker", i).status == 201, "a push")
    g = ring.generation(ring.wait_generation(c, "later", 1))
    equal(ring.size_of(g), COUNT, "samples")
    equal(len(ring.read_generation(c, "later", g)), COUNT, "samples that are there")


def test_pushes_while_a_target_is_away(c):
    """Any target may take a sample: one that is away is passed over, also for a numbered push."""
    c.create("away", ring={"cap": COUNT, "keep": 1}, copies=2)
    c.kill("t1", "-9")
    c.wait_node("t1", "unreachable")
    for i in range(COUNT):
        ring.push(c, "away", ring.frames({"i": b"%d" % i}), "maker", i).expect(201)
    c.start("t1")
    g = ring.generation(ring.wait_generation(c, "away", 1))
    equal(len(ring.read_generation(c, "away", g)), COUNT, "samples that are there")


def test_a_lost_disk(c):
    g = make(c, "disk")
    restart_with(c, "t2", "disk", g, lambda: [shutil.rmtree(d) for d in ring_dirs(c, "t2")])
    mine = cuts_of(g, "t2")
    check(mine, "t2 has samples")
    for cut in g["cuts"]:
        found, lost = read(c, "disk", cut)
        wanted = list(range(cut["from"], cut["to"]))
        equal(lost, wanted if cut in mine else [], "lost samples")
        equal([s.ordinal for s in found], [] if cut in mine else wanted, "samples")


def test_a_slow_reader(c):
    """The generation is dropped: the reader takes the new head."""
    g = make(c, "slow", keep=0, bytes_max="1MiB")  # small files: the first one has nothing of later generations
    for _ in range(2):
        ring.push(c, "slow", ring.frames(*({"i": b"%d" % i} for i in range(COUNT)))).expect(201)
    ring.wait_generation(c, "slow", 3)
    cut = max(g["cuts"], key=lambda one: one["to"] - one["from"])
    path = f"/v1/rings/slow/samples?lane={cut['lane']}&from={cut['from']}"
    wait_for(lambda: c.call("GET", path).status == 410, "the end of the grace")
    reply = c.call("GET", path).expect(410, "generation_gone", text="head")
    check("Dfc-Ring-Lost" not in reply.headers, "it was too slow")


def test_a_target_that_was_given_up(c):
    g = make(c, "left")
    mine = cuts_of(g, "t3")
    check(mine, "t3 has samples")
    c.kill("t3", "-9")
    c.wait_node("t3", "unreachable")
    equal(c.dfcctl("node", "decommission", "t3", "--force", "--yes").returncode, 0, "decommission")
    path = f"/v1/rings/left/samples?lane={mine[0]['lane']}&from={mine[0]['from']}"
    wait_for(lambda: c.call("GET", path).status == 410, "t3 has left")
    for cut in g["cuts"]:
        found, lost = read(c, "left", cut)
        size = cut["to"] - cut["from"]
        equal((len(found), len(lost)), (0, size) if cut in mine else (size, 0), "samples")
    reply = c.call("GET", "/v1/rings/left/samples?lane=t3.0000&from=0")
    check("Dfc-Ring-Lost" not in reply.expect(410, "generation_gone").headers, "no generation has it")


if __name__ == "__main__":
    main(targets=3, mountpaths=1, args=("--target-arg=--ring-grace=200ms",))
