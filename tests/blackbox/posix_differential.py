#!/usr/bin/env python3
"""Each system call on each kind of name, on a volume and on ext4: the same results, and the same
files behind it.

STATES makes what a name is before the call.  CALLS has calls of one name, PAIRS those of two.  Each
runs as root and as a user, in directories that root or the user may write to.  A difference that is
meant is a row of DIFFERENCES, below its reason.

DFC_EACH=N makes each Nth comparison alone (default: 7; `long` makes all).

Not compared: the set-gid bit of a file that its group cannot execute.  Linux leaves it to file systems
in user space when a file is written, and clears it on others."""

import contextlib
import ctypes
import os
import stat
import struct
import subprocess

from lib import check, equal, main, skip
from mount_lib import (fallocate, libc, mounted, needs_fuse, renameat2, said_by_sanitizers,
                       to_be_cleaned)
from mount_volume import outcome
from mount_write import write

USER, GROUP = 41001, 41002
OLD = 1_000_000_000  # a time: what a call changes is newer
LONG = "n" * 255
NOREPLACE, EXCHANGE = 1, 2
KEEP_SIZE, PUNCH_HOLE, COLLAPSE, ZERO_RANGE, INSERT = 1, 2, 8, 16, 32
# Version 2: the owner reads and writes, as user 1 does; others read.
ACL = struct.pack("<I" + "HHI" * 5, 2, *(number for entry in (
    (1, 6, 2**32 - 1), (2, 6, 1), (4, 4, 2**32 - 1), (16, 6, 2**32 - 1), (32, 4, 2**32 - 1))
    for number in entry))
IMAGE_BYTES = 128 << 20
EACH = int(os.environ.get("DFC_EACH", 7))  # the tables' lengths have other factors: no row is left out
# A difference that is meant: (call, state) begins so.
DIFFERENCES = {
    # Linux passes O_TMPFILE to file systems in user space since 6.1, and libfuse 3.14 does not know it.
    ("open O_TMPFILE", ""): "ENOTSUP",
    # Volumes have no access control lists.
    ("setxattr acl", ""): "ENOTSUP",
    ("getxattr acl", ""): "ENOTSUP",
    # Their ranges are whole blocks of ext4.
    ("fallocate collapse", ""): "ENOTSUP",
    ("fallocate insert", ""): "ENOTSUP",
}


# --- what a name may be --------------------------------------------------------------------------

def file_of(mode=0o644, owner=(0, 0), data=b"0123456789"):
    def make(path):
        write(path, data)
        os.chown(path, *owner)
        os.chmod(path, mode)
    return make


def directory(mode=0o755, owner=(0, 0), inside=()):
    def make(path):
        os.mkdir(path)
        for name, state in inside:
            state(os.path.join(path, name))
        os.chown(path, *owner)
        os.chmod(path, mode)
    return make


def link_to(target):
    return lambda path: os.symlink(target, path)


def to_target(make):
    def make_both(path):
        make(path + ".target")
        os.symlink(os.path.basename(path) + ".target", path)
    return make_both


def special(kind):
    return lambda path: os.mknod(path, kind | 0o644, os.makedev(1, 3))


def with_second_name(path):
    write(path, b"two names")
    os.link(path, path + ".second")


def with_attribute(path):
    write(path, b"")
    os.setxattr(path, "user.a", b"first")
    os.setxattr(path, "trusted.b", b"second")


MINE, OTHERS = (USER, GROUP), (0, 0)
STATES = {
    "missing": lambda path: None,
    "file": file_of(),
    "file of the user": file_of(0o644, MINE),
    "file of nobody's rights": file_of(0, MINE),
    "set-id file": file_of(0o6755, MINE),
    "empty directory": directory(),
    "empty directory of the user": directory(0o755, MINE),
    "full directory": directory(0o777, MINE, [("inside", file_of(0o666))]),
    "sticky directory": directory(0o1777, OTHERS, [("inside", file_of(0o666))]),
    "set-gid directory": directory(0o2777, (0, GROUP)),
    "closed directory": directory(0, MINE),
    "link to a file": to_target(lambda path: write(path, b"abc")),
    "link to nothing": link_to("nothing"),
    "link to itself": lambda path: os.symlink(os.path.basename(path), path),
    "link to a directory": to_target(os.mkdir),
    "fifo": special(stat.S_IFIFO),
    "socket": special(stat.S_IFSOCK),
    "device": special(stat.S_IFCHR),
    "two names": with_second_name,
    "attribute": with_attribute,
}

# Places of the name: what comes before it, and behind it.
PLACES = {
    "": lambda name: name,
    "/": lambda name: name + "/",
    "/.": lambda name: name + "/.",
    "/..": lambda name: name + "/..",
    "/below": lambda name: name + "/below",
    "/inside": lambda name: name + "/inside",
}

