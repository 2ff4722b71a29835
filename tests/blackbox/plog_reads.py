#!/usr/bin/env python3
"""What a mount of plogs reads: all handles share one buffer, so that each byte leaves the store about once; a disk
cache gives it to the next mount; damage is no byte of a read, and is forgotten when it is mended."""

import errno
import glob
import os
import random
import threading

from cold_lib import metric
from lib import check, equal, main
from mount_bucket import fails, read
from mount_cache import cache_of, given, stats
from mount_lib import mount, mounted, needs_fuse, said_by_sanitizers, umount

MIB = 1 << 20
RECORD, READERS = 47008, 16
SIZE = 24 * MIB + 4711
LOOK = 64 << 10  # bytes of heads and indexes that a mount needs to find the data
DATA = random.Random(8).randbytes(SIZE)
SEGMENTS = "--segment-size=4MiB"


def write_strided(c, bucket, data=DATA, ranks=4):
    """By several handles of one mount."""
    c.create(bucket)
    with mounted(c, f"dfc://{bucket}", SEGMENTS, noun="plog") as path:
        fds = [os.open(path + "/f", os.O_WRONLY | os.O_CREAT) for _ in range(ranks)]
        for index, at in enumerate(range(0, len(data), RECORD)):
            os.pwrite(fds[index % ranks], data[at:at + RECORD], at)
        for fd in fds:
            os.close(fd)


