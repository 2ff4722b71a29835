#!/usr/bin/env python3
"""kill -9 of the process that serves a mount: another one takes over, and programs that read see
neither an error nor a wrong byte.  What was being written and was not stored is an error once."""

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time

from lib import check, equal, main, wait_for
from mount_bucket import fails, read
from mount_lib import (directory_of, has_ended, mount, mounted, mounts, needs_fuse,
                       said_by_sanitizers, server, supervisor)
from mount_user import place_of_a_user
from mount_write import write, wrote

MIB = 1 << 20
KILLS = 20
LARGE = random.Random(7).randbytes(9 * MIB + 77)
SMALL = {f"d/{i:03}": random.Random(i).randbytes(i * 97) for i in range(60)}
READER = """
import os, random, sys
directory, local, seed = sys.argv[1:]
r = random.Random(int(seed))
reference = os.open(local, os.O_RDONLY)
held = os.open(directory + "/large", os.O_RDONLY)  # throughout
size = os.fstat(held).st_size
rounds = 0
while not os.path.exists(local + ".end"):
    at, length = r.randrange(size), r.choice((1, 4096, 300000))
    if os.pread(held, length, at) != os.pread(reference, length, at):
        sys.exit(f"other bytes at {at}")
    names = sorted(os.listdir(directory + "/d"))
    if names != [f"{i:03}" for i in range(60)]:
        sys.exit(f"other names: {names}")
    name = r.choice(names)
    with open(f"{directory}/d/{name}", "rb") as f:
        if f.read() != random.Random(int(name)).randbytes(int(name) * 97):
            sys.exit(f"other bytes of {name}")
    rounds += 1
print(rounds)
"""


def kill_server(path):
    """The process that serves dies, and another one serves."""
    pid = server(path)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: has_ended(pid), "the process to end")
    check(server(path) != pid, "the same process")
    return pid


def fill(c, bucket):
    c.create(bucket)
    c.put(bucket, "large", LARGE).expect(200)
    for name, data in SMALL.items():
        c.put(bucket, name, data).expect(200)
    local = os.path.join(c.dir, bucket + "-large")
    write(local, LARGE)
    return local


def test_readers_do_not_see_kills(c):
    local = fill(c, "read")
    with mounted(c, "dfc://read", "--restarts=1000", "--buffer-size=8MiB", "--attr-ttl=100ms") as path:
        readers = [subprocess.Popen([sys.executable, "-c", READER, path, local, str(i)],
                                    stdout=subprocess.PIPE) for i in range(4)]
        chance = random.Random(1)
        for _ in range(KILLS):
            time.sleep(chance.random() * 0.2)  # anywhere in the readers' work
            kill_server(path)
        write(local + ".end", b"")
        rounds = [int(r.communicate(timeout=60)[0] or 0) for r in readers]
        equal([r.returncode for r in readers], [0] * 4, "readers")
        check(min(rounds) > 0, f"rounds: {rounds}")
        print(f"rounds of the readers: {rounds}")


def test_handles_and_directories_go_on(c):
    with mounted(c, "dfc://read", "--restarts=1000", "--max-readahead=0") as path:
        f = os.open(path + "/large", os.O_RDONLY)
        os.chdir(path + "/d")
        try:
            with os.scandir(path + "/d") as entries:
                names = [next(entries).name]
                kill_server(path)
                names += [e.name for e in entries]
            equal(sorted(names), sorted(n[2:] for n in SMALL), "a list that was begun before")
            equal(os.pread(f, 4096, 5 * MIB), LARGE[5 * MIB:5 * MIB + 4096], "an open file")
            equal(read("059"), SMALL["d/059"], "below the working directory")
            c.put("read", "large", b"other").expect(200)
            kill_server(path)
            fails(errno.ESTALE, os.pread, f, 4096, 7 * MIB)
            equal(read(path + "/large"), b"other", "a new open")
        finally:
            os.chdir("/")
            os.close(f)


