#!/usr/bin/env python3
"""kill -9 of a target at each step of an upload in parts, and what else comes in between: an abort,
a disk without room, the age at which uploads are removed, a target that joins.

What was acknowledged is there afterwards: the upload, its parts, and the object of a completion,
which gets the same reply when it is repeated.  What was there before stays until then.

DFC_POINTS (3; with DFC_LONG, or 0: all): at how many of the steps."""

import contextlib
import os
import random
import socket

from copies import wait_repaired
from lib import WAIT_SECONDS, check, equal, escape, in_parallel, main, wait_for
from uploads_lib import (PART, Upload, all_uploads, bodies_of, folder, has_object, list_of,
                         open_uploads, patiently, sizes_of, tag_of)

KINDS = ("one", "two")
POINTS = int(os.environ.get("DFC_POINTS", 0 if os.environ.get("DFC_LONG") else 3))
SECONDS = 60


def restart(c, target, *args):
    """Killed, unless it is dead."""
    if c.pid(target) is not None:
        c.kill(target)
    c.start(target, *(f"--arg={a}" for a in args))
    c.wait_node(target, "active")
    wait_repaired(c)  # else another target leads its names


def until_it_ends(c, target, call):
    """Calls until the target has died of it; whether one of the calls was acknowledged."""
    def step():
        reply = None
        with contextlib.suppress(OSError):
            reply = call()
        done = reply is not None and reply.status < 300
        return (done,) if done or c.pid(target) is None else None
    done = wait_for(step, f"the end of {target}", SECONDS)[0]
    wait_for(lambda: c.pid(target) is None, f"the end of {target}", SECONDS)
    c.ended_by_test.add(target)
    return done


class Step:
    """An upload up to where the target is to die."""

    def __init__(self, c, kind, point):
        self.c, self.kind, self.name = c, kind, f"{point}-{random.randrange(1 << 30)}"
        self.old = b"old"
        self.bodies = bodies_of(3, 2345, salt=random.randrange(200))
        c.put(kind, self.name, self.old)
        self.target = c.owner(kind, self.name)
        self.upload = None

    def begin(self):
        self.upload = patiently_begun(self.c, self.kind, self.name)

    def send(self, numbers):
        for n in numbers:
            patiently(lambda i=n: self.upload.try_part(i, self.bodies[i - 1])).expect(200)

    def has_parts(self, *numbers):
        reply = patiently(lambda: self.upload.call("GET", upload=self.upload.id)).expect(200)
        equal([p["part"] for p in reply.json()["parts"]], list(numbers), f"parts of {self.name}")

    def complete(self):
        reply = patiently(lambda: self.upload.try_complete(list_of(self.bodies))).expect(200)
        equal(reply.json()["tag"], tag_of(self.bodies), "tag")
        has_object(self.c, self.kind, self.name, b"".join(self.bodies),
                   Dfc_Parts=sizes_of(self.bodies))
        return reply.json()

    def is_old_or_new(self):
        body = patiently(lambda: self.c.get(self.kind, self.name)).expect(200).body
        check(body in (self.old, b"".join(self.bodies)), f"{self.name}: {len(body)} bytes that "
                                                         "nobody wrote")
        return body


def patiently_begun(c, kind, name):
    reply = patiently(lambda: c.call("POST", f"/v1/uploads/{kind}/{escape(name)}", b""))
    return Upload(c, kind, name, reply.expect(201).json()["upload"])


def die_in_begin(c, step, point):
    restart(c, step.target, f"--faults={point}=kill")
    path = f"/v1/uploads/{step.kind}/{escape(step.name)}"
    until_it_ends(c, step.target, lambda: c.call("POST", path, b"", timeout=30))
    restart(c, step.target)
    patiently(lambda: c.call("GET", f"/v1/uploads/{step.kind}")).expect(200)
    for name, upload in all_uploads(c, step.kind, prefix=step.name):
        patiently(Upload(c, step.kind, name, upload).abort).expect(204)
    step.begin()
    step.send((1, 2, 3))
    step.complete()