def read_strided(path, data=DATA):
    """By as many handles as there are readers, at once: each has every 16th record."""
    wrong = []

    def one(rank):
        fd = os.open(path, os.O_RDONLY)
        for at in range(rank * RECORD, len(data), READERS * RECORD):
            if os.pread(fd, RECORD, at) != data[at:at + RECORD]:
                wrong.append(at)
        os.close(fd)

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(READERS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    equal(wrong, [], "places with other bytes")


def segments(c, bucket):
    return [n for n in c.names(bucket, prefix=".dfc-plog/", internal="true") if "/s/" in n]


def sum_of(c, name):
    return sum(metric(c, name, node) for node in c.targets())


def test_many_handles_fetch_each_byte_once(c):
    write_strided(c, "once")
    before, calls = given(c), sum_of(c, "dfc_object_get_total")
    with mounted(c, "dfc://once", noun="plog") as path:
        read_strided(path + "/f")
        moved, calls = given(c) - before, sum_of(c, "dfc_object_get_total") - calls
        check(SIZE <= moved <= SIZE + MIB, f"{moved} bytes for a file of {SIZE}")
        check(calls <= 2 * SIZE // MIB + 5 * READERS, f"{calls} GETs")  # an open takes some
        check(stats(path)["dfc_mount_buffer_used_bytes"] >= SIZE, "bytes in the buffer")
        read_strided(path + "/f")
        check(given(c) - before <= moved + LOOK, "data are fetched when the file is read again")


def test_a_small_buffer(c):
    write_strided(c, "small")
    with mounted(c, "dfc://small", "--buffer-size=8MiB", "--parallel=2", noun="plog") as path:
        read_strided(path + "/f")
        check(read(path + "/f") == DATA, "the whole file")
        check(stats(path)["dfc_mount_buffer_used_bytes"] <= 8 * MIB, "the buffer")
    with mounted(c, "dfc://small", "--max-readahead=0", noun="plog") as path:
        check(read(path + "/f") == DATA, "the file without read-ahead")


def test_a_disk_cache_serves_the_next_mount(c):
    write_strided(c, "cached")
    c.put("cached", "flat", DATA).expect(200)
    cache = "--cache-dir=" + cache_of(c)
    for _ in range(2):  # what came faster than the disk is written the second time
        with mounted(c, "dfc://cached", cache, noun="plog") as path:
            read_strided(path + "/f")
            read_strided(path + "/flat")
    before = given(c)
    with mounted(c, "dfc://cached", cache, noun="plog") as path:
        read_strided(path + "/f")
        check(given(c) - before <= LOOK, f"{given(c) - before} bytes from the cluster")
        read_strided(path + "/flat")
        said = stats(path)
        equal((said["dfc_cache_read_bytes_total"], said["dfc_cache_missed_bytes_total"]), (2 * SIZE, 0), "hits")
        check('tier="disk"' in c.dfcctl("fs", "stats", path).stdout, "fs stats")
        mount(c, "dfc://cached", cache, noun="plog", name="two", status=1)  # a directory has one owner
        with open(path + "/g", "wb") as f:
            f.write(b"new")
        equal(read(path + "/g"), b"new", "a file that is written beside them")


def test_damage_of_the_store(c):
    """It is told, no other byte is given, and what was put back is read at once."""
    for bucket, flags in (("bad", []), ("badcached", ["--cache-dir=" + cache_of(c, "bad")])):
        write_strided(c, bucket)
        log = os.path.join(c.dir, bucket + ".log")
        with mounted(c, f"dfc://{bucket}", f"--log-file={log}", "--attr-ttl=0", *flags, noun="plog") as path:
            fd = os.open(path + "/f", os.O_RDONLY)
            victim = sorted(segments(c, bucket))[0]
            sound = c.get(bucket, victim).expect(200).body
            at = DATA.find(sound[MIB + 100:MIB + 200])  # within its second MiB
            c.put(bucket, victim, sound[:MIB + 150] + bytes([sound[MIB + 150] ^ 1]) + sound[MIB + 151:]).expect(200)
            for _ in range(3):
                fails(errno.EIO, os.pread, fd, 100, at)
            c.put(bucket, victim, sound).expect(200)
            equal(os.pread(fd, 100, at), DATA[at:at + 100], "what was put back")
            os.close(fd)
            check(read(path + "/f") == DATA, "the whole file")
        with open(log, encoding="utf-8") as f:
            check(any(victim in line and "differ" in line for line in f), "the log does not name the segment")
        with mounted(c, f"dfc://{bucket}", *flags, noun="plog") as path:
            check(read(path + "/f") == DATA, "the file, of the next mount")


def test_a_segment_that_is_lost(c):
    """Not what a removed file gives, and the log says what it is."""
    write_strided(c, "lost")
    log = os.path.join(c.dir, "lost.log")
    with mounted(c, "dfc://lost", f"--log-file={log}", noun="plog") as path:
        c.object("DELETE", "lost", sorted(segments(c, "lost"))[0]).expect(204)
        with open(path + "/f", "rb") as f:
            fails(errno.EIO, f.read)
    with open(log, encoding="utf-8") as f:
        check("has lost a segment" in f.read(), "the log does not say it")


def test_damage_of_the_disk_cache(c):
    write_strided(c, "disk")
    cache = cache_of(c, "disk")
    for _ in range(2):
        with mounted(c, "dfc://disk", "--cache-dir=" + cache, noun="plog") as path:
            check(read(path + "/f") == DATA, "the file")
    pieces = glob.glob(cache + "/dfc-cache/pieces/*/*/*")
    check(len(pieces) > 2, f"{len(pieces)} pieces")
    for piece in pieces:
        with open(piece, "r+b") as f:
            f.seek(1000)
            f.write(b"other bytes")
    with mounted(c, "dfc://disk", "--cache-dir=" + cache, noun="plog") as path:
        check(read(path + "/f") == DATA, "the file after the damage")
        equal(stats(path)["dfc_cache_damaged_total"], len(pieces), "pieces that were found damaged")


def test_a_file_that_is_removed_under_a_reader(c):
    """Its bytes or ESTALE, and of a file that takes its name no byte."""
    write_strided(c, "gone")
    one, two = [mount(c, "dfc://gone", "--attr-ttl=0", "--entry-ttl=0", noun="plog", name=n) for n in ("one", "two")]
    fd = os.open(one + "/f", os.O_RDONLY)
    equal(os.pread(fd, 1000, 0), DATA[:1000], "the first bytes")
    os.unlink(two + "/f")
    with open(two + "/f", "wb") as f:
        f.write(DATA[::-1])
    refused = 0
    for at in range(0, SIZE, 3 * MIB):
        try:
            check(os.pread(fd, 1000, at) == DATA[at:at + 1000], f"other bytes at {at}")
        except OSError as e:
            equal(e.errno, errno.ESTALE, str(e))
            refused += 1
    check(refused > 0, "bytes of segments that are gone")
    os.close(fd)
    check(read(one + "/f") == DATA[::-1], "the new file")
    for path in (one, two):
        umount(c, path)


def test_sanitizers_found_nothing(_):
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main()
