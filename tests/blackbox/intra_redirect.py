#!/usr/bin/env python3
"""Packets for one node are carried to another node of the cluster: no call is carried out there."""

import contextlib
import select
import socket
import threading
import urllib.parse

from lib import check, equal, in_parallel, main

NAMES = [f"o{i:02d}" for i in range(40)]
PIECE = 64 << 10


def pass_on(one, other):
    """Bytes both ways until either side ends."""
    pair = {one: other, other: one}
    with one, other, contextlib.suppress(OSError):
        while True:
            for side in select.select(list(pair), [], [])[0]:
                data = side.recv(PIECE)
                if not data:
                    return
                pair[side].sendall(data)


def accept(listener, to):
    with contextlib.suppress(OSError):  # closed: the test is over
        while True:
            one, _ = listener.accept()
            threading.Thread(target=pass_on, args=(one, socket.create_connection(to)),
                             daemon=True).start()


@contextlib.contextmanager
def carried(urls, to):
    """Listens where a dead node did, and passes its packets on to another node."""
    with contextlib.ExitStack() as stack:
        for net in ("control_url", "data_url"):
            here, there = (urllib.parse.urlsplit(node[net]) for node in (urls, to))
            listener = stack.enter_context(socket.create_server((here.hostname, here.port)))
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
            threading.Thread(target=accept, args=(listener, (there.hostname, there.port)),
                             daemon=True).start()
        yield


@contextlib.contextmanager
def t1_led_to_t2(c):
    nodes = {n["id"]: n for n in c.get_json("/v1/cluster")["nodes"]}
    c.kill("t1")
    try:
        with carried(nodes["t1"], nodes["t2"]):
            yield
            state = next(n["state"] for n in c.get_json("/v1/cluster")["nodes"] if n["id"] == "t1")
            equal(state, "active", "t1 in the map")
    finally:
        c.start("t1")
        c.wait_node("t1", "active")


def owned_by(c, bucket, target):
    public = c.url(target)
    return [n for n in NAMES
            if c.get(bucket, n, follow=False).headers["Location"].startswith(public)]


def test_a_list_does_not_take_another_node_s_names(c):
    c.create("b")
    in_parallel(lambda name: c.put("b", name, name.encode()), NAMES)
    with t1_led_to_t2(c):
        reply = c.call("GET", "/v1/objects/b")
        reply.expect(503, "node_unreachable", "node 't2' answers at this address")
    equal(c.names("b"), NAMES, "the names")


def test_no_copy_is_counted_twice(c):
    c.create("twice", copies=2)
    in_parallel(lambda name: c.put("twice", name, b"old"), NAMES)
    led = owned_by(c, "twice", "t2")
    check(led, "t2 leads no name")
    with t1_led_to_t2(c):
        reply = c.object("PUT", "twice", led[0], b"new")
        reply.expect(503, "node_unreachable", "node 't2' answers at this address")


def test_administration_reaches_the_node_that_is_named(c):
    with t1_led_to_t2(c):
        done = c.dfcctl("config", "set", "--node", "t1", "log_level", "debug")
        check(done.returncode != 0, f"it was done at another node: {done}")
        check("node 't2' answers" in done.stderr, f"{done}")
    params = {p["name"]: p["value"] for p in c.get_json("/v1/daemon?what=params", "t2")["params"]}
    equal(params["log_level"], "info", "t2's level")


if __name__ == "__main__":
    main(targets=2, args=("--proxy-arg=--keepalive-timeout=1h",
                          "--target-arg=--keepalive-interval=200ms"))
