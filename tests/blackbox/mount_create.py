#!/usr/bin/env python3
"""open(O_CREAT) of a name that another mount makes at the same moment.  The kernel has looked the
name up, and has found none.  Then it believes that the call makes the file, and checks no rights.
The outcome must be as if the file had been there before."""

import contextlib
import os
import signal
import sqlite3
import subprocess

from lib import equal, main, wait_for
from mount_bucket import read
from mount_lib import mounted, needs_fuse, said_by_sanitizers, server
from mount_volume import FRESH, made
from mount_write import write

BOB = 65534
SLEEPS = ("35", "230")  # the numbers of nanosleep(2) and clock_nanosleep(2)
OPEN = """
import errno, os, sys
try:
    print("opened", os.fstat(os.open(sys.argv[1], int(sys.argv[2]), 0o400)).st_size)
except OSError as e:
    print(errno.errorcode[e.errno])
"""


def open_as_bob(directory, name, flags):
    """In the directory: the way to it is not for all."""
    # pylint: disable-next=consider-using-with
    return subprocess.Popen(["/usr/bin/python3", "-c", OPEN, name, str(os.O_CREAT | flags)], cwd=directory,
                            text=True, stdout=subprocess.PIPE, user=BOB, group=BOB, extra_groups=[])


def waits_for_lock(pid):
    """SQLite asks again and again for the lock, and sleeps in between."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{pid}/task/{thread}/syscall", encoding="ascii") as f:
                if f.read().split()[0] in SLEEPS:
                    return True
    return False


def is_stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[0] == "T"


def races(c, database, one, name, flags, make):
    """What Bob's open says.  `make` makes the file after Bob's lookup: the create waits for the
    database first, and then for its process, which is stopped."""
    pid = server(one)
    with contextlib.closing(sqlite3.connect(os.path.join(c.dir, database), isolation_level=None)) as d:
        d.execute("begin immediate")
        bob = open_as_bob(one + "/d", name, flags)
        wait_for(lambda: waits_for_lock(pid), "the create to wait for the database")
        os.kill(pid, signal.SIGSTOP)
        try:
            wait_for(lambda: is_stopped(pid), "the process to stop")
            d.execute("rollback")
            make()
        finally:
            os.kill(pid, signal.SIGCONT)
    return bob.communicate(timeout=60)[0].strip()


def file_of(path, owner, mode):
    def make():
        write(path, b"bytes")
        os.chown(path, owner, owner)
        os.chmod(path, mode)
    return make


def test_a_create_opens_no_file_without_a_right(c):
    url = made(c, "create")
    with mounted(c, url, *FRESH) as one, mounted(c, url, *FRESH, name="two") as two:
        os.mkdir(two + "/d")
        os.chmod(two + "/d", 0o777)
        write(two + "/other", b"other")
        alice = two + "/d/alice"
        for number, (flags, owner, mode, wanted, left) in enumerate((
                (os.O_RDWR | os.O_TRUNC, 0, 0o600, "EACCES", b"bytes"),
                (os.O_RDONLY, 0, 0o600, "EACCES", b"bytes"),
                (os.O_RDONLY, 0, 0o644, "opened 5", b"bytes"),
                (os.O_RDONLY | os.O_TRUNC, 0, 0o644, "EACCES", b"bytes"),
                (os.O_RDWR | os.O_TRUNC, 0, 0o666, "opened 0", b""),
                (os.O_RDWR | os.O_EXCL, 0, 0o600, "EEXIST", b"bytes"),
                (os.O_RDWR | os.O_EXCL, BOB, 0o600, "EEXIST", b"bytes"),
                (os.O_WRONLY | os.O_TRUNC, BOB, 0o600, "opened 0", b""),
                (os.O_RDWR, BOB, 0o400, "EACCES", b"bytes"),
                (os.O_RDONLY, BOB, 0o400, "opened 5", b"bytes"))):
            path = alice + str(number)
            got = races(c, "create.db", one, os.path.basename(path), flags, file_of(path, owner, mode))
            equal((got, read(path)), (wanted, left), f"round {number}")
        link = races(c, "create.db", one, "link", os.O_RDONLY, lambda: os.symlink("../other", two + "/d/link"))
        equal(link, "opened 5", "a link")
        equal(races(c, "create.db", one, "dir", os.O_RDWR, lambda: os.mkdir(two + "/d/dir")), "EISDIR", "a directory")


def test_sanitizers_found_nothing(c):
    del c
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(targets=2)
