#!/usr/bin/env python3
"""Batches: many objects, members and ranges in one archive, in the order asked for.  Each entry is whole,
or the reply is cut."""

import http.client
import io
import json
import os
import random
import sys
import tarfile
import threading
import urllib.parse
import zipfile

from lib import ROOT, check, equal, in_parallel, main, wait_for
from members import archive, files_of

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

S3 = FakeS3({})
# Eight entries are fetched ahead; a lost owner is waited for as long as call_timeout.
ARGS = ["--target-arg=--batch-window=2MiB", "--target-arg=--batch-entries-max=1000",
        "--target-arg=--call-timeout=20s"]
BUCKETS = {"one": {}, "two": {"copies": 2},
           "sliced": {"ec": {"data": 2, "parity": 1, "min_size": 1000}}}
OBJECTS = {}  # (bucket, name): bytes


def put(c, bucket, name, data):
    c.put(bucket, name, data)
    OBJECTS[bucket, name] = data


def post(c, entries, node="p1", missing=None, form=None, **options):
    body = {"entries": entries, **(form or {})}
    if missing is not None:
        body["on_missing"] = missing
    return c.call("POST", "/v1/batch", body, node=node, **options)


def read(body):
    """[(name, bytes)] of a whole tar."""
    if body[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(body)) as archived:
            check(archived.testzip() is None, "a damaged zip")
            return [(i.filename, archived.read(i)) for i in archived.infolist()]
    with tarfile.open(fileobj=io.BytesIO(body), mode="r|*") as tar:
        return [(m.name, tar.extractfile(m).read()) for m in tar]


def entry(bucket, name, **more):
    return {"bucket": bucket, "object": name, **more}


def check_batch(c, entries, bodies, **options):
    found = read(post(c, entries, **options).expect(200).body)
    equal(len(found), len(entries), "entries")
    for e, body, (name, data) in zip(entries, bodies, found):
        wanted = "/".join([e["bucket"], e["object"]] + ([e["member"]] if "member" in e else []))
        equal(name, wanted, "name of an entry")
        check(data == body, f"{name}: other bytes")


def test_objects_of_all_buckets_in_order(c):
    rng = random.Random(1)
    for bucket, props in BUCKETS.items():
        c.create(bucket, **props)
        for i in range(20):
            put(c, bucket, f"dir/{i:02}", rng.randbytes(rng.choice((0, 1, 511, 512, 513, 100000))))
        put(c, bucket, "large", rng.randbytes(3000000))
    keys = list(OBJECTS) * 2  # each twice
    rng.shuffle(keys)
    for node in ("p1", "t1", "t2", "t3"):
        check_batch(c, [entry(*k) for k in keys], [OBJECTS[k] for k in keys], node=node)


def test_members_and_ranges(c):
    data = archive(seed=5)
    files = files_of(data)
    for bucket in BUCKETS:
        put(c, bucket, "a.tar", data)
        large = OBJECTS[bucket, "large"]
        entries = [entry(bucket, "a.tar", member=path) for path in files]
        bodies = list(files.values())
        for offset, length in ((0, 1), (1000, 70000), (2999999, 5)):
            entries.append(entry(bucket, "large", offset=offset, length=length))
            bodies.append(large[offset:offset + length])
        entries += [entry(bucket, "large", offset=2990000),
                    entry(bucket, "a.tar", member="dir/03.bin", offset=1, length=9)]
        bodies += [large[2990000:], files["dir/03.bin"][1:10]]
        check_batch(c, entries, bodies)


def test_long_names_and_nothing(c):
    name = "n" * 300 + "/\u00e6\u00f8\u00e5 &?#%"
    put(c, "one", name, b"long")
    check_batch(c, [entry("one", name)], [b"long"])
    equal(read(post(c, []).expect(200).body), [], "a batch of nothing")


def test_formats_and_names(c):
    keys = list(OBJECTS)[::5] + [("one", "dir/00")]
    bodies = [OBJECTS[k] for k in keys]
    for extension, content_type in ((".tar", "application/x-tar"), (".tar.gz", "application/gzip"),
                                    (".tgz", "application/gzip"), (".zip", "application/zip")):
        reply = post(c, [entry(*k) for k in keys], form={"format": extension}).expect(200)
        equal(reply.headers["Content-Type"], content_type, extension)
        equal(read(reply.body), [("/".join(k), d) for k, d in zip(keys, bodies)], extension)
        bare = post(c, [entry(*k) for k in keys] + [entry("one", "none")], missing="empty",
                    form={"format": extension, "names": "object"}).expect(200)
        equal(read(bare.body), [(k[1], d) for k, d in zip(keys, bodies)] + [("__404__/none", b"")],
              extension)
        nothing = post(c, [], form={"format": extension}).expect(200)
        equal(read(nothing.body), [], "a batch of nothing")


