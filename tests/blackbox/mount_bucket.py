#!/usr/bin/env python3
"""A bucket as a read-only file system: its tree, its bytes, many readers, objects that are replaced
or deleted while they are open, a target that dies, a process that dies."""

import errno
import hashlib
import os
import random
import signal
import subprocess
import sys
import time

from frozen import frozen
from lib import BUILD, SANITIZED, Failed, check, equal, in_parallel, main, wait_for
from mount_lib import (directory_of, kill_all, mount, mounted, mounts, needs_fuse, said_by_sanitizers, server,
                       to_be_cleaned, umount, waits_for_fuse)

MANY = 1500 if SANITIZED else 5000  # names of one directory
MIB = 1 << 20
PREAD = 17 if os.uname().machine == "x86_64" else 67  # its number as a system call
LARGE = random.Random(3).randbytes(20 * MIB + 12345)
READER = """
import os, random, sys
r = random.Random(int(sys.argv[3]))
mounted, local = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_RDONLY)
size = os.fstat(mounted).st_size
for _ in range(40):
    at, length = r.randrange(size), r.choice((1, 4096, 70000, 700000))
    if os.pread(mounted, length, at) != os.pread(local, length, at):
        sys.exit(f"other bytes at {at}")
"""


def fails(number, function, *args):
    try:
        function(*args)
    except OSError as e:
        equal(e.errno, number, f"{function.__name__}{args}: {e}")
    else:
        raise Failed(f"{function.__name__}{args} worked, wanted {errno.errorcode[number]}")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def tree(path):
    """{name below path: bytes, or None of a directory}"""
    found = {}
    for at, directories, files in os.walk(path, onerror=throw):
        found.update({os.path.relpath(os.path.join(at, d), path): None for d in directories})
        found.update({os.path.relpath(os.path.join(at, f), path): read(os.path.join(at, f))
                      for f in files})
    return found


def throw(error):
    raise error


def with_directories(files):
    wanted = dict(files)
    for name in files:
        while name := os.path.dirname(name):
            wanted[name] = None
    return wanted


def test_a_tree_is_what_was_put(c):
    files = {"empty": b"", "one": b"1", "deep/er/and/deeper": b"2", "größe/ﬁle ☃": b"3",
             "x" * 255: b"4", "x" * 255 + "x/y": b"-", "long/" + "ö" * 127: b"5",
             "a": b"-", "a/b": b"6", "a-": b"7", "a.txt": b"8", "a0": b"9", ".dot": b"10",
             "with space\tand tab": b"11"}
    c.create("tree")
    for name, data in files.items():
        c.put("tree", name, data).expect(200)
    hidden = ("x" * 255 + "x/y", "a")
    wanted = with_directories({n: d for n, d in files.items() if n not in hidden})
    with mounted(c, "dfc://tree") as path:
        equal(tree(path), wanted, "the tree")
        equal(os.stat(path + "/one").st_size, 1, "a size")
        equal(os.stat(path + "/one").st_mode, 0o100444, "a file's mode")
        equal(os.stat(path + "/a").st_mode, 0o040555, "a directory's mode")
        for name in ("x" * 256, "y" * 255, "a/c", "one/x", "deep/er/an", "a\\b"):
            check(not os.path.exists(os.path.join(path, name)), f"{name} is there")
        fails(errno.ENAMETOOLONG, os.stat, path + "/" + "x" * 256)
    with mounted(c, "dfc://tree/deep/er", "--file-mode=0400", "--uid=7", "--gid=8") as path:
        equal(tree(path), {"and": None, "and/deeper": b"2"}, "the tree of a prefix")
        st = os.stat(path + "/and/deeper")
        equal((st.st_mode, st.st_uid, st.st_gid), (0o100400, 7, 8), "options")
    with mounted(c, "dfc://tree/none/there") as path:
        equal(os.listdir(path), [], "a prefix that matches nothing")


def test_many_names(c):
    names = [f"n{i:05}" for i in range(MANY)]
    c.create("many")
    in_parallel(lambda n: c.put("many", "d/" + n, n.encode()).expect(200), names, 8)
    c.put("many", "d/marked/", b"").expect(200)
    with mounted(c, "dfc://many") as path:
        equal(sorted(os.listdir(path + "/d")), ["marked"] + names, "the names")
        equal(os.listdir(path + "/d/marked"), [], "an empty directory")
        with os.scandir(path + "/d") as entries:
            sizes = {e.name: e.stat().st_size for e in entries if not e.is_dir()}
        equal(sizes, {n: len(n) for n in names}, "sizes")
        inodes = {os.stat(f"{path}/d/{n}").st_ino for n in names[:100]}
        equal(len(inodes), 100, "inode numbers")
    with mounted(c, "dfc://many") as path:
        equal({os.stat(f"{path}/d/{n}").st_ino for n in names[:100]}, inodes, "them, later")


