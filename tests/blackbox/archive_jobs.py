#!/usr/bin/env python3
"""The job `archive`: objects become one archive, which other programs read; nothing, much, damage,
aborts, and deaths of targets."""

import hashlib
import io
import os
import random
import shutil
import subprocess
import tarfile
import tempfile
import zipfile

from lib import SANITIZED, check, equal, in_parallel, main
from object_jobs import begun, document, ended, run, slow_disks, start

SEED = 77
MANY = 2000 if SANITIZED else 10000
BUCKETS = {"plain": {}, "two": {"copies": 2},
           "sliced": {"ec": {"data": 2, "parity": 1, "min_size": 1000}},
           "md5": {"etag": "md5", "checksum": "sha256"}}
# what the archive's name ends with, and the program that extracts it from its file
PROGRAMS = {"tar": "tar -xf", "tar.gz": "tar -xzf", "tgz": "bsdtar -xf", "tar.zst": "tar --zstd -xf",
            "tar.lz4": "tar -I lz4 -xf", "zip": "unzip -q"}


def samples():
    """{name: bytes} of many sizes and odd names."""
    rng = random.Random(SEED)
    files = {f"raw/{i:03}.bin": rng.randbytes(rng.randrange(1, 70000)) for i in range(40)}
    files.update({"raw/empty": b"", "raw/a b/100%?#": b"odd", "raw/sm\u00f8rrebr\u00f8d": b"fish",
                  "raw/" + "long/" * 60 + "name": b"long", "raw/large": rng.randbytes(3 << 20)})
    return files


FILES = samples()


def put_all(c, bucket, files):
    in_parallel(lambda name: c.put(bucket, name, files[name]), list(files))


def extracted(data, command):
    """What the program makes of the archive: {path: bytes}."""
    with tempfile.TemporaryDirectory(prefix="dfc-archive-") as folder:
        path = os.path.join(folder, "archive")
        with open(path, "wb") as f:
            f.write(data)
        into = os.path.join(folder, "into")
        os.mkdir(into)
        subprocess.run([*command.split(), path], cwd=into, check=True)
        found = {}
        for at, _, names in os.walk(into):
            for name in names:
                with open(os.path.join(at, name), "rb") as f:
                    found[os.path.relpath(os.path.join(at, name), into)] = f.read()
        return found


