#!/usr/bin/env python3
"""The disks of etcd's members are full: of one, then of another, so that the majority is gone, and
then etcd's own quota.  What was acknowledged stays, what could not be kept is refused, objects are
served throughout, and with room again everything goes on."""

import errno
import os
import shutil
import subprocess

import namespaces
from failover import (PROXIES, all_know, buckets, change, change_in_the_end, objects_are_served,
                      primary, primary_in_the_end)
from lib import Cluster, check, equal, main, skip, wait_for

MEMBERS = ("e1", "e2", "e3")
SMALL = MEMBERS[:2]
DISK = "192m"  # a member takes two pieces of 64 MiB for its log at once


class SmallDisks(Cluster):
    """The first two members have file systems of their own."""

    def disk(self, member):
        return os.path.join(self.node_dir(member), "etcd")

    def run(self, command, *args, ok=True):
        if command == "up" and not os.path.exists(self.disk(SMALL[0])):
            for member in SMALL:
                os.makedirs(self.disk(member), mode=0o700)
                namespaces.run("mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "tmpfs",
                               self.disk(member))
        return super().run(command, *args, ok=ok)

    def remove(self):
        if os.path.exists(os.path.join(self.dir, "cluster.json")):
            super().run("down", "--stop-seconds", 10, ok=False)
        for member in SMALL:
            subprocess.run(["umount", self.disk(member)], capture_output=True, check=False)
        super().remove()

    def filler(self, member):
        return os.path.join(self.disk(member), "filler")

    def fill(self, member):
        with open(self.filler(member), "wb", buffering=0) as f:
            for piece in (1 << 20, 4096):
                try:
                    while f.write(bytes(piece)) > 0:
                        pass
                except OSError as e:
                    equal(e.errno, errno.ENOSPC, "the error of a full disk")


def write_until(c, over, what):
    """Changes that take room, at all proxies in turn, until it is over; names that were
    acknowledged."""
    made = []

    def one():
        name = f"fill-{len(made)}-{'x' * 40}"
        if change(c, "POST", name, PROXIES[len(made) % 3]):
            made.append(name)
        return over()

    wait_for(one, what, seconds=120)
    return set(made)


def forget(c, names):
    for i, name in enumerate(sorted(names)):
        change_in_the_end(c, "DELETE", name, PROXIES[i % 3])
    all_know(c, {"kept"})


def test_prepare(c):
    c.create("kept")
    c.put("kept", "o", b"bytes")


def test_one_member_whose_disk_is_full(c):
    c.fill("e1")
    c.ended_by_test.add("e1")
    made = write_until(c, lambda: c.pid("e1") is None, "e1 gives up")
    check("no space left" in c.log("e1"), "e1 says why")
    change_in_the_end(c, "POST", "without-e1", "p2")
    all_know(c, made | {"kept", "without-e1"})
    objects_are_served(c, PROXIES)
    c.made = made | {"without-e1"}


def test_the_second_takes_the_majority_with_it(c):
    c.fill("e2")
    c.ended_by_test.add("e2")
    more = write_until(c, lambda: c.pid("e2") is None, "e2 gives up")
    wait_for(lambda: primary(c) is None, "nobody is primary")
    for proxy in PROXIES:
        check(not change(c, "POST", "no-majority", proxy), f"{proxy} took a change")
    objects_are_served(c, PROXIES)
    for member in SMALL:
        os.unlink(c.filler(member))
        c.start(member)
    change_in_the_end(c, "POST", "room", "p1")
    c.made |= more | {"room"}
    for proxy in PROXIES:
        wait_for(lambda p=proxy: c.made <= buckets(c, p), f"{proxy} knows what was acknowledged")
    change_in_the_end(c, "DELETE", "no-majority", "p3")  # whatever had become of it
    forget(c, buckets(c, primary_in_the_end(c)) - {"kept"})


def member_call(c, member, path, body):
    reply = c.call("POST", path, body, node=member)
    check(reply.status == 200, f"{path} at {member}: {reply!r}")
    return reply.json()


def no_alarm_is_left(c):
    alarms = member_call(c, "e1", "/v3/maintenance/alarm", {"action": "GET"}).get("alarms", [])
    for alarm in alarms:
        member_call(c, "e1", "/v3/maintenance/alarm", {"action": "DEACTIVATE", **alarm})
    return not alarms


def there_is_room(c):
    """Each member raises its own alarm, one perhaps after another's was disarmed."""
    if not no_alarm_is_left(c):
        return False
    reply = c.call("POST", "/v1/buckets/after-quota", {"action": "create"}, node="p2")
    return reply.status != 507


def test_a_quota_that_is_used_up_and_the_way_out(c):
    """The three steps of docs/guide/troubleshooting.md."""
    for member in MEMBERS:
        c.kill(member)
        c.start(member, "--arg=--quota-backend-bytes=131072",
                "--arg=--auto-compaction-retention=100000")
    wait_for(lambda: all(c.state(m) == "active" for m in MEMBERS), "etcd is back")
    made, refusal = [], None

    def refused():
        nonlocal refusal
        reply = c.call("POST", f"/v1/buckets/quota-{len(made)}", {"action": "create"},
                       node=PROXIES[len(made) % 3])
        if reply.status == 507:
            refusal = reply
        elif reply.status != 503:
            reply.expect(201)
            made.append(f"quota-{len(made)}")
        return refusal

    wait_for(refused, "507").expect(507, "no_space")
    check(f"quota-{len(made)}" not in buckets(c, "p1"), "what was refused is there")
    objects_are_served(c, PROXIES)
    revision = member_call(c, "e1", "/v3/kv/range", {"key": "AA=="})["header"]["revision"]
    member_call(c, "e1", "/v3/kv/compaction", {"revision": revision, "physical": True})
    for member in MEMBERS:
        member_call(c, member, "/v3/maintenance/defragment", {})
    wait_for(lambda: there_is_room(c), "room, and no alarm")
    change_in_the_end(c, "POST", "after-quota", "p2")
    all_know(c, set(made) | {"kept", "after-quota"})


if __name__ == "__main__":
    if shutil.which("etcd") is None:
        skip("there is no etcd (Debian: etcd-server)")
    namespaces.enter()
    main(make=SmallDisks, proxies=3, targets=1, metastore="etcd")
