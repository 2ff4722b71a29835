#!/usr/bin/env python3
"""A bucket whose backend is Ceph's S3 service: the protocol as somebody else has understood it.

Ceph is that of Debian's packages, and runs for this test alone (tests/reference/ceph_rgw.py). What
it has is seen through
a client of the tests' own, past our cluster. Faults are not tried here: cold_faults.py and
cold_writes.py do that with a
service that can be told to fail."""

import hashlib
import json
import os
import random
import tempfile

from cold_lib import QUICK, metric, run_job
from lib import Ports, check, end_on_signals, equal, in_parallel, main, skip

import ceph_rgw

ACCESS, SECRET = "AKIDCOLDCEPH", "theSecretThatNobodyMaySee/+0123"
WRONG = "aWrongSecretThatNobodyMaySee"
KEYS = f"""[wrong]
aws_access_key_id = {ACCESS}
aws_secret_access_key = {WRONG}
[unknown]
aws_access_key_id = AKIDOFNOBODY
aws_secret_access_key = {WRONG}
"""
NAMES = ("a b", "ä/ö", "猫/犬", "🦊", "e\u0301té", "p+q", "p%q", "%41", "x//y", "t/", "q?x=y", "h#i",
         "~(')*!", "a&b=c", "a;b:c,d", '"<>', "a\\b", ".", "..", "a/../b", "/lead", "n" * 1024,
         "é" * 512)
RANDOM = random.Random(12)
PART = 5 << 20
LARGE = RANDOM.randbytes(2 * PART + 12345)
CEPH = S3 = None