def test_bytes_and_many_readers(c):
    c.create("bytes")
    c.put("bytes", "large", LARGE).expect(200)
    local = os.path.join(c.dir, "large")
    with open(local, "wb") as f:
        f.write(LARGE)
    with mounted(c, "dfc://bytes", "--buffer-size=8MiB") as path:
        subprocess.run(["cmp", local, path + "/large"], check=True)
        readers = [subprocess.Popen([sys.executable, "-c", READER, path + "/large", local, str(i)])
                   for i in range(8)]
        equal([r.wait() for r in readers], [0] * 8, "readers")
        equal(hashlib.md5(read(path + "/large")).digest(), hashlib.md5(LARGE).digest(), "md5")
        with open(path + "/large", "rb") as f:
            f.seek(0, os.SEEK_END)
            equal(f.read(10), b"", "behind the end")


def test_attributes(c):
    c.create("attr")
    reply = c.put("attr", "o", b"data", {"Dfc-Meta-Colour": "red"}).expect(200)
    with mounted(c, "dfc://attr") as path:
        file = path + "/o"
        equal(os.getxattr(file, "user.dfc.etag").decode(), reply.json()["etag"], "etag")
        equal(os.getxattr(file, "user.dfc.version").decode(), reply.json()["version"], "version")
        sum_ = reply.json()["checksum"]
        equal(os.getxattr(file, "user.dfc.checksum").decode(), f"{sum_['type']}:{sum_['value']}",
              "checksum")
        names = [n.lower() for n in os.listxattr(file)]
        check("user.meta.colour" in names, f"names of attributes: {names}")
        equal(os.getxattr(file, "user.meta.colour"), b"red", "user metadata")
        fails(errno.ENODATA, os.getxattr, file, "user.meta.other")
        check(abs(os.stat(file).st_mtime - time.time()) < 600, "the time of a file")
        c.put("attr", "gone", b"data").expect(200)
        with open(path + "/gone", "rb") as f:
            c.object("DELETE", "attr", "gone").expect(204)
            fails(errno.ESTALE, os.listxattr, f.fileno())
        room = os.statvfs(path)
        check(room.f_blocks >= room.f_bavail > 0, f"room: {room}")


def test_info(c):
    with mounted(c, "dfc://attr") as path:
        said = dict(line.split(None, 1) for line in c.dfcctl("fs", "info", path + "/o").stdout.splitlines())
        equal((said["object"], said["etag"]), ("dfc://attr/o", os.getxattr(path + "/o", "user.dfc.etag").decode()),
              "what is said of a file")
        said = c.dfcctl("fs", "info", path).stdout
        check(f"pid         {server(path)}" in said and "supervisor" in said, said)
        equal(c.dfcctl("fs", "info", path + "/none").returncode, 3, "a name that is not there")
    equal(c.dfcctl("fs", "info", c.dir).returncode, 3, "no mount")


def test_stats_have_the_mount_s_own_metrics(c):
    with mounted(c, "dfc://attr") as path:
        said = c.dfcctl("fs", "stats", path).stdout.splitlines()
    described = [line.split()[2] for line in said if line.startswith("# TYPE")]
    check("dfc_mount_buffer_used_bytes" in described, said)
    for name in described:
        check(any(line.startswith(name) for line in said), f"{name} has no figure")


