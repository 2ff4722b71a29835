#!/usr/bin/env python3
"""A volume on Redis: what mounts of several machines share.

Close-to-open is judged.  A file has one writer, and each write makes it longer.  What an open
returned must be no older than the last close before the open, and whole, while mounts and the
server are killed and connections are cut."""

import contextlib
import errno
import os
import random
import shlex
import subprocess
import sys
import threading
import time

import mount_dumps
import mount_trees
import mount_volume
import mount_volume_group
from lib import CLUSTER, check, equal, main
from mount_bucket import fails
from mount_lib import (DETACH, LIBC, clean, directory_of, kill_all, mount, mounted, mounts, needs_fuse,
                       said_by_sanitizers, umount)
from redis_lib import Cutter, Redis, needs_redis

SERVER = []  # one for all tests; a database each
DATABASES = {}
LAST = 63  # of the server's
MOUNTS = ("one", "two", "three")
ROUND_SECONDS = 5
ROUND_SECONDS_MAX = 60  # on a slow machine
WORD = 8


def redis():
    if not SERVER:
        SERVER.append(Redis())
    return SERVER[0]


def url_of(_, name, port=None):
    return redis().url(DATABASES.setdefault(name, len(DATABASES)), port)


sqlite_url_of, mount_volume.url_of = mount_volume.url_of, url_of


def made(c, name):
    return mount_volume.made(c, name)


# --- as on SQLite ----------------------------------------------------------------------------------

def test_files_stay_over_mounts(c):
    mount_volume.test_files_stay_over_mounts(c)


def test_random_calls_as_on_another_file_system(c):
    mount_volume.test_random_calls_as_on_another_file_system(c)


def test_random_calls_of_two_mounts_in_turns(c):
    mount_volume.test_random_calls_of_two_mounts_in_turns(c)


def test_two_mounts_are_one_file_system(c):
    mount_volume.test_two_mounts_are_one_file_system(c)


def test_what_was_synced_survives_kill_9(c):
    mount_volume.test_what_was_synced_survives_kill_9(c)


def test_trees(c):
    mount_trees.test_rmr(c)
    mount_trees.test_clone(c)
    mount_trees.test_trash(c)


def test_a_volume_in_use_is_dumped(c):
    mount_dumps.test_a_volume_in_use_is_dumped(c)


def test_limits(c):
    mount_volume.test_limits(c)


# --- what the server must be -----------------------------------------------------------------------

