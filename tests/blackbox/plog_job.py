#!/usr/bin/env python3
"""The job `flatten`: targets make objects of plogs.  Whatever ends it, the name has the plog or the
object, and all that was acknowledged."""

import json
import os
import tempfile

from lib import WAIT_SECONDS, Cluster, check, equal, in_parallel, main, wait_for
from plog import WRITE, Driver, command, read_twice

ROOT = ".dfc-plog/"
DURABLE = 2  # ATTR_DURABLE of target/format/attr.h, in the second byte of the attribute
DAMAGE_SECONDS = 45  # less than a job waits for a damaged file to be mended (job_source.c)
HELD = tempfile.mkdtemp(prefix="dfc-held-")  # a plog named so waits, before or after its PUT
BEFORE, AFTER = os.path.join(HELD, "before"), os.path.join(HELD, "after")


class Held:
    """The flattening of this plog waits at the place."""

    def __init__(self, place, name):
        self.path = os.path.join(place, name)

    def __enter__(self):
        with open(self.path, "w", encoding="utf-8"):
            return self

    def release(self):
        if os.path.exists(self.path):
            os.unlink(self.path)

    def __exit__(self, *_):
        self.release()


def make(c, name, *writes, bucket="b"):
    with Driver(c, name, bucket) as d:
        d.open()
        for write in writes:
            d.do("write", *write)
        d.do("close")


def start(c, bucket, **value):
    reply = c.call("POST", f"/v1/buckets/{bucket}", {"action": "flatten", "value": value})
    return reply.expect(202).json()["id"]


def ended(c, job, seconds=WAIT_SECONDS):
    def reached():
        doc = c.get_json(f"/v1/jobs/{job}")
        return doc if doc["state"] in ("finished", "failed", "aborted") else None
    return wait_for(reached, f"the end of {job}", seconds)


def finish(c, job):
    doc = ended(c, job)
    equal(doc["state"], "finished", f"{job}: {doc}")
    return doc["progress"]["objects"]


def fail(c, job, code, text, seconds=WAIT_SECONDS):
    doc = ended(c, job, seconds)
    equal(doc["state"], "failed", f"{job}: {doc}")
    equal(doc["errors"][0]["code"], code, doc["errors"])
    check(text in doc["errors"][0]["message"], doc["errors"])


def body(c, name, bucket="b"):
    return c.get(bucket, name).expect(200).body


def some_target(c, job, what, is_so):
    wait_for(lambda: any(is_so(t) for t in c.get_json(f"/v1/jobs/{job}")["targets"].values()), what)


def wait_for_place(c, job, name):
    """Until the plog has its mark, and its bytes are to be read."""
    some_target(c, job, f"a target that flattens {name}",
                lambda t: t.get("status", {}).get("plog") == name)


def make_strided(c, bucket, name):
    ranks, size, records = 3, 4701, 30
    writers = [Driver(c, name, bucket) for _ in range(ranks)]
    for rank, w in enumerate(writers):
        w.open()
        for index in range(records):
            w.do("write", (index * ranks + rank) * size, size, 1 + rank + 3 * index)
    for w in writers:
        w.do("close")
        w.__exit__()
    return b"".join(bytes([1 + rank + 3 * index]) * size for index in range(records)
                    for rank in range(ranks))


def flatten_all(c, bucket):
    wanted = {f"run/{number}": make_strided(c, bucket, f"run/{number}") for number in range(3)}
    make(c, "run/empty", bucket=bucket)
    make(c, "run/sparse", (5_000_000, 3, 7), bucket=bucket)
    make(c, "other", (0, 3, 7), bucket=bucket)
    wanted |= {"run/empty": b"", "run/sparse": bytes(5_000_000) + b"\7\7\7", "run/object": b"an object"}
    c.put(bucket, "run/object", wanted["run/object"])
    command(c, "flatten", f"dfc://{bucket}/run/", "--job", "--recursive", "--wait")
    for name, data in wanted.items():
        check(body(c, name, bucket) == data, f"{bucket}/{name}")
    equal(json.loads(body(c, "other", bucket))["plog"], 1, "a plog that the job does not name")
    objects = finish(c, start(c, bucket, list=["other", "run/0", "absent"]))
    equal([objects[k] for k in ("done", "skipped", "missing")], [1, 1, 1], "what a job did")
    equal(body(c, "other", bucket), b"\7\7\7", "the last plog")
    equal(c.names(bucket, prefix=ROOT), [], f"what is left of containers in {bucket}")


