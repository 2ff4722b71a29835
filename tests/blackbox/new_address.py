#!/usr/bin/env python3
"""A node comes back under its old name at a new address, as a pod does: the others reach it within
seconds, also where its old machine has gone without a word.  The test prints the times.  Names are
in an /etc/hosts of the test's own; all addresses are of a loopback network of its own."""

import contextlib
import os
import shutil
import time

import namespaces
from lib import Cluster, equal, main, skip, wait_for

NAMES = {"p1": "proxy-one.dfc.test", "t1": "target-one.dfc.test", "t2": "target-two.dfc.test"}
BOUND_SECONDS = 30  # of a busy machine: the documents say 3 s
COUNT = 12


class NamedCluster(Cluster):
    """Its nodes know each other by name; the test itself reaches them by their addresses."""

    def __init__(self, **shape):
        self.addresses = dict.fromkeys(NAMES, "127.0.0.1")
        self.hosts = f"/tmp/dfc-hosts-{os.getpid()}"
        self.write_hosts()
        namespaces.run("mount", "--bind", self.hosts, "/etc/hosts")
        super().__init__(**shape)

    def args_of_up(self):
        names = [f"--node-arg={n}=--advertise={name}" for n, name in NAMES.items()]
        join = f"http://{NAMES['p1']}:{self.ports.base + 1}"
        return names + [f"--target-arg=--join={join}"]

    def write_hosts(self):
        rows = ["127.0.0.1 localhost"
                ] + [f"{self.addresses[n]} {name}" for n, name in NAMES.items()]
        with open(self.hosts, "w", encoding="ascii") as f:  # in place: the mount is of this file
            f.write("\n".join(rows) + "\n")

    def move(self, node, address):
        """Its process dies, and begins anew elsewhere.  Returns when it serves."""
        self.kill(node)
        self.nodes[node]["url"] = self.url(node).replace(self.addresses[node], address)
        self.addresses[node] = address
        self.write_hosts()
        start = ("start", node, f"--arg=--address={address}", "--ready-seconds",
                 1 if node == "p1" else 60)  # the script itself asks the first address of a proxy
        self.run(*start, ok=node != "p1")
        self.ended_by_test.discard(node)
        wait_for(lambda: self.serves(node), f"{node} serves")

    def serves(self, node):
        with contextlib.suppress(OSError):
            return self.call("GET", "/v1/health", node=node).status == 200
        return False

    def remove(self):
        super().remove()
        os.unlink(self.hosts)


def streamed(c, method, i, body=None):
    return c.object(method, "b", f"o{i}", body, query="redirect=never")


def all_are_served(c):
    return all(streamed(c, "GET", i).status == 200 for i in range(COUNT))


def in_time(condition, what):
    began = time.monotonic()
    wait_for(condition, what, BOUND_SECONDS)
    print(f"        {what}: {time.monotonic() - began:.2f} s after it serves", flush=True)


def reached(c, what):
    in_time(lambda: all_are_served(c), f"{what} is reached")
    for i in range(COUNT):
        equal(streamed(c, "PUT", i, b"again").status, 200, f"PUT of o{i} with {what}")


def test_a_target_moves(c):
    c.create("b")
    for i in range(COUNT):
        equal(streamed(c, "PUT", i, b"x").status, 200, f"PUT of o{i}")
    c.move("t1", "127.0.0.21")
    reached(c, "the target")


def test_its_old_machine_has_gone_without_a_word(c):
    """Kept connections lead to an address that answers no more, not even with a refusal."""
    for chain, way in (("INPUT", "-d"), ("OUTPUT", "-s")):
        namespaces.run("iptables", "-A", chain, way, "127.0.0.21", "-j", "DROP")
    c.move("t1", "127.0.0.23")
    reached(c, "the target")


def all_have_called(c):
    nodes = c.get_json("/v1/cluster")["nodes"]
    return all("capacity" in n for n in nodes if n["role"] == "target")


def test_the_proxy_moves(c):
    c.move("p1", "127.0.0.22")
    reached(c, "the proxy")
    in_time(lambda: all_have_called(c), "the proxy is found by the targets")


if __name__ == "__main__":
    if shutil.which("iptables") is None:
        skip("there is no program iptables")
    namespaces.enter("--net")
    namespaces.run("ip", "link", "set", "lo", "up")
    main(make=NamedCluster, proxies=1, targets=2)
