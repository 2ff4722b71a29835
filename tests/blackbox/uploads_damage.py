#!/usr/bin/env python3
"""Uploads in parts whose files are damaged, or cannot be read: no bytes are acknowledged that a
disk has lost, nothing that is young is removed, and what cannot be used any more can be aborted."""

import base64
import contextlib
import os
import socket
import struct

from lib import WAIT_SECONDS, check, equal, main, wait_for
from uploads_lib import (PART, Upload, all_uploads, bodies_of, folder, has_object, list_of,
                         open_uploads, patiently)

T = "t1"
HOUR_MS = 3600 * 1000


def restart(c, *args):
    c.restart(T, *(f"--arg={a}" for a in args))


def with_parts(c, bucket, name, bodies):
    u = Upload(c, bucket, name)
    for number, body in enumerate(bodies, 1):
        u.part(number, body)
    return u


def overwrite(c, u, file, at, data):
    with open(os.path.join(folder(c, u.id), file), "r+b") as f:
        f.seek(at)
        f.write(data)


def test_buckets(c):
    c.create("one")
    c.create("plain", checksum="none")
    c.create("async", durability="async")


def test_bytes_that_were_lost_with_the_power(c):
    """The log says that they are there.  In the body, in a file of their own, and missing."""
    for bucket in ("one", "plain", "async"):
        bodies = bodies_of(3, 4)
        u = with_parts(c, bucket, "lost", bodies)
        u.part(3, bodies[2])
        overwrite(c, u, "body", 4096, bytes(4096))
        overwrite(c, u, "side-1", 0, b"\xff")
        restart(c)
        patiently(lambda u=u, b=bodies: u.try_complete(list_of(b))).expect(400, "invalid_part",
                                                                           "part 1")
        u.part(1, bodies[0])
        u.try_complete(list_of(bodies)).expect(400, "invalid_part", "part 3")
        os.unlink(os.path.join(folder(c, u.id), "side-1"))
        u.try_complete(list_of(bodies)).expect(400, "invalid_part", "part 3")
        c.get(bucket, "lost").expect(404)
        u.part(3, bodies[2])
        u.complete(list_of(bodies))
        has_object(c, bucket, "lost", b"".join(bodies))


def test_a_part_that_is_sent_again_takes_the_place(c):
    """Its earlier bytes are removed, also after a restart; those in the body stay with it."""
    for bucket in ("one", "async"):
        first = bodies_of(2, 100)
        u = with_parts(c, bucket, "again", first)
        for salt in range(1, 6):
            bodies = bodies_of(2, 100, salt=salt)
            u.part(1, bodies[0])
            if salt == 3:
                restart(c)
                patiently(lambda u=u: u.call("GET", upload=u.id)).expect(200)
        sides = [f for f in os.listdir(folder(c, u.id)) if f.startswith("side-")]
        equal(len(sides), 1, f"files of parts beside the body: {sides}")
        u.complete(list_of([bodies[0], first[1]]))
        has_object(c, bucket, "again", bodies[0] + first[1])


def test_zeros_in_the_log(c):
    """A record that power was lost before: its part was not acknowledged, others were."""
    bodies = bodies_of(3, 5)
    u = with_parts(c, "one", "zeros", bodies)
    overwrite(c, u, "parts", 56, bytes(56))
    equal(u.parts(), ([1, 3], False), "the parts")
    u.part(2, bodies[1])
    u.complete(list_of(bodies))
    has_object(c, "one", "zeros", b"".join(bodies))


def test_a_damaged_log(c):
    """Nothing can be added, and it can be aborted; else it is removed when it is old."""
    bodies = bodies_of(3, 5)
    aborted, old = (with_parts(c, "one", name, bodies) for name in ("aborted", "old"))
    for u in (aborted, old):
        overwrite(c, u, "parts", 60, b"\xff\xff\xff")
        for reply in (u.call("GET", upload=u.id), u.try_part(4, b"x"),
                      u.try_complete(list_of(bodies))):
            reply.expect(500, "corrupt")
    aborted.abort().expect(204)
    aborted.abort().expect(404, "not_found")
    equal([i for _, i in open_uploads(c, "one")[0]], [old.id], "open uploads")
    check(folder(c, aborted.id) is None, "the files of an aborted upload")
    restart(c, "--uploads-sweep=200ms", "--uploads-expire=1s", "--uploads-max=1")
    wait_for(lambda: folder(c, old.id) is None, "the old upload gone")
    patiently(lambda: c.call("POST", "/v1/uploads/one/next", b"")).expect(201)
    restart(c)
    for row in all_uploads(c, "one"):
        Upload(c, "one", *row).abort()


def older(c, u, ms):
    """The same upload, as if it had begun earlier."""
    raw = base64.urlsafe_b64decode(u.id + "==")
    begun, = struct.unpack(">Q", raw[:8])
    name = base64.urlsafe_b64encode(struct.pack(">Q", begun - ms) + raw[8:]).decode().rstrip("=")
    at = folder(c, u.id)
    os.rename(at, os.path.join(os.path.dirname(at), name))
    return Upload(c, u.bucket, u.name, name)


def test_what_cannot_be_read_is_not_taken_for_a_rest(c):
    """What stays of a begin that was cut has no about.json; of this one it cannot be opened."""
    body = b"the only part"
    u = older(c, with_parts(c, "one", "unread", [body]), 2 * HOUR_MS)
    cut = older(c, with_parts(c, "one", "cut", [body]), 2 * HOUR_MS)
    about = os.path.join(folder(c, u.id), "about.json")
    os.rename(about, about + ".aside")
    os.symlink("about.json", about)  # to itself
    os.unlink(os.path.join(folder(c, cut.id), "about.json"))
    restart(c, "--uploads-sweep=200ms")
    wait_for(lambda: folder(c, cut.id) is None, "the rest of a begin gone")
    check(folder(c, u.id) is not None, "an upload was removed that could not be read")
    os.rename(about + ".aside", about)
    equal(u.parts(), ([1], False), "its parts")
    u.complete(list_of([body]))
    has_object(c, "one", "unread", body)
    restart(c)


def test_a_completion_that_fails_late(c):
    """The directory of the object's name cannot be synced.  Somebody has the upload open meanwhile, and
    more parts come: no object gets their bytes."""
    old, bodies = b"old", bodies_of(2, 1000)
    c.put("one", "late", old)
    u = with_parts(c, "one", "late", bodies)
    restart(c, "--faults=sync.name=EIO@1")
    head = (f"PUT /v1/uploads/one/late?upload={u.id}&part=1 HTTP/1.1\r\n"
            f"Host: localhost\r\nContent-Length: {PART}\r\n\r\n")
    with contextlib.closing(socket.create_connection(c.address(T), timeout=WAIT_SECONDS)) as s:
        s.sendall(head.encode() + b"y" * 100000)
        wait_for(lambda: os.path.exists(os.path.join(folder(c, u.id), "side-1")), "a part comes")
        failed = u.try_complete(list_of(bodies))
        check(failed.status >= 500, f"the completion: {failed!r}")
        u.try_part(3, b"z" * PART)
        body = c.get("one", "late").expect(200).body
        check(body in (old, b"".join(bodies)), f"{len(body)} bytes that nobody completed")
    restart(c)
    patiently(lambda: u.try_complete(list_of(bodies))).expect(200)
    has_object(c, "one", "late", b"".join(bodies))


if __name__ == "__main__":
    main(targets=1)
