#!/usr/bin/env python3
"""Conditional requests: If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since."""

import email.utils
import time

from lib import equal, main, raw_exchange

OLD = email.utils.formatdate(time.time() - 86400, usegmt=True)
NEW = email.utils.formatdate(time.time() + 86400, usegmt=True)


def etag(c, name="x"):
    return c.object("HEAD", "b", name).expect(200).headers["ETag"]


def test_reading(c):
    c.create("b")
    c.put("b", "x", b"data")
    mine = etag(c)
    for header, value, status in (
            ("If-Match", mine, 200), ("If-Match", "*", 200), ("If-Match", f'"other", {mine}', 200),
            ("If-Match", '"other"', 412),
            ("If-None-Match", '"other"', 200), ("If-None-Match", mine, 304),
            ("If-None-Match", "*", 304), ("If-None-Match", f'"a", {mine}', 304),
            ("If-None-Match", "W/" + mine, 304),
            ("If-Modified-Since", OLD, 200), ("If-Modified-Since", NEW, 304),
            ("If-Unmodified-Since", NEW, 200), ("If-Unmodified-Since", OLD, 412),
            ("If-Modified-Since", "yesterday", 200)):
        for method in ("GET", "HEAD"):
            reply = c.object(method, "b", "x", headers={header: value})
            equal(reply.status, status, f"{method} with {header}: {value}")
            if status == 304:
                equal(reply.body, b"", "body of 304")
                equal(reply.headers["ETag"], mine, "ETag of 304")
    c.get("b", "x", {"If-Match": '"other"'}).expect(412, "precondition_failed")


def test_a_list_in_several_lines(c):
    owner, mine = c.owner("b", "x"), etag(c)
    for header, status in (("If-None-Match", 304), ("If-Match", 200)):
        reply = raw_exchange(
            c.address(owner),
            (f"GET /v1/objects/b/x HTTP/1.1\r\nHost: localhost\r\n{header}: \"a\"\r\n"
             f"{header}: {mine}\r\nConnection: close\r\n\r\n").encode())
        equal(reply.status, status, f"{header} in two lines")


def test_tags_go_before_dates(c):
    mine = etag(c)
    c.get("b", "x", {"If-None-Match": '"other"', "If-Modified-Since": NEW}).expect(200)
    c.get("b", "x", {"If-Match": mine, "If-Unmodified-Since": OLD}).expect(200)


def test_create_only(c):
    c.put("b", "new", b"1", {"If-None-Match": "*"})
    there = c.get("b", "new").headers["ETag"]
    c.object("PUT", "b", "new", b"2", {"If-None-Match": "*"}).expect(412, "precondition_failed",
                                                                     there)
    equal(c.get("b", "new").body, b"1", "the object that was there first")
    c.object("DELETE", "b", "new").expect(204)
    c.put("b", "new", b"3", {"If-None-Match": "*"})


def test_replace_only_what_was_read(c):
    c.put("b", "cas", b"1")
    first = etag(c, "cas")
    c.put("b", "cas", b"2", {"If-Match": first})
    c.object("PUT", "b", "cas", b"3", {"If-Match": first}).expect(412, "precondition_failed")
    equal(c.get("b", "cas").body, b"2", "contents after a lost race")
    c.object("PUT", "b", "nothing", b"3", {"If-Match": first}).expect(412, "precondition_failed")
    c.get("b", "nothing").expect(404, "object_not_found")


def test_ranges_hold_on_to_a_version(c):
    c.put("b", "r", b"0123456789")
    first = etag(c, "r")
    equal(c.get("b", "r", {"Range": "bytes=5-", "If-Match": first}).expect(206).body, b"56789", "")
    c.put("b", "r", b"abcdefghij")
    c.get("b", "r", {"Range": "bytes=5-", "If-Match": first}).expect(412, "precondition_failed")


if __name__ == "__main__":
    main(targets=2)
