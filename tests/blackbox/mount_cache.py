#!/usr/bin/env python3
"""The disk cache of a mount: what was read once is not asked for again, also after kill -9; an
object that is replaced is never served old; disks that are full, damaged or fail cost requests and
no reads."""

import errno
import glob
import os
import random
import signal
import subprocess

from cold_lib import FakeS3, metric
from lib import Failed, check, equal, in_parallel, main, skip, wait_for
from mount_bucket import read
from mount_lib import (directory_of, mount, mounted, mounts, needs_fuse, said_by_sanitizers, server,
                       umount)
from namespaces import run

KIB, MIB = 1 << 10, 1 << 20
PIECE = 4 * MIB
SMALL = {f"set/small/{i:02}": random.Random(i).randbytes(100 * KIB + i) for i in range(20)}
LARGE = {f"set/large/{size}": random.Random(size).randbytes(size)
         for size in (0, 1, PIECE - 1, PIECE, PIECE + 1, 13 * MIB + 4321)}
FILES = {**SMALL, **LARGE}


def cache_of(c, name="cache"):
    path = os.path.join(c.dir, name)
    os.makedirs(path, exist_ok=True)
    return path


def stats(path):
    """{metric of the mount: its sum over all labels}"""
    sums = {}
    for line in os.getxattr(path, "user.dfc.stats").decode().splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            name = name.split("{")[0]
            sums[name] = sums.get(name, 0) + float(value)
    return sums


def given(c):
    """Bytes of objects that the targets have sent."""
    return sum(metric(c, "dfc_object_get_bytes_total", node) for node in c.targets())


def cached(path):
    return int(os.getxattr(path, "user.dfc.cached_bytes"))


def await_cached(paths):
    wait_for(lambda: all(cached(p) == os.stat(p).st_size for p in paths), "the cache has all bytes")


def put_all(c, bucket, files=None):
    c.create(bucket)
    in_parallel(lambda n: c.put(bucket, n, (files or FILES)[n]).expect(200), list(files or FILES), 8)


def check_all(path, files=None):
    for name, data in (files or FILES).items():
        check(read(os.path.join(path, name)) == data, f"{name}: other bytes")


def pieces(cache):
    return sorted(glob.glob(cache + "/dfc-cache/pieces/*/*/*"))


def test_the_second_mount_asks_the_cluster_for_no_byte(c):
    put_all(c, "twice")
    cache = cache_of(c, "twice")
    with mounted(c, "dfc://twice", f"--cache-dir={cache}") as path:
        equal([cached(os.path.join(path, n)) for n in SMALL], [0] * len(SMALL), "cached at first")
        check_all(path)
        await_cached([os.path.join(path, n) for n in FILES])
        equal(stats(path)["dfc_cache_missed_bytes_total"], sum(map(len, FILES.values())), "missed")
    before = given(c)
    with mounted(c, "dfc://twice", f"--cache-dir={cache}") as path:
        check_all(path)
        equal(stats(path)["dfc_cache_missed_bytes_total"], 0, "missed later")
        equal(stats(path)["dfc_cache_read_bytes_total"], sum(map(len, FILES.values())), "hits")
    equal(given(c), before, "bytes that the cluster gave")
    with mounted(c, "dfc://twice") as path:  # this test sees what it looks for
        check_all(path, SMALL)
        check(given(c) > before, "bytes of a mount without a cache are not counted")


def test_a_replaced_object_is_never_served_old(c):
    cache = cache_of(c, "replaced")
    c.create("replaced")
    versions = [random.Random(i).randbytes(5 * MIB) for i in range(4)]  # all of one size
    c.put("replaced", "o", versions[0]).expect(200)
    for at in range(0, len(versions), 2):
        with mounted(c, "dfc://replaced", f"--cache-dir={cache}", "--attr-ttl=0") as path:
            for version in versions[at:at + 2]:
                c.put("replaced", "o", version).expect(200)
                check(read(path + "/o") == version, "an old version")
                await_cached([path + "/o"])
                check(read(path + "/o") == version, "an old version from the cache")
    c.object("DELETE", "replaced", "o").expect(204)
    with mounted(c, "dfc://replaced", f"--cache-dir={cache}") as path:
        equal(os.listdir(path), [], "a deleted object")
    c.destroy("replaced")
    c.create("replaced")  # another bucket of this name
    c.put("replaced", "o", versions[3][::-1]).expect(200)
    with mounted(c, "dfc://replaced", f"--cache-dir={cache}") as path:
        equal(cached(path + "/o"), 0, "bytes of another bucket")
        check(read(path + "/o") == versions[3][::-1], "bytes of another bucket")


def is_dead(path):
    try:
        os.stat(path)
    except OSError as e:
        return e.errno in (errno.ENOTCONN, errno.ECONNABORTED)
    return False


