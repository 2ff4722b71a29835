#!/usr/bin/env python3
"""A redirect's proof is good for one call: one object, method, range, user and bucket, for a minute."""

import re
import time
import urllib.parse

from access_lib import GuardedCluster, accessref, make_user
from lib import check, equal, main, wait_for

DATA = bytes(range(256)) * 4


def location(c, method, name, query="", headers=None, body=None, identity=None):
    """Where the proxy sends this call."""
    path = f"/v1/objects/b/{name}" + ("?" + query if query else "")
    who = identity or c.root
    reply = who.call(method, path, body, headers=headers, follow=False).expect(307)
    return reply.headers["Location"]


def ask(c, method, url, body=None, headers=None):
    """At a target, without a token."""
    return c.http.request(method, url, body, headers, follow=False)


def test_the_redirect_of_each_method_is_believed(c):
    c.create("b")
    ask(c, "PUT", location(c, "PUT", "o"), DATA).expect(200)
    equal(ask(c, "GET", location(c, "GET", "o")).expect(200).body, DATA, "the object")
    ask(c, "HEAD", location(c, "GET", "o")).expect(200)
    ask(c, "GET", location(c, "HEAD", "o")).expect(200)
    ranged = {"Range": "bytes=0-9"}
    equal(ask(c, "GET", location(c, "GET", "o", headers=ranged), headers=ranged).expect(206).body,
          DATA[:10], "a range")
    url = location(c, "GET", "o", "offset=5&length=6")
    equal(ask(c, "GET", url).expect(206).body, DATA[5:11], "a piece")
    rename = b'{"action": "rename", "name": "o2"}'
    ask(c, "POST", location(c, "POST", "o", body=rename), rename).expect(204)
    ask(c, "DELETE", location(c, "DELETE", "o2")).expect(204)
    c.put("b", "o", DATA)


def test_a_target_asks_for_a_proof(c):
    url = location(c, "GET", "o")
    bare = re.sub(r"&dfca=[^&]*", "", url)
    ask(c, "GET", bare).expect(401, "unauthorized")
    ask(c, "GET", bare.split("?")[0]).expect(401, "unauthorized")
    ask(c, "GET", bare, headers=c.root.headers()).expect(200)


def test_a_proof_is_for_one_call(c):
    c.put("b", "other", b"another")
    url = location(c, "GET", "o")
    other = location(c, "GET", "other")
    swapped = other.split("dfca=")[0] + "dfca=" + url.split("dfca=")[1]
    ask(c, "GET", url).expect(200)
    ask(c, "GET", url).expect(200)  # as often as one likes
    ask(c, "GET", swapped).expect(403, "access_denied")
    for method, body in (("PUT", DATA), ("DELETE", None),
                         ("POST", b'{"action": "rename", "name": "x"}')):
        ask(c, method, url, body).expect(403, "access_denied")
    ask(c, "GET", url, headers={"Range": "bytes=0-1"}).expect(403, "access_denied")
    ask(c, "GET", url + "&offset=1").expect(403, "access_denied")
    ask(c, "GET", url + "&length=1").expect(403, "access_denied")
    piece = location(c, "GET", "o", "offset=5&length=6")
    ask(c, "GET", piece).expect(206)
    ask(c, "GET", piece.replace("offset=5", "offset=4")).expect(403, "access_denied")
    ask(c, "GET", piece.replace("offset=5&", "")).expect(403, "access_denied")
    ask(c, "GET", piece.replace("offset=5", "%6fffset=4")).expect(403, "access_denied")
    ranged = {"Range": "bytes=0-9"}
    wide = location(c, "GET", "o", headers=ranged)
    ask(c, "GET", wide).expect(403, "access_denied")
    ask(c, "GET", wide, headers={"Range": "bytes=0-99"}).expect(403, "access_denied")


def test_a_proof_is_for_one_new_name(c):
    wanted = b'{"action": "rename", "name": "renamed"}'
    url = location(c, "POST", "other", body=wanted)
    changed = b'{"action": "rename", "name": "o"}'
    ask(c, "POST", url, changed).expect(403, "access_denied")
    ask(c, "POST", url.replace("dfcn=renamed", "dfcn=o"), changed).expect(403, "access_denied")
    ask(c, "POST", url, wanted).expect(204)


