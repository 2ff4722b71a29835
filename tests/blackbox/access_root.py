#!/usr/bin/env python3
"""Root's key: of a file at the first start, and a new one by --reset-root, while others work."""

import json
import os
import secrets
import shutil
import subprocess
import tempfile

from access_lib import Identity, Load, make_user
from lib import BUILD, Cluster, check, equal, main, wait_for


def new_keys():
    return "DFC4" + secrets.token_hex(8).upper(), secrets.token_hex(20)


def key_file(directory, name, keys):
    path = os.path.join(directory, name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
        f.write("\n".join(keys) + "\n")
    return path


class KeyFileCluster(Cluster):
    """Root's key is that of a file, which proxies start with."""

    bare = Cluster.call

    def __init__(self, **shape):
        self.side_dir = tempfile.mkdtemp(prefix="dfc-root-")
        self.audit_log = os.path.join(self.side_dir, "audit.log")
        self.keys = new_keys()
        file = key_file(self.side_dir, "root.key", self.keys)
        super().__init__(args=["--proxy-arg=--root-key-file=" + file,
                               "--proxy-arg=--audit-log=" + self.audit_log], **shape)
        self.root = Identity(self, *self.keys)

    def args_of_up(self):
        return ("--auth",)

    def remove(self):
        super().remove()
        shutil.rmtree(self.side_dir, ignore_errors=True)

    def call(self, method, path, body=None, node="p1", headers=None, **options):
        if "Authorization" not in (headers or {}) and hasattr(self, "root"):
            headers = {**self.root.headers(), **(headers or {})}
        return super().call(method, path, body, node, headers, **options)

    def root_json(self):
        return os.path.join(self.node_dir("p1"), "root.json")

    def users(self):
        return self.call("GET", "/v1/users").expect(200).json()


class Reading(Load):
    """Clients that read one object at a target."""

    def __init__(self, user):
        super().__init__()
        self.user = user

    def one(self, number):
        self.ask(self.user.call, "GET", "/v1/objects/b/o", node="t1")


def test_the_file_gives_roots_key(c):
    c.root.login().expect(200)
    check(not os.path.exists(c.root_json()), "there is a root.json")
    equal(c.users()["users"][0]["name"], "root", "the first user")
    check(c.keys[1] not in c.log("p1"), "the secret is in the log")


def test_a_restart_changes_nothing(c):
    before = c.users()["version"]
    c.stop("p1")
    c.start("p1")
    equal(c.users()["version"], before, "version of the users after a restart")
    check("--reset-root" not in c.log("p1"), "the log complains")


def test_another_file_is_told(c):
    other = key_file(c.side_dir, "other.key", new_keys())
    before = c.users()["version"]
    c.stop("p1")
    c.start("p1", "--arg=--root-key-file=" + other)
    check("--reset-root" in c.log("p1"), "the log does not say what to do")
    equal(c.users()["version"], before, "version of the users")
    c.root.login().expect(200)


def test_a_reset_while_clients_read(c):
    """By a new key in root.json; root's old key and tokens end at every node, and nobody else's."""
    c.create("b")
    c.put("b", "o", b"x")
    user = make_user(c, "reader", [{"rights": ["read"], "bucket": "b"}, {"rights": ["see"]}])
    old = c.root
    with Reading(user) as load:
        load.wait_more()
        c.stop("p1")
        load.wait_more()
        c.start("p1", "--arg=--reset-root", "--arg=--root-key-file=")
        load.wait_more()
    with open(c.root_json(), encoding="utf-8") as f:
        keys = json.load(f)
    c.root = Identity(c, keys["access_key"], keys["secret_key"])
    equal([len(u["keys"]) for u in c.users()["users"] if u["name"] == "root"], [1], "root's keys")
    old.login().expect(401)
    for node in ("p1", "p2", "t1"):
        wait_for(lambda: old.call("GET", "/v1/api", node=node).status == 401,
                 f"{node} to refuse root's old token")
    c.destroy("b")
    with open(c.audit_log, encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    resets = [line for line in lines if line["op"] == "root_reset"]
    equal([(line["user"], line["key"], line["via"]) for line in resets],
          [("root", keys["access_key"], "start")], "lines of the audit log")
    check("AUDIT p1 root has a new key" in c.log("p1"), "the log")


def test_a_reset_by_the_file_is_done_once(c):
    c.stop("p1")
    c.start("p1", "--arg=--reset-root")
    c.root = Identity(c, *c.keys)
    before = c.users()["version"]
    c.stop("p1")
    c.start("p1", "--arg=--reset-root")
    equal(c.users()["version"], before, "version of the users after a second reset")


def test_a_disabled_root_is_made_good(c):
    c.call("PUT", "/v1/users/root", {"enabled": False}).expect(200)
    c.root.login().expect(401)
    c.stop("p1")
    c.start("p1", "--arg=--reset-root")
    c.root = Identity(c, *c.keys)
    c.users()


def refused(c, text, *options):
    argv = [os.path.join(BUILD, "dfc-proxyd"), "--id=x", f"--dir={c.side_dir}/x", "--public-port=0",
            "--control-port=0", "--cluster-key-file=" + c.key_file, *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    check(done.returncode != 0 and text in done.stderr, f"{options}: {done.stderr}")


def test_what_does_not_start(c):
    good = key_file(c.side_dir, "good.key", new_keys())
    open_to_all = key_file(c.side_dir, "open.key", new_keys())
    os.chmod(open_to_all, 0o644)
    short = key_file(c.side_dir, "short.key", ("DFC4", "secret"))
    locked = "--public-auth"
    refused(c, "needs --public-auth", "--root-key-file=" + good)
    refused(c, "needs --public-auth", "--reset-root")
    refused(c, "for the primary", locked, "--reset-root", "--join=http://127.0.0.1:1")
    refused(c, "chmod 600", locked, "--root-key-file=" + open_to_all)
    refused(c, "20 capital letters", locked, "--root-key-file=" + short)
    refused(c, "No such file", locked, "--root-key-file=" + good + ".none")


if __name__ == "__main__":
    main(KeyFileCluster, proxies=2, targets=1)
