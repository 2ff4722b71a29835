"""Clusters with access control: who asks is part of every call.

    root = Identity(c, *root_keys(c))
    user = make_user(c, root, "reader", [{"rights": ["read"], "bucket": "b"}])
    user.call("GET", "/v1/objects/b/o")
"""

import json
import os
import sys
import threading

from lib import Cluster, check, wait_for

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "reference"))
import accessref  # noqa: E402


class GuardedCluster(Cluster):
    """Its listeners ask for proof."""

    def args_of_up(self):
        return ("--auth",)

    def __init__(self, **shape):
        super().__init__(**shape)
        with open(os.path.join(self.root_folder(), "root.json"), encoding="utf-8") as f:
            keys = json.load(f)
        with open(self.key_file, encoding="ascii") as f:
            self.key_text = f.readline().strip()
        self.root = Identity(self, keys["access_key"], keys["secret_key"])

    def root_folder(self):
        """Where the first primary has left root's keys."""
        return self.node_dir("p1")

    def call(self, method, path, body=None, node="p1", headers=None, **options):
        """By root, where the call has no proof of its own."""
        if "Authorization" not in (headers or {}) and hasattr(self, "root"):
            headers = {**self.root.headers(), **(headers or {})}
        return super().call(method, path, body, node, headers, **options)

    def bare(self, method, path, body=None, node="p1", headers=None, **options):
        """Without a proof."""
        return Cluster.call(self, method, path, body, node, headers, **options)


class Identity:
    """A user by an access key: one token, until it is asked for another."""

    def __init__(self, c, access, secret, user=None):
        self.c, self.access, self.secret, self.user = c, access, secret, user
        self.token = None
        self.lock = threading.Lock()

    def login(self, node="p1", **options):
        body = accessref.login(self.access, self.secret, **options)
        return self.c.bare("POST", "/v1/auth/token", body, node)

    def headers(self):
        with self.lock:
            if self.token is None:
                self.token = self.login().expect(200).json()["token"]
            return {"Authorization": "Bearer " + self.token}

    def call(self, method, path, body=None, node="p1", headers=None, **options):
        return self.c.call(method, path, body, node, {**self.headers(), **(headers or {})},
                           **options)

    def id(self):
        return self.call("GET", "/v1/auth/whoami").expect(200).json()["id"]


class Load:
    """Clients that call one(number) all the time, as a `with` block runs; what failed is kept."""

    def __init__(self, clients=3):
        self.failed, self.done = [], 0
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def one(self, number):
        raise NotImplementedError

    def run(self, number):
        while not self.over.is_set():
            self.one(number)

    def ask(self, call, *args, **options):
        """A call that is to get 200."""
        try:
            reply = call(*args, **options)
            if reply.status != 200:
                self.failed.append(repr(reply))
        except OSError as error:
            self.failed.append(repr(error))
        self.done += 1

    def wait_more(self, calls=60):
        wanted = self.done + calls
        wait_for(lambda: self.done >= wanted or self.failed, f"{calls} more calls")
        check(not self.failed, f"{len(self.failed)} calls failed: {self.failed[:3]}")


def make_user(c, name, grants):
    """A service account with one key, which all nodes know."""
    c.call("POST", "/v1/users", {"name": name, "kind": "service", "grants": grants}).expect(201)
    key = c.call("POST", f"/v1/users/{name}/keys").expect(201).json()
    user = Identity(c, key["access"], key["secret"], name)
    nodes = [node for node in c.nodes if node[0] in "pt"]
    wait_for(lambda: all(user.call("GET", "/v1/api", node=node).status == 200 for node in nodes),
             f"all nodes to know the user '{name}'")
    return user