def test_a_rename_needs_three_rights(c):
    """With less, whoever may not read a name could read it under another one."""
    body = b'{"action": "rename", "name": "new/x"}'
    removes = {"rights": ["delete"], "bucket": "b", "prefix": "renamed"}
    reads = {"rights": ["read"], "bucket": "b", "prefix": "renamed"}
    writes = {"rights": ["read", "write"], "bucket": "b", "prefix": "new/"}
    path = "/v1/objects/b/renamed"
    never = {"Dfc-Redirect": "never"}
    for name, held, lacks in (("blind", writes, "'read'"), ("idle", reads, "'write'")):
        user = make_user(c, name, [removes, held])
        user.call("POST", path, body, follow=False).expect(403, "access_denied", lacks)
        user.call("POST", path, body, headers=never).expect(403, "access_denied", lacks)
        for node in c.targets():
            reply = user.call("POST", path, body, node=node, follow=False)
            check(reply.status == 403, f"{node}: {reply!r}")
    all_three = make_user(c, "renamer", [removes, reads, writes])
    url = location(c, "POST", "renamed", body=body, identity=all_three)
    ask(c, "POST", url, body).expect(204)


def test_a_proof_expires(c):
    url = location(c, "GET", "o")
    number = int(urllib.parse.parse_qs(url.split("?")[1])["dfcb"][0])
    now = int(time.time() * 1000)
    for late, status, code in ((60000, 200, None), (-1, 401, "proof_expired")):
        proof = accessref.redirect(c.key_text, c.root.id(), now + late, "GET", number, "o")
        ask(c, "GET", re.sub(r"dfca=[^&]*", "dfca=" + proof, url)).expect(status, code)


def test_a_proof_is_for_one_user(c):
    """Another user's id in it is no proof, and a user who is disabled has none."""
    user = make_user(c, "reader", [{"rights": ["read"], "bucket": "b"}])
    url = location(c, "GET", "o", identity=user)
    ask(c, "GET", url).expect(200)
    padded = url.split("dfca=")[1]
    theirs = location(c, "GET", "o").split("dfca=")[1]
    mixed = padded[:32] + theirs[32:]
    ask(c, "GET", url.replace(padded, mixed)).expect(403, "access_denied")
    c.call("PUT", "/v1/users/reader", {"enabled": False}).expect(200)
    began = time.monotonic()
    while ask(c, "GET", url).status != 401:
        check(time.monotonic() - began < 60, "a disabled user's redirect is still good")


def ring_url(c, method, what, identity=None):
    reply = (identity or c.root).call(method, f"/v1/rings/ring/{what}", b"x", follow=False)
    return reply.expect(307).headers["Location"]


def test_the_calls_of_rings(c):
    """Each has its own proof, which is none for objects; and each asks for its right."""
    c.call("POST", "/v1/buckets/ring", {"action": "create", "value": {"ring": "cap=2"}}).expect(201)
    calls = [("POST", "samples"), ("GET", "status"), ("PUT", "generation"), ("DELETE", "samples"), ("DELETE", "groups")]
    urls = {call: ring_url(c, *call) for call in calls}
    ask(c, "POST", urls[calls[0]], b"x").expect(400, "bad_sample")
    for (method, what), url in urls.items():
        ask(c, method, re.sub(r"&dfca=[^&]*", "", url), b"x").expect(401, "unauthorized")
        for (other, its), its_url in urls.items():
            mixed = its_url.split("dfca=")[0] + "dfca=" + url.split("dfca=")[1]
            if (method, what) != (other, its):
                ask(c, other, mixed, b"x").expect(403, "access_denied")
        ask(c, method, url.replace("/v1/rings/", "/v1/objects/"), b"x").expect(403, "access_denied")
    rights = {"read": [("GET", "status")], "delete": [("DELETE", "samples")],
              "write": [("POST", "samples"), ("PUT", "generation"), ("DELETE", "groups")]}  # who joins may leave
    for right, allowed in rights.items():
        user = make_user(c, "ring-" + right, [{"rights": [right], "bucket": "ring"}])
        for method, what in calls:
            if (method, what) in allowed:
                ring_url(c, method, what, user)
                continue
            path = f"/v1/rings/ring/{what}"
            user.call(method, path, b"x", follow=False).expect(403, "access_denied", right_of(rights, (method, what)))
            for node in c.targets():
                user.call(method, path, b"x", node=node, follow=False).expect(403, "access_denied")
    c.destroy("ring")


