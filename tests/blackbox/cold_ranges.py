#!/usr/bin/env python3
"""Large objects that are fetched from their backend in ranges, several at once: nothing is read
twice, nothing wrong
or partial is served as whole or kept, and what ranges cannot give comes in one piece."""

import random
import threading

from cold_lib import QUICK, FakeS3, get_or_none, is_broken
from lib import check, equal, main, wait_for

S3 = FakeS3()
RANGE, AT_ONCE, FITS = 1 << 20, 4, 2  # FITS: objects, in the memory for ranges
LARGE = random.Random(9).randbytes(7 * RANGE + 12345)
FIRSTS = list(range(RANGE, len(LARGE), RANGE))


def put(name, data=LARGE):
    S3.put("data", name, data)


def headers_of(name):
    return [{n.lower(): v for n, v in headers.items()} for headers in S3.headers_of(name)]


def firsts(name):
    """Where the ranges begin that were asked for; None for the whole."""
    found = [h.get("range") for h in headers_of(name)]
    return [int(r[len("bytes="):].split("-")[0]) if r else None for r in found]


class Reader:
    """A GET of an object whose first answer stops after some bytes, until go() is called."""

    def __init__(self, c, name):
        self.c, self.name, self.reply = c, name, None
        self.event = threading.Event()
        put(name)
        S3.fail(name, method="GET", hold=self.event, held_bytes=1000)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        self.reply = get_or_none(self.c, "cold", self.name)

    def go(self):
        self.event.set()
        self.thread.join()
        return self.reply


def test_the_bucket(c):
    put("seed")
    c.create("cold", backend=f"s3://data?endpoint={S3.url}&auth=none", range_fetch="never")


def test_every_byte_once(c):
    put("once")
    for _ in range(2):
        check(c.get("cold", "once").expect(200).body == LARGE, "bytes")
    equal(firsts("once").count(None), 1, "requests for the whole")
    equal(sorted(f for f in firsts("once") if f is not None), FIRSTS, "ranges")
    for headers in headers_of("once"):
        if headers.get("range"):
            equal(headers["if-match"], S3.etag("data", "once"), "the version is pinned")


def test_small_objects_come_whole(c):
    put("small", LARGE[:2 * RANGE])
    check(c.get("cold", "small").expect(200).body == LARGE[:2 * RANGE], "bytes")
    equal(firsts("small"), [None], "requests")


def test_so_many_at_once(c):
    """While the first range stands still, those beside it are asked for, and no more; those who
    read get what has come."""
    reader = Reader(c, "width")
    wait_for(lambda: S3.count("width") == AT_ONCE, "the others are asked for")
    equal(sorted(f for f in firsts("width") if f is not None), FIRSTS[:AT_ONCE - 1], "ranges")
    check(reader.go().expect(200).body == LARGE, "bytes")


def test_memory_has_a_limit(c):
    readers = []
    for i in range(FITS):
        readers.append(Reader(c, f"memory/{i}"))
        wait_for(lambda i=i: S3.count(f"memory/{i}") == AT_ONCE, "it has its ranges")
    readers.append(Reader(c, "memory/last"))
    for reader in reversed(readers):
        check(reader.go().expect(200).body == LARGE, f"bytes of {reader.name}")
    equal(firsts("memory/last"), [None], "requests of the one that nothing was left for")
    put("memory/after")
    check(c.get("cold", "memory/after").expect(200).body == LARGE, "bytes")
    equal(len(firsts("memory/after")), 1 + len(FIRSTS), "the memory has been given back")


def test_one_range_fails_and_is_asked_for_alone(c):
    """Before its head, within its bytes, at its end; and a backend that is overloaded for a
    while."""
    faults = ({"status": 503}, {"raw_cut": 100}, {"cut_at": 300_000}, {"short": 1}, {"status": 429})
    for i, fault in enumerate(faults):
        name = f"again/{i}"
        put(name)
        S3.fail(name, first=FIRSTS[2], **fault)
        check(c.get("cold", name).expect(200).body == LARGE, f"bytes after {fault}")
        again = [f for f in firsts(name) if f is not None and FIRSTS[2] <= f < FIRSTS[3]]
        check(len(again) >= 2, f"{fault}: it was asked for again: {again}")
        others = [f for f in firsts(name) if f not in again]
        equal(sorted(others, key=lambda f: f or 0), [None] + FIRSTS[:2] + FIRSTS[3:],
              f"{fault}: the others")


def test_the_first_range_breaks_off(c):
    put("cut")
    S3.fail("cut", cut_at=300_000)
    check(c.get("cold", "cut").expect(200).body == LARGE, "bytes")


def test_a_range_that_fails_for_good(c):
    """The rest is asked for in one piece; where that fails, too, nothing looks complete."""
    put("rest")
    S3.fail("rest", first=FIRSTS[2], status=400)
    check(c.get("cold", "rest").expect(200).body == LARGE, "bytes")
    put("gone")
    S3.fail("gone", first=FIRSTS[2], status=400, times=9)
    is_broken(c, "cold", "gone")
    check("gone" not in c.names("cold", cached="true"), "nothing is kept")
    S3.calm()
    check(c.get("cold", "gone").expect(200).body == LARGE, "bytes, later")


def test_wrong_bytes_are_not_kept(c):
    put("flipped")
    S3.fail("flipped", first=FIRSTS[3], flip=True)
    is_broken(c, "cold", "flipped")
    check("flipped" not in c.names("cold", cached="true"), "nothing is kept")
    check(c.get("cold", "flipped").expect(200).body == LARGE, "bytes, later")


def test_two_versions_are_never_mixed(c):
    other = LARGE[::-1]
    put("changed/early")  # while the first answer, which has the old one, is still to be had
    S3.fail("changed/early", first=FIRSTS[0], change=other)
    check(c.get("cold", "changed/early").expect(200).body == LARGE, "the old one, whole")
    put("changed/late")
    S3.fail("changed/late", first=FIRSTS[-1], change=other)
    is_broken(c, "cold", "changed/late")
    check(c.get("cold", "changed/late").expect(200).body == other, "the new one, whole")


def test_a_backend_without_ranges(c):
    put("norange")
    S3.is_so("norange", no_ranges=True)
    check(c.get("cold", "norange").expect(200).body == LARGE, "bytes")
    equal(firsts("norange").count(None), 1, "requests for the whole")


def test_nothing_is_left_behind(c):
    wait_for(S3.is_idle, "no request is under way")
    put("end")
    check(c.get("cold", "end").expect(200).body == LARGE, "bytes")
    equal(len(firsts("end")), 1 + len(FIRSTS), "requests")


if __name__ == "__main__":
    with S3:
        main(
            targets=1, args=[
                *QUICK, f"--target-arg=--cold-ranges={AT_ONCE}",
                "--target-arg=--cold-ranges-from=2MiB", "--target-arg=--cold-range-size=1MiB",
                f"--target-arg=--cold-range-memory={FITS * AT_ONCE}MiB"
            ])