def test_mount_calls_a_helper(c):
    """As mount(8) does for a line of /etc/fstab."""
    c.create("fstab")
    path, helper = directory_of(c, "fstab"), os.path.join(c.dir, "mount.dfc")
    to_be_cleaned(path)
    os.symlink(os.path.join(BUILD, "dfc-mount"), helper)

    def call(*words):
        return subprocess.run([helper, *words], env=c.dfcctl_environment(), timeout=60, check=False,
                              capture_output=True, text=True)

    endpoint = f"endpoint={c.url()}"
    equal(call("dfc://fstab", path, "-f", "-o", "rw").returncode, 0, "a fake mount")
    equal(mounts(path), [], "what it mounted")
    for options, fails_with in ((f"ro,_netdev,x-systemd.automount,{endpoint}", errno.EROFS), (f"rw,{endpoint}", None)):
        done = call("dfc://fstab", path, "-o", options)
        equal(done.returncode, 0, done.stderr)
        if fails_with:
            fails(fails_with, os.mkdir, path + "/d")
        else:
            os.mkdir(path + "/d")
            equal(call("dfc://fstab", path, "-o", "ro,remount,nosuid").returncode, 0, "remount read-only")
            fails(errno.EROFS, os.mkdir, path + "/e")
            equal(call("dfc://fstab", path, "-o", "rw,remount").returncode, 0, "remount writable")
            os.rmdir(path + "/d")
        umount(c, path)
    done = call("dfc://fstab", path + "/none", "-o", "ro,remount")
    equal((done.returncode, "No such file" in done.stderr), (1, True), done.stderr)
    done = call("dfc://fstab", path, "-o", "noexec")
    equal((done.returncode, "no flag --noexec" in done.stderr), (2, True), done.stderr)


def test_nothing_can_be_written(c):
    c.create("ro")
    c.put("ro", "d/o", b"data").expect(200)
    with mounted(c, "dfc://ro") as path:
        fails(errno.EROFS, os.open, path + "/d/o", os.O_WRONLY)
        fails(errno.EROFS, os.open, path + "/new", os.O_WRONLY | os.O_CREAT)
        fails(errno.EROFS, os.mkdir, path + "/new")
        fails(errno.EROFS, os.unlink, path + "/d/o")
        fails(errno.EROFS, os.rename, path + "/d/o", path + "/new")
        fails(errno.EROFS, os.truncate, path + "/d/o", 1)


def test_an_open_file_is_one_version(c):
    first, second = random.Random(1).randbytes(4 * MIB), random.Random(2).randbytes(3 * MIB)
    c.create("versions")
    for name in ("o", "gone"):
        c.put("versions", name, first).expect(200)
    with mounted(c, "dfc://versions", "--max-readahead=0") as path:
        opened = {name: os.open(f"{path}/{name}", os.O_RDONLY) for name in ("o", "gone")}
        for fd in opened.values():
            equal(os.pread(fd, 4096, 0), first[:4096], "the first version")
        c.put("versions", "o", second).expect(200)
        c.object("DELETE", "versions", "gone").expect(204)
        for fd in opened.values():
            fails(errno.ESTALE, os.pread, fd, 4096, 3 * MIB)
            equal(os.pread(fd, 4096, 0), first[:4096], "what is in memory")
        equal(read(path + "/o"), second, "what a new open reads")
        fails(errno.ENOENT, os.open, path + "/gone", os.O_RDONLY)
        equal(os.stat(path + "/o").st_size, len(second), "the new size")
        for fd in opened.values():
            os.close(fd)
        equal(os.listdir(path), ["o"], "names")


def test_a_target_dies_under_a_read(c):
    c.create("copies", copies=2)
    c.put("copies", "o", LARGE).expect(200)
    owner = c.owner("copies", "o")
    with mounted(c, "dfc://copies", "--buffer-size=8MiB", "--max-readahead=1MiB",
                 "--retries=200") as path:
        with open(path + "/o", "rb", buffering=0) as f:
            data = f.read(5 * MIB)
            c.kill(owner)
            while part := f.read(MIB):
                data += part
        check(data == LARGE, "other bytes")
    c.start(owner)
    c.wait_node(owner, "active")


