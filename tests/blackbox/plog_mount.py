#!/usr/bin/env python3
"""A mounted bucket of plogs: processes of two mounts write files at once, and every byte is checked.
Kills of a writer and of the mount, names, attributes, objects that are no plogs."""

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys

from lib import check, equal, main, wait_for
from mount_bucket import fails, read, tree
from mount_lib import (clean, has_ended, kill_all, mount, mounted, mounts, needs_fuse, said_by_sanitizers, server,
                       supervisor, umount)
from mount_user import place_of_a_user

RECORD, RECORDS, RANKS = 4701, 24, 4
SMALL = "--segment-size=64KiB"
LAST_MS = (2**63 - 1) // 10**6  # of a time
# Reads lines from standard input: "OFFSET SIZE BYTE" writes, "sync" and "close" answer "done".
WRITER = """
import os, sys
f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o644)
for line in sys.stdin:
    words = line.split()
    if words[0] == "sync":
        os.fsync(f)
    elif words[0] == "close":
        os.close(f)
    else:
        at, size, byte = map(int, words)
        data = bytes([byte]) * size
        while data:
            n = os.pwrite(f, data, at)
            at, data = at + n, data[n:]
        continue
    print("done", flush=True)
"""


class Writer:
    """A process that has the file open."""

    def __init__(self, path):
        self.process = subprocess.Popen([sys.executable, "-c", WRITER, path], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)

    def write(self, offset, size, value):
        self.process.stdin.write(f"{offset} {size} {value}\n")

    def ask(self, word):
        self.process.stdin.write(word + "\n")

    def answer(self):
        equal(self.process.stdout.readline(), "done\n", "what the writer says")

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        equal(self.process.wait(), 0, "the writer's exit code")


def together(writers, word):
    for w in writers:
        w.ask(word)
    for w in writers:
        w.answer()


def two_mounts(c, bucket, *flags):
    return [mount(c, f"dfc://{bucket}", *flags, noun="plog", name=name) for name in ("one", "two")]


def byte(rank, index):
    return 1 + (rank * 59 + index * 7) % 255


PATTERNS = {
    "strided": lambda rank, index: ("strided", (index * RANKS + rank) * RECORD),
    "segmented": lambda rank, index: ("segmented", (rank * RECORDS + index) * RECORD),
    "own": lambda rank, index: (f"own-{rank}", index * RECORD),
}


def wanted(pattern):
    files = {}
    for rank in range(RANKS):
        for index in range(RECORDS):
            name, at = PATTERNS[pattern](rank, index)
            data = files.setdefault(name, bytearray())
            data.extend(bytes(max(0, at + RECORD - len(data))))
            data[at:at + RECORD] = bytes([byte(rank, index)]) * RECORD
    return files


def test_processes_write_one_file(c):
    c.create("n1")
    paths = two_mounts(c, "n1", SMALL)
    for pattern, place in PATTERNS.items():
        writers = [Writer(os.path.join(paths[rank % 2], place(rank, 0)[0])) for rank in range(RANKS)]
        for index in range(RECORDS):
            for rank, w in enumerate(writers):
                w.write(place(rank, index)[1], RECORD, byte(rank, index))
        together(writers, "sync")
        files = wanted(pattern)
        for name, data in files.items():
            for path in paths:
                check(read(os.path.join(path, name)) == data, f"{name} after the sync")
        together(writers, "close")
        for w in writers:
            w.end()
        for name, data in files.items():
            for path in paths:
                check(read(os.path.join(path, name)) == data, f"{name} after the close")
            shown = json.loads(c.dfcctl("plog", "stat", f"dfc://n1/{name}", "-o", "json").stdout)
            equal((shown["size"], shown["sessions"]), (len(data), 0), f"plog stat of {name}")
    for path in paths:
        umount(c, path)


def test_later_writes_win(c):
    c.create("over")
    rng, room = random.Random(24), 3000
    paths = two_mounts(c, "over")
    writers = [Writer(os.path.join(paths[rank % 2], "f")) for rank in range(RANKS)]
    plain, size = bytearray(room), 0
    for turn in range(8):
        may = [set() for _ in range(room)]
        for rank, w in enumerate(writers):
            at = rng.randrange(room - 1)
            length, value = rng.randrange(1, room - at), 1 + (turn * RANKS + rank) % 255
            w.write(at, length, value)
            for i in range(at, at + length):
                may[i].add(value)
            size = max(size, at + length)
        together(writers, "sync")
        seen = [read(path + "/f") for path in paths]
        equal(seen[0], seen[1], f"what the mounts show in turn {turn}")
        equal(len(seen[0]), size, "the size")
        for at, value in enumerate(seen[0]):
            check(value in (may[at] or {plain[at]}), f"byte {at} of turn {turn} is {value}")
        plain[:size] = seen[0]
    together(writers, "close")
    for w in writers:
        w.end()
    for path in paths:
        equal(read(path + "/f"), plain[:size], "the bytes after the close")
        umount(c, path)


