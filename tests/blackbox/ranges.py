#!/usr/bin/env python3
"""Reading parts of objects."""

import random

from lib import check, equal, main

SIZE = 300000
DATA = random.Random(1).randbytes(SIZE)


def part(reply, first, last):
    """Checks a 206 of bytes first..last, both included."""
    reply.expect(206)
    check(reply.body == DATA[first:last + 1], f"bytes {first}-{last} are others")
    equal(reply.headers["Content-Range"], f"bytes {first}-{last}/{SIZE}", "Content-Range")
    equal(reply.headers["Content-Length"], str(last + 1 - first), "Content-Length")


def test_ranges(c):
    c.create("b")
    c.put("b", "x", DATA)
    for text, first, last in (
            ("0-0", 0, 0), ("0-99", 0, 99), ("1-", 1, SIZE - 1), ("0-", 0, SIZE - 1),
            ("-1", SIZE - 1, SIZE - 1), ("-1000", SIZE - 1000, SIZE - 1),
            (f"{SIZE - 1}-", SIZE - 1, SIZE - 1), (f"100-{SIZE + 99}", 100, SIZE - 1),
            (f"-{SIZE + 5}", 0, SIZE - 1), ("65530-131080", 65530, 131080),
            ("5-18446744073709551615", 5, SIZE - 1)):
        part(c.get("b", "x", {"Range": f"bytes={text}"}), first, last)


def test_a_range_of_what_the_client_has(c):
    head = c.object("HEAD", "b", "x").expect(200).headers
    part(c.get("b", "x", {"Range": "bytes=5-9", "If-Range": head["ETag"]}), 5, 9)
    # A date cannot tell two versions of one second apart.
    for other in ('"1.1.1"', "W/" + head["ETag"], head["Last-Modified"]):
        equal(
            c.get("b", "x", {"Range": "bytes=5-9", "If-Range": other}).expect(200).body, DATA,
            other)


def test_ranges_that_cannot_be_satisfied(c):
    for text in (f"{SIZE}-", f"{SIZE + 1}-{SIZE + 2}", "-0"):
        reply = c.get("b", "x", {"Range": f"bytes={text}"})
        reply.expect(416, "range_not_satisfiable")
        equal(reply.headers["Content-Range"], f"bytes */{SIZE}", "Content-Range")


def test_what_is_no_single_range_gets_the_whole(c):
    for text in ("bytes=abc", "bytes=", "bytes=5-2", "items=0-5", "bytes=0-1,5-6", "bytes 0-5",
                 "bytes=--5", "bytes=1-2-3"):
        reply = c.get("b", "x", {"Range": text}).expect(200)
        check(reply.body == DATA, f"Range: {text}: not the whole object")


def test_offset_and_length(c):
    for query, first, last in (("offset=0&length=10", 0, 9), ("offset=100", 100, SIZE - 1),
                               ("offset=7&length=999999999", 7, SIZE - 1), ("length=5", 0, 4),
                               (f"offset={SIZE - 1}&length=1", SIZE - 1, SIZE - 1)):
        part(c.get("b", "x", query=query), first, last)
    c.get("b", "x", query=f"offset={SIZE}&length=1").expect(416, "range_not_satisfiable")
    for query in ("offset=-1", "offset=abc", "length=1x", "offset=99999999999999999999",
                  "offset=1&length=-5"):
        c.get("b", "x", query=query).expect(400, "invalid_argument")


def test_empty_objects_have_no_ranges(c):
    c.put("b", "empty", b"")
    c.get("b", "empty", {"Range": "bytes=0-0"}).expect(416, "range_not_satisfiable")
    equal(c.get("b", "empty").expect(200).body, b"", "an empty object")


def test_random_ranges(c):
    rng = random.Random(2)
    for _ in range(100):
        first = rng.randrange(SIZE)
        last = rng.randrange(first, SIZE)
        part(c.get("b", "x", {"Range": f"bytes={first}-{last}"}), first, last)


def test_a_range_means_nothing_to_head(c):
    for text in ("bytes=0-9", f"bytes={SIZE}-"):
        reply = c.object("HEAD", "b", "x", headers={"Range": text})
        equal(reply.status, 200, "status")
        equal(reply.headers["Content-Length"], str(SIZE), "Content-Length")
        equal(reply.body, b"", "body")


def test_through_the_proxy(c):
    for text, first, last in (("10-19", 10, 19), ("-7", SIZE - 7, SIZE - 1)):
        reply = c.get("b", "x", {"Range": f"bytes={text}", "Dfc-Redirect": "never"}, follow=False)
        part(reply, first, last)
    part(c.get("b", "x", query="offset=3&length=4&redirect=never", follow=False), 3, 6)


if __name__ == "__main__":
    main(targets=2)
