#!/usr/bin/env python3
"""A ring on many mountpaths: what their segments still hold of older generations does not fill it.  And
pushes that are large: they may have as much memory as ring_memory says."""

import time
from concurrent.futures import ThreadPoolExecutor

import ring_lib as ring
from lib import WAIT_SECONDS, Http, check, equal, main

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


def test_pushes_that_wait_have_memory_of_their_own(c):
    """They are 300 MiB: bodies of other calls may have 256 together, pushes ring_memory (512)."""
    c.create("large", ring="cap=1000,keep=0,bytes_max=62MiB")
    body = ring.frames({"data": bytes(60 << 20)})
    url = c.url("t1") + "/v1/rings/large/samples?wait="
    Http().request("POST", url + "1s", body).expect(201)
    with ThreadPoolExecutor(5) as pool:
        calls = [pool.submit(Http().request, "POST", url + "12s", body) for _ in range(5)]
        for call in calls:
            call.result().expect(429, "ring_full")
    c.destroy("large")


if __name__ == "__main__":
    main(targets=1, mountpaths=16, args=("--target-arg=--ring-grace=100ms",))
