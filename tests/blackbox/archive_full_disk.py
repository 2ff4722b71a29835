#!/usr/bin/env python3
"""Jobs over archives where the disk of an object's owner is full: the job fails by its name, what was
there stays, and with room it goes through.

Skipped (77) without root, loop devices or the programs that make the file systems."""

import io
import tarfile

from copies_full_disk import OnDisks
from disks import enter
from lib import check, equal, main, wait_for
from members import member
from object_jobs import ended, run, start

BODY = b"x" * 70000


def failed(c, action, value):
    job = ended(c, start(c, "b", action, value))
    equal((job["state"], job["errors"][0]["code"]), ("failed", "no_space"), f"end of {action}")
    return job


def patiently(c, action, value):
    """Once the target has seen that there is room."""
    wait_for(lambda: ended(c, start(c, "b", action, value))["state"] == "finished", f"{action}")


def test_an_archive(c):
    c.create("b")
    for i in range(20):
        c.put("b", f"o{i:02}", BODY)
    value = {"prefix": "o", "archive": "a.tar"}
    run(c, "b", "archive", {**value, "template": "o{00..01}", "prefix": None})
    old = c.get("b", "a.tar").expect(200).body
    disk = c.disks[c.owner("b", "a.tar")]
    disk.fill()
    failed(c, "archive", value)
    check(c.get("b", "a.tar").expect(200).body == old, "the archive that was there has changed")
    disk.make_room()
    patiently(c, "archive", value)
    with tarfile.open(fileobj=io.BytesIO(c.get("b", "a.tar").expect(200).body)) as tar:
        equal(len(tar.getnames()), 20, "members")


def test_members(c):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(30):
            member(tar, f"m{i:02}", BODY)
    c.put("b", "in.tar", out.getvalue())
    disk = c.disks[next(t for t in c.targets() if t != c.owner("b", "in.tar"))]
    value = {"list": ["in.tar"], "names": "member"}
    disk.fill()
    job = failed(c, "unarchive", value)
    check("'in.tar/m" in job["errors"][0]["message"], job["errors"])
    some = c.names("b", prefix="m")
    check(len(some) < 30, "all members are there, and a disk was full")
    disk.make_room()
    patiently(c, "unarchive", value)
    for i in range(30):
        check(c.get("b", f"m{i:02}").expect(200).body == BODY, f"m{i:02} has other bytes")


if __name__ == "__main__":
    enter()
    main(make=OnDisks, targets=3)
