#!/usr/bin/env python3
"""Keys that change while clients work: a user's key, and the cluster's.  A disabled user is refused by
every node within a second, also with a redirect that was given before."""

import os
import secrets
import signal
import time

from access_lib import GuardedCluster, Identity, Load, make_user
from lib import SANITIZED, check, equal, main, wait_for

GRANTS = [{"rights": ["list", "read", "write"], "bucket": "b"}, {"rights": ["see"]}]
ON_PROXIES = ("p1", "p2", "p3")


class Working(Load):
    """Clients that write and read objects by `identity` through all proxies.  A client whose token
    was withdrawn logs in once more, as libdfc does."""

    def __init__(self, identity):
        super().__init__()
        self.identity, self.withdrawn = identity, 0

    def call(self, *args):
        identity = self.identity
        reply = identity.call(*args)
        if reply.status == 401:
            identity.token = None
            self.withdrawn += 1
            reply = self.identity.call(*args)
        return reply

    def one(self, number):
        for node in ON_PROXIES:
            path = f"/v1/objects/b/o-{number}-{node}"
            self.ask(self.call, "PUT", path, b"x" * 1000, node)
            self.ask(self.call, "GET", path, None, node)


def refused(reply):
    return reply.status == 401


def all_refuse_within_a_second(calls):
    """`calls`: by name.  Each is repeated until it is refused; the slowest took so long.  A sanitizer
    slows each call down, beside other tests."""
    bound = 10 if SANITIZED else 1
    began = time.monotonic()
    waiting = dict(calls)
    while waiting:
        waiting = {name: call for name, call in waiting.items() if not refused(call())}
        check(time.monotonic() - began < bound, f"{sorted(waiting)} serve for longer than {bound} s")
    return time.monotonic() - began


def test_a_disabled_user_is_refused_within_a_second(c):
    c.create("b")
    for name, change in (("leaver", ("PUT", {"enabled": False})), ("fired", ("DELETE", None))):
        user = make_user(c, name, GRANTS)
        user.call("PUT", f"/v1/objects/b/{name}", b"y").expect(200)
        redirect = c.bare("GET", f"/v1/objects/b/{name}", headers=user.headers(), follow=False)
        proven = redirect.expect(307).headers["Location"]
        c.http.request("GET", proven).expect(200)
        calls = {node: lambda node=node, user=user: user.call("GET", "/v1/daemon", node=node)
                 for node in c.nodes}
        calls["the redirect"] = lambda proven=proven: c.http.request("GET", proven)
        method, body = change
        reply = c.call(method, f"/v1/users/{name}", body, node="p2")
        check(reply.status in (200, 204), f"{reply!r}")
        took = all_refuse_within_a_second(calls)
        print(f"# {name}: refused by {len(calls)} after {took * 1000:.0f} ms")
        user.login(node="p3").expect(401, "unauthorized")


def test_a_node_that_stood_still_refuses_once_it_goes_on(c):
    """It has the old documents until then, as a node has that is cut off."""
    for node in ("t1", "p3"):
        user = make_user(c, f"missed-by-{node}", GRANTS)
        os.kill(c.pid(node), signal.SIGSTOP)
        c.call("PUT", f"/v1/users/{user.user}", {"enabled": False}, node="p2").expect(200)
        calls = {n: lambda n=n, user=user: user.call("GET", "/v1/daemon", node=n) for n in c.nodes}
        late = {node: calls.pop(node)}
        all_refuse_within_a_second(calls)
        os.kill(c.pid(node), signal.SIGCONT)
        took = all_refuse_within_a_second(late)
        print(f"# {node}: refused {took * 1000:.0f} ms after it goes on")


def test_a_key_of_a_user_changes_under_load(c):
    old = make_user(c, "worker", GRANTS)
    with Working(old) as load:
        load.wait_more()
        key = c.call("POST", "/v1/users/worker/keys", node="p3").expect(201).json()
        new = Identity(c, key["access"], key["secret"], "worker")
        for node in ON_PROXIES:
            old.login(node).expect(200)
            new.login(node).expect(200)
        load.identity = new
        load.wait_more()
        load.withdrawn = 0
        c.call("DELETE", f"/v1/users/worker/keys/{old.access}").expect(204)
        load.wait_more()
        equal(load.withdrawn, 0, "tokens of the second key that ended with the first")
    for node in ON_PROXIES:
        c.bare("GET", "/v1/auth/whoami", node=node, headers=old.headers()).expect(401, "unauthorized")
    for node in ON_PROXIES:
        old.login(node).expect(401, "unauthorized")
    equal(len(c.call("GET", "/v1/users/worker").json()["keys"]), 1, "keys")


def write_key(c, *lines):
    with open(c.key_file, "w", encoding="ascii") as f:
        f.write("".join(line + "\n" for line in lines))


def reload_all(c):
    """One node after the other: meanwhile they have different files."""
    for node in sorted(c.nodes, reverse=True):
        before = c.log(node).count("cluster key changed")
        os.kill(c.pid(node), signal.SIGHUP)
        wait_for(lambda node=node, before=before:
                 c.log(node).count("cluster key changed") > before, f"{node} to take the key")


def sealed_by(c):
    users = c.administer("GET", "/v1/cluster/state").expect(200).json()["access"]["users"]
    return {k["secret"].split(":")[0] for u in users for k in u.get("keys", [])}


def take_key(c, *lines):
    """All nodes, and the operator, who signs with the first line."""
    write_key(c, *lines)
    reload_all(c)
    c.member.key = lines[0]
    c.member.sessions.clear()


def sealed_by_old(c):
    view = c.administer("GET", "/v1/cluster").expect(200).json()
    return view["sealed_by_old_key"]


def test_the_cluster_key_changes_under_load(c):
    user = make_user(c, "steady", GRANTS)
    old, new = c.key_text, secrets.token_hex(32)
    before = sealed_by(c)
    with Working(user) as load:
        load.wait_more()
        for lines in ((old, new), (new, old)):
            take_key(c, *lines)
            load.wait_more()
        wait_for(lambda: not before & sealed_by(c), "the secrets to be sealed anew")
        equal(sealed_by_old(c), 0, "secrets under the old key")
        equal(load.withdrawn, 0, "tokens that were refused")
        user.login().expect(200)
        take_key(c, new)
        load.wait_more()


def test_a_line_that_is_gone_too_early_is_told(c):
    """Nobody can open the secrets until it is back; then they are sealed anew at the start, too."""
    with open(c.key_file, encoding="ascii") as f:
        old = f.read().strip()
    new = secrets.token_hex(32)
    count = len([1 for u in c.administer("GET", "/v1/users").expect(200).json()["users"]
                 for _ in u.get("keys", [])])
    take_key(c, new)
    equal(sealed_by_old(c), count, "secrets that nobody can open")
    wait_for(lambda: "sealed under a key that this proxy does not have" in c.log("p1"),
             "a line in the log")
    c.root.login().expect(401, "unauthorized")
    write_key(c, new, old)
    c.stop("p1")
    c.start("p1")
    wait_for(lambda: sealed_by_old(c) == 0, "the secrets to be sealed anew")
    wait_for(lambda: c.root.login().status == 200, "root to log in again")


if __name__ == "__main__":
    # Within a second by what the primary sends: keepalives are too rare to bring a change.
    rare = ["--target-arg=--keepalive-interval=20s", "--proxy-arg=--keepalive-interval=20s",
            "--proxy-arg=--keepalive-timeout=1m"]
    main(GuardedCluster, proxies=3, targets=3, args=rare)
