#!/usr/bin/env python3
"""Three proxies that share etcd: the primary dies, freezes, hands over; members of etcd come and
go. Changes that were acknowledged are never lost, what was refused was not made, and objects are
served throughout.

DFC_ROUNDS (6) says how often the chaos test strikes; DFC_SEED repeats what it chooses."""

import http.client
import json
import os
import random
import shutil
import threading
import time

from lib import check, equal, main, skip, wait_for

ROUNDS = int(os.environ.get("DFC_ROUNDS", 6))
SEED = int(os.environ.get("DFC_SEED", 0)) or random.randrange(1, 1 << 31)
PROXIES = ("p1", "p2", "p3")
MEMBERS = ("e1", "e2", "e3")
REPEAT = ("not_primary", "in_doubt", "not_ready")  # 503: a client repeats
CREATE = {"action": "create"}


def primary(c, proxies=PROXIES):
    """The proxy that says of itself that it is the primary; None where none does."""
    for proxy in proxies:
        reply = c.call("GET", "/v1/daemon", node=proxy)
        if reply.status == 200 and reply.json()["primary"]:
            return proxy
    return None


def others(proxy):
    return [p for p in PROXIES if p != proxy]


def change(c, method, bucket, node):
    """One attempt: True (made, or it was so), or False where the client is told to repeat."""
    reply = c.call(method, f"/v1/buckets/{bucket}", CREATE if method == "POST" else None, node=node)
    if reply.status == 503:
        check(reply.json()["code"] in REPEAT, f"a refusal that says to repeat: {reply!r}")
        check(reply.headers["Retry-After"], f"{reply!r} has no Retry-After")
        return False
    done = (201, 409) if method == "POST" else (204, 404)
    check(reply.status in done, f"{method} of bucket {bucket} at {node}: {reply!r}")
    return True


def change_in_the_end(c, method, bucket, node):
    wait_for(lambda: change(c, method, bucket, node), f"{method} of bucket {bucket} at {node}")


def buckets(c, node):
    return {b["name"] for b in c.get_json("/v1/buckets", node)["buckets"]}


def all_know(c, wanted, proxies=PROXIES):
    for proxy in proxies:
        wait_for(lambda p=proxy: buckets(c, p) == wanted, f"{proxy} knows the buckets {wanted}")


def objects_are_served(c, proxies):
    for proxy in proxies:
        equal(c.get("kept", "o", node=proxy).expect(200).body, b"bytes", f"GET by {proxy}")
        c.put("kept", f"by-{proxy}", proxy.encode(), node=proxy)
        check("o" in [e["name"] for page in c.pages("kept", proxy) for e in page["entries"]],
              f"a list by {proxy}")


def start_again(c, *nodes):
    for node in nodes:
        c.start(node)


def test_one_is_primary_and_all_take_changes(c):
    c.create("kept")
    c.put("kept", "o", b"bytes")
    check(primary(c), "one proxy is primary")
    for proxy in PROXIES:
        c.call("POST", f"/v1/buckets/by-{proxy}", CREATE, node=proxy).expect(201)
        for reader in PROXIES:
            c.call("GET", f"/v1/buckets/by-{proxy}", node=reader).expect(200)
    for proxy in PROXIES:
        c.call("DELETE", f"/v1/buckets/by-{proxy}", node=proxy).expect(204)
    objects_are_served(c, PROXIES)


def test_a_primary_that_is_killed_is_replaced(c):
    first = primary(c)
    term = c.get_json("/v1/cluster")["term"]
    c.kill(first)
    began = time.monotonic()
    objects_are_served(c, others(first))
    change_in_the_end(c, "POST", "after-kill", others(first)[0])
    print(
        f"        a change was taken {time.monotonic() - began:.2f} s after kill -9 (lease_ttl 2s)")
    second = primary(c, others(first))
    check(second, "another one is primary")
    check(c.get_json("/v1/cluster", second)["term"] > term, "its term is greater")
    start_again(c, first)
    all_know(c, {"kept", "after-kill"})
    equal(primary(c), second, "who came back is a follower")


def test_a_primary_that_stops_hands_over(c):
    first = primary(c)
    c.stop(first)
    change_in_the_end(c, "DELETE", "after-kill", others(first)[1])
    start_again(c, first)
    all_know(c, {"kept"})


def test_a_primary_that_was_frozen_changes_nothing(c):
    """It wakes up behind its lease, with requests in its sockets."""
    first = primary(c)
    c.run("kill", first, "-s", "STOP")
    replies = []
    threads = [threading.Thread(target=lambda i=i: replies.append(
        c.call("POST", f"/v1/buckets/frozen-{i}", CREATE, node=first))) for i in range(4)]
    for thread in threads:
        thread.start()
    change_in_the_end(c, "POST", "meanwhile", others(first)[0])
    second = primary(c, others(first))
    c.run("kill", first, "-s", "CONT")
    for thread in threads:
        thread.join()
    # What it says is what holds: passed on to the new primary and made there, or to be repeated.
    made = set()
    for reply in replies:
        name = reply.url.rsplit("/", 1)[1]
        if reply.status == 201:
            made.add(name)
        else:
            reply.expect(503)
            check(reply.json()["code"] in REPEAT, f"{reply!r} says to repeat")
    all_know(c, {"kept", "meanwhile"} | made)
    equal(primary(c), second, "the new one stays primary")
    check("election=" in c.log(first), "the log tells of elections")
    for name in made | {"meanwhile"}:
        change_in_the_end(c, "DELETE", name, first)
    for i in range(4):
        change_in_the_end(c, "DELETE", f"frozen-{i}", first)
    all_know(c, {"kept"})


