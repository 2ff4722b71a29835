#!/usr/bin/env python3
"""A volume on SQLite: what a POSIX file system does, compared with the file system of the test
where that is the oracle; two mounts of one volume; kills of the process that serves."""

import contextlib
import ctypes
import errno
import os
import random
import shutil
import sqlite3
import subprocess
import time

from lib import check, equal, main, wait_for
from mount_bucket import fails, read
from mount_lib import (AT_FDCWD, LIBC, clean, directory_of, fallocate, kill_all, libc, mount, mounted, needs_fuse,
                       renameat2, said_by_sanitizers)
from mount_write import shell, write

MIB = 1 << 20
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16  # of fallocate(2)
NOREPLACE, EXCHANGE = 1, 2  # of renameat2(2)
FRESH = ("--attr-ttl=0", "--entry-ttl=0")


def url_of(c, name):
    return "sqlite3://" + os.path.join(os.path.realpath(c.dir), name + ".db")


def made(c, name, trash_days=0):
    """A volume and its bucket."""
    done = c.dfcctl("fs", "format", url_of(c, name), name, "--bucket", "dfc://" + name,
                    f"--trash-days={trash_days}")
    equal(done.returncode, 0, done.stderr)
    return url_of(c, name)


def test_a_volume_is_made_once(c):
    url = made(c, "once")
    equal(c.names("once"), ["once/format.json"], "objects of a new volume")
    for words, says in (((url, "other", "--bucket=dfc://o2"), "already"),
                        ((url_of(c, "x"), "x", "--bucket=dfc://once"), "has objects"),
                        ((url_of(c, "x"), "a/b", "--bucket=dfc://o2"), "letters"),
                        ((url_of(c, "x"), "x", "--bucket=dfc://o2/p"), "not dfc://BUCKET"),
                        ((url_of(c, "x"), "x"), "--bucket"),
                        (("file:///x", "x", "--bucket=dfc://o2"), "must begin")):
        done = c.dfcctl("fs", "format", *words)
        check(done.returncode != 0 and says in done.stderr, f"{words}: {done.stderr}")
    done = c.dfcctl("fs", "mount", url_of(c, "none"), directory_of(c, "none"))
    equal(done.returncode, 3, done.stderr)
    check(not os.path.exists(os.path.join(c.dir, "none.db")), "a mount made a database")


def test_files_stay_over_mounts(c):
    data = random.Random(1).randbytes(13 * MIB + 77)
    url = made(c, "stay")
    with mounted(c, url) as path:
        os.makedirs(path + "/d/e")
        write(path + "/d/e/large", data)
        write(path + "/small", b"1")
        write(path + "/empty", b"")
        os.symlink("d/e", path + "/link")
        os.link(path + "/small", path + "/d/second")
        os.chown(path + "/small", 12, 34)
        os.chmod(path + "/small", 0o4751)
        os.utime(path + "/small", ns=(5, 123456789012345678))
        os.setxattr(path + "/small", "user.a", b"value")
    with mounted(c, url) as path:
        check(read(path + "/link/large") == data, "other bytes")
        equal(sorted(os.listdir(path)), ["d", "empty", "link", "small"], "names")
        st = os.stat(path + "/d/second")
        equal((st.st_ino, st.st_nlink, st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, st.st_size),
              (os.stat(path + "/small").st_ino, 2, 0o104751, 12, 34, 123456789012345678, 1), "attributes")
        equal(os.getxattr(path + "/small", "user.a"), b"value", "an extended attribute")
        equal(os.stat(path + "/empty").st_size, 0, "size")


def test_a_volume_that_may_only_be_read(c):
    url = made(c, "only-read")
    with mounted(c, url) as path:
        write(path + "/f", b"bytes")
    with mounted(c, url, "--read-only") as path:
        equal(read(path + "/f"), b"bytes", "bytes")
        fails(errno.EROFS, write, path + "/new", b"")
        fails(errno.EROFS, write, path + "/f", b"x")
        fails(errno.EROFS, os.unlink, path + "/f")
        fails(errno.EROFS, os.mkdir, path + "/d")
    done = c.dfcctl("fs", "mount", url, directory_of(c, "m"), "--part-size=8MiB")
    equal(done.returncode, 2, done.stderr)
    check("--part-size is not for volumes" in done.stderr, done.stderr)


