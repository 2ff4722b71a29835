#!/usr/bin/env python3
"""Members of tar archives: read by name, listed by pages, in buckets of every kind.  What Python's
tarfile extracts is what must come."""

import io
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import threading
import urllib.parse

from lib import ROOT, check, equal, in_parallel, main, wait_for

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

S3 = FakeS3({})
ARGS = ["--target-arg=--shard-index-memory=8MiB"]
MANY = 100000
BUCKETS = {"plain": {}, "two": {"copies": 2},
           "sliced": {"ec": {"data": 2, "parity": 1, "min_size": 1000}}}
LONG = "a-directory-with-a-long-name/" * 9 + "file"  # longer than any field of a header


def member(tar, name, data, **fields):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mtime = 1700000000
    for field, value in fields.items():
        setattr(info, field, value)
    tar.addfile(info, io.BytesIO(data))


def archive(tar_format=tarfile.PAX_FORMAT, seed=1, size=40000):
    """→ its bytes: files of all kinds, and what is no file."""
    rng = random.Random(seed)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tar_format) as tar:
        member(tar, "dir/", b"", type=tarfile.DIRTYPE)
        member(tar, "dir/one.txt", b"an earlier one")
        member(tar, "dir/empty", b"")
        for i in range(20):
            member(tar, f"dir/{i:02}.bin", rng.randbytes(rng.randrange(1, size)))
        member(tar, "dir/one.txt", b"the last one" + bytes([seed]))
        if tar_format != tarfile.USTAR_FORMAT:
            member(tar, LONG, b"long")
            member(tar, "sm\u00f8rrebr\u00f8d & 100%?#", b"odd")
        member(tar, "link", b"", type=tarfile.SYMTYPE, linkname="dir/one.txt")
        member(tar, "hard", b"", type=tarfile.LNKTYPE, linkname="dir/one.txt")
    return out.getvalue()