def test_what_was_not_stored_is_an_error(c):
    c.create("write")
    with mounted(c, "dfc://write", "--writable", "--restarts=1000") as path:
        write(path + "/before", b"1")
        lost = os.open(path + "/lost", os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(lost, b"x")
        synced = os.open(path + "/synced", os.O_WRONLY | os.O_CREAT, 0o644)
        os.write(synced, b"y")
        os.fsync(synced)
        kill_server(path)
        fails(errno.EIO, os.write, lost, b"x")
        fails(errno.EIO, os.close, lost)
        os.close(synced)
        write(path + "/after", b"2")
        write(path + "/lost", b"again")
        equal({n: wrote(c, "write", n) for n in sorted(os.listdir(path))},
              {"after": b"2", "before": b"1", "lost": b"again", "synced": b"y"}, "objects")


def test_changes_are_done_once(c):
    """A request whose reply was lost comes again; that it is done is no error."""
    c.create("once")
    with mounted(c, "dfc://once", "--writable", "--restarts=1000") as path:
        wrong = []
        end = threading.Event()

        def change():
            i = 0
            while not end.is_set():
                i += 1
                try:
                    os.mkdir(f"{path}/d{i}")
                    os.rmdir(f"{path}/d{i}")
                except OSError as e:
                    wrong.append(e)

        thread = threading.Thread(target=change)
        thread.start()
        for _ in range(10):
            kill_server(path)
        end.set()
        thread.join()
        equal(wrong, [], "errors")
        equal(c.names("once"), [], "objects")


def test_a_killed_supervisor_ends_nothing(c):
    path = mount(c, "dfc://read")
    pid = supervisor(path)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: has_ended(pid), "the supervisor to end")
    equal(read(path + "/d/001"), SMALL["d/001"], "a file")
    fails(errno.ENODATA, os.getxattr, path, "user.dfc.supervisor")
    pid = server(path)
    equal(c.dfcctl("fs", "umount", path).returncode, 0, "umount")
    equal((mounts(path), has_ended(pid)), ([], True), "what is left")


def check_dead(c, path):
    """Nothing is read from the directory below, nor written there."""
    equal(len(mounts(path)), 1, "what is mounted")
    fails(errno.ENOTCONN, os.listdir, path)
    fails(errno.ENOTCONN, write, path + "/new", b"local")
    for verb in ("stats", "info"):
        done = c.dfcctl("fs", verb, path)
        equal(done.returncode, 1, f"fs {verb}")
        check("has died" in done.stderr and "umount" in done.stderr, done.stderr)


def test_too_many_deaths_end_the_mount(c):
    log = os.path.join(c.dir, "deaths.log")
    path = mount(c, "dfc://read", "--restarts=2", f"--log-file={log}")
    first = supervisor(path)
    kill_server(path)
    kill_server(path)
    os.kill(server(path), signal.SIGKILL)
    wait_for(lambda: has_ended(first), "the supervisor to end")
    check_dead(c, path)
    said = read(log)
    check(b"died too often" in said and b"dfcctl fs umount" in said, f"the log: {said}")
    equal(c.dfcctl("fs", "umount", path).returncode, 0, "umount")
    equal(mounts(path), [], "what is mounted")
    with mounted(c, "dfc://read", "--restarts=0") as path:
        first = supervisor(path)
        os.kill(server(path), signal.SIGKILL)
        wait_for(lambda: has_ended(first), "the supervisor to end")
        check_dead(c, path)
        equal(c.dfcctl("fs", "umount", path).returncode, 0, "umount")
        mount(c, "dfc://read")  # for the end of mounted()


def test_a_signal_ends_both(c):
    for who in (supervisor, server):
        path = mount(c, "dfc://read")
        pids = supervisor(path), server(path)
        os.kill(who(path), signal.SIGTERM)
        wait_for(lambda: all(map(has_ended, pids)), "both processes to end")
        equal(mounts(path), [], "what is mounted")


def test_a_cluster_that_is_away(c):
    """The process that takes over waits for the cluster, as the first one would."""
    with mounted(c, "dfc://read", "--restarts=1000", "--retries=100") as path:
        c.kill("p1")
        os.kill(server(path), signal.SIGKILL)
        c.start("p1")
        equal(read(path + "/d/010"), SMALL["d/010"], "a file")
        umount_at = directory_of(c, "one")
        equal(umount_at, path, "where it is")


def test_a_user_mounts(c):
    with place_of_a_user(c) as (path, call):
        call("./dfcctl", "fs", "mount", "dfc://write", path, "--writable", "--restarts=100")
        said = dict(line.split() for line in call("./dfcctl", "fs", "info", path).splitlines())
        call("sh", "-c", f"echo user > {path}/user")
        os.kill(int(said["pid"]), signal.SIGKILL)
        equal(call("cat", path + "/user"), "user\n", "after a kill")
        call("./dfcctl", "fs", "umount", path)
        check(has_ended(int(said["supervisor"])), "the supervisor is there after umount")
        equal((mounts(path), wrote(c, "write", "user")), ([], b"user\n"), "what is left")


def test_sanitizers_found_nothing(c):
    del c
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(targets=3)