def members(data):
    """By Python, in their order: [(name, bytes)]."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [(m.name, tar.extractfile(m).read()) for m in tar]


def archive_of(c, bucket, name):
    return c.get(bucket, name).expect(200).body


def failed(c, bucket, value, code):
    job = ended(c, start(c, bucket, "archive", value))
    equal((job["state"], job["errors"][0]["code"]), ("failed", code), f"end of {value}")
    return job


def test_other_programs_extract_what_was_put(c):
    for bucket, props in BUCKETS.items():
        c.create(bucket, **props)
        put_all(c, bucket, FILES)
    for bucket in BUCKETS:
        for kind, command in PROGRAMS.items():
            if bucket != "plain" and kind not in ("tar", "zip"):
                continue
            check(shutil.which(command.split()[0]), f"there is no {command}")
            to = "plain" if kind == "tgz" else bucket
            got = run(c, bucket, "archive", {"prefix": "raw/", "archive": f"made.{kind}", "to": to})
            equal((got["done"], got["total"], got["missing"]), (len(FILES), len(FILES), 0),
                  f"objects of {bucket}, {kind}")
            found = extracted(archive_of(c, to, f"made.{kind}"), command)
            check(found == FILES, f"{bucket}, {kind}: other files than were put")


def test_order_type_and_names(c):
    names = ["raw/007.bin", "raw/empty", "raw/001.bin"]
    run(c, "plain", "archive", {"list": names, "archive": "o/list", "format": "tar", "strip": "raw/",
                                "prepend": "set/"})
    equal(members(archive_of(c, "plain", "o/list")),
          [(n.replace("raw/", "set/"), FILES[n]) for n in names], "members of a list")
    run(c, "plain", "archive", {"template": "raw/{030..039..3}.bin", "archive": "o/t.tar"})
    equal(members(archive_of(c, "plain", "o/t.tar")),
          [(f"raw/{i:03}.bin", FILES[f"raw/{i:03}.bin"]) for i in range(30, 40, 3)], "a template's")
    run(c, "plain", "archive", {"prefix": "raw/0", "archive": "o/p.zip"})
    reply = c.get("plain", "o/p.zip").expect(200)
    equal(reply.headers["Content-Type"], "application/zip", "type")
    with zipfile.ZipFile(io.BytesIO(reply.body)) as z:
        equal(z.namelist(), sorted(n for n in FILES if n.startswith("raw/0")), "a prefix's")
        equal(z.testzip(), None, "members that are damaged")
    md5 = c.object("HEAD", "md5", "made.tar").expect(200).headers["Dfc-Md5"]
    equal(md5, hashlib.md5(archive_of(c, "md5", "made.tar")).hexdigest(), "entity tag")


def test_an_archive_is_no_member_of_its_next_version(c):
    c.create("own")
    c.put("own", "x/1", b"one")
    for _ in range(2):
        run(c, "own", "archive", {"prefix": "x/", "archive": "x/all.tar"})
        equal(members(archive_of(c, "own", "x/all.tar")), [("x/1", b"one")], "members")
    run(c, "own", "archive", {"prefix": "", "archive": "all.tar"})
    equal([n for n, _ in members(archive_of(c, "own", "all.tar"))], ["x/1", "x/all.tar"], "members")


def test_nothing_to_do(c):
    for value in ({"prefix": "none/"}, {"list": ["nobody"]}, {"template": "none-{0..9}"}):
        value = {**value, "archive": "none.tar"}
        failed(c, "plain", value, "nothing_matched")
        c.get("plain", "none.tar").expect(404)
        run(c, "plain", "archive", {**value, "allow_empty": True})
        equal(members(archive_of(c, "plain", "none.tar")), [], "members of an empty archive")
        c.object("DELETE", "plain", "none.tar").expect(204)


def test_what_is_missing_is_told(c):
    value = {"list": ["raw/001.bin", "gone", "raw/empty"], "archive": "part.tar"}
    job = ended(c, start(c, "plain", "archive", value))
    equal((job["state"], job["partial"]), ("finished", True), "state")
    check(any("'gone'" in w for w in job["warnings"]), job["warnings"])
    equal([n for n, _ in members(archive_of(c, "plain", "part.tar"))], ["raw/001.bin", "raw/empty"],
          "members")


def test_refusals(c):
    def refuse(value, status, code, text):
        value = {"prefix": "", "archive": "a.tar", **value}
        c.call("POST", "/v1/buckets/plain", {"action": "archive", "value": value}).expect(
            status, code, text)

    refuse({"archive": None}, 400, "invalid_json", "archive")
    refuse({"archive": ""}, 400, "invalid_name", "archive")
    refuse({"archive": "a.rar"}, 400, "invalid_argument", "a.rar")
    refuse({"archive": "a.msgpack"}, 400, "invalid_argument", ".tar.zst")
    refuse({"format": "x" * 100}, 400, "invalid_argument", "format")
    refuse({"format": ".tar.xz"}, 400, "invalid_argument", ".tar.xz")
    refuse({"to": "none"}, 404, "bucket_not_found", "none")
    refuse({"strip": "raw/"}, 400, "invalid_spec", "strip")
    refuse({"prefix": None, "template": "raw/{000..009}", "strip": "raw/0"}, 400, "invalid_spec",
           "strip")
    refuse({"prefix": None, "list": ["raw/1", "raw/"], "strip": "raw/"}, 400, "invalid_spec", "'raw/'")
    refuse({"prefix": None, "list": ["a", "b", "a"]}, 400, "invalid_spec", "twice")
    refuse({"prefix": None}, 400, "invalid_spec", "one of")
    refuse({"names": "member"}, 400, "invalid_spec", "full or base")
    refuse({"order": "size"}, 400, "invalid_spec", "name or shuffle")
    refuse({"shard_size": 1}, 400, "invalid_spec", "to.template")
    shards_to = {"archive": None, "to": {"template": "s-{0..9}.tar"}}
    refuse({"to": {"template": "s-{0..9}.tar"}, "shard_size": 1}, 400, "invalid_spec", "only one")
    refuse(shards_to, 400, "invalid_spec", "shard_size")
    refuse({**shards_to, "to": {"template": "s-{0..9}.rar"}, "shard_size": 1}, 400,
           "invalid_argument", ".rar")


def overwrite(c, name, data):
    path = next(p for t in c.targets() for p in c.object_files(t)
                if name.encode() + b"\0" in os.getxattr(p, "user.dfc"))
    with open(path, "r+b") as f:
        f.write(data)


def test_a_damaged_object_makes_no_archive(c):
    """Whether the archive's owner has it, or another target."""
    c.create("hurt", durability="async")
    in_parallel(lambda i: c.put("hurt", f"h{i}", b"right" * 100), range(9))
    owners = {c.owner("hurt", f"h{i}"): f"h{i}" for i in range(9)}
    check(len(owners) > 1, f"owners: {owners}")
    for name in owners.values():
        overwrite(c, name, b"wrong")
        for to in ({"archive": "hurt.tar"},
                   {"to": {"template": "hurt-{0..9}.tar"}, "shard_size": 1}):
            job = failed(c, "hurt", {"prefix": "h", **to}, "checksum_mismatch")
            check(f"'hurt/{name}'" in job["errors"][0]["message"], job["errors"])
            equal(c.names("hurt", prefix="hurt"), [], "archives")
        overwrite(c, name, b"right")
    run(c, "hurt", "archive", {"prefix": "h", "archive": "hurt.tar"})


