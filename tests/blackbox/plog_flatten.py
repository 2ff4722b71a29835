#!/usr/bin/env python3
"""dfcctl plog flatten, cp, ls and gc: plogs become objects, also while others write them and when the
command is killed; what removed plogs leave behind is found, and removed."""

import json
import os
import random
import subprocess
import threading
import time

from lib import BUILD, Failed, check, equal, in_parallel, main, wait_for
from plog import CREATE, PRECONDITION, WRITE, Driver, command, read_twice

ROOT = ".dfc-plog/"
TYPE = "application/vnd.dfc.plog+json"


def new_bucket(c):
    """`b` without what an earlier test left in it."""
    if c.call("GET", "/v1/buckets/b").status == 200:
        c.destroy("b")
    c.create("b")


def plogs(c):
    return json.loads(command(c, "ls", "b", "-o", "json"))["plogs"]


def refused(c, name, text):
    done = c.dfcctl("plog", "flatten", f"dfc://b/{name}")
    equal(done.returncode, 1, f"exit code of flatten: {done.stderr}")
    check(text in done.stderr, f"wanted {text!r} in {done.stderr!r}")


def make(c, name, *writes):
    with Driver(c, name) as d:
        d.open()
        for write in writes:
            d.do("write", *write)
        d.do("close")


def body(c, name):
    return c.get("b", name).expect(200).body


def kind(c, name):
    return c.object("HEAD", "b", name).expect(200).headers["Content-Type"]


def test_bytes_of_strided_writers(c):
    new_bucket(c)
    ranks, size, records = 3, 4701, 40
    writers = [Driver(c, "dir/strided") for _ in range(ranks)]
    for rank, w in enumerate(writers):
        w.open()
        for index in range(records):
            w.do("write", (index * ranks + rank) * size, size, 1 + rank + 3 * index)
        w.do("sync")
    refused(c, "dir/strided", "is open for writing")
    writers[0].kill()  # it dies, and has synced
    for w in writers[1:]:
        w.do("close")
        w.__exit__()
    refused(c, "dir/strided", "plog recover")
    command(c, "recover", "dfc://b/dir/strided", "--timeout", "1s")
    seen = bytes(read_twice(c, "dir/strided"))
    equal(seen, b"".join(bytes([1 + rank + 3 * index]) * size for index in range(records)
                         for rank in range(ranks)), "the plog")
    command(c, "cp", "dfc://b/dir/strided", "dfc://b/copy")
    equal(body(c, "copy"), seen, "the copy")
    equal([(p["name"], p["size"]) for p in plogs(c)], [("dir/strided", len(seen))], "plog ls")
    equal(kind(c, "dir/strided"), TYPE, "the type of a plog")
    late = Driver(c, "dir/strided")
    late.open()
    command(c, "flatten", "dfc://b/dir/strided")
    equal(body(c, "dir/strided"), seen, "the flat object")
    equal(kind(c, "dir/strided"), "application/octet-stream", "the type of the flat object")
    equal(c.names("b", prefix=ROOT), [], "what is left of the container")
    late.do("write", 0, 1, 9)
    equal(late.ask("sync"), PRECONDITION, "a sync after the flattening")
    late.do("drop")
    late.__exit__()
    command(c, "flatten", "dfc://b/dir/strided", code=2)  # it is no plog any more
    command(c, "flatten", "dfc://b/absent", code=3)
    command(c, "cp", "dfc://b/copy", "dfc://b/copy", code=2)
    left, = plogs(c)  # the late writer's segment
    check("name" not in left and left["objects"] > 0, f"plog ls: {left}")
    check("younger" in command(c, "gc", "b"), "it is young")
    check("would remove 1 container" in command(c, "gc", "b", "--grace", "0s", "--dry-run"), "dry run")
    equal(len(plogs(c)), 1, "a dry run removes nothing")
    check("removed 1 container:" in command(c, "gc", "b", "--grace", "0s"), "gc")
    equal(c.names("b", prefix=ROOT), [], "what is left of the container")


def test_empty_and_sparse(c):
    new_bucket(c)
    make(c, "empty")
    command(c, "flatten", "dfc://b/empty")
    equal(body(c, "empty"), b"", "an empty file")
    make(c, "sparse", (5_000_000, 3, 7))
    command(c, "flatten", "dfc://b/sparse")
    equal(body(c, "sparse"), bytes(5_000_000) + b"\7\7\7", "a sparse file")
    command(c, "cp", "dfc://b/sparse", "dfc://b/x", code=2)


def test_damage_makes_no_object(c):
    new_bucket(c)
    make(c, "damaged", (0, 1000, 1))
    segment, = [n for n in c.names("b", prefix=ROOT) if "/s/" in n]
    sound = body(c, segment)
    c.put("b", segment, b"\2" * 1000 + sound[1000:])
    before = body(c, "damaged")
    refused(c, "damaged", "checksum")
    equal(json.loads(body(c, "damaged"))["id"], json.loads(before)["id"], "the head")
    c.put("b", segment, sound)
    command(c, "flatten", "dfc://b/damaged")
    equal(body(c, "damaged"), b"\1" * 1000, "the flat object")