def die_in_part(c, step, point):
    step.begin()
    step.send((1, 3))
    restart(c, step.target, f"--faults={point}=kill")
    done = until_it_ends(c, step.target,
                         lambda: step.upload.try_part(2, step.bodies[1]))
    restart(c, step.target)
    reply = patiently(lambda: step.upload.call("GET", upload=step.upload.id)).expect(200)
    numbers = [p["part"] for p in reply.json()["parts"]]
    check(numbers == [1, 2, 3] or not done and numbers == [1, 3], f"{point}: parts {numbers}")
    equal(step.is_old_or_new(), step.old, "before the completion")
    step.send((2,))
    step.has_parts(1, 2, 3)
    step.complete()


def die_in_completion(c, step, point):
    step.begin()
    step.send((3, 1, 2))
    restart(c, step.target, f"--faults={point}=kill")
    done = until_it_ends(c, step.target,
                         lambda: step.upload.try_complete(list_of(step.bodies)))
    restart(c, step.target)
    body = step.is_old_or_new()
    check(not done or body != step.old, f"{point}: an acknowledged completion is lost")
    first = step.complete()
    equal(step.complete(), first, "the second reply")
    restart(c, step.target)
    equal(step.complete(), first, "the reply after a kill")


def die_in_abort(c, step, point):
    step.begin()
    step.send((1, 2))
    restart(c, step.target, f"--faults={point}=kill")
    until_it_ends(c, step.target, step.upload.abort)
    restart(c, step.target)
    check(patiently(step.upload.abort).status in (204, 404), "an abort that is repeated")
    patiently(lambda: step.upload.call("GET", upload=step.upload.id)).expect(404, "not_found")
    equal(patiently_listed(c, step.kind, step.name), [], "uploads")
    equal(step.is_old_or_new(), step.old, "after the abort")


def patiently_listed(c, kind, prefix):
    patiently(lambda: c.call("GET", f"/v1/uploads/{kind}")).expect(200)
    return all_uploads(c, kind, prefix=prefix)


STEPS = [(die_in_begin, "upload.made"), (die_in_begin, "upload.begun"),
         (die_in_part, "upload.bytes"), (die_in_part, "upload.record"), (die_in_part, "upload.log"),
         (die_in_completion, "upload.put"), (die_in_completion, "sync.object"),
         (die_in_completion, "sync.name"), (die_in_completion, "index.settle"),
         (die_in_completion, "upload.named"), (die_in_completion, "upload.done"),
         (die_in_abort, "upload.gone")]


def test_buckets(c):
    c.setting("repair_delay", "0s")
    c.create("one")
    c.create("two", copies=2)


def test_a_target_ends_at_any_step(c):
    steps = [(die, point, kind) for die, point in STEPS for kind in KINDS]
    for die, point, kind in random.sample(steps, POINTS) if POINTS else steps:
        print(f"        {die.__name__} at {point} in {kind}", flush=True)
        die(c, Step(c, kind, point), point)


# --- others in between ---------------------------------------------------------------------------

def test_an_abort_during_a_part(c):
    for kind in KINDS:
        u = Upload(c, kind, "during")
        u.part(1, b"x" * PART)
        target = c.owner(kind, "during")
        head = (f"PUT /v1/uploads/{kind}/during?upload={u.id}&part=2 HTTP/1.1\r\n"
                f"Host: localhost\r\nContent-Length: {PART}\r\n\r\n")
        with socket.create_connection(c.address(target), timeout=WAIT_SECONDS) as s:
            s.sendall(head.encode() + b"y" * 100000)
            u.abort().expect(204)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                s.sendall(b"y" * (PART - 100000))
            status = s.makefile("rb").readline()
            check(status.startswith(b"HTTP/1.1 404"), f"the reply to the part: {status}")
        u.call("GET", upload=u.id).expect(404, "not_found")
        equal(open_uploads(c, kind), ([], False), "open uploads")
        wait_for(lambda i=u.id: not folder(c, i), "its files gone")


def test_a_part_that_is_cut(c):
    """Its number can be sent again, and what was stored before stays."""
    u = Upload(c, "one", "cut")
    bodies = bodies_of(2, 10)
    u.part(1, bodies[0])
    for number in (1, 2):
        head = (f"PUT /v1/uploads/one/cut?upload={u.id}&part={number} HTTP/1.1\r\n"
                f"Host: localhost\r\nContent-Length: {PART}\r\n\r\n")
        with socket.create_connection(c.address(c.owner("one", "cut")), WAIT_SECONDS) as s:
            s.sendall(head.encode() + b"z" * 300000)
    equal(u.parts(), ([1], False), "the parts")
    u.part(2, bodies[1])
    u.complete(list_of(bodies))
    has_object(c, "one", "cut", b"".join(bodies))


