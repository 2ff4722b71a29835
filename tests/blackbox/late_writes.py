#!/usr/bin/env python3
"""Writes that come too late: begun when a target owned a name, ended when it owns the name again,
and another one has owned and written it meanwhile.  What they rest on holds no longer, so they are
refused."""

import http.client
import os

from lib import check, equal, main, wait_for
from rebalance import wait_settled

BODY = b"x" * (4 << 20)


def maintenance(c, node, what):
    done = c.dfcctl("node", "maintenance", what, node)
    equal(done.returncode, 0, f"maintenance {what}: {done.stdout} {done.stderr}")


def state(c):
    return c.get_json("/v1/cluster?what=state")


def test_prepare(c):
    """`name` belongs to `first`, and to `second` while that is in maintenance."""
    c.create("b")
    c.name, c.first = "n", c.owner("b", "n")
    c.setting("rebalance_delay", "100ms")
    c.setting("rebalance_keep", "2s")
    c.setting("rebalance", "off")
    c.away = lambda: maintenance(c, c.first, "start")
    c.back = lambda: maintenance(c, c.first, "stop")
    c.away()
    c.second = c.owner("b", "n")
    check(c.second != c.first, f"{c.second} owns it all the time")
    c.back()
    settle(c)


def away_and_known(c):
    c.away()
    wait_for(lambda: c.get_json("/v1/daemon", c.second)["version"] >= state(c)["version"],
             f"{c.second} knows that it is the owner")


def settle(c):
    """All is moved, and no earlier owners are remembered."""
    c.setting("rebalance", "on")
    wait_settled(c)
    c.setting("rebalance", "off")


def move(c, known, version, body):
    """(URL, signed headers) of what an earlier owner, who knows the state `known`, sends
    `second`."""
    bucket = next(b["id"] for b in known["bmd"]["buckets"] if b["name"] == "b")
    url = c.get_json("/v1/daemon", c.second)["data_url"] + f"/v1/objects/b/{c.name}" \
        f"?dfcb={bucket}&dfcv={known['term']}.{known['version']}"
    return url, c.member.sign("PUT", url, body, {
        "Dfc-Copy": "move", "Dfc-Version": version, "Dfc-Modified": "1700000000000"})


def test_a_move_that_comes_late(c):
    """The network has kept it until all who might know of it have forgotten."""
    old = c.put("b", c.name, b"old").json()["version"]
    c.away()
    known = state(c)
    c.back()
    settle(c)
    c.put("b", c.name, b"new")
    away_and_known(c)
    url, headers = move(c, known, old, b"old")
    late = c.http.request("PUT", url, b"old", headers, follow=False)
    equal(c.get("b", c.name).expect(200).body, b"new", "the object")
    late.expect(409, "stale_map")
    now = state(c)
    url, headers = move(c, now, old, b"old")  # who knows the owners is heard
    c.http.request("PUT", url, b"old", headers, follow=False).expect(200)
    c.back()
    settle(c)
    equal(c.get("b", c.name).expect(200).body, b"new", "the object")


class Slow:
    """A PUT at `second` that is under way, until finish()."""

    def __init__(self, c, url, headers):
        self.url = url
        self.connection = http.client.HTTPConnection(url.split("/")[2], timeout=60)
        self.connection.putrequest("PUT", "/" + url.split("/", 3)[3])
        for name, value in {**headers, "Content-Length": len(BODY)}.items():
            self.connection.putheader(name, value)
        self.connection.endheaders()
        self.connection.send(BODY[:len(BODY) // 2])
        wait_for(lambda: unfinished(c), f"{c.second} has begun")

    def finish(self):
        self.connection.send(BODY[len(BODY) // 2:])
        response = self.connection.getresponse()
        answer = response.status, response.read().decode()
        self.connection.close()
        return answer


def unfinished(c):
    top = c.node_dir(c.second)
    return [f for mp in os.listdir(top) if mp.startswith("mp")
            for f in os.listdir(os.path.join(top, mp, ".dfc", "tmp"))]


def while_under_way(c, begin, meanwhile):
    """What the write gets that `second` begins, and ends when `first` has been the owner
    meanwhile."""
    away_and_known(c)
    slow = begin()
    c.back()
    meanwhile()
    away_and_known(c)
    status, text = slow.finish()
    c.back()
    return status, text


def test_a_move_that_takes_long(c):
    old = c.put("b", c.name, BODY).json()["version"]
    status, text = while_under_way(c, lambda: Slow(c, *move(c, state(c), old, BODY)),
                                   lambda: c.put("b", c.name, b"new"))
    equal((status, "stale_map" in text), (409, True), f"the move: {text}")
    equal(c.get("b", c.name).expect(200).body, b"new", "the object")
    settle(c)
    equal(c.get("b", c.name).expect(200).body, b"new", "the object")


def test_a_condition_that_held_once(c):
    """Two make the same object, and only one of them may."""
    c.object("DELETE", "b", c.name).expect(204)
    settle(c)
    only_new = {"If-None-Match": "*"}
    status, text = while_under_way(
        c, lambda: Slow(c, c.url(c.second) + f"/v1/objects/b/{c.name}", only_new),
        lambda: c.put("b", c.name, b"new", only_new))
    check(status in (409, 412), f"both have made it: {status} {text}")
    settle(c)
    equal(c.get("b", c.name).expect(200).body, b"new", "the object")


if __name__ == "__main__":
    main(targets=2)
