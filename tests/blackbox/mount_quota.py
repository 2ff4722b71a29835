#!/usr/bin/env python3
"""Quotas of directories of a mounted volume: what programs see, and what the commands say."""

import errno
import os
import subprocess

from lib import check, equal, main
from mount_bucket import fails, read
from mount_lib import mounted, needs_fuse, said_by_sanitizers
from mount_trees import fs, trash
from mount_volume import FRESH, fsck, made
from mount_write import write

MIB = 1 << 20


def quota(c, *words, status=0):
    return fs(c, "quota", *words, status=status)


def row_of(c, url, path):
    """Bytes, their limit, inodes, their limit."""
    line = quota(c, "get", url, path).stdout.splitlines()[-1].replace("no limit", "none")
    return line.split()[:4]


def test_limits_of_a_directory(c):
    url = made(c, "limits", trash_days=1)
    with mounted(c, url, *FRESH) as path, mounted(c, url, *FRESH, name="other") as other:
        os.makedirs(path + "/d/sub")
        write(path + "/d/old", b"x" * 1000)
        quota(c, "set", url, "/d", "--capacity=3MiB", "--inodes=5")
        equal(row_of(c, url, "d/"), ["1000", str(3 * MIB), "2", "5"], "what is there counts")
        write(other + "/d/sub/large", b"y" * 2 * MIB)
        fails(errno.EDQUOT, write, path + "/d/more", b"z" * 2 * MIB)
        equal(read(path + "/d/sub/large"), b"y" * 2 * MIB, "bytes that found room")
        st, whole = os.statvfs(path + "/d/sub"), os.statvfs(path)
        equal(st.f_blocks * st.f_frsize, 3 * MIB, "the size that statfs shows")
        equal(st.f_files, 5, "the inodes that statfs shows")
        check(whole.f_blocks * whole.f_frsize > 2 ** 40, "the volume shows the quota of a directory")
        os.unlink(path + "/d/more")
        os.mkdir(path + "/d/4")
        os.symlink("x", other + "/d/5")
        fails(errno.EDQUOT, os.mkdir, path + "/d/6")
        fails(errno.EDQUOT, os.mkdir, other + "/d/6")
        fails(errno.EXDEV, os.rename, path + "/d/old", path + "/old")
        fails(errno.EXDEV, os.link, path + "/d/old", path + "/old")
        subprocess.run(["mv", path + "/d/old", path + "/old"], check=True)
        equal(read(other + "/old"), b"x" * 1000, "bytes that mv has copied")
        os.rename(path + "/d/4", path + "/d/sub/4")
        equal(row_of(c, url, "/d/sub")[2], "4", "inodes")
        quota(c, "set", url, "/d", "--inodes=0")
        equal(row_of(c, url, "/d"), [str(2 * MIB), str(3 * MIB), "4", "none"], "limits")
        os.mkdir(path + "/d/6")
        check("not nested" in quota(c, "set", url, "/d/sub", "--inodes=1", status=1).stderr, "nested")
        quota(c, "rm", url, "/d")
        write(path + "/d/more", b"z" * 2 * MIB)
        quota(c, "rm", url, "/d", status=3)
    equal(len(fsck(c, "limits", 0, "--read")), 1, "lines of fsck")


def test_what_is_removed_copied_and_dumped(c):
    url = made(c, "moves", trash_days=1)
    with mounted(c, url, *FRESH) as path:
        os.makedirs(path + "/d/tree/deep")
        write(path + "/d/tree/deep/f", b"x" * 500)
        quota(c, "set", url, "/d", "--capacity=1000", "--inodes=6")
        fs(c, "clone", path + "/d/tree", path + "/d/copy")
        equal(row_of(c, url, "/d"), ["1000", "1000", "6", "6"], "a clone counts")
        check("quota" in fs(c, "clone", path + "/d/tree", path + "/d/copy2", status=1).stderr.lower(), "a full quota")
        fs(c, "rmr", path + "/d/copy")
        equal(row_of(c, url, "/d"), ["500", "1000", "3", "6"], "the trash does not count")
        write(path + "/d/f", b"y" * 400)
        [name] = [name for name in trash(c, path) if name.endswith("-copy")]
        check("quota" in fs(c, "trash", "restore", path, name, status=1).stderr.lower(), "no room to come back")
        os.unlink(path + "/d/f")
        fs(c, "trash", "restore", path, name)
        equal(row_of(c, url, "/d"), ["1000", "1000", "6", "6"], "what came back counts")
        equal(quota(c, "check", url).stdout.splitlines()[-1].split(": ")[1], "0 findings are left", "the check")
    dump = os.path.join(c.dir, "moves.jsonl")
    new = url.replace("moves.db", "again.db")
    fs(c, "dump", url, dump)
    fs(c, "load", new, dump)
    lines = quota(c, "ls", new).stdout.splitlines()
    equal([line.split() for line in lines[1:]], [["1000", "1000", "6", "6", "/d"]], "quotas of a loaded dump")


def test_two_mounts_share_a_quota(c):
    url = made(c, "share")
    with mounted(c, url, *FRESH) as path, mounted(c, url, *FRESH, name="other") as other:
        os.mkdir(path + "/d")
        quota(c, "set", url, "/d", "--inodes=50", "--capacity=45")
        loop = "for i in $(seq 40); do echo -n 1 > d/$0-$i; done 2> /dev/null"
        shells = [subprocess.Popen(["sh", "-c", loop, name], cwd=at) for name, at in (("a", path), ("b", other))]
        for shell in shells:
            shell.wait(timeout=200)
        equal(len(os.listdir(path + "/d")), 50, "files of a quota of 50")
        equal(row_of(c, url, "/d"), ["45", "45", "50", "50"], "what counts")
    equal(len(fsck(c, "share", 0)), 1, "lines of fsck")


def test_words(c):
    url = made(c, "words")
    for words, status, says in ((("set", url, "/none", "--inodes=1"), 3, "no such directory"),
                                (("set", url, "/", "--inodes=1"), 2, "the root has no quota"),
                                (("set", url, "/none"), 3, ""),
                                (("get", url), 2, "PATH"), (("ls", url, "/x"), 2, "expected"),
                                (("be", url), 2, "there is no 'quota be'"),
                                (("set", url, "/x", "--inodes=-1"), 2, "inodes")):
        done = quota(c, *words, status=status)
        check(says in done.stderr, f"{words}: {done.stderr}")
    equal(len(quota(c, "ls", url).stdout.splitlines()), 1, "no quotas: a head alone")


def test_sanitizers_found_nothing(c):
    del c
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(targets=2)