def test_a_disk_without_room(c):
    for kind in KINDS:
        step = Step(c, kind, "full")
        step.begin()
        step.send((1,))
        restart(c, step.target, "--faults=disk.room=ENOSPC")
        refused = patiently(lambda s=step: s.upload.try_part(2, s.bodies[1]))
        refused.expect(507, "no_space")
        patiently(lambda s=step: s.c.call("POST", f"/v1/uploads/{s.kind}/{s.name}", b"")).expect(
            507, "no_space")
        step.has_parts(1)
        restart(c, step.target)
        step.has_parts(1)
        step.send((2, 3))
        step.complete()


def test_old_uploads_are_removed(c):
    step = Step(c, "one", "old")
    step.begin()
    step.send((1,))
    done = Step(c, "one", "done")
    done.begin()
    done.send((1, 2, 3))
    reply = done.complete()
    for target in c.targets():
        restart(c, target, "--uploads-sweep=200ms", "--uploads-expire=10m", "--uploads-keep=10m")
    step.has_parts(1)
    equal(done.complete(), reply, "a reply that is kept")
    for target in c.targets():
        restart(c, target, "--uploads-sweep=200ms", "--uploads-expire=1s", "--uploads-keep=1s")
    wait_for(lambda: not folder(c, step.upload.id), "the old upload gone")
    wait_for(lambda: not folder(c, done.upload.id), "the reply gone")
    for s in (step, done):
        patiently(lambda u=s.upload: u.call("GET", upload=u.id)).expect(404, "not_found")
        patiently(lambda s=s: s.upload.try_complete(list_of(s.bodies))).expect(404, "not_found")
    equal(step.is_old_or_new(), step.old, "the object")
    has_object(c, "one", done.name, b"".join(done.bodies))
    for target in c.targets():
        restart(c, target)


def test_a_target_has_a_limit(c):
    step = Step(c, "one", "limit")
    restart(c, step.target, "--uploads-max=1")
    step.begin()
    path = f"/v1/uploads/one/{step.name}"
    c.call("POST", path, b"").expect(503, "overloaded")
    restart(c, step.target, "--uploads-max=1")
    step.has_parts()
    c.call("POST", path, b"").expect(503, "overloaded", "uploads")
    step.upload.abort().expect(204)
    step.begin()
    step.send((1, 2, 3))
    step.complete()
    Upload(c, "one", step.name).abort().expect(204)
    restart(c, step.target)


def test_an_upload_that_cannot_be_closed_counts_once(c):
    """Its object is there, and a completion says so each time; the limit counts as before."""
    for kind in ("one", "two"):
        step = Step(c, kind, "unclosed")
        restart(c, step.target, "--uploads-max=2", "--faults=upload.named=ENOSPC@1+")
        step.begin()
        step.send((1, 2, 3))
        step.complete()
        step.complete()
        for _ in range(2):
            upload = c.call("POST", f"/v1/uploads/{kind}/{step.name}", b"").expect(201)
            Upload(c, kind, step.name, upload.json()["upload"]).abort().expect(204)
        restart(c, step.target)
        step.complete()


def test_a_target_joins(c):
    """Parts stay where the upload began; the object goes to its leader of that moment."""
    steps = [Step(c, kind, "join") for kind in KINDS for _ in range(8)]

    def begin(step):
        step.begin()
        step.send((1,))
    in_parallel(begin, steps, 4)
    new = c.add_target()
    c.wait_node(new, "active")
    moved = [s for s in steps if patiently_owner(c, s) == new]
    print(f"        {len(moved)} of {len(steps)} objects have another leader")

    def end(step):
        step.send((2, 3))
        step.has_parts(1, 2, 3)
        first = step.complete()
        equal(step.complete(), first, "the second reply")
    in_parallel(end, steps, 4)
    equal(patiently_listed(c, "one", ""), [], "open uploads")


def patiently_owner(c, step):
    return c.owner(step.kind, step.name)


if __name__ == "__main__":
    main(targets=3)
