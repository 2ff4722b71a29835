#!/usr/bin/env python3
"""The disk cache of a volume: what was read or written once is not asked for again, also after
kill -9; pieces that are damaged, even with right sums of their own, disks that are full or fail,
and a second mount cost requests and no reads; fs warmup and fs stats of a volume."""

import os
import random

from lib import Failed, check, equal, main, skip
from mount_bucket import read
from mount_cache import (cache_of, fill, given, pieces, stats, warmup)
from mount_lib import (clean, directory_of, kill_all, mount, mounted, needs_fuse, said_by_sanitizers, server)
from mount_volume import made, url_of
from mount_write import check_files, write, write_files
from namespaces import run

KIB, MIB = 1 << 10, 1 << 20
FILES = {"d/small": random.Random(1).randbytes(100 * KIB + 7), "one": b"1",
         "large": random.Random(2).randbytes(13 * MIB + 4321)}
TOTAL = sum(map(len, FILES.values()))


def filled(c, name, *flags):
    """A volume with all files, which no cache has."""
    url = made(c, name)
    with mounted(c, url, *flags) as path:
        write_files(path, FILES)
    return url


def check_all(path):
    check_files(path, FILES)


def by_tier(path):
    tiers = {}
    for line in os.getxattr(path, "user.dfc.stats").decode().splitlines():
        if line.startswith("dfc_mount_read_bytes_total{"):
            tiers[line.split('"')[1]] = int(line.rsplit(" ", 1)[1])
    return tiers


def test_the_second_mount_asks_the_bucket_for_no_byte(c):
    url, cache = filled(c, "twice"), cache_of(c, "twice")
    with mounted(c, url, f"--cache-dir={cache}") as path:
        check_all(path)
        said = by_tier(path)
        check(said["buffer"] >= TOTAL and said["store"] >= TOTAL, said)
        equal(said.get("disk", 0), 0, "bytes of the empty cache")
    before = given(c)
    with mounted(c, url, f"--cache-dir={cache}") as path:
        check_all(path)
        said = by_tier(path)
        check(said["buffer"] >= TOTAL and said["disk"] >= TOTAL, said)
        equal(said.get("store", 0), 0, "bytes of the bucket")
        text = c.dfcctl("fs", "stats", path)
        equal((text.returncode, 'tier="disk"' in text.stdout), (0, True), text.stderr)
    equal(given(c), before, "bytes that the cluster gave")
    with mounted(c, url) as path:  # this test sees what it looks for
        check_all(path)
        check(given(c) > before, "bytes of a mount without a cache are not counted")


def test_what_was_written_is_cached(c):
    cache = cache_of(c, "written")
    url = filled(c, "written", f"--cache-dir={cache}")
    before = given(c)
    with mounted(c, url, f"--cache-dir={cache}") as path:
        equal(warmup(c, path, "--check").split(": ")[1].split()[0], "13.1", "MiB that are cached")
        check_all(path)
        write(path + "/one", b"2")  # other bytes are other blocks
        with open(path + "/large", "r+b", buffering=0) as f:
            os.pwrite(f.fileno(), b"x" * 70000, 5 * MIB)
    equal(given(c), before, "bytes that the cluster gave")
    with mounted(c, url, f"--cache-dir={cache}") as path:
        equal(read(path + "/one"), b"2", "the new byte")
        large = FILES["large"]
        check(read(path + "/large") == large[:5 * MIB] + b"x" * 70000 + large[5 * MIB + 70000:], "bytes")
    equal(given(c), before, "bytes that the cluster gave at last")


def test_warmup(c):
    url, cache = filled(c, "warm"), cache_of(c, "warm")
    with mounted(c, url) as path:
        check("mount it with --cache-dir" in warmup(c, path, status=2), "a mount without a cache")
        with open(path + "/hole", "wb") as f:
            f.truncate(9 * MIB)
    listed = os.path.join(c.dir, "list")
    with mounted(c, url, f"--cache-dir={cache}") as path:
        check(warmup(c, path + "/large", "--check").endswith(": 0 B are cached\n"), "at first")
        write(listed, f"{path}/d\n\n{path}/one\n".encode())
        said = warmup(c, "-f", listed)
        check(said.startswith("2 files, "), said)
        equal(len(pieces(cache)), 2, "pieces")
        warmup(c, path)
        before = given(c)
        warmup(c, path)
        check_all(path)
        equal(read(path + "/hole"), bytes(9 * MIB), "a hole")
        equal(given(c), before, "bytes that the cluster gave for what is warm")
        write(listed, f"{path}/one\n{path}/none\n{path}/d/small".encode())
        said = warmup(c, "--list", listed, status=6)
        check(f"'{path}/none': No such file" in said and said.startswith("2 files"), said)
        equal(warmup(c, "-f", listed + "-none", status=3).count("open the list"), 1, "no list")
        done = c.dfcctl("fs", "warmup")
        check(done.returncode == 2 and "or --list FILE" in done.stderr, done.stderr)