def test_all_plogs_of_a_prefix(c):
    c.create("b")
    c.create("two", copies=2)
    c.create("cut", ec={"data": 2, "parity": 1})
    in_parallel(lambda bucket: flatten_all(c, bucket), ("b", "two", "cut"))


def made(c, bucket, name, size=1000):
    """A plog, and the names in its container."""
    make(c, name, (0, size, 1), bucket=bucket)
    return c.names(bucket, prefix=ROOT)


def refuse_damage(c, bucket):
    """What is in the plog fails it at once, also where a copy would mend the head."""
    segment, = [n for n in made(c, bucket, "damaged") if "/s/" in n]
    sound = body(c, segment, bucket)
    c.put(bucket, segment, b"\2" * 1000 + sound[1000:])
    fail(c, start(c, bucket, list=["damaged"]), "corrupt", "checksum", DAMAGE_SECONDS)
    c.put(bucket, segment, sound)
    finish(c, start(c, bucket, list=["damaged"]))
    equal(body(c, "damaged", bucket), b"\1" * 1000, "the flat object")
    for part, size in (("/s/", 1000), ("/s/", 10), ("/m/", 1000)):  # the error is longer than 10 bytes
        lost, = [n for n in made(c, bucket, "lossy", size) if part in n]
        c.object("DELETE", bucket, lost).expect(204)
        fail(c, start(c, bucket, list=["lossy"]), "corrupt", "has lost", DAMAGE_SECONDS)
        done = c.dfcctl("plog", "flatten", f"dfc://{bucket}/lossy")
        check(done.returncode != 0 and "has lost" in done.stderr, done.stderr)
        c.object("DELETE", bucket, "lossy").expect(204)
        command(c, "gc", bucket, "--grace", "0s")


def test_what_it_refuses(c):
    with Driver(c, "open") as d:
        d.open()
        d.do("write", 0, 5, 1)
        d.do("sync")
        fail(c, start(c, "b", list=["open"]), "plog_busy", "plog recover")
        equal(bytes(read_twice(c, "open")), b"\1" * 5, "a plog that is open")
        d.do("close")
    done = c.dfcctl("plog", "flatten", "dfc://b/open", "--job", "--wait")
    equal(done.returncode, 0, done.stderr)
    equal(body(c, "open"), b"\1" * 5, "the flat object")
    c.put("b", "broken", b"{", headers={"Content-Type": "application/vnd.dfc.plog+json"})
    fail(c, start(c, "b", list=["broken"]), "invalid_argument", "broken")
    c.object("DELETE", "b", "broken").expect(204)
    for bucket in ("b", "two"):
        refuse_damage(c, bucket)
    fail(c, start(c, "b", prefix="none/"), "nothing_matched", "none/")
    c.call("POST", "/v1/buckets/b", {"action": "flatten", "value": {}}).expect(400, "invalid_spec")
    command(c, "flatten", "dfc://b/run/", "--recursive", code=2)
    command(c, "flatten", "dfc://b/open", "--wait", code=2)


def test_a_backup_is_put_back(c):
    """A plain GET of a head returns the head; a head that is put back has lost its content type."""
    make(c, "saved", (3, 5, 1))
    folder = os.path.join(c.dir, "backup")
    c.create("back")
    for source, to in (("dfc://b", folder), (folder, "dfc://back")):
        done = c.dfcctl("sync", source, to)
        equal(done.returncode, 0, done.stderr)
    equal(c.object("HEAD", "back", "saved").headers["Content-Type"], "application/octet-stream",
          "the type of the head")
    c.put("back", "large", bytes(100_000))
    kept = c.names("back", prefix=ROOT)
    objects = finish(c, start(c, "back", prefix=""))
    equal(objects["done"], 1, "plogs that were flattened")
    equal(body(c, "saved", "back"), bytes(3) + b"\1" * 5, "the flat object")
    equal(c.names("back", prefix=ROOT), kept, "the container, which another head may have")
    command(c, "gc", "back", "--grace", "0s")
    equal(c.names("back", prefix=ROOT), [], "what is left of containers")
    finish(c, start(c, "b", list=["saved"]))


