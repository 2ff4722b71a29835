#!/usr/bin/env python3
"""Each limit of a node that is reached is told at once: 503 overloaded, with Retry-After; and the
metric of refusals grows.  Afterwards all is as before."""

import contextlib
import socket

from lib import WAIT_SECONDS, check, equal, in_parallel, main, raw_exchange, wait_for

CONNECTIONS = 24
CREATE = {"action": "create"}


def overloaded(reply, text=None):
    reply.expect(503, "overloaded", text)
    check(int(reply.headers["Retry-After"]) > 0, f"{reply!r} says when to come back")


def refusals(c, node):
    lines = c.call("GET", "/metrics", node=node).expect(200).body.decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines
               if line.startswith("dfc_http_overload_total"))


@contextlib.contextmanager
def frozen(c, node):
    c.run("kill", node, "-s", "STOP")
    try:
        yield
    finally:
        c.run("kill", node, "-s", "CONT")


def test_connections(c):
    c.http.close()
    request = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    for node in ("t1", "p1"):
        before = refusals(c, node)
        c.http.close()
        with contextlib.ExitStack() as stack:
            for _ in range(CONNECTIONS):
                stack.enter_context(socket.create_connection(c.address(node), WAIT_SECONDS))
            # Those are taken one by one; whoever comes behind them is refused.
            reply = wait_for(lambda n=node: full(raw_exchange(c.address(n), request)), "it is full")
            overloaded(reply, "connections")
        wait_for(lambda n=node: served(raw_exchange(c.address(n), request)), "there is room")
        check(refusals(c, node) > before, "the metric")


def served(reply):
    return reply is not None and reply.status == 200


def full(reply):
    return reply if reply is not None and reply.status == 503 else None


def test_streams_through_a_proxy(c):
    c.create("b", durability="async")
    c.put("b", "large", bytes(32 << 20))
    ask = b"GET /v1/objects/b/large?redirect=never HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(WAIT_SECONDS)
        s.connect(c.address("p1"))
        s.sendall(ask)
        check(s.recv(15) == b"HTTP/1.1 200 OK", "it is under way")
        overloaded(c.get("b", "large", {"Dfc-Redirect": "never"}, follow=False), "streamed")
        put = (b"PUT /v1/objects/b/none HTTP/1.1\r\nHost: localhost\r\n"
               b"Transfer-Encoding: chunked\r\n\r\n")
        overloaded(raw_exchange(c.address("p1"), put),
                   "streamed")  # before any of the body has come
        c.get("b", "large", follow=False).expect(307)  # which costs the proxy nothing
    wait_for(lambda: c.get("b", "large", {"Dfc-Redirect": "never"}, follow=False).status == 200,
             "there is room")


def test_lists(c):
    """Whichever of them comes first keeps the others out, while a target lets it wait."""
    with frozen(c, "t1"):
        overloaded(wait_for(lambda: refused_list(c), "a list is refused"), "lists")
    wait_for(lambda: c.call("GET", "/v1/objects/b").status == 200, "lists are made again")


def refused_list(c):
    replies = in_parallel(lambda _: c.call("GET", "/v1/objects/b"), range(4))
    return next((r for r in replies
                 if r.status == 503 and r.json()["code"] == "overloaded"), None)


def test_jobs_and_buckets(c):
    c.setting("jobs_max", 1)
    with frozen(c, "t1"):
        job = c.call("POST", "/v1/jobs", {"action": "start", "name": "cleanup"}).expect(202)
        overloaded(c.call("POST", "/v1/jobs", {"action": "start", "name": "cleanup"}), "jobs_max")
    job_id = job.json()["id"]
    wait_for(lambda: c.get_json(f"/v1/jobs/{job_id}")["state"] == "finished", "the job ends")
    c.call("POST", "/v1/jobs", {"action": "start", "name": "cleanup"}).expect(202)
    c.setting("buckets_max", 1)
    overloaded(c.call("POST", "/v1/buckets/more", CREATE), "buckets_max")
    equal([b["name"] for b in c.get_json("/v1/buckets")["buckets"]], ["b"], "buckets")
    c.setting("buckets_max", None)
    c.create("more")


if __name__ == "__main__":
    main(targets=1, args=(f"--target-arg=--connections-max={CONNECTIONS}",
                          f"--proxy-arg=--connections-max={CONNECTIONS}",
                          "--proxy-arg=--relays-max=1", "--proxy-arg=--lists-max=1",
                          "--proxy-arg=--keepalive-timeout=1h", "--proxy-arg=--call-timeout=5s"))
