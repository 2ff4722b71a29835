#!/usr/bin/env python3
"""An owner without room takes nothing away that other owners have (docs/design/replication.md, "No
room"): objects are
read, and can be deleted, and only the repair waits for room.

A target comes back full after all was written again without it; one joins full; disks fill while
objects move;
a copy is damaged where there is no room for a good one.  With two and three copies, where all or a
majority of
the owners have a write, and in slices.  And nothing older is read, whoever dies then.

Full is what is above space_out, and a fault point (disk.room); copies_full_disk.py has a file
system without
a free block."""

import os
import random
import time

from capacity import FULL
from copies import PASSING, put, send_as_it_is, settled, smap
from lib import ENDED, check, equal, in_parallel, main, wait_for
from object_jobs import document

SIZES = (0, 1, 5000, 300000)
NAMES = [f"{i}/{size}" for size in SIZES for i in range(5)]
BUCKETS = {
    "two": {"copies": 2},
    "two-any": {"copies": 2, "read_from": "any", "verify_on_read": True},
    "three": {"copies": 3},
    "most": {"copies": 3, "write_quorum": "majority"},
    "ec11": {"copies": 2, "ec": {"data": 1, "parity": 1, "min_size": 100000}},
    "ec21": {"copies": 2, "ec": {"data": 2, "parity": 1, "min_size": 100000}},
}
ROOM = ("--space-low=97%", "--space-high=98%", "--space-out=99%")
CALM_SECONDS = 3.0  # for so long all is read again and again, with the repair at work


def body_of(bucket, name, version):
    size = int(name.split("/")[1])
    return random.Random(f"{bucket} {name} {version}").randbytes(size)


def each(names=NAMES, buckets=BUCKETS):
    return [(bucket, name) for bucket in buckets for name in names]


def write_all(c, version, buckets=BUCKETS):
    in_parallel(lambda n: put(c, *n, body_of(*n, version)), each(buckets=buckets))


def read(c, bucket, name, **options):
    """Once; what says that somebody has another map is asked again, as a client does."""
    for _ in range(20):
        reply = c.get(bucket, name, **options)
        if reply.status != 409:
            break
    return reply


def check_read(c, wanted, **options):
    """wanted: {(bucket, name): version, or None where it was deleted}"""
    def one(n):
        version, reply = wanted[n], read(c, *n, **options)
        if version is None:
            reply.expect(404, "object_not_found")
        else:
            equal(reply.expect(200).body, body_of(*n, version), f"bytes of {n}")

    in_parallel(one, list(wanted))


def check_readable(c, wanted):
    """By proxies that redirect, and by one that streams; while the repair tries in vain."""
    end = time.monotonic() + CALM_SECONDS
    while time.monotonic() < end:
        check_read(c, wanted)
        check_read(c, wanted, headers={"Dfc-Redirect": "never"})


def check_details(c, wanted):
    """HEAD, ranges and conditions of what comes through another owner."""
    def one(n):
        body = body_of(*n, wanted[n])
        reply = c.object("HEAD", *n).expect(200)
        equal(int(reply.headers["Content-Length"]), len(body), f"length of {n}")
        etag = reply.headers["ETag"]
        c.object("GET", *n, headers={"If-None-Match": etag}).expect(304)
        c.object("GET", *n, headers={"If-Match": '"other"'}).expect(412, "precondition_failed")
        if len(body) > 10:
            part = c.object("GET", *n, headers={"Range": "bytes=3-9", "If-Range": etag}).expect(206)
            equal(part.body, body[3:10], f"range of {n}")

    in_parallel(one, [n for n in wanted if wanted[n] is not None])


def lagging(c):
    return [n["id"] for n in smap(c)["nodes"] if n.get("lag")]


def wait_whole(c):
    wait_for(lambda: not lagging(c), "the end of the repair", 200)