def refuse_a_copy(c, bucket):
    with Driver(c, "live", bucket) as d:
        d.open()
        copy = body(c, "live", bucket)
        d.do("write", 0, 5, 1)
        d.do("close")
    c.put(bucket, "stale/untyped", copy)
    c.put(bucket, "stale/typed", copy, headers={"Content-Type": "application/vnd.dfc.plog+json"})
    container = c.names(bucket, prefix=ROOT)
    for name in ("stale/untyped", "stale/typed"):
        fail(c, start(c, bucket, list=[name]), "corrupt", "old copy of a head", DAMAGE_SECONDS)
        check("old copy of a head" in c.dfcctl("plog", "flatten", f"dfc://{bucket}/{name}").stderr, name)
    equal(c.names(bucket, prefix=ROOT), container, "the objects of the plog")
    equal(bytes(read_twice(c, "live", bucket)), b"\1" * 5, "the plog")
    for flatten in (("--job", "--wait"), ()):
        c.put(bucket, "stale/now", body(c, "live", bucket))
        command(c, "flatten", f"dfc://{bucket}/stale/now", *flatten)
        equal(body(c, "stale/now", bucket), b"\1" * 5, "the object of a copy")
        equal(c.names(bucket, prefix=ROOT), container, "the objects of the plog")
    for name in c.names(bucket, prefix="stale/"):
        c.object("DELETE", bucket, name).expect(204)
    finish(c, start(c, bucket, list=["live"]))


def test_a_copy_of_a_head(c):
    """A head that was copied before the first merge shows nothing: it must not take the bytes of
    the plog that it was copied from."""
    for bucket in ("b", "two"):
        refuse_a_copy(c, bucket)


def flags_of(c, name):
    """Of the object's files on all mountpaths."""
    found = [os.getxattr(path, "user.dfc") for t in c.targets() for path in c.object_files(t)]
    return [raw[1] for raw in found if name.encode() + b"\0" in raw]


def test_a_bucket_that_is_not_synced(c):
    """What replaces the bytes of a plog is on the disk before they are deleted."""
    for bucket, shape in {"loose1": {}, "loose2": {"copies": 2}, "loose3": {"ec": {"data": 2, "parity": 1}}}.items():
        c.create(bucket, durability="async", **shape)
        name = f"in-{bucket}"
        make(c, name, (0, 5000, 1), bucket=bucket)
        before = flags_of(c, name)
        check(before and not any(flags & DURABLE for flags in before), f"{bucket}: {before}")
        finish(c, start(c, bucket, list=[name]))
        equal(body(c, name, bucket), b"\1" * 5000, "the flat object")
        after = flags_of(c, name)
        check(after and all(flags & DURABLE for flags in after), f"{bucket}: {after}")


def test_a_writer_overtakes_it(c):
    make(c, "race", (0, 5, 1))
    with Held(BEFORE, "race") as held:
        job = start(c, "b", list=["race"])
        wait_for_place(c, job, "race")
        make(c, "race", (5, 5, 2))
        held.release()
        fail(c, job, "precondition_failed", "not changed by this")
    equal(bytes(read_twice(c, "race")), b"\1" * 5 + b"\2" * 5, "the plog")
    finish(c, start(c, "b", list=["race"]))
    equal(body(c, "race"), b"\1" * 5 + b"\2" * 5, "the flat object")