def test_a_writer_at_the_same_time(c):
    """Whatever a writer's sync acknowledged is in the flat object.  A writer that is faster than the
    flattenings pauses after the third."""
    new_bucket(c)
    for turn in range(3):
        url, name, acknowledged, paused = f"dfc://b/race{turn}", f"race{turn}", [], threading.Event()

        def write(name=name, acknowledged=acknowledged, paused=paused):
            with Driver(c, name) as d:
                for index in range(1, 250):
                    if paused.is_set() or d.ask("open", WRITE, 65536) != []:
                        return  # it is flat
                    d.do("write", index, 1, index)
                    if d.ask("sync" if index % 2 else "close") != []:
                        d.do("drop")
                        return
                    acknowledged.append(index)
                    if index % 2:
                        d.do("close")

        def flatten(url=url, acknowledged=acknowledged, paused=paused, turn=turn):
            wait_for(lambda: len(acknowledged) > 4 * turn, "some writes")
            for _ in range(3):
                done = c.dfcctl("plog", "flatten", url)
                if done.returncode == 0:
                    return
                check("is open for writing" in done.stderr or "meanwhile" in done.stderr, done.stderr)
            paused.set()

        make(c, name, (0, 1, 255))
        in_parallel(lambda act: act(), [write, flatten])
        if paused.is_set():
            command(c, "flatten", url)
        flat = list(body(c, name)[1:])
        # A close whose last look at the head came too late was not acknowledged, and may be there.
        check(flat in (acknowledged, acknowledged + [len(acknowledged) + 1]),
              f"{flat} is flat, and {acknowledged} was acknowledged")
        print(f"# {len(acknowledged)} writes before the flattening" + ", in a pause" * paused.is_set())


def flatten_and_kill(c, name, seconds):
    process = subprocess.Popen([os.path.join(BUILD, "dfcctl"), "plog", "flatten", f"dfc://b/{name}"],
                               env=c.dfcctl_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    process.wait()


def test_killed_at_any_moment(c):
    new_bucket(c)
    rng = random.Random(7)
    size, flat, turns = 2_000_000, 0, 10
    expected = bytes([3]) * size
    make(c, "whole", (0, size, 3))
    began = time.monotonic()
    command(c, "flatten", "dfc://b/whole")
    longest = time.monotonic() - began
    for turn in range(turns):
        name = f"killed{turn}"
        make(c, name, (0, size, 3))
        flatten_and_kill(c, name, rng.random() * longest)
        found = body(c, name)
        if found != expected:
            check(json.loads(found)["plog"] == 1, "neither the plog nor the object")
            try:
                equal(bytes(read_twice(c, name)), expected, "the plog after a kill")
                make(c, name, (0, 1, 3))
                command(c, "flatten", f"dfc://b/{name}")
            except Failed:  # a PUT that the kill did not stop may have ended meanwhile
                wait_for(lambda n=name: body(c, n) == expected, "the flat object, or the plog")
            longest *= 1.3
        else:
            flat += 1
            longest *= 0.7  # so that some kills come early, however fast the machine is
        equal(body(c, name), expected, "the flat object")
    print(f"# {flat} of {turns} were flat when the command ended")

    def is_collected():  # calls that the kills did not stop may end late
        command(c, "gc", "b", "--grace", "0s")
        return c.names("b", prefix=ROOT) == []

    wait_for(is_collected, "no containers are left")


def test_what_removed_plogs_leave(c):
    new_bucket(c)
    make(c, "kept", (0, 10, 1))
    make(c, "removed", (0, 10, 1))
    c.call("DELETE", "/v1/objects/b/removed").expect(204)  # the head alone
    make(c, "removed", (0, 10, 2))  # another plog of that name
    with Driver(c, "open") as d:
        d.open(WRITE | CREATE)
        d.do("write", 0, 10, 3)
        d.do("sync")
        make(c, "nothing")
        equal([p.get("name") for p in plogs(c)], ["kept", "nothing", "open", "removed", None],
              "plog ls")
        check(plogs(c)[-1]["id"] in command(c, "ls", "b", "--long"), "plog ls for people")
        done = json.loads(command(c, "gc", "b", "--grace", "0s", "-o", "json"))
        equal((done["containers"], done["younger"]), (1, 0), "plog gc")
        done = c.dfcctl("mv", "dfc://b/kept", "dfc://b/a/moved")
        equal(done.returncode, 0, done.stderr)
        command(c, "gc", "b", "--grace", "0s")
        c.put("b", "broken", b"{", headers={"Content-Type": TYPE})
        done = c.dfcctl("plog", "gc", "b", "--grace", "0s")
        equal(done.returncode, 1, "exit code of gc with a head that cannot be read")
        check("'broken'" in done.stderr, done.stderr)
        c.object("DELETE", "b", "broken").expect(204)
        d.do("write", 10, 10, 4)
        d.do("close")
    equal(bytes(read_twice(c, "open")), b"\3" * 10 + b"\4" * 10, "a plog that was open")
    equal(bytes(read_twice(c, "removed")), b"\2" * 10, "the new plog")
    equal(bytes(read_twice(c, "a/moved")), b"\1" * 10, "a plog that was renamed")
    command(c, "ls", "absent", code=3)
    command(c, "gc", "absent", code=3)


if __name__ == "__main__":
    main()
