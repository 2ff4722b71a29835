#!/usr/bin/env python3
"""Whole trees of a mounted volume: removals and clones, by root and by a user, and what is left."""

import contextlib
import errno
import fcntl
import glob
import os
import random
import subprocess
import time

from lib import BUILD, check, equal, main, wait_for
from mount_bucket import fails, read
from mount_lib import (clean, directory_of, kill_all, mount, mounted, needs_fuse, said_by_sanitizers,
                       to_be_cleaned)
from mount_volume import fsck, made
from mount_write import shell, write

MIB = 1 << 20
USER = 12345


def fs(c, *words, status=0, user=None):
    """dfcctl fs; user: its uid, of a process in no other group."""
    os.chmod(c.dir, 0o711)  # the user's way to the mount
    options = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
    done = subprocess.run([os.path.join(BUILD, "dfcctl"), "fs", *words], env=c.dfcctl_environment(),
                          capture_output=True, text=True, timeout=300, check=False, **options)
    equal(done.returncode, status, f"fs {words}: {done.stdout}{done.stderr}")
    return done


def make_tree(path, files=150):
    for directory in ("a/b/c", "d", "e/f"):
        os.makedirs(f"{path}/{directory}")
    for number in range(files):
        write(f"{path}/d/f{number}", b"x" * number)
    write(path + "/a/b/c/file", b"c" * 100_000)
    os.link(path + "/d/f1", path + "/e/linked")
    os.symlink("nowhere", path + "/e/link")
    os.mkfifo(path + "/e/f/fifo")


def test_rmr(c):
    with mounted(c, made(c, "rmr"), "--allow-other") as path:
        make_tree(path + "/tree")
        write(path + "/file", b"1")
        write(path + "/kept", b"1")
        os.link(path + "/tree/d/f9", path + "/second")
        done = fs(c, "rmr", path + "/tree/", path + "/file")
        equal(done.stdout, f"{path}/tree/: 161 removed\n{path}/file: 1 removed\n", "what is said")
        fails(errno.ENOENT, os.stat, path + "/tree")
        equal(sorted(os.listdir(path)), ["kept", "second"], "names")
        equal(os.stat(path + "/second").st_nlink, 1, "names of a file that has one outside")
        done = fs(c, "rmr", path + "/none", path + "/kept", status=3)
        check("none" in done.stderr and not os.path.exists(path + "/kept"), "the other path is removed")
        check("must end with a name" in fs(c, "rmr", path + "/..", status=2).stderr, "..")
        check("not in a mounted volume" in fs(c, "rmr", directory_of(c, "beside"), status=2).stderr, "elsewhere")
        check("is mounted there" in fs(c, "rmr", path, status=1).stderr, "the mount itself")
    equal(len(fsck(c, "rmr", 0)), 1, "lines of fsck")


def test_rmr_needs_rights(c):
    with mounted(c, made(c, "rights"), "--allow-other") as path:
        os.chmod(path, 0o777)
        make_tree(path + "/tree", files=3)
        done = fs(c, "rmr", path + "/tree", user=USER, status=7)
        check("Permission denied, at 'tree'" in done.stderr, done.stderr)
        for directory, _, names in os.walk(path + "/tree"):
            for name in [".", *names]:
                os.chown(f"{directory}/{name}", USER, USER, follow_symlinks=False)
        os.chown(path + "/tree/a/b", 0, 0)
        done = fs(c, "rmr", path + "/tree", user=USER, status=7)
        check("Permission denied, at 'b'" in done.stderr, done.stderr)
        check(os.path.exists(path + "/tree/a/b/c/file"), "a file in a directory of root is gone")
        os.chown(path + "/tree/a/b", USER, USER)
        fs(c, "rmr", path + "/tree", user=USER)
        equal(os.listdir(path), [], "names")
    with mounted(c, made(c, "ro")) as path:
        os.mkdir(path + "/d")
    with mounted(c, "sqlite3://" + os.path.join(os.path.realpath(c.dir), "ro.db"), "--read-only") as path:
        check("Read-only file system" in fs(c, "rmr", path + "/d", status=1).stderr, "a mount that may only be read")
        equal(os.listdir(path), ["d"], "names")


