#!/usr/bin/env python3
"""No secret leaves its place: after a run that uses each kind of secret, and misuses some, none of
them is in a log, a document, an audit log, a backup, an error, in what dfcctl says, or in any other
file of the cluster.  DFC_METASTORE=etcd: nor in etcd."""

import base64
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
        self.home = os.path.join(self.dir, "home")
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

    def tool(self, *args, env=None, ok=True, **options):
        """dfcctl with a home of its own.  What it says is kept."""
        env = {"HOME": self.home, "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": "", **(env or {})}
        done = self.dfcctl(*args, env=env, **options)
        check((done.returncode == 0) == ok, f"dfcctl {args}: {done.stdout}{done.stderr}")
        self.replies.append(done.stdout + done.stderr)
        return done


class ClusterOnEtcd(WatchedCluster):
    def root_folder(self):
        """Of the proxy that leads."""
        folders = [self.node_dir(p) for p in ("p1", "p2", "p3")]
        return wait_for(lambda: [f for f in folders if os.path.exists(f"{f}/root.json")],
                        "root.json")[0]


def files_of(c):
    """All files that need not have a secret.  Those of a home may have some, and are private."""
    for folder, _, names in os.walk(c.dir):
        for path in (os.path.join(folder, name) for name in names):
            if not os.path.isfile(path) or os.path.islink(path):
                continue
            if folder.startswith(c.home):
                check(os.stat(path).st_mode & 0o077 == 0, f"others can read {path}")
            elif os.path.basename(path) not in SECRET_FILES:
                yield path


def etcd_dump(c):
    """All keys and values, as etcd tells them."""
    everything = {"key": base64.b64encode(b"\0").decode(),
                  "range_end": base64.b64encode(b"\0").decode()}
    pairs = c.bare("POST", "/v3/kv/range", everything, "e1").expect(200).json()["kvs"]
    return b"\n".join(base64.b64decode(p.get(part, "")) for p in pairs for part in ("key", "value"))


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


def damaged(secret):
    """JSON in whose middle the secret stands where none may."""
    return ('{"access_key": "k", "secret_key" "%s"}' % secret,
            '{"access_key": "k", "secret_key": "%s' % secret,
            '{"access_key": "k", "secret_key": %s}' % secret,
            '{"%s": 1, "%s": 2}' % (secret, secret))


def send_damaged_bodies(c, user):
    short = secrets.token_hex(6)
    c.keep_secret("a short password", short)
    for body in (text.encode() for secret in (user.secret, short) for text in damaged(secret)):
        c.bare("POST", "/v1/auth/token", body).expect(400)
        for method, path in (("POST", "/v1/users"), ("PUT", "/v1/users/worker"),
                             ("PUT", "/v1/users/ann/password")):
            c.call(method, path, body).expect(400)


def use_dfcctl(c, user):
    keys = json.dumps({"access_key": user.access, "secret_key": user.secret})
    none = {"DFC_CLUSTER_KEY_FILE": ""}
    c.tool("login", "--stdin", input=keys, env=none)
    for command in (("whoami",), ("whoami", "-o", "json"), ("ls", "b"), ("cat", "b/o")):
        c.tool(*command, env=none)
    root = {"DFC_ACCESS_KEY": c.root.access, "DFC_SECRET_KEY": c.root.secret}
    for command in (("user", "ls"), ("user", "show", "worker", "-o", "json"), ("cluster", "health")):
        c.tool(*command, env=root)
    c.tool("ls", "b", env={"DFC_TOKEN": user.token + "A"}, ok=False)
    c.tool("ls", "b", env={"DFC_ACCESS_KEY": user.access, "DFC_SECRET_KEY": user.secret[::-1]},
           ok=False)
    short = next(text for text, what in c.secrets.items() if what == "a short password")
    for text in (*damaged(user.secret), *damaged(short)):
        c.tool("login", "--stdin", input=text, env=none, ok=False)


def use_damaged_profiles(c, user):
    path = os.path.join(c.home, ".config", "dfc", "config.json")
    with open(path, encoding="utf-8") as f:
        check(user.secret in f.read(), "the profile has no secret")
    for text in damaged(user.secret):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        c.tool("whoami", env={"DFC_CLUSTER_KEY_FILE": ""}, ok=False)
        c.tool("logout", ok=False)


def test_who_sees_documents_sees_no_hashes(c):
    """Neither a password's hash nor a sealed secret, which are worth an attack."""
    user = make_user(c, "seer", [{"rights": ["see"]}])
    c.call("POST", "/v1/users", {"name": "bob", "kind": "person"}).expect(201)
    c.call("PUT", "/v1/users/bob/password", {"password": secrets.token_hex(12)}).expect(204)
    for node in ("p1", "p2"):
        for what in ("state", "smap", "bmd", "config", "jobs", "access", "settings"):
            reply = user.call("GET", f"/v1/cluster?what={what}", node=node).expect(200)
            check(b'"password"' not in reply.body and b'"secret"' not in reply.body and
                  b"scrypt:" not in reply.body, f"{what} of {node}: {reply!r}")
            check(what not in ("state", "access") or b'"seer"' in reply.body, f"{reply!r}")
        c.http.request("GET", f"{c.url(node)}/v1/cluster/documents", headers=user.headers()).expect(
            403, "access_denied")
    c.replies = []


def test_no_secret_is_found(c):
    user, location = use_secrets(c)
    misuse_secrets(c, user, location)
    send_damaged_bodies(c, user)
    use_dfcctl(c, user)
    use_damaged_profiles(c, user)
    for what in ("state", "access", "config", "settings"):
        c.call("GET", f"/v1/cluster?what={what}", node="p2").expect(200)
    for node in c.nodes:
        if not node.startswith("e"):
            c.call("GET", "/v1/daemon", node=node)
    backup = os.path.join(c.dir, "backup.json")
    done = c.dfcctl("cluster", "backup", backup, env={"DFC_ACCESS_KEY": c.root.access,
                                                      "DFC_SECRET_KEY": c.root.secret})
    check(done.returncode == 0, f"{done.stderr}")
    check(os.path.getsize(backup) > 100, "the backup is empty")
    wait_for(lambda: '"op":"auth_token"' in c.log("p1"), "lines of the audit log")
    if "e1" in c.nodes:
        c.replies.append(etcd_dump(c).decode("latin-1"))
        check('"worker"' in c.replies[-1], "etcd has no users")
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
    if os.environ.get("DFC_METASTORE") == "etcd":
        main(ClusterOnEtcd, proxies=3, targets=1, metastore="etcd")
    main(WatchedCluster, proxies=2, targets=1)
