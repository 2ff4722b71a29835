#!/usr/bin/env python3
"""Buckets whose large objects are in slices (docs/design/erasure-coding.md): what is stored is on k
+ m targets; it is read whole and in ranges whichever m of them are dead; what is written over or
deleted stays so, and its slices go; a repair makes anew what was lost, on a target that is empty,
too.

DFC_SHAPE (2+1): data and parity; the cluster has as many targets and one more (4+2: eight).
DFC_KILLS (1): how many sets of m targets are killed."""

import itertools
import os
import random
import time

from lib import Failed, check, equal, in_parallel, main, size_of, wait_for
from user_meta import random_meta

DATA, PARITY = map(int, os.environ.get("DFC_SHAPE", "2+1").split("+"))
SLICES = DATA + PARITY
TARGETS = SLICES + (2 if SLICES > 4 else 1)
MIN_SIZE = 100000
PATIENCE = 60
PASSING = (409, 429, 500, 502, 503, 504)
SIZES = (MIN_SIZE + 1, 65536 * DATA, 65536 * DATA + 1, 300001, 1500000, 5000003)


def create(c, bucket, **ec):
    c.setting("repair_delay", "0s")
    props = {"ec": {"data": DATA, "parity": PARITY, "min_size": MIN_SIZE, **ec}}
    c.call("POST", f"/v1/buckets/{bucket}", {"action": "create", "value": props}).expect(201)


def patient(c, method, bucket, name, body=None, headers=None, **options):
    """As a client does that repeats what may pass."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            reply = c.object(method, bucket, name, body, headers, **options)
        except OSError as e:
            reply = e
        if not isinstance(reply, OSError) and reply.status not in PASSING:
            return reply
        if time.monotonic() > deadline:
            raise Failed(f"{method} {bucket}/{name}: still {reply!r} after {PATIENCE} s")
        time.sleep(0.05)


METAS = {}  # what put() has given objects: {(bucket, name): Meta}


def put(c, bucket, name, body, headers=None):
    """Without headers: with metadata of its own, which check_object() looks for."""
    METAS.pop((bucket, name), None)
    if headers is None:
        METAS[bucket, name] = random_meta(random)
        headers = METAS[bucket, name].headers
    return patient(c, "PUT", bucket, name, body, headers).expect(200)


def get(c, bucket, name, headers=None):
    return patient(c, "GET", bucket, name, None, headers)


def slice_files(c, node):
    """The slices on a target: their bucket's id has bit 62."""
    return [p for p in c.object_files(node) if int(p.split("/obj/")[1].split("/")[0]) >> 62
            and size_of(p) > 0]


def slices(c):
    """How many slices there are, all targets together."""
    return sum(len(slice_files(c, t)) for t in c.targets())


def check_object(c, bucket, name, body, ranges=6):
    reply = get(c, bucket, name).expect(200)
    check(reply.body == body, f"{name}: other bytes: {len(reply.body)}, not {len(body)}")
    equal(reply.headers["Content-Length"], str(len(body)), "its length")
    if (bucket, name) in METAS:
        METAS[bucket, name].check(reply, name)
    for _ in range(ranges):
        first = random.randrange(len(body))
        last = min(len(body) - 1, first + random.choice((0, 100, 70000, 1 << 20)))
        part = get(c, bucket, name, {"Range": f"bytes={first}-{last}"}).expect(206)
        check(part.body == body[first:last + 1], f"{name}: other bytes at {first} to {last}")
        equal(part.headers["Content-Range"], f"bytes {first}-{last}/{len(body)}", "the range")


def fill(c, bucket, sizes=SIZES):
    bodies = {f"o{size}": random.randbytes(size) for size in sizes}
    for name, body in bodies.items():
        put(c, bucket, name, body)
    return bodies


def check_all(c, bucket, bodies, ranges=3):
    in_parallel(lambda name: check_object(c, bucket, name, bodies[name], ranges), bodies)