def test_what_fsync_said_outlives_kills(c):
    c.create("kills")
    path = mount(c, "dfc://kills", SMALL, noun="plog")
    victim = Writer(path + "/f")
    victim.write(0, 300000, 7)
    together([victim], "sync")
    victim.write(300000, 100, 8)
    victim.process.send_signal(signal.SIGKILL)
    victim.process.wait()
    seen = read(path + "/f")
    equal((seen[:300000], seen[300000:] in (b"", bytes([8]) * 100)), (bytes([7]) * 300000, True), "after the writer")
    other = Writer(path + "/g")
    other.write(0, 200000, 9)
    together([other], "sync")
    other.write(0, 100, 1)
    kill_all(path)
    clean()
    other.process.kill()
    other.process.wait()
    with mounted(c, "dfc://kills", noun="plog") as again:
        seen = read(again + "/g")
        equal((len(seen), set(seen[100:])), (200000, {9}), "after the mount")
        done = c.dfcctl("plog", "recover", "dfc://kills/g", "--timeout=1s")
        equal(done.returncode, 0, done.stderr)
        equal(read(again + "/g"), seen, "after the recovery")


def test_a_mount_ends_when_its_process_dies(c):
    path = mount(c, "dfc://kills", noun="plog")
    pids = supervisor(path), server(path)
    with open(path + "/h", "wb", buffering=0) as f:
        f.write(b"not synced")
        os.kill(pids[1], signal.SIGKILL)
        wait_for(lambda: all(map(has_ended, pids)), "the processes of the mount to end")
        try:
            os.fsync(f.fileno())
            raise AssertionError("a sync of what is lost is acknowledged")
        except OSError as e:
            check(e.errno in (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO), f"fsync: {e}")
        try:
            f.close()
        except OSError:
            pass
    clean()
    equal(mounts(path), [], "mounts")


def test_an_idle_writer_is_alive(c):
    with mounted(c, "dfc://kills", "--refresh=200ms", noun="plog") as path:
        w = Writer(path + "/idle")
        w.write(0, 10, 1)
        together([w], "sync")
        equal(c.dfcctl("plog", "recover", "dfc://kills/idle", "--timeout=2s").returncode, 6, "recover")
        together([w], "close")
        w.end()


def test_a_mount_comes_and_goes(c):
    c.create("again")
    read_end, write_end = os.pipe()
    for i in range(8):
        path = mount(c, "dfc://again", noun="plog", pass_fds=(write_end,))
        with open(path + "/o", "wb") as f:
            f.write(b"%d" % i)
        equal(read(path + "/o"), b"%d" % i, f"round {i}")
        umount(c, path)
    path = mount(c, "dfc://again", noun="plog", pass_fds=(write_end,))
    os.close(write_end)
    equal(os.read(read_end, 1), b"", "the mount holds a descriptor of its caller")
    os.close(read_end)
    equal(read(path + "/o"), b"7", "what was written last")
    with open(path + "/o", "rb"):
        check("in use" in c.dfcctl("plog", "umount", path).stderr, "a mount in use")
    equal(c.dfcctl("plog", "umount", path).returncode, 0, "umount")
    mount(c, "dfc://absent", noun="plog", status=3)
    mount(c, "again", noun="plog", status=2)


