#!/usr/bin/env python3
"""A ring on many mountpaths: what their segments still hold of older generations does not fill it."""

import time

import ring_lib as ring
from lib import WAIT_SECONDS, check, equal, main

PUSHES, BYTES = 320, 4096


def test_it_never_stays_full(c):
    c.create("ring", ring="cap=32,keep=0,bytes_max=1MiB")
    body = ring.frames({"x": b"x" * BYTES})
    for i in range(PUSHES):
        until = time.monotonic() + WAIT_SECONDS
        while (reply := ring.push(c, "ring", body, "maker", i)).status != 201:
            reply.expect(429, "ring_full")
            check(time.monotonic() < until, f"push {i} is refused for ever: {reply!r}")
            time.sleep(0.05)
    equal(ring.wait_generation(c, "ring", PUSHES // 32)["samples_total"], PUSHES, "samples")


if __name__ == "__main__":
    main(targets=1, mountpaths=16, args=("--target-arg=--ring-grace=100ms",))
