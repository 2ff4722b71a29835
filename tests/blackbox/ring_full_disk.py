#!/usr/bin/env python3
"""A ring whose targets' disks are full: makers are told, what was acknowledged stays, swaps and `clear` go
on, and with room all goes on.

Targets have small file systems on loop devices.  *Full* is first what targets call so (space_reserve):
pushes are refused, and the head is stored.  Then there is no free block: no head can be stored.

Skipped (77) without root, loop devices or the programs that make the file systems."""

import os

import ring_lib as ring
from copies_full_disk import OnDisks
from disks import enter
from lib import check, equal, main, wait_for

CAP, SAMPLE = 20, 256 << 10
ROOM = 12 << 20  # that each disk has beside its reserve


def sample(number):
    return {"n": b"%d" % number, "data": number.to_bytes(4, "little") * (SAMPLE // 4)}


def fill_to(disk, part, room=0):
    """All but this part of the reserve, and so many bytes beside it, are another's."""
    with open(os.path.join(disk.path, "filler"), "ab") as f:
        v = os.statvfs(disk.path)
        size = v.f_bavail * v.f_frsize - int(part * v.f_blocks * v.f_frsize / 16) - room
        check(size > 0, "there is room to fill")
        os.posix_fallocate(f.fileno(), f.tell(), size)


def push_until_full(c, acknowledged):
    """Until 12 pushes in a row are refused: each target has no room."""
    refused, number = 0, len(acknowledged)
    for sequence in range(10_000):
        reply = ring.push(c, "ring", ring.frames(sample(number)), "maker", sequence)
        if reply.status == 201:
            acknowledged.append(number)
            number, refused = number + 1, 0
            continue
        reply.expect(507, "no_space", text="space_reserve")
        refused += 1
        if refused == 12:
            return
    check(False, "the disks are never full")


def in_generations(c):
    """The numbers of samples that kept generations have; each with its bytes."""
    found = []
    for g in ring.head(c, "ring")["generations"]:
        for s in ring.read_generation(c, "ring", g):
            found.append(int(bytes(s.kinds["n"].data)))
            equal(bytes(s.kinds["data"].data), sample(found[-1])["data"], f"sample {found[-1]}")
    return sorted(found)


def swap_all(c):
    def is_swept():
        reply = c.call("PUT", "/v1/rings/ring/generation")
        check(reply.status in (200, 404, 503), f"{reply!r}")
        return reply.status == 404 and ring.status(c, "ring").json().get("fill") == 0
    wait_for(is_swept, "all samples in generations")


def test_a_ring_fills_the_disks(c):
    """Pushes are refused; full generations, and a swap, are stored nevertheless."""
    c.acknowledged = []
    c.create("ring", ring={"cap": CAP, "keep": 16}, copies=2)
    for disk in c.disks.values():
        fill_to(disk, 1, ROOM)
    push_until_full(c, c.acknowledged)
    count = len(c.acknowledged)
    check(count > 2 * ROOM // SAMPLE, f"only {count} samples were stored")
    ring.wait_generation(c, "ring", count // CAP)
    for disk in c.disks.values():
        fill_to(disk, 0.75)
    swap_all(c)
    equal(in_generations(c), c.acknowledged, "samples of generations")


def test_a_target_starts_with_a_full_disk(c):
    for target in c.targets():
        c.kill(target, "-9")
        c.start(target)
        c.wait_node(target, "active")
    wait_for(lambda: ring.status(c, "ring").status == 200, "a keeper")
    equal(in_generations(c), c.acknowledged, "samples of generations")


def has_head(c, target):
    """Both owners have the last one, with its bytes, and this target is one of them."""
    owners = {one["node"]: one for one in c.get_json("/v1/copies/ring/head")["copies"] if one["owner"]}
    return len(owners) == 2 and owners[target]["lag"] == "none" and \
        all(one.get("size") for one in owners.values()) and \
        len({one["version"] for one in owners.values()}) == 1


def test_a_head_comes_back_to_a_full_disk(c):
    """Its first owner was away while it changed, and leads again.  Then the other one is lost."""
    def change(what):
        wait_for(lambda: c.call("PUT", f"/v1/rings/ring/{what}").status == 200, what)

    c.setting("repair_delay", "0s")
    copies = c.get_json("/v1/copies/ring/head")["copies"]
    first, = (one["node"] for one in copies if one["acting"])
    other, = (one["node"] for one in copies if one["owner"] and not one["acting"])
    change("pause")
    c.kill(first)
    c.wait_node(first, "unreachable")
    change("resume")
    c.kill(other)
    c.wait_node(other, "unreachable")
    for target in (first, other):  # both have missed writes: the first one leads, and fetches
        c.start(target)
        c.wait_node(target, "active")
    wait_for(lambda: c.get("ring", "head").status == 200 and has_head(c, first), f"the head on {first}")
    c.kill(other)
    c.wait_node(other, "unreachable")
    wait_for(lambda: c.get("ring", "head").status == 200, "the head without its other owner")
    check("paused" not in ring.head(c, "ring"), "the head is the last one")
    c.start(other)
    c.wait_node(other, "active")
    wait_for(lambda: has_head(c, other), f"the head on {other}")
    equal(in_generations(c), c.acknowledged, "samples of generations")


def test_clear_makes_room(c):
    """Where no push has any: else only the bucket's removal would."""
    before = ring.head(c, "ring")["generation"]
    wait_for(lambda: c.call("DELETE", "/v1/rings/ring/samples").status == 200, "clear")
    c.acknowledged = []
    for disk in c.disks.values():
        disk.make_room()
        fill_to(disk, 1, 3 * ROOM)
    wait_for(lambda: ring.push(c, "ring", ring.frames(sample(0))).status == 201, "room for a push")
    wait_for(lambda: ring.status(c, "ring").expect(200).json()["fill"] == 1, "a report of the sample")
    c.acknowledged.append(0)
    swap_all(c)
    equal(ring.head(c, "ring")["generation"], before + 1, "generation")
    equal(in_generations(c), c.acknowledged, "samples of generations")


def test_without_a_free_block(c):
    """Nothing is stored, and nothing is lost."""
    for number in range(1, 3 * CAP):
        wait_for(lambda n=number: ring.push(c, "ring", ring.frames(sample(n)), "m", n).status == 201,
                 f"push {number}")
        c.acknowledged.append(number)
    wait_for(lambda: ring.status(c, "ring").expect(200).json()["fill"] < CAP, "generations")
    before = ring.head(c, "ring")
    for disk in c.disks.values():
        disk.fill()
    for sequence in range(1000, 1012):
        ring.push(c, "ring", ring.frames(sample(0)), "maker", sequence).expect(507, "no_space")
    reply = c.call("PUT", "/v1/rings/ring/generation")
    if reply.status != 404:  # else each sample has been in one
        reply.expect(507, "no_space")
    equal(ring.head(c, "ring")["generations"], before["generations"], "generations")
    in_generations(c)
    for disk in c.disks.values():
        disk.make_room()
    wait_for(lambda: ring.push(c, "ring", ring.frames(sample(3 * CAP)), "m", 3 * CAP).status == 201, "room")
    c.acknowledged.append(3 * CAP)
    swap_all(c)
    equal(in_generations(c), c.acknowledged, "samples of generations")


if __name__ == "__main__":
    enter()
    main(make=OnDisks, targets=3, args=("--target-arg=--ring-grace=200ms",))