def shards(c, bucket, prefix):
    """The members of the archives, one after the other; their numbers."""
    each = [members(archive_of(c, bucket, name)) for name in c.names(bucket, prefix=prefix)]
    return [m for shard in each for m in shard], [len(shard) for shard in each]


def test_shards(c):
    """Each ends with the member that brings it to its size; all are there at once."""
    for bucket in BUCKETS:
        value = {"prefix": "raw/0", "to": {"template": "s/x-{00..99}.tar"}, "shard_size": 300000,
                 "strip": "raw/"}
        got = run(c, bucket, "archive", value)
        equal((got["done"], got["total"]), (40, 40), f"objects of {bucket}")
        found, counts = shards(c, bucket, "s/x-")
        names = [f"{i:03}.bin" for i in range(40)]
        check(found == [(n, FILES["raw/" + n]) for n in names], f"{bucket}: other members")
        check(len(counts) > 2, f"{bucket}: {counts} members in each")
        sizes = [(1024 + 511 + len(FILES["raw/" + n])) // 512 * 512 - 512 for n in names]
        for count in counts[:-1]:
            check(sum(sizes[:count]) >= 300000 > sum(sizes[:count - 1]), f"{counts}")
            sizes = sizes[count:]
        job = failed(c, bucket, value, "object_exists")
        check("s/x-" in job["errors"][0]["message"], job["errors"])
        check(shards(c, bucket, "s/x-") == (found, counts), f"{bucket}: the archives have changed")
    to = {"bucket": "plain", "template": "few-{0..1}.zip"}
    failed(c, "two", {"prefix": "raw/", "to": to, "shard_size": 1}, "template_too_small")
    equal(c.names("plain", prefix="few"), [], "archives of a template that is too small")


def test_shuffle(c):
    def order(name, **fields):
        run(c, "plain", "archive", {"prefix": "raw/0", "archive": name, "order": "shuffle", **fields})
        return members(archive_of(c, "plain", name))

    one = order("o/1.tar", seed=1)
    check(one == order("o/2.tar", seed=1), "another order by the same seed")
    check(one != order("o/3.tar", seed=2), "the same order by another seed")
    check(one != sorted(one), "the order of names")
    check(sorted(one) == sorted(order("o/4.tar")), "other members")


def test_bare_names(c):
    c.create("bare")
    for name in ("a/b/1.x", "a/2.x", "3.x"):
        c.put("bare", name, name.encode())
    run(c, "bare", "archive", {"prefix": "", "archive": "all.tar", "names": "base", "prepend": "d/"})
    equal(members(archive_of(c, "bare", "all.tar")),
          [("d/3.x", b"3.x"), ("d/2.x", b"a/2.x"), ("d/1.x", b"a/b/1.x")], "members")
    c.put("bare", "z/3.x", b"another")
    value = {"list": ["3.x", "z/3.x"], "archive": "no.tar", "names": "base"}
    job = failed(c, "bare", value, "duplicate_record")
    check("'3.x'" in job["errors"][0]["message"], job["errors"])
    c.get("bare", "no.tar").expect(404)


def test_many_members(c):
    c.create("many", durability="async")
    names = [f"m/{i:05}" for i in range(MANY)]
    in_parallel(lambda name: c.put("many", name, name.encode()), names)
    got = run(c, "many", "archive", {"prefix": "m/", "archive": "many.tar.gz", "to": "plain"})
    equal(got["done"], MANY, "objects")
    check(members(archive_of(c, "plain", "many.tar.gz")) == [(n, n.encode()) for n in names],
          "other members than were put")


def test_two_jobs_for_one_archive(c):
    """Each is whole, and the one that ends last is there."""
    jobs = [start(c, "plain", "archive", {"prefix": "raw/0", "archive": "both.tar", "prepend": p})
            for p in ("one/", "two/")]
    for job in jobs:
        equal(ended(c, job)["state"], "finished", "state")
    firsts = {n.split("/")[0] for n, _ in members(archive_of(c, "plain", "both.tar"))}
    check(firsts in ({"one"}, {"two"}), f"members of {firsts}")


def test_a_quota_holds(c):
    c.create("small", quota_bytes=50000)
    failed(c, "plain", {"prefix": "raw/", "archive": "q.tar", "to": "small"}, "quota_exceeded")
    c.get("small", "q.tar").expect(404)


def test_dfcctl(c):
    """From objects to an archive, and back."""
    def ctl(*args, code=0):
        done = c.dfcctl("bucket", *args)
        equal(done.returncode, code, f"dfcctl bucket {args}: {done.stdout} {done.stderr}")

    c.create("back")
    ctl("archive", "plain", "own/ctl.tar.zst", "--prefix", "raw/", "--strip", "raw/", "--wait")
    ctl("unarchive", "own", "back", "--list", os.devnull, "--wait")
    ctl("unarchive", "own", "back", "--prefix", "ctl", "--bare", "--prepend", "raw/", "--wait")
    equal(c.names("back", limit=1000), sorted(FILES), "names")
    equal(c.get("back", "raw/large").expect(200).body, FILES["raw/large"], "the large object")
    ctl("archive", "plain", "back/s-{00..99}.tar", "--prefix", "raw/0", "--shard-size", "300000",
        "--bare", "--seed", "3", "--wait")
    found, counts = shards(c, "back", "s-")
    check(len(counts) > 2, f"{counts} members in each")
    equal(sorted(n for n, _ in found), [f"{i:03}.bin" for i in range(40)], "members of shards")
    ctl("archive", "plain", "own/", "--prefix", "raw/", code=2)
    ctl("archive", "plain", "own/s-{00..99}.tar", "--prefix", "raw/", code=2)
    ctl("archive", "plain", "own/a.tar", code=2)
    ctl("archive", "plain", "own/none.tar", "--prefix", "none/", "--wait", code=4)


def slow_job(c, name):
    """A job that is met at its work: each batch takes a while, and longer where there are few."""
    slow_disks(c, "disk.read", 200_000 // MANY)
    job_id = start(c, "many", "archive", {"prefix": "m/", "archive": name})
    begun(c, job_id)
    return job_id


def test_abort(c):
    job_id = slow_job(c, "late.tar")
    c.get("many", "late.tar").expect(404)
    c.call("DELETE", f"/v1/jobs/{job_id}").expect(202)
    equal(ended(c, job_id)["state"], "aborted", "state")
    c.get("many", "late.tar").expect(404)
    to = {"bucket": "many", "template": "late-{00..99}.tar"}
    job_id = start(c, "many", "archive", {"prefix": "m/", "to": to, "shard_size": 200000})
    begun(c, job_id)
    equal(c.names("many", prefix="late"), [], "archives of a job that runs")
    c.call("DELETE", f"/v1/jobs/{job_id}").expect(202)
    equal(ended(c, job_id)["state"], "aborted", "state")
    equal(c.names("many", prefix="late"), [], "archives of a job that was aborted")
    slow_disks(c, None)
    run(c, "many", "archive", {"prefix": "m/", "to": to, "shard_size": 200000})
    equal(shards(c, "many", "late")[0], [(f"m/{i:05}", f"m/{i:05}".encode()) for i in range(MANY)],
          "members after an abort")


def dies(c, victim_of):
    """The job goes on when a target is back: what breaks off begins anew."""
    job_id = slow_job(c, "died.tar")
    owner = c.owner("many", "died.tar")
    victim = next(t for t in c.targets() if victim_of(t, owner))
    c.kill(victim)
    c.wait_node(victim, "unreachable")
    c.get("many", "died.tar").expect(503 if victim == owner else 404)
    equal(document(c, job_id)["state"], "running", f"state without {victim}")
    c.start(victim)
    c.wait_node(victim, "active")
    job = ended(c, job_id)
    equal(job["state"], "finished", f"state; {job['errors']}")
    check(job["redone"]["attempts"] > 0, job["redone"])
    slow_disks(c, None)
    equal(len(members(archive_of(c, "many", "died.tar"))), MANY, "members")
    c.object("DELETE", "many", "died.tar").expect(204)


def test_the_target_that_makes_it_dies(c):
    dies(c, lambda t, owner: t == owner)


def test_a_target_with_members_dies(c):
    dies(c, lambda t, owner: t != owner)


if __name__ == "__main__":
    main()