# --- calls ---------------------------------------------------------------------------------------


def opened(flags, mode=0o640, then=lambda fd: None):
    def call(path):
        fd = os.open(path, flags | os.O_NONBLOCK, mode)
        try:
            return then(fd)
        finally:
            os.close(fd)
    return call


def allocated(mode, at, size):
    return opened(os.O_RDWR, then=lambda fd: fallocate(fd, mode, at, size))


def found(at, whence):
    return opened(os.O_RDWR, then=lambda fd: os.lseek(fd, at, whence))


def unlinked_while_open(path):
    def then(fd):
        os.unlink(path)
        os.write(fd, b"more")
        st = os.fstat(fd)
        return str((st.st_nlink, st.st_size, os.pread(fd, 100, 0)))
    return opened(os.O_RDWR, then=then)(path)


def utimes(*times):
    return lambda path: os.utime(path, ns=times)


def now(path):
    os.utime(path)


CALLS = {
    "stat": lambda path: os.stat(path).st_mode,
    "lstat": lambda path: os.lstat(path).st_mode,
    "readlink": lambda path: len(os.readlink(path)),
    "access r": lambda path: os.access(path, os.R_OK, effective_ids=True),
    "access w": lambda path: os.access(path, os.W_OK, effective_ids=True),
    "access x": lambda path: os.access(path, os.X_OK, effective_ids=True),
    "listdir": lambda path: sorted(os.listdir(path)),
    "statfs": lambda path: os.statvfs(path).f_namemax,
    "open r": opened(os.O_RDONLY, then=lambda fd: os.read(fd, 100)),
    "open w": opened(os.O_WRONLY, then=lambda fd: os.write(fd, b"ab")),
    "open rw": opened(os.O_RDWR),
    "open create": opened(os.O_WRONLY | os.O_CREAT),
    "open create set-id": opened(os.O_WRONLY | os.O_CREAT, 0o7777),
    "open excl": opened(os.O_WRONLY | os.O_CREAT | os.O_EXCL),
    "open trunc": opened(os.O_WRONLY | os.O_TRUNC),
    "open trunc r": opened(os.O_RDONLY | os.O_TRUNC),
    "open append": opened(os.O_WRONLY | os.O_APPEND, then=lambda fd: os.write(fd, b"ab")),
    "open directory": opened(os.O_RDONLY | os.O_DIRECTORY),
    "open nofollow": opened(os.O_RDONLY | os.O_NOFOLLOW),
    "open path": opened(os.O_PATH | os.O_NOFOLLOW, then=lambda fd: os.fstat(fd).st_mode),
    "open O_TMPFILE": opened(os.O_TMPFILE | os.O_RDWR),
    "mkdir": lambda path: os.mkdir(path, 0o755),
    "mkdir set-id": lambda path: os.mkdir(path, 0o7777),
    "mknod": lambda path: os.mknod(path, 0o644 | stat.S_IFREG),
    "mkfifo": os.mkfifo,
    "mknod device": lambda path: os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(259, 70000)),
    "symlink": lambda path: os.symlink("target", path),
    "symlink to nothing": lambda path: os.symlink("", path),
    "symlink of 4095": lambda path: os.symlink("t" * 4095, path),
    "symlink of 4096": lambda path: os.symlink("t" * 4096, path),
    "rmdir": os.rmdir,
    "unlink": os.unlink,
    "unlink while open": unlinked_while_open,
    "chmod": lambda path: os.chmod(path, 0o7531),
    "chown": lambda path: os.chown(path, USER, GROUP),
    "chown group": lambda path: os.chown(path, -1, GROUP),
    "chown to 0": lambda path: os.chown(path, 0, 0),
    "chown nothing": lambda path: os.chown(path, -1, -1),
    "lchown": lambda path: os.chown(path, USER, GROUP, follow_symlinks=False),
    "truncate 0": lambda path: os.truncate(path, 0),
    "truncate 4": lambda path: os.truncate(path, 4),
    "truncate 5000": lambda path: os.truncate(path, 5000),
    "truncate -1": lambda path: libc("truncate", os.fsencode(path), ctypes.c_int64(-1)),
    "truncate 2^62": lambda path: os.truncate(path, 1 << 62),
    "utimes": utimes(5, 1_234_567_890_123_456_789),
    "utimes before 1970": utimes(-1_000_000_000, -1_000_000_000),
    "utimes now": now,
    "lutimes": lambda path: os.utime(path, ns=(5, 7), follow_symlinks=False),
    "setxattr": lambda path: os.setxattr(path, "user.a", b"value"),
    "setxattr of nothing": lambda path: os.setxattr(path, "user.a", b""),
    "setxattr create": lambda path: os.setxattr(path, "user.a", b"value", os.XATTR_CREATE),
    "setxattr replace": lambda path: os.setxattr(path, "user.a", b"value", os.XATTR_REPLACE),
    "setxattr trusted": lambda path: os.setxattr(path, "trusted.a", b"value"),
    "setxattr acl": lambda path: os.setxattr(path, "system.posix_acl_access", ACL),
    "getxattr acl": lambda path: os.getxattr(path, "system.posix_acl_access"),
    "setxattr elsewhere": lambda path: os.setxattr(path, "other.a", b"value"),
    "setxattr without a name": lambda path: os.setxattr(path, "user.", b"value"),
    "lsetxattr": lambda path: os.setxattr(path, "user.a", b"v", follow_symlinks=False),
    "getxattr": lambda path: os.getxattr(path, "user.a"),
    "listxattr": lambda path: sorted(os.listxattr(path)),
    "removexattr": lambda path: os.removexattr(path, "user.a"),
    "fallocate": allocated(0, 5, 1000),
    "fallocate keep": allocated(KEEP_SIZE, 5, 1000),
    "fallocate punch": allocated(PUNCH_HOLE | KEEP_SIZE, 2, 3),
    "fallocate punch all": allocated(PUNCH_HOLE | KEEP_SIZE, 0, 1 << 40),
    "fallocate punch alone": allocated(PUNCH_HOLE, 2, 3),
    "fallocate zero": allocated(ZERO_RANGE, 2, 100),
    "fallocate zero keep": allocated(ZERO_RANGE | KEEP_SIZE, 2, 100),
    "fallocate nothing": allocated(0, 0, 0),
    "fallocate before": allocated(0, -1, 5),
    "fallocate collapse": allocated(COLLAPSE, 0, 4096),
    "fallocate insert": allocated(INSERT, 0, 4096),
    "seek data": found(3, os.SEEK_DATA),
    "seek data behind": found(5000, os.SEEK_DATA),
    "seek hole": found(3, os.SEEK_HOLE),
    "seek hole behind": found(5000, os.SEEK_HOLE),
}


