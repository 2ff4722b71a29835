#!/usr/bin/env python3
"""Members that are put into archives: PUT with ?member= and ?members=tar, beside what GNU tar and
Python's zipfile read; conditions, races, damage, quotas, and deaths of targets."""

import io
import os
import random
import subprocess
import tarfile
import tempfile
import threading
import zipfile

from cold_lib import FakeS3
from lib import check, contents, equal, escape, in_parallel, main, wait_for
from members import BUCKETS, archive, member

ACCESS, SECRET = "AKIDAPPEND", "theSecretOfThisTest/0123"
S3 = FakeS3({ACCESS: SECRET})
RANDOM = random.Random(5)
SIZES = (0, 1, 511, 512, 513, 300_000)


def append(c, bucket, name, path, data, headers=None, query="", **options):
    return c.object("PUT", bucket, name, data, headers, f"member={escape(path)}{query}", **options)


def append_tar(c, bucket, name, data, headers=None, query=""):
    return c.object("PUT", bucket, name, data, headers, "members=tar" + query)


def tar_of(files, **fields):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files:
            member(tar, name, data, **fields)
    return out.getvalue()


def zip_of(files, comment=b""):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        z.comment = comment
        for name, data in files:
            z.writestr(name, data)
    return out.getvalue()


def read_tar(data):
    """→ [(name, type, bytes)] in the archive's order."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [(m.name, m.type, tar.extractfile(m).read() if m.isreg() else b"") for m in tar]


def read_zip(data):
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        equal(z.testzip(), None, "a damaged member")
        return [(i.filename, z.read(i)) for i in z.infolist()]


def gnu_tar_lists(data):
    done = subprocess.run(["tar", "-tf", "-"], input=data, capture_output=True, check=False)
    equal((done.returncode, done.stderr), (0, b""), "GNU tar -t")
    return len(done.stdout.splitlines())


def body(c, bucket, name):
    """Its bytes, whose checksum a client has compared."""
    with tempfile.TemporaryDirectory(prefix="dfc-append-") as folder:
        path = os.path.join(folder, "got")
        done = c.dfcctl("get", f"{bucket}/{name}", path)
        equal((done.returncode, done.stderr), (0, ""), f"get {bucket}/{name}")
        return contents(path)


# --- what comes out ------------------------------------------------------------------------------

def test_tars_of_all_kinds(c):
    for bucket, props in BUCKETS.items():
        c.create(bucket, **props)
    for kind in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        old = archive(kind, seed=kind)
        end = len(old.rstrip(b"\0")) + 511 & ~511
        for bucket in BUCKETS:
            for i, data in enumerate((old, old[:end], old + bytes(70000 * 512 // 512 // 512 * 512))):
                name, wanted = f"{kind}-{i}.tar", read_tar(old)
                c.put(bucket, name, data)
                for size in SIZES:
                    more = RANDOM.randbytes(size)
                    append(c, bucket, name, f"new/{size}", more).expect(200)
                    wanted.append((f"new/{size}", tarfile.REGTYPE, more))
                got = body(c, bucket, name)
                equal(read_tar(got) == wanted, True, f"{bucket}/{name}: other members")
                equal((gnu_tar_lists(got), len(got) % 512), (len(wanted), 0), "what GNU tar lists")
                reply = c.object("GET", bucket, name, query="member=new/513").expect(200)
                equal(len(reply.body), 513, "the member")


def test_zips(c):
    files = [("a.txt", b"a" * 5000), ("d/b", b""), ("\u00fc", RANDOM.randbytes(70000))]
    for bucket in BUCKETS:
        c.put(bucket, "z", zip_of(files, b"a comment"))
        wanted = list(files)
        for size in SIZES:
            more = RANDOM.randbytes(size)
            append(c, bucket, "z", f"new \u00e4/{size}", more).expect(200)
            wanted.append((f"new \u00e4/{size}", more))
        got = body(c, bucket, "z")
        check(read_zip(got) == wanted, f"{bucket}: other members")
        with zipfile.ZipFile(io.BytesIO(got)) as z:
            equal(z.comment, b"a comment", "the archive's comment")
        append(c, bucket, "z", "a.txt", b"again").expect(409, "member_exists")
        append(c, bucket, "z", "a.txt", b"again", query="&overwrite=true").expect(200)
        check(read_zip(body(c, bucket, "z")) == wanted[1:] + [("a.txt", b"again")], "overwritten")
        more = tar_of([("t/1", b"1"), ("t/2", b"22")])
        append_tar(c, bucket, "z", more).expect(200)
        equal(dict(read_zip(body(c, bucket, "z")))["t/2"], b"22", "of a tar")
        link = tar_of([("l", b"")], type=tarfile.SYMTYPE, linkname="a.txt")
        append_tar(c, bucket, "z", link).expect(415, "member_unreadable", "'l'")
    many = zip_of([(f"{i}", b"") for i in range(66000)])
    c.put("plain", "many.zip", many)
    append(c, "plain", "many.zip", "last", b"x").expect(200)
    with zipfile.ZipFile(io.BytesIO(body(c, "plain", "many.zip"))) as z:
        equal((len(z.namelist()), z.read("last")), (66001, b"x"), "members of a ZIP64")


def test_several_at_once(c):
    old, more = archive(seed=3), archive(tarfile.GNU_FORMAT, seed=4)
    for bucket in BUCKETS:
        c.put(bucket, "s.tar", old)
        append_tar(c, bucket, "s.tar", more).expect(409, "member_exists")
        append_tar(c, bucket, "s.tar", more, query="&overwrite=true").expect(200)
        got = body(c, bucket, "s.tar")
        check(read_tar(got) == read_tar(old) + read_tar(more), f"{bucket}: other members")
        reply = c.object("GET", bucket, "s.tar", query="member=dir/one.txt").expect(200)
        equal(reply.body, b"the last one\4", "the last one of a name counts")


def test_what_stays_of_the_archive(c):
    for bucket in BUCKETS:
        headers = {"Content-Type": "x/y", "Dfc-Meta-Step": "7", "Dfc-Tags": "k=v",
                   "Cache-Control": "no-cache"}
        before = c.put(bucket, "meta.tar", tar_of([("a", b"a")]), headers)
        reply = append(c, bucket, "meta.tar", "b", b"b", {"Content-Type": "of/the-member"})
        reply.expect(200)
        head = c.object("HEAD", bucket, "meta.tar").expect(200).headers
        equal({h: head[h] for h in headers}, headers, f"{bucket}: headers")
        equal((head["ETag"], reply.json()["etag"]), (reply.headers["ETag"],) * 2, "entity tags")
        check(head["ETag"] != before.headers["ETag"], "the entity tag is that of the old version")
        append(c, bucket, "meta.tar", "c", b"", {"Dfc-Meta-A": "1"}).expect(400, text="Dfc-Meta")


def test_as_aistores_api_sends_it(c):
    """Its Go API; its Python SDK has no such call."""
    def put(key, name, data, flags, node="p1"):
        path = f"/v1/objects/plain/{key}?provider=ais&archmime=.tar&archpath={escape(name)}"
        return c.call("PUT", path, data, node, {"User-Agent": "ais/x", **flags})

    c.put("plain", "ais.tar", tar_of([("a", b"1")]))
    large = RANDOM.randbytes(300_000)
    for key, flags, name, data in (("ais.tar", "1", "\u00fc&", large), ("ais.tar", "2", "a", b"2"),
                                   ("ais/n.tar", "2", "n", b"3"), ("ais/n.zip", "2", "n", b"4")):
        put(key, name, data, {"ais-pine": flags}).expect(200)
        got = c.object("GET", "plain", key, query="member=" + escape(name)).expect(200)
        check(got.body == data, f"{key}/{name}: other bytes")
    equal([m[0] for m in read_tar(body(c, "plain", "ais.tar"))], ["a", "\u00fc&", "a"], "members")
    reply = put("ais/none.tar", "n", b"", {"ais-pine": "1"}).expect(404, "object_not_found")
    check(reply.json()["message"].startswith("ais://plain/ais/none.tar: "), f"{reply!r}")
    for flags in ({}, {"ais-pine": "0"}, {"ais-pine": "x"}):
        put("ais/none.tar", "n", b"", flags).expect(501, "not_supported")
    put("ais.tar", "", b"no archive", {"ais-pine": "1"}).expect(400, "invalid_argument")
    equal(len(read_tar(body(c, "plain", "ais.tar"))), 3, "members")


# --- whether it is done --------------------------------------------------------------------------

def test_a_new_archive(c):
    for bucket in BUCKETS:
        reply = append(c, bucket, "made/1.tar", "a", b"1", {"If-Match": "*"})
        reply.expect(412, "precondition_failed")
        reply = append(c, bucket, "made/1.tar", "a", b"1", query="&create=false")
        reply.expect(404, "object_not_found")
        append(c, bucket, "made/1.tar", "a", b"1").expect(200)
        equal(read_tar(body(c, bucket, "made/1.tar")), [("a", tarfile.REGTYPE, b"1")], "a new tar")
        append(c, bucket, "made/1.zip", "a", b"1", {"If-None-Match": "*"}).expect(200)
        append(c, bucket, "made/1.zip", "b", b"1", {"If-None-Match": "*"}).expect(412)
        equal(read_zip(body(c, bucket, "made/1.zip")), [("a", b"1")], "a new zip")
        head = c.object("HEAD", bucket, "made/1.zip").headers
        equal(head["Content-Type"], "application/zip", "its type")
        append(c, bucket, "made/1.jpg", "a", b"1").expect(415, "not_an_archive", ".tar or .zip")
        c.put(bucket, "empty.zip", b"")
        append(c, bucket, "empty.zip", "a", b"1").expect(200)
        equal(read_zip(body(c, bucket, "empty.zip")), [("a", b"1")], "an empty object")


def test_conditions(c):
    for bucket in BUCKETS:
        old = c.put(bucket, "if.tar", tar_of([("a", b"a")])).headers["ETag"]
        new = append(c, bucket, "if.tar", "b", b"b", {"If-Match": old}).expect(200)
        append(c, bucket, "if.tar", "c", b"c", {"If-Match": old}).expect(412)
        append(c, bucket, "if.tar", "c", b"c", {"If-Match": new.headers["ETag"]}).expect(200)
        equal([m[0] for m in read_tar(body(c, bucket, "if.tar"))], ["a", "b", "c"], bucket)
        bad = {"Content-MD5": "1B2M2Y8AsgTpgAmY7PhCfg=="}
        append(c, bucket, "if.tar", "d", b"d", bad).expect(422, "checksum_mismatch")


def test_what_is_refused(c):
    whole = tar_of([("a", b"a" * 3000)])
    gz = io.BytesIO()
    with tarfile.open(fileobj=gz, mode="w:gz") as tar:
        member(tar, "a", b"a")
    for bucket in BUCKETS:
        for data, status, code in ((gz.getvalue(), 415, "not_an_archive"),
                                   (b"plain text" * 100, 415, "not_an_archive"),
                                   (b"short", 415, "not_an_archive"),
                                   (whole[:1500], 422, "archive_damaged"),
                                   (whole + b"x", 422, "archive_damaged"),
                                   (zip_of([("a", b"a")])[:-3], 422, "archive_damaged")):
            c.put(bucket, "bad", data)
            append(c, bucket, "bad", "n", b"n").expect(status, code)
            equal(c.get(bucket, "bad").body, data, "the object")
        c.put(bucket, "good.tar", whole)
        for path in ("/abs", "../up", "a/../b", "dir/", "n%00n"):
            reply = c.object("PUT", bucket, "good.tar", b"n", query="member=" + path)
            reply.expect(400)
        for query in ("member=", "members=list", "member=a&members=tar", "member=n&overwrite=maybe",
                      "members=tar&after=a"):
            c.object("PUT", bucket, "good.tar", whole, query=query).expect(400, "invalid_argument")
        for query in ("overwrite=false", "create=false"):  # and no member: it would replace the archive
            c.object("PUT", bucket, "good.tar", whole[:1024], query=query).expect(400)
        append_tar(c, bucket, "good.tar", b"no tar" * 100).expect(422, "archive_damaged", "the body")
        append_tar(c, bucket, "good.tar", b"").expect(400, text="without members")
        append_tar(c, bucket, "good.tar", tar_of([("n", b"1"), ("n", b"2")])).expect(409)
        append_tar(c, bucket, "good.tar", tar_of([("/n", b"1")])).expect(400, text="'/n'")
        equal(c.get(bucket, "good.tar").body, whole, "the archive")


def test_damage_is_refused(c):
    """No new archive gets a checksum of bytes that are damaged."""
    whole = tar_of([("damaged", b"d" * 3000)])
    etag = c.put("plain", "damaged.tar", whole).headers["ETag"]
    path = next(p for p in c.object_files(c.owner("plain", "damaged.tar"))
                if os.path.getsize(p) == len(whole) and contents(p) == whole)
    with open(path, "r+b") as f:
        f.seek(1000)
        f.write(b"b")
    append(c, "plain", "damaged.tar", "n", b"n").expect(500, "corrupt", "checksum")
    equal(c.object("HEAD", "plain", "damaged.tar").headers["ETag"], etag, "the version")


def test_a_quota(c):
    c.create("small", quota_bytes="1MiB")
    append(c, "small", "q.tar", "a", b"a" * 400_000).expect(200)
    append(c, "small", "q.tar", "b", b"b" * 400_000).expect(200)
    append(c, "small", "q.tar", "c", b"c" * 400_000).expect(403, "quota_exceeded")
    equal([m[0] for m in read_tar(body(c, "small", "q.tar"))], ["a", "b"], "members")


# --- at the same time ----------------------------------------------------------------------------

def test_many_clients(c):
    """Without a condition each append is done, once; a reader sees whole archives alone."""
    names = [f"{w}/{i}" for w in range(6) for i in range(5)]
    for bucket in BUCKETS:
        c.put(bucket, "shared.tar", tar_of([("first", b"x" * 100_000)]))
        over, seen = threading.Event(), []

        def read(bucket=bucket, over=over, seen=seen):
            while not over.is_set():
                seen.append(len(read_tar(c.get(bucket, "shared.tar").expect(200).body)))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            in_parallel(lambda n, b=bucket: append(c, b, "shared.tar", n, n.encode()).expect(200),
                        names)
        finally:
            over.set()
            reader.join()
        got = read_tar(body(c, bucket, "shared.tar"))
        equal(sorted(m[0] for m in got), sorted(names + ["first"]), f"{bucket}: members")
        equal({m[0]: m[2] for m in got[1:]}, {n: n.encode() for n in names}, "their bytes")
        equal(seen, sorted(seen), "what a reader has seen")


def test_one_of_two_with_a_condition(c):
    """Of those that name one version, one is done."""
    for bucket in BUCKETS:
        etag = c.put(bucket, "one.tar", tar_of([("first", b"1")])).headers["ETag"]
        replies = in_parallel(
            lambda i, b=bucket, e=etag: append(c, b, "one.tar", f"m{i}", b"m", {"If-Match": e}),
            list(range(8)))
        equal(sorted(r.status for r in replies), [200] + 7 * [412], f"{bucket}: replies")
        equal(len(read_tar(body(c, bucket, "one.tar"))), 2, "members")


def test_beside_writes_of_the_whole(c):
    """Each version is a whole one: what was put, and members that were put into it later."""
    for bucket in BUCKETS:
        def write(i, bucket=bucket):
            if i % 4 == 0:
                c.put(bucket, "mixed.tar", tar_of([(f"whole-{i}", b"w" * 50_000)]))
                return 200
            return append(c, bucket, "mixed.tar", f"m{i}", b"m").status

        statuses = set(in_parallel(write, list(range(40))))
        check(statuses <= {200, 503}, f"{bucket}: {statuses}")
        got = [m[0] for m in read_tar(body(c, bucket, "mixed.tar"))]
        equal([n.startswith("whole") for n in got], [True] + [False] * (len(got) - 1), got)


# --- failures ------------------------------------------------------------------------------------

def test_without_copies_by_the_file_system(c):
    for t in c.targets():
        c.stop(t)
        c.start(t, "--arg=--faults=disk.copy=EXDEV")
    for t in c.targets():
        c.wait_node(t, "active")
    old = archive(seed=9)
    for bucket in BUCKETS:
        c.put(bucket, "plain.tar", old)
        append(c, bucket, "plain.tar", "n", b"n").expect(200)
        check(read_tar(body(c, bucket, "plain.tar"))[:-1] == read_tar(old), f"{bucket}: members")


def test_a_full_disk(c):
    old = tar_of([("a", b"a" * 2_000_000)])
    c.put("plain", "full.tar", old)
    owner = c.owner("plain", "full.tar")
    c.restart(owner, "--arg=--faults=disk.room=ENOSPC@2")
    reply = append(c, "plain", "full.tar", "n", b"n" * 200_000)
    reply.expect(507, "no_space")
    equal(c.get("plain", "full.tar").expect(200).body, old, "the archive")
    append(c, "plain", "full.tar", "n", b"n").expect(200)


def test_deaths_of_targets(c):
    """The archive is the old or the new one, and what was answered for is in it."""
    for bucket in BUCKETS:
        name = "killed.tar"
        c.put(bucket, name, tar_of([("first", b"x" * 3_000_000)]))
        done = []
        for i in range(2):
            owner = c.owner(bucket, name)
            c.restart(owner, "--arg=--faults=disk.write=delay:30")
            replies = []

            def put(i=i, bucket=bucket, replies=replies):
                try:
                    replies.append(append(c, bucket, name, f"m{i}", b"m" * 10_000).status)
                except OSError:
                    replies.append(None)

            thread = threading.Thread(target=put)
            thread.start()
            thread.join(timeout=0.05 + 0.1 * i)
            c.kill(owner)
            thread.join()
            c.start(owner)
            c.wait_node(owner, "active")
            done += [f"m{i}"] if replies == [200] else []
            wait_for(lambda b=bucket: c.get(b, name).status == 200, "the archive is read")
            got = [m[0] for m in read_tar(body(c, bucket, name))]
            check(set(done) <= set(got) and got[0] == "first" and len(set(got)) == len(got),
                  f"{bucket}: {got}, and {done} were answered for")


# --- backends ------------------------------------------------------------------------------------

def test_backends(c):
    S3.put("data", "seed", b"seed")
    for policy in ("through", "back"):
        bucket = f"w{policy}"
        c.create(bucket, backend=f"s3://data/{policy}?endpoint={S3.url}", write_policy=policy)
        old = archive(seed=6)
        S3.put("data", f"{policy}/cold.tar", old)
        for i in range(3):
            append(c, bucket, "cold.tar", f"m{i}", b"m" * i).expect(200)
        wanted = read_tar(old) + [(f"m{i}", tarfile.REGTYPE, b"m" * i) for i in range(3)]
        check(read_tar(body(c, bucket, "cold.tar")) == wanted, f"{policy}: members")
        wait_for(lambda p=policy, w=wanted: read_tar(S3.has("data", f"{p}/cold.tar")) == w,
                 "the backend has the new version")
        append(c, bucket, "made.zip", "a", b"a").expect(200)
        wait_for(lambda p=policy: S3.has("data", f"{p}/made.zip") is not None, "a new archive")
        reply = append(c, bucket, "cold.tar", "m9", b"", {"If-Match": '"another"'})
        reply.expect(412, "precondition_failed")
    c.create("readonly", backend=f"s3://data/through?endpoint={S3.url}")
    append(c, "readonly", "cold.tar", "n", b"n").expect(501, "not_supported")


if __name__ == "__main__":
    os.environ.update(AWS_ACCESS_KEY_ID=ACCESS, AWS_SECRET_ACCESS_KEY=SECRET)
    os.environ.pop("AWS_SESSION_TOKEN", None)
    with S3:
        main(targets=3)
