#!/usr/bin/env python3
"""The kernel reads files of the disk cache itself: the bytes are the object's and no others, also of
an object that is replaced, of a file that was evicted or damaged, and after kill -9 of the mount;
where it cannot, the mount reads as before."""

import contextlib
import glob
import mmap
import os
import random
import subprocess
import sys

from lib import check, equal, main, skip, wait_for
from mount_bucket import read
from mount_cache import await_cached, cache_of, put_all, stats, warmup
from mount_kill import kill_server
from mount_lib import (kill_all, mount, mounted, needs_fuse, said_by_sanitizers, server,
                       to_be_cleaned, umount)
from mount_user import place_of_a_user
from mount_write import write

MIB = 1 << 20
PIECE = 4 * MIB
SIZES = (PIECE + 1, 2 * PIECE, 13 * MIB + 4321)
FILES = {f"set/{size}": random.Random(size).randbytes(size) for size in SIZES}
SMALL = {"set/0": b"", "set/1": b"x", "set/piece": random.Random(1).randbytes(PIECE)}
ONE = f"set/{SIZES[-1]}"
LAST = FILES[ONE]


def needs_passthrough(path):
    if stats(path).get("dfc_mount_passthrough") != 1:
        skip("the kernel does not read files of other file systems for FUSE: Linux 6.9 does")


def passed(path):
    return stats(path).get("dfc_mount_passed_opens_total", 0)


def by_mount(path):
    """Bytes that the kernel asked of the mount."""
    for line in os.getxattr(path, "user.dfc.stats").decode().splitlines():
        if line.startswith('dfc_mount_read_bytes_total{tier="buffer"}'):
            return float(line.split()[-1])
    return 0


def warm(c, path, below=""):
    """The mount has what is below in its cache, and each object in one file that can be."""
    warmup(c, path + below)
    wait_for(lambda: stats(path).get("dfc_cache_joins", 0) == 0, "the objects to be one file each")


def joined(cache):
    return glob.glob(cache + "/dfc-cache/pieces/*/*/*-ffffffffffffffff")