def test_large_objects_are_in_slices(c):
    create(c, "b")
    body = random.randbytes(1000000)
    reply = put(c, "b", "large", body, {"Dfc-Meta-Color": "red", "Content-Type": "a/b"}).json()
    equal(reply["size"], len(body), "the size in the answer")
    equal(slices(c), SLICES, "slices")
    equal(max(len(slice_files(c, t)) for t in c.targets()), 1, "slices on one target")
    per_slice = len(body) / DATA
    for t in c.targets():
        for path in slice_files(c, t):
            check(per_slice <= os.path.getsize(path) < per_slice * 1.01 + 100, "a slice's size")
    head = c.object("HEAD", "b", "large").expect(200)
    equal(head.headers["Content-Length"], str(len(body)), "HEAD's length")
    equal(head.headers["Dfc-Checksum-Value"], reply["checksum"]["value"], "its checksum")
    equal(head.headers["Dfc-Meta-Color"], "red", "metadata")
    equal(head.headers["Content-Type"], "a/b", "its type")
    equal(head.headers["ETag"], reply["etag"], "its tag")
    check_object(c, "b", "large", body)
    c.object("GET", "b", "large", None, {"If-None-Match": reply["etag"]}).expect(304)
    c.object("GET", "b", "large", None, {"Range": "bytes=2000000-"}).expect(416)


def test_small_ones_are_whole(c):
    before = slices(c)
    put(c, "b", "small", b"x" * MIN_SIZE)
    put(c, "b", "empty", b"")
    equal(slices(c), before, "slices")
    equal(get(c, "b", "small").expect(200).body, b"x" * MIN_SIZE, "the object")
    equal(get(c, "b", "empty").expect(200).body, b"", "the empty object")
    copies = [t for t in c.targets() for p in c.object_files(t) if os.path.getsize(p) == MIN_SIZE]
    equal(len(set(copies)), PARITY + 1, f"copies, on {copies}")


def test_lists_show_the_object(c):
    entries = {e["name"]: e for page in c.pages("b") for e in page["entries"]}
    equal(sorted(entries), ["empty", "large", "small"], "names")
    head = c.object("HEAD", "b", "large").expect(200)
    equal(entries["large"]["size"], 1000000, "its size")
    equal(entries["large"]["checksum"]["value"], head.headers["Dfc-Checksum-Value"], "its checksum")


def test_all_lengths_and_ranges(c):
    create(c, "lengths", min_size=0)
    sizes = {1, 63, 64, 65, 65535, 65536, 65537}
    sizes |= {65536 * DATA * n + d for n in (1, 2) for d in (-1, 0, 1)}
    bodies = fill(c, "lengths", sorted(sizes))
    check_all(c, "lengths", bodies)


def test_conditions_and_checksums(c):
    one, two = random.randbytes(200000), random.randbytes(200001)
    first = put(c, "b", "cond", one)
    c.object("PUT", "b", "cond", two, {"If-None-Match": "*"}).expect(412, "precondition_failed")
    bad = {"Dfc-Checksum-Type": "crc32c", "Dfc-Checksum-Value": "00000000"}
    c.object("PUT", "b", "cond", two, bad).expect(422, "checksum_mismatch")
    check_object(c, "b", "cond", one)
    c.object("PUT", "b", "cond", two,
             {"If-Match": first.headers["ETag"], **METAS["b", "cond"].headers}).expect(200)
    check_object(c, "b", "cond", two)


def test_what_is_written_over_or_deleted_stays_so_and_its_slices_go(c):
    create(c, "over")
    for i in range(3):
        put(c, "over", "a", random.randbytes(300000 + i))
        put(c, "over", "gone", random.randbytes(300000 + i))
    last = random.randbytes(400000)
    put(c, "over", "a", last)
    c.object("DELETE", "over", "gone").expect(204)
    get(c, "over", "gone").expect(404, "object_not_found")
    put(c, "over", "now-small", random.randbytes(300000))
    put(c, "over", "now-small", b"small")
    equal(get(c, "over", "now-small").expect(200).body, b"small", "what is whole by now")
    check(slices_of_bucket(c, "over") > SLICES, "what was written over is left alone for a while")
    restart(c, "--slices-sweep-interval=200ms", "--slices-grace=100ms")
    wait_for(lambda: slices_of_bucket(c, "over") == SLICES, "the end of what nobody knows",
             180)
    check_object(c, "over", "a", last)
    restart(c)
    check_object(c, "over", "a", last)