def test_a_handle_sees_what_it_wrote(c):
    with mounted(c, made(c, "sees")) as path, open(path + "/f", "w+b", buffering=0) as f:
        f.write(b"abc")
        equal(os.fstat(f.fileno()).st_size, 3, "size")
        f.seek(10)
        f.write(b"xyz")
        equal(os.pread(f.fileno(), 100, 0), b"abc" + bytes(7) + b"xyz", "bytes")
        os.ftruncate(f.fileno(), 2)
        os.ftruncate(f.fileno(), 5)
        equal(os.pread(f.fileno(), 100, 0), b"ab\0\0\0", "bytes after truncations")
        os.unlink(path + "/f")
        f.write(b"!")
        equal(os.pread(f.fileno(), 100, 0), b"ab\0\0\0" + bytes(8) + b"!", "bytes of an unlinked file")
        equal(os.fstat(f.fileno()).st_nlink, 0, "links")
        equal(os.listdir(path), [], "names")


def outcome(call):
    try:
        result = call()
    except OSError as e:
        return errno.errorcode[e.errno]
    return result if isinstance(result, (bytes, list, int, str)) else None


def steps(rng, root):
    """One random call; the same for the same numbers."""
    def place():
        return "/".join([root] + [rng.choice("abc") for _ in range(rng.randrange(1, 4))])

    def put(path, at, size, byte):
        fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
        try:
            os.pwrite(fd, bytes([byte]) * size, at)
        finally:
            os.close(fd)

    def allocate(path, mode):
        fd = os.open(path, os.O_RDWR)
        try:
            fallocate(fd, mode, at, size)
        finally:
            os.close(fd)

    sizes = []  # of the file, before the first try of an append: EIO leaves it in doubt

    def append(path):
        with open(path, "ab", buffering=0) as f:
            sizes.append(os.fstat(f.fileno()).st_size)
            f.truncate(sizes[0])
            f.write(bytes([byte]) * (size % 5000))

    def tree():
        return sorted((os.path.relpath(at, root), tuple(sorted(folders)), tuple(sorted(
            (name, os.lstat(os.path.join(at, name)).st_nlink) for name in files)))
            for at, folders, files in os.walk(root))

    def bytes_of(path):
        with open(path, "rb") as f:
            return f.read()

    one, two, at, size, byte = place(), place(), rng.randrange(40000), rng.randrange(1, 60000), rng.randrange(256)
    return rng.choice([
        lambda: allocate(one, 0), lambda: allocate(one, KEEP_SIZE | PUNCH_HOLE),
        lambda: allocate(one, ZERO_RANGE), lambda: append(one), lambda: renameat2(one, two, EXCHANGE),
        lambda: renameat2(one, two, NOREPLACE), lambda: os.chmod(one, byte << 3),
        lambda: os.stat(one).st_mode,
        lambda: os.mkdir(one), lambda: os.mkdir(one), lambda: os.rmdir(one), lambda: os.unlink(one),
        lambda: os.rename(one, two), lambda: os.rename(one, two), lambda: os.link(one, two),
        lambda: os.symlink("x", one), lambda: os.readlink(one), lambda: put(one, at, size, byte),
        lambda: put(one, at, size, byte), lambda: put(one, at, size, byte), lambda: os.truncate(one, at),
        lambda: bytes_of(one), lambda: bytes_of(one), lambda: sorted(os.listdir(one)),
        lambda: os.stat(one).st_size if not os.path.isdir(one) else 0, lambda: str(tree())])


