#!/usr/bin/env python3
"""Rates of users: a node refuses who asks more often, or has moved more bytes, than the rate allows.
Health says that a cluster is open to everybody."""

import time

from access_lib import GuardedCluster, make_user
from lib import check, equal, main, wait_for

PATH = "/v1/objects/b/o"
SIZE = 600000


def limited(c, name, **rate):
    user = make_user(c, name, [{"rights": ["read", "write"], "bucket": "b"}, {"rights": ["see"]}])
    c.call("PUT", f"/v1/users/{name}", {"rate": rate}).expect(200)
    return user


def owner(c):
    return c.owner("b", "o")


def test_requests_beyond_the_rate_wait(c):
    c.create("b")
    c.put("b", "o", b"x" * SIZE)
    user, other = limited(c, "often", requests=3), limited(c, "seldom", requests=3)
    user.headers()
    wait_for(lambda: user.call("GET", "/v1/daemon").status == 429, "the rate to be known")
    reply = user.call("GET", "/v1/daemon")
    reply.expect(429, "rate_limited", "often")
    equal(reply.headers.get("Retry-After"), "1", "Retry-After")
    other.call("GET", "/v1/daemon").expect(200)
    began = time.monotonic()
    served = 0
    while time.monotonic() - began < 2:
        served += user.call("GET", "/v1/daemon").status == 200
    check(4 <= served <= 9, f"{served} calls in two seconds at 3 a second")


def test_a_role_limits_too(c):
    c.call("PUT", "/v1/roles/slow", {"grants": [], "rate": {"requests": 1}}).expect(200)
    user = make_user(c, "ann", [{"rights": ["see"]}])
    c.call("PUT", "/v1/users/ann", {"roles": ["slow"]}).expect(200)
    wait_for(lambda: user.call("GET", "/v1/daemon").status == 429, "the rate of the role")


def test_bytes_are_paid_before_the_next_call(c):
    user = limited(c, "heavy", bytes=SIZE // 3)
    node = owner(c)
    wait_for(lambda: user.call("GET", "/v1/daemon", node=node).status == 200, "the user to be known")
    wait_for(lambda: user.call("GET", PATH, node=node).status == 429, "the rate of bytes")
    reply = user.call("GET", PATH, node=node)
    check(reply.status == 429, f"{reply!r}")
    check(1 <= int(reply.headers["Retry-After"]) <= 6, f"{reply.headers}")
    body = user.call("PUT", PATH, b"y" * SIZE, node)
    body.expect(429, "rate_limited")
    wait_for(lambda: user.call("GET", PATH, node=node).status == 200, "the debt to be paid")


def test_a_cluster_that_asks_for_proof_is_not_open(c):
    view = c.call("GET", "/v1/cluster").expect(200).json()
    check("open_to_all" not in view and "certificate_left_s" not in view["nodes"][0], f"{view}")


if __name__ == "__main__":
    main(GuardedCluster, targets=2)
