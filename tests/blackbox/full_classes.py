#!/usr/bin/env python3
"""A class of worker threads that is full holds up no other: target/node/thread_classes.def is the
table, and each row has its turn.

The fault point pool.job holds all jobs of one class on t1, and more requests of that kind come than
the class has threads.  Meanwhile requests of all other kinds are served, but for those of classes that
may wait for the full one; objects are written, read, listed and deleted.  Then the held requests
end well."""

import concurrent.futures
import hashlib
import io
import json
import os
import re
import tarfile
import sys

from lib import ROOT, check, equal, main, wait_for
from object_jobs import ended, start
from threads import threads

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

S3 = FakeS3({})
HELD = os.path.join("/tmp", f"dfc-held-{os.getpid()}")
TABLE = os.path.join(ROOT, "target", "node", "thread_classes.def")
ROW = re.compile(r'^THREAD_CLASS\((\w+), "([a-z-]+)", .*?((?:\| *)?WAITS\(.*?|0)\)$', re.M | re.S)
LIMIT = 2  # of each class, by the parameters below; so many and one more requests fill it
ARGS = [f"--target-arg={a}" for a in (
    f"--workers={LIMIT}", f"--copies-parallel={LIMIT}", f"--cold-parallel={LIMIT}",
    "--cold-share=100%", f"--cold-writes={LIMIT}", f"--slices-readers={LIMIT}",
    f"--rename-parallel={LIMIT}", f"--uploads-parallel={LIMIT}",
    f"--hash-threads={LIMIT}", f"--batches-max={LIMIT}",
    f"--unpack-threads={LIMIT}", f"--ring-parallel={LIMIT}", f"--sort-readers={LIMIT}",
    # Without a lease the leader compares before it answers a read, in a thread that commits.
    f"--faults=copies.lease=skip,pool.job=hold:{HELD}")]
LARGE = bytes(range(256)) * 64  # in slices; eight of it are no small file for MD5


