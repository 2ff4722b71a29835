#!/usr/bin/env python3
"""Dumps of a volume that its mounts make by themselves: kept, elected, loaded after the database is
lost; kills, and a bucket without room."""

import contextlib
import gzip
import json
import os
import random
import signal
import tempfile
import threading
import time

from lib import check, equal, main, wait_for
from mount_bucket import read
from mount_cache import stats
from mount_lib import clean, kill_all, mount, mounted, needs_fuse, said_by_sanitizers, server
from mount_trees import fs
from mount_volume import fsck, made, url_of
from mount_write import write

OFTEN = "--dump-every=1s"


def dumps(c, name):
    """The newest last."""
    return [n for n in c.names(name) if n.startswith(f"{name}/meta/")]


def next_dump(c, name):
    """One that began after this call."""
    before = dumps(c, name)
    first = wait_for(lambda: [n for n in dumps(c, name) if n not in before], "a dump")[-1]
    return wait_for(lambda: [n for n in dumps(c, name) if n > first], "the next dump")[-1]


def lose(c, name):
    for end in ("", "-wal", "-shm"):
        path = os.path.join(c.dir, name + ".db" + end)
        if os.path.exists(path):
            os.unlink(path)


def test_a_lost_database_comes_back(c):
    url, data = made(c, "lost"), random.Random(3).randbytes(9_000_000)
    path = mount(c, url, OFTEN)
    os.mkdir(path + "/d")
    write(path + "/d/large", data)
    write(path + "/small", b"s" * 1000)
    os.symlink("d/large", path + "/link")
    last = next_dump(c, "lost")
    write(path + "/later", b"after the dump")
    kill_all(path)
    clean()
    lose(c, "lost")
    fs(c, "fsck", url, status=3)
    fs(c, "load", url, "dfc://lost/" + last)
    equal(len(fsck(c, "lost", 0, "--read")), 1, "findings")
    with mounted(c, url, name="two") as path:
        check(read(path + "/link") == data, "other bytes")
        equal(read(path + "/small"), b"s" * 1000, "bytes")
        write(path + "/new", b"n" * 100_000)
        equal(read(path + "/new"), b"n" * 100_000, "new bytes")
    equal(len(fsck(c, "lost", 0, "--read")), 1, "findings at the end")


def test_a_dump_is_a_file_of_json_lines(c):
    url = made(c, "lines")
    with mounted(c, url, OFTEN) as path:
        write(path + "/f", b"f" * 1000)
        last = next_dump(c, "lines")
    packed = c.get("lines", last).expect(200).body
    lines = [json.loads(line) for line in gzip.decompress(packed).splitlines()]
    equal((lines[0], lines[1]["kind"], lines[-1]), ({"dump": 1}, "FORMAT", {"end": len(lines) - 2}), "ends")
    for name, content in (("packed", packed), ("plain", gzip.decompress(packed))):
        file = os.path.join(c.dir, name + ".dump")
        write(file, content)
        fs(c, "load", url_of(c, name), file)
    with mounted(c, url_of(c, "plain")) as path:
        equal(read(path + "/f"), b"f" * 1000, "bytes")
    write(file, packed[:-20])
    check("line" in fs(c, "load", url_of(c, "part"), file, status=1).stderr, "a part of a dump")
    fs(c, "load", url_of(c, "part"), "dfc://lines/lines/meta/none", status=3)
    fs(c, "load", url_of(c, "part"), "dfc://lines", status=2)


def change(path, ends, changes):
    """Names come, move and go; what one commit does is never seen half."""
    os.makedirs(path + "/from")
    os.makedirs(path + "/to")
    while not ends.is_set():
        name = f"{len(changes) % 50}"
        write(f"{path}/from/{name}", name.encode() * 1000)
        os.link(f"{path}/from/{name}", f"{path}/to/link-{name}")
        os.rename(f"{path}/from/{name}", f"{path}/to/{name}")
        os.unlink(f"{path}/to/link-{name}")
        changes.append(name)


