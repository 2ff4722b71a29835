#!/usr/bin/env python3
"""Signed URLs: curl downloads and uploads with one and no other proof; it is for one call."""

import json
import os
import re
import subprocess
import time
import urllib.parse

from access_lib import GuardedCluster, accessref, make_user
from lib import check, equal, main, wait_for

DATA = bytes(range(256)) * 4


class UrlCluster(GuardedCluster):
    """All that its nodes log is kept, and what must not be in it."""

    def __init__(self, **shape):
        self.signed = []
        logs = [f"--{role}-arg={arg}" for role in ("proxy", "target")
                for arg in ("--log-level=debug", "--audit-log=-", "--audit=all")]
        super().__init__(args=logs, **shape)

    def sign(self, method, bucket, name, seconds=60, identity=None, node="p1"):
        body = {"method": method, "bucket": bucket, "object": name, "seconds": seconds}
        url = (identity or self.root).call("POST", "/v1/auth/url", body, node).expect(
            200).json()["url"]
        self.signed.append(url)
        return url


def ask(c, method, url, body=None, headers=None):
    """Without any credential."""
    return c.http.request(method, url, body, headers)


def curl(*args, data=None):
    """-> (status, body)."""
    done = subprocess.run(["curl", "-sL", "-w", "\n%{http_code}", *args], input=data, check=True,
                          stdout=subprocess.PIPE, env={"PATH": os.environ["PATH"]}, timeout=60)
    body, _, status = done.stdout.rpartition(b"\n")
    return int(status), body


def test_curl_uploads_and_downloads(c):
    c.create("b")
    path = os.path.join(c.dir, "upload")
    big = os.urandom(3 << 20)
    with open(path, "wb") as f:
        f.write(big)
    equal(curl("-T", path, c.sign("PUT", "b", "dir/ö o"))[0], 200, "an upload")
    equal(curl(c.sign("GET", "b", "dir/ö o")), (200, big), "a download")
    equal(curl("-I", c.sign("GET", "b", "dir/ö o"))[0], 200, "its headers")


def test_the_proxy_streams_for_clients_that_cannot_follow(c):
    """A body from a pipe comes once; a read can ask for it; copies have a read of their own."""
    c.create("two", copies=2)
    for bucket in ("b", "two"):
        put = ["-T", "-", "-H", "Transfer-Encoding: chunked", "-H", "Expect:"]
        equal(curl(*put, c.sign("PUT", bucket, "piped"), data=DATA)[0], 200, "a piped upload")
        never = "Dfc-Redirect: never"
        equal(curl("-H", never, c.sign("GET", bucket, "piped")), (200, DATA), "streamed")


def test_a_url_is_for_one_call(c):
    c.put("b", "o", DATA)
    c.put("b", "other", b"another")
    read, write = c.sign("GET", "b", "o"), c.sign("PUT", "b", "o")
    equal(ask(c, "GET", read).expect(200).body, DATA, "the object")
    ask(c, "GET", read).expect(200)  # as often as one likes
    ask(c, "GET", read.replace("/b/o?", "/b/other?")).expect(403, "access_denied")
    ask(c, "GET", read.replace("/b/o?", "/none/o?")).expect(403, "access_denied")
    ask(c, "PUT", read, DATA).expect(403, "access_denied")
    ask(c, "GET", write).expect(403, "access_denied")
    ask(c, "DELETE", read).expect(401, "unauthorized")
    ask(c, "DELETE", write).expect(401, "unauthorized")
    ask(c, "GET", read, headers={"Range": "bytes=0-1"}).expect(403, "access_denied")
    ask(c, "GET", read + "&offset=1").expect(403, "access_denied")
    ask(c, "GET", read + "&length=1").expect(403, "access_denied")
    ask(c, "GET", read[:-1] + ("A" if read[-1] != "A" else "B")).expect(403, "access_denied")
    ask(c, "GET", re.sub("dfcu=.*", "dfcu=", read)).expect(403, "access_denied")
    proxy = re.match("http://[^/]+", read).group()
    ask(c, "GET", read.replace(proxy, c.url("t1"))).expect(401, "unauthorized")
    equal(ask(c, "GET", read.replace(proxy, c.url("p2"))).expect(200).body, DATA, "by p2")


def test_a_redirect_is_no_url(c):
    """Else the proof of a minute could be made into one of an hour, and again."""
    location = c.http.request("GET", c.sign("GET", "b", "o"), follow=False).expect(
        307).headers["Location"]
    check("dfcu" not in location, location)
    dfca = urllib.parse.parse_qs(location.split("?")[1])["dfca"][0]
    ask(c, "GET", f"{c.url('p1')}/v1/objects/b/o?dfcu={dfca}").expect(403, "access_denied")


def test_a_url_expires(c):
    number = c.get_json("/v1/buckets/b")["id"]
    now = int(time.time() * 1000)
    for end, status, code in ((now + 60000, 200, None), (now - 1, 401, "proof_expired")):
        proof = accessref.signed_url(c.key_text, c.root.id(), now - 1000, end, "GET", number, "o")
        ask(c, "GET", f"{c.url('p1')}/v1/objects/b/o?dfcu={proof}").expect(status, code)