def packed(mode="w:gz"):
    """A compressed tar with one member, or a plain one."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        info = tarfile.TarInfo("m")
        info.size = 5
        tar.addfile(info, io.BytesIO(b"bytes"))
    return out.getvalue()


def classes():
    """{name: names of the classes that its threads may wait for}"""
    with open(TABLE, encoding="utf-8") as f:
        rows = {m[1]: (m[2], re.findall(r"WAITS\((\w+)\)", m[3])) for m in ROW.finditer(f.read())}
    return {name: {rows[w][0] for w in waits} for name, waits in rows.values()}


def led_by_t1(c, bucket, label):
    """A name whose writes t1 orders."""
    return next(name for name in (f"{label}-{i}" for i in range(1000))
                if c.owner(bucket, name) == "t1")


# One request of each class, with a name of its own; what it needs is made by prepare().

def rename(c, name):
    return c.object("POST", "one", name, b'{"action": "rename", "name": "%s-new"}' % name.encode())


def pass_on(c, name):
    """t1 takes it for t2, which leads the name, as the client does not follow a redirect."""
    other = next(n for n in (f"{name}-{i}" for i in range(1000)) if c.owner("two", n) != "t1")
    return c.put("two", other, b"x", {"Dfc-Redirect": "never"}, node="t1")


def batch(c, name):
    body = {"entries": [{"bucket": "one", "object": name}]}
    return c.call("POST", "/v1/batch", body, node="t1").expect(200)


def unpack(c, name):
    return c.object("GET", "packed", name, query="member=m").expect(200)


def append(c, name):
    return c.object("PUT", "grown", name, b"more", query="member=n").expect(200)


def begin_upload(c, name):
    return c.call("POST", f"/v1/uploads/one/{name}", b"", node="t1").expect(201)


PART = b"the only part"


def upload_one(c, name):
    """The query of an upload that waits to be completed."""
    query = f"upload={begin_upload(c, name).json()['upload']}"
    c.call("PUT", f"/v1/uploads/one/{name}?{query}&part=1", PART, node="t1").expect(200)
    return f"{name}?{query}"


def complete_upload(c, name_and_query):
    listed = [{"part": 1, "tag": hashlib.md5(PART).hexdigest()}]
    return c.call("POST", f"/v1/uploads/one/{name_and_query}", listed, node="t1").expect(200)


def led_ring(c):
    """A ring whose keeper is t1."""
    return next(b for b in ("ring-b", "ring-c", "ring-d", "ring-e", "ring-f", "ring-g")
                if c.owner(b, "head") == "t1")


def clear_ring(c, _):
    return c.call("DELETE", f"/v1/rings/{led_ring(c)}/samples", node="t1").expect(200)


def read_sample(c, _):
    """The first sample of a lane of t1."""
    lane = next(s["lane"] for s in PUSHED if s["lane"].startswith("t1."))
    return c.call("GET", f"/v1/rings/ring-a/samples?lane={lane}", node="t1").expect(200)


def archive(c, name):
    """A job for which another target asks t1 for the bytes of an object."""
    given = led_by_t1(c, "one", f"{name}/in")
    c.put("one", given, LARGE)
    made = next(n for n in (f"{name}-{i}.tar" for i in range(1000)) if c.owner("one", n) != "t1")
    job_id = start(c, "one", "archive", {"prefix": f"{name}/", "archive": made})
    equal(ended(c, job_id)["state"], "finished", "state")
    return c.object("HEAD", "one", made)


PUSHED = []  # what dfcctl has said of each


def push_to_t1(c):
    while not any(s["lane"].startswith("t1.") for s in PUSHED):
        PUSHED.append(json.loads(c.dfcctl("ring", "push", "ring-a", __file__, "-o", "json").stdout))


KINDS = {
    "assembler": ("one", complete_upload),
    "keeper": ("one", begin_upload),
    "appender": ("grown", append),
    "mover": ("one", rename),
    "ring-keeper": (None, clear_ring),
    "ring-lane": (None, read_sample),
    "hander": (None, pass_on),
    "batch": ("one", batch),
    "commit": ("two", lambda c, name: c.put("two", name, b"new")),
    "writer": ("through", lambda c, name: c.put("through", name, b"new")),
    "uploader": ("back", lambda c, name: c.put("back", name, b"new")),
    "fetcher": ("cold", lambda c, name: c.get("cold", name).expect(200)),
    "asker": ("cold", lambda c, name: c.object("HEAD", "cold", name).expect(200)),
    "ec-read": ("sliced", lambda c, name: c.get("sliced", name).expect(200)),
    "hasher": ("hashed", lambda c, name: c.put("hashed", name, 8 * LARGE)),
    "unpacker": ("packed", unpack),
    "sort-reader": (None, archive),
    "worker": (None, lambda c, name: c.call("GET", "/v1/daemon?what=summary", node="t1")),
}


def prepare(c, kind, label):
    """→ the name for one request."""
    bucket = KINDS[kind][0]
    if bucket is None:
        return label
    name = led_by_t1(c, bucket, label)
    if bucket == "cold":
        S3.put("data", name, b"cold")
    elif bucket in ("one", "sliced"):
        c.put(bucket, name, LARGE)
    elif bucket == "packed":
        c.put(bucket, name, packed())
    elif bucket == "grown":
        c.put(bucket, name, packed("w"))
    return upload_one(c, name) if kind == "assembler" else name


def ask(c, kind, name):
    reply = KINDS[kind][1](c, name)
    check(reply.status < 300, f"{kind}: {reply!r}")


def everything_else_goes_on(c, full, beside):
    for kind, name in beside.items():
        ask(c, kind, name)
    name = led_by_t1(c, "one", f"plain-{full}")
    c.put("one", name, b"plain")
    equal(c.get("one", name).expect(200).body, b"plain", "contents")
    check(name in c.names("one", prefix="plain"), "the list has it")
    c.object("DELETE", "one", name).expect(204)
    c.get("one", name).expect(404)


def fill(c, full, waits):
    names = [prepare(c, full, f"full-{full}-{i}") for i in range(LIMIT + 1)]
    # A job needs threads of several classes, on all targets.
    beside = {kind: prepare(c, kind, f"beside-{full}-{kind}") for kind in KINDS
              if kind not in (full, "sort-reader") and full not in waits[kind]}
    limit = 1 if full == "hander" else LIMIT  # a share of copies_parallel
    flag = os.path.join(HELD, full)
    pid = c.pid("t1")
    with open(flag, "w", encoding="ascii"), concurrent.futures.ThreadPoolExecutor(LIMIT + 1) as pool:
        try:
            held = [pool.submit(ask, c, full, name) for name in names]
            wait_for(lambda: threads(pid)[full] == limit, f"all threads of {full} have a job")
            everything_else_goes_on(c, full, beside)
            equal(threads(pid)[full], limit, f"threads of {full}")
            if full != "uploader":  # no client waits for an upload
                equal([h.done() for h in held], [False] * len(held), f"{full}: requests that ended")
        finally:
            os.unlink(flag)
        for h in held:
            h.result()


def test_each_class_has_its_kind_of_request(c):
    check(c.pid("t1"), "t1 runs")
    equal(sorted(KINDS), sorted(classes()), "classes of the table")


def test_a_full_class_holds_up_no_other(c):
    waits = classes()
    c.create("one")
    c.create("two", copies=2)
    c.create("packed")
    c.create("grown")
    c.create("hashed", etag="md5")
    c.create("sliced", ec={"data": 1, "parity": 1, "min_size": 1000})
    for letter in "abcdefg":
        c.create(f"ring-{letter}", ring="cap=1000")
    push_to_t1(c)
    backend = f"s3://data?endpoint={S3.url}&auth=none"
    S3.put("data", "seed", b"seed")
    c.create("cold", backend=backend)
    c.create("through", backend=backend, write_policy="through")
    c.create("back", backend=backend, write_policy="back")
    for full in waits:
        fill(c, full, waits)
        print(f"        {full}", flush=True)
    equal(c.dfcctl("bucket", "wait", "back").returncode, 0, "what was written back is uploaded")


if __name__ == "__main__":
    os.makedirs(HELD, exist_ok=True)
    try:
        with S3:
            main(targets=2, mountpaths=1, args=ARGS)
    finally:
        for left in os.listdir(HELD):
            os.unlink(os.path.join(HELD, left))
        os.rmdir(HELD)