def right_of(rights, call):
    return next(right for right, calls in rights.items() if call in calls)


def test_a_bucket_made_anew_is_another_one(c):
    c.create("anew")
    c.put("anew", "o", DATA)
    reply = c.root.call("GET", "/v1/objects/anew/o", follow=False).expect(307)
    url = reply.headers["Location"]
    ask(c, "GET", url).expect(200)
    number = urllib.parse.parse_qs(url.split("?")[1])["dfcb"][0]
    c.destroy("anew")
    c.create("anew")
    c.put("anew", "o", b"new")
    again = c.root.call("GET", "/v1/objects/anew/o", follow=False).expect(307).headers["Location"]
    new = urllib.parse.parse_qs(again.split("?")[1])["dfcb"][0]
    check(ask(c, "GET", url).status in (403, 409), "the old redirect reads the new bucket")
    forged = url.replace(f"dfcb={number}", f"dfcb={new}")
    ask(c, "GET", forged).expect(403, "access_denied")


def test_what_a_client_adds_is_not_believed(c):
    """A proof in the client's own query is not passed on by a proxy."""
    url = location(c, "GET", "o", "dfca=AAAA&dfcn=x")
    equal(url.count("dfca="), 1, url)
    ask(c, "GET", url).expect(200)


def test_a_targets_redirect_carries_the_proof(c):
    url = location(c, "GET", "o")
    for node in c.targets():
        at = re.sub(r"https?://[^/]+", c.url(node), url)
        reply = c.http.request("GET", at)
        equal(reply.expect(200).body, DATA, f"by way of {node}")
        by_token = c.http.request("GET", at.split("?")[0], headers=c.root.headers(), follow=False)
        if by_token.status == 307:
            ask(c, "GET", by_token.headers["Location"]).expect(200)


def test_the_proxy_streams_by_the_token(c):
    never = {"Dfc-Redirect": "never"}
    equal(c.root.call("GET", "/v1/objects/b/o", headers=never).expect(200).body, DATA, "streamed")
    c.root.call("PUT", "/v1/objects/b/streamed", DATA, headers=never).expect(200)


def test_an_upload_is_handed_on_with_a_proof(c):
    """The target that got the upload asks the leader in the name of the caller."""
    c.create("two", copies=2)
    path = "/v1/objects/two/o"
    url = c.root.call("PUT", path, DATA, follow=False).expect(307).headers["Location"]
    never = {"Dfc-Redirect": "never"}
    for node in c.targets():
        at = re.sub(r"https?://[^/]+", c.url(node), url)
        ask(c, "PUT", at, DATA, never).expect(200)
        ask(c, "PUT", at.split("?")[0], DATA, {**never, **c.root.headers()}).expect(200)
    equal(c.root.call("GET", path).expect(200).body, DATA, "the object")


def test_an_open_bucket_needs_no_proof(c):
    c.create("open")
    c.put("open", "o", b"open")
    grant = {"action": "grant", "value": {"rights": ["list", "read"], "bucket": "open"}}
    c.call("POST", "/v1/users/anonymous/grants", grant).expect(200)
    wait_for(lambda: c.bare("GET", "/v1/objects/open/o").status == 200, "the grant on all nodes")
    reply = c.bare("GET", "/v1/objects/open/o").expect(200)
    equal(reply.body, b"open", "an open bucket's object")
    check("dfca" not in reply.url, reply.url)
    c.bare("GET", "/v1/objects/open").expect(200)
    c.bare("PUT", "/v1/objects/open/o", b"x").expect(401, "unauthorized")
    c.bare("GET", "/v1/objects/b/o").expect(401, "unauthorized")


if __name__ == "__main__":
    main(GuardedCluster, targets=3)
