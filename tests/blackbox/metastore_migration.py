#!/usr/bin/env python3
"""The documents of a running embedded cluster go to etcd: no change is lost or made twice, terms
grow, the old log is nobody's source any more; killed at any step, it goes on."""

import http.client
import json
import os
import shutil
import subprocess
import threading
import time

from lib import Cluster, check, equal, end_on_signals, skip, wait_for

CREATE = {"action": "create"}


class Member:
    """etcd, alone, on ports of the cluster's block."""

    def __init__(self, c):
        self.client, peer = (f"http://127.0.0.1:{c.ports.base + i}" for i in (50, 51))
        self.argv = ["etcd", "--name", "e", "--data-dir", os.path.join(c.dir, "etcd"),
                     "--listen-client-urls", self.client, "--advertise-client-urls", self.client,
                     "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                     "--initial-cluster", f"e={peer}", "--log-level", "error",
                     "--logger", "zap", "--log-outputs", os.path.join(c.dir, "etcd.log")]
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.argv)  # ended by stop()

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def url(self):
        return self.client.replace("http://", "etcd://")


def names(c, node="p1"):
    return {b["name"] for b in c.get_json("/v1/buckets", node)["buckets"]}


def term(c):
    return c.get_json("/v1/cluster")["term"]


def migrate(c, etcd, prefix, *more):
    return c.dfcctl("cluster", "migrate-metastore", "--to", etcd.url(), "--etcd-prefix", prefix,
                    "--yes", *more)


def shared(etcd, prefix):
    return (f"--arg=--metastore={etcd.url()}", f"--arg=--etcd-prefix={prefix}")


def change_in_the_end(c, bucket, node="p1"):
    wait_for(
        lambda: c.call("POST", f"/v1/buckets/{bucket}", CREATE, node=node).status in (201, 409),
        f"bucket {bucket} at {node}")


class Creator(threading.Thread):
    """Makes buckets all the time; knows which were acknowledged, and which were refused."""

    def __init__(self, c):
        super().__init__()
        self.address = c.address("p1")
        self.acknowledged, self.refused, self.wrong = [], [], []
        self.over = threading.Event()

    def run(self):
        for i in range(100000):
            if self.over.is_set():
                return
            try:
                self.one(f"busy-{i}")
            except (OSError, http.client.HTTPException) as e:
                self.wrong.append(repr(e))
                return

    def one(self, name):
        connection = http.client.HTTPConnection(*self.address, timeout=60)
        try:
            connection.request("POST", f"/v1/buckets/{name}", json.dumps(CREATE))
            reply = connection.getresponse()
            body = reply.read()
        finally:
            connection.close()
        if reply.status == 201:
            self.acknowledged.append(name)
        elif reply.status == 503 and json.loads(body)["code"] == "not_primary":
            self.refused.append(name)
            time.sleep(0.02)  # a client that waits before it repeats
        else:
            self.wrong.append(f"{name}: {reply.status} {body}")


def test_a_place_that_is_taken_or_dead_changes_nothing(c, etcd):
    c.create("kept")
    c.put("kept", "o", b"bytes")
    before = term(c)
    for to in ("etcd://127.0.0.1:1", "nonsense"):
        done = c.dfcctl("cluster", "migrate-metastore", "--to", to, "--yes", "--retries", 0)
        check(done.returncode != 0 and to in done.stderr, f"{to}: {done}")
        check("onnect" in done.stderr or to == "nonsense", f"the reason: {done}")
        c.create("after-" + str(len(to)))
    check("--yes" in c.dfcctl("cluster", "migrate-metastore", "--to", etcd.url()).stderr,
          "it asks")
    equal(term(c), before, "term")


def test_under_load_nothing_is_lost_or_made_twice(c, etcd):
    before, old = term(c), names(c)
    creator = Creator(c)
    creator.start()
    try:
        wait_for(lambda: len(creator.acknowledged) >= 20, "some buckets")
        done = migrate(c, etcd, "/load")
        equal(done.returncode, 0, done.stderr)
        wait_for(lambda: creator.refused, "changes are refused")
        equal(c.get("kept", "o").expect(200).body, b"bytes", "GET meanwhile")
        c.put("kept", "meanwhile", b"more")
    finally:
        creator.over.set()
        creator.join()
    equal(creator.wrong, [], "other answers")
    again = migrate(c, etcd, "/load")
    equal(again.returncode, 0, f"the same again: {again.stderr}")
    check(migrate(c, etcd, "/other", "--retries", 0).returncode != 0, "to another place")
    equal(names(c), old | set(creator.acknowledged), "buckets of the old primary")
    # The proxy that reads the new place pushes to the old one, as long as that runs.
    url = c.get_json("/v1/daemon")["control_url"] + "/v1/cluster/state"
    state = c.member.request("GET", url).expect(200).json()
    state["version"] += 1
    pushed = c.member.request("PUT", url, json.dumps(state).encode()).expect(503)
    check("start it again" in pushed.json()["message"], pushed.body)
    # Nobody starts upon the log by mistake.
    c.stop("p1")
    refused = c.run("start", "p1", ok=False)
    check("have moved to " + etcd.url() in refused.stderr, refused.stderr)
    c.start("p1", *shared(etcd, "/load"))
    equal(names(c), old | set(creator.acknowledged), "buckets")
    wait_for(lambda: term(c) >> 44 > before >> 44, "the epoch has grown")  # it serves the old first
    change_in_the_end(c, creator.refused[0])
    c.wait_node("t1", "active")
    for name in ("o", "meanwhile"):
        c.get("kept", name).expect(200)
    # Also not when its own copy of the documents is gone.
    c.stop("p1")
    os.unlink(os.path.join(c.node_dir("p1"), "state.json"))
    c.start("p1", *shared(etcd, "/load"))
    wait_for(lambda: creator.refused[0] in names(c), "what etcd has counts")


