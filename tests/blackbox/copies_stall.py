#!/usr/bin/env python3
"""An upload whose other owner stands still: it fails in time, leaves nothing, and goes through when
that one goes on.  The map never passes that owner over here."""

from copies import create, get, put
from lib import check, equal, main

BODY = bytes(range(256)) * 4 * 8192  # more than the sockets on the way hold


def test_an_upload_does_not_wait_for_ever(c):
    create(c, "b", 2)
    put(c, "b", "o", b"before")  # so that there is a session between the two
    acting = c.owner("b", "o")
    other = next(t for t in c.targets() if t != acting)
    c.kill(other, "-s", "STOP")
    try:
        reply = c.object("PUT", "b", "o", BODY)
    finally:
        c.kill(other, "-s", "CONT")
    check(reply.status in (502, 503, 504), f"PUT with an owner that stands still: {reply!r}")
    equal(get(c, "b", "o").expect(200).body, b"before", "what was there before")
    put(c, "b", "o", BODY)
    equal(get(c, "b", "o").expect(200).body, BODY, "what was put")


if __name__ == "__main__":
    main(targets=2, args=("--target-arg=--stall-timeout=2s", "--proxy-arg=--keepalive-timeout=1h"))
