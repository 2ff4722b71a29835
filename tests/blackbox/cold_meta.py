#!/usr/bin/env python3
"""User metadata of objects in buckets with a backend: it goes there with the object, and comes back
with it.

What is not kept here is asked for again: so each object is let go before it is read."""

import gzip
import os
import random

from cold_lib import QUICK, FakeS3, metric
from lib import ENDED, check, equal, main, wait_for

ACCESS, SECRET = "AKIDCOLDMETA", "theSecretThatNobodyMaySee/+0123"
S3 = FakeS3({ACCESS: SECRET}, token="ofASession")
LARGE = random.Random(7).randbytes((10 << 20) + 123)
META = {"Dfc-Meta-Colour": "dark blue", "dfc-meta-a.b-c": "x=1; y=\"2\"", "Dfc-Meta-ZZ": "~"}
THERE = {"colour": "dark blue", "a.b-c": "x=1; y=\"2\"", "zz": "~"}


def meta_of(reply):
    prefix = "dfc-meta-"
    return {n.lower()[len(prefix):]: v for n, v in reply.headers.items()
            if n.lower().startswith(prefix) and not n.lower().startswith(prefix + "backend-")}


def evict(c, bucket):
    """All that is here."""
    job_id = c.call("POST", f"/v1/buckets/{bucket}",
                    {"action": "evict", "value": {"prefix": ""}}).expect(202).json()["id"]
    wait_for(lambda: c.get_json(f"/v1/jobs/{job_id}")["state"] in ENDED, f"end of {job_id}")
    equal(c.names(bucket, cached="true"), [], "what is here")


def check_cold(c, bucket, name, data, meta=None, content_type="text/x-mine"):
    """As it comes from the backend: the head alone, a range, the whole; and then from here."""
    meta = THERE if meta is None else meta
    for method, headers in (("HEAD", {}), ("GET", {"Range": "bytes=0-1"}), ("GET", {}), ("GET", {}),
                            ("HEAD", {})):
        reply = c.object(method, bucket, name, headers=headers)
        check(reply.status in (200, 206), f"{method} {headers}: {reply!r}")
        equal(meta_of(reply), meta, f"metadata of {method} {headers}")
        equal(reply.headers["Content-Type"], content_type, f"content type of {method} {headers}")
    check(c.get(bucket, name).expect(200).body == data, "bytes")


def test_buckets(c):
    S3.put("data", "seed", b"seed")
    for policy in ("through", "back"):
        c.create(policy, backend=f"s3://data/{policy}?endpoint={S3.url}", write_policy=policy,
                 range_fetch="never")


def test_so_many_pairs_and_no_more(c):
    for policy in ("through", "back"):
        pairs = {f"k{i}": "v" for i in range(64)}
        most = {f"Dfc-Meta-{name}": value for name, value in pairs.items()}
        c.object("PUT", policy, "most", b"m", most).expect(200)
        equal(meta_of(c.get(policy, "most").expect(200)), pairs, "64 pairs")
        c.object("PUT", policy, "more", b"m",
                 {**most, "Dfc-Meta-K64": "v"}).expect(400, "invalid_argument", "65 headers")
    wait_for(lambda: metric(c, "dfc_back_waiting") == 0, "everything is uploaded")
    for policy in ("through", "back"):
        evict(c, policy)
        equal(meta_of(c.get(policy, "most").expect(200)), pairs, "64 pairs from the backend")


def test_what_is_written_comes_back(c):
    for policy in ("through", "back"):
        for name, data in (("small", b"small"), ("large", LARGE)):
            c.object("PUT", policy, name, data, {"Content-Type": "text/x-mine", **META}).expect(200)
            equal(meta_of(c.get(policy, name).expect(200)), THERE,
                  "metadata of what was written here")
        wait_for(lambda: metric(c, "dfc_back_waiting") == 0, "everything is uploaded")
        for name, data in (("small", b"small"), ("large", LARGE)):
            equal(S3.meta("data", f"{policy}/{name}"), THERE, "what the backend has")
            evict(c, policy)
            check_cold(c, policy, name, data)


def test_what_others_wrote(c):
    S3.put("data", "through/foreign", b"foreign",
           {"Mine": "x  y", "Backend-ETag": "no", "source": "s"})
    check_cold(c, "through", "foreign", b"foreign", {"mine": "x  y", "source": "s"},
               "application/x-test")
    S3.put("data", "through/plain", b"plain")
    check_cold(c, "through", "plain", b"plain", {}, "application/x-test")


def test_a_write_replaces_it(c):
    for headers, there in (({"Dfc-Meta-One": "1"}, {"one": "1"}), ({}, {}), ({"Dfc-Meta-Two": "2"},
                                                                             {"two": "2"})):
        c.object("PUT", "through", "again", b"again", headers).expect(200)
        equal(S3.meta("data", "through/again"), there, "what the backend has")
        equal(meta_of(c.get("through", "again").expect(200)), there, "what is here")


def test_more_than_is_kept(c):
    """The object comes all the same."""
    S3.put("data", "through/much", b"much", {"a": "x" * 1000, "b": "y" * 1000})
    check_cold(c, "through", "much", b"much", {}, "application/x-test")
    check("user metadata not kept" in c.log("t1"), "it is logged")


