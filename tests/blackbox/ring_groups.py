#!/usr/bin/env python3
"""Groups of readers: the next generation waits until each group has acknowledged the current one, also
when the keeper dies; a group that is silent for too long is forgotten."""

import ring_lib as ring
from lib import Http, check, equal, main, wait_for

CAP = 2


def call(c, method, query):
    return Http().request(method, f"{c.url()}/v1/rings/ring/groups?{query}")


def ack(c, group, done, lease="60s"):
    """The reply, once the keeper is there."""
    replies = []

    def is_done():
        replies.append(call(c, "PUT", f"group={group}&done={done}&lease={lease}"))
        return replies[-1].status == 200
    wait_for(is_done, f"the acknowledgement {done} of {group}")
    return replies[-1].json()


def push(c, number):
    """One generation's samples, or more."""
    for i in range(number * CAP):
        wait_for(lambda i=i: ring.push(c, "ring", ring.frames({"i": b"%d" % i})).status == 201, "a push")


def fill(c):
    reply = ring.status(c, "ring")
    return reply.json()["fill"] if reply.status == 200 else None


def now(c):
    return ring.head(c, "ring")["generation"]


def test_a_generation_waits_for_each_group(c):
    c.create("ring", ring=f"cap={CAP},keep=1", copies=2)
    equal(ack(c, "a", 0)["joined"], True, "a joins")
    equal(ack(c, "a", 0), {"generation": 0, "joined": False}, "a is there")
    ack(c, "b", 0)
    push(c, 4)
    ring.wait_generation(c, "ring", 1)
    wait_for(lambda: fill(c) == 3 * CAP, "the samples of three more generations")
    equal(now(c), 1, "no group has acknowledged")
    ack(c, "a", 1)
    equal(now(c), 1, "one of two has acknowledged")
    equal(ack(c, "b", 1)["joined"], False, "b is there")
    ring.wait_generation(c, "ring", 2)
    call(c, "PUT", "group=a&done=9").expect(400, "invalid_argument", text="'done'")
    equal(ack(c, "a", 1)["generation"], 2, "a late call changes nothing")
    equal(ring.head(c, "ring")["groups"], [{"group": g, "done": 1, "lease_ms": 60000} for g in "ab"], "groups")


def test_the_keeper_dies(c):
    """What was acknowledged stays; what was not is waited for."""
    ack(c, "a", 2)
    keeper = ring.status(c, "ring").expect(200).json()["keeper"]
    c.kill(keeper, "-9")
    c.wait_node(keeper, "unreachable")
    wait_for(lambda: fill(c) is not None, "the next keeper")
    equal(ack(c, "a", 2)["joined"], False, "a is there")
    equal(now(c), 2, "b has not acknowledged")
    c.start(keeper)
    c.wait_node(keeper, "active")
    ack(c, "b", 2)
    push(c, 2)
    ring.wait_generation(c, "ring", 3)


def test_a_generation_waits_for_a_first_reader(c):
    """With swap=consumed, also if there is no group."""
    c.create("read", ring=f"cap={CAP},swap=consumed", copies=2)

    def group(method, query):
        wait_for(lambda: Http().request(method, f"{c.url()}/v1/rings/read/groups?{query}").status == 200,
                 f"{method} of a group, {query}")
    for i in range(3 * CAP):
        ring.push(c, "read", ring.frames({"i": b"%d" % i})).expect(201)
    ring.wait_generation(c, "read", 1)
    wait_for(lambda: ring.status(c, "read").expect(200).json()["fill"] == 2 * CAP, "the samples of two more")
    said = c.dfcctl("ring", "status", "read").stdout
    check("generation 1, " in said and "waits for readers" in said, said)
    group("PUT", "group=a&done=1")
    ring.wait_generation(c, "read", 2)
    group("DELETE", "group=a")
    keeper = ring.status(c, "read").expect(200).json()["keeper"]
    c.kill(keeper, "-9")
    c.wait_node(keeper, "unreachable")
    c.start(keeper)
    c.wait_node(keeper, "active")
    wait_for(lambda: ring.status(c, "read").status == 200 and ring.status(c, "read").json()["fill"] == CAP,
             "the samples of one more")
    h = ring.head(c, "read")
    equal((h["generation"], h["consumed"], h.get("groups")), (2, 1, None), "nobody has read the second one")
    c.call("PUT", "/v1/buckets/read", {"action": "setprops", "value": {"ring": "swap=full"}}).expect(200)
    ring.wait_generation(c, "read", 3)
    c.destroy("read")


def test_a_silent_group_is_forgotten(c):
    for group in "ab":
        ack(c, group, now(c))
    equal(ack(c, "short", 0, "200ms")["joined"], True, "it joins")
    push(c, 2)
    for group in "ab":
        call(c, "DELETE", f"group={group}").expect(200)
    wait_for(lambda: (fill(c) or 0) < CAP, "generations that wait for nobody")
    check(ack(c, "short", 0)["joined"], "it was forgotten, and joins again")
    equal(c.dfcctl("ring", "leave", "ring", "short").returncode, 0, "it leaves")
    done = c.dfcctl("ring", "ack", "ring", "ctl", "0", "--timeout", "1m")
    check("has joined" in done.stdout, f"{done}")
    check("groups" in ring.head(c, "ring"), "it is there")


def test_a_lease_that_is_not_said(c):
    """It is ring_lease (30 s), or the longest one that there is."""
    c.setting("ring_lease_max", "20s")
    wait_for(lambda: call(c, "PUT", "group=said&lease=21s").status == 400, "the setting")
    wait_for(lambda: call(c, "PUT", "group=silent").status == 200, "a group without a lease")
    leases = {g["group"]: g["lease_ms"] for g in ring.head(c, "ring")["groups"]}
    equal(leases["silent"], 20000, "lease")
    call(c, "DELETE", "group=silent").expect(200)
    c.setting("ring_lease_max", None)


def test_what_is_wrong_is_refused(c):
    for query in ("done=0", "group=", "group=" + 64 * "x", "group=a&lease=1ms", "group=a&lease=9d", "group=a&done=x"):
        call(c, "PUT", query).expect(400, "invalid_argument")
    call(c, "PUT", "group=%ff&lease=60s").expect(400, "invalid_argument", text="UTF-8")
    ack(c, "%C3%A9", 0)
    for i in range(90):
        reply = call(c, "PUT", f"group=g{i}&lease=1h")
        if reply.status != 200 and reply.json()["code"] == "overloaded":  # others pass
            break
    reply.expect(503, "overloaded", text="groups")
    c.call("PUT", "/v1/rings/ring/generation")
    c.destroy("ring")


if __name__ == "__main__":
    main(targets=3, mountpaths=1)
