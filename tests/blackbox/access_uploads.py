#!/usr/bin/env python3
"""Uploads in parts under access control: each call needs its right, a redirect's proof is good for
that call alone, and the proof of an upload's call is none for the object, nor the reverse."""

import hashlib
import json
import os
import re

from access_lib import GuardedCluster, make_user
from lib import check, equal, main, wait_for

DATA = b"bytes of a part"
LIST = json.dumps([{"part": 1, "tag": hashlib.md5(DATA).hexdigest()}]).encode()


def ask(c, method, url, body=None):
    """At a target, without a token."""
    return c.http.request(method, url, body, follow=False)


def location(identity, method, path, body=None):
    return identity.call(method, path, body, follow=False).expect(307).headers["Location"]


def begin(c, name="o"):
    path = f"/v1/uploads/b/{name}"
    upload = ask(c, "POST", location(c.root, "POST", path, b""), b"").expect(201).json()["upload"]
    return f"{path}?upload={upload}"


def test_the_redirect_of_each_call_is_believed(c):
    c.create("b")
    path = begin(c)
    ask(c, "PUT", location(c.root, "PUT", path + "&part=1", DATA), DATA).expect(200)
    page = ask(c, "GET", location(c.root, "GET", path)).expect(200).json()
    equal([p["part"] for p in page["parts"]], [1], "the parts")
    ask(c, "POST", location(c.root, "POST", path, LIST), LIST).expect(200)
    equal(c.get("b", "o").expect(200).body, DATA, "the object")
    path = begin(c)
    ask(c, "DELETE", location(c.root, "DELETE", path)).expect(204)
    c.call("GET", path).expect(404, "not_found")


def test_the_proxy_streams_by_the_token(c):
    never = {"Dfc-Redirect": "never"}
    path = "/v1/uploads/b/streamed"
    upload = c.root.call("POST", path, b"", headers=never).expect(201).json()["upload"]
    path += f"?upload={upload}"
    c.root.call("PUT", path + "&part=1", DATA, headers=never).expect(200)
    c.root.call("POST", path, LIST, headers=never).expect(200)
    equal(c.get("b", "streamed").expect(200).body, DATA, "the object")


def swapped(url, proof):
    """The URL with the proof of another one."""
    return re.sub(r"dfca=[^&]*", "dfca=" + re.search(r"dfca=([^&]*)", proof).group(1), url)


def test_a_proof_of_an_upload_is_none_for_its_object(c):
    """And the reverse, for each method that both have."""
    c.put("b", "o", b"old")
    path = begin(c)
    ask(c, "PUT", location(c.root, "PUT", path + "&part=1", DATA), DATA).expect(200)
    rename = b'{"action": "rename", "name": "new"}'
    for method, body, of_upload, query in (("GET", None, None, ""), ("PUT", b"x", b"x", "&part=1"),
                                           ("DELETE", None, None, ""), ("POST", rename, LIST, "")):
        object_url = location(c.root, method, "/v1/objects/b/o", body)
        upload_url = location(c.root, method, path + query, of_upload)
        ask(c, method, swapped(object_url, upload_url), body).expect(403, "access_denied")
        ask(c, method, swapped(upload_url, object_url), of_upload).expect(403, "access_denied")
    equal(c.get("b", "o").expect(200).body, b"old", "the object")
    ask(c, "GET", location(c.root, "GET", path)).expect(200)
    ask(c, "DELETE", location(c.root, "DELETE", path)).expect(204)


def test_a_proof_of_one_bucket_is_none_for_another(c):
    """Also where both have an object of the name, and the client changes the path."""
    c.create("own")
    own = c.root.call("POST", "/v1/uploads/own/o", b"").expect(201).json()["upload"]
    user = make_user(c, "owner", [{"rights": ["write"], "bucket": "own"}])
    path = begin(c)
    for method, body, query in (("GET", None, ""), ("PUT", b"x", "&part=1"), ("POST", LIST, ""),
                                ("DELETE", None, "")):
        url = location(user, method, f"/v1/uploads/own/o?upload={own}{query}", body)
        target = re.match(r"https?://[^/]+", location(c.root, "GET", path)).group()
        url = re.sub(r"https?://[^/]+/v1/uploads/own/", target + "/v1/uploads/b/", url).replace(
            f"upload={own}", f"upload={path.partition('=')[2]}")
        check(ask(c, method, url, body).status in (403, 404, 409), f"{method} of another's upload")
    page = c.root.call("GET", path).expect(200).json()
    equal(page["parts"], [], "the parts of another's upload")
    c.root.call("DELETE", path).expect(204)