def test_one_member_of_etcd_may_die(c):
    for member in MEMBERS:
        c.kill(member)
        for proxy in PROXIES:
            change_in_the_end(c, "POST", f"without-{member}-{proxy}", proxy)
        start_again(c, member)
        wait_for(lambda m=member: c.state(m) == "active", f"{member} is back")
        for proxy in PROXIES:
            change_in_the_end(c, "DELETE", f"without-{member}-{proxy}", proxy)
    all_know(c, {"kept"})


def test_without_a_majority_nothing_changes_and_objects_go_on(c):
    c.kill("e1")
    c.kill("e3")
    wait_for(lambda: primary(c) is None, "nobody is primary")
    for proxy in PROXIES:
        check(not change(c, "POST", "no-majority", proxy), f"{proxy} took a change")
    objects_are_served(c, PROXIES)
    equal(buckets(c, "p1"), {"kept"}, "buckets")
    start_again(c, "e1", "e3")
    change_in_the_end(c, "POST", "majority", "p1")
    change_in_the_end(c, "DELETE", "majority", "p2")
    all_know(c, {"kept"})


def test_all_may_be_killed_at_once(c):
    change_in_the_end(c, "POST", "durable", "p3")
    term = c.get_json("/v1/cluster")["term"]
    for node in PROXIES + MEMBERS:
        c.kill(node)
    for member in MEMBERS[:2]:  # two of three are enough
        start_again(c, member)
    start_again(c, *PROXIES)
    start_again(c, MEMBERS[2])
    all_know(c, {"kept", "durable"})
    change_in_the_end(c, "DELETE", "durable", "p1")
    check(c.get_json("/v1/cluster")["term"] > term, "the term is greater")
    objects_are_served(c, PROXIES)


# --- chaos ---------------------------------------------------------------------------------------

def once(c, method, bucket, node):
    """One attempt on a connection of its own: status and code.  Never repeated behind our back."""
    connection = http.client.HTTPConnection(*c.address(node), timeout=20)
    try:
        connection.request(method, f"/v1/buckets/{bucket}",
                           json.dumps(CREATE) if method == "POST" else None)
        reply = connection.getresponse()
        body = reply.read()
        return reply.status, json.loads(body).get("code") if reply.status >= 400 else None
    finally:
        connection.close()


class Churn(threading.Thread):
    """One client that makes and destroys its own bucket, at any proxy, and knows what must hold."""

    def __init__(self, c, number, over):
        super().__init__()
        self.c, self.over, self.rng = c, over, random.Random(SEED * 31 + number)
        self.number, self.generation = number, 0
        self.bucket = f"churn-{number}"
        self.exists = {False}  # what may be so
        self.changes = 0
        self.wrong = []

    def run(self):
        try:
            while not self.over.is_set():
                self.one()
        except Exception as e:  # reported by the test's own thread
            self.wrong.append(f"{self.bucket}: {e!r}")

    def one(self):
        makes = self.rng.random() < 0.5
        node = self.rng.choice(PROXIES)
        before = set(self.exists)
        self.exists = before | {makes}
        try:
            status, code = once(self.c, "POST" if makes else "DELETE", self.bucket, node)
        except (OSError, http.client.HTTPException):
            # The proxy died with the request, which another one may have got from it and still do:
            # of this bucket nothing can be said.
            self.generation += 1
            self.bucket, self.exists = f"churn-{self.number}-{self.generation}", {False}
            return
        what = f"{makes=} gives {status} {code} where {before} was possible"
        if status in (201, 204):
            check(before != {makes}, what)
            self.exists = {makes}
            self.changes += 1
        elif status in (404, 409):
            check(makes in before, what)
            self.exists = {makes}
        else:
            check(status == 503 and code in REPEAT, what)
            if code != "in_doubt":
                self.exists = before


def strike(c, rng):
    kind = rng.choice(("kill", "freeze", "stop", "member"))
    victim = rng.choice(MEMBERS) if kind == "member" else primary_in_the_end(c)
    if kind == "freeze":
        c.run("kill", victim, "-s", "STOP")
        time.sleep(rng.uniform(0.5, 4))  # around the lease's end
        c.run("kill", victim, "-s", "CONT")
    else:
        (c.stop if kind == "stop" else c.kill)(victim)
        time.sleep(rng.uniform(0, 3))
        start_again(c, victim)
    print(f"        {kind} {victim}", flush=True)


def primary_in_the_end(c):
    return wait_for(lambda: primary(c), "one proxy is primary")


def test_acknowledged_changes_are_never_lost(c):
    print(f"        DFC_SEED={SEED}", flush=True)
    rng = random.Random(SEED)
    over = threading.Event()
    clients = [Churn(c, i, over) for i in range(4)]
    for client in clients:
        client.start()
    try:
        for _ in range(ROUNDS):
            strike(c, rng)
            primary_in_the_end(c)
    finally:
        over.set()
        for client in clients:
            client.join()
    wrong = [w for client in clients for w in client.wrong]
    check(not wrong, "; ".join(wrong))
    check(all(client.changes > 0 for client in clients), "every client changed something")
    change_in_the_end(c, "POST", "last", "p1")
    for client in clients:
        for proxy in PROXIES:
            wait_for(lambda p=proxy, k=client: (k.bucket in buckets(c, p)) in k.exists,
                     f"{client.bucket} at {proxy} is one of {client.exists}")
    print(f"        {sum(k.changes for k in clients)} acknowledged changes")


if __name__ == "__main__":
    if shutil.which("etcd") is None:
        skip("there is no etcd (Debian: etcd-server)")
    main(proxies=3, targets=2, metastore="etcd")
