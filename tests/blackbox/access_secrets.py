#!/usr/bin/env python3
"""No secret leaves its place: after a run that uses each kind of secret, and misuses some, none of
them is in a log, a document, an audit log, a backup, an error or any other file of the cluster."""

import json
import os
import secrets

from access_lib import GuardedCluster, Identity, accessref, make_user
from lib import check, main, wait_for

SECRET_FILES = {"cluster.key", "root.json"}


class WatchedCluster(GuardedCluster):
    """It keeps the text of all replies, and hears what is secret."""

    def __init__(self, **shape):
        self.replies, self.secrets = [], {}
        audit = [f"--{role}-arg=--audit-log=-" for role in ("proxy", "target")]
        audit += [f"--{role}-arg=--audit=all" for role in ("proxy", "target")]
        levels = [f"--{role}-arg=--log-level=debug" for role in ("proxy", "target")]
        super().__init__(args=audit + levels, **shape)
        self.keep_secret("the cluster key", self.key_text)
        self.keep_secret("root's secret", self.root.secret)

    def keep_secret(self, what, text):
        self.secrets[text] = what

    def kept(self, reply):
        self.replies.append(reply.body.decode("latin-1"))
        return reply

    def call(self, *args, **options):
        return self.kept(super().call(*args, **options))

    def bare(self, *args, **options):
        return self.kept(super().bare(*args, **options))


def files_of(c):
    for folder, _, names in os.walk(c.dir):
        for name in names:
            path = os.path.join(folder, name)
            if name not in SECRET_FILES and os.path.isfile(path) and not os.path.islink(path):
                yield path


def use_secrets(c):
    user = make_user(c, "worker", [{"rights": ["list", "read", "write", "delete"], "bucket": "b"}])
    c.replies.pop(next(i for i, text in enumerate(c.replies) if user.secret in text))
    c.keep_secret("a user's secret", user.secret)
    c.create("b")
    for node in ("p1", "p2"):
        user.token = None
        user.call("PUT", "/v1/objects/b/o", b"x", node).expect(200)
        token = user.token
        c.keep_secret("a token", token)
        location = c.bare("GET", "/v1/objects/b/o", node=node, headers=user.headers(),
                          follow=False).expect(307).headers["Location"]
        c.keep_secret("a redirect proof", location.partition("dfca=")[2].partition("&")[0])
        c.http.request("GET", location).expect(200)
        asked = {"method": "GET", "bucket": "b", "object": "o", "seconds": 60}
        url = user.call("POST", "/v1/auth/url", asked, node).expect(200).json()["url"]
        c.keep_secret("a signed URL", url.partition("dfcu=")[2])
        c.http.request("GET", url).expect(200)
        c.http.request("GET", url.replace("/o?", "/other?")).expect(403, "access_denied")
        proof = json.loads(accessref.login(user.access, user.secret))
        c.keep_secret("a proof of a login", proof["proof"])
        c.bare("POST", "/v1/auth/token", proof, node).expect(200)
    c.replies = [text for text in c.replies if '"token":' not in text and '"url":' not in text]
    return user, location


def misuse_secrets(c, user, location):
    """Where they do not belong, and damaged: what is refused is often repeated in the refusal."""
    password = secrets.token_hex(12)
    c.keep_secret("a password", password)
    c.call("POST", "/v1/users", {"name": "ann", "kind": "person"}).expect(201)
    c.call("PUT", "/v1/users/ann/password", {"password": password}).expect(204)
    for node in ("p1", "p2", "t1"):
        for header in ("Bearer " + user.token + "A", "Basic " + user.token, "Bearer " + user.secret):
            c.bare("GET", "/v1/daemon", node=node, headers={"Authorization": header}).expect(401)
        c.bare("GET", "/v1/daemon?dfca=" + location.partition("dfca=")[2], node=node).expect(401)
    reply = c.kept(c.http.request("GET", location.replace("/b/o?", "/b/other?")))
    reply.expect(403, "access_denied")
    wrong = Identity(c, user.access, user.secret[::-1])
    c.keep_secret("a wrong secret", wrong.secret)
    wrong.login().expect(401, "unauthorized")
    body = json.loads(accessref.login(user.access, user.secret))
    c.keep_secret("a proof", body["proof"])
    c.bare("POST", "/v1/auth/token", {**body, "more": user.secret}).expect(400)
    c.call("PUT", "/v1/users/worker/password", {"password": password}).expect(400)


def test_no_secret_is_found(c):
    user, location = use_secrets(c)
    misuse_secrets(c, user, location)
    for what in ("state", "access", "config", "settings"):
        c.call("GET", f"/v1/cluster?what={what}", node="p2").expect(200)
    for node in c.nodes:
        c.call("GET", "/v1/daemon", node=node)
    backup = os.path.join(c.dir, "backup.json")
    done = c.dfcctl("cluster", "backup", backup, env={"DFC_ACCESS_KEY": c.root.access,
                                                      "DFC_SECRET_KEY": c.root.secret})
    check(done.returncode == 0, f"{done.stderr}")
    check(os.path.getsize(backup) > 100, "the backup is empty")
    wait_for(lambda: '"op":"auth_token"' in c.log("p1"), "lines of the audit log")
    paths = list(files_of(c))
    check(any(p.endswith("p1.log") for p in paths) and backup in paths, f"{paths}")
    found = []
    for path in paths:
        with open(path, "rb") as f:
            data = f.read()
        found += [f"{what} is in {path}" for text, what in c.secrets.items()
                  if text.encode() in data]
    found += [f"{what} is in a reply: {reply[:300]}" for reply in c.replies
              for text, what in c.secrets.items() if text in reply]
    check(not found, "; ".join(found[:5]))
    check(len(c.secrets) >= 10, f"only {len(c.secrets)} secrets were used")


if __name__ == "__main__":
    main(WatchedCluster, proxies=2, targets=1)
