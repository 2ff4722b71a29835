#!/usr/bin/env python3
"""A mount whose cluster is away: a program waits once, and ends at once if it is killed; so do the
mount, and a mount that begins."""

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import threading

from frozen import frozen
from lib import check, equal, main, wait_for
from mount_bucket import fails, read
from mount_lib import (directory_of, has_ended, mount, mounted, mounts, needs_fuse, said_by_sanitizers, server,
                       supervisor, waits_for_fuse)

# Calls of programs, and the numbers of the system calls in which they wait.
X86 = os.uname().machine == "x86_64"
CALLS = {"os.listdir(path)": 217 if X86 else 61,
         "os.stat(path + '/o')": 262 if X86 else 79,
         "os.open(path + '/p', os.O_RDONLY)": 257 if X86 else 56,
         "os.statvfs(path)": 137 if X86 else 43,
         "os.listxattr(0)": 196 if X86 else 13}
ENDLESS = "--idle-timeout=1h"  # nothing but a kill ends a wait within the time of the test


def program(path, call, opened):
    """opened: a file that the program has as 0."""
    script = f"import os, sys\npath = sys.argv[1]\n{call}"
    process = subprocess.Popen([sys.executable, "-c", script, path], stdin=opened, stderr=subprocess.DEVNULL)
    waits_for_fuse(process, CALLS[call])
    return process


def test_a_killed_program_ends(c):
    c.create("killed")
    for name in ("o", "p"):
        c.put("killed", name, b"data").expect(200)
    for number in (signal.SIGKILL, signal.SIGTERM):
        with mounted(c, "dfc://killed", ENDLESS, "--attr-ttl=0", "--entry-ttl=0") as path:
            with open(path + "/o", "rb") as opened, frozen(c, "p1"):
                programs = [program(path, call, opened) for call in CALLS]
                opened.close()
                for process in programs:
                    process.send_signal(number)
                for process, call in zip(programs, CALLS):
                    equal(process.wait(60), -number, f"the end of {call}")
                equal(c.dfcctl("fs", "umount", path).returncode, 0, "umount of a cluster that is away")
            mount(c, "dfc://killed")  # for the end of mounted()


def test_another_signal_ends_no_call(c):
    """Programs do not expect EINTR of stat(2)."""
    script = ("import os, signal, sys\nsignal.signal(signal.SIGUSR1, lambda *a: None)\n"
              "signal.siginterrupt(signal.SIGUSR1, True)\nos.stat(sys.argv[1])")
    with mounted(c, "dfc://killed", ENDLESS, "--attr-ttl=0", "--entry-ttl=0") as path:
        with frozen(c, "p1"):
            process = subprocess.Popen([sys.executable, "-c", script, path + "/o"])
            waits_for_fuse(process, CALLS["os.stat(path + '/o')"])
            process.send_signal(signal.SIGUSR1)
        equal(process.wait(60), 0, "the end")


def test_the_mount_ends_while_programs_wait(c):
    path = mount(c, "dfc://killed", ENDLESS, "--attr-ttl=0", "--entry-ttl=0")
    pids = supervisor(path), server(path)
    with open(path + "/o", "rb") as opened, frozen(c, "p1"):
        programs = [program(path, call, opened) for call in CALLS]
        opened.close()
        os.kill(pids[0], signal.SIGTERM)
        wait_for(lambda: all(map(has_ended, pids)), "the processes of the mount to end")
        for process in programs:
            check(process.wait(60) != 0, "a program saw no error")
    equal(mounts(path), [], "what is mounted")


def test_a_list_fails_once(c):
    """A failure behind the entries "." and ".." is not waited for again."""
    log = os.path.join(c.dir, "list.log")
    with mounted(c, "dfc://killed", "--retries=0", f"--log-file={log}") as path:
        c.kill("t1")
        with open(log, "w", encoding="ascii"):
            fails(errno.EIO, os.listdir, path)
        equal(read(log).count(b"call failed"), 1, "calls of one list")
        c.start("t1")
        c.wait_node("t1", "active")
        wait_for(lambda: sorted(os.listdir(path)) == ["o", "p"], "the list")


@contextlib.contextmanager
def refuser():
    """An endpoint that ends each connection: its URL, and a list with an entry for each of them."""
    met = []
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        with contextlib.suppress(OSError):  # its end
            while True:
                met.append(listener.accept()[1])  # closed by the collector of garbage, at once

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", met
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


def test_a_mount_begins_with_the_patience_of_dfcctl(c):
    def tries(*words):
        with refuser() as (url, met):
            done = c.dfcctl(*words, "--endpoint", url)
            equal(done.returncode, 5, done.stderr)
            return len(met)

    path = directory_of(c, "begin")
    wanted = tries("ls", "dfc://killed")
    for words in (("fs", "mount", "dfc://killed"), ("fs", "mount", "dfc://killed", "--foreground"),
                  ("vdisc", "mount", "dfc://killed/i.vdsc")):
        equal(tries(*words, path), wanted, f"tries of {words}")
    equal(tries("fs", "mount", "dfc://killed", path, "--retries=1"), 2, "tries, given")
    equal(mounts(path), [], "what is mounted")


def test_sanitizers_found_nothing(c):
    del c
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(targets=2)