def begin(c, buckets=BUCKETS):
    c.setting("repair_delay", "0s")
    c.setting("rebalance_delay", "0s")
    c.setting("rebalance_keep", "2s")
    for bucket, props in buckets.items():
        c.create(bucket, **props)
    write_all(c, 1, buckets)


def come_back_full(c, node, *args, again=True):
    """It was away while all was written."""
    c.kill(node)
    c.wait_node(node, "unreachable")
    if again:
        for bucket in [b for b in BUCKETS if b != "ec21"]:
            write_all(c, 2, [bucket])
    c.start(node, *(f"--arg={a}" for a in args))
    c.wait_node(node, "active")


def has(c, node, bucket, name):
    number = next(b["id"] for b in c.get_json("/v1/cluster?what=state")["bmd"]["buckets"]
                  if b["name"] == bucket)
    url = f"{c.get_json('/v1/daemon', node)['data_url']}/v1/held/{number}/{name}?dfcv=0.0"
    return c.member.request("GET", url).expect(200).json()


# --- the scenes ----------------------------------------------------------------------------------

def test_who_was_not_offered_the_bytes_keeps_what_it_has(c):
    """The owner that acts is full, one has what is newer, and the third, which has room, what is
    older."""
    c.setting("repair_delay", "0s")
    c.create("older", copies=3)
    name = next(f"o{i}" for i in range(1000) if c.owner("older", f"o{i}") == "t1")
    version = put(c, "older", name, b"older").json()["version"]
    c.restart("t1", *(f"--arg={a}" for a in FULL))
    wait_whole(c)
    term, state, counter = version.split(".")
    send_as_it_is(c, "t2", "older", name, f"{term}.{state}.{int(counter) + 1}", b"newer")
    wait_for(lambda: has(c, "t1", "older", name)["version"] != version, "t1 to know what t2 has")
    for _ in range(5):
        read(c, "older", name).expect(503, "node_unreachable")
    equal(has(c, "t3", "older", name)["version"], version, "what t3 has")
    c.restart("t1")
    wait_whole(c)
    equal(wait_200(c, "older", name).body, b"newer", "what is read")
    c.destroy("older")


def test_a_copy_job_leaves_out_what_has_no_room_where_it_works(c):
    """The owner that acts knows one object without its bytes; the job copies the rest, and ends."""
    c.setting("repair_delay", "0s")
    c.create("from", copies=2)
    c.create("to")
    names = [n for n in (f"o{i}" for i in range(1000))
             if c.owner("from", n) == "t1" and c.owner("to", n) != "t1"][:4]
    version = [put(c, "from", name, b"x" * 100) for name in names][0].json()["version"]
    c.restart("t1", *(f"--arg={a}" for a in FULL))
    wait_whole(c)
    term, state, counter = version.split(".")
    other = next(n for n in ("t2", "t3") if has(c, n, "from", names[0])["found"])
    send_as_it_is(c, other, "from", names[0], f"{term}.{state}.{int(counter) + 1}", b"newer")
    wait_for(lambda: has(c, "t1", "from", names[0])["version"] != version,
             f"t1 to know what {other} has")
    equal(wait_200(c, "from", names[0]).body, b"newer", "what is read")
    body = {"action": "copy", "value": {"list": names, "to": "to"}}
    job_id = c.call("POST", "/v1/buckets/from", body).expect(202).json()["id"]
    job = wait_for(lambda: document(c, job_id)["state"] in ENDED and document(c, job_id),
                   "the end of the copy", 30)
    objects = job["progress"]["objects"]
    equal((objects["done"], objects["failed"]), (len(names) - 1, 1), f"objects: {job['errors']}")
    check(any(e["code"] == "no_space" and names[0] in e["message"] for e in job["errors"]),
          job["errors"])
    c.restart("t1")
    wait_whole(c)
    equal(wait_200(c, "from", names[0]).body, b"newer", "what is read")
    for bucket in ("from", "to"):
        c.destroy(bucket)


