#!/usr/bin/env python3
"""Clients that cannot follow redirects: the proxy streams both ways."""

import random
import urllib.error
import urllib.request

from lib import check, equal, in_parallel, main, raw_exchange

NEVER = {"Dfc-Redirect": "never"}


def test_redirects_by_default(c):
    c.create("b")
    reply = c.object("PUT", "b", "x", b"data", follow=False).expect(307)
    location = reply.headers["Location"]
    check("dfcb=" in location and "dfcv=" in location, f"the redirect {location} carries no state")
    check(any(location.startswith(c.url(t)) for t in c.targets()), f"{location} is no target")


def test_put_get_head_delete(c):
    for size in (0, 1, 65536, (9 << 20) + 1):
        data = random.Random(size).randbytes(size)
        put = c.object("PUT", "b", "s", data, {**NEVER, "Dfc-Meta-K": "v"}, follow=False)
        put.expect(200)
        got = c.get("b", "s", NEVER, follow=False).expect(200)
        check(got.body == data, f"{size} bytes came back changed")
        equal(got.headers["Dfc-Meta-K"], "v", "metadata")
        equal(got.headers["ETag"], c.object("HEAD", "b", "s", headers=NEVER, follow=False)
              .expect(200).headers["ETag"], "ETag")
        equal(got.headers["Content-Length"], str(size), "Content-Length")
    c.object("DELETE", "b", "s", headers=NEVER, follow=False).expect(204)
    c.get("b", "s", NEVER, follow=False).expect(404, "object_not_found")


def test_by_parameter(c):
    c.object("PUT", "b", "q", b"query", query="redirect=never", follow=False).expect(200)
    equal(c.object("GET", "b", "q", query="redirect=never", follow=False).expect(200).body,
          b"query", "contents")


def test_python_s_urllib(c):
    """As docs/reference/http.md says: it follows a GET, and no PUT."""
    url = f"{c.url()}/v1/objects/b/urllib"
    try:
        urllib.request.urlopen(urllib.request.Request(url, b"lost", method="PUT"), timeout=30)
        check(False, "a PUT was redirected, and followed")
    except urllib.error.HTTPError as refused:
        with refused:
            equal(refused.code, 307, "a PUT without the parameter")
    c.get("b", "urllib").expect(404, "object_not_found")
    with urllib.request.urlopen(
            urllib.request.Request(url + "?redirect=never", b"kept", method="PUT"),
            timeout=30) as reply:
        equal(reply.status, 200, "a PUT with the parameter")
    with urllib.request.urlopen(url, timeout=30) as reply:
        equal(reply.read(), b"kept", "a GET that is redirected")


def test_names_pass_unchanged(c):
    for name in ("..", "a//b", "a/", "été 猫", "a?b#c%2F", "100%"):
        c.object("PUT", "b", name, name.encode(), NEVER, follow=False).expect(200)
        equal(c.get("b", name).expect(200).body, name.encode(), f"{name!r} by redirect")
        equal(c.get("b", name, NEVER, follow=False).expect(200).body, name.encode(),
              f"{name!r} streamed")


def test_errors_pass_unchanged(c):
    c.object("PUT", "b", "bad", b"x", {**NEVER, "Dfc-Checksum-Type": "md5",
                                       "Dfc-Checksum-Value": "0" * 32}, follow=False
             ).expect(422, "checksum_mismatch")
    c.get("b", "q", {**NEVER, "If-Match": '"no"'}, follow=False).expect(412, "precondition_failed")
    etag = c.object("HEAD", "b", "q").headers["ETag"]
    c.get("b", "q", {**NEVER, "If-None-Match": etag}, follow=False).expect(304)


def chunked_put(c, name, *headers, body=b"5\r\nwhole\r\n0\r\n\r\n"):
    head = "\r\n".join([
        f"PUT /v1/objects/b/{name} HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked",
        *headers
    ])
    return raw_exchange(c.address(), f"{head}\r\n\r\n".encode() + body)


def test_a_chunked_body_that_nobody_invited(c):
    """It is on its way already: most clients would follow a redirect with an empty one."""
    chunked_put(c, "once").expect(200)
    equal(c.get("b", "once").expect(200).body, b"whole", "contents")
    chunked_put(c, "asked", "Expect: 100-continue", body=b"").expect(307)
    c.get("b", "asked").expect(404, "object_not_found")


def test_chunked_uploads(c):
    pieces = [b"a" * 100000, b"b", b"c" * 300000]
    c.object("PUT", "b", "chunks", iter(pieces), NEVER, follow=False).expect(200)
    check(c.get("b", "chunks").expect(200).body == b"".join(pieces), "contents")


def test_many_at_once(c):
    def both_ways(i):
        data = random.Random(i).randbytes(700000)
        c.object("PUT", "b", f"many-{i}", data, NEVER, follow=False).expect(200)
        check(c.get("b", f"many-{i}", NEVER, follow=False).expect(200).body == data, "contents")

    in_parallel(both_ways, range(40), workers=16)


if __name__ == "__main__":
    main(targets=2)
