#!/usr/bin/env python3
"""The worker threads of a target come with its work and leave after it: an idle target has few."""

import collections
import contextlib
import glob

from lib import Failed, in_parallel, main, wait_for

THREADS_MAX = 32
CLASSES = ("mover", "hander", "commit", "writer", "uploader", "fetcher", "asker", "ec-read")
WORKERS_KEPT = 1  # so that a state of the cluster is taken in whatever the system refuses
ARGS = ["--target-arg=--thread-idle=100ms", "--target-arg=--http-threads=2",
        "--target-arg=--disk-readers=4"]
SECONDS = 180  # the readers of a disk stay for a minute


def threads(pid):
    """How many of each name; those that end meanwhile are not counted."""
    names = collections.Counter()
    for path in glob.glob(f"/proc/{pid}/task/*/comm"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(path, "rb") as f:
            names[f.read().decode().strip()] += 1
    return names


def work(c):
    c.create("one")
    c.create("two", copies=2)
    for bucket in ("one", "two"):
        in_parallel(lambda n, b=bucket: c.put(b, n, n.encode() * 100), [f"o{i}" for i in range(64)])
        in_parallel(lambda n, b=bucket: c.get(b, n).expect(200), [f"o{i}" for i in range(64)])


def is_idle(pid):
    now = threads(pid)
    return (now.total() <= THREADS_MAX and now["worker"] == WORKERS_KEPT
            and not any(now[name] for name in CLASSES))


def idle(c, node):
    pid = c.pid(node)
    try:
        wait_for(lambda: is_idle(pid), f"{node} has few threads", SECONDS)
    except Failed as e:
        raise Failed(f"{e}; its threads: {dict(threads(pid))}") from e


def test_idle_target_has_few_threads(c):
    work(c)
    for node in c.targets():
        idle(c, node)


if __name__ == "__main__":
    main(targets=2, mountpaths=1, args=ARGS)
