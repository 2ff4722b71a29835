#!/usr/bin/env python3
"""Rates of users: a node refuses who asks more often, or owes bytes; a stream that is faster than the
rate is slowed down, and whole.  Health says that a cluster is open to everybody."""

import os
import threading
import time

from access_lib import GuardedCluster, make_user
from lib import TLS, check, equal, in_parallel, main, wait_for

PATH = "/v1/objects/b/o"
SIZE = 600000


def limited(c, name, **rate):
    user = make_user(c, name, [{"rights": ["read", "write"], "bucket": "b"}, {"rights": ["see"]}])
    c.call("PUT", f"/v1/users/{name}", {"rate": rate}).expect(200)
    version = c.get_json("/v1/cluster")["version"]
    for node in c.targets():
        wait_for(lambda at=node: c.get_json("/v1/daemon", at)["version"] >= version,
                 "the rate to be known")
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
    """As long as a stream uses up the rate, other calls are refused."""
    user = limited(c, "heavy", bytes=SIZE // 3)
    node = owner(c)
    wait_for(lambda: user.call("GET", "/v1/daemon", node=node).status == 200, "the user to be known")
    over = threading.Event()

    def read():
        while not over.is_set():
            user.call("GET", PATH, node=node)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        reply = wait_for(
            lambda: (lambda r: r.status == 429 and r)(user.call("GET", "/v1/daemon", node=node)),
            "the rate of bytes")
        reply.expect(429, "rate_limited", "heavy")
        equal(reply.headers["Retry-After"], "1", "Retry-After")
        wait_for(lambda: user.call("PUT", PATH, b"y", node, {"If-None-Match": "*"}).status == 429,
                 "a PUT is refused, too")
    finally:
        over.set()
        reader.join()
    c.put("b", "o", b"x" * SIZE)
    wait_for(lambda: user.call("GET", PATH, node=node).status == 200, "the debt to be paid")


def seconds(user, *call):
    """How long a call takes that is let in."""
    def let_in():
        began = time.monotonic()
        reply = user.call(*call)
        if reply.status == 429:
            return None
        reply.expect(200)
        return time.monotonic() - began, reply

    return wait_for(let_in, "a call that is let in")


def test_a_stream_beyond_the_rate_is_slowed_down(c):
    """One second's share goes at once, and what follows at the rate; the last piece, which the next
    call owes, is no larger than what a node reads at once."""
    user = limited(c, "steady", bytes=SIZE)
    node = owner(c)
    least = (2.5 * SIZE - SIZE - (256 << 10)) / SIZE
    body = os.urandom(5 * SIZE // 2)
    took, _ = seconds(user, "PUT", PATH, body, node)
    check(took >= least, f"PUT of {len(body)} bytes at {SIZE} a second: {took:.3f} s")
    took, reply = seconds(user, "GET", PATH, None, node)
    check(took >= least, f"GET of {len(body)} bytes at {SIZE} a second: {took:.3f} s")
    check(reply.body == body, "other bytes")


def test_streams_of_one_user_share_its_rate(c):
    user = limited(c, "shared", bytes=SIZE)
    body = os.urandom(SIZE)
    c.put("b", "o", body)
    node = owner(c)
    began = time.monotonic()
    replies = in_parallel(lambda _: seconds(user, "GET", PATH, None, node)[1], range(3))
    took, least = time.monotonic() - began, (3 * SIZE - SIZE - 3 * (256 << 10)) / SIZE
    check(took >= least, f"3 GET of {SIZE} bytes at {SIZE} a second: {took:.3f} s")
    check(all(reply.body == body for reply in replies), "other bytes")


def test_a_cluster_that_asks_for_proof_is_not_open(c):
    view = c.call("GET", "/v1/cluster").expect(200).json()
    check("open_to_all" not in view, f"{view}")
    equal("certificate_left_s" in view["nodes"][0], TLS, "is there a certificate")


if __name__ == "__main__":
    main(GuardedCluster, targets=2)
