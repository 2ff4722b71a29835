#!/usr/bin/env python3
"""JSON bodies whose values take many times their length: refused before they are parsed, while
other requests are answered."""

from lib import check, equal, in_parallel, main
from memory import peak_kib

MIB = 1 << 20
LIMIT_KIB = 220 * 1024  # the body itself, twice, and what the daemon has anyway


def bomb(head, piece, size, tail):
    return head + piece * ((size - len(head) - len(tail) - 2) // len(piece)) + b"{}" + tail


BOMBS = (
    ("/v1/buckets/zzz", bomb(b'{"action":"restore","value":[', b"{},", 4 * MIB, b"]}")),
    ("/v1/buckets/zzz", bomb(b'{"action":"delete","value":[', b"[],", 4 * MIB, b"]}")),
    ("/v1/jobs", bomb(b'{"action":"start","value":[', b"{},", MIB - 4096, b"]}")),
    ("/v1/sort", bomb(b'{"description":[', b'{"a":{}},', 4 * MIB - 4096, b"]}")),
    # Administration, signed.
    ("/v1/cluster/documents", bomb(b'{"action":"restore","value":[', b"{},", 63 * MIB, b"]}")),
)


def test_they_are_refused(c):
    for path, body in BOMBS:
        reply = c.call("POST", path, body, headers={"Content-Type": "application/json"})
        reply.expect(413, "too_large", "values")
    peak = peak_kib(c.pid("p1"))
    check(peak < LIMIT_KIB, f"the proxy's memory: {peak} KiB")


def test_others_are_answered_meanwhile(c):
    """More of them than there are HTTP threads."""
    path, body = BOMBS[-1]

    def send(i):
        if i < 3:
            return c.call("POST", path, body).status
        return c.call("GET", "/v1/buckets").status

    statuses = in_parallel(send, range(8))
    equal(set(statuses[3:]), {200}, "lists of buckets")
    check(set(statuses[:3]) <= {413, 503}, f"what the large ones got: {statuses[:3]}")


def test_long_lists_of_names_are_taken(c):
    c.create("b", durability="async")
    names = [f"shard-{i:06}.tar" for i in range(100_000)]
    reply = c.call("POST", "/v1/buckets/b", {"action": "delete", "value": {"list": names}})
    check(reply.status == 202, f"{reply!r}")


if __name__ == "__main__":
    main(targets=1)