def parts_of(reply):
    """→ (the report, the archive) of a batch that had one."""
    kind, boundary = reply.expect(200).headers["Content-Type"].split("; boundary=")
    equal(kind, "multipart/mixed", "the type")
    _, report, archived, end = reply.body.split(b"--" + boundary.encode())
    equal(end, b"--\r\n", "the end")
    head, document = report.split(b"\r\n\r\n", 1)
    equal(head, b"\r\nContent-Type: application/json", "the head of the report")
    head, archived = archived.split(b"\r\n\r\n", 1)
    return json.loads(document), archived.removesuffix(b"\r\n")


def test_a_report_comes_before_the_archive(c):
    """Of objects, members, ranges and what is missing, in buckets of all kinds."""
    for bucket in BUCKETS:
        large = OBJECTS[bucket, "large"]
        entries = [entry(bucket, "large"), entry(bucket, "large", offset=2999990, opaque="mine"),
                   entry(bucket, "large", offset=7, length=100), entry(bucket, "none"),
                   entry(bucket, "a.tar", member="dir/03.bin", offset=1, length=9)]
        wanted = [large, large[2999990:], large[7:107], b"",
                  files_of(OBJECTS[bucket, "a.tar"])["dir/03.bin"][1:10]]
        report, archived = parts_of(post(c, entries, missing="empty", form={"report": True}))
        equal([d for _, d in read(archived)], wanted, bucket)
        equal([i["size"] for i in report["out"]], [len(d) for d in wanted], bucket)
        equal([(i["bucket"], i["objname"], i.get("archpath"), i.get("opaque")) for i in report["out"]],
              [(bucket, e["object"], e.get("member"), e.get("opaque")) for e in entries], bucket)
        equal([i for i, o in enumerate(report["out"]) if "err_msg" in o], [3], "what is missing")
    # What is wrong with any of them is an error, since nothing has been sent.
    for last, status, code in ((entry("one", "none"), 404, "object_not_found"),
                               (entry("nobucket", "x"), 404, "bucket_not_found"),
                               (entry("one", "a.tar", member="none"), 404, "member_not_found"),
                               (entry("one", "large", member="x"), 415, "not_an_archive"),
                               (entry("one", "dir/00", offset=1 << 40), 416, "range_not_satisfiable")):
        reply = post(c, [entry("one", "large"), last], form={"report": True}).expect(status, code)
        check(f"'{last['bucket']}/{last['object']}'".encode() in reply.body, f"{reply.body}")
    report, archived = parts_of(post(c, [], form={"report": True}))
    equal((report["out"], read(archived)), ([], []), "of nothing")


def test_what_is_missing(c):
    here = ("one", "dir/00")
    gone = [entry("one", "none"), entry("nobucket", "x"), entry("one", "a.tar", member="none")]
    for e, code in zip(gone, ("object_not_found", "bucket_not_found", "member_not_found")):
        reply = post(c, [e, entry(*here)]).expect(404, code)
        check(f"'{e['bucket']}/{e['object']}'".encode() in reply.body, f"no name: {reply.body}")
    entries = [gone[0], entry(*here), gone[2], entry(*here)]
    found = read(post(c, entries, missing="empty").expect(200).body)
    equal([n for n, _ in found], ["__404__/one/none", "one/dir/00", "__404__/one/a.tar/none",
                                  "one/dir/00"], "names")
    equal([d for _, d in found], [b"", OBJECTS[here], b"", OBJECTS[here]], "bytes")
    post(c, [gone[1], entry(*here)], missing="empty").expect(404, "bucket_not_found")


def stream(c, entries, read_bytes=None):
    """→ (status, what came, whether it is whole): not read any further than `read_bytes`."""
    url = urllib.parse.urlsplit(c.url("t1"))
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    try:
        connection.request("POST", "/v1/batch", json.dumps({"entries": entries}),
                           {"Content-Type": "application/json"})
        reply = connection.getresponse()
        try:
            return reply.status, reply.read() if read_bytes is None else reply.read(read_bytes), True
        except http.client.IncompleteRead as e:
            return reply.status, e.partial, False
    finally:
        connection.close()