def test_clone(c):
    url = made(c, "clone")
    data = random.Random(1).randbytes(9 * MIB + 5)
    with mounted(c, url, "--allow-other") as path:
        make_tree(path + "/tree")
        write(path + "/tree/large", data)
        os.chown(path + "/tree/d/f3", 12, 34)
        os.utime(path + "/tree/d", ns=(7, 123456789012345678))
        os.setxattr(path + "/tree/d/f3", "user.a", b"value")
        objects = sorted(c.names("clone"))
        done = fs(c, "clone", path + "/tree", path + "/copy")
        equal(done.stdout, f"{path}/copy: 162 made\n", "what is said")
        equal(sorted(c.names("clone")), objects, "objects: none is stored again")
        shell(path, "diff -r --no-dereference -x fifo tree copy")
        st = os.stat(path + "/copy/d/f3")
        equal((st.st_uid, st.st_gid, st.st_nlink, os.getxattr(path + "/copy/d/f3", "user.a")),
              (12, 34, 1, b"value"), "attributes")
        equal(os.stat(path + "/copy/d").st_mtime_ns, 123456789012345678, "time of a directory")
        with open(path + "/copy/large", "r+b") as f:
            f.write(b"other")
        check(read(path + "/tree/large") == data, "a write to the copy changes the source")
        with open(path + "/tree/open", "wb", buffering=0) as f:
            f.write(b"not closed")
            fs(c, "clone", path + "/tree/open", path + "/one")
            equal(read(path + "/one"), b"not closed", "bytes of a file that is open")
        fs(c, "rmr", path + "/tree")
        check(read(path + "/copy/large") == b"other" + data[5:], "bytes of the copy")
        check("File exists" in fs(c, "clone", path + "/one", path + "/copy", status=1).stderr, "DST")
        fs(c, "clone", path + "/none", path + "/x", status=3)
        fs(c, "clone", path + "/copy/e/f/fifo", path + "/x", status=2)
        check("same mount" in fs(c, "clone", path + "/one", c.dir + "/x", status=2).stderr, "elsewhere")
        check(not os.path.exists(path + "/x"), "a clone that failed is there")
        os.chmod(path, 0o777)
        os.chmod(path + "/copy/d/f5", 0o600)
        done = fs(c, "clone", path + "/copy", path + "/x", user=USER, status=7)
        check("at f5" in done.stderr, done.stderr)
        fs(c, "clone", path + "/copy/a", path + "/x", user=USER)
        equal(os.stat(path + "/x/b/c/file").st_uid, USER, "owner")
        equal(sorted(os.listdir(path)), ["copy", "one", "x"], "names")
    equal(len(fsck(c, "clone", 0, "--read")), 1, "lines of fsck")


def test_a_kill_while_a_clone_is_built(c):
    url = made(c, "half")
    path = mount(c, url)
    make_tree(path + "/tree", files=200)
    for number in range(5):
        fs(c, "clone", path + "/tree", f"{path}/tree/{number}")
    with subprocess.Popen([os.path.join(BUILD, "dfcctl"), "fs", "clone", path + "/tree", path + "/copy"],
                          env=c.dfcctl_environment(), stderr=subprocess.DEVNULL) as clone:
        wait_for(lambda: glob.glob(path + "/.trash/*/clone-*/?"), "the first names of the clone")
        check(clone.poll() is None, "the clone was too fast to be killed")
        kill_all(path)
        clean()
        check(clone.wait(timeout=60) != 0, "the clone says that it is complete")
    with mounted(c, url, name="again") as again:
        equal(os.listdir(again), ["tree"], "names")
        equal(len(glob.glob(again + "/.trash/*/clone-*")), 1, "what is left of it")
        fails(errno.EPERM, write, again + "/.trash/x", b"")
    equal(len(fsck(c, "half", 0)), 1, "lines of fsck")


def trash(c, path, user=None):
    """The names in the trash, without their hours."""
    lines = fs(c, "trash", "ls", path, user=user).stdout.splitlines()
    return [line.split()[-1] for line in lines]


