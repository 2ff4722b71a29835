#!/usr/bin/env python3
"""Slices that are missing or damaged are made anew (target/slices/slice_repair.h, ec_repair.h): by a read
that met them, by
a scrub, and before a target goes for good, which it does not while nobody can take what it has;
what two
targets have is removed from one.

The cluster has one target more than 2+1 needs."""

import http.client
import os
import random
import re

from copies_damage import wait_lost
from ec import (DATA, PARITY, SIZES, SLICES, check_all, check_object, create, fill, put, repair,
                slices_of_bucket, wait_repaired)
from lib import check, contents, equal, main, size_of, wait_for

ATTRIBUTE = "user.dfc"
SECONDS = 120


def slice_files(c, bucket):
    """(target, path) of each slice of a bucket."""
    number = c.get_json(f"/v1/buckets/{bucket}")["id"] | 1 << 62
    return [(t, p) for t in c.targets() for p in c.object_files(t)
            if f"/obj/{number}/" in p and size_of(p) > 0]


def flip(path):
    """Returns what was there."""
    before = contents(path)
    at = random.randrange(len(before) - 8)
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(bytes([before[at] ^ 1]))
    return before


def one_object(c, bucket, size=700000):
    create(c, bucket)
    body = random.randbytes(size)
    put(c, bucket, "a", body)
    equal(slices_of_bucket(c, bucket), SLICES, "slices")
    return body


def of_data(c, bucket):
    """A slice that every read of the whole object reads."""
    return next((t, p) for t, p in slice_files(c, bucket) if slice_name(p)[1] < DATA)


def slice_name(path):
    tag, index = re.search(rb"([0-9a-f]{16})\.(\d+)", os.getxattr(path, ATTRIBUTE)).groups()
    return tag.decode(), int(index)


def test_a_read_mends_what_is_damaged(c):
    body = one_object(c, "flipped")
    _, path = of_data(c, "flipped")
    before = flip(path)
    check_object(c, "flipped", "a", body, ranges=0)
    wait_for(lambda: contents(path) == before, "the slice as it was, where it was", SECONDS)
    equal(slices_of_bucket(c, "flipped"), SLICES, "slices")


def test_a_read_has_what_is_gone_made_anew(c):
    body = one_object(c, "gone")
    for change in (os.unlink, lambda path: os.truncate(path, 100),
                   lambda path: os.removexattr(path, ATTRIBUTE)):
        _, path = of_data(c, "gone")
        before = contents(path)
        change(path)
        check_object(c, "gone", "a", body, ranges=0)
        wait_for(lambda b=before: b in [contents(p) for _, p in slice_files(c, "gone")],
                 "the slice", SECONDS)
    check_object(c, "gone", "a", body)


def test_a_scrub_has_what_it_finds_made_anew(c):
    body = one_object(c, "scrubbed")
    _, path = random.choice(slice_files(c, "scrubbed"))
    before = flip(path)
    done = c.dfcctl("storage", "scrub", "--wait")
    check(done.returncode in (0, 1), f"the scrub: {done.stderr}")
    wait_for(lambda: before in [contents(p) for _, p in slice_files(c, "scrubbed")], "the slice",
             SECONDS)
    check_object(c, "scrubbed", "a", body)


def give_again(c, bucket, files, path):
    """The slice to a target that has none, too."""
    without = next(t for t in c.targets() if t not in [t for t, _ in files])
    tag, index = slice_name(path)
    number = c.get_json(f"/v1/buckets/{bucket}")["id"]
    data_url = next(n["data_url"] for n in c.get_json("/v1/cluster?what=smap")["nodes"]
                    if n["id"] == without)
    c.member.request("PUT", f"{data_url}/v1/slices/{number}/{tag}.{index}?object=a",
                     contents(path)).expect(204)
    equal(slices_of_bucket(c, bucket), SLICES + 1, "slices")


def test_of_two_the_other_is_read(c):
    """Where the first is damaged, and another slice is lost."""
    body = one_object(c, "other")
    files = slice_files(c, "other")
    (_, damaged), *_, (_, lost) = files
    give_again(c, "other", files, damaged)
    flip(damaged)
    os.unlink(lost)
    equal(c.get("other", "a").expect(200).body, body, "the object")
    c.object("DELETE", "other", "a").expect(204)