def await_end(c, path):
    """The mount of a process that was killed, and is not replaced, is cleared."""
    wait_for(lambda: is_dead(path), "the supervisor to end")
    equal(c.dfcctl("fs", "umount", path).returncode, 0, "umount")
    equal(mounts(path), [], "what is mounted")


def test_kill_9_keeps_the_cache(c):
    put_all(c, "killed")
    cache = cache_of(c, "killed")
    path = mount(c, "dfc://killed", f"--cache-dir={cache}", "--restarts=0")
    check_all(path, LARGE)
    await_cached([os.path.join(path, n) for n in LARGE])
    os.kill(server(path), signal.SIGKILL)
    await_end(c, path)
    before = given(c)
    # The same with a process in place of the one that died, which has no other directory.
    path = mount(c, "dfc://killed", "--no-passthrough", "--cache-dir=" + os.path.relpath(cache))
    check_all(path, LARGE)
    pid = server(path)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: server(path) != pid, "another process")
    await_cached([os.path.join(path, n) for n in LARGE])
    for name in LARGE:
        with open(os.path.join(path, name), "rb") as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    check_all(path, LARGE)
    equal(stats(path)["dfc_cache_read_bytes_total"], sum(map(len, LARGE.values())), "hits")
    equal(given(c), before, "bytes that the cluster gave after the kills")
    umount(c, path)


def test_kill_9_at_each_step(c):
    put_all(c, "steps", SMALL)
    for fault in ("cache.write=kill@1", "cache.write=kill@2", "cache.write=kill@9",
                  "cache.rename=kill@1", "cache.rename=kill@5"):
        cache = cache_of(c, "steps" + fault)
        path = mount(c, "dfc://steps", f"--cache-dir={cache}", "--restarts=0",
                     env={"DFC_FAULTS": fault})
        try:
            for name, data in SMALL.items():
                check(read(os.path.join(path, name)) == data, f"{name}: other bytes")
        except OSError:
            pass  # it was killed meanwhile
        await_end(c, path)
        with mounted(c, "dfc://steps", f"--cache-dir={cache}") as path:
            equal(glob.glob(cache + "/dfc-cache/new/*"), [], "what was being written")
            check_all(path, SMALL)
        before = given(c)
        with mounted(c, "dfc://steps", f"--cache-dir={cache}") as path:
            check_all(path, SMALL)
        equal(given(c), before, f"{fault}: bytes that the cluster gave at last")


def fill(f):
    """Until its file system is full."""
    try:
        while True:
            os.write(f.fileno(), bytes(64 * KIB))
    except OSError as e:
        equal(e.errno, errno.ENOSPC, str(e))