def test_trash(c):
    wait_for(lambda: time.time() % 3600 < 3570, "an hour that does not end during the test")
    with mounted(c, made(c, "trash", trash_days=1), "--allow-other", "--attr-ttl=0") as path:
        equal(trash(c, path), [], "a new trash")
        make_tree(path + "/tree", files=5)
        write(path + "/mine", b"mine")
        os.chown(path + "/mine", USER, USER)
        write(path + "/old", b"old")
        inodes = {name: os.stat(f"{path}/{name}").st_ino for name in ("mine", "old", "tree", "tree/d")}
        os.unlink(path + "/mine")
        write(path + "/new", b"new")
        os.rename(path + "/new", path + "/old")
        shell(path, "rm -r tree/d")
        names = trash(c, path)
        wanted = sorted([f"1-{inodes['mine']}-mine", f"1-{inodes['old']}-old", f"{inodes['tree']}-{inodes['tree/d']}-d"])
        equal([n for n in sorted(name.split("/")[1] for name in names) if n in wanted], wanted, "names in the trash")
        equal(len(names), 7, "names: f1 has another one")
        equal([name.split("/")[1] for name in trash(c, path, user=USER)], wanted[:1], "what the user may have")
        equal(sorted(os.listdir(path)), ["old", "tree"], "names")
        hour = names[0].split("/")[0]
        equal(fs(c, "trash", "restore", path, f"{hour}/{wanted[0]}", user=USER, status=7).stdout, "", "without rights")
        os.chmod(path, 0o777)
        fs(c, "trash", "restore", path, f"{hour}/{wanted[0]}", user=USER)
        equal(read(path + "/mine"), b"mine", "bytes that came back")
        done = fs(c, "trash", "restore", path, hour, status=6)
        check("old': its directory has that name again" in done.stderr, done.stderr)
        equal(sorted(os.listdir(path + "/tree/d")), ["f0", "f2", "f3", "f4"], "names of the directory")
        os.rename(path + "/old", path + "/newer")
        fs(c, "trash", "restore", path, hour)
        equal((read(path + "/old"), read(path + "/newer")), (b"old", b"new"), "bytes of what was replaced")
        equal(trash(c, path), [], "all came back")
        fs(c, "trash", "restore", path, hour, status=3)
        for name in ("", "/", "/x"):
            check("names no hour" in fs(c, "trash", "restore", path, name, status=2).stderr, name)
        fs(c, "trash", "empty", path, status=2)
        equal(fs(c, "rmr", path + "/tree").stdout, f"{path}/tree: moved to the trash\n", "what is said")
        equal([name.split("/")[1] for name in trash(c, path)], [f"1-{inodes['tree']}-tree"], "a tree is one name")
        fs(c, "rmr", f"{path}/.trash/{hour}/1-{inodes['tree']}-tree")
        equal(trash(c, path), [], "root has emptied it")
        fails(errno.EPERM, os.rmdir, f"{path}/.trash/{hour}")
        equal(fs(c, "rmr", path + "/newer", "--skip-trash").stdout, f"{path}/newer: 1 removed\n", "what is said")
        equal(trash(c, path), [], "the file is not in the trash")
        equal(sorted(os.listdir(path)), ["mine", "old"], "no list shows the trash")
    equal(len(fsck(c, "trash", 0, "--read")), 1, "lines of fsck")


def test_of_one_name_the_last_comes_back(c):
    wait_for(lambda: time.time() % 3600 < 3570, "an hour that does not end during the test")
    with mounted(c, made(c, "newest", trash_days=1)) as path:
        for version in (b"1", b"2", b"3"):
            write(path + "/new", version)
            os.rename(path + "/new", path + "/f")
        os.unlink(path + "/f")
        names = trash(c, path)
        equal(len(names), 3, "names in the trash")
        done = fs(c, "trash", "restore", path, names[0].split("/")[0], status=6)
        equal(done.stderr.count("has that name again"), 2, done.stderr)
        equal(read(path + "/f"), b"3", "bytes that came back")