def test_names(c):
    c.create("names")
    with mounted(c, "dfc://names", "--attr-ttl=0", noun="plog") as path:
        os.mkdir(path + "/d")
        fails(errno.EEXIST, os.mkdir, path + "/d")
        for name in ("a", "b"):
            with open(f"{path}/d/{name}", "wb") as f:
                f.write(name.encode())
        fails(errno.ENOTEMPTY, os.rmdir, path + "/d")
        with open(path + "/d/a", "r+b", buffering=0) as f:  # a writer goes on under the new name
            f.write(b"A")
            os.rename(path + "/d/a", path + "/d/b")
            f.write(b"B")
            os.fsync(f.fileno())
            equal(read(path + "/d/b"), b"AB", "a rename of an open file")
        equal(tree(path), {"d": None, "d/b": b"AB"}, "all names")
        equal(len(c.names("names", prefix=".dfc-plog/", internal="true")) > 0, True, "a container")
        fails(errno.EXDEV, os.rename, path + "/d", path + "/e")
        fails(errno.EPERM, os.link, path + "/d/b", path + "/l")
        fails(errno.EPERM, os.symlink, "b", path + "/l")
        fails(errno.EPERM, os.mkdir, path + "/.dfc-plog")
        fails(errno.EEXIST, os.open, path + "/d/b", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        f = os.open(path + "/d/b", os.O_RDWR)
        os.write(f, b"gone")
        os.unlink(path + "/d/b")
        fails(errno.ESTALE, os.fsync, f)
        fails(errno.ESTALE, os.write, f, b"x")
        os.close(f)
        equal(os.listdir(path + "/d"), [], "the directory stays")
        os.rmdir(path + "/d")
        fails(errno.ENOENT, os.unlink, path + "/d/b")
    left = c.names("names", internal="true")
    check(left != [] and all(n.startswith(".dfc-plog/") for n in left), f"left of what a rename replaced: {left}")
    equal(c.dfcctl("plog", "gc", "names", "--grace", "0s").returncode, 0, "plog gc")
    equal(c.names("names", internal="true"), [], "objects that are left")


def test_another_mount_removes_and_replaces(c):
    c.create("other")
    one, two = two_mounts(c, "other", "--attr-ttl=0", "--entry-ttl=0")
    f = os.open(one + "/f", os.O_RDWR | os.O_CREAT)
    os.write(f, b"old")
    os.fsync(f)
    equal(read(two + "/f"), b"old", "the other mount reads")
    reader = os.open(two + "/f", os.O_RDONLY)
    equal(os.read(reader, 10), b"old", "a reader")
    os.write(f, b" more")
    os.fsync(f)
    equal(os.stat(two + "/f").st_size, 8, "the size, as the other mount has it")
    equal(os.pread(reader, 10, 0), b"old more", "a reader looks again after that")
    os.unlink(two + "/f")
    os.write(f, b"lost")
    fails(errno.ESTALE, os.fsync, f)
    with open(two + "/f", "wb") as g:
        g.write(b"new")
    fails(errno.ESTALE, os.write, f, b"lost")
    os.close(f)
    os.close(reader)
    equal(read(one + "/f"), b"new", "the new file")
    f = os.open(one + "/f", os.O_WRONLY)
    os.close(os.dup(f))  # the writer is closed, and the descriptor is not
    os.unlink(two + "/f")
    with open(two + "/f", "wb") as g:
        g.write(b"newer")
    fails(errno.ESTALE, os.ftruncate, f, 0)
    os.close(f)
    equal(read(two + "/f"), b"newer", "a file that another descriptor cannot cut")
    for path in (one, two):
        umount(c, path)


def test_a_writer_does_not_hide_what_others_sync(c):
    c.create("seen")
    one, two = two_mounts(c, "seen", "--attr-ttl=0", "--entry-ttl=0")
    f = os.open(one + "/f", os.O_RDWR | os.O_CREAT)
    os.write(f, b"one")
    os.fsync(f)
    equal(os.pread(f, 10, 0), b"one", "what the writer has seen")
    for text in (b" two", b" 2nd", b" 3rd"):
        with open(two + "/f", "ab") as g:
            g.write(text)
        if text == b" two":
            equal(read(one + "/f"), b"one two", "a reader that opens the file later")
        elif text == b" 2nd":
            os.fsync(f)
            equal(os.pread(f, 100, 0), b"one two 2nd", "after an fsync")
        else:
            equal(os.stat(one + "/f").st_size, 15, "the size")
            equal(os.pread(f, 100, 0), b"one two 2nd 3rd", "after a look at the attributes")
    os.close(f)
    for path in (one, two):
        umount(c, path)


def test_a_close_tells_of_lost_bytes(c):
    c.create("lost")
    one, two = two_mounts(c, "lost", "--attr-ttl=0", "--entry-ttl=0")
    files = [os.open(one + "/f", os.O_RDWR | os.O_CREAT) for _ in range(2)]
    os.write(files[0], b"lost")
    with open(two + "/g", "wb") as g:
        g.write(b"new")
    os.rename(two + "/g", two + "/f")
    equal(os.stat(one + "/f").st_size, 3, "the new file")
    for f in files:
        fails(errno.ESTALE, os.pread, f, 10, 0)
        fails(errno.ESTALE, os.close, f)
    f = os.open(one + "/f", os.O_RDWR)
    os.write(f, b"x")
    os.unlink(one + "/f")  # by its own mount: nothing is lost
    os.close(f)
    for path in (one, two):
        umount(c, path)


def fill(c, bucket, size):
    """Until no target has room for one byte more."""
    while size > 0:
        for count in range(24):
            reply = c.object("PUT", bucket, f"{size}-{count}", b"1" * size)
            check(reply.status == 200 or reply.json()["code"] == "quota_exceeded", reply)
        size //= 2


def test_a_full_store(c):
    """What cannot be stored can be removed, and a call that failed leaves no writer."""
    c.create("full", quota_bytes="1MiB")
    with mounted(c, "dfc://full", noun="plog") as path:
        for name in ("a", "b", "c", "d"):
            with open(f"{path}/{name}", "wb") as f:
                f.write(name.encode())
        fill(c, "full", 1 << 20)
        fds = [os.open(f"{path}/{name}", os.O_WRONLY) for name in ("a", "b")]
        for f in fds:
            os.write(f, bytes(100000))
        fails(errno.EDQUOT, os.fsync, fds[0])
        fails(errno.EDQUOT, os.truncate, path + "/c", 5)
        fails(errno.EDQUOT, os.truncate, path + "/d", 1 << 30)
        os.rename(path + "/c", path + "/b")
        equal(read(path + "/b"), b"c", "a file renamed over one that could not be stored")
        os.unlink(path + "/a")
        for f in fds:
            os.close(f)
        check("a" not in os.listdir(path), "names")
        equal(read(path + "/d"), b"d", "a file whose truncation failed")


def test_attributes(c):
    c.create("attr")
    with mounted(c, "dfc://attr", noun="plog") as path:
        f = os.open(path + "/f", os.O_WRONLY | os.O_CREAT, 0o640)
        os.write(f, b"12345")
        equal(os.fstat(f).st_size, 5, "the size of what is not synced")
        os.utime(f, (1000, 1000))
        os.close(f)
        st = os.stat(path + "/f")
        equal((st.st_mode & 0o7777, st.st_uid, st.st_size, st.st_mtime), (0o640, os.getuid(), 5, 1000), "attributes")
        for given, kept in ((-5, 0), (1 << 40, LAST_MS), (1000, 1000000)):  # a head has no other times
            os.utime(path + "/f", (given, given))
            equal(os.stat(path + "/f").st_mtime_ns // 10**6, kept, f"the time {given}")
        os.chmod(path + "/f", 0o600)
        os.chown(path + "/f", 12, 34)
        os.truncate(path + "/f", 9)
    with mounted(c, "dfc://attr", "--read-only", noun="plog") as path:
        st = os.stat(path + "/f")
        equal((st.st_mode & 0o7777, st.st_uid, st.st_gid, st.st_size), (0o600, 12, 34, 9), "attributes later")
        equal(read(path + "/f"), b"12345\0\0\0\0", "the bytes")
        fails(errno.EROFS, os.truncate, path + "/f", 0)


def test_other_objects(c):
    c.create("flat")
    large = random.Random(3).randbytes((3 << 20) + 5)
    for name, data in (("small", b"bytes"), ("large", large), ("empty", b"")):
        c.put("flat", name, data).expect(200)
    with mounted(c, "dfc://flat", noun="plog") as path:
        equal(tree(path), {"small": b"bytes", "large": large, "empty": b""}, "objects")
        for name in ("small", "large"):
            fails(errno.EOPNOTSUPP, os.open, f"{path}/{name}", os.O_WRONLY)
            with open(f"{path}/{name}", "wb") as f:
                f.write(b"plog")
            equal(read(f"{path}/{name}"), b"plog", "the plog")
        os.rename(path + "/small", path + "/empty")
        os.unlink(path + "/large")
        equal(tree(path), {"empty": b"plog"}, "what is left")
        os.unlink(path + "/empty")
    equal(c.names("flat", internal="true"), [], "objects that are left")


def test_a_plog_of_a_later_release(c):
    c.create("later")
    c.put("later", "f", b'{"plog": 2}').expect(200)
    with mounted(c, "dfc://later", noun="plog") as path:
        fails(errno.EOPNOTSUPP, os.stat, path + "/f")
        fails(errno.EOPNOTSUPP, os.unlink, path + "/f")
        equal(os.listdir(path), ["f"], "names")


def test_programs_of_every_day(c):
    c.create("day")
    source = os.path.join(c.dir, "source")
    os.makedirs(source + "/sub")
    for name, size in (("one", 100), ("sub/two", 300000), ("sub/empty", 0)):
        with open(os.path.join(source, name), "wb") as f:
            f.write(random.Random(size).randbytes(size))
        os.utime(os.path.join(source, name), (1e9, 1e9))
    with mounted(c, "dfc://day", SMALL, noun="plog") as path:
        for text in (f"cp -rp {source} copy", f"tar cf a.tar -C {source} . && mkdir x && tar xf a.tar -C x",
                     f"rsync -a {source}/ r/", "echo a > app; echo b >> app; test \"$(cat app)\" = \"$(printf 'a\\nb')\"",
                     f"cmp {source}/sub/two copy/sub/two", f"diff -r {source} x && diff -r {source} r",
                     "mv copy/one moved && rm -r x r a.tar copy && test \"$(echo *)\" = 'app moved'"):
            done = subprocess.run(["bash", "-c", text], cwd=path, capture_output=True, text=True, timeout=120, check=False)
            equal(done.returncode, 0, f"{text}: {done.stdout}{done.stderr}")
        equal(os.stat(path + "/moved").st_mtime, 1e9, "a time that cp has kept")


class Plain:
    """A file as it must be."""

    def __init__(self):
        self.data = bytearray()

    def write(self, at, data):
        self.data.extend(bytes(max(0, at + len(data) - len(self.data))))
        self.data[at:at + len(data)] = data

    def cut(self, size):
        del self.data[size:]
        self.data.extend(bytes(size - len(self.data)))


def step(rng, fds, path, plain):
    """One random call, compared with the plain file."""
    fd, at = rng.choice(fds), rng.randrange(200000)
    data = rng.randbytes(rng.choice((1, 100, 4096, 70000)))
    call = rng.choice(("write", "write", "write", "read", "read", "cut", "stat", "sync", "append", "reopen"))
    if call == "write":
        equal(os.pwrite(fd, data, at), len(data), "bytes written")
        plain.write(at, data)
    elif call == "append":
        with open(path, "ab", buffering=0) as f:
            f.write(data[:500])
        plain.write(len(plain.data), data[:500])
    elif call == "read":
        check(os.pread(fd, 100000, at) == plain.data[at:at + 100000], f"a read at {at}")
    elif call == "cut":
        os.ftruncate(fd, at)
        plain.cut(at)
    elif call == "stat":
        equal(os.fstat(fd).st_size, len(plain.data), "the size")
    elif call == "sync":
        os.fsync(fd)
    else:
        check(read(path) == plain.data, "the whole file")


def test_random_calls(c):
    """As fsx does: two descriptors of a file against a plain array."""
    c.create("random")
    with mounted(c, "dfc://random", SMALL, noun="plog") as path:
        for seed in (1, 2):
            rng, plain, name = random.Random(seed), Plain(), f"{path}/f{seed}"
            fds = [os.open(name, os.O_RDWR | os.O_CREAT) for _ in range(2)]
            for _ in range(150):
                step(rng, fds, name, plain)
            for fd in fds:
                os.close(fd)
            check(read(name) == plain.data, f"the file of seed {seed}")
            check(c.dfcctl("plog", "check", f"dfc://random/f{seed}").stdout.startswith("OK"), "plog check")


JOBS = """
[global]
directory={path}
size=8m
bsrange=1k-200k
verify=crc32c
verify_fatal=1
randseed=7
fallocate=none
[sequential]
rw=write
[random]
rw=randwrite
"""


def test_fio_finds_what_it_wrote(c):
    check(shutil.which("fio") is not None, "no 'fio': install the packages of deploy/local/packages.sh")
    c.create("fio")
    jobs = os.path.join(c.dir, "fio.jobs")
    for verify in ("--do_verify=0", "--verify_only"):
        with mounted(c, "dfc://fio", noun="plog") as path:
            with open(jobs, "w", encoding="utf-8") as f:
                f.write(JOBS.format(path=path))
            done = subprocess.run(["fio", verify, jobs], cwd=c.dir, capture_output=True, text=True, timeout=240, check=False)
            equal(done.returncode, 0, done.stdout[-1500:] + done.stderr[-1500:])


def test_a_user_mounts(c):
    c.create("user")
    with place_of_a_user(c) as (path, call):
        for words in (("./dfcctl", "plog", "mount", "dfc://user", path), ("sh", "-c", f"echo user > {path}/f"),
                      ("cat", path + "/f"), ("./dfcctl", "plog", "umount", path)):
            equal(call(*words), "user\n" if words[0] == "cat" else "", f"{words}")
        equal(mounts(path), [], "mounts")


def test_sanitizers_found_nothing(_):
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main()
