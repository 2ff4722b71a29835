#!/usr/bin/env python3
"""Python's HTTP clients in a cluster with access control.  requests drops its token where it is
redirected to another port, urllib keeps it: both are let in."""

import os
import random
import urllib.request

import requests

import frame  # noqa: F401 (first: the next one is found by it)
from access_lib import GuardedCluster, make_user
from lib import check, equal, main

DATA = random.Random(13).randbytes(1_000_001)
GRANTS = [{"rights": ["list", "read", "write", "delete"], "bucket": "b"}]


class Locked(GuardedCluster):
    def __init__(self, **shape):
        super().__init__(**shape)
        self.create("b")
        self.user = make_user(self, "python", GRANTS)

    def session(self, token=True):
        session = requests.Session()
        session.trust_env = False
        session.verify = self.ca_file() if self.http.context else True
        if token:
            session.headers.update(self.user.headers())
        return session

    def object_url(self, name, query=""):
        return f"{self.endpoint}/v1/objects/b/{name}{query}"


def redirected(reply, status):
    """The last request had no token, and its URL the proof."""
    equal([r.status_code for r in (*reply.history, reply)], [307, status], "statuses")
    check("Authorization" in reply.history[0].request.headers, "the proxy gets the token")
    check("Authorization" not in reply.request.headers, "the target does not get the token")
    check("dfca=" in reply.url, "the URL has no proof")
    return reply


def test_requests_put_and_get(c):
    with c.session() as session:
        redirected(session.put(c.object_url("o"), data=DATA, timeout=60), 200)
        check(redirected(session.get(c.object_url("o"), timeout=60), 200).content == DATA,
              "requests got other bytes than it sent")
        redirected(session.head(c.object_url("o"), allow_redirects=True, timeout=60), 200)


def test_requests_ranges(c):
    with c.session() as session:
        reply = session.get(c.object_url("o"), headers={"Range": "bytes=7-11"}, timeout=60)
        equal(redirected(reply, 206).content, DATA[7:12], "a range")
        reply = session.get(c.object_url("o", "?offset=7&length=5"), timeout=60)
        equal(redirected(reply, 206).content, DATA[7:12], "a piece")


def test_requests_streams(c):
    """Neither is redirected."""
    with c.session() as session:
        reply = session.put(c.object_url("stream"), data=iter([DATA, DATA]), timeout=60)
        equal((reply.status_code, reply.history), (200, []), "PUT of unknown length")
        reply = session.get(c.object_url("stream", "?redirect=never"), timeout=60)
        equal((reply.status_code, reply.history), (200, []), "GET by the proxy")
        check(reply.content == DATA * 2, "the object")


def test_requests_rename_and_delete(c):
    with c.session() as session:
        body = {"action": "rename", "name": "renamed"}
        redirected(session.post(c.object_url("stream"), json=body, timeout=60), 204)
        redirected(session.delete(c.object_url("renamed"), timeout=60), 204)


def test_requests_without_a_right(c):
    with c.session(token=False) as session:
        reply = session.get(c.object_url("o"), timeout=60)
        equal((reply.status_code, reply.history), (401, []), "without a token")
        equal(reply.headers["WWW-Authenticate"], 'Bearer realm="dfc", error="missing"', "challenge")
    with c.session() as session:
        reply = session.get(f"{c.endpoint}/v1/objects/other/o", timeout=60)
        equal((reply.status_code, reply.json()["code"]), (403, "access_denied"), "another bucket")


def test_urllib_keeps_its_token(c):
    """So the target gets two proofs."""
    handlers = [urllib.request.ProxyHandler({})]
    if c.http.context:
        handlers.append(urllib.request.HTTPSHandler(context=c.http.context))
    request = urllib.request.Request(c.object_url("o"), headers=c.user.headers())
    with urllib.request.build_opener(*handlers).open(request, timeout=60) as reply:
        check("dfca=" in reply.url, "urllib was redirected")
        check(reply.read() == DATA, "urllib got other bytes")


if __name__ == "__main__":
    os.environ["no_proxy"] = "127.0.0.1"
    main(Locked, targets=3)