def compare_random_calls(c, paths, seed, calls):
    """The mounts make them in turns."""
    beside = directory_of(c, f"oracle-{seed}")
    os.mkdir(f"{paths[0]}/{seed}")
    ours, theirs = random.Random(seed), random.Random(seed)
    for number in range(calls):
        got = outcome(steps(ours, f"{paths[number % len(paths)]}/{seed}"))
        want = outcome(steps(theirs, beside))
        check(got == want, f"seed {seed}, call {number}: {str(got)[:200]}, and {str(want)[:200]}")


def test_random_calls_as_on_another_file_system(c):
    url = made(c, "random")
    for seed in (1, 2, 3):
        with mounted(c, url) as path:
            compare_random_calls(c, [path], seed, 400)


def test_random_calls_of_two_mounts_in_turns(c):
    url = made(c, "turns")
    with mounted(c, url, *FRESH) as one, mounted(c, url, *FRESH, name="two") as two:
        for seed in (4, 5):
            compare_random_calls(c, [one, two], seed, 400)


class Handle(ctypes.Structure):
    """struct file_handle"""
    _fields_ = [("size", ctypes.c_uint), ("type", ctypes.c_int), ("bytes", ctypes.c_ubyte * 128)]


def open_by_handle(path, handle):
    directory = os.open(path, os.O_RDONLY)
    try:
        fd = LIBC.open_by_handle_at(directory, ctypes.byref(handle), os.O_RDONLY)
        if fd < 0:
            raise OSError(ctypes.get_errno(), path)
        with open(fd, "rb") as f:
            return f.read()
    finally:
        os.close(directory)


def test_handles_of_files_stay_valid(c):
    url, handle, mount_id = made(c, "handles"), Handle(size=128), ctypes.c_int()
    with mounted(c, url) as path:
        os.mkdir(path + "/d")
        write(path + "/d/f", b"bytes")
        libc("name_to_handle_at", AT_FDCWD, os.fsencode(path + "/d/f"), ctypes.byref(handle),
             ctypes.byref(mount_id), 0)
    with mounted(c, url) as path:
        equal(open_by_handle(path, handle), b"bytes", "bytes")
        os.rename(path + "/d/f", path + "/g")
    with mounted(c, url) as path:
        equal(open_by_handle(path, handle), b"bytes", "bytes of a file that was renamed")
        os.unlink(path + "/g")
    with mounted(c, url) as path:
        fails(errno.ESTALE, open_by_handle, path, handle)


def test_two_mounts_are_one_file_system(c):
    url = made(c, "two")
    with mounted(c, url, *FRESH) as one, mounted(c, url, *FRESH, name="two") as two:
        for number in range(20):
            a, b = (one, two) if number % 2 == 0 else (two, one)
            data = random.Random(number).randbytes(200_000)
            write(f"{a}/f", data)
            check(read(f"{b}/f") == data, f"bytes of the other mount, round {number}")
            os.rename(f"{b}/f", f"{b}/g")
            fails(errno.ENOENT, os.stat, f"{a}/f")
            os.unlink(f"{a}/g")
        held = os.open(one + "/held", os.O_CREAT | os.O_RDWR)
        os.write(held, b"kept")
        os.fsync(held)
        os.unlink(two + "/held")
        equal(os.pread(held, 10, 0), b"kept", "bytes of a file that the other mount unlinked")
        os.close(held)
        names = [f"n{i}" for i in range(40)]
        makers = [subprocess.Popen(["bash", "-c", 'for n; do mkdir "$n" 2>/dev/null && echo "$n"; done',
                                    "-", *names], cwd=path, stdout=subprocess.PIPE, text=True)
                  for path in (one, two)]
        made_by = [m.communicate(timeout=60)[0].split() for m in makers]
        equal(sorted(made_by[0] + made_by[1]), sorted(names), "each directory is made by one mount")