def tag(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


def backend(bucket="data", **query):
    return f"s3://{bucket}?" + "&".join(f"{k}={v}"
                                        for k, v in {"endpoint": CEPH.url, **query}.items())


def listed(c, bucket, **query):
    entries, prefixes = [], []
    for page in c.pages(bucket, **query):
        entries += [e["name"] for e in page["entries"]]
        prefixes += page["prefixes"]
    return entries, prefixes


def in_order(names):
    return sorted(names, key=str.encode)


# --- reads ---------------------------------------------------------------------------------------

def test_buckets(c):
    for bucket in ("data", "names", "written", "listed"):
        S3.create(bucket)
    done = c.dfcctl("bucket", "create", "cold", "--backend", backend())
    equal(done.returncode, 0, done.stderr)
    c.create("asks", backend=backend(), validate="open")
    c.create("names", backend=backend("names"), write_policy="through")
    c.create("under", backend=backend("names/some/prefix"), write_policy="through")
    c.create("written", backend=backend("written"), write_policy="through")
    c.create("listed", backend=backend("listed"))


def test_cold_get(c):
    for size in (0, 1, 65536, 65537, len(LARGE)):
        name, data = f"size/{size}", LARGE[:size]
        wanted = S3.put("data", name, data, content_type="text/x-mine")
        equal(
            c.object("HEAD", "cold", name).headers["Content-Length"], str(size),
            "HEAD of what is not here")
        for _ in range(2):
            reply = c.get("cold", name).expect(200)
            check(reply.body == data, f"{size} bytes changed")
            equal((reply.headers["ETag"], reply.headers["Content-Type"]), (wanted, "text/x-mine"),
                  "head")
        S3.remove("data", name)
        check(c.get("cold", name).expect(200).body == data, "it is read from here")
    c.get("cold", "nothing").expect(404, "object_not_found")
    equal(c.object("HEAD", "cold", "nothing").status, 404, "HEAD of nothing")


def test_one_fetch_for_all(c):
    S3.put("data", "hot", LARGE)
    before = metric(c, "dfc_cold_fetch_total")
    in_parallel(lambda _: check(c.get("cold", "hot").expect(200).body == LARGE, "bytes"), range(16),
                workers=16)
    equal(metric(c, "dfc_cold_fetch_total") - before, 1, "fetches")


def test_ranges(c):
    wanted = S3.put("data", "ranges", LARGE)
    c.create("pieces", backend=backend(), range_fetch="never")
    for asked, first, last in (("0-99", 0, 100), ("5-9", 5, 10), ("-1000", len(LARGE) - 1000,
                                                                  len(LARGE)),
                               (f"{PART}-", PART, len(LARGE)), ("0-0", 0, 1)):
        for condition in ({}, {"If-Match": wanted}):
            reply = c.get("pieces", "ranges", {"Range": f"bytes={asked}", **condition}).expect(206)
            check(reply.body == LARGE[first:last], f"range {asked}: bytes")
            equal(reply.headers["Content-Range"], f"bytes {first}-{last - 1}/{len(LARGE)}",
                  "Content-Range")
    c.get("pieces", "ranges", {"Range": f"bytes={len(LARGE)}-"}).expect(416)
    c.get("pieces", "ranges", {"Range": "bytes=0-9", "If-Match": tag(b"other")}).expect(412)
    equal(c.names("pieces", cached="true"), [], "nothing is kept")


def test_what_changes_there(c):
    S3.put("data", "changes", b"one")
    for _ in range(2):
        equal(c.get("asks", "changes").expect(200).body, b"one", "first")
    S3.put("data", "changes", b"two")
    equal(c.get("asks", "changes").expect(200).body, b"two", "changed")
    S3.remove("data", "changes")
    c.get("asks", "changes").expect(404, "object_not_found")


def test_a_public_object(c):
    S3.put("data", "public", b"everybody's", x_amz_acl="public-read")
    S3.put("data", "private", b"nobody's")
    c.create("public", backend=backend(auth="none"))
    equal(c.get("public", "public").expect(200).body, b"everybody's", "without keys")
    c.get("public", "private").expect(403, "backend_denied", "AccessDenied")


def test_virtual_host_style(c):
    S3.put("data", "a b/ä", b"virtual")
    c.create("virtual", backend=backend(style="virtual").replace("127.0.0.1", "localhost"))
    equal(c.get("virtual", "a b/ä").expect(200).body, b"virtual", "bytes")


# --- names, lists --------------------------------------------------------------------------------

def test_names(c):
    for bucket, prefix in (("names", ""), ("under", "some/prefix/")):
        names = [n for n in NAMES if len((prefix + n).encode()) <= 1024]
        data = {n: n.encode() * 3 for n in names}
        for name in names[::2]:
            S3.put("names", prefix + name, data[name])
        for name in names[1::2]:
            c.object("PUT", bucket, name, data[name]).expect(200)
            equal(S3.get("names", prefix + name), data[name], f"object '{name}', written")
        in_parallel(lambda n: equal(c.get(bucket, n).expect(200).body, data[n], f"object '{n}'"),
                    names)
        equal(c.names(bucket), in_order(names), "list of what is here")
        equal(run_job(c, bucket, "evict", {"prefix": ""})[0], len(names), "evicted")
        for limit in (None, 1, 5):
            equal(c.names(bucket, limit=limit), in_order(names),
                  f"list of what is only there, limit {limit}")
        in_parallel(lambda n: c.object("DELETE", bucket, n).expect(204), names)
        equal([S3.get("names", prefix + n) for n in names], [None] * len(names), "deleted")
        equal(c.names(bucket), [], "list of nothing")


def test_lists(c):
    names = [f"{d}/{i:03d}" for d in ("a", "a b", "ä", "b%2F")
             for i in range(40)] + ["top", "a+", "a "]
    in_parallel(lambda n: S3.put("listed", n, n.encode()), names)
    for name in names[::3]:
        c.get("listed", name).expect(200)
    for query in ({}, {"limit": 7}, {"prefix": "a"}, {"prefix": "a b/00"},
                  {"prefix": "ä/", "limit": 3}):
        wanted = [n for n in in_order(names) if n.startswith(query.get("prefix", ""))]
        equal(listed(c, "listed", **query), (wanted, []), f"list of {query}")
    folders = (in_order(["top", "a+", "a "]), in_order(["a/", "a b/", "ä/", "b%2F/"]))
    for limit in (None, 2):
        equal(listed(c, "listed", delimiter="/", limit=limit), folders,
              f"as folders, limit {limit}")
    equal(c.names("listed", cached="true"), in_order(names[::3]), "what is here")


# --- writes --------------------------------------------------------------------------------------

def test_write_through(c):
    for size in (0, 1, 65536, 300_000):
        name, data = f"size/{size}", LARGE[:size]
        reply = c.object("PUT", "written", name, data, {"Content-Type": "text/x-mine"}).expect(200)
        check(S3.get("written", name) == data, f"{size} bytes changed")
        equal((reply.headers["ETag"], S3.head("written", name)["ETag"]), (tag(data), tag(data)),
              "entity tags")
        equal(S3.head("written", name)["Content-Type"], "text/x-mine", "content type")
    c.object("PUT", "written", "size/1", b"other",
             {"If-None-Match": "*"}).expect(412, "precondition_failed")
    c.object("PUT", "written", "size/1", b"other", {"If-Match": tag(LARGE[:1])}).expect(200)
    equal(S3.get("written", "size/1"), b"other", "what Ceph has")


def test_write_through_in_parts(c):
    parts = [LARGE[at:at + PART] for at in range(0, len(LARGE), PART)]
    whole = hashlib.md5(b"".join(hashlib.md5(p).digest() for p in parts)).hexdigest()
    reply = c.object("PUT", "written", "large ä+%", LARGE,
                     {"Content-Type": "text/x-large"}).expect(200)
    equal(reply.headers["ETag"], f'"{whole}-{len(parts)}"', "entity tag")
    check(S3.get("written", "large ä+%") == LARGE, "what Ceph has")
    equal(S3.head("written", "large ä+%")["Content-Type"], "text/x-large", "content type")
    equal(S3.uploads("written"), [], "uploads that are open")
    equal(run_job(c, "written", "evict", {"list": ["large ä+%"]})[0], 1, "evicted")
    check(c.get("written", "large ä+%").expect(200).body == LARGE, "read again, from Ceph")


def test_user_metadata(c):
    sent = {"Dfc-Meta-Colour": "dark blue", "Dfc-Meta-A-b-c": "x=1; y", "Dfc-Meta-a.b": "~"}
    wanted = {"colour": "dark blue", "a-b-c": "x=1; y", "a.b": "~"}
    for name, data in (("meta/small", b"small"), ("meta/large", LARGE)):
        c.object("PUT", "written", name, data, sent).expect(200)
        head = {n.lower(): v for n, v in S3.head("written", name).items()}
        equal({n: head.get(f"x-amz-meta-{n}") for n in wanted}, wanted, "what Ceph has")
        equal(run_job(c, "written", "evict", {"list": [name]})[0], 1, "evicted")
        for method in ("HEAD", "GET", "GET"):
            got = {n.lower(): v for n, v in c.object(method, "written", name).headers.items()}
            equal({n: got.get(f"dfc-meta-{n}") for n in wanted}, wanted, f"what {method} gives")


def test_delete(c):
    c.object("DELETE", "written", "nothing").expect(404, "object_not_found")
    S3.put("written", "gone", b"gone")
    equal(c.get("written", "gone").expect(200).body, b"gone", "before")
    c.object("DELETE", "written", "gone").expect(204)
    equal(S3.get("written", "gone"), None, "what Ceph has")
    c.get("written", "gone").expect(404, "object_not_found")


def test_rename(c):
    """What is here and what is not, in one piece and in parts (of 5 MiB here)."""
    sent = {
        "Content-Type": "text/x-mine", "Content-Encoding": "x-mine", "Dfc-Meta-Colour": "dark blue"
    }
    for i, name in enumerate((*NAMES[:-2], "n" * 1000, "large")):
        data, new_name = LARGE if name == "large" else name.encode() * 3, f"renamed {name}"
        c.object("PUT", "written", name, data, sent).expect(200)
        if i % 2 == 0:
            equal(run_job(c, "written", "evict", {"list": [name]})[0], 1, "evicted")
        c.object("POST", "written", name,
                 json.dumps({"action": "rename", "name": new_name}).encode()).expect(204)
        check((S3.get("written", name), S3.get("written", new_name)) == (None, data),
              f"what Ceph has of '{name}'")
        head = {n.lower(): v for n, v in S3.head("written", new_name).items()}
        equal((head["content-type"], head["content-encoding"], head["x-amz-meta-colour"]),
              ("text/x-mine", "x-mine", "dark blue"), f"head of '{new_name}'")
        c.get("written", name).expect(404)
        check(c.get("written", new_name).expect(200).body == data, f"'{new_name}', read")
    equal(S3.uploads("written"), [], "uploads that are open")
    S3.put("written", "taken", b"taken")
    c.object("POST", "written", "taken", b'{"action": "rename", "name": "size/1"}').expect(204)
    equal((S3.get("written", "taken"), c.get("written", "size/1").expect(200).body),
          (None, b"taken"), "over what was there")
    c.object("POST", "written", "taken",
             b'{"action": "rename", "name": "x"}').expect(404, "object_not_found")


# --- jobs ----------------------------------------------------------------------------------------

def test_prefetch_and_evict(c):
    names = [f"epoch/{i:03d} ä+" for i in range(50)]
    in_parallel(lambda n: S3.put("data", n, n.encode() * 500), names)
    c.get("cold", names[7]).expect(200)
    equal(run_job(c, "cold", "prefetch", {"prefix": "epoch/"}), (49, 1, 0, 0), "by prefix")
    equal(run_job(c, "cold", "prefetch", {"list": [*names[:5], "epoch/none"]}), (0, 5, 1, 0),
          "by list")
    before = metric(c, "dfc_cold_fetch_total")
    in_parallel(lambda n: equal(c.get("cold", n).expect(200).body, n.encode() * 500, n), names)
    equal(metric(c, "dfc_cold_fetch_total"), before, "fetches of what is here")
    equal(run_job(c, "cold", "evict", {"prefix": "epoch/"})[0], 50, "evicted")
    equal(c.names("cold", cached="true", prefix="epoch/"), [], "what is here")
    equal(c.names("cold", prefix="epoch/"), names, "what Ceph has")
    equal(c.get("cold", names[0]).expect(200).body, names[0].encode() * 500, "it is read again")


# --- what the backend refuses --------------------------------------------------------------------

def test_keys_that_are_wrong(c):
    S3.put("data", "private", b"x")
    for profile, why in (("wrong", "SignatureDoesNotMatch"), ("unknown", "InvalidAccessKeyId")):
        c.create(profile, backend=backend(profile=profile), write_policy="through")
        c.get(profile, "private").expect(403, "backend_denied", why)
        c.get(profile, "private", {"Range": "bytes=0-0"}).expect(403, "backend_denied", why)
        c.object("PUT", profile, "private", b"y").expect(403, "backend_denied", why)
        c.object("PUT", profile, "large", LARGE).expect(403, "backend_denied", why)
        c.object("DELETE", profile, "private").expect(403, "backend_denied")
        equal(c.object("HEAD", profile, "private").status, 403, "HEAD")
        c.call("GET", f"/v1/objects/{profile}").expect(403, "backend_denied", why)
    c.create("nokeys", backend=backend(profile="of-nobody"))
    c.get("nokeys", "private").expect(403, "backend_denied", "of-nobody")
    equal(S3.get("data", "private"), b"x", "what Ceph has")


def test_a_bucket_that_is_not_there(c):
    c.create("nobucket", backend=backend("missing"), write_policy="through")
    c.get("nobucket", "x").expect(502, "backend_error", "NoSuchBucket")
    c.object("PUT", "nobucket", "x", b"x").expect(502, "backend_error", "NoSuchBucket")
    c.object("PUT", "nobucket", "large", LARGE).expect(502, "backend_error", "NoSuchBucket")
    c.call("GET", "/v1/objects/nobucket").expect(502, "backend_error", "NoSuchBucket")


def test_no_secret_was_said(c):
    for node in c.nodes:
        for secret in (SECRET, WRONG):
            check(secret not in c.log(node), f"a secret in the log of {node}")


def run_all():
    """Ceph's ports are a block of the tests'; its keys are the targets' environment."""
    global CEPH, S3
    end_on_signals()
    reason = ceph_rgw.missing()
    if reason:
        skip(reason)
    with tempfile.NamedTemporaryFile("w", suffix=".aws") as keys:
        keys.write(KEYS)
        keys.flush()
        os.environ.update({"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET,
                           "AWS_SHARED_CREDENTIALS_FILE": keys.name})
        os.environ.pop("AWS_SESSION_TOKEN", None)
        ports = Ports()
        try:
            CEPH = ceph_rgw.Ceph(ports.base, {ACCESS: SECRET}).start()
        except ceph_rgw.CephError as e:
            skip(f"Ceph does not start here: {e}")
        with CEPH:
            S3 = CEPH.client(ACCESS)
            main(targets=1, args=[*QUICK, "--target-arg=--backend-part-size=5MiB",
                                  "--target-arg=--backend-copy-size=5MiB"])


if __name__ == "__main__":
    run_all()