def test_damaged_pieces(c):
    url, cache = filled(c, "damage"), cache_of(c, "damage")
    log = os.path.join(c.dir, "damage.log")
    with mounted(c, url, f"--cache-dir={cache}") as path:
        check_all(path)
    found = pieces(cache)
    check(len(found) == 6, f"{len(found)} pieces")
    for number, piece in enumerate(found):
        size = os.stat(piece).st_size
        with open(piece, "r+b") as f:
            if number % 4 == 0:
                f.truncate(random.Random(number).randrange(size))
                continue
            at = random.Random(number).randrange(size)
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 1]))
    with mounted(c, url, f"--cache-dir={cache}", f"--log-file={log}") as path:
        check_all(path)
        equal(stats(path)["dfc_cache_damaged_total"], len(found), "damaged pieces that were found")
    before = given(c)
    with mounted(c, url, f"--cache-dir={cache}") as path:
        warmup(c, path)
        check_all(path)
    after = given(c)
    with mounted(c, url, f"--cache-dir={cache}") as path:
        check_all(path)
    equal(given(c), after, f"bytes that the cluster gave after the mend ({after - before} for it)")


def test_kill_9_keeps_the_cache(c):
    url, cache = filled(c, "killed"), cache_of(c, "killed")
    path = mount(c, url, f"--cache-dir={cache}")
    warmup(c, path)
    kill_all(path)
    clean()
    before = given(c)
    with mounted(c, url, f"--cache-dir={cache}") as path:
        check_all(path)
    equal(given(c), before, "bytes that the cluster gave after the kill")


def test_a_full_disk(c):
    url, cache = filled(c, "full"), cache_of(c, "full")
    try:
        run("mount", "-t", "tmpfs", "-o", "size=8M", "tmpfs", cache)
    except Failed as e:
        skip(f"no tmpfs can be mounted: {e}")
    try:
        with mounted(c, url, f"--cache-dir={cache}") as path:
            check_all(path)
            write(path + "/more", FILES["large"])
            check(read(path + "/more") == FILES["large"], "other bytes")
        check(len(pieces(cache)) >= 1, "nothing is cached")
        for piece in pieces(cache):
            os.unlink(piece)
        with open(cache + "/other", "wb") as f:
            fill(f)
        with mounted(c, url, f"--cache-dir={cache}") as path:
            check_all(path)
            check(stats(path)["dfc_cache_dropped_bytes_total"] > 0, "nothing was dropped")
            check("has not taken it" in warmup(c, path, status=6), "a warm-up of a full disk")
    finally:
        clean()
        run("umount", "-l", cache)


def test_a_disk_that_fails(c):
    url, cache = filled(c, "fails"), cache_of(c, "fails")
    with mounted(c, url, f"--cache-dir={cache}") as path:
        check_all(path)
    for fault in ("cache.read=EIO", "cache.read=EIO@3", "cache.write=EIO", "cache.rename=EROFS"):
        with mounted(c, url, f"--cache-dir={cache}", env={"DFC_FAULTS": fault}) as path:
            check_all(path)
            write(path + "/new", b"n" * MIB)
            equal(read(path + "/new"), b"n" * MIB, fault)


def test_one_owner_of_a_directory(c):
    url, cache = filled(c, "owner"), cache_of(c, "owner")
    with mounted(c, url, f"--cache-dir={cache}") as path:
        done = c.dfcctl("fs", "mount", url, directory_of(c, "second"), f"--cache-dir={cache}")
        equal(done.returncode, 1, done.stderr)
        check(f"process {server(path)} uses this directory" in done.stderr, done.stderr)
    other = url_of(c, "other")
    made(c, "other")
    with mounted(c, url, f"--cache-dir={cache}") as path:  # of two volumes, one after the other
        check_all(path)
    with mounted(c, other, f"--cache-dir={cache}") as path:
        write(path + "/one", b"other")
        equal(read(path + "/one"), b"other", "another volume")
    with mounted(c, url, f"--cache-dir={cache}") as path:
        check_all(path)


def test_sanitizers_found_nothing(c):
    del c
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(targets=2)
