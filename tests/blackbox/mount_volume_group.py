#!/usr/bin/env python3
"""A volume in a cache group of three members: each block leaves the store once, for all mounts and
all runs of them; members that are killed, frozen, full, damaged, lie or have another key cost
requests and no reads; what was written is never read old; fs warmup and fs stats of such a mount."""

import os
import random
import signal

from group_lib import Cached, await_members, kept, said_by_members
from lib import check, equal, in_parallel, main, wait_for
from mount_bucket import read
from mount_cache import cache_of, given, pieces, stats, warmup
from mount_group import flags, set_time
from mount_lib import directory_of, mounted, needs_fuse, said_by_sanitizers, server
from mount_volume import made
from mount_write import check_files, write, write_files

KIB, MIB = 1 << 10, 1 << 20
BLOCK = 4 * MIB
FILES = {**{f"d/{i:02}": random.Random(i).randbytes(10 * KIB + i) for i in range(40)}, "one": b"1",
         **{f"large-{size}": random.Random(size).randbytes(size)
            for size in (BLOCK, BLOCK + 1, 13 * MIB + 4321)}}
TOTAL = sum(map(len, FILES.values()))


def filled(url, c):
    """By a mount without a group: no member has a block."""
    with mounted(c, url) as path:
        write_files(path, FILES)
    return url


def check_all(path):
    check_files(path, FILES)


def counted(path):
    """Bytes that members gave, bytes that they did not give."""
    of = stats(path)
    return of["dfc_group_read_bytes_total"], of["dfc_group_passed_bytes_total"]


def read_by(c, url, *more, name="one"):
    with mounted(c, url, *flags(c, *more), name=name) as path:
        check_all(path)
        return counted(path)


class Group:
    """Members 1 to 3, and a volume with all files."""

    def __init__(self, c, name, make=made, env=None):
        self.members = [Cached(c, i + 1, env=env) for i in range(3)]
        await_members(c, [m.name for m in self.members])
        self.url = filled(make(c, name), c)

    def __enter__(self):
        return self.url, self.members

    def __exit__(self, *_):
        for member in self.members:
            member.remove()


def once_for_two_mounts(c, url, members):
    """Two mounts side by side, then two further runs."""
    before = given(c)
    in_parallel(lambda name: equal(read_by(c, url, name=name), (TOTAL, 0), name), ["one", "two"], 2)
    wait_for(lambda: kept(members) == TOTAL, "the members have all blocks")
    equal(given(c) - before, TOTAL, "bytes that left the store")
    equal(sum(m.stat("group_fetched_bytes_total") for m in members), TOTAL, "fetched")
    equal(sum(m.stat("group_sent_bytes_total") for m in members), 2 * TOTAL, "sent")
    check(all(m.pieces() for m in members), "a member has no piece")
    names = [os.path.basename(p) for m in members for p in m.pieces()]
    equal(len(names), len(set(names)), "pieces that two members have")
    equal(read_by(c, url), (TOTAL, 0), "another run")
    equal(given(c) - before, TOTAL, "bytes that left the store after another run")


def test_each_block_leaves_the_store_once(c):
    with Group(c, "once") as (url, members):
        once_for_two_mounts(c, url, members)
        before = given(c)
        for member in members:  # what is kept survives
            member.kill()
            member.start()
        equal(read_by(c, url), (TOTAL, 0), "after kill -9 of all")
        equal(given(c), before, "bytes that left the store after kill -9 of all")
        with mounted(c, url) as path:  # this test sees what it looks for
            check_all(path)
        equal(given(c) - before, TOTAL, "bytes of a mount without a group")


def test_members_that_are_killed_or_frozen_are_passed_by(c):
    with Group(c, "dead") as (url, members):
        equal(read_by(c, url), (TOTAL, 0), "all well")
        set_time(c, cache_away="1h")  # nobody is told
        with mounted(c, url, *flags(c, "--group-wait=200ms")) as path:
            members[0].kill()
            members[1].process.send_signal(signal.SIGSTOP)
            try:
                check_all(path)
                passed = counted(path)[1]
                check(0 < passed < TOTAL, f"passed by: {passed}")
                write(path + "/new", FILES["d/01"])  # needs no member
                check(read(path + "/new") == FILES["d/01"], "a file that is new")
            finally:
                members[1].process.send_signal(signal.SIGCONT)
        for member in members:
            member.kill()
        equal(read_by(c, url), (0, TOTAL), "without members")
        set_time(c, cache_away="10s")


def test_members_with_full_disks_give_what_they_cannot_keep(c):
    with Group(c, "full", env={"DFC_FAULTS": "cache.write=ENOSPC"}) as (url, members):
        read_bytes, passed = read_by(c, url)
        equal(read_bytes + passed, TOTAL, "bytes")
        equal(kept(members), 0, "bytes kept")
        with mounted(c, url, *flags(c)) as path:
            check("1 files" in warmup(c, path + "/one", status=6), "a warm-up that nobody keeps")
            check_all(path)