def test_a_volume_in_use_is_dumped(c):
    ends, changes = threading.Event(), []
    with mounted(c, made(c, "in-use"), OFTEN) as path:
        writer = threading.Thread(target=change, args=(path, ends, changes))
        writer.start()
        try:
            for _ in range(2):
                next_dump(c, "in-use")
            wait_for(lambda: len(changes) > 50, "changes")
        finally:
            ends.set()
            writer.join()
    for name in dumps(c, "in-use"):
        url = url_of(c, os.path.basename(name))
        fs(c, "load", url, "dfc://in-use/" + name)
        fs(c, "fsck", url, "--read")


def test_the_newest_are_kept_and_are_no_garbage(c):
    url = made(c, "kept")
    with mounted(c, url, OFTEN, "--dump-keep=2") as path:
        c.put("kept", "kept/meta/notes", b"of an operator").expect(200)
        first = wait_for(lambda: dumps(c, "kept")[:-1], "a dump")[0]
        wait_for(lambda: first not in dumps(c, "kept"), "the first dump to be deleted")
        write(path + "/f", b"f")
        wait_for(lambda: stats(path)["dfc_mount_dumps_total"] >= 5, "five dumps")
    names = dumps(c, "kept")
    equal((len(names), names[-1]), (3, "kept/meta/notes"), "dumps of the bucket, and what is none")
    fs(c, "gc", url, "--delete", "--grace=0s")
    equal(dumps(c, "kept"), names, "after gc")


def test_two_mounts_make_one_dump(c):
    url = made(c, "elected")
    rare = "--dump-every=20s"  # a look in 2 s
    with mounted(c, url, rare) as path, mounted(c, url, rare, name="other") as other:
        for each in (path, other):
            wait_for(lambda each=each: stats(each).get("dfc_mount_dump_newest_seconds"), "a dump that both see")
        equal(len(dumps(c, "elected")), 1, "dumps")
        made_by = [stats(each).get("dfc_mount_dumps_total", 0) for each in (path, other)]
        equal(sorted(made_by), [0, 1], "dumps by each mount")


def test_no_dumps_without_a_time(c):
    url = made(c, "never")
    with mounted(c, url, "--dump-every=0s") as path, mounted(c, url, OFTEN, "--read-only", name="reader"):
        write(path + "/f", b"f")
        with mounted(c, made(c, "witness"), OFTEN, name="witness"):
            wait_for(lambda: len(dumps(c, "witness")) >= 3, "dumps of another volume")
    equal(dumps(c, "never"), [], "dumps")


def is_dumping(pid):
    """Its file is there from the snapshot to the end of the PUT."""
    links = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return any("/dfc-dump-" in link for link in links)


def test_a_kill_leaves_whole_dumps_alone(c):
    url = made(c, "killed")
    with mounted(c, url, "--dump-every=0s") as path:
        for d in range(20):
            os.mkdir(f"{path}/{d}")
            for f in range(100):
                os.symlink("x" * 500, f"{path}/{d}/{f}")
    with mounted(c, url, OFTEN, "--restarts=20") as path:
        for _ in range(6):
            pid, until = server(path), time.monotonic() + 60
            while not is_dumping(pid):
                check(time.monotonic() < until, "no dump is made")
            os.kill(pid, signal.SIGKILL)
        next_dump(c, "killed")
    for name in dumps(c, "killed"):
        lines = gzip.decompress(c.get("killed", name).expect(200).body).splitlines()
        equal(json.loads(lines[-1]), {"end": len(lines) - 2}, name)
    left = [n for n in os.listdir(tempfile.gettempdir()) if n.startswith("dfc-dump-")]
    equal(left, [], "files of killed processes")


def set_props(c, bucket, **props):
    c.call("PUT", f"/v1/buckets/{bucket}", {"action": "setprops", "value": props}).expect(200)


def test_a_bucket_without_room_harms_no_program(c):
    url = made(c, "full")
    with mounted(c, url, OFTEN) as path:
        write(path + "/f", b"f" * 100_000)
        last = next_dump(c, "full")
        set_props(c, "full", quota_objects=1)
        wait_for(lambda: stats(path).get("dfc_mount_dump_errors_total", 0) >= 2, "errors")
        check(last in dumps(c, "full"), "the last dump is gone")
        equal(read(path + "/f"), b"f" * 100_000, "bytes")
        os.mkdir(path + "/d")
        set_props(c, "full", quota_objects=0)
        next_dump(c, "full")


def test_sanitizers_found_nothing(c):
    del c
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(targets=2)