@contextlib.contextmanager
def opened(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def check_file(path, data, seed=0):
    """By read, pread, mmap, behind the end."""
    chance = random.Random(seed)
    check(read(path) == data, f"{path}: other bytes")
    with opened(path) as fd:
        equal(os.fstat(fd).st_size, len(data), "size")
        for _ in range(50):
            at, size = chance.randrange(len(data)), chance.choice((1, 4096, 70000))
            check(os.pread(fd, size, at) == data[at:at + size], f"{path}: other bytes at {at}")
        equal(os.pread(fd, 8192, len(data) - 100), data[-100:], "across the end")
        equal(os.pread(fd, 8192, len(data)), b"", "behind the end")
        with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as m:
            check(m[:] == data, f"{path}: other bytes in memory")
            equal(len(m), len(data), "mapped bytes")


def test_what_is_read_again_is_read_by_the_kernel(c):
    put_all(c, "again", {**FILES, **SMALL})
    cache = cache_of(c, "again")
    with mounted(c, "dfc://again", f"--cache-dir={cache}") as path:
        needs_passthrough(path)
        for _ in range(2):  # the second open finds all pieces
            for name, data in {**FILES, **SMALL}.items():
                check(read(f"{path}/{name}") == data, f"{name}: other bytes")
            await_cached([f"{path}/{name}" for name in FILES])
        wait_for(lambda: len(joined(cache)) == len(FILES), "all large objects in one file")
        await_cached([f"{path}/{name}" for name in FILES])
        before, opens = by_mount(path), passed(path)
        for name, data in FILES.items():
            check_file(f"{path}/{name}", data)
        equal(by_mount(path), before, "bytes by the mount")
        equal(passed(path) - opens, 2 * len(FILES), "opens")
        for name, data in SMALL.items():
            check(read(f"{path}/{name}") == data, f"{name}: other bytes")
        equal(passed(path) - opens, 2 * len(FILES), "no open of a small file")


def test_warmup_makes_the_files(c):
    cache = cache_of(c, "warm")
    with mounted(c, "dfc://again", f"--cache-dir={cache}") as path:
        warm(c, path)
        equal(len(joined(cache)), len(FILES), "objects in one file")
        for name, data in FILES.items():
            check_file(f"{path}/{name}", data)
        equal((by_mount(path), passed(path)), (0, 2 * len(FILES)), "bytes by the mount, opens")
        warm(c, path)


def test_opens_of_one_object_are_alike(c):
    """The kernel refuses others."""
    cache = cache_of(c, "alike")
    with mounted(c, "dfc://again", f"--cache-dir={cache}") as path:
        file = f"{path}/{ONE}"
        with opened(file) as served:
            warm(c, path, "/" + ONE)
            with opened(file) as another:
                equal(passed(path), 0, "opens beside one of the mount")
                check(os.pread(another, len(LAST), 0) == LAST, "other bytes")
            check(os.pread(served, 4096, 7 * MIB) == LAST[7 * MIB:7 * MIB + 4096], "other bytes")
        with opened(file) as one:
            equal(passed(path), 1, "opens, when the last was closed")
            for name in joined(cache):  # as when it is evicted
                os.unlink(name)
            with opened(file) as another:
                equal(passed(path), 2, "opens beside one of the kernel")
                check(os.pread(another, len(LAST), 0) == LAST, "other bytes of a file that left")
            check(os.pread(one, len(LAST), 0) == LAST, "other bytes of a file that left")
        check_file(file, LAST)


def test_a_new_version_is_another_file(c):
    put_all(c, "replaced", {"o": LAST})
    cache = cache_of(c, "replaced")
    other = random.Random(99).randbytes(len(LAST))
    with mounted(c, "dfc://replaced", "--writable", f"--cache-dir={cache}", "--attr-ttl=0",
                 "--entry-ttl=0") as path:
        warm(c, path)
        with opened(path + "/o") as old:
            equal(passed(path), 1, "opens")
            c.put("replaced", "o", other).expect(200)
            check(read(path + "/o") == other, "old bytes")
            check(os.pread(old, len(LAST), 0) == LAST, "other bytes of an open file")
            write(path + "/o", b"short")
            equal(read(path + "/o"), b"short", "written by the mount itself")
            check(os.pread(old, len(LAST), 0) == LAST, "other bytes of an open file")
        write(path + "/o", LAST)
        check_file(path + "/o", LAST)


READER = """
import os, random, sys
file, local = sys.argv[1:]
with open(local, "rb") as f:
    data = f.read()
held = os.open(file, os.O_RDONLY)
r = random.Random(5)
rounds = 0
while rounds == 0 or not os.path.exists(local + ".end"):
    at = r.randrange(len(data))
    if os.pread(held, 50000, at) != data[at:at + 50000]:
        sys.exit(f"other bytes at {at}")
    if rounds % 10 == 0:
        with open(file, "rb") as f:
            if f.read() != data:
                sys.exit("other bytes of a new open")
    rounds += 1
"""


def test_kills_are_not_seen(c):
    cache = cache_of(c, "kills")
    local = os.path.join(c.dir, "kills-local")
    write(local, LAST)
    with mounted(c, "dfc://again", f"--cache-dir={cache}", "--restarts=1000") as path:
        warm(c, path)
        file = f"{path}/{ONE}"
        with opened(file) as held:
            readers = [subprocess.Popen([sys.executable, "-c", READER, file, local],
                                        stdin=subprocess.DEVNULL) for _ in range(3)]
            for _ in range(15):
                kill_server(path)
                check(os.pread(held, 4096, 5 * MIB) == LAST[5 * MIB:5 * MIB + 4096], "other bytes")
            write(local + ".end", b"")
            for reader in readers:
                reader.communicate(timeout=60)
            equal([r.returncode for r in readers], [0] * 3, "readers")
        check_file(file, LAST)
        wait_for(lambda: (check_file(file, LAST), passed(path))[1] > 0,
                 "the kernel to read by itself again")


def test_an_open_that_comes_again_is_one_open(c):
    """The process dies when it has opened a file, and the kernel has not heard of it."""
    cache = cache_of(c, "opened")
    with mounted(c, "dfc://again", f"--cache-dir={cache}", "--restarts=1000",
                 env={"DFC_FAULTS": "mount.opened=kill@5"}) as path:
        first = server(path)
        for _ in range(7):
            check(read(f"{path}/{ONE}") == LAST, "other bytes")
        check(server(path) != first, "nothing was killed")
        # An open too much would be one that the mount serves, and the kernel would read no other.
        wait_for(lambda: (read(f"{path}/{ONE}"), passed(path))[1] > 0, "the kernel to read itself")


def test_without_any_process_open_files_go_on(c):
    """What the kernel reads itself needs no mount, until it is unmounted."""
    cache = cache_of(c, "alone")
    path = mount(c, "dfc://again", f"--cache-dir={cache}", "--restarts=0", name="alone")
    warm(c, path)
    with opened(f"{path}/{ONE}") as held:
        equal(passed(path), 1, "opens")
        kill_all(path)
        check(os.pread(held, len(LAST), 0) == LAST, "other bytes")


def test_after_a_start_of_the_machine_the_file_is_compared_first(c):
    cache = cache_of(c, "next")
    with mounted(c, "dfc://again", f"--cache-dir={cache}") as path:
        warm(c, path)
    with mounted(c, "dfc://again", f"--cache-dir={cache}") as path:
        check_file(f"{path}/{ONE}", LAST)
        equal((by_mount(path), passed(path)), (0, 2), "bytes by the next mount, opens")
    largest = max(joined(cache), key=os.path.getsize)
    with open(largest, "r+b") as f:  # damage
        f.seek(6 * MIB + 5)
        byte = f.read(1)
        f.seek(6 * MIB + 5)
        f.write(bytes([byte[0] ^ 1]))
    for name in glob.glob(cache + "/dfc-cache/pieces/*/*/*.foot"):
        os.utime(name, (0, 0))  # of before
    with mounted(c, "dfc://again", f"--cache-dir={cache}") as path:
        for _ in range(4):
            for name, data in FILES.items():
                check(read(f"{path}/{name}") == data, f"{name}: other bytes")
        wait_for(lambda: stats(path)["dfc_cache_damaged_total"] == 1, "the damage to be found")
        sound = f"set/{SIZES[0]}"
        wait_for(lambda: (check_file(f"{path}/{sound}", FILES[sound]), passed(path))[1] > 0,
                 "the kernel to read what is sound")


def test_without(c):
    cache = cache_of(c, "without")
    with mounted(c, "dfc://again", f"--cache-dir={cache}", "--no-passthrough") as path:
        warm(c, path)
        check_file(f"{path}/{ONE}", LAST)
        equal((joined(cache), passed(path)), ([], 0), "files, opens")
        check(by_mount(path) >= len(LAST), "bytes by the mount")
    with mounted(c, "dfc://again", f"--cache-dir={cache}") as path:  # of pieces
        warm(c, path)
        check_file(f"{path}/{ONE}", LAST)
        equal(passed(path), 2, "opens")
    with mounted(c, "dfc://again", f"--cache-dir={cache}", "--no-passthrough") as path:  # of files
        check_file(f"{path}/{ONE}", LAST)
        equal(passed(path), 0, "opens")
        equal(stats(path).get("dfc_cache_missed_bytes_total", 0), 0, "missed")
    mount(c, "dfc://again", "--no-passthrough", status=2)


def test_a_user_without_rights(c):
    with place_of_a_user(c) as (path, call):
        cache = os.path.join(os.path.dirname(path), "cache")
        call("mkdir", cache)
        call("./dfcctl", "fs", "mount", "dfc://again", path, f"--cache-dir={cache}")
        for _ in range(3):
            equal(call("sha256sum", f"{path}/{ONE}").split()[0],
                  subprocess.run(["sha256sum"], input=LAST, capture_output=True,
                                 check=True).stdout.decode().split()[0], "sum")
        equal(joined(cache), [], "files")
        call("./dfcctl", "fs", "umount", path)


def test_a_cache_on_a_stacked_file_system(c):
    """The kernel refuses it: an overlay has others below it."""
    at = cache_of(c, "stacked")
    for name in ("lower", "upper", "work", "all"):
        os.mkdir(f"{at}/{name}")
    done = subprocess.run(["mount", "-t", "overlay", "none", "-o",
                           f"lowerdir={at}/lower,upperdir={at}/upper,workdir={at}/work",
                           f"{at}/all"], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        skip(f"there are no overlays here: {done.stderr}")
    to_be_cleaned(f"{at}/all")
    path = mount(c, "dfc://again", f"--cache-dir={at}/all", f"--log-file={at}/log")
    warm(c, path)
    check_file(f"{path}/{ONE}", LAST)
    equal((passed(path), stats(path)["dfc_mount_passthrough"]), (0, 0), "opens, the gauge")
    with open(f"{at}/log", encoding="utf-8") as f:
        check("the kernel does not read cached files itself" in f.read(), "nothing in the log")
    umount(c, path)
    subprocess.run(["umount", f"{at}/all"], check=True)


def test_nothing_was_found_by_sanitizers(c):
    del c
    equal(said_by_sanitizers(), [], "reports")


if __name__ == "__main__":
    needs_fuse()
    main(targets=3)