def ask(path, number, size, data):
    """An ioctl of an open file or directory: what it fills."""
    fd = os.open(path, os.O_RDONLY)
    filled = bytearray(data.ljust(size, b"\0"))
    try:
        fcntl.ioctl(fd, 3 << 30 | size << 16 | ord("d") << 8 | number, filled, True)
    finally:
        os.close(fd)
    return bytes(filled)


CLONE, RESTORE, TICKET = 0x79, 0x7B, 0x7C
TICKET_BYTES, CLONE_BYTES, NAME, ERROR_AT = 48, 576, 256, 312


def clone_error(path, ticket, name):
    filled = ask(path, CLONE, CLONE_BYTES, ticket + name.encode().ljust(NAME, b"\0"))
    return int.from_bytes(filled[ERROR_AT:ERROR_AT + 4], "little")


@contextlib.contextmanager
def bound(c, source):
    """A bind mount of the directory, as a container has one."""
    path = directory_of(c, "part")
    to_be_cleaned(path)
    subprocess.run(["mount", "--bind", source, path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


def test_a_bind_mount_is_a_border(c):
    with mounted(c, made(c, "border", trash_days=1)) as path:
        os.mkdir(path + "/part")
        os.mkdir(path + "/other")
        write(path + "/part/file", b"bytes")
        write(path + "/gone", b"1")
        gone = os.stat(path + "/gone").st_ino
        os.unlink(path + "/gone")
        [trashed] = trash(c, path)
        equal(trashed.split("/")[1], f"1-{gone}-gone", "the name in the trash")
        with bound(c, path + "/part") as part:
            stays_inside(c, path, part, trashed)
        fs(c, "trash", "restore", path, trashed)
        equal(read(path + "/gone"), b"1", "what came back")


def stays_inside(c, path, part, trashed):
    fs(c, "clone", part + "/file", part + "/copy")
    equal(read(part + "/copy"), b"bytes", "a clone within the part")
    other = os.stat(path + "/other").st_ino.to_bytes(8, "little")
    forged = other.ljust(TICKET_BYTES, b"\xff")
    own = ask(part, TICKET, TICKET_BYTES, b"")
    equal(clone_error(part + "/file", forged, "x"), errno.ESTALE, "a clone to a number")
    equal(clone_error(part + "/file", other + own[8:], "x"), errno.ESTALE, "a ticket of another directory")
    equal(clone_error(part + "/file", own, "x"), 0, "a clone by its ticket")
    equal((sorted(os.listdir(part)), os.listdir(path + "/other")), (["copy", "file", "x"], []), "names")
    check("not the root of a mounted volume" in fs(c, "trash", "ls", part, status=2).stderr, "trash ls")
    restore = b"".join(word.encode().ljust(NAME, b"\0") for word in trashed.split("/"))
    fails(errno.EPERM, ask, part, RESTORE, 2 * NAME + 4, restore)
    fails(errno.EPERM, ask, path + "/other", RESTORE, 2 * NAME + 4, restore)


def test_long_names_come_back_whole(c):
    with mounted(c, made(c, "long", trash_days=1)) as path:
        name = "n" * 250 + "tail!"
        write(f"{path}/{name}", b"1")
        os.unlink(f"{path}/{name}")
        [trashed] = trash(c, path)
        check(not trashed.endswith("tail!"), "the name fits: the test shows nothing")
        fs(c, "trash", "restore", path, trashed)
        equal(os.listdir(path), [name], "names")


def test_the_trash_is_changed_while_it_is_mounted(c):
    url = made(c, "days")
    check("\ntrash-days  0\n" in fs(c, "config", url).stdout, "what config says")
    fs(c, "config", url, "--trash-days", "99999999", status=2)
    with mounted(c, url) as path:
        fs(c, "config", url, "--trash-days", "3")

        def keeps():
            write(path + "/f", b"1")
            os.unlink(path + "/f")
            return trash(c, path)

        wait_for(keeps, "the mount to follow")
    check("\ntrash-days  3\n" in fs(c, "config", url).stdout, "what config says")


def test_sanitizers_found_nothing(c):
    del c
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(targets=2)