def restart(c, *args):
    """While nobody writes: with so little patience a write that waits would lose its slices."""
    for t in c.targets():
        c.stop(t)
        c.start(t, *(f"--arg={a}" for a in args))
    for t in c.targets():
        c.wait_node(t, "active")


def slices_of_bucket(c, bucket):
    number = c.get_json(f"/v1/buckets/{bucket}")["id"] | 1 << 62
    return sum(1 for t in c.targets() for p in slice_files(c, t) if f"/obj/{number}/" in p)


def test_any_m_can_be_dead(c):
    create(c, "dead")
    bodies = fill(c, "dead")
    wait_repaired(c)
    pairs = list(itertools.combinations(c.targets(), PARITY))
    for dead in random.sample(pairs, min(len(pairs), int(os.environ.get("DFC_KILLS", "1")))):
        print("dead:", *dead)
        for t in dead:
            c.kill(t)
        check_all(c, "dead", bodies)
        for t in dead:
            c.start(t)
        for t in dead:
            c.wait_node(t, "active")
        wait_repaired(c)
    check_all(c, "dead", bodies)


def test_a_killed_target_that_is_still_active(c):
    """Each target has one thread that sends PUTs on: none of them may wait for another."""
    create(c, "unmarked", parity=TARGETS - DATA)
    restart(c, "--copies-parallel=1")
    c.stop("p1")
    c.start("p1", "--arg=--keepalive-timeout=10m")
    for t in c.targets():
        c.wait_node(t, "active")
    wait_repaired(c)
    body, victim = random.randbytes(600000), c.targets()[0]
    name = next(n for n in map(str, itertools.count()) if c.owner("unmarked", n) != victim)
    c.kill(victim)
    reply = c.object("PUT", "unmarked", name, body, timeout=100)
    equal((reply.status, reply.json()["code"]), (503, "node_unreachable"), "the PUT")
    c.start(victim)
    c.stop("p1")
    c.start("p1")
    restart(c)
    wait_repaired(c)
    put(c, "unmarked", name, body)
    check_object(c, "unmarked", name, body)


def smap(c):
    return c.get_json("/v1/cluster?what=smap")


def wait_repaired(c):
    """Until nobody lags: while all owners of a name do, none of them may die."""
    wait_for(lambda: not any(n.get("lag") for n in smap(c)["nodes"]), "the end of the repair", 120)


def repair(c):
    wait_repaired(c)
    done = c.dfcctl("job", "start", "repair", "--wait")
    equal(done.returncode, 0, f"the repair: {done.stderr}")


def test_a_repair_makes_what_was_lost(c):
    create(c, "lost")
    bodies = fill(c, "lost", SIZES[:4])
    number = c.get_json("/v1/buckets/lost")["id"] | 1 << 62
    equal(slices_of_bucket(c, "lost"), len(bodies) * SLICES, "slices")
    for t in random.sample(c.targets(), PARITY):
        for path in slice_files(c, t):
            if f"/obj/{number}/" in path:
                os.unlink(path)
    check_all(c, "lost", bodies)
    repair(c)
    equal(slices_of_bucket(c, "lost"), len(bodies) * SLICES, "slices after the repair")
    check_all(c, "lost", bodies)


def test_damage_is_passed_over(c):
    body = random.randbytes(900000)
    put(c, "dead", "damaged", body)
    size = len(body) // DATA
    hurt = 0
    for t in c.targets():
        for path in slice_files(c, t):
            if hurt < PARITY and size <= os.path.getsize(path) < size * 1.01 + 100:
                with open(path, "r+b") as f:
                    f.seek(random.randrange(size))
                    byte = f.read(1)[0]
                    f.seek(-1, os.SEEK_CUR)
                    f.write(bytes([byte ^ 1]))
                hurt += 1
    equal(hurt, PARITY, "damaged slices")
    check_object(c, "dead", "damaged", body, ranges=20)


if __name__ == "__main__":
    main(targets=TARGETS)