def files_of(data):
    """{name: bytes} as tarfile sees them: of one name the last."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar.getmembers() if m.isreg()}


def query(**values):
    return urllib.parse.urlencode(values, quote_via=urllib.parse.quote)


def get(c, bucket, name, path, headers=None, method="GET"):
    return c.object(method, bucket, name, headers=headers, query=query(member=path))


def page(c, bucket, name, **values):
    return c.object("GET", bucket, name, query=query(members="list", **values)).expect(200)


def check_all(c, bucket, name, data):
    files = files_of(data)
    for path, body in files.items():
        reply = get(c, bucket, name, path).expect(200)
        check(reply.body == body, f"{bucket}/{name}, {path}: other bytes")
        equal(reply.headers["Content-Length"], str(len(body)), "Content-Length")
        check("Dfc-Checksum-Value" not in reply.headers, "a checksum of other bytes")
    return files


def test_members_are_what_tar_extracts(c):
    for bucket, props in BUCKETS.items():
        c.create(bucket, **props)
    for bucket in BUCKETS:
        for kind in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            data = archive(kind, seed=kind)
            c.put(bucket, f"{kind}.tar", data)
            check_all(c, bucket, f"{kind}.tar", data)


def test_ranges_and_conditions(c):
    data = archive(seed=2)
    for bucket in BUCKETS:
        c.put(bucket, "r.tar", data)
        etag = c.object("HEAD", bucket, "r.tar").expect(200).headers["ETag"]
        body = files_of(data)["dir/07.bin"]
        size = len(body)
        reply = get(c, bucket, "r.tar", "dir/07.bin", {"Range": "bytes=5-9", "If-Range": etag})
        reply.expect(206)
        check(reply.body == body[5:10], "the range has other bytes")
        equal(reply.headers["Content-Range"], f"bytes 5-9/{size}", "Content-Range")
        equal(reply.headers["ETag"], etag, "ETag")
        last = get(c, bucket, "r.tar", "dir/07.bin", {"Range": "bytes=-3"}).expect(206)
        check(last.body == body[-3:], "the last bytes are others")
        past = get(c, bucket, "r.tar", "dir/07.bin", {"Range": f"bytes={size}-"})
        past.expect(416, "range_not_satisfiable")
        equal(past.headers["Content-Range"], f"bytes */{size}", "Content-Range")
        get(c, bucket, "r.tar", "dir/empty", {"Range": "bytes=0-"}).expect(416)
        get(c, bucket, "r.tar", "dir/empty").expect(200)
        get(c, bucket, "r.tar", "dir/empty", {"If-None-Match": etag}).expect(304)
        get(c, bucket, "r.tar", "dir/empty", {"If-Match": '"1.1.1"'}).expect(412)
        head = get(c, bucket, "r.tar", "dir/07.bin", method="HEAD").expect(200)
        equal(head.headers["Content-Length"], str(size), "Content-Length of HEAD")
        equal(head.headers["Dfc-Archive"], "tar", "the format")


def test_lists_by_pages(c):
    data = archive(seed=3)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        last = {m.name: m for m in tar.getmembers()}
    names = sorted(n.encode() for n in last)
    for bucket in BUCKETS:
        c.put(bucket, "l.tar", data)
        found, after = [], ""
        while True:
            doc = page(c, bucket, "l.tar", limit=7, after=after).json()
            equal(doc["count"], len(names), "count")
            found += doc["members"]
            if not doc["truncated"]:
                break
            after = found[-1]["name"]
        equal([m["name"].rstrip("/").encode() for m in found], names, "names")
        for m in found:
            if m["type"] == "file":
                info = last[m["name"]]
                equal((m["size"], m["modified"]), (info.size, info.mtime), m["name"])
                equal(m["offset"], info.offset_data, f"offset of {m['name']}")
        equal({m["name"]: m["type"] for m in found if m["type"] != "file"},
              {"dir/": "directory", "link": "symbolic_link", "hard": "hard_link"}, "types")
        equal(page(c, bucket, "l.tar", after="zzz").json()["members"], [], "behind the last name")


def test_what_is_refused(c):
    c.put("plain", "x.tar", archive())
    for path, status, code in (("none", 404, "member_not_found"), ("link", 415, "member_unreadable"),
                               ("dir/", 415, "member_unreadable"), ("", 400, "invalid_argument"),
                               ("hard", 415, "member_unreadable")):
        get(c, "plain", "x.tar", path).expect(status, code)
    for bad in ({"members": "all"}, {"members": "list", "limit": 0}, {"members": "list", "limit": "x"},
                {"members": "list", "limit": 10001}, {"members": "list", "member": "link"},
                {"member": "dir/empty", "offset": 0}, {"member": "dir/empty", "after": "x"}):
        c.object("GET", "plain", "x.tar", query=query(**bad)).expect(400, "invalid_argument")
    get(c, "plain", "none.tar", "x").expect(404, "object_not_found")
    for bucket in BUCKETS:
        for name, data in (("text", b"no archive" * 1000), ("short", b"x"),
                           ("gzip", b"\x1f\x8b" + bytes(5000))):
            c.put(bucket, name, data)
            get(c, bucket, name, "x").expect(415, "not_an_archive")
        c.put(bucket, "zip", b"PK\3\4" + bytes(600))
        get(c, bucket, "zip", "x").expect(422, "archive_damaged")
        whole = archive(seed=4)
        for cut in (len(whole) // 2 // 512 * 512, len(whole) // 2 + 100):
            c.put(bucket, "cut.tar", whole[:cut])
            get(c, bucket, "cut.tar", "dir/empty").expect(422, "archive_damaged")
        c.put(bucket, "nothing.tar", b"")
        get(c, bucket, "nothing.tar", "x").expect(404, "member_not_found")
        equal(page(c, bucket, "nothing.tar").json()["members"], [], "members of nothing")


def test_sparse_members_are_listed_and_not_served(c):
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "holes"), "wb") as f:
            for at in range(8):
                f.seek(at << 20)
                f.write(b"data")
        with open(os.path.join(folder, "plain"), "wb") as f:
            f.write(b"plain")
        for kind in ("gnu", "pax"):
            made = os.path.join(folder, f"{kind}.tar")
            subprocess.run(["tar", "-C", folder, f"--format={kind}", "-S", "-cf", made, "holes",
                            "plain"], check=True)
            with open(made, "rb") as f:
                c.put("plain", f"{kind}.tar", f.read())
            get(c, "plain", f"{kind}.tar", "holes").expect(415, "member_unreadable", "sparse")
            equal(get(c, "plain", f"{kind}.tar", "plain").expect(200).body, b"plain", "behind it")
            types = {m["name"]: m["type"] for m in page(c, "plain", f"{kind}.tar").json()["members"]}
            equal(types, {"holes": "sparse_file", "plain": "file"}, "types")


def many(count, width):
    """A tar of so many members, whose names have so many bytes; without its end."""
    out = io.BytesIO()
    info = tarfile.TarInfo()
    info.size = 6
    for i in range(count):
        info.name = f"{'x' * (width - 7)}/{i:06}" if width > 6 else f"{i:06}"
        out.write(info.tobuf(tarfile.USTAR_FORMAT) + b"%06d" % i + bytes(506))
    return out.getvalue()


def test_an_index_that_is_larger_than_its_memory(c):
    """The memory is 8 MiB."""
    c.put("plain", "large.tar", many(50000, 160) + bytes(1024))
    reply = get(c, "plain", "large.tar", "000001")
    reply.expect(422, "archive_limit", "shard_index_memory")


def test_many_members(c):
    c.put("plain", "many.tar", many(MANY, 6) + bytes(1024))
    for i in (0, 1, MANY // 2, MANY - 1):
        equal(get(c, "plain", "many.tar", f"{i:06}").expect(200).body, b"%06d" % i, "a member")
    names, after = [], ""
    while True:
        doc = page(c, "plain", "many.tar", limit=10000, after=after).json()
        names += [m["name"] for m in doc["members"]]
        if not doc["truncated"]:
            break
        after = names[-1]
    check(names == [f"{i:06}" for i in range(MANY)], "the pages have other names")


def test_more_archives_than_memory(c):
    """Their indexes come and go, and each reader gets its own archive's bytes."""
    rest = many(2000, 160) + bytes(1024)
    for i in range(60):
        out = io.BytesIO()
        info = tarfile.TarInfo("id")
        info.size = 6
        out.write(info.tobuf() + b"%06d" % i + bytes(506) + rest)
        c.put("plain", f"some-{i}.tar", out.getvalue())

    def read(n):
        name = f"some-{n % 60}.tar"
        equal(get(c, "plain", name, "id").expect(200).body, b"%06d" % (n % 60), f"id of {name}")

    in_parallel(read, range(180))


