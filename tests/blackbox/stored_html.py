#!/usr/bin/env python3
"""A page that somebody has stored does nothing in the browser of its reader: object replies say so
themselves."""

from cold_lib import QUICK, FakeS3
from lib import equal, main

S3 = FakeS3({})
PAGE = b"<script>fetch('/v1/buckets/b', {method: 'DELETE'})</script>" * 2000
HTML = {"Content-Type": "text/html"}
KINDS = {"b": {}, "checked": {"verify_on_read": True}, "two": {"copies": 2},
         "slices": {"ec": {"data": 2, "parity": 1, "min_size": 65536}}}


def guards(reply):
    return [
        reply.headers.get_all(name)
        for name in ("X-Content-Type-Options", "Content-Security-Policy")
    ]


def check_guarded(reply, status, what):
    reply.expect(status)
    equal(guards(reply), [["nosniff"], ["sandbox; default-src 'none'"]], what)


def check_object(c, bucket, what):
    for options in ({}, {"query": "redirect=never", "follow": False}):
        label = f"{what}, {options}"
        reply = c.get(bucket, "page", **options)
        check_guarded(reply, 200, label)
        equal((reply.body == PAGE, reply.headers["Content-Type"]), (True, "text/html"), label)
        check_guarded(c.object("HEAD", bucket, "page", **options), 200, label)
        check_guarded(c.get(bucket, "page", {"Range": "bytes=1-9"}, **options), 206, label)
        check_guarded(c.get(bucket, "page", {"If-None-Match": reply.headers["ETag"]}, **options),
                      304, label)
        check_guarded(c.get(bucket, "page", {"If-Match": '"no"'}, **options), 412, label)
        check_guarded(c.get(bucket, "<script>", **options), 404, label)


def test_in_every_kind_of_bucket(c):
    for bucket, props in KINDS.items():
        c.create(bucket, **props)
        c.put(bucket, "page", PAGE, HTML)
        check_object(c, bucket, bucket)


def test_from_a_backend(c):
    S3.put("data", "page", PAGE)
    S3.types["data", "page"] = "text/html"
    c.create("cold", backend=f"s3://data?endpoint={S3.url}&auth=none")
    check_object(c, "cold", "first as it comes, then from here")


def test_without(c):
    for node in c.targets():
        c.restart(node, "--arg=--object-sandbox=false")
    equal(guards(c.get("b", "page").expect(200)), [None, None], "without")


if __name__ == "__main__":
    with S3:
        main(targets=3, args=QUICK)
