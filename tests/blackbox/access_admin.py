#!/usr/bin/env python3
"""With --admin-port a node has operators' calls on the admin listener, under their rights, and none
of them on the public one.  dfcctl finds the admin listeners of nodes."""

import json

from access_lib import GuardedCluster, make_user
from access_routes import all_rows, path_of
from lib import check, equal, main

NODES = ("t1", "p1")


class AdminCluster(GuardedCluster):
    """Each node has an admin listener."""

    def __init__(self, **shape):
        super().__init__(**shape)
        self.nobody = make_user(self, "nobody", [])
        for port, node in enumerate(NODES, self.ports.base + 50):
            self.stop(node)
            self.start(node, f"--arg=--admin-port={port}")
        self.admin = {node: self.admin_url(node) for node in NODES}

    def admin_url(self, node):
        with open(self.node_dir(node) + "/ready.json", encoding="utf-8") as f:
            return json.load(f)["admin_url"]


def operators_rows(c):
    """Those that public listeners have for their rights alone."""
    rows = [(node, row) for node, row in all_rows(c)
            if "public" not in row["listeners"] and row["right"] not in ("node", "operation")]
    check(len(rows) > 20, f"only {len(rows)} rows")
    return rows


def ask(c, base, row, headers=None):
    body = None if row["method"] in ("GET", "HEAD") else b"{no JSON"
    return c.http.request(row["method"], base + path_of(row) + "?no_such_parameter=1", body, headers,
                          follow=False)


def test_the_public_listener_has_no_calls_of_operators(c):
    for node, row in operators_rows(c):
        ask(c, c.url(node), row).expect(401, "unauthorized")
        ask(c, c.url(node), row, c.root.headers()).expect(404, "no_such_route", "--admin-port")


def test_the_admin_listener_asks_for_their_rights(c):
    for node, row in operators_rows(c):
        ask(c, c.admin[node], row).expect(401, "unauthorized")
        ask(c, c.admin[node], row, {"Authorization": "Bearer x"}).expect(401, "unauthorized")
        if row["right"] != "any":
            ask(c, c.admin[node], row, c.nobody.headers()).expect(403, "access_denied")
        reply = ask(c, c.admin[node], row, c.root.headers())
        check(reply.status not in (401, 403, 404), f"{node} {row['name']}: {reply!r}")


def test_it_has_the_public_calls(c):
    """An operator needs no other endpoint."""
    for node in NODES:
        c.http.request("GET", c.admin[node] + "/v1/health").expect(200)
        c.http.request("GET", c.admin[node] + "/v1/daemon").expect(401)
        c.http.request("GET", c.admin[node] + "/metrics").expect(200)
        c.http.request("GET", c.url(node) + "/metrics").expect(401)
    c.create("b")
    c.put("b", "o", b"x")
    got = c.http.request("GET", c.admin["p1"] + "/v1/objects/b/o", headers=c.root.headers())
    equal(got.expect(200).body, b"x", "an object by way of the admin listener")


def dfcctl(c, endpoint, *args):
    env = {"DFC_ENDPOINT": endpoint, "DFC_ACCESS_KEY": c.root.access,
           "DFC_SECRET_KEY": c.root.secret, "DFC_CLUSTER_KEY_FILE": ""}
    return c.dfcctl(*args, env=env)


def test_dfcctl_administers_there(c):
    for args in (("config", "set", "jobs_max", 400), ("user", "create", "ann"),
                 ("config", "set", "--node", "t1", "log_level", "debug"),
                 ("storage", "mountpath", "disable", "t1", c.node_dir("t1") + "/mp2"),
                 ("storage", "mountpath", "enable", "t1", c.node_dir("t1") + "/mp2")):
        done = dfcctl(c, c.admin["p1"], *args)
        equal(done.returncode, 0, f"{args}: {done.stdout}{done.stderr}")
    done = dfcctl(c, c.url("p1"), "config", "set", "jobs_max", 400)
    check(done.returncode != 0 and "--admin-port" in done.stderr, done.stderr)


def test_a_bundle_has_no_owners_of_buckets(c):
    c.create("owned")
    asked = c.http.request("GET", c.admin["p1"] + "/v1/cluster?what=bmd", headers=c.root.headers())
    buckets = asked.expect(200).json()["buckets"]
    check(any("owner" in b for b in buckets), f"a bucket has an owner: {buckets}")
    bundle = json.loads(dfcctl(c, c.admin["p1"], "support", "bundle", "-").stdout)
    kept = bundle["cluster"]["bmd"]["buckets"]
    equal([b["name"] for b in kept], [b["name"] for b in buckets], "buckets")
    check(not any("owner" in b for b in kept), kept)


if __name__ == "__main__":
    main(AdminCluster, targets=1)
