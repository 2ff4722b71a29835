"""Uploads of large objects: some parts in every run, DFC_LARGE_MIB MiB in a long one.

    LARGE = large_data(12, 17)
    check(tag.endswith(tag_of(LARGE, 8)), tag)
    daemons_stay_small(c)                       after the uploads and downloads

The test keeps the bytes in memory, about three times."""

import os
import random

import frame  # noqa: F401 (first: the next one is found by it)
from lib import check

LARGE_MIB = int(os.environ.get("DFC_LARGE_MIB", "0"))
LIMIT_MIB = 128  # of one daemon, for every size


def large_data(seed, mib):
    """Random bytes: `mib` MiB, or as many as DFC_LARGE_MIB says."""
    source = random.Random(seed)
    return b"".join(source.randbytes(1 << 20) for _ in range(LARGE_MIB or mib))


def tag_of(data, part_mib):
    """The end of the entity tag of an upload in parts of this size."""
    return f'-{-(-len(data) // (part_mib << 20))}"'


def peak_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) >> 10


def daemons_stay_small(c):
    """Their memory does not depend on the size of the objects that went through them."""
    peaks = {node: peak_mib(c.pid(node)) for node in sorted(c.nodes)}
    print("        peaks in MiB:", ", ".join(f"{n} {peak}" for n, peak in peaks.items()))
    for node, peak in peaks.items():
        check(peak < LIMIT_MIB, f"{node} needed {peak} MiB, and may need {LIMIT_MIB}")
