#!/usr/bin/env python3
"""Writes to buckets with a backend, write_policy through: 2xx when the backend has it, and nothing
old is
served afterwards, whatever fails on the way.

The backend is tests/reference/fake_s3.py, which verifies signatures, MD5s and parts."""

import hashlib
import os
import random
import sys
import threading

from lib import ROOT, check, equal, in_parallel, main, wait_for

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

ACCESS, SECRET = "AKIDCOLDWRITES", "theSecretThatNobodyMaySee/+0123"
S3 = FakeS3({ACCESS: SECRET})
RANDOM = random.Random(11)
PART = 5 << 20
LARGE = RANDOM.randbytes(2 * PART + 12345)


def md5_tag(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


def put(c, bucket, name, data, headers=None):
    return c.object("PUT", bucket, name, data, headers)


def metric(c, name):
    text = c.call("GET", "/metrics", node=c.targets()[0]).expect(200).body.decode()
    return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


def restart_target(c):
    node = c.targets()[0]
    c.restart(node)


# --- the property --------------------------------------------------------------------------------

def test_the_property(c):
    S3.put("data", "seed", b"seed")
    c.create("s3", backend=f"s3://data/pre?endpoint={S3.url}", write_policy="through")
    c.create("read", backend=f"s3://data/pre?endpoint={S3.url}")
    equal(c.get_json("/v1/buckets/s3")["props"]["write_policy"], "through", "write_policy")
    equal(c.get_json("/v1/buckets/read")["props"]["write_policy"], "none", "the default")
    for props, status in (({"write_policy": "through"}, 400),
                          ({"backend": "http://h/", "write_policy": "through"}, 501),
                          ({"backend": f"s3://b?endpoint={S3.url}", "write_policy": "later"}, 400),
                          ({"backend": f"s3://b?endpoint={S3.url}", "write_policy": "through",
                            "copies": 2}, 501)):
        reply = c.call("POST", "/v1/buckets/never", {"action": "create", "value": props})
        equal(reply.status, status, f"{props}: {reply!r}")
    done = c.dfcctl("bucket", "props", "read", "--write-policy", "through")
    equal(done.returncode, 0, done.stderr)
    put(c, "read", "x", b"x").expect(200)
    equal(S3.has("data", "pre/x"), b"x", "what the backend has")
    equal(c.dfcctl("bucket", "props", "read", "--write-policy", "none").returncode, 0, "back")
    for method, body in (("PUT", b"y"), ("DELETE", None)):
        c.object(method, "read", "x", body).expect(501, "not_supported", "write_policy")
    equal(S3.written("pre/x"), [b"x"], "what has been written")


# --- PUT -----------------------------------------------------------------------------------------

def test_put(c):
    for size in (0, 1, 65536, 300_000):
        name, data = f"size/{size}", LARGE[:size]
        reply = put(c, "s3", name, data, {"Content-Type": "text/x-mine"}).expect(200)
        equal(reply.headers["ETag"], md5_tag(data), "the backend's entity tag")
        equal(reply.json()["etag"], md5_tag(data), "in the answer, too")
        equal(S3.has("data", "pre/" + name), data, "what the backend has")
        equal(S3.type_of("data", "pre/" + name), "text/x-mine", "content type")
        before = S3.count("pre/" + name)
        got = c.get("s3", name).expect(200)
        check(got.body == data, "bytes read")
        equal(got.headers["ETag"], md5_tag(data), "ETag")
        equal(S3.count("pre/" + name), before, "requests for what is here")


def test_names(c):
    for name in ("a b", "ä/ö", "p+q", "p%q", "x//y", "t/", "q?x=y", "h#i", "n" * 900, "~(')*!",
                 "a&b=c"):
        put(c, "s3", name, name.encode()).expect(200)
        equal(S3.has("data", "pre/" + name), name.encode(), f"object '{name}'")
        c.object("DELETE", "s3", name).expect(204)
        equal(S3.has("data", "pre/" + name), None, f"object '{name}', deleted")


def test_over_what_is_cached(c):
    S3.put("data", "pre/old", b"old")
    equal(c.get("s3", "old").expect(200).body, b"old", "cached")
    for data in (b"new", b"newer", b"newer"):
        put(c, "s3", "old", data).expect(200)
        equal(c.get("s3", "old").expect(200).body, data, "what is read")
        equal(S3.has("data", "pre/old"), data, "what the backend has")


def test_what_is_refused_here_never_gets_there(c):
    put(c, "s3", "refused", b"x", {"Dfc-Checksum-Type": "md5", "Dfc-Checksum-Value": "0" * 32}
        ).expect(422, "checksum_mismatch")
    equal(S3.count("pre/refused"), 0, "requests")


def test_conditions_are_the_backends(c):
    S3.put("data", "pre/cond", b"1")
    put(c, "s3", "cond", b"2", {"If-None-Match": "*"}).expect(412, "precondition_failed")
    put(c, "s3", "cond", b"2", {"If-Match": md5_tag(b"0")}).expect(412)
    put(c, "s3", "cond", b"2", {"If-Match": md5_tag(b"1")}).expect(200)
    S3.put("data", "pre/cond", b"3")  # behind our back
    put(c, "s3", "cond", b"4", {"If-Match": md5_tag(b"2")}).expect(412)
    c.object("DELETE", "s3", "cond", headers={"If-Match": md5_tag(b"2")}).expect(412)
    equal(S3.has("data", "pre/cond"), b"3", "what the backend has")
    c.object("DELETE", "s3", "cond", headers={"If-Match": md5_tag(b"3")}).expect(204)
    put(c, "s3", "cond", b"5", {"If-None-Match": "*"}).expect(200)


# --- in parts ------------------------------------------------------------------------------------

def test_parts(c):
    parts = [LARGE[at:at + PART] for at in range(0, len(LARGE), PART)]
    tag = hashlib.md5(b"".join(hashlib.md5(p).digest() for p in parts)).hexdigest()
    reply = put(c, "s3", "large", LARGE, {"Content-Type": "text/x-large"}).expect(200)
    equal(reply.headers["ETag"], f'"{tag}-{len(parts)}"', "the backend's entity tag")
    check(S3.has("data", "pre/large") == LARGE, "what the backend has")
    equal(S3.type_of("data", "pre/large"), "text/x-large", "content type")
    check(c.get("s3", "large").expect(200).body == LARGE, "what is read")
    equal(S3.uploads(), {}, "uploads that are open")


def test_parts_that_fail_and_are_repeated(c):
    S3.fail("pre/again", method="PUT", part=2, status=503)
    S3.fail("pre/again", method="PUT", part=1, read_at=100_000)
    S3.fail("pre/again", method="PUT", part=3, deaf=True)
    put(c, "s3", "again", LARGE).expect(200)
    check(S3.has("data", "pre/again") == LARGE, "what the backend has")
    equal(S3.uploads(), {}, "uploads that are open")
    S3.fail("pre/twice", method="POST", status=500)
    put(c, "s3", "twice", LARGE).expect(200)
    check(S3.has("data", "pre/twice") == LARGE, "what the backend has")


def test_an_end_whose_answer_is_lost(c):
    name = "pre/lost-answer"
    S3.fail(name, method="GET", status=500)  # nobody asks this; the fault stays, and shows that
    original = S3.end

    def end(bucket, key, upload, document):
        etag = original(bucket, key, upload, document)
        S3.end = original
        raise ConnectionResetError(etag)

    S3.end = end
    put(c, "s3", "lost-answer", LARGE).expect(200)
    check(S3.has("data", name) == LARGE, "what the backend has")
    equal(len(S3.written(name)), 1, "times it was written")
    S3.calm()


def test_an_end_without_an_entity_tag(c):
    """The backend is asked for it."""
    S3.fail("pre/untold", method="POST")  # the beginning
    S3.fail("pre/untold", method="POST", no_tag=True)
    reply = put(c, "s3", "untold", LARGE).expect(200)
    equal(reply.headers["ETag"], S3.etag("data", "pre/untold"), "the backend's entity tag")
    check(c.get("s3", "untold").expect(200).body == LARGE, "what is read")
    equal(S3.uploads(), {}, "uploads that are open")


def test_uploads_that_fail_are_aborted(c):
    S3.put("data", "pre/half", b"before")
    equal(c.get("s3", "half").expect(200).body, b"before", "cached")
    for fault in ({"method": "PUT", "part": 2, "status": 400}, {"method": "POST", "status": 403},
                  {"method": "PUT", "part": 3, "status": 500, "times": 9}):
        S3.fail("pre/half", **fault)
        reply = put(c, "s3", "half", LARGE)
        check(reply.status in (502, 403), f"{fault}: {reply!r}")
        equal(S3.uploads(), {}, f"uploads that are open after {fault}")
        equal(c.get("s3", "half").expect(200).body, b"before", "what is read")
        S3.calm()


def test_an_error_behind_a_good_status(c):
    S3.put("data", "pre/late", b"before")
    original = S3.begin
    begun = threading.Event()

    def begin(*args):
        begun.set()
        S3.begin = original
        S3.fail("pre/late", method="POST", late_error=True)
        return original(*args)

    S3.begin = begin
    put(c, "s3", "late", LARGE).expect(502, "backend_error", "InternalError")
    check(begun.is_set(), "it went in parts")
    equal(S3.uploads(), {}, "uploads that are open")
    equal(c.get("s3", "late").expect(200).body, b"before", "what is read")


# --- failures ------------------------------------------------------------------------------------

def test_puts_that_fail_for_a_while(c):
    for fault in ({"status": 503, "times": 2}, {"status": 500}, {"read_at": 10}, {"deaf": True},
                  {"status": 429, "retry_after": "0"}):
        S3.fail("pre/while", method="PUT", **fault)
        data = repr(fault).encode() * 1000
        put(c, "s3", "while", data).expect(200)
        equal(S3.has("data", "pre/while"), data, f"after {fault}")
        equal(c.get("s3", "while").expect(200).body, data, f"read after {fault}")


def test_puts_that_fail(c):
    for fault, status, code in (({"status": 403}, 403, "backend_denied"),
                                ({"status": 400}, 502, "backend_error"),
                                ({"status": 503, "times": 9}, 503, "backend_unavailable")):
        S3.put("data", "pre/fails", b"before")
        c.object("GET", "s3", "fails").expect(200)
        S3.fail("pre/fails", method="PUT", **fault)
        put(c, "s3", "fails", b"after").expect(status, code)
        S3.calm()
        equal(c.get("s3", "fails").expect(200).body, b"before", "what is read")
    # In doubt: the backend has it, and its answer never comes.
    S3.fail("pre/fails", method="PUT", deaf=True, times=99)
    put(c, "s3", "fails", b"doubt").expect(502, "backend_error")
    S3.calm()
    equal(S3.has("data", "pre/fails"), b"doubt", "what the backend has")
    equal(c.get("s3", "fails").expect(200).body, b"doubt", "what is read")


def test_no_such_bucket(c):
    c.create("nobucket", backend=f"s3://missing?endpoint={S3.url}", write_policy="through")
    put(c, "nobucket", "x", b"x").expect(502, "backend_error", "NoSuchBucket")


# --- DELETE --------------------------------------------------------------------------------------

def test_delete(c):
    c.object("DELETE", "s3", "nothing").expect(404, "object_not_found")
    for cached in (True, False):
        S3.put("data", "pre/gone", b"gone")
        if cached:
            c.get("s3", "gone").expect(200)
        c.object("DELETE", "s3", "gone").expect(204)
        equal(S3.has("data", "pre/gone"), None, "what the backend has")
        c.get("s3", "gone").expect(404, "object_not_found")
    S3.put("data", "pre/gone", b"again")  # behind our back
    equal(c.get("s3", "gone").expect(200).body, b"again", "a deleted name is asked for again")
    S3.fail("pre/gone", method="DELETE", status=403)
    c.object("DELETE", "s3", "gone").expect(403, "backend_denied")
    equal(c.get("s3", "gone").expect(200).body, b"again", "not deleted")


# --- order ---------------------------------------------------------------------------------------

def test_many_writers_of_one_name(c):
    bodies = [b"%d" % i * 1000 for i in range(40)]
    in_parallel(lambda data: put(c, "s3", "hot", data).expect(200), bodies)
    equal(sorted(S3.written("pre/hot")), sorted(bodies), "what has been written, once each")
    equal(c.get("s3", "hot").expect(200).body, S3.written("pre/hot")[-1], "the last one is here")


def test_a_read_that_a_write_overtakes(c):
    """It began before: it gets the old bytes, whole, and they are not kept over the new ones."""
    go = threading.Event()
    S3.put("data", "pre/race", LARGE)
    S3.fail("pre/race", method="GET", hold=go, held_bytes=200_000)
    got, before = [], metric(c, "dfc_cold_fetch_bytes_total")
    reader = threading.Thread(target=lambda: got.append(c.get("s3", "race")))
    reader.start()
    wait_for(lambda: metric(c, "dfc_cold_fetch_bytes_total") > before, "the read is under way")
    put(c, "s3", "race", b"new").expect(200)
    go.set()
    reader.join()
    check(got[0].expect(200).body == LARGE, "the old bytes, whole")
    equal(c.get("s3", "race").expect(200).body, b"new", "what is read")


# --- the end -------------------------------------------------------------------------------------

def test_killed_within_an_upload(c):
    """Nobody was answered; what is read afterwards is what the backend has."""
    node = c.targets()[0]
    S3.put("data", "pre/killed", b"before")
    c.get("s3", "killed").expect(200)
    go = threading.Event()
    S3.fail("pre/killed", method="PUT", part=2, stall=go)

    def write():
        try:
            got.append(put(c, "s3", "killed", LARGE).status)
        except OSError:
            got.append(None)

    got = []
    writer = threading.Thread(target=write)
    writer.start()
    wait_for(
        lambda: any(u["key"] == "pre/killed" and 1 in u["parts"] for u in S3.uploads().values()),
        "parts are there")
    c.kill(node)
    go.set()
    writer.join()
    check(got[0] != 200, "it was answered")
    c.start(node)
    c.wait_node(node, "active")
    equal(c.get("s3", "killed").expect(200).body, b"before", "what is read")
    put(c, "s3", "killed", b"after").expect(200)
    restart_target(c)
    equal(c.get("s3", "killed").expect(200).body, b"after", "after a restart")


if __name__ == "__main__":
    os.environ.update({"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET})
    os.environ.pop("AWS_SESSION_TOKEN", None)
    with S3:
        main(targets=1, args=[f"--target-arg={a}" for a in (
            "--backend-backoff=5ms", "--backend-backoff-max=2s", "--backend-retries=2",
            "--backend-part-size=5MiB", "--backend-parts=3")])
