#!/usr/bin/env python3
"""A parameter that a call does not have is refused of a client, of every call, and nothing is done;
between nodes, and where its name begins with "dfc", it is passed over.  What calls take is what GET
/v1/api says."""

import re

from lib import check, equal, main

ANY = "*"


def calls(c, node, listener="public"):
    """(row of the route table, its path with every segment filled in)"""
    for route in c.get_json("/v1/api", node)["routes"]:
        if listener in route["listeners"]:
            yield route, re.sub(r"\{[a-z_]+(\.\.\.)?\}", "b", route["path"])


def names(route):
    return [p["name"] for p in route["query"]]


def clients_send(route):
    """Beside these the nodes add some to the URLs of redirects."""
    return [name for name in names(route) if not name.startswith("dfc")]


def documents(c):
    return c.get_json("/v1/cluster?what=bmd"), c.get_json("/v1/cluster?what=config")


def test_every_call_refuses_what_it_does_not_have(c):
    c.create("b")
    c.put("b", "b", b"contents")
    before = documents(c)
    for node in ("p1", "t1", "t2"):
        seen = 0
        for route, path in calls(c, node):
            if ANY in names(route):
                continue
            seen += 1
            reply = c.call(route["method"], path + "?no-such=1", b"", node, follow=False)
            equal(reply.status, 400,
                  f"{node}: {route['method']} {path}?no-such=1: {reply!r}: the status")
            if route["method"] == "HEAD":
                continue
            reply.expect(400, "invalid_argument")
            said = reply.json()["message"]
            if route["path"].startswith("/ais/"):  # an SDK looks for its bucket in the message
                said = re.sub(r"^ais://\S+: ", "", said)
            equal(said, f"{route['method']} {route['path']} has no parameter 'no-such'; it takes " +
                  (", ".join(clients_send(route)) or "none"), "message")
        check(seen >= 9, f"{node}: {seen} calls were tried")
    equal(documents(c), before, "buckets and settings after all that")
    equal(c.get("b", "b").expect(200).body, b"contents", "the object after all that")


def test_what_was_meant_is_said(c):
    for path, meant in (("/v1/objects/b?prefx=a", "prefix"), ("/v1/objects/b?limt=3", "limit"),
                        ("/v1/objects/b/b?ofset=3", "offset"), ("/v1/jobs?kinds=sort", "kind")):
        message = c.call("GET", path).expect(400, "invalid_argument").json()["message"]
        check(f"(did you mean '{meant}'?)" in message, f"{path}: {message}")
    message = c.call("GET", "/v1/objects/b?max-keys=2").expect(400,
                                                               "invalid_argument").json()["message"]
    check("limit" in message and "did you mean" not in message, message)


def test_what_calls_have_is_taken(c):
    """With any value: none of these calls changes anything."""
    for node in ("p1", "t1"):
        seen = 0
        for route, path in calls(c, node):
            for name in names(route) if route["method"] in ("GET", "HEAD") else ():
                reply = c.call(route["method"], f"{path}?{name}=x", node=node, follow=False)
                check(b"has no parameter" not in reply.body,
                      f"{node}: {path}?{name}: {reply.body!r}")
                seen += 1
        check(seen >= 5, f"{node}: {seen} parameters were tried")


def test_nothing_is_written_and_nothing_deleted(c):
    owner = c.owner("b", "b")
    for node in ("p1", owner):
        for method, body in (("PUT", b"other"), ("DELETE", None),
                             ("POST", b'{"action": "rename", "name": "z"}')):
            c.object(method, "b", "b", body, query="versionId=3",
                     node=node).expect(400, "invalid_argument")
            c.object(method, "b", "b", body, query="redirect=never&uploads",
                     node="p1").expect(400, "invalid_argument")
        equal(c.get("b", "b").expect(200).body, b"contents", "object")
    equal(c.names("b"), ["b"], "list")


def test_redirects_may_bring_more(c):
    """A proxy of a newer release may add to a URL what this target does not know."""
    reply = c.object("GET", "b", "b", query="offset=2&dfcnewer=1", follow=False).expect(307)
    where = reply.headers["Location"]
    check("offset=2" in where and "dfcb=" in where and "dfcv=" in where, where)
    equal(c.http.request("GET", where + "&dfcnewest=x").expect(206).body, b"ntents", "bytes")
    equal(
        c.object("HEAD", "b", "b", query="offset=2").expect(206).headers["Content-Length"], "6",
        "length")
    c.http.request("GET", where + "&versionId=x").expect(400, "invalid_argument")
    c.call("GET", "/v1/objects/b?prefix=b", node="t1", follow=False).expect(307)
    c.call("GET", "/v1/objects/b?prefx=b", node="t1").expect(400, "invalid_argument")


def test_between_nodes_it_is_passed_over(c):
    bucket = c.get_json("/v1/buckets/b")["id"]
    owner = c.owner("b", "b")
    info = c.get_json("/v1/daemon", owner)
    page = c.member.request(
        "GET", f"{info['data_url']}/v1/list/{bucket}?newer=1&limit=1").expect(200).json()
    equal([e["name"] for e in page["entries"]], ["b"], "the target's own list")
    summary = c.member.request(
        "GET", f"{info['control_url']}/v1/daemon?newer=1&what=summary").expect(200).json()
    check("buckets" in summary, summary)
    c.call("GET", "/v1/daemon?newer=1&what=summary", node=owner).expect(400, "invalid_argument")


if __name__ == "__main__":
    main(targets=2)