def test_an_archive_that_is_overwritten_under_readers(c):
    """Each reply is of one version, whole."""
    versions = [archive(seed=i, size=3000) for i in range(5)]
    bodies = {b for v in versions for b in [files_of(v)["dir/one.txt"]]}
    for bucket in BUCKETS:
        c.put(bucket, "hot.tar", versions[0])
        done = threading.Event()

        def write():
            for i in range(15):
                c.put(bucket, "hot.tar", versions[i % 5])
            done.set()

        writer = threading.Thread(target=write)
        writer.start()
        read = 0
        while not done.is_set() or read == 0:
            reply = get(c, bucket, "hot.tar", "dir/one.txt")
            if reply.status == 503:  # overwritten again and again
                continue
            check(reply.expect(200).body in bodies, f"{bucket}: bytes of no version")
            read += 1
        writer.join()
        check_all(c, bucket, "hot.tar", versions[14 % 5])


def test_a_cold_archive_is_brought_first(c):
    c.create("cold", backend=f"s3://data?endpoint={S3.url}&auth=none")
    data = archive(seed=6)
    for name in ("a.tar", "b.tar"):
        S3.put("data", name, data)
    check_all(c, "cold", "a.tar", data)
    part = get(c, "cold", "b.tar", "dir/03.bin", {"Range": "bytes=0-9"}).expect(206)
    check(part.body == files_of(data)["dir/03.bin"][:10], "a range of a cold member")
    equal(get(c, "cold", "b.tar", "none").status, 404, "no such member")
    get(c, "cold", "c.tar", "none").expect(404, "object_not_found")


def test_a_killed_target(c):
    """Copies and slices go on; the target has no index when it is back, and makes it anew."""
    data = archive(seed=7)
    for bucket in ("two", "sliced"):
        c.put(bucket, "k.tar", data)
    c.kill("t1")
    c.wait_node("t1", "unreachable")
    for bucket in ("two", "sliced"):
        wait_for(lambda b=bucket: get(c, b, "k.tar", "dir/empty").status == 200, f"{bucket} is read")
        check_all(c, bucket, "k.tar", data)
    c.start("t1")
    c.wait_node("t1", "active")
    for bucket in ("two", "sliced"):
        wait_for(lambda b=bucket: get(c, b, "k.tar", "dir/empty").status == 200, f"{bucket} is read")
        check_all(c, bucket, "k.tar", data)


if __name__ == "__main__":
    with S3:
        main(targets=3, mountpaths=2, args=ARGS)