def test_a_target_that_cannot_even_note_a_version(c):
    """Its index takes no row, as on a disk without a free block.  A name that the repair has met is
    dirty, and its reads fail with 503; a majority answers.  Nothing older is read."""
    buckets = {"noted": {"copies": 2}, "noted-most": {"copies": 3, "write_quorum": "majority"}}
    begin(c, buckets)
    c.kill("t3")
    c.wait_node("t3", "unreachable")
    write_all(c, 2, buckets)
    c.start("t3", *(f"--arg={a}" for a in (*FULL, "--faults=index.write=ENOSPC@1+")))
    c.wait_node("t3", "active")
    names = each(buckets=["noted"])
    wait_for(lambda: any(read(c, *n).status == 503 for n in names), "the repair meets a name")
    for n in names:
        reply = read(c, *n)
        if reply.status != 200:
            reply.expect(503, "node_unreachable", "No space left on device")
        else:
            equal(reply.body, body_of(*n, 2), f"bytes of {n}")
    check_read(c, {n: 2 for n in each(buckets=["noted-most"])})
    c.restart("t3")
    wait_whole(c)
    check_read(c, {n: 2 for n in each(buckets=buckets)})
    for bucket in buckets:
        c.destroy(bucket)


def test_objects_are_there_while_a_full_target_is_back(c):
    begin(c)
    come_back_full(c, "t3", *FULL)
    c.wanted = {n: 1 if n[0] == "ec21" else 2 for n in each()}
    check_readable(c, c.wanted)
    check_details(c, c.wanted)
    equal(lagging(c), ["t3"], "who has not got all")
    said = c.log("t3").count("copies are refused for lack of room")
    check(0 < said < 3, f"lines about refused copies: {said}")


def test_lists_show_them_once_as_they_are(c):
    for bucket in BUCKETS:
        entries = [e for page in c.pages(bucket) for e in page["entries"]]
        equal(sorted((e["name"], e["size"]) for e in entries),
              sorted((n, int(n.split("/")[1])) for n in NAMES), f"list of {bucket}")


def test_they_are_deleted_and_what_has_room_is_written(c):
    for n in each(NAMES[::2]):
        c.object("DELETE", *n).expect(204)
        c.wanted[n] = None
    check_read(c, c.wanted)
    refused = 0
    for n in each(NAMES[1::4], [b for b in BUCKETS if "ec" not in b]):
        reply = c.object("PUT", *n, body_of(*n, 3))
        refused += reply.status == 507
        if reply.status == 507:
            reply.expect(507, "no_space", "space_out (3%)")
        else:
            reply.expect(200)
            c.wanted[n] = 3
    check(refused > 0, "all three owners of 'three' have taken bytes, one of them above space_out")
    check_readable(c, c.wanted)


def test_nothing_older_is_read_when_the_others_die(c):
    """t3 has what was there before, or knows what is: neither is an answer."""
    for node in ("t1", "t2"):
        c.kill(node)
    for node in ("t1", "t2"):
        c.wait_node(node, "unreachable")
    for n, version in c.wanted.items():
        reply = read(c, *n)
        if reply.status == 200:
            equal(reply.body, body_of(*n, version), f"bytes of {n}")
        elif reply.status == 404:
            equal(version, None, f"version of {n}, which is not found")
        else:
            check(reply.status in PASSING, f"{n}: {reply!r}")
    for node in ("t1", "t2"):
        c.start(node)
    for node in ("t1", "t2"):
        c.wait_node(node, "active")
    check_until(c, c.wanted)


def check_until(c, wanted):
    def all_is_there():
        return all(read(c, *n).status == (404 if v is None else 200) for n, v in wanted.items())

    wait_for(all_is_there, "reads of everything", 60)
    check_read(c, wanted)


