#!/usr/bin/env python3
"""Freshness: is what is kept still what the backend has?  Asked by `validate`, answered by 304
where it
is; what has changed is read anew, what is gone goes here, too, and a backend that does not answer
stops nobody unless `stale` is false."""

import gzip
import hashlib
import os
import socket
import sys

from lib import ROOT, check, equal, in_parallel, main, wait_for

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import MODIFIED, FakeS3  # noqa: E402

WEB, DARK = FakeS3(plain=True), FakeS3(plain=True)
BIG = bytes(range(256)) * 8192


def tag(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


def metric(c, name):
    text = c.call("GET", "/metrics", node="t1").expect(200).body.decode()
    return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


def methods(key, server=WEB):
    with server.lock:
        return [m for m, k, _ in server.requests if k == key]


def put(name, data, server=WEB):
    server.put("", "base/" + name, data)


def test_the_properties(c):
    for bucket, props in (("never", {}), ("always", {"validate": "open"}),
                          ("hourly", {"validate": "interval", "validate_interval": "1h"}),
                          ("briefly", {"validate": "interval", "validate_interval": "1ms"})):
        c.create(bucket, backend=WEB.url + "/base", **props)
    equal(c.get_json("/v1/buckets/never")["props"]["validate"], "never", "the default")
    equal(c.get_json("/v1/buckets/hourly")["props"]["validate_interval"], 3_600_000, "the interval")
    for props in ({"validate": "sometimes"}, {"validate": "interval"}, {"range_fetch": "x"}):
        c.call("POST", "/v1/buckets/bad",
               {"action": "create", "value": {"backend": WEB.url, **props}}).expect(
                   400, "invalid_argument")
    c.call("POST", "/v1/buckets/bad", {"action": "create", "value": {"validate": "open"}}
           ).expect(400, "invalid_argument", "backend")
    done = c.dfcctl("bucket", "create", "ctl", "--backend", WEB.url + "/base", "--validate",
                    "interval", "--validate-interval", "2m", "--stale", "false", "--range-fetch",
                    "never")
    equal(done.returncode, 0, done.stderr)
    props = c.get_json("/v1/buckets/ctl")["props"]
    equal((props["validate"], props["validate_interval"], props["stale"], props["range_fetch"]),
          ("interval", 120_000, False, "never"), "dfcctl's properties")


def test_an_unchanged_object_costs_a_304(c):
    put("same", b"same")
    for _ in range(3):
        equal(c.get("always", "same").expect(200).body, b"same", "object")
    equal(methods("base/same"), ["GET", "HEAD", "HEAD"], "requests")
    with WEB.lock:
        asked = [h for m, k, h in WEB.requests if k == "base/same" and m == "HEAD"]
    equal([{n.lower(): v
            for n, v in h.items()}["if-none-match"]
           for h in asked], [tag(b"same")] * 2, "the question")
    equal(metric(c, 'dfc_cold_ask_total{outcome="fresh"}'), 2, "answers")
    c.get("always", "same", {"Range": "bytes=1-2"}).expect(206)
    c.object("HEAD", "always", "same").expect(200)
    equal(methods("base/same")[3:], ["HEAD", "HEAD"], "for a range, and for HEAD")


def now_gives(c, bucket, name, body, headers=None):
    """The reply of a bucket that always asks; of one with an interval when that, 1 ms, is over."""
    if bucket == "briefly":
        wait_for(lambda: c.get(bucket, name, headers).body == body, f"{body} in {bucket}")
    reply = c.get(bucket, name, headers)
    equal(reply.body, body, f"what {bucket} gives")
    return reply


def test_what_has_changed_is_replaced(c):
    for bucket in ("always", "briefly"):
        name = "changes/" + bucket
        put(name, b"old")
        equal(c.get(bucket, name).expect(200).body, b"old", "the old one")
        put(name, b"the new one")
        reply = now_gives(c, bucket, name, b"the new one").expect(200)
        equal(reply.headers["ETag"], tag(b"the new one"), "its entity tag")
        put(name, b"newer")
        now_gives(c, bucket, name, b"newe", {"Range": "bytes=0-3"}).expect(206)
        put(name, b"newest")
        # The range has the whole fetched in the background: who comes meanwhile waits for that
        # fetch.
        wait_for(
            lambda b=bucket, n=name: c.object("HEAD", b, n).expect(200).headers["Content-Length"] ==
            "6", "HEAD tells of the newest")
        wait_for(lambda b=bucket, n=name: c.get(b, n).expect(200).body == b"newest", "the newest")
        c.get(bucket, name, {"If-None-Match": tag(b"newest")}).expect(304)
        c.get(bucket, name, {"If-Match": tag(b"newer")}).expect(412)


def test_what_is_not_asked_about_stays(c):
    for bucket in ("never", "hourly"):
        name = "stays/" + bucket
        put(name, b"old")
        c.get(bucket, name).expect(200)
        put(name, b"new")
        equal(c.get(bucket, name).expect(200).body, b"old", f"in {bucket}")
        equal(methods("base/" + name), ["GET"], "requests")


def test_what_is_gone_goes(c):
    put("gone", b"gone")
    c.get("always", "gone").expect(200)
    WEB.remove("", "base/gone")
    c.get("always", "gone").expect(404, "object_not_found")
    check("gone" not in c.names("always"), "it is still here")
    put("gone", b"back")
    equal(c.get("always", "gone").expect(200).body, b"back", "it came back")


def test_servers_without_tags_or_conditions(c):
    put("time", b"time")
    WEB.is_so("base/time", no_tag=True)
    c.get("always", "time").expect(200)
    equal(c.get("always", "time").expect(200).body, b"time", "object")
    equal(methods("base/time"), ["GET", "HEAD"], "by its time")
    put("time", b"later")
    WEB.is_so("base/time", no_tag=True, modified=MODIFIED + 5)
    equal(c.get("always", "time").expect(200).body, b"later", "changed, by its time")
    put("deaf", b"deaf")
    WEB.is_so("base/deaf", no_conditions=True)
    c.get("always", "deaf").expect(200)
    equal(c.get("always", "deaf").expect(200).body, b"deaf", "object")
    equal(methods("base/deaf"), ["GET", "HEAD"], "a condition that is passed over")
    WEB.calm()


def test_one_question_for_all(c):
    put("wanted", BIG)
    c.get("hourly", "wanted").expect(200)
    in_parallel(lambda _: check(c.get("hourly", "wanted").expect(200).body == BIG, "bytes"),
                range(64), 16)
    equal(methods("base/wanted"), ["GET"], "within the interval")
    in_parallel(lambda _: check(c.get("always", "wanted").expect(200).body == BIG, "bytes"),
                range(64), 16)
    equal(methods("base/wanted").count("GET"), 2, "one fetch for the other bucket")
    put("wanted", BIG[::-1])
    in_parallel(lambda _: check(c.get("always", "wanted").expect(200).body == BIG[::-1], "bytes"),
                range(64), 16)
    equal(methods("base/wanted").count("GET"), 3, "one fetch of what has changed")


def test_encodings_are_kept(c):
    packed = gzip.compress(BIG)
    put("packed", packed)
    WEB.is_so("base/packed", encoding="gzip")
    for bucket in ("never", "always"):
        for _ in range(2):
            reply = c.get(bucket, "packed").expect(200)
            check(reply.body == packed, "bytes as they are stored there")
            equal(reply.headers["Content-Encoding"], "gzip", "Content-Encoding")
        equal(
            c.object("HEAD", bucket, "packed").expect(200).headers["Content-Encoding"], "gzip",
            "of HEAD")
    put("part", gzip.compress(os.urandom(300_000)))
    WEB.is_so("base/part", encoding="gzip")
    equal(
        c.get("never", "part", {"Range": "bytes=0-9"}).expect(206).headers["Content-Encoding"],
        "gzip", "of a range")
    WEB.calm()


def test_a_backend_that_does_not_answer(c):
    port = DARK.server.server_address[1]
    with DARK:
        c.create("dark", backend=DARK.url + "/base", validate="open")
        c.create("strict", backend=DARK.url + "/base", validate="open", stale=False)
        put("x", b"x", DARK)
        for bucket in ("dark", "strict"):
            c.get(bucket, "x").expect(200)
        DARK.fail("base/x", status=403)
        c.get("dark", "x").expect(403, "backend_denied")
    with socket.socket() as nobody:  # the port stays taken, and nobody listens
        nobody.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        nobody.bind(("127.0.0.1", port))
        for _ in range(3):
            reply = c.get("dark", "x").expect(200)
            equal((reply.body, reply.headers["Dfc-Stale"]), (b"x", "true"), "a stale object")
        c.get("strict", "x").expect(502, "backend_error")
        check(
            metric(c, 'dfc_cold_ask_total{outcome="unanswered"}') >= 2,
            "unanswered questions count")


if __name__ == "__main__":
    with WEB:
        main(targets=1, args=[f"--target-arg={a}" for a in (
            "--backend-backoff=5ms", "--backend-retries=2", "--cold-range-fetch=64KiB")])
