#!/usr/bin/env python3
"""A proxy alone: what it acknowledged survives kills at any moment, and what is damaged is told."""

import glob
import http.client
import json
import os
import subprocess
import threading

from lib import BUILD, Failed, check, equal, main, wait_for

PROXYD = os.path.join(BUILD, "dfc-proxyd")


def names(c):
    return {b["name"] for b in c.get_json("/v1/buckets")["buckets"]}


def store(c):
    return os.path.join(c.node_dir("p1"), "metastore")


class Creator(threading.Thread):
    """Makes buckets until the proxy goes away; knows which were acknowledged."""

    def __init__(self, c, prefix):
        super().__init__()
        self.address, self.prefix = c.address("p1"), prefix
        self.acknowledged, self.asked = [], 0

    def run(self):
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        try:
            while True:
                name = f"{self.prefix}-{self.asked}"
                self.asked += 1
                connection.request("POST", f"/v1/buckets/{name}", '{"action": "create"}')
                response = connection.getresponse()
                response.read()
                if response.status == 201:
                    self.acknowledged.append(name)
        except (OSError, http.client.HTTPException):
            return


def create_until_killed(c, prefix, kill):
    """Several clients create; returns what was acknowledged to them."""
    creators = [Creator(c, f"{prefix}-{i}") for i in range(3)]
    for creator in creators:
        creator.start()
    kill(creators)
    for creator in creators:
        creator.join()
    return {name for creator in creators for name in creator.acknowledged}


def test_kills_lose_nothing_that_was_acknowledged(c):
    expected = set()
    for i in range(8):
        def kill(creators, wanted=5 * (i + 1)):
            wait_for(lambda: sum(len(t.acknowledged) for t in creators) >= wanted, "creations")
            c.kill("p1", "-9")

        expected |= create_until_killed(c, f"k{i}", kill)
        c.start("p1")
        lost = expected - names(c)
        check(not lost, f"acknowledged and lost: {sorted(lost)}")


def test_kills_at_every_step_of_a_commit(c):
    """The faults kill the process where it writes, syncs and renames, folds of the log included."""
    expected = names(c)
    c.kill("p1", "-9")
    for fault in ("metastore.write=kill@4", "disk.write=kill@3", "disk.sync=kill@5",
                  "disk.rename=kill@2", "disk.rename=kill@4", "disk.rename=kill@5",
                  "disk.sync=kill@20"):
        c.ended_by_test.add("p1")
        # Where the kill falls into the start, that is a kill, too.
        c.run("start", "p1", f"--arg=--faults={fault}", "--arg=--metastore-fold=4KiB", ok=False)
        expected |= create_until_killed(c, fault.replace("=", "-").replace("@", "-"),
                                        lambda _: wait_for(lambda: c.pid("p1") is None, fault))
        c.start("p1")
        lost = expected - names(c)
        check(not lost, f"{fault}: acknowledged and lost: {sorted(lost)}")
        c.kill("p1", "-9")
    c.start("p1")


def refused_start(c):
    """The last line of the log of a proxy that did not start."""
    done = c.run("start", "p1", ok=False)
    check(done.returncode != 0, "the proxy started")
    return c.log("p1").splitlines()[-1]


def test_damage_is_refused_with_the_way_out(c):
    before = names(c)
    c.kill("p1", "-9")
    log = os.path.join(store(c), "log")
    with open(log, "rb") as f:
        good = f.read()
    with open(log, "wb") as f:
        f.write(good[:30] + bytes([good[30] ^ 1]) + good[31:])
    line = refused_start(c)
    check("damaged at byte" in line and "truncate -s" in line and "backup" in line, line)
    with open(log, "wb") as f:
        f.write(good + b"\0" * 700)  # what a crash can leave behind is not damage
    c.start("p1")
    equal(names(c), before, "buckets")