def test_what_is_refused(c):
    for headers, status, text in (({"Dfc-Meta-A": ""}, 400, "not empty"), ({
            "Dfc-Meta-A": "x  y"
    }, 400, "single spaces"), ({"Dfc-Meta-A": "\u00e4"}, 400, "printable ASCII"), ({
            "Dfc-Meta-Backend-ETag": "x"
    }, 400, "own"), ({"Dfc-Meta-a_b": "x"}, 400,
                     "a_b"), ({"Dfc-Meta-A": "x" * 800, "Dfc-Meta-B": "x" * 800}, 400, "1536")):
        for policy in ("through", "back"):
            c.object("PUT", policy, "refused", b"x", headers).expect(status, "invalid_argument",
                                                                     text)
    for policy in ("through", "back"):
        equal(S3.count(f"{policy}/refused"), 0, "requests")


def test_content_encoding(c):
    """Kept, here and there, in parts, too; bytes, length and checksum are of what was sent. So in a
    bucket of our own."""
    packed, large = gzip.compress(b"packed" * 1000), LARGE
    c.create("plain")
    for bucket in ("through", "back", "plain"):
        for name, data in (("packed", packed), ("packed-large", large)):
            c.object("PUT", bucket, name, data, {"Content-Encoding": "gzip", **META}).expect(200)
        wait_for(lambda: metric(c, "dfc_back_waiting") == 0, "everything is uploaded")
        if bucket != "plain":
            for name in ("packed", "packed-large"):
                equal(S3.encoding_of("data", f"{bucket}/{name}"), "gzip", "what the backend has")
                equal(S3.meta("data", f"{bucket}/{name}"), THERE, "metadata there")
            evict(c, bucket)
        for name, data in (("packed", packed), ("packed-large", large)):
            for method, headers in (("HEAD", {}), ("GET", {"Range": "bytes=0-1"}), ("GET", {}),
                                    ("GET", {})):
                reply = c.object(method, bucket, name, headers=headers)
                equal(reply.headers["Content-Encoding"], "gzip",
                      f"{method} {headers} of {bucket}/{name}")
            check(reply.body == data, "bytes")
            equal(reply.headers["Content-Length"], str(len(data)), "length")
    c.call("POST", "/v1/objects/through/packed-large",
           {"action": "rename", "name": "packed-new"}).expect(204)
    equal(S3.encoding_of("data", "through/packed-new"), "gzip", "after a rename in parts")
    equal(
        c.get("through", "packed-new").expect(200).headers["Content-Encoding"], "gzip",
        "after a rename in parts")
    c.object("PUT", "through", "packed", b"plain", {"Content-Encoding": "identity"}).expect(200)
    equal(c.get("through", "packed").expect(200).headers.get("Content-Encoding"), None, "none")
    for headers in ({"Content-Encoding": "x" * 64},
                    {"Content-Encoding": "gzip", "Dfc-Meta-Backend-Encoding": "br"}):
        for bucket in ("through", "back", "plain"):
            c.object("PUT", bucket, "refused", b"x", headers).expect(400, "invalid_argument",
                                                                     "Content-Encoding")


KEPT = {"Cache-Control": "max-age=60", "Content-Disposition": 'attachment; filename="a"',
        "Content-Language": "de", "Expires": "Mon, 01 Jan 2035 00:00:00 GMT"}


def test_headers_that_are_kept(c):
    """The backend has them, and gives them again, also those that somebody else has stored."""
    for bucket in ("through", "back"):
        for name, data in (("kept", b"kept"), ("kept-large", LARGE)):
            c.object("PUT", bucket, name, data, {**KEPT, **META}).expect(200)
        wait_for(lambda: metric(c, "dfc_back_waiting") == 0, "everything is uploaded")
        S3.put("data", f"{bucket}/theirs", b"kept", KEPT)
        equal(S3.meta("data", f"{bucket}/kept-large"), {**THERE, **KEPT}, "what the backend has")
        evict(c, bucket)
        for name in ("kept", "kept-large", "theirs"):
            for method in ("HEAD", "GET", "GET"):
                reply = c.object(method, bucket, name).expect(200)
                equal({n: reply.headers.get(n) for n in KEPT}, KEPT, f"{method} of {bucket}/{name}")
                check(not [n for n in reply.headers if "entity-" in n.lower()], "shown twice")
    c.call("POST", "/v1/objects/through/kept-large",
           {"action": "rename", "name": "kept-new"}).expect(204)
    equal(S3.meta("data", "through/kept-new"), {**THERE, **KEPT}, "after a rename in parts")


def test_another_cluster(c):
    c.create("own")
    c.object("PUT", "own", "x", b"own", {"Content-Type": "text/x-mine", **META}).expect(200)
    c.create("seen", backend=f"dfc://own?endpoint={c.url('p1')}", range_fetch="never")
    check_cold(c, "seen", "x", b"own")
    c.create("twice", backend=f"dfc://through?endpoint={c.url('p1')}", range_fetch="never")
    check_cold(c, "twice", "small", b"small")


if __name__ == "__main__":
    os.environ.update({
        "AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_SESSION_TOKEN": "ofASession"
    })
    with S3:
        main(
            targets=1, args=[
                *QUICK, "--target-arg=--backend-part-size=5MiB",
                "--target-arg=--backend-copy-size=5MiB"
            ])
