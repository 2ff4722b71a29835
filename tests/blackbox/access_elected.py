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


if __name__ == "__main__":
    main(ElectedCluster, proxies=3, targets=1, metastore="etcd")
