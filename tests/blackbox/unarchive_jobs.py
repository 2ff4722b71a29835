#!/usr/bin/env python3
"""The job `unarchive`: files of archives become objects, as other programs extract them; odd members,
damage, bombs, aborts, and deaths of targets."""

import gzip
import hashlib
import io
import os
import random
import subprocess
import tarfile
import tempfile

from lib import check, equal, in_parallel, main
from members import BUCKETS, archive, member
from members_packed import made, of_python, tree
from object_jobs import begun, document, ended, run, slow_disks, start

MANY = 2000


def objects(c, bucket, prefix=""):
    """{name: bytes} of the bucket."""
    names = c.names(bucket, prefix=prefix, limit=10000)
    return dict(in_parallel(lambda n: (n, c.get(bucket, n).expect(200).body), names))


def failed(c, bucket, value, code):
    job = ended(c, start(c, bucket, "unarchive", value))
    equal((job["state"], job["errors"][0]["code"]), ("failed", code), f"end of {value}")
    return job


def tar_of(files):
    """→ bytes; files: [(name, bytes)], of which names may repeat."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files:
            member(tar, name, data)
    return out.getvalue()


def test_what_other_programs_pack(c):
    with tempfile.TemporaryDirectory(prefix="dfc-unarchive-") as folder:
        files = tree(folder)
        os.remove(os.path.join(folder, "set", "link"))
        archives = {**made(folder), **of_python(files)}
        subprocess.run(["tar", "-C", folder, "-cf", "plain.tar", "set"], cwd=folder, check=True)
        with open(os.path.join(folder, "plain.tar"), "rb") as f:
            archives["plain.tar"] = f.read()
    c.create("out")
    for bucket, props in BUCKETS.items():
        c.create(bucket, **props)
        in_parallel(lambda n, b=bucket: c.put(b, "in/" + n, archives[n]), list(archives))
        got = run(c, bucket, "unarchive", {"prefix": "in/", "to": "out", "prepend": bucket + "/"})
        equal((got["done"], got["failed"]), (len(archives) * (len(files) + 1), 0), "archives, members")
        wanted = {f"{bucket}/in/{a}/{f}": files[f] for a in archives for f in files}
        check(objects(c, "out", bucket + "/") == wanted, f"{bucket}: other objects than members")


def test_into_buckets_of_all_kinds(c):
    files = {f"m{i:02}": os.urandom(random.Random(i).randrange(1, 90000)) for i in range(20)}
    c.put("plain", "all.tar.gz", gzip.compress(tar_of(files.items())))
    for bucket in BUCKETS:
        value = {"list": ["all.tar.gz"], "to": bucket, "prepend": "made/", "names": "member"}
        equal(run(c, "plain", "unarchive", value)["done"], len(files) + 1, "an archive, members")
        found = objects(c, bucket, "made/")
        check(found == {"made/" + n: d for n, d in files.items()}, f"{bucket}: other objects")
        got = run(c, "plain", "unarchive", value)
        equal((got["done"], got["skipped"]), (1, len(files)), "what is the same is passed over")


def test_odd_names_and_twins(c):
    """Of members with one name the last; names as they are, but for "./"."""
    files = [("a b/100%?#", b"1"), ("sm\u00f8r", b"2"), ("twin", b"first"), ("./dot", b"3"),
             ("../up", b"4"), ("twin", b"last"), ("empty", b"")]
    c.create("odd")
    c.put("plain", "odd.tar", tar_of(files))
    run(c, "plain", "unarchive", {"list": ["odd.tar"], "to": "odd", "names": "member"})
    equal(objects(c, "odd"), {"a b/100%?#": b"1", "sm\u00f8r": b"2", "twin": b"last", "dot": b"3",
                              "../up": b"4", "empty": b""}, "objects")


def test_within_one_bucket(c):
    """What the job makes is no archive for it."""
    c.create("self")
    c.put("self", "x/1.tar", tar_of([("a", b"a"), ("b", b"b")]))
    got = run(c, "self", "unarchive", {"prefix": "x/"})
    equal(got["failed"], 0, "failures")
    equal(objects(c, "self", "x/1.tar/"), {"x/1.tar/a": b"a", "x/1.tar/b": b"b"}, "objects")


def test_members_that_are_no_files(c):
    c.create("links")
    c.put("plain", "links.tar", archive())
    job = failed(c, "plain", {"list": ["links.tar"], "to": "links", "names": "member"},
                 "member_unreadable")
    check("'links.tar/" in job["errors"][0]["message"], job["errors"])
    equal(job["progress"]["objects"]["failed"], 2, "a symbolic link and a hard one")
    check("dir/07.bin" in c.names("links"), "files beside the links are missing")


def test_two_archives_with_one_name(c):
    c.create("clash")
    for i in (1, 2):
        c.put("plain", f"clash{i}.tar", tar_of([("same", b"same"), ("other", b"%d" % i)]))
    value = {"template": "clash{1..2}.tar", "to": "clash", "names": "member"}
    job = failed(c, "plain", value, "precondition_failed")
    check("'other' has other bytes" in job["errors"][0]["message"], job["errors"])
    equal(c.get("clash", "same").body, b"same", "what both have")
    check(c.get("clash", "other").body in (b"1", b"2"), "what one of them has")


def test_nothing_to_do(c):
    for value in ({"prefix": "none/"}, {"list": ["nobody"]}):
        failed(c, "plain", {**value, "to": "out"}, "nothing_matched")
        equal(run(c, "plain", "unarchive", {**value, "to": "out", "allow_empty": True})["done"], 0,
              "archives")
    c.put("plain", "empty.tar", tar_of([]))
    equal(run(c, "plain", "unarchive", {"list": ["empty.tar"], "to": "out"})["done"], 1, "archives")


def test_refusals(c):
    def refuse(value, status, code, text):
        c.call("POST", "/v1/buckets/plain", {"action": "unarchive", "value": value}).expect(
            status, code, text)

    refuse({}, 400, "invalid_spec", "one of")
    refuse({"prefix": "", "names": "full"}, 400, "invalid_spec", "names")
    refuse({"prefix": "", "to": "none"}, 404, "bucket_not_found", "none")
    refuse({"prefix": "", "archive": "x"}, 400, "invalid_json", "archive")


def test_damaged_archives_and_none(c):
    """An archive that is damaged is told; what is whole beside it becomes objects."""
    c.create("bad")
    c.create("from_bad")
    whole = tar_of([(f"m{i}", bytes([i]) * 5000) for i in range(20)])
    c.put("bad", "a.tar", whole)
    c.put("bad", "cut.tar", whole[:30000])
    c.put("bad", "cut.tar.gz", gzip.compress(whole)[:200])
    c.put("bad", "text", b"no archive at all" * 100)
    bomb = gzip.compress(tar_of([("bomb", bytes(300 << 20))]), 9)
    c.put("bad", "bomb.tar.gz", bomb)
    job = ended(c, start(c, "bad", "unarchive", {"prefix": "", "to": "from_bad"}))
    equal((job["state"], job["progress"]["objects"]["done"]), ("failed", 21), "state, done")
    for name in ("cut.tar", "cut.tar.gz", "text", "bomb.tar.gz"):
        check(any(f"'{name}'" in w for w in job["warnings"]), f"{name} is not in {job['warnings']}")
        equal([n for n in c.names("from_bad") if n.startswith(name + "/") and "bomb" in n], [],
              "what a bomb has become")


def test_silent_damage(c):
    """Bytes that a disk has changed, within a member: the archive would still be one."""
    c.create("rot", durability="async")
    c.put("rot", "r.tar", tar_of([("m", b"right" * 1000)]))
    path = next(p for t in c.targets() for p in c.object_files(t)
                if b"r.tar\0" in os.getxattr(p, "user.dfc"))
    with open(path, "r+b") as f:
        f.seek(1000)
        f.write(b"wrong")
    failed(c, "rot", {"list": ["r.tar"], "to": "out"}, "checksum_mismatch")
    equal(c.names("out", prefix="r.tar"), [], "objects")


def test_a_quota_holds(c):
    c.create("small", quota_objects=3)
    failed(c, "plain", {"list": ["all.tar.gz"], "to": "small", "names": "member"}, "quota_exceeded")
    check(len(c.names("small")) <= 6, f"{len(c.names('small'))} objects, the quota is 3")


def many_archive(c):
    files = {f"{i:05}": hashlib.md5(b"%d" % i).digest() for i in range(MANY)}
    c.put("plain", "many.tar", tar_of(files.items()))
    return files


def test_many_members_and_an_abort(c):
    files = many_archive(c)
    value = {"list": ["many.tar"], "to": "many", "names": "member"}
    c.create("many", durability="async")
    slow_disks(c, "disk.rename", 50_000 // MANY)
    job_id = start(c, "plain", "unarchive", value)
    begun(c, job_id)
    c.call("DELETE", f"/v1/jobs/{job_id}").expect(202)
    job = ended(c, job_id)
    equal(job["state"], "aborted", "state")
    check("what was extracted before the end stays" in job["warnings"], job["warnings"])
    some = c.names("many", limit=10000)
    check(0 < len(some) < MANY, f"{len(some)} objects")
    slow_disks(c, None)
    got = run(c, "plain", "unarchive", value)
    equal((got["done"] + got["skipped"], got["failed"]), (MANY + 1, 0), "objects")
    check(objects(c, "many") == files, "other objects than members")


def dies(c, bucket, victim_of):
    files = many_archive(c)
    c.create(bucket, durability="async")
    slow_disks(c, "disk.rename", 50_000 // MANY)
    job_id = start(c, "plain", "unarchive", {"list": ["many.tar"], "to": bucket, "names": "member"})
    begun(c, job_id)
    owner = c.owner("plain", "many.tar")
    victim = next(t for t in c.targets() if victim_of(t, owner))
    c.kill(victim)
    c.wait_node(victim, "unreachable")
    equal(document(c, job_id)["state"], "running", f"state without {victim}")
    c.start(victim)
    c.wait_node(victim, "active")
    slow_disks(c, None)
    job = ended(c, job_id)
    equal(job["state"], "finished", f"state; {job['errors']}")
    check(objects(c, bucket) == files, "other objects than members")


def test_the_target_that_reads_dies(c):
    dies(c, "died1", lambda t, owner: t == owner)


def test_a_target_of_members_dies(c):
    dies(c, "died2", lambda t, owner: t != owner)


if __name__ == "__main__":
    main()