def test_the_second_of_two_goes(c):
    body = one_object(c, "twice")
    files = slice_files(c, "twice")
    give_again(c, "twice", files, files[0][1])
    repair(c)
    equal(slices_of_bucket(c, "twice"), SLICES, "slices after the repair")
    equal(len({slice_name(p)[1] for _, p in slice_files(c, "twice")}), SLICES, "distinct slices")
    check_object(c, "twice", "a", body)


def test_an_object_of_too_few_slices_is_shown_as_lost(c):
    one_object(c, "lost")
    for _, path in slice_files(c, "lost")[:PARITY + 1]:
        os.unlink(path)
    check(c.get("lost", "a").status >= 500, "it was read")
    wait_lost(c, "lost", {"a"})
    c.object("DELETE", "lost", "a").expect(204)
    wait_lost(c, "lost", set())


def is_there(c, node):
    return any(n["id"] == node for n in c.get_json("/v1/cluster?what=smap")["nodes"])


def wait_told(c, node):
    """Until a target has the documents that the proxy has."""
    version = c.get_json("/v1/cluster")["version"]
    wait_for(lambda: c.get_json("/v1/daemon", node)["version"] >= version, f"{node} is told")


def test_a_put_does_not_leave_a_slice_on_a_target_that_leaves(c):
    """It is told to between the first byte and the last; the owners stay as they are."""
    c.setting("rebalance_delay", "100ms")
    c.setting("rebalance_keep", "2s")
    body = one_object(c, "late")
    number = c.get_json("/v1/buckets/late")["id"]
    owners = {t for t in c.targets() for p in c.object_files(t) if f"/obj/{number}/" in p}
    leaves = next(t for t, _ in slice_files(c, "late") if t not in owners)
    leader = c.owner("late", "a")
    connection = http.client.HTTPConnection(*c.address(leader), timeout=SECONDS)
    connection.putrequest("PUT", "/v1/objects/late/a")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders()
    connection.send(body[:300000])
    equal(c.dfcctl("node", "maintenance", "start", leaves).returncode, 0, "maintenance")
    wait_told(c, leader)
    connection.send(body[300000:])
    reply = connection.getresponse()
    check(reply.status in (200, 409), f"the PUT: {reply.status} {reply.read()}")
    if reply.status == 409:  # where it could not be sent on
        put(c, "late", "a", body)
    equal(c.get("late", "a").expect(200).body, body, "what is read")
    check(
        leaves not in [
            t for t, p in slice_files(c, "late") if slice_name(p)[0] == tag_of(c, owners, number)
        ], f"a slice on {leaves}")
    equal(c.dfcctl("node", "maintenance", "stop", leaves).returncode, 0, "the end of it")
    c.wait_node(leaves, "active")
    put(c, "late", "a", body)
    check_object(c, "late", "a", body)


def tag_of(c, owners, number):
    """Of the manifest."""
    path = next(p for t in owners for p in c.object_files(t) if f"/obj/{number}/" in p)
    return re.search(rb":([0-9a-f]{16}):", os.getxattr(path, ATTRIBUTE)).group(1).decode()


def decommission(c, node):
    done = c.dfcctl("node", "decommission", node, "--yes")
    equal(done.returncode, 0, f"the decommission: {done.stderr}")


def test_a_target_goes_when_its_slices_are_elsewhere(c):
    c.setting("rebalance_delay", "100ms")
    create(c, "left")
    bodies = fill(c, "left", SIZES[:4])
    wait_repaired(c)
    wait_for(lambda: slices_of_bucket(c, "left") == len(bodies) * SLICES, "one of each slice",
             SECONDS)
    goes = "t2"
    decommission(c, goes)
    wait_for(lambda: not is_there(c, goes), f"{goes} gone", SECONDS)
    equal(len([t for t, _ in slice_files(c, "left") if t != goes]),
          len(bodies) * SLICES, "slices on the others")
    c.stop(goes)
    check_all(c, "left", bodies)
    for dead in random.sample([t for t in c.targets() if t != goes], PARITY):
        c.kill(dead)
        check_all(c, "left", bodies)
        c.start(dead)
        c.wait_node(dead, "active")
    wait_repaired(c)


def test_it_stays_while_nobody_can_take_them(c):
    goes = "t3"

    def says():
        jobs = c.get_json("/v1/jobs")["jobs"]
        return any("no other target can take them" in str(j) for j in jobs)

    decommission(c, goes)
    wait_for(says, "a job that says why", SECONDS)
    check(is_there(c, goes), f"{goes} has gone with slices that nobody else has")


if __name__ == "__main__":
    main(targets=SLICES + 1)