def test_it_is_removed(c):
    make(c, "gone", (0, 200_000, 1))
    with Held(BEFORE, "gone") as held, Driver(c, "gone") as d:
        job = start(c, "b", list=["gone"])
        wait_for_place(c, job, "gone")
        d.do("unlink")
        held.release()
        fail(c, job, "precondition_failed", "removed meanwhile")
    c.get("b", "gone").expect(404)
    equal(c.names("b", prefix=ROOT), [], "what is left of containers")


def test_abort(c):
    make(c, "aborted", (0, 5, 1))
    with Held(BEFORE, "aborted") as held:
        job = start(c, "b", list=["aborted"])
        wait_for_place(c, job, "aborted")
        c.call("DELETE", f"/v1/jobs/{job}").expect(202)
        some_target(c, job, "a target that has stopped", lambda t: t["state"] == "stopped")
        held.release()
        equal(ended(c, job)["state"], "aborted", "the job")
    if body(c, "aborted") == b"\1" * 5:
        print("# the order to stop came too late")
        return
    equal(bytes(read_twice(c, "aborted")), b"\1" * 5, "the plog")
    make(c, "aborted", (5, 5, 2))
    finish(c, start(c, "b", list=["aborted"]))
    equal(body(c, "aborted"), b"\1" * 5 + b"\2" * 5, "the flat object")


def test_the_target_restarts(c):
    make(c, "before", (0, 300_000, 1))
    make(c, "after", (0, 300_000, 2))
    job, second = None, None
    with Held(BEFORE, "before"), Held(AFTER, "after"):
        job = start(c, "b", list=["before"])
        wait_for_place(c, job, "before")
        owner = c.owner("b", "before")
        c.kill(owner)
    c.start(owner)
    equal(finish(c, job)["done"], 1, "plogs that were flattened")
    equal(body(c, "before"), b"\1" * 300_000, "the flat object")
    with Held(AFTER, "after"):
        second = start(c, "b", list=["after"])
        wait_for(lambda: body(c, "after") == b"\2" * 300_000, "the flat object")
        owner = c.owner("b", "after")
        c.kill(owner)
    c.start(owner)
    equal(finish(c, second)["skipped"], 1, "plogs that were flat")
    equal(body(c, "after"), b"\2" * 300_000, "the flat object")
    with Driver(c, "after") as d:
        check(d.ask("open", WRITE, 65536) != [], "it is a plog still")
    wait_for(lambda: c.dfcctl("plog", "gc", "b", "--grace", "0s").returncode == 0, "gc")
    equal(c.names("b", prefix=ROOT), [], "what is left of containers")


def test_a_reply_is_lost(c):
    """The mark, or the object, is stored, and the target that leads the name says in_doubt."""
    for number in (1, 2):
        name = f"doubt{number}"
        make(c, name, (0, 5000, number), bucket="two")
        owner = c.owner("two", name)
        c.restart(owner, f"--arg=--faults=copies.answer=EIO@{number}")
        equal(finish(c, start(c, "two", list=[name]))["done"], 1, "plogs that were flattened")
        equal(body(c, name, "two"), bytes([number]) * 5000, "the flat object")
        c.restart(owner)


def test_an_index_above_the_limit(c):
    """Each write needs a piece of memory, many times what the index has of it."""
    make(c, "many", *((i * i, 1, 1) for i in range(3000)))
    owner = c.owner("b", "many")
    c.restart(owner, "--arg=--plog-index-max=64KiB")
    fail(c, start(c, "b", list=["many"]), "too_large", "plog_index_max")
    c.restart(owner)
    finish(c, start(c, "b", list=["many"]))
    equal(len(body(c, "many")), 2999 ** 2 + 1, "the flat object")


def make_cluster(**shape):
    os.makedirs(BEFORE, exist_ok=True)
    os.makedirs(AFTER, exist_ok=True)
    return Cluster(**shape)


if __name__ == "__main__":
    try:
        main(make_cluster, args=(f"--target-arg=--faults=plog.flatten=hold:{BEFORE},"
                                 f"plog.flat=hold:{AFTER}",))
    finally:
        os.rmdir(BEFORE)
        os.rmdir(AFTER)
        os.rmdir(HELD)