def test_with_room_all_is_repaired(c):
    c.restart("t3")
    wait_whole(c)
    check_read(c, c.wanted)
    for node in ("t1", "t2"):
        c.kill(node)
        c.wait_node(node, "unreachable")
        check_until(c, c.wanted)
        c.start(node)
        c.wait_node(node, "active")
        wait_whole(c)


def test_a_damaged_copy_where_there_is_no_room(c):
    """The owner that acts cannot keep the good one, and answers with it."""
    for bucket in [b for b in BUCKETS if "ec" not in b]:
        name = next(n for n in (f"damaged{i}/5000" for i in range(1000))
                    if c.owner(bucket, n) == "t3")
        c.wanted[(bucket, name)] = 1
        put(c, bucket, name, body_of(bucket, name, 1))
        body = body_of(bucket, name, c.wanted[(bucket, name)])
        path = next(p for p in c.object_files("t3") if os.path.getsize(p) == len(body)
                    and open(p, "rb").read() == body)
        os.truncate(path, 100)
        c.restart("t3", *(f"--arg={a}" for a in FULL))
        for _ in range(5):
            equal(wait_200(c, bucket, name).body, body, f"bytes of {name}")
        c.restart("t3")
        wait_whole(c)
        wait_for(lambda p=path, b=body: os.path.exists(p) and open(p, "rb").read() == b,
                 f"a good copy of {name}", 60)


def wait_200(c, bucket, name):
    """503 for the moment in which nobody knows yet which owners may answer."""
    for _ in range(100):
        reply = read(c, bucket, name)
        if reply.status != 503:
            break
        time.sleep(0.05)
    return reply.expect(200)


def join(c, *args):
    c.wanted = {n: v for n, v in c.wanted.items() if v is not None}
    new = c.add_target(*(f"--arg={a}" for a in args))
    wait_for(lambda: not settled(c), "moves")
    return new


def failed_moves(c):
    return c.dfcctl("job", "ls", "--kind", "rebalance", "-o", "json").stdout


def test_a_target_joins_full(c):
    new = join(c, *FULL)
    check_readable(c, c.wanted)
    check_details(c, c.wanted)
    check(not settled(c), "all has moved to a target without room")
    wait_for(lambda: f"target '{new}' did not take all objects" in failed_moves(c),
             "a job that names the target", 200)
    for n in list(c.wanted)[::5]:
        c.object("DELETE", *n).expect(204)
        c.wanted[n] = None
    check_readable(c, c.wanted)
    get_room(c, new, *ROOM)


def get_room(c, new, *args):
    """What it was added with it is started with, but for these."""
    c.restart(new, *(f"--arg={a}" for a in args))
    wait_for(lambda: settled(c) and not lagging(c), "the end of the moves", 300)
    check_read(c, c.wanted)


def test_a_disk_fills_while_objects_move(c):
    new = join(c, "--faults=disk.room=ENOSPC@10+")
    check_readable(c, c.wanted)
    check(not settled(c), "all has moved to a target without room")
    get_room(c, new, "--faults=")


def test_what_is_deleted_need_not_move(c):
    """One copy: the tombstone lies on a disk without room, and what it stands over goes."""
    for bucket in BUCKETS:
        c.destroy(bucket)
    c.create("one", copies=1)
    names = [f"o{i}" for i in range(30)]
    in_parallel(lambda n: put(c, "one", n, b"x" * 1000), names)
    c.wanted = {}
    new = join(c, *FULL)
    mine = [n for n in names if c.owner("one", n) == new]
    check(mine, "the new target owns nothing")
    for name in mine:
        equal(c.get("one", name).expect(200).body, b"x" * 1000, name)
        c.object("DELETE", "one", name).expect(204)
    wait_for(lambda: settled(c), "the end of the moves", 120)
    equal(sorted(c.names("one")), sorted(set(names) - set(mine)), "names")
    get_room(c, new, *ROOM)


if __name__ == "__main__":
    main(targets=3)