def test_an_open_sees_the_length_of_the_last_close(c):
    """Also while the kernel keeps attributes: the program asks for none, which would renew them."""
    url = made(c, "length")
    kept = "--attr-ttl=1h", "--entry-ttl=1h"
    with mounted(c, url, *kept) as one, mounted(c, url, name="two") as two:
        for size in range(1, 20):
            with open(f"{two}/f", "ab") as f:
                f.write(b"x")
            fd = os.open(f"{one}/f", os.O_RDONLY)
            try:
                equal(os.pread(fd, 100, 0), b"x" * size, "bytes")
            finally:
                os.close(fd)


def test_a_directory_read_from_its_middle(c):
    """The kernel keeps attributes of before neither after a change of this mount nor, longer than
    --attr-ttl, after one of another."""
    url = made(c, "middle")
    with mounted(c, url) as one, mounted(c, url, name="two") as two:
        for name in "abcd":
            write(f"{one}/{name}", b"")
        fd = os.open(one, os.O_RDONLY)
        try:
            equal(len(os.listdir(fd)), 4, "names")
            for by, pause_s in (one, 0), (two, 1.2):
                os.lseek(fd, 0, os.SEEK_SET)
                os.listdir(fd)
                mode = 0o600 if by == one else 0o640
                os.chmod(by + "/c", mode)
                time.sleep(pause_s)
                os.stat(one + "/d")  # so the kernel asks for attributes with names
                os.lseek(fd, 3, os.SEEK_SET)
                equal(sorted(os.listdir(fd)), ["b", "c", "d"], "names behind the first")
                equal(os.stat(one + "/c").st_mode & 0o7777, mode, "the new mode")
        finally:
            os.close(fd)


APPENDER = """
import os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
for i in range(int(sys.argv[3])):
    os.write(fd, (sys.argv[2] + " " + str(i) + " " + "x" * (37 * i % 5000) + chr(10)).encode())
    if i % 7 == 0:
        os.fsync(fd)
"""


def test_two_mounts_append_to_one_file(c):
    url, lines = made(c, "append"), 300
    with mounted(c, url) as one, mounted(c, url, name="two") as two:
        write(one + "/log", b"begin\n")
        writers = [subprocess.Popen(["/usr/bin/python3", "-c", APPENDER, path + "/log", name, str(lines)])
                   for path, name in ((one, "a"), (two, "b"), (two, "c"))]
        for w in writers:
            equal(w.wait(timeout=120), 0, "a writer")
        with open(one + "/log", "ab", buffering=0) as f:
            f.write(b"end\n")
            equal(os.fstat(f.fileno()).st_size, os.stat(one + "/log").st_size, "size with what is pending")
    with mounted(c, url) as path:
        got = read(path + "/log").decode().splitlines()
    equal((got[0], got[-1]), ("begin", "end"), "first and last line")
    for name in "abc":
        equal([line for line in got if line.startswith(name + " ")],
              [f"{name} {i} " + "x" * (37 * i % 5000) for i in range(lines)], f"lines of {name}")
    equal(len(got), 3 * lines + 2, "lines")


def test_programs_of_every_day(c):
    with mounted(c, made(c, "daily")) as path:
        os.mkdir(path + "/src")
        for i in range(50):
            write(f"{path}/src/f{i}", random.Random(i).randbytes(1000 * i))
        shell(path, "tar cf all.tar src && mkdir out && tar xf all.tar -C out && diff -r src out/src")
        shell(path, "cp -a src copy && diff -r src copy && rm -rf src && mv copy src && ls -lR > list")
        shell(path, "echo one > log; echo two >> log; sed -i s/one/1/ log; [ \"$(cat log)\" = $'1\\ntwo' ]")
        shell(path, "git init -q r && cd r && git config user.email a@b && git config user.name a && "
                    "cp -r ../out/src . && git add . && git commit -qm m && git gc -q && git fsck --strict")
        shell(path, "git clone -q --no-local r clone && git -C clone fsck --strict && diff -r -x .git r clone")
        shell(path, "python3 -c \"import sqlite3; d = sqlite3.connect('t.db'); d.execute('create table t(a)'); "
                    "[d.execute('insert into t values(?)', (i,)) for i in range(1000)]; d.commit(); "
                    "print(d.execute('pragma integrity_check').fetchone())\" | grep -q ok")