def test_a_server_that_may_forget_is_warned_of(c):
    server = Redis("--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
    done = c.dfcctl("fs", "format", server.url(), "forgets", "--bucket", "dfc://forgets")
    equal(done.returncode, 0, done.stderr)
    for says in ("appendonly yes", "noeviction"):
        check(says in done.stderr, f"{says}: {done.stderr}")
    server.remove()
    done = c.dfcctl("fs", "format", redis().url(LAST), "keeps", "--bucket", "dfc://keeps")
    equal((done.returncode, done.stderr), (0, ""), "a server that keeps all")


def test_a_password_is_not_shown(c):
    server = Redis("--appendonly", "yes", "--requirepass", "se@cret")
    where = f"127.0.0.1:{server.port}/0"
    url = f"redis://:se@cret@{where}"
    done = c.dfcctl("fs", "format", url, "locked", "--bucket", "dfc://locked")
    equal(done.returncode, 0, done.stderr)
    done = c.dfcctl("fs", "format", url, "locked", "--bucket", "dfc://locked")
    check(done.returncode != 0 and "se@cret" not in done.stderr, done.stderr)
    with mounted(c, url) as path:
        shown = mounts(path)[0]
        check("se@cret" not in shown and where in shown, shown)
    done = c.dfcctl("fs", "mount", f"redis://{where}", directory_of(c, "no"))
    check(done.returncode != 0 and "AUTH" in done.stderr.upper(), done.stderr)
    with mounted(c, f"redis://{where}", env=dict(os.environ, DFC_META_PASSWORD="se@cret")) as path:
        os.mkdir(path + "/d")
    server.remove()


# --- close-to-open ---------------------------------------------------------------------------------

class Judge:
    """What was written and read, by one clock."""

    def __init__(self):
        self.lock = threading.Lock()
        self.writes = {}  # file: [(stamp, begun, closed or None)]
        self.reads = []  # (file, stamp, opened, ended), by length and by bytes
        self.errors = []

    def wrote(self, name, stamp, begun, closed):
        with self.lock:
            self.writes.setdefault(name, []).append((stamp, begun, closed))

    def read(self, name, data, opened, ended):
        """The kernel asks for the length, and then for pages: each may be of another write, if
        there is one meanwhile."""
        words = {data[i:i + WORD] for i in range(0, len(data), WORD)}
        stamps = {int.from_bytes(word, "big") for word in words}
        check(len(data) % WORD == 0 and len(data) // WORD <= max(stamps, default=0),
              f"'{name}' has {len(data)} bytes with the stamps {sorted(stamps)}")
        with self.lock:
            for stamp in stamps | {len(data) // WORD}:
                self.reads.append((name, stamp, opened, ended))

    def failed(self, error):
        with self.lock:
            self.errors.append(error)

    def seen(self):
        with self.lock:
            return sum(1 for writes in self.writes.values() for w in writes if w[2]), len(self.reads)

    def has_enough(self):
        writes, reads = self.seen()
        return writes >= 20 and reads >= 50

    def verdict(self):
        for name, stamp, opened, ended in self.reads:
            writes = self.writes.get(name, [])
            least = max((s for s, _, closed in writes if closed and closed < opened), default=0)
            most = max((s for s, begun, _ in writes if begun < ended), default=0)
            check(least <= stamp <= most,
                  f"an open of '{name}' returned write {stamp}; closed before: {least}, begun: {most}")
        check(self.has_enough(), f"writes and reads: {self.seen()}")


def write_until(end, judge, path, name):
    stamp = 0
    while not end.is_set():
        stamp += 1
        begun, closed = time.monotonic(), None
        try:
            fd = os.open(f"{path}/d/{name}", os.O_WRONLY | os.O_CREAT)
            try:
                os.pwrite(fd, stamp.to_bytes(WORD, "big") * stamp, 0)
            finally:
                os.close(fd)
            closed = time.monotonic()
        except OSError as e:
            judge.failed(e)
            end.wait(0.05)
        judge.wrote(name, stamp, begun, closed)


def read_until(end, judge, path, seed):
    rng = random.Random(seed)
    while not end.is_set():
        name = rng.choice(MOUNTS)
        opened = time.monotonic()
        try:
            with open(f"{path}/d/{name}", "rb", buffering=0) as f:
                data = f.read(1 << 20)
        except OSError as e:
            judge.failed(e)
            end.wait(0.05)
            continue
        judge.read(name, data, opened, time.monotonic())


class Guarded(threading.Thread):
    """A failed check of a thread is one of the test."""

    def __init__(self, function, *args):
        super().__init__()
        self.function, self.args, self.failure = function, args, None
        self.start()

    def run(self):
        try:
            self.function(*self.args)
        except Exception as e:
            self.failure = e


def log_of(c, name):
    return os.path.join(c.dir, name + ".mounts.log")


def judged(c, name, fault, port=None):
    """Three mounts write and read; fault(paths) is done again and again.  Returns the errors that
    programs got."""
    made(c, name)
    url = url_of(c, name, port)
    paths = {m: mount(c, url, "--log-file", log_of(c, name), name=m) for m in MOUNTS}
    os.mkdir(paths["one"] + "/d")  # not in the directory that a killed mount leaves
    for file in MOUNTS:
        with open(f"{paths['one']}/d/{file}", "wb"):
            pass
    judge, end = Judge(), threading.Event()
    threads = [Guarded(write_until, end, judge, paths[m], m) for m in MOUNTS]
    threads += [Guarded(read_until, end, judge, paths[m], m) for m in MOUNTS]
    began = time.monotonic()
    try:
        while (time.monotonic() < began + ROUND_SECONDS or not judge.has_enough()) and \
                time.monotonic() < began + ROUND_SECONDS_MAX and all(t.failure is None for t in threads):
            fault(paths)
        end.set()
        for t in threads:
            t.join()
        for t in threads:
            if t.failure is not None:
                raise t.failure
        judge.verdict()
    except BaseException:
        end.set()
        clean()
        raise
    for m in MOUNTS:
        umount(c, paths[m])
    return judge.errors


def pause(seconds):
    threading.Event().wait(seconds)


def test_close_to_open(c):
    equal(judged(c, "calm", lambda _: pause(0.2)), [], "errors")


def test_close_to_open_while_mounts_are_killed(c):
    rng = random.Random(1)

    def fault(paths):
        pause(rng.uniform(0.1, 0.6))
        name = rng.choice(MOUNTS)
        kill_all(paths[name])
        equal(LIBC.umount2(paths[name].encode(), DETACH), 0, "umount2")
        mount(c, url_of(c, "kills"), name=name)

    judged(c, "kills", fault)


def test_close_to_open_while_the_server_is_killed(c):
    rng = random.Random(2)

    def fault(_):
        pause(rng.uniform(0.1, 0.6))
        redis().kill()
        pause(rng.uniform(0, 0.3))
        redis().start()

    equal(judged(c, "restarts", fault), [], "errors")


def test_close_to_open_while_connections_are_cut(c):
    cutter = Cutter(redis().port)
    rng = random.Random(3)
    cuts = []

    def fault(_):
        pause(rng.uniform(0.02, 0.2))
        cuts.append(cutter.cut())

    equal(judged(c, "cuts", fault, cutter.port), [], "errors")
    check(sum(cuts) > 10, f"connections that were cut: {cuts}")
    cutter.close()


# A process of its own kills and starts targets: a child of the test has its open files of the mount,
# and closing them waits for the target.
OPERATOR = 'while read -r words; do eval "\\"\\$@\\" $words" >/dev/null 2>&1; echo $?; done'


@contextlib.contextmanager
def operator(c):
    """A function that has a command of `cluster` done."""
    with subprocess.Popen(["bash", "-c", OPERATOR, "-", sys.executable, CLUSTER], text=True, bufsize=1,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:

        def does(command, *args):
            shell.stdin.write(shlex.join([command, "--dir", c.dir, *args]) + "\n")
            equal(shell.stdout.readline(), "0\n", f"cluster {command} {args}")

        yield does
        shell.stdin.close()


def test_close_to_open_while_targets_are_killed(c):
    """What has the bytes is away: an open may fail, and never shows older ones."""
    rng = random.Random(4)
    with operator(c) as does:

        def fault(_):
            pause(rng.uniform(0.1, 0.6))
            node = rng.choice(["t1", "t2"])
            does("kill", node, "-9")
            c.ended_by_test.add(node)
            pause(rng.uniform(0, 0.3))
            does("start", node)
            c.ended_by_test.discard(node)

        judged(c, "targets", fault)


# --- a server that lost commits ----------------------------------------------------------------------

def test_a_server_that_lost_commits_is_refused(c):
    url = made(c, "lost")
    path = mount(c, url)
    try:
        os.mkdir(path + "/before")
        redis().kill()
        saved = redis().dir + ".saved"
        subprocess.run(["cp", "-a", redis().dir, saved], check=True)
        redis().start()
        os.mkdir(path + "/lost")
        redis().kill()
        subprocess.run(["rm", "-rf", redis().dir], check=True)
        os.rename(saved, redis().dir)
        redis().start()
        fails(errno.EIO, os.mkdir, path + "/after")
        fails(errno.EIO, os.listdir, path)
        with mounted(c, url, name="again") as again:
            equal(os.listdir(again), ["before"], "names")
            os.mkdir(again + "/after")
        fails(errno.EIO, os.mkdir, path + "/other")
        equal(c.dfcctl("fs", "umount", path).returncode, 0, "umount")
        equal(mounts(path), [], "mounts")
    finally:
        clean()


# --- a cache group ---------------------------------------------------------------------------------

def test_two_mounts_share_a_group_of_three(c):
    with mount_volume_group.Group(c, "group", made) as (url, members):
        mount_volume_group.once_for_two_mounts(c, url, members)


def test_no_sanitizer_found_anything(_):
    found = said_by_sanitizers()
    check(not found, "\n".join(found)[:4000])


if __name__ == "__main__":
    needs_redis()
    needs_fuse()
    main(proxies=1, targets=2)