def back_to_embedded(c):
    """The way back, as docs/guide/install.md tells it."""
    backup = os.path.join(c.dir, "back.json")
    equal(c.dfcctl("cluster", "backup", backup).returncode, 0, "backup")
    before, old = term(c), names(c)
    c.stop("p1")
    shutil.rmtree(os.path.join(c.node_dir("p1"), "metastore"))
    os.unlink(os.path.join(c.node_dir("p1"), "state.json"))
    c.start("p1", f"--arg=--import={backup}")
    os.unlink(backup)
    equal(names(c), old, "buckets")
    check(term(c) >> 44 > before >> 44, "the epoch has grown")
    c.wait_node("t1", "active")


def test_there_is_a_way_back(c, etcd):
    back_to_embedded(c)
    change_in_the_end(c, "back")
    equal(c.get("kept", "o").expect(200).body, b"bytes", "GET")


def killed_at(c, etcd, point, prefix):
    c.kill("p1")
    c.start("p1", f"--arg=--faults={point}=kill")
    c.wait_node("t1", "active")
    c.create(f"before-{point}")
    before, old = term(c), names(c)
    check(migrate(c, etcd, prefix, "--retries", 0).returncode != 0, "it was killed")
    wait_for(lambda: c.pid("p1") is None, "it is dead")
    c.ended_by_test.add("p1")
    refused = c.run("start", "p1", ok=False)
    check("have moved" in refused.stderr, refused.stderr)
    c.start("p1", *shared(etcd, prefix))
    wait_for(lambda: c.get_json("/v1/daemon")["primary"], "it is primary there")
    equal(names(c), old, f"buckets after {point}")
    check(term(c) >> 44 > before >> 44, "the epoch has grown")
    change_in_the_end(c, f"after-{point}")
    c.get("kept", "o").expect(200)


def test_killed_when_the_log_is_marked_it_goes_on(c, etcd):
    killed_at(c, etcd, "migrate.marked", "/marked")
    back_to_embedded(c)


def test_killed_when_etcd_has_it_it_goes_on(c, etcd):
    killed_at(c, etcd, "migrate.written", "/written")
    back_to_embedded(c)


def test_one_proxy_grows_to_two_that_hand_over(c, _):
    change_in_the_end(c, "kept")
    c.put("kept", "o", b"bytes")
    old = names(c)
    c.run("grow", "--proxies", 2)
    c.nodes = {n["name"]: n for n in c.status()}
    for proxy in ("p1", "p2"):
        wait_for(lambda p=proxy: names(c, p) == old, f"{proxy} has the buckets")
    change_in_the_end(c, "grown", "p2")
    c.get("kept", "o", node="p2").expect(200)
    for proxy in ("p2", "p1"):
        c.wait_node(proxy, "active")  # a new primary may not have heard of the other one in time
        done = c.dfcctl("cluster", "set-primary", proxy)
        equal(done.returncode, 0, done.stderr)
        wait_for(lambda p=proxy: c.get_json("/v1/cluster")["primary"] == p, f"{proxy} is primary")
    check(c.dfcctl("cluster", "set-primary", "p9").returncode == 3, "there is no p9")
    check(c.dfcctl("cluster", "set-primary", "t1").returncode != 0, "t1 is no proxy")
    check("already" in c.run("grow", ok=False).stderr, "once is enough")


def main():
    if shutil.which("etcd") is None:
        skip("there is no etcd (Debian: etcd-server)")
    from lib import run_one
    import sys
    end_on_signals()
    only = sys.argv[1:]
    c = Cluster(targets=1, args=("--proxy-arg=--keepalive-timeout=2s",))
    etcd = Member(c)
    failed = []
    try:
        etcd.start()
        for name, function in list(globals().items()):
            if name.startswith("test_") and (not only or name in only):
                if not run_one(name, function, c, etcd):
                    failed.append(name)
        if failed:
            c.print_logs()
        wrong = c.verdict()
    finally:
        etcd.stop()
    for sentence in wrong:
        print(f"not ok  {sentence}")
    sys.exit(1 if failed or wrong else 0)


if __name__ == "__main__":
    main()