def test_a_full_disk(c):
    """A file system of 32 MiB, of which a tenth stays free; then another program fills it."""
    files = {f"f{i}": random.Random(i).randbytes(3 * MIB) for i in range(16)}
    put_all(c, "full", files)
    cache = cache_of(c, "full")
    try:
        run("mount", "-t", "tmpfs", "-o", "size=32M", "tmpfs", cache)
    except Failed as e:
        skip(f"no tmpfs can be mounted: {e}")
    try:
        with mounted(c, "dfc://full", f"--cache-dir={cache}") as path:
            check_all(path, files)
        room = os.statvfs(cache)
        check(room.f_bavail * room.f_frsize >= 32 * MIB // 10, f"too full: {room}")
        check(len(pieces(cache)) >= 4, "nothing is cached")
        with open(cache + "/other", "wb") as f:
            fill(f)
        with mounted(c, "dfc://full", f"--cache-dir={cache}") as path:
            check_all(path, files)
            room = os.statvfs(cache)
            check(room.f_bavail * room.f_frsize >= 32 * MIB // 10, f"still too full: {room}")
            check(stats(path)["dfc_cache_evicted_bytes_total"] > 0, "nothing left for it")
        for piece in pieces(cache):
            os.unlink(piece)
        with open(cache + "/more", "wb") as f:
            fill(f)
        with mounted(c, "dfc://full", f"--cache-dir={cache}") as path:  # nothing is left to evict
            check_all(path, files)
            check(stats(path)["dfc_cache_dropped_bytes_total"] > 0, "nothing was dropped")
        os.unlink(cache + "/more")
        with mounted(c, "dfc://full", f"--cache-dir={cache}") as path:
            check(read(path + "/f0") == files["f0"], "other bytes")
            await_cached([path + "/f0"])
    finally:
        run("umount", "-l", cache)


def test_the_size_is_kept(c):
    put_all(c, "size")
    files = {f"f{i}": random.Random(i).randbytes(3 * MIB) for i in range(16)}
    in_parallel(lambda n: c.put("size", n, files[n]).expect(200), list(files), 4)
    cache = cache_of(c, "size")
    with mounted(c, "dfc://size", f"--cache-dir={cache}", "--cache-size=16MiB") as path:
        check_all(path, {**files, **FILES})
        check(stats(path)["dfc_cache_limit_bytes"] == 16 * MIB, "another limit")
    total = sum(os.stat(p).st_blocks * 512 for p in pieces(cache))
    check(4 * MIB < total <= 16 * MIB, f"{total} bytes")


def test_damaged_pieces(c):
    put_all(c, "damage")
    cache = cache_of(c, "damage")
    log = os.path.join(c.dir, "damage.log")
    with mounted(c, "dfc://damage", f"--cache-dir={cache}") as path:
        check_all(path)
    found = pieces(cache)
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
    with mounted(c, "dfc://damage", f"--cache-dir={cache}", f"--log-file={log}") as path:
        check_all(path)
        equal(stats(path)["dfc_cache_damaged_total"], len(found), "damaged pieces that were found")
    with mounted(c, "dfc://damage", f"--cache-dir={cache}") as path:  # begins of some came from disk
        check_all(path)
        await_cached([os.path.join(path, n) for n in FILES])
    with open(log, encoding="utf-8") as f:
        equal(sum("damaged piece" in line for line in f), len(found), "lines of the log")
    before = given(c)
    with mounted(c, "dfc://damage", f"--cache-dir={cache}") as path:
        check_all(path)
    equal(given(c), before, "bytes that the cluster gave after the mend")


def test_a_disk_that_fails(c):
    put_all(c, "fails")
    cache = cache_of(c, "fails")
    with mounted(c, "dfc://fails", f"--cache-dir={cache}") as path:
        check_all(path)
    for fault in ("cache.read=EIO", "cache.read=EIO@3", "cache.write=EIO", "cache.rename=EROFS",
                  "cache.write=ENOSPC"):
        log = os.path.join(c.dir, "fails.log")
        with mounted(c, "dfc://fails", f"--cache-dir={cache}", f"--log-file={log}",
                     env={"DFC_FAULTS": fault}) as path:
            check_all(path)
    with open(log, encoding="utf-8") as f:
        text = f.read()
        check("state=sick" in text, f"the log does not say that the disk failed: {text}")


def test_a_disk_that_fails_before_a_kill(c):
    """Of two directories one is read-only when the next process begins: it does without."""
    put_all(c, "lost", SMALL)
    bad, good = cache_of(c, "bad"), cache_of(c, "good")
    log = os.path.join(c.dir, "lost.log")
    with mounted(c, "dfc://lost", f"--cache-dir={bad}:{good}", f"--log-file={log}") as path:
        check_all(path, SMALL)
        try:
            run("mount", "-t", "tmpfs", "-o", "ro", "tmpfs", bad + "/dfc-cache")
        except Failed as e:
            skip(f"no tmpfs can be mounted: {e}")
        try:
            pid = server(path)
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: server(path) != pid, "another process")
            check_all(path, SMALL)
        finally:
            run("umount", bad + "/dfc-cache")
    with open(log, encoding="utf-8") as f:
        text = f.read()
    check("cache directory is not used" in text, f"the log says nothing of it: {text}")


def test_one_owner_of_a_directory(c):
    put_all(c, "owner", SMALL)
    cache, other = cache_of(c, "owner"), cache_of(c, "owner2")
    with mounted(c, "dfc://owner", f"--cache-dir={cache}:{other}") as path:
        check_all(path, SMALL)
        await_cached([os.path.join(path, n) for n in SMALL])
        check(pieces(cache) and pieces(other), "one of two directories has all pieces")
        done = c.dfcctl("fs", "mount", "dfc://owner", directory_of(c, "second"),
                        f"--cache-dir={other}")
        equal(done.returncode, 1, done.stderr)
        check(f"process {server(path)} uses this directory" in done.stderr, done.stderr)
    for flags, code, said in (((f"--cache-dir={cache}/none",), 1, cache + "/none"),
                              ((f"--cache-dir={cache}", "--cache-size=1MiB"), 2, "--cache-size"),
                              ((f"--cache-dir={cache}", "--cache-free=100"), 2, "--cache-free")):
        done = c.dfcctl("fs", "mount", "dfc://owner", directory_of(c, "second"), *flags)
        equal(done.returncode, code, f"{flags}: {done.stderr}")
        check(said in done.stderr, f"{flags}: {done.stderr}")


def test_a_directory_in_the_mount_is_refused(c):
    c.create("itself")
    path = directory_of(c, "one")
    os.makedirs(path + "/below", exist_ok=True)
    for at in (path, path + "/below", f"{cache_of(c, 'apart')}:{path}"):
        done = c.dfcctl("fs", "mount", "dfc://itself", path, f"--cache-dir={at}")
        equal(done.returncode, 2, done.stderr)
        check("is where the mount will be" in done.stderr, done.stderr)
    equal(mounts(path), [], "what is mounted")
    os.rmdir(path + "/below")


def test_without_a_directory_there_is_no_cache(c):
    put_all(c, "none", SMALL)
    with mounted(c, "dfc://none") as path:
        check_all(path, SMALL)
        names = os.listxattr(os.path.join(path, next(iter(SMALL))))
        check("user.dfc.cached_bytes" not in names, f"names of attributes: {names}")


def warmup(c, *args, status=0):
    done = c.dfcctl("fs", "warmup", *args)
    equal(done.returncode, status, f"warmup {args}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def test_warmup(c):
    put_all(c, "warm")
    cache = cache_of(c, "warm")
    with mounted(c, "dfc://warm", f"--cache-dir={cache}") as path:
        small, large = path + "/set/small", path + "/set/large"
        said = warmup(c, small, "--check")
        check(said.startswith(f"{len(SMALL)} files, ") and said.endswith(": 0 B are cached\n"), said)
        warmup(c, small)
        await_cached([os.path.join(path, n) for n in SMALL])
        equal(warmup(c, path, "--check").split()[:2], [str(len(FILES)), "files,"], "all files")
        warmup(c, large, small, "--parallel=3")
        await_cached([os.path.join(path, n) for n in FILES])
        before = given(c)
        warmup(c, path)
        check_all(path)
        equal(given(c), before, "bytes that the cluster gave for what is warm")
        equal(stats(path)["dfc_cache_missed_bytes_total"], sum(map(len, FILES.values())), "fetched")
        equal(warmup(c, path + "/none", status=3).count("No such file"), 1, "a path that is not there")
        text = c.dfcctl("fs", "stats", path)
        equal((text.returncode, "dfc_cache_used_bytes" in text.stdout), (0, True), text.stderr)


def test_a_warmup_of_what_only_the_backend_has(c):
    """The cluster knows no checksum of an object before it has stored it."""
    cache = cache_of(c, "cold")
    with FakeS3() as s3:
        for name, data in SMALL.items():
            s3.put("cold", name, data)
        c.create("cold", backend={"provider": "s3", "bucket": "cold", "endpoint": s3.url,
                                  "auth": "none"})
        with mounted(c, "dfc://cold", f"--cache-dir={cache}") as path:
            warmup(c, path + "/set/small")
            await_cached([os.path.join(path, n) for n in SMALL])
        kept, before = len(pieces(cache)), given(c)
        with mounted(c, "dfc://cold", f"--cache-dir={cache}") as path:
            check_all(path, SMALL)
        equal(given(c), before, "bytes that the cluster gave for what is warm")
        equal((kept, len(pieces(cache))), (len(SMALL), len(SMALL)), "pieces")


def test_warmup_that_meets_failures(c):
    put_all(c, "fail")
    cache = cache_of(c, "fail")
    check("is not in a mounted bucket" in warmup(c, cache_of(c, "local-file"), __file__, status=2),
          "a local file")
    with mounted(c, "dfc://fail") as path:
        check("mount it with --cache-dir" in warmup(c, path, status=2), "a mount without a cache")
    with mounted(c, "dfc://fail", f"--cache-dir={cache}", env={"DFC_FAULTS": "cache.write=ENOSPC@3+"}
                 ) as path:
        said = warmup(c, path + "/set/large", status=6)
        check(f"set/large/{13 * MIB + 4321}': the disk cache has not taken it" in said, said)
        check_all(path)
    with mounted(c, "dfc://fail", f"--cache-dir={cache}", "--cache-size=16MiB", "--cache-free=0"
                 ) as path:  # more than fits: the last ones are there
        warmup(c, path + "/set/large", "--parallel=1")
        check_all(path)


def test_many_readers_under_pressure(c):
    """Programs that compare files at once, with little memory and a cache that is too small."""
    put_all(c, "many")
    cache, local = cache_of(c, "many"), cache_of(c, "many-local")
    for name, data in FILES.items():
        os.makedirs(os.path.dirname(os.path.join(local, name)), exist_ok=True)
        with open(os.path.join(local, name), "wb") as f:
            f.write(data)
    with mounted(c, "dfc://many", f"--cache-dir={cache}", "--cache-size=16MiB",
                 "--buffer-size=8MiB") as path:
        for _ in range(3):
            readers = [subprocess.Popen(["diff", "-r", local, path]) for _ in range(4)]
            equal([r.wait() for r in readers], [0] * 4, "readers")


def test_sanitizers_found_nothing(c):
    del c
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(targets=3)