def rename2(flags):
    return lambda one, two: renameat2(one, two, flags)


PAIRS = {
    "rename": os.rename,
    "rename noreplace": rename2(NOREPLACE),
    "rename exchange": rename2(EXCHANGE),
    "rename both": rename2(NOREPLACE | EXCHANGE),
    "link": lambda one, two: os.link(one, two, follow_symlinks=False),
    "link follow": os.link,
}

# --- running them --------------------------------------------------------------------------------


@contextlib.contextmanager
def caller(user):
    if user == "root":
        yield
        return
    os.setegid(GROUP)
    os.setgroups([])
    os.seteuid(USER)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups([])


def content_of(path, st):
    if stat.S_ISREG(st.st_mode):
        with open(path, "rb") as f:
            return f.read()
    return os.readlink(path).rsplit("/", 1)[-1] if stat.S_ISLNK(st.st_mode) else None


def seen(root):
    """All that is there, but the sizes of directories.  Times are old, or new, or set."""
    found_there = []
    for at, folders, files in sorted(os.walk(root)):
        for name in sorted([*folders, *files, "."]):
            path = os.path.join(at, name)
            st = os.lstat(path)
            times = [t if t < OLD * 10**9 + 1 or t == 1_234_567_890_123_456_789 else "new"
                     for t in (st.st_mtime_ns,)]
            attributes = [(x, os.getxattr(path, x, follow_symlinks=False))
                          for x in sorted(os.listxattr(path, follow_symlinks=False))]
            found_there.append((
                os.path.relpath(path, root), oct(st.st_mode), st.st_uid, st.st_gid, st.st_nlink,
                st.st_size if stat.S_ISREG(st.st_mode) else 0, st.st_rdev, times,
                content_of(path, st), attributes))
    return found_there


def age(root):
    for at, folders, files in os.walk(root, topdown=False):
        for name in [*folders, *files]:
            os.utime(os.path.join(at, name), (OLD, OLD), follow_symlinks=False)
    os.utime(root, (OLD, OLD))


def remove(root):
    for at, folders, files in os.walk(root, topdown=False):
        for name in files:
            os.unlink(os.path.join(at, name))
        for name in folders:
            path = os.path.join(at, name)
            if os.path.islink(path):
                os.unlink(path)
            else:
                os.rmdir(path)
    os.rmdir(root)


def attempt(root, writable, states, user, call):
    """(what came of the call, what is there then)."""
    os.mkdir(root)
    for name, state in states:
        STATES[state](os.path.join(root, name))
    os.chmod(root, 0o777 if writable else 0o755)
    age(root)
    with caller(user):
        result = outcome(lambda: call(root))
    there = seen(root)
    remove(root)
    return result, there


def is_meant(what, state, got):
    return any(what.startswith(call) and state.startswith(begin) and got == result
               for (call, begin), result in DIFFERENCES.items())