def test_a_target_asks_for_a_proof(c):
    path = begin(c)
    url = re.sub(r"&dfca=[^&]*", "", location(c.root, "GET", path))
    ask(c, "GET", url).expect(401, "unauthorized")
    c.http.request("GET", url, headers=c.root.headers(), follow=False).expect(200)
    other = location(c.root, "GET", path.replace("/o?", "/other?"))
    ask(c, "GET", swapped(url + "&dfca=", other)).expect(403, "access_denied")
    c.root.call("DELETE", path).expect(204)


def test_each_call_needs_its_right(c):
    path = begin(c, "mine/o")
    part = path + "&part=1"
    calls = (("POST", "/v1/uploads/b/mine/o", b""), ("PUT", part, DATA), ("GET", path, None),
             ("POST", path, LIST), ("DELETE", path, None))
    writer = make_user(c, "writer", [{"rights": ["write"], "bucket": "b", "prefix": "mine/"}])
    reader = make_user(c, "reader", [{"rights": ["read", "delete", "list"], "bucket": "b"}])
    for method, where, body in calls:
        for node in ("p1", *c.targets()):
            refused = reader.call(method, where, body, node=node, follow=False)
            refused.expect(403, "access_denied", "'write'")
            c.bare(method, where, body, node=node, follow=False).expect(401, "unauthorized")
        away = writer.call(method, where.replace("mine/", "yours/"), body, follow=False)
        away.expect(403, "access_denied")
    own = writer.call("POST", "/v1/uploads/b/mine/o", b"").expect(201).json()["upload"]
    writer.call("DELETE", f"/v1/uploads/b/mine/o?upload={own}").expect(204)
    writer.call("PUT", part, DATA).expect(200)
    writer.call("GET", path).expect(200)
    writer.call("GET", "/v1/uploads/b").expect(403, "access_denied", "'list'")
    listed = reader.call("GET", "/v1/uploads/b?prefix=mine/").expect(200).json()["uploads"]
    equal([u["object"] for u in listed], ["mine/o"], "the list")
    c.bare("GET", "/v1/uploads/b").expect(401, "unauthorized")
    writer.call("POST", path, LIST).expect(200)
    equal(reader.call("GET", "/v1/objects/b/mine/o").expect(200).body, DATA, "the object")


def test_a_list_is_for_its_prefix(c):
    lister = make_user(c, "lister", [{"rights": ["list"], "bucket": "b", "prefix": "mine/"}])
    lister.call("GET", "/v1/uploads/b").expect(403, "access_denied")
    lister.call("GET", "/v1/uploads/b?prefix=yours/").expect(403, "access_denied")
    equal(lister.call("GET", "/v1/uploads/b?prefix=mine/").expect(200).json()["uploads"], [],
          "the list")


def test_an_open_bucket_needs_no_proof(c):
    c.create("open")
    grant = {"action": "grant", "value": {"rights": ["write"], "bucket": "open"}}
    c.call("POST", "/v1/users/anonymous/grants", grant).expect(200)
    wait_for(lambda: c.bare("POST", "/v1/uploads/open/o", b"").status == 201,
             "the grant on all nodes")
    reply = c.bare("POST", "/v1/uploads/open/o", b"").expect(201)
    check("dfca" not in reply.url, reply.url)
    path = f"/v1/uploads/open/o?upload={reply.json()['upload']}"
    c.bare("PUT", path + "&part=1", DATA).expect(200)
    c.bare("POST", path, LIST).expect(200)
    equal(c.get("open", "o").expect(200).body, DATA, "the object")


def test_dfcctl_puts_in_parts_with_the_right_to_write_alone(c):
    writer = make_user(c, "parts-writer", [{"rights": ["write"], "bucket": "b", "prefix": ""}])
    file, data = os.path.join(c.dir, "file"), os.urandom(11 << 20)
    with open(file, "wb") as f:
        f.write(data)
    env = {"DFC_ACCESS_KEY": writer.access, "DFC_SECRET_KEY": writer.secret}
    done = c.dfcctl("put", file, "b/in-parts", "--part-size", "5MiB", "--if-absent", env=env)
    equal(done.returncode, 0, done.stdout + done.stderr)
    reply = c.get("b", "in-parts").expect(200)
    equal((reply.body == data, reply.headers["Dfc-Md5"][-2:]), (True, "-3"), "the object")
    done = c.dfcctl("put", file, "b/in-parts", "--part-size", "5MiB", "--if-absent", env=env)
    equal((done.returncode, "exists already" in done.stderr), (1, True), done.stderr)


if __name__ == "__main__":
    main(GuardedCluster, targets=3)
