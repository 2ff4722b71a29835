"""Datasets of tar shards with records of one member each and random names, written fast: a header
is a template in which the name and the checksum change."""

import os
import random
import tarfile

POOL_BYTES = 16 << 20
BLOCK = 512


class Headers:
    def __init__(self, record_bytes):
        info = tarfile.TarInfo("")
        info.size = record_bytes
        info.mtime = 1700000000
        block = info.tobuf(tarfile.USTAR_FORMAT)
        # A checksum is the sum of the block's bytes, its own field taken as eight spaces.
        self.sum = sum(block[:148]) + 8 * ord(" ") + sum(block[156:])
        self.middle = block[100:148]
        self.tail = block[156:]

    def of(self, name):
        checksum = b"%06o\0 " % (self.sum + sum(name))
        return name.ljust(100, b"\0") + self.middle + checksum + self.tail


def write_dataset(directory, shards, records, record_bytes, seed=1, compressible=False):
    """directory/shard-0000.tar, …: `shards` of `records` records of `record_bytes` each; → the
    bytes of all.  What is compressible is letters of sixteen kinds, about half of which remains."""
    rng = random.Random(seed)
    pool = rng.randbytes(POOL_BYTES + record_bytes)
    pool = memoryview(
        pool.translate(bytes(97 + i % 16 for i in range(256))) if compressible else pool)
    headers = Headers(record_bytes)
    padding = bytes(-record_bytes % BLOCK)
    total = 0
    directory.mkdir()
    for i in range(shards):
        parts = []
        for _ in range(records):
            parts.append(headers.of(b"%016x.bin" % rng.getrandbits(64)))
            at = rng.randrange(POOL_BYTES)
            parts.append(pool[at:at + record_bytes])
            parts.append(padding)
        parts.append(bytes(2 * BLOCK))
        shard = b"".join(parts)
        shard += bytes(-len(shard) % tarfile.RECORDSIZE)
        (directory / f"shard-{i:04d}.tar").write_bytes(shard)
        total += len(shard)
    return total


def member_names(path):
    """The names of a tar's members, by its headers alone."""
    names = []
    with open(path, "rb", buffering=0) as f:
        while True:
            block = f.read(BLOCK)
            if len(block) < BLOCK or block[0] == 0:
                return names
            names.append(block[:100].rstrip(b"\0"))
            size = int(block[124:135], 8)
            f.seek(size + -size % BLOCK, os.SEEK_CUR)


def check_sorted(directory, count):
    """The shards of `directory`, in the order of their names, hold `count` records in order."""
    names = []
    for path in sorted(directory.iterdir()):
        names += member_names(path)
    if len(names) != count:
        raise RuntimeError(f"{directory}: {len(names)} records instead of {count}")
    if any(a > b for a, b in zip(names, names[1:])):
        raise RuntimeError(f"{directory}: not sorted")