def test_what_was_synced_survives_kill_9(c):
    url = made(c, "killed")
    for number in range(3):
        path = mount(c, url)
        synced = random.Random(number).randbytes(5 * MIB + number)
        with open(f"{path}/synced{number}", "wb") as f:
            f.write(synced)
            f.flush()
            os.fsync(f.fileno())
            f.write(b"more")
        for name in range(30):
            os.mkdir(f"{path}/d{number}-{name}")
        kill_all(path)
        clean()
        with mounted(c, url, name=f"again{number}") as again:
            check(read(f"{again}/synced{number}")[:len(synced)] == synced, "synced bytes are lost")
            equal(len([n for n in os.listdir(again) if n.startswith(f"d{number}-")]), 30, "directories")


def test_a_synchronous_write_survives_kill_9(c):
    """No fork between the write and the kill: its end would flush the file."""
    url, ways = made(c, "osync"), {}
    for sync in ("O_SYNC", "O_DSYNC"):
        for more in ("", "O_APPEND", "O_DIRECT"):
            ways[f"{sync}-{more}"] = getattr(os, sync) | getattr(os, more, 0)
    for name, flags in ways.items():
        path = mount(c, url, name=name)
        fd = os.open(f"{path}/{name}", os.O_CREAT | os.O_WRONLY | flags)
        os.write(fd, b"one ")
        os.write(fd, b"two")
        kill_all(path)
        clean()
        with contextlib.suppress(OSError):
            os.close(fd)
    with mounted(c, url) as path:
        equal({name: read(f"{path}/{name}") for name in ways}, dict.fromkeys(ways, b"one two"), "bytes")


def test_the_store_is_away(c):
    with mounted(c, made(c, "away"), "--retries=1", "--idle-timeout=2s") as path:
        write(path + "/before", b"1" * 100_000)
        for node in ("t1", "t2"):
            c.kill(node, "-9")
        with open(path + "/new", "wb", buffering=0) as f:
            f.write(b"x" * 100)
            fails(errno.EIO, os.fsync, f.fileno())
            os.mkdir(path + "/names-need-no-store")
            for node in ("t1", "t2"):
                c.start(node)
            wait_for(lambda: outcome(lambda: os.fsync(f.fileno())) is None, "the store")
        equal(read(path + "/new"), b"x" * 100, "bytes")
        check(read(path + "/before") == b"1" * 100_000, "bytes from before")