def test_a_url_ends_with_its_user_and_their_right(c):
    reads = {"rights": ["read"], "bucket": "b"}
    user = make_user(c, "reader", [reads])
    url = c.sign("GET", "b", "o", identity=user)
    ask(c, "GET", url).expect(200)
    c.call("POST", "/v1/users/reader/grants", {"action": "revoke", "value": reads}).expect(200)
    wait_for(lambda: ask(c, "GET", url).status == 403, "the right to be gone")
    c.call("POST", "/v1/users/reader/grants", {"action": "grant", "value": reads}).expect(200)
    wait_for(lambda: ask(c, "GET", url).status == 200, "the right to be back")
    c.call("PUT", "/v1/users/reader", {"enabled": False}).expect(200)
    wait_for(lambda: ask(c, "GET", url).status == 401, "the user to be disabled")
    c.call("PUT", "/v1/users/reader", {"enabled": True}).expect(200)
    user.token = None
    wait_for(lambda: user.login().status == 200, "the user to be back")
    ask(c, "GET", url).expect(401, "unauthorized")


def test_a_url_ends_with_the_access_key(c):
    user = make_user(c, "signer", [{"rights": ["read"], "bucket": "b"}])
    url = c.sign("GET", "b", "o", identity=user)
    c.call("POST", "/v1/users/signer/keys").expect(201)
    ask(c, "GET", url).expect(200)
    c.call("DELETE", f"/v1/users/signer/keys/{user.access}").expect(204)
    wait_for(lambda: ask(c, "GET", url).status == 401, "the key to be gone")


def test_a_bucket_made_anew_is_another_one(c):
    c.create("anew")
    url = c.sign("PUT", "anew", "o")
    ask(c, "PUT", url, DATA).expect(200)
    c.destroy("anew")
    c.create("anew")
    wait_for(lambda: ask(c, "PUT", url, DATA).status == 403, "the old URL to be refused")


def test_what_cannot_be_signed(c):
    whole = {"method": "GET", "bucket": "b", "object": "o", "seconds": 60}
    user = make_user(c, "narrow", [{"rights": ["list", "read"], "bucket": "b", "prefix": "in/"}])
    for who, change, status, code in (
            (c.root, {"method": "POST"}, 400, "invalid_argument"),
            (c.root, {"method": "DELETE"}, 400, "invalid_argument"),
            (c.root, {"method": "get"}, 400, "invalid_argument"),
            (c.root, {"method": ""}, 400, "invalid_argument"),
            (c.root, {"method": None}, 400, "invalid_json"),
            (c.root, {"bucket": ""}, 400, "invalid_name"),
            (c.root, {"object": ""}, 400, "invalid_name"),
            (c.root, {"object": "n" * 2000}, 400, "invalid_name"),
            (c.root, {"seconds": 0}, 400, "invalid_argument"),
            (c.root, {"seconds": 3601}, 400, "invalid_argument"),
            (c.root, {"seconds": -1}, 400, "invalid_json"),
            (c.root, {"seconds": "60"}, 400, "invalid_json"),
            (c.root, {"range": "bytes=0-"}, 400, "invalid_json"),
            (c.root, {"bucket": "none"}, 404, "bucket_not_found"),
            (c.root, {"seconds": 3600}, 200, None),
            (user, {"object": "in/o"}, 200, None),
            (user, {}, 403, "access_denied"),
            (user, {"object": "in/o", "method": "PUT"}, 403, "access_denied"),
            (user, {"bucket": "two"}, 403, "access_denied"),
            (user, {"bucket": "none"}, 403, "access_denied")):
        reply = who.call("POST", "/v1/auth/url", {**whole, **change})
        reply.expect(status, code)
        if status == 200:
            equal(reply.headers["Cache-Control"], "no-store", "Cache-Control")
            c.signed.append(reply.json()["url"])
    there, absent = (user.call("POST", "/v1/auth/url", {**whole, "bucket": b}).json()["message"]
                     for b in ("two", "none"))
    equal(there.replace("two", "none"), absent, "whether a bucket exists is not told")
    c.root.call("POST", "/v1/auth/url", [whole]).expect(400, "invalid_json")
    c.bare("POST", "/v1/auth/url", whole).expect(401, "unauthorized")
    signed = c.sign("GET", "b", "o")
    proof = signed.split("?")[1]
    c.bare("POST", f"/v1/auth/url?{proof}", whole).expect(401, "unauthorized")


def test_dfcctl_prints_a_url(c):
    env = {"DFC_ACCESS_KEY": c.root.access, "DFC_SECRET_KEY": c.root.secret}
    path = os.path.join(c.dir, "small")
    with open(path, "wb") as f:
        f.write(DATA)
    put = c.dfcctl("url", "dfc://b/by-hand", "--method", "PUT", "--for", "10m", env=env)
    equal(curl("-T", path, put.stdout.strip())[0], 200, f"an upload {put.stderr}")
    got = c.dfcctl("object", "url", "b/by-hand", "-o", "json", env=env)
    document = json.loads(got.stdout)
    check(0 < document["expires_ms"] / 1000 - time.time() <= 600, f"{document}")
    equal(curl(document["url"]), (200, DATA), "a download")
    c.signed += [put.stdout.strip(), document["url"]]
    for words, code in ((["b"], 2), (["b/o", "--method", "DELETE"], 2), (["b/o", "--for", "2h"], 2),
                        (["none/o"], 3)):
        failed = c.dfcctl("url", *words, env=env)
        equal(failed.returncode, code, f"{words}: {failed.stderr}")


def test_a_url_is_in_no_log(c):
    wait_for(lambda: '"via":"url"' in c.log("p1"), "a line of the audit log")
    check(len(c.signed) >= 10, f"only {len(c.signed)} URLs were made")
    for node in c.nodes:
        text = c.log(node)
        for url in c.signed:
            check(url.partition("dfcu=")[2] not in text, f"a URL is in the log of {node}")


if __name__ == "__main__":
    main(UrlCluster, proxies=2, targets=3)
