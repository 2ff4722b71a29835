#!/usr/bin/env python3
"""Root of a cluster whose primary is elected: one user, one file, also after another proxy leads."""

import json
import os

from access_lib import Identity
from lib import Cluster, check, equal, main, wait_for


class ElectedCluster(Cluster):
    bare = Cluster.call

    def args_of_up(self):
        return ("--auth",)


def files(c):
    return [os.path.join(c.node_dir(p), "root.json") for p in c.nodes
            if p.startswith("p") and os.path.exists(os.path.join(c.node_dir(p), "root.json"))]


def root_of(c):
    wait_for(lambda: files(c), "root.json")
    with open(files(c)[0], encoding="utf-8") as f:
        keys = json.load(f)
    return Identity(c, keys["access_key"], keys["secret_key"])


def names(root, node):
    reply = root.call("GET", "/v1/users", node=node)
    return [u["name"] for u in reply.json()["users"]] if reply.status == 200 else None


def primary_of(root, node):
    reply = root.call("GET", "/v1/cluster", node=node)
    return reply.json()["primary"] if reply.status == 200 else None


def test_root_is_made_once(c):
    root = root_of(c)
    wait_for(lambda: root.login().status == 200, "root to be known")
    primary = root.call("GET", "/v1/cluster").expect(200).json()["primary"]
    others = [p for p in c.nodes if p.startswith("p") and p != primary]
    wait_for(lambda: all(names(root, p) == ["root"] for p in others), "root at every proxy")
    c.kill(primary)
    wait_for(lambda: primary_of(root, others[0]) in others, "the next primary")
    wait_for(lambda: names(root, others[0]) == ["root"], "root under the next primary")
    equal(len(files(c)), 1, f"files with keys of root: {files(c)}")
    check(os.stat(files(c)[0]).st_mode & 0o077 == 0, "others may read the file")


def test_a_proxy_that_leads_resets_root_once(c):
    """The others keep their start; a later primary resets nothing."""
    old_file = files(c)[0]
    before = root_of(c)
    chosen, *others = (p for p in alive(c) if c.node_dir(p) != os.path.dirname(old_file))
    wait_for(lambda: before.login(chosen).status == 200, "root to be known")
    c.stop(chosen)
    c.start(chosen, "--arg=--reset-root")
    for proxy in alive(c):
        if proxy != chosen:
            c.kill(proxy)
    wait_for(lambda: len(files(c)) == 2, "root.json of the reset")
    os.remove(old_file)
    root = root_of(c)
    wait_for(lambda: root.login(chosen).status == 200, "the new key")
    before.login(chosen).expect(401)
    c.start(others[0])
    c.kill(chosen)
    wait_for(lambda: root.login(others[0]).status == 200, "the new key under the next primary")
    equal(len(files(c)), 1, f"files with keys of root: {files(c)}")


def test_a_proxy_without_the_flag_does_not_lead(c):
    """Elected, it gives up, and serves nothing; one with the flag leads."""
    leader, *_ = alive(c)
    spare = next(p for p in c.nodes if p.startswith("p") and p != leader)
    root = root_of(c)
    for proxy in alive(c):
        c.kill(proxy)
    c.run("start", spare, "--arg=--public-auth=false", "--ready-seconds", "1", ok=False)
    wait_for(lambda: "elected, but cannot be primary" in c.log(spare), "the refusal")
    check("start every node with --public-auth" in c.log(spare), "the log says how")
    c.bare("GET", "/v1/buckets", node=spare).expect(503, "not_ready", "--public-auth")
    c.start(leader)
    wait_for(lambda: root.login(leader).status == 200, "a primary with the flag")
    c.kill(spare)


def alive(c):
    return [n["name"] for n in c.status() if n["role"] == "proxy" and n["pid"] is not None]


if __name__ == "__main__":
    main(ElectedCluster, proxies=3, targets=1, metastore="etcd")
