#!/usr/bin/env python3
"""Uploads in parts where the disk of their target is full: a part, a begin and a completion that
have no room are refused, what was stored stays, and with room all of it works.

Skipped (77) without root, loop devices or the programs that make the file systems."""

from copies_full_disk import OnDisks
from disks import enter
from lib import check, equal, main, wait_for
from put_parts import COUNT, Files, broken, is_stored
from uploads_lib import PART, Upload, bodies_of, has_object, list_of, open_uploads, patiently


def test_a_full_disk(c):
    c.create("one")
    u = Upload(c, "one", "o")
    disk = c.disks[c.owner("one", "o")]
    bodies = bodies_of(3, 70000)
    u.part(1, bodies[0])
    disk.fill()
    for body in (bodies[1], b"small"):
        u.try_part(2, body).expect(507, "no_space")
    c.call("POST", "/v1/uploads/one/o", b"").expect(507, "no_space")
    equal(u.parts(), ([1], False), "the parts")
    equal(open_uploads(c, "one"), ([("o", u.id)], False), "open uploads")
    disk.make_room()
    for number in (2, 3):
        patiently(lambda n=number: u.try_part(n, bodies[n - 1])).expect(200)
    u.complete(list_of(bodies))
    has_object(c, "one", "o", b"".join(bodies))


def test_a_completion_without_room(c):
    """Parts that are no multiple of the first are copied, for which there must be room."""
    c.put("one", "copied", b"old")
    u = Upload(c, "one", "copied")
    disk = c.disks[c.owner("one", "copied")]
    bodies = [b"a" * (PART + 1), b"b" * PART, b"c"]
    for number, body in enumerate(bodies, 1):
        u.part(number, body)
    disk.fill()
    u.try_complete(list_of(bodies)).expect(507, "no_space")
    has_object(c, "one", "copied", b"old")
    equal(u.parts(), ([1, 2, 3], False), "the parts")
    u.abort().expect(204)  # which needs no room
    disk.make_room()
    u = Upload(c, "one", "copied", patiently(
        lambda: c.call("POST", "/v1/uploads/one/copied", b"")).expect(201).json()["upload"])
    for number, body in enumerate(bodies, 1):
        u.part(number, body)
    disk.fill()
    u.try_complete(list_of(bodies)).expect(507, "no_space")
    disk.make_room()
    patiently(lambda: u.try_complete(list_of(bodies))).expect(200)
    has_object(c, "one", "copied", b"".join(bodies))


def test_put_goes_on_with_room(c):
    c.create("put")
    disk, files = c.disks[c.owner("put", "o")], Files(c)
    upload, parts = broken(c, files, "put/o")
    disk.fill()
    failed = files.try_put("f", "put/o")
    equal((failed.returncode, "no_space" in failed.stderr, "space_reserve" in failed.stderr),
          (1, True, True), failed.stderr)
    check(parts <= set(upload.parts()[0]), "parts are lost")
    disk.make_room()
    again = wait_for(lambda: files.put_or_none("f", "put/o"), "a put that has room")
    check(again["resumed"] >= len(parts - {COUNT}) * PART, f"{again['resumed']} are from before")
    is_stored(c, files, "f", "put/o")


if __name__ == "__main__":
    enter()
    main(make=OnDisks, targets=3)