def test_a_later_failure_cuts_the_reply(c):
    for last in (entry("one", "none"), entry("one", "large", member="x"),
                 entry("one", "dir/00", offset=1 << 40)):
        status, body, whole = stream(c, [entry("one", "large"), last])
        equal(status, 200, "status")
        check(not whole, "a batch that lacks an entry looks complete")
        check(OBJECTS["one", "large"] in body, "the first entry came")
    post(c, [entry("one", "large", member="x")]).expect(415, "not_an_archive")


def test_what_is_refused(c):
    post(c, [entry("one", "dir/00")] * 1001).expect(413, "too_large", "batch_entries_max")
    post(c, [{"bucket": "one"}]).expect(400, "invalid_json", "entries[0]")
    post(c, [entry("one", "x", length=0)]).expect(400, "invalid_argument", "length")
    post(c, [], missing="skip").expect(400, "invalid_argument", "on_missing")
    for body in (b"", b"{", b"[]"):
        c.call("POST", "/v1/batch", body, headers={"Content-Type": "application/json"}).expect(400)


def test_clients_that_leave(c):
    """Their threads are free again, for more batches than there may be at once."""
    entries = [entry("one", "large")] * 200
    for _ in range(70):
        status, body, _ = stream(c, entries, read_bytes=1000)
        equal((status, len(body)), (200, 1000), "a beginning")
    wait_for(lambda: post(c, [entry("one", "dir/00")], node="t1").status == 200, "a place is free")


def test_many_at_once(c):
    keys = [k for k in OBJECTS if k[1] != "large"]

    def one(seed):
        rng = random.Random(seed)
        mine = rng.choices(keys, k=100)
        check_batch(c, [entry(*k) for k in mine], [OBJECTS[k] for k in mine])

    in_parallel(one, range(16))


def test_a_cold_object_is_brought(c):
    c.create("cold", backend=f"s3://data?endpoint={S3.url}&auth=none")
    data = archive(seed=8)
    S3.put("data", "c.tar", data)
    S3.put("data", "plain", b"plain")
    check_batch(c, [entry("cold", "plain"), entry("cold", "c.tar", member="dir/00.bin"),
                    entry("cold", "c.tar")],
                [b"plain", files_of(data)["dir/00.bin"], data])


def test_an_archive_that_is_overwritten_under_batches(c):
    versions = [archive(seed=i, size=3000) for i in range(4)]
    bodies = [files_of(v)["dir/one.txt"] for v in versions]
    for bucket in BUCKETS:
        c.put(bucket, "hot.tar", versions[0])
        done = threading.Event()

        def write(b=bucket, over=done):
            for i in range(12):
                c.put(b, "hot.tar", versions[i % 4])
            over.set()

        writer = threading.Thread(target=write)
        writer.start()
        batches = 0
        while not done.is_set() or batches == 0:
            found = read(post(c, [entry(bucket, "hot.tar", member="dir/one.txt")] * 5).expect(200).body)
            check(all(data in bodies for _, data in found), f"{bucket}: bytes of no version")
            batches += 1
        writer.join()


def test_a_report_of_what_is_overwritten(c):
    """It is true, or the reply is cut."""
    c.put("one", "changing", b"x" * 10)
    entries = [entry("one", "large")] * 20 + [entry("one", "changing")]
    done = threading.Event()

    def write():
        for i in range(40):
            c.put("one", "changing", b"x" * (10 + i % 7))
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        try:
            reply = post(c, entries, node="t1", form={"report": True})
        except http.client.IncompleteRead:
            continue
        report, archived = parts_of(reply)
        equal(report["out"][-1]["size"], len(read(archived)[-1][1]), "its size")
    writer.join()


def test_a_killed_target_under_batches(c):
    """What has other owners comes whole, also where the reply had begun."""
    keys = [k for k in OBJECTS if k[0] in ("two", "sliced")]
    entries, bodies = [entry(*k) for k in keys], [OBJECTS[k] for k in keys]
    killed = threading.Event()

    def kill():
        c.kill("t3")
        killed.set()

    killer = threading.Thread(target=kill)
    killer.start()
    batches = 0
    while not killed.is_set() or batches < 3:
        check_batch(c, entries, bodies, node=random.choice(("t1", "t2")))
        report, archived = parts_of(post(c, entries, node="t1", form={"report": True}))
        equal([i["size"] for i in report["out"]], [len(d) for _, d in read(archived)], "sizes")
        batches += 1
    killer.join()
    c.wait_node("t3", "unreachable")
    check_batch(c, entries, bodies, node="p1")
    c.start("t3")
    c.wait_node("t3", "active")


if __name__ == "__main__":
    with S3:
        main(targets=3, mountpaths=2, args=ARGS)
