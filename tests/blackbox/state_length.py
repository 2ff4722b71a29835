#!/usr/bin/env python3
"""The cluster's documents stay short enough for every node that has to take them whole."""

from lib import check, main, wait_for

STATE_MAX = 64 << 10


def fill(c):
    """Makes buckets until one is refused; how many there are."""
    for i in range(1000):
        reply = c.call("POST", f"/v1/buckets/b{i}", {"action": "create"})
        if reply.status != 201:
            reply.expect(503, "overloaded", "state_max")
            return i
    raise AssertionError("1000 buckets were taken")


def is_taken(c, name):
    return c.call("POST", f"/v1/buckets/{name}", {"action": "create"}).status == 201


def test_growth_is_refused_before_nodes_are_lost(c):
    count = fill(c)
    check(count > 10, f"only {count} buckets were taken")
    c.call("PUT", "/v1/buckets/b0", {"action": "setprops", "value": {"checksum": "md5"}}) \
        .expect(503, "overloaded", "state_max")
    c.put("b0", "o", b"x")  # objects are not concerned
    # A node that restarts gets the documents.
    c.kill("t1", "-9")
    c.start("t1")
    wait_for(lambda: c.get("b0", "o").status == 200, "t1 has the documents again")
    for i in range(count // 2):
        c.call("DELETE", f"/v1/buckets/b{i + 1}").expect(204)
    wait_for(lambda: is_taken(c, "again"), "there is room again")


if __name__ == "__main__":
    main(targets=2, args=(f"--target-arg=--state-max={STATE_MAX}",
                          f"--proxy-arg=--state-max={STATE_MAX}"))