class Compared:
    def __init__(self, ours, theirs):
        self.roots = ours + "/t", theirs + "/t"
        self.asked, self.calls, self.wrong = 0, 0, []

    def __call__(self, what, states, user, writable, call):
        self.asked += 1
        if self.asked % EACH != 0:
            return
        got, want = [attempt(root, writable, states, user, call) for root in self.roots]
        self.calls += 1
        if got != want and not is_meant(what, states[0][1], got[0]):
            there = [f"{g} and not {w}" for g, w in zip(got[1], want[1]) if g != w]
            there += [f"{len(got[1])} names and not {len(want[1])}"] * (len(got[1]) != len(want[1]))
            self.wrong.append(f"{what} of {[s for _, s in states]} as {user}, writable {writable}: "
                              f"{got[0]} and not {want[0]} {there}"[:600])

    def verdict(self):
        print(f"{self.calls} calls compared", flush=True)
        check(not self.wrong, f"{len(self.wrong)} differ:\n" + "\n".join(self.wrong[:40]))


def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        skip(f"{' '.join(argv)}: {done.stderr.strip()}")


def mounted_here(c, name, *argv):
    path = os.path.join(os.path.realpath(c.dir), name)
    os.mkdir(path)
    to_be_cleaned(path)
    run("mount", *argv, path)
    return path


@contextlib.contextmanager
def both(c, name):
    """A volume, whose metadata are in memory to be quick, and ext4."""
    image, url = os.path.join(c.dir, name + ".img"), "sqlite3://" + mounted_here(
        c, name + "-db", "-t", "tmpfs", "tmpfs") + "/db"
    with open(image, "wb") as f:
        f.truncate(IMAGE_BYTES)
    run("mkfs.ext4", "-q", "-F", "-b", "4096", image)
    theirs = mounted_here(c, name + "-ext4", "-o", "loop,nosuid,nodev", image)
    done = c.dfcctl("fs", "format", url, name, "--bucket", "dfc://" + name, "--trash-days=0")
    equal(done.returncode, 0, done.stderr)
    os.chmod(c.dir, 0o755)
    with mounted(c, url, "--allow-other", name=name) as ours:
        for root in (ours, theirs):
            os.chmod(root, 0o755)
        yield Compared(ours, theirs)
    run("umount", theirs)


USERS = (("root", True), ("user", True), ("user", False))


def test_calls_of_one_name(c):
    with both(c, "one") as compare:
        for what, call in CALLS.items():
            for state in STATES:
                for user, writable in USERS:
                    compare(what, [("name", state)], user, writable,
                            lambda root, call=call: call(root + "/name"))
        compare.verdict()


def test_places_of_a_name(c):
    few = ("stat", "open r", "open create", "mkdir", "mknod", "symlink", "rmdir", "unlink", "chmod",
           "truncate 4", "setxattr")
    with both(c, "places") as compare:
        for what in few:
            for place in PLACES:
                for state in STATES:
                    compare(what + place, [("name", state)], "user", True, lambda root, what=what, place=place:
                            CALLS[what](PLACES[place](root + "/name")))
        for what, call in CALLS.items():
            for name in (LONG, LONG + "n", "d" * 100 + "/" + LONG, "\udcff\udcfe", " ", "\n"):
                compare(f"{what} {name!r:.20}", [("x", "missing")], "root", True,
                        lambda root, call=call, name=name: call(root + "/" + name))
        compare.verdict()


def test_calls_of_two_names(c):
    few = [s for s in STATES if s not in ("socket", "device", "attribute", "set-id file",
                                          "file of nobody's rights")]
    with both(c, "two") as compare:
        for what, call in PAIRS.items():
            for one in few:
                for two in few:
                    compare(what, [("one", one), ("two", two)], "root" if what != "rename" else "user", True,
                            lambda root, call=call: call(root + "/one", root + "/two"))
        compare.verdict()


def test_places_of_two_names(c):
    """Also into oneself, and between directories."""
    ways = (("one", "one"), ("one", "one/below"), ("one/inside", "two"), ("one/inside", "one"),
            ("one/inside", "two/inside"), ("one/", "two"), ("one", "two/"), ("one/.", "two"),
            ("one/..", "two"), ("one", "two/below"), ("one", LONG + "n"), (".", "two"))
    directories = [s for s in STATES if "directory" in s] + ["file", "two names", "link to a file"]
    with both(c, "two-places") as compare:
        for what, call in PAIRS.items():
            for one, two in ways:
                for state in directories:
                    for other in ("missing", "full directory", "sticky directory"):
                        compare(f"{what} {one:.20} {two:.20}", [("one", state), ("two", other)], "user", True,
                                lambda root, call=call, one=one, two=two:
                                call(f"{root}/{one}", f"{root}/{two}"))
        compare.verdict()


def test_sanitizers_found_nothing(_):
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(targets=1)