def test_bytes_that_are_damaged_or_invented_are_fetched_again(c):
    with Group(c, "liar") as (url, members):
        equal(read_by(c, url), (TOTAL, 0), "all well")
        wait_for(lambda: kept(members) == TOTAL, "the members have all blocks")
        log = os.path.join(c.dir, "liar-mount.log")
        for fault in ("group.damage=EIO", "group.lie=EIO"):
            before = given(c)
            for member in members:
                member.kill()
                member.start({"DFC_FAULTS": fault})
            equal(read_by(c, url, f"--log-file={log}"), (0, TOTAL), fault)
            equal(given(c) - before, TOTAL, f"{fault}: bytes of the store")
            check("came damaged" in read(log).decode(), f"{fault}: the log says nothing")
            os.unlink(log)
        for member in members:
            member.kill()
            member.start()
        for path in members[0].pieces():  # the disk's damage
            with open(path, "r+b") as f:
                f.seek(os.path.getsize(path) // 3)
                byte = f.read(1)
                f.seek(-1, os.SEEK_CUR)
                f.write(bytes([byte[0] ^ 1]))
        equal(read_by(c, url), (TOTAL, 0), "with damaged pieces")
        check(members[0].stat("cache_damaged_total") > 0, "no damage was seen")


def test_a_disk_of_the_mount_keeps_no_lie(c):
    """Nor by a warm-up."""
    with Group(c, "disk", env={"DFC_FAULTS": "group.lie=EIO"}) as (url, members):
        cache = cache_of(c, "disk")
        with mounted(c, url, *flags(c), f"--cache-dir={cache}") as path:
            warmup(c, path)
        for member in members:
            member.kill()
        before = given(c)
        with mounted(c, url, *flags(c), f"--cache-dir={cache}") as path:
            check_all(path)
            equal(counted(path), (0, 0), "bytes of members and of the store")
        equal(given(c), before, "bytes of the store")
        check(len(pieces(cache)) > len(FILES), f"pieces: {len(pieces(cache))}")


def test_a_disk_of_the_mount_keeps_what_members_gave(c):
    with Group(c, "both") as (url, members):
        cache = cache_of(c, "both")
        equal(read_by(c, url, f"--cache-dir={cache}"), (TOTAL, 0), "first")
        equal(read_by(c, url, f"--cache-dir={cache}"), (0, 0), "from the disk")
        equal(sum(m.stat("group_sent_bytes_total") for m in members), TOTAL, "sent")


def test_one_mount_warms_the_group_for_all(c):
    with Group(c, "warm") as (url, members):
        before = given(c)
        with mounted(c, url, *flags(c)) as one, mounted(c, url, *flags(c), name="two") as two:
            with open(one + "/hole", "wb") as f:
                f.truncate(5 * MIB)
            check(warmup(c, one + "/d", "--check").endswith(": 0 B are cached\n"), "at first")
            in_parallel(lambda path: warmup(c, path), [one, two], 2)
            equal(kept(members), TOTAL, "bytes kept when the command returns")
            equal(given(c) - before, TOTAL, "bytes that left the store")
            said = warmup(c, two, "--check")
            size = said.split(", ")[1].split(":")[0]
            equal(said, f"{len(FILES) + 1} files, {size}: {size} are cached\n", "after the warm-up")
            check_all(two)
            equal(counted(two), (TOTAL, 0), "bytes of members, and of the store")
            shown = c.dfcctl("fs", "stats", two).stdout
            check(f"dfc_group_read_bytes_total {TOTAL}\n" in shown, shown)
            set_time(c, cache_away="1h")  # the mount is not told
            members[0].kill()
            check(f"'{one}/" in warmup(c, one, status=6), "no file is named")
            set_time(c, cache_away="10s")
        equal(given(c) - before, TOTAL, "bytes that left the store in the end")


def test_what_was_written_is_never_read_old(c):
    with Group(c, "new") as group, mounted(c, group[0], *flags(c)) as one, \
            mounted(c, group[0], *flags(c), name="two") as two:
        size = 5 * MIB
        was = bytearray(random.Random(0).randbytes(size))
        write(one + "/f", bytes(was))
        for version in range(1, 6):
            data, at = random.Random(version).randbytes(70000), version * 600000
            with open((one, two)[version % 2] + "/f", "r+b", buffering=0) as f:
                os.pwrite(f.fileno(), data, at)
            was[at:at + len(data)] = data
            for path in (two, one):
                check(read(path + "/f") == was, f"version {version}: other bytes")
        equal(counted(one)[1] + counted(two)[1], 0, "bytes that no member gave")


def test_a_process_that_takes_over_reads_through_the_group(c):
    with Group(c, "over") as group, mounted(c, group[0], *flags(c)) as path:
        check_all(path)
        before = given(c)
        with open(path + "/large-%d" % BLOCK, "rb", buffering=0) as f:
            pid = server(path)
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: server(path) != pid, "another process")
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            check(f.read() == FILES["large-%d" % BLOCK], "other bytes")
        check(counted(path)[0] >= BLOCK, counted(path))
        equal(given(c), before, "bytes of the store")


def test_another_key_is_refused(c):
    with Group(c, "keys") as (url, members):
        with mounted(c, url, *flags(c, key="other")) as path:
            check_all(path)
            equal(counted(path), (0, TOTAL), "with another key")
        equal(sum(m.stat("group_sent_bytes_total") for m in members), 0, "sent")


def test_a_group_that_is_not_there(c):
    url = filled(made(c, "none"), c)
    equal(read_by(c, url), (0, TOTAL), "a group that nobody has heard of")
    for more, says in ((["--cache-group="], "--cache-group is empty"),
                       (["--group-key-file=/k"], "needs --cache-group"),
                       (["--cache-group=g", "--group-key-file=/nowhere"], "/nowhere")):
        done = c.dfcctl("fs", "mount", url, directory_of(c, "one"), *more)
        check(done.returncode != 0 and says in done.stderr, f"{more}: {done}")


def test_no_sanitizer_found_anything(c):
    equal(said_by_sanitizers(), [], "reports of sanitizers")
    equal(said_by_members(c), [], "logs with reports")


if __name__ == "__main__":
    needs_fuse()
    main(targets=3)
