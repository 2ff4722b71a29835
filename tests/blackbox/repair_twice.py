#!/usr/bin/env python3
"""A target loses all its disks in the midst of the repair that follows their first loss.  It looks
then as it did when
others were compared with it, but for the ids of its disks: nothing of that may count."""

from copies import wait_repaired
from lib import main
from repair_resumes import FEW, LARGE, NAMES, are_whole, come_back_empty, next_repair, stick


def test_who_loses_its_disks_twice_has_nothing(c):
    job, _ = stick(c, "small", "large")
    come_back_empty(c, "t3")
    next_repair(c, job)
    wait_repaired(c)
    are_whole(c, "small", NAMES)
    are_whole(c, "large", FEW, LARGE)


if __name__ == "__main__":
    main(targets=3, mountpaths=2, args=("--target-arg=--repair-save-interval=0",))