def test_a_killed_reader_ends(c):
    """Even while the data does not come, and nothing else ends the wait."""
    c.create("stopped")
    c.put("stopped", "o", LARGE).expect(200)
    owner = c.owner("stopped", "o")
    with mounted(c, "dfc://stopped", "--max-readahead=0", "--idle-timeout=1h") as path:
        script = "import os,sys\nf=os.open(sys.argv[1],0)\nprint(flush=True)\ninput()\nos.pread(f,9,0)"
        with subprocess.Popen([sys.executable, "-c", script, path + "/o"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as reader:
            reader.stdout.readline()
            with frozen(c, owner):
                reader.stdin.write(b"\n")
                reader.stdin.flush()
                waits_for_fuse(reader, PREAD)
                reader.kill()
                equal(reader.wait(60), -signal.SIGKILL, "the reader's end")
    c.wait_node(owner, "active")


def test_a_bucket_is_destroyed(c):
    c.create("away")
    c.put("away", "d/o", LARGE).expect(200)
    with mounted(c, "dfc://away", "--max-readahead=0") as path:
        with open(path + "/d/o", "rb", buffering=0) as f:
            equal(f.read(4096), LARGE[:4096], "before")
            c.destroy("away")
            fails(errno.ESTALE, os.pread, f.fileno(), 4096, 10 * MIB)
        fails(errno.ESTALE, os.listdir, path)
        c.create("away")
        equal(os.listdir(path), [], "a bucket of the same name")


def test_a_mount_comes_and_goes(c):
    c.create("again")
    c.put("again", "o", b"data").expect(200)
    read_end, write_end = os.pipe()
    for i in range(20):
        path = mount(c, "dfc://again", pass_fds=(write_end,))
        equal(read(path + "/o"), b"data", f"round {i}")
        umount(c, path)
    path = mount(c, "dfc://again", pass_fds=(write_end,))
    os.close(write_end)
    equal(os.read(read_end, 1), b"", "the mount holds a descriptor of its caller")
    os.close(read_end)
    equal(os.readlink(f"/proc/{server(path)}/cwd"), "/", "its directory")
    umount(c, path)


def test_a_mount_in_use_stays(c):
    path = mount(c, "dfc://again")
    with open(path + "/o", "rb") as f:
        check("in use" in umount(c, path, status=1).stderr, "the message")
        equal(f.read(), b"data", "the file")
    done = c.dfcctl("fs", "mount", "dfc://again", path)
    equal(done.returncode, 1, "a second mount")
    check("mounted already" in done.stderr, done.stderr)
    umount(c, path)


def test_a_killed_process_is_cleared(c):
    path = mount(c, "dfc://again")
    kill_all(path)
    try:
        os.listdir(path)
        raise Failed("a mount without a process answers")
    except OSError as e:
        check(e.errno in (errno.ENOTCONN, errno.ECONNABORTED), f"listdir: {e}")
    done = c.dfcctl("fs", "mount", "dfc://again", path)
    equal(done.returncode, 1, "a mount over it")
    check("dfcctl fs umount" in done.stderr, done.stderr)
    equal(c.dfcctl("fs", "umount", path).returncode, 0, "umount")
    equal(mounts(path), [], "what is mounted")
    with mounted(c, "dfc://again") as path:
        equal(read(path + "/o"), b"data", "a new mount")


def test_foreground_ends_by_a_signal(c):
    path = directory_of(c, "foreground")
    to_be_cleaned(path)
    log = os.path.join(c.dir, "mount.log")
    with subprocess.Popen([os.path.join(BUILD, "dfcctl"), "fs",
                           "mount", "dfc://again", path, "--foreground", f"--log-file={log}"],
                          env=c.dfcctl_environment()) as process:
        try:
            wait_for(lambda: mounts(path), "the mount")
            equal(read(path + "/o"), b"data", "a file")
        finally:
            process.send_signal(signal.SIGTERM)
        equal(process.wait(60), 0, "exit code")
    equal(mounts(path), [], "what is mounted")
    check(b"unmounted" in read(log), "the log")


def test_mistakes(c):
    for words, code, said in (
            (("dfc://none", directory_of(c, "x")), 3, "none"),
            (("dfc://again", c.dir + "/no-such"), 3, "make the directory first"),
            (("dfc://again", os.path.join(c.dir, "cluster.json")), 2, "is no directory"),
            (("again", directory_of(c, "x")), 2, "dfc://BUCKET"),
            (("dfc://again", directory_of(c, "x"), "--buffer-size=1"), 2, "--buffer-size"),
            (("dfc://again", directory_of(c, "x"), "--endpoint=http://127.0.0.1:1",
              "--retries=0"), 5, "127.0.0.1:1")):
        done = c.dfcctl("fs", "mount", *words)
        equal(done.returncode, code, f"{words}: {done.stderr}")
        check(said in done.stderr, f"{words}: {done.stderr}")
    done = c.dfcctl("fs", "umount", c.dir)
    equal((done.returncode, "no bucket is mounted" in done.stderr), (3, True), done.stderr)
    equal(c.dfcctl("fs", "umount", c.dir + "/no-such").returncode, 3, "umount of nothing")


def test_sanitizers_found_nothing(c):
    del c
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(targets=3)