def test_a_directory_has_one_user(c):
    done = subprocess.run([PROXYD, "--id", "p1", "--dir", c.node_dir("p1")], capture_output=True,
                          text=True, check=False, timeout=60)
    equal(done.returncode, 1, "status of the second proxy")
    check(f"process {c.pid('p1')} uses this directory" in done.stderr, done.stderr)


def test_a_state_can_be_imported(c):
    """The directory is lost; any node's copy of the state begins the cluster's next life."""
    before = names(c)
    state = c.get_json("/v1/cluster?what=state")
    copy = os.path.join(c.dir, "copy.json")
    with open(copy, "w", encoding="utf-8") as f:
        json.dump(state, f)
    c.kill("p1", "-9")
    os.rename(store(c), store(c) + ".lost")
    c.start("p1", f"--arg=--import={copy}")
    equal(names(c), before, "buckets")
    cluster = c.get_json("/v1/cluster")
    equal(cluster["cluster"], state["cluster"], "the cluster's id")
    check(cluster["term"] > state["term"], "the term has not grown")
    c.kill("p1", "-9")
    line = c.run("start", "p1", f"--arg=--import={copy}", ok=False).stderr
    check("has documents already" in line, line)
    c.start("p1")


def test_a_follower_of_another_cluster_is_refused(c):
    directory = os.path.join(c.dir, "stranger")
    os.mkdir(directory)
    state = c.get_json("/v1/cluster?what=state")
    state["cluster"] = "c-another"
    with open(os.path.join(directory, "state.json"), "w", encoding="utf-8") as f:
        json.dump(state, f)
    control = c.get_json("/v1/daemon")["control_url"]
    before = c.get_json("/v1/cluster")["version"]
    with subprocess.Popen([PROXYD, "--id", "p9", "--dir", directory, "--join", control,
                           "--cluster-key-file", c.key_file],
                          stderr=subprocess.PIPE, text=True) as stranger:
        try:
            for line in stranger.stderr:
                if "wrong_cluster" in line:
                    break
            else:
                raise Failed("the stranger ended without a word")
        finally:
            stranger.terminate()
    equal(c.get_json("/v1/cluster")["version"], before, "version: the stranger is not in the map")


def test_a_stop_leaves_no_ready_file(c):
    path = os.path.join(c.node_dir("p1"), "ready.json")
    with open(path, encoding="utf-8") as f:
        ready = json.load(f)
    equal(ready["pid"], c.pid("p1"), "pid")
    equal(sorted(ready), ["control_url", "data_url", "id", "pid", "public_url"], "fields")
    c.stop("p1")
    check(not os.path.exists(path), "ready.json is left")
    equal(glob.glob(os.path.join(c.node_dir("p1"), "**", "*.tmp-*"), recursive=True), [],
          "temporary files")
    c.start("p1")


def test_the_command_line(c):
    def run(*args):
        return subprocess.run([PROXYD, *args], capture_output=True, text=True, check=False,
                              timeout=60)

    for option, text in (("--help", "--metastore-fold=SIZE"), ("--version", "dfc-proxyd "),
                         ("--api-markdown", "### bucket_create"),
                         ("--params-markdown", "keepalive_timeout"),
                         ("--metrics-markdown", "| `dfc_object_put_total` | counter | "),
                         ("--errors-markdown", "| 404 | `bucket_not_found` | ")):
        done = run(option)
        equal(done.returncode, 0, option)
        check(text in done.stdout and not done.stderr, f"{option}: {done}")
    for args, text in ((("--id", "p1"), "--dir"), (("--dir", "/tmp/x"), "--id"),
                       (("--nonsense", "1"), "nonsense"), (("--public-port", "x"), "public-port"),
                       (("--id", "a b", "--dir", "/tmp/x"), "a b"),
                       (("--id", "p", "--dir", c.node_dir("p1") + "/ready.json"), "ready.json")):
        done = run(*args)
        equal(done.returncode, 1, f"status of {args}")
        check(text in done.stderr, f"{args}: {done.stderr}")


if __name__ == "__main__":
    main(proxies=1, targets=0)