def test_a_damaged_block_is_an_error(c):
    data = random.Random(7).randbytes(9 * MIB)
    log = os.path.join(c.dir, "damaged.log")
    with mounted(c, made(c, "damaged")) as path:
        write(path + "/f", data)
    second = [name for name in c.names("damaged") if "/b/" in name and
              c.get("damaged", name).body == data[4 * MIB:8 * MIB]]
    equal(len(second), 1, "objects of the second block")
    damaged = bytearray(data[4 * MIB:8 * MIB])
    damaged[MIB] ^= 1
    c.put("damaged", second[0], bytes(damaged)).expect(200)
    with mounted(c, url_of(c, "damaged"), "--log-file", log) as path:
        with open(path + "/f", "rb", buffering=0) as f:
            check(os.pread(f.fileno(), MIB // 2, 0) == data[:MIB // 2], "bytes before")
            fails(errno.EIO, os.pread, f.fileno(), 4096, 5 * MIB)
            check(os.pread(f.fileno(), MIB, 8 * MIB) == data[8 * MIB:], "bytes behind")
        with open(log, encoding="utf-8") as f:
            said = [line for line in f if "differ" in line]
        check(any(second[0] in line for line in said), f"the log has not {second[0]}: {said}")


def end_sessions(c, name):
    """As other clients do a minute after a mount was killed: sessions, their lanes and ranges."""
    with contextlib.closing(sqlite3.connect(os.path.join(c.dir, name + ".db"))) as database, database:
        database.execute("delete from kv where substr(k, 1, 1) in (x'45', x'49', x'54')")


def gc(c, name, *flags):
    done = c.dfcctl("fs", "gc", url_of(c, name), *flags)
    equal(done.returncode, 0, done.stderr)
    return done.stdout.splitlines()


def test_garbage_is_found_and_deleted(c):
    url = made(c, "garbage")
    with mounted(c, url) as path:
        write(path + "/kept", b"k" * 100_000)
    kept = [name for name in c.names("garbage") if "/b/" in name]
    path = mount(c, url, "--uploads=1")
    fd = os.open(path + "/lost", os.O_CREAT | os.O_WRONLY)
    os.write(fd, bytes(range(256)) * (5 * MIB // 256))  # one whole block, and a part
    wait_for(lambda: len(c.names("garbage")) > 2, "the first block")
    kill_all(path)  # no other program has run meanwhile: its fork would flush the file
    clean()
    with contextlib.suppress(OSError):
        os.close(fd)
    lost = [name for name in c.names("garbage") if "/b/" in name and name not in kept]
    equal(len(lost), 1, "objects that were lost")
    equal(gc(c, "garbage", "--grace=0s")[0], f"2 objects, {4 * MIB + 100_000} bytes: 0 are garbage, 0 bytes",
          "while the session is there")
    end_sessions(c, "garbage")
    check("0 are garbage" in gc(c, "garbage")[0], "both are young")
    equal([line for line in gc(c, "garbage", "--grace=0s") if line.startswith("garbage")],
          ["garbage " + name for name in lost], "garbage")
    equal(sorted(name for name in c.names("garbage") if "/b/" in name), sorted(kept + lost), "without --delete")
    gc(c, "garbage", "--grace=0s", "--delete")
    equal([name for name in c.names("garbage") if "/b/" in name], kept, "objects")
    with mounted(c, url) as path:
        equal(read(path + "/kept"), b"k" * 100_000, "bytes")


def fsck(c, name, code, *flags):
    done = c.dfcctl("fs", "fsck", url_of(c, name), *flags)
    equal(done.returncode, code, done.stdout + done.stderr)
    return done.stdout.splitlines()


def test_damage_is_found(c):
    with mounted(c, made(c, "fsck")) as path:
        os.mkdir(path + "/d")
        for name in ("a", "b", "d/c"):
            write(f"{path}/{name}", name.encode() * 100_000)
        inode = os.stat(path + "/b").st_ino
        equal(len(fsck(c, "fsck", 0)), 1, "lines, while it is mounted")
    equal(fsck(c, "fsck", 0, "--read", "--repair")[0],
          "5 inodes, 3 entries of slices, 3 objects: 0 findings are left", "a volume without damage")
    of_b = next(name for name in c.names("fsck") if "/b/" in name and c.get("fsck", name).body[:1] == b"b")
    c.put("fsck", of_b, b"x" * 100_000).expect(200)
    equal(len(fsck(c, "fsck", 0)), 1, "sizes are right")
    check(any(f"inode {inode}: the bytes" in line and of_b in line for line in fsck(c, "fsck", 6, "--read")),
          "other bytes")
    c.put("fsck", of_b, b"b").expect(200)
    check(f"inode {inode}: a block is missing, or has another size: {of_b}" in fsck(c, "fsck", 6), "size")
    c.object("DELETE", "fsck", of_b).expect(204)
    check(f"inode {inode}: a block is missing, or has another size: {of_b}" in fsck(c, "fsck", 6), "missing")
    with contextlib.closing(sqlite3.connect(os.path.join(c.dir, "fsck.db"))) as database, database:
        # The name of d, which leaves the root with two wrong counts, too.
        database.execute("delete from kv where k = ?", (b"D" + (1).to_bytes(8, "big") + b"d",))
    with mounted(c, url_of(c, "fsck")) as path:
        lines = fsck(c, "fsck", 6, "--repair")
        equal(sum(line.startswith("repaired: ") for line in lines), 3, lines)
        found = os.listdir(path + "/lost+found")
        equal(len(found), 1, "orphans")
        check(read(f"{path}/lost+found/{found[0]}/c") == b"d/c" * 100_000, "bytes of what was found")
        shutil.rmtree(path + "/lost+found")
        os.unlink(path + "/b")
    equal(len(fsck(c, "fsck", 0)), 1, "lines at the end")


def test_metadata_are_dumped_and_loaded(c):
    url, dump = made(c, "dumped"), os.path.join(c.dir, "dumped.jsonl")
    with mounted(c, url) as path:
        write(path + "/f", b"f" * 100_000)
        os.symlink("f", path + "/link")
        done = c.dfcctl("fs", "dump", url, dump)
        equal(done.returncode, 0, done.stderr)
        write(path + "/later", b"l" * 100_000)  # the dump does not know it
    done = c.dfcctl("fs", "load", url, dump)
    check(done.returncode != 0 and "already" in done.stderr, done.stderr)
    done = c.dfcctl("fs", "load", url_of(c, "loaded"), dump)
    equal(done.returncode, 0, done.stderr)
    with mounted(c, url_of(c, "loaded")) as path:
        equal(sorted(os.listdir(path)), ["f", "link"], "names")
        equal(read(path + "/link"), b"f" * 100_000, "bytes")
        write(path + "/new", b"n" * 100_000)  # under a number that no object has
        equal(read(path + "/new"), b"n" * 100_000, "new bytes")
    equal(len(fsck(c, "loaded", 0, "--read")), 1, "findings")


def test_room(c):
    with mounted(c, made(c, "room")) as path:
        write(path + "/f", bytes(10 * MIB))
        st = os.statvfs(path)
        used = (st.f_blocks - st.f_bfree) * st.f_frsize
        check(used == 10 * MIB, f"{used} bytes in use")
        equal(st.f_files - st.f_ffree, 2, "inodes in use")
        equal(shutil.disk_usage(path).used, used, "disk usage")


def test_limits(c):
    url = url_of(c, "limits")

    def config(*flags):
        return c.dfcctl("fs", "config", url, *flags).stdout

    done = c.dfcctl("fs", "format", url, "limits", "--bucket=dfc://limits", "--capacity=10MiB", "--inodes=4",
                    "--trash-days=0")
    equal(done.returncode, 0, done.stderr)
    with mounted(c, url) as path:
        write(path + "/f", bytes(8 * MIB))
        st = os.statvfs(path)
        equal((st.f_blocks * st.f_frsize, st.f_files), (10 * MIB, 4), "df")
        fails(errno.ENOSPC, write, path + "/g", bytes(4 * MIB))
        write(path + "/h", b"1")
        fails(errno.ENOSPC, os.mkdir, path + "/d")
        fd = os.open(path + "/f", os.O_RDWR)
        os.pwrite(fd, b"m" * 3 * MIB, 8 * MIB)
        os.ftruncate(fd, 7 * MIB)  # makes room, also where written bytes have none
        fails(errno.ENOSPC, os.fsync, fd)
        os.close(fd)
        equal(read(path + "/f"), bytes(7 * MIB), "a file that has grown by too much")
        check("capacity    20971520\ninodes      no limit" in config("--capacity=20MiB", "--inodes=0"), "config")
        write(path + "/g", bytes(4 * MIB))
        os.mkdir(path + "/d")
        config("--capacity=1MiB", "--inodes=1")
        fails(errno.ENOSPC, write, path + "/h", b"22")
        fails(errno.ENOSPC, os.mkdir, path + "/e")
        st = os.statvfs(path)
        equal((st.f_bfree, st.f_ffree), (0, 0), "nothing is free")
        config("--capacity=0")
        write(path + "/h", b"22")
        equal(read(path + "/h"), b"22", "bytes")
    check("capacity    no limit\ninodes      1\n" in config(), config())
    equal(len(fsck(c, "limits", 0, "--read")), 1, "lines of fsck")


def test_sanitizers_found_nothing(c):
    del c
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(targets=2)
