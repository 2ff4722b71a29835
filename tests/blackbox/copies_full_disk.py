#!/usr/bin/env python3
"""copies_full.py where a file system has no free block.

Targets on small file systems of their own on loop devices; one comes back with a full one after all
was written again without it.  What it has no room to know it does not answer: the others do.

The inodes have room for the attributes, as those of XFS have.  With the 256 bytes of ext4's an
attribute takes a block: then names without one are refused (docs/project/known-issues.md).

Skipped (77) without root, loop devices or the programs that make the file systems."""

import os

from copies_full import (BUCKETS, NAMES, begin, check_read, check_readable, each, wait_whole,
                         write_all)
from disks import Disk, enter
from lib import Cluster, main, wait_for


class OnDisks(Cluster):
    """Each target on a file system of its own."""

    def __init__(self, **shape):
        self.disks = {}
        super().__init__(mountpaths=1, **shape)

    def run(self, command, *args, ok=True):
        for node in ("t1", "t2", "t3") if command == "up" else ():
            path = os.path.join(self.dir, node, "mp1")
            os.makedirs(path)
            self.disks[node] = Disk("ext4", "-I", "1024")
            self.disks[node].mount(path)
        return super().run(command, *args, ok=ok)

    def remove(self):
        super().remove()
        for disk in self.disks.values():
            disk.remove()


def test_objects_are_there_while_a_disk_has_no_free_block(c):
    begin(c)
    c.kill("t3")
    c.wait_node("t3", "unreachable")
    write_all(c, 2, [b for b in BUCKETS if b != "ec21"])
    c.disks["t3"].fill()
    c.start("t3")
    c.wait_node("t3", "active")
    c.wanted = {n: 1 if n[0] == "ec21" else 2 for n in each()}
    check_readable(c, c.wanted)


def test_they_are_deleted(c):
    for n in each(NAMES[::2]):
        c.object("DELETE", *n).expect(204)
        c.wanted[n] = None
    check_readable(c, c.wanted)


def test_with_room_all_is_repaired(c):
    c.disks["t3"].make_room()
    wait_whole(c)
    check_read(c, c.wanted)
    c.kill("t1")
    c.wait_node("t1", "unreachable")
    wait_for(lambda: all(c.get(*n).status in (200, 404) for n in c.wanted), "reads of everything")
    check_read(c, c.wanted)
    c.start("t1")


if __name__ == "__main__":
    enter()
    main(make=OnDisks, targets=3)
