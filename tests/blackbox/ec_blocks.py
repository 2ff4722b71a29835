#!/usr/bin/env python3
"""An object of which more than m slices are damaged, in different blocks, so that each stripe has k
good ones: it
is read, whole and in ranges, and its slices are made anew (ec/choice.h, target/slices/repair.h),
also when a scrub has
moved all that are damaged aside (target/store/aside.c)."""

import os
import random

from ec import DATA, PARITY, SLICES, check_object, repair, restart
from ec_repair import one_object, slice_files, slice_name
from lib import check, contents, equal, main, wait_for

SECONDS = 120
BLOCK = 65536 + 8  # with its check
STRIPES = 12
SIZE = 65536 * DATA * STRIPES - 5000
HURT = PARITY + 1


def slices_by_index(c, bucket):
    """index: path"""
    return {slice_name(p)[1]: p for _, p in slice_files(c, bucket)}


def damage(paths):
    """Each stripe has one damaged block, and each of these slices some; what was there."""
    before = [contents(p) for p in paths]
    for stripe in range(STRIPES):
        which = stripe % len(paths)
        at = stripe * BLOCK + random.randrange(10000)
        with open(paths[which], "r+b") as f:
            f.seek(at)
            f.write(bytes([before[which][at] ^ 1]))
    for path, was in zip(paths, before):
        check(contents(path) != was, f"{path} is not damaged")
    return before


def damaged_object(c, bucket):
    """Its body, and what its slices were.  Slices of data are among those that are damaged."""
    body = one_object(c, bucket, SIZE)
    slices = slices_by_index(c, bucket)
    equal(len(slices), SLICES, "slices")
    good = {index: contents(path) for index, path in slices.items()}
    damage([slices[i] for i in range(HURT)])
    return body, good


def wait_good(c, bucket, good):
    """Byte for byte what they were, and each once."""
    def is_good():
        files = slice_files(c, bucket)
        return (len(files) == SLICES and
                {slice_name(p)[1]: contents(p) for _, p in files} == good)

    wait_for(is_good, "all slices as they were", SECONDS)


def check_verified(c, bucket, body):
    check_object(c, bucket, "a", body)
    os.unlink(random.choice(slice_files(c, bucket))[1])
    check_object(c, bucket, "a", body)


def test_it_is_read_whole_and_mended(c):
    body, good = damaged_object(c, "whole")
    reply = c.get("whole", "a").expect(200)
    check(reply.body == body, "other bytes")
    wait_good(c, "whole", good)
    check_verified(c, "whole", body)


def test_it_is_read_in_ranges_and_mended(c):
    body, good = damaged_object(c, "ranges")
    for stripe in random.sample(range(STRIPES), STRIPES):
        first = stripe * 65536 * DATA + random.randrange(100)
        last = min(first + random.choice((65536, 65536 * DATA, 300000)), len(body) - 1)
        part = c.get("ranges", "a", {"Range": f"bytes={first}-{last}"}).expect(206)
        check(part.body == body[first:last + 1], f"other bytes at {first} to {last}")
    check_object(c, "ranges", "a", body, ranges=0)
    wait_good(c, "ranges", good)


def test_one_stripe_too_many_is_not_read_and_others_are(c):
    body, _ = damaged_object(c, "few")
    slices = slices_by_index(c, "few")
    for index in range(HURT):
        with open(slices[index], "r+b") as f:
            f.seek(5 * BLOCK + 20000)
            byte = f.read(1)[0]
            f.seek(-1, os.SEEK_CUR)
            f.write(bytes([byte ^ 1]))
    stripe = 65536 * DATA
    c.get("few", "a", {"Range": f"bytes={5 * stripe}-{5 * stripe + 9}"}).expect(500)
    for at in (0, 4, 6, 11):
        part = c.get("few", "a",
                     {"Range": f"bytes={at * stripe}-{at * stripe + 70000}"}).expect(206)
        check(part.body == body[at * stripe:at * stripe + 70001], f"other bytes of stripe {at}")
    c.object("DELETE", "few", "a").expect(204)


def scrub(c):
    done = c.dfcctl("storage", "scrub", "--wait")
    check(done.returncode in (0, 1), f"the scrub: {done.stderr}")


def test_a_scrub_has_them_mended(c):
    body, good = damaged_object(c, "scrubbed")
    scrub(c)
    wait_good(c, "scrubbed", good)
    check_verified(c, "scrubbed", body)


def test_what_is_left_of_those_that_were_moved_aside_is_read(c):
    """While nobody can store a slice; then they are mended."""
    body, good = damaged_object(c, "aside")
    restart(c, "--faults=ec.slice=EIO")
    scrub(c)
    equal(len(slice_files(c, "aside")), SLICES - HURT, "slices that are not in quarantine")
    check_object(c, "aside", "a", body)
    equal(len(slice_files(c, "aside")), SLICES - HURT, "slices that are not in quarantine")
    restart(c)
    repair(c)
    wait_good(c, "aside", good)
    check_verified(c, "aside", body)


def test_what_is_left_of_a_cut_one_is_read(c):
    """It has the first stripes, and the others are damaged there."""
    body = one_object(c, "cut", SIZE)
    slices = slices_by_index(c, "cut")
    good = {index: contents(path) for index, path in slices.items()}
    os.truncate(slices[0], STRIPES // 2 * BLOCK)
    for index in range(1, HURT):
        with open(slices[index], "r+b") as f:
            f.write(bytes(BLOCK * (STRIPES // 2)))
    check_object(c, "cut", "a", body, ranges=0)
    wait_good(c, "cut", good)


if __name__ == "__main__":
    main(targets=SLICES + 1)
