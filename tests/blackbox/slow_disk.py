#!/usr/bin/env python3
"""A disk that is slow, or hangs, holds up the reads of its own objects and nothing else."""

import os
import random
import re
import threading

from lib import equal, in_parallel, main, wait_for

SIZES = [1, 4096, 32768, 32769, 300_000,
         5_000_000]  # read with the headers, sent from the file, in pieces
WAITING = 20  # more than there are HTTP threads, and readers of one disk
SLOW, FAST = "mp1", "mp2"
RANDOM = random.Random(4711)


def contents():
    """{(bucket, name): bytes}, some of each size, in a bucket that is verified and in one that is
    not."""
    return {(bucket, f"object-{i:04d}-of-{bucket}"): RANDOM.randbytes(SIZES[i % len(SIZES)])
            for bucket in ("plain", "checked") for i in range(48)}


OBJECTS = contents()


def lies_on(c, mountpath):
    """The objects on one mountpath: their files' attributes have their names."""
    found = []
    for path in c.object_files("t1"):
        if f"/{mountpath}/" in path:
            name = re.search(rb"object-[0-9]{4}-of-(plain|checked)", os.getxattr(path, "user.dfc"))
            found.append((name.group(1).decode(), name.group().decode()))
    return found


def restart(c, faults):
    c.kill("t1", "-9")
    c.start("t1", f"--arg=--faults={faults}", "--arg=--disk-readers=2")
    c.wait_node("t1", "active")


def read(c, key):
    equal(c.get(*key).expect(200).body, OBJECTS[key], f"bytes of {key}")


def test_objects_on_both_disks(c):
    c.create("plain")
    c.create("checked", verify_on_read=True)
    in_parallel(lambda key: c.put(*key, OBJECTS[key]), OBJECTS)
    for mountpath in (SLOW, FAST):
        equal({len(OBJECTS[k])
               for k in lies_on(c, mountpath)}, set(SIZES), f"sizes of what lies on {mountpath}")


def hang(c, faults):
    """While reads of the one disk hang, everything on the other is served."""
    restart(c, faults)
    slow, fast = lies_on(c, SLOW), lies_on(c, FAST)
    answered = []

    def ask(key):
        try:
            answered.append(c.get(*key))
        except OSError:
            pass  # it was killed, at the end
        finally:
            c.http.close()

    threads = [threading.Thread(target=ask, args=(slow[i % len(slow)],)) for i in range(WAITING)]
    for thread in threads:
        thread.start()

    def all_are_there():
        metrics = c.call("GET", "/metrics", node="t1").expect(200).body.decode()
        return int(re.search(r'http_connections\{listener="public"\} ([0-9]+)',
                             metrics).group(1)) > WAITING

    wait_for(all_are_there, "as many connections")
    for _ in range(3):
        in_parallel(lambda key: read(c, key), fast)
    equal(answered, [], "replies from the disk that hangs")
    c.kill("t1", "-9")
    for thread in threads:
        thread.join()
    c.start("t1")
    c.wait_node("t1", "active")


def test_a_disk_that_hangs_when_it_is_read(c):
    hang(c, f"disk.cold[/{SLOW}]=EAGAIN,disk.read[/{SLOW}]=delay:1h")


def test_a_disk_that_hangs_when_a_file_is_opened(c):
    hang(c, f"disk.cold[/{SLOW}]=EAGAIN,disk.open[/{SLOW}]=delay:1h")


def test_nothing_is_in_memory(c):
    restart(c, "disk.cold=EAGAIN")
    in_parallel(lambda key: read(c, key), OBJECTS)
    key = next(k for k in OBJECTS if len(OBJECTS[k]) == max(SIZES))
    for first, last in ((0, 0), (5, 2_097_160), (2_097_152, 4_194_303), (4_900_000, 4_999_999)):
        reply = c.get(*key, {"Range": f"bytes={first}-{last}"}).expect(206)
        equal(reply.body, OBJECTS[key][first:last + 1], f"bytes {first} to {last}")
    c.object("HEAD", *key).expect(200)
    c.get("plain", "no-such-object").expect(404, "object_not_found")
    c.get(*key, {"If-Match": '"other"'}).expect(412, "precondition_failed")
    reply = c.get(*key, {"If-None-Match": c.object("HEAD", *key).headers["ETag"]}).expect(304)
    equal(len(reply.headers.get_all("ETag")), 1, "ETag lines")


def test_a_disk_that_fails(c):
    restart(c, f"disk.cold[/{SLOW}]=EAGAIN,disk.read[/{SLOW}]=EIO")
    for key in lies_on(c, SLOW):
        if key[0] == "plain" or len(
                OBJECTS[key]) <= 262144:  # a checked stream begins before it is read
            c.get(*key).expect(500, "io_error")
    for key in lies_on(c, FAST):
        read(c, key)
    restart(c, "")
    in_parallel(lambda key: read(c, key), OBJECTS)


if __name__ == "__main__":
    main(targets=1, mountpaths=2)
