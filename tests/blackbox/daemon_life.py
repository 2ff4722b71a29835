#!/usr/bin/env python3
"""A daemon as a process: what it says and makes before it serves, whom its files may be read by,
what signals do."""

import contextlib
import json
import os
import re
import socket
import stat
import subprocess
import sys
import time

from lib import BUILD, CLUSTER, Member, check, equal, main, wait_for


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def proxy_arguments(c, directory, **changed):
    given = {"id": "p9", "dir": directory, "public-port": 0, "control-port": 0, **changed}
    return [
        os.path.join(BUILD, "dfc-proxyd"),
        *(f"--{name.replace('_', '-')}={value}" for name, value in given.items())
    ]


def refused_start(arguments):
    """What a daemon that does not start has logged."""
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    equal(done.returncode, 1, f"status of {arguments}: {done.stderr}")
    return done.stderr


def test_no_cluster_begins_where_the_start_fails(c):
    key = os.path.join(c.dir, "short.key")
    with open(key, "w", encoding="ascii",
              opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
        f.write("short\n")
    taken = c.url("p1").rpartition(":")[2]
    directory = os.path.join(c.dir, "never")
    for wrong in ({"cluster-key-file": key}, {
            "address": "192.0.2.1", "cluster-key-file": c.key_file
    }, {"public-port": taken}, {"control-port": taken}):
        log = refused_start(proxy_arguments(c, directory, **wrong))
        check("dfc-proxyd ends" in log and "a new cluster" not in log, f"{wrong}: {log}")
        made = [name for _, _, files in os.walk(directory) for name in files if name != "lock"]
        equal(made, [], f"{wrong}: files that were made")


def test_a_start_that_fails_is_told_where_it_was_made(c):
    """With a log file, too: its reader is not the one who has just typed the command."""
    log_file = os.path.join(c.dir, "p9.log")
    told = refused_start(proxy_arguments(c, "", **{"log-file": log_file}))
    equal(told, "dfc-proxyd: --dir: the proxy needs a directory of its own\n", "standard error")
    with open(log_file, encoding="utf-8") as f:
        check("dfc-proxyd ends" in f.read(), "the log has it")


def test_documents_are_for_the_daemon_alone(c):
    proxy = c.node_dir("p1")
    private = [os.path.join(proxy, "metastore", name) for name in ("log", "snapshot")]
    copies = [
        os.path.join(c.node_dir("t1"), mp, ".dfc", "docs", "state.json") for mp in ("mp1", "mp2")
    ]
    for path in private + copies:
        equal(oct(mode_of(path)), "0o600", path)
    equal(oct(mode_of(os.path.join(proxy, "metastore"))), "0o700", "the metastore's directory")
    follower = os.path.join(c.node_dir("p2"), "state.json")
    wait_for(lambda: os.path.exists(follower), "p2's copy of the documents")
    equal(oct(mode_of(follower)), "0o600", follower)


def test_earlier_files_are_closed_at_the_start(c):
    """As an earlier build made them."""
    paths = [os.path.join(c.node_dir("p1"), "metastore", name) for name in ("log", "snapshot")]
    paths += [os.path.join(c.node_dir("p2"), "state.json")]
    c.stop("p1")
    c.stop("p2")
    os.chmod(os.path.dirname(paths[0]), 0o755)
    for path in paths:
        os.chmod(path, 0o644)
    c.start("p1")
    c.start("p2")
    for path in paths:
        equal(oct(mode_of(path)), "0o600", path)
    equal(oct(mode_of(os.path.dirname(paths[0]))), "0o700", "the metastore's directory")


def test_a_backup_is_for_its_owner(c):
    path = os.path.join(c.dir, "backup.json")
    with open(path, "w", encoding="ascii") as f:
        f.write("an earlier one")
    os.chmod(path, 0o644)
    done = c.dfcctl("cluster", "backup", path)
    equal(done.returncode, 0, done.stderr)
    equal(oct(mode_of(path)), "0o600", path)


def metrics(c, node):
    """By name, labels included."""
    lines = c.call("GET", "/metrics", node=node).expect(200).body.decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")
    }


def built(program):
    text = subprocess.run([os.path.join(BUILD, program), "--version"], capture_output=True,
                          text=True, check=True).stdout
    found = re.fullmatch(rf"{program} (\S+?)(?: \((\S+)\))?, built (\S+)\n", text)
    check(found, f"--version of {program}: {text!r}")
    return found.group(1), found.group(2) or "", found.group(3)


def test_which_build_it_is_is_said_everywhere(c):
    release, commit, day = built("dfc-targetd")
    equal(built("dfcctl"), (release, commit, day), "dfcctl --version")

    def told():
        """Nodes tell the primary with their first keepalive."""
        nodes = json.loads(c.dfcctl("node", "ls", "-o", "json").stdout)["nodes"]
        return nodes if all("commit" in n for n in nodes) else None

    nodes = wait_for(told, "every node's build")
    equal({(n["release"], n["commit"]) for n in nodes}, {(release, commit)}, "node ls")
    status = c.dfcctl("cluster", "status").stdout
    equal(status.count(f"{release} ({commit})" if commit else release), len(nodes),
          f"cluster status:\n{status}")
    check("different builds" not in status, status)
    for node in ("p1", "p2", "t1"):
        info = c.get_json("/v1/daemon", node)
        equal((info["release"], info["commit"]), (release, commit), f"/v1/daemon of {node}")
        equal(
            metrics(c, node).get(
                f'dfc_build_info{{version="{release}",commit="{commit}",built="{day}"}}'), 1,
            f"{node}: build")
        first = c.log(node).splitlines()[0]
        check(
            f"starting program=dfc-{'targetd' if node == 't1' else 'proxyd'} release={release}"
            in first, first)


def test_a_process_says_what_it_takes(c):
    for node in ("p1", "t1"):
        seen = metrics(c, node)
        check(seen["process_cpu_seconds_total"] > 0, f"{node}: CPU")
        check(1 << 20 < seen["process_resident_memory_bytes"] < 4 << 30, f"{node}: memory")
        check(10 < seen["process_open_fds"] < seen["process_max_fds"], f"{node}: descriptors")
        check(0 <= time.time() - seen["process_start_time_seconds"] < 3600, f"{node}: start")
        check(not [name for name in seen if name.startswith("dfc_process")],
              f"{node}: names of all programs")


def test_what_is_worth_an_alarm_is_in_the_metrics(c):
    equal([metrics(c, n)["dfc_cluster_primary"] for n in ("p1", "p2")], [1, 0],
          "which proxy is the primary")
    c.create("b")
    for name in ("dfc_cluster_lagging_targets", "dfc_scrub_age_seconds"):
        check(metrics(c, "p1")[name] >= 0, name)
    path = os.path.join(c.node_dir("t1"), "mp2")

    def states():
        seen = metrics(c, "t1")
        return {s: seen.get(f'dfc_mountpath_state{{mountpath="{path}",state="{s}"}}')
                for s in ("enabled", "leaving", "disabled", "missing")}

    equal(states(), {"enabled": 1, "leaving": 0, "disabled": 0, "missing": 0}, "at first")
    equal(metrics(c, "t1")["dfc_objects_lost"], 0, "lost objects")
    equal(c.dfcctl("storage", "mountpath", "disable", "t1", path).returncode, 0, "disable")
    equal(states(), {"enabled": 0, "leaving": 0, "disabled": 1, "missing": 0}, "disabled")
    capacity = f'dfc_mountpath_capacity_bytes{{mountpath="{path}"}}'
    equal(metrics(c, "t1")[capacity], 0, "capacity of what is not open")
    equal(c.dfcctl("storage", "mountpath", "enable", "t1", path).returncode, 0, "enable")
    equal(states()["enabled"], 1, "enabled again")
    check(metrics(c, "t1")[capacity] > 0, "its capacity")


def test_the_colour_of_the_health_is_a_metric(c):
    def colours(node):
        seen = metrics(c, node)
        return {
            colour: seen[f'dfc_cluster_health{{colour="{colour}"}}']
            for colour in ("green", "yellow", "red")
        }

    def is_only(colour):
        said = json.loads(c.dfcctl("cluster", "health", "-o", "json").stdout)["health"]
        heard = c.get_json("/v1/cluster")["health"]
        return said == heard == colour and colours("p1") == {
            "green": 0, "yellow": 0, "red": 0, colour: 1}

    wait_for(lambda: is_only("green"), "green, for dfcctl and in the metric")
    equal(set(colours("p2").values()), {0}, "a proxy that is not the primary judges nothing")
    equal(c.get_json("/v1/cluster", node="p2")["health"], "green", "it says what the primary says")
    c.stop("p2")
    wait_for(lambda: is_only("yellow"), "yellow without a proxy")
    c.start("p2")
    wait_for(lambda: is_only("green"), "green again")
    c.stop("t1")
    wait_for(lambda: is_only("red"), "red without a target")
    c.start("t1")
    wait_for(lambda: is_only("green"), "green in the end")


def test_a_node_that_is_killed_is_late_before_it_is_given_up(c):
    """Health and `node ls` say so while the map is as it was."""
    def node(name):
        return next(n for n in c.get_json("/v1/cluster")["nodes"] if n["id"] == name)

    for name in ("t1", "p2"):
        wait_for(lambda n=name: node(n).get("silent_ms", 9999) < 1500, f"{name} reports")
        check("late" not in node(name), f"{name} at first: {node(name)}")
        version = c.get_json("/v1/cluster")["version"]
        c.kill(name, "-9")
        late = wait_for(
            lambda n=name: node(n)
            if "late" in node(n) or node(n)["state"] != "active" else None, f"{name} is late")
        equal((late["state"], late.get("late")), ("active", True), f"{name} before it is given up")
        said = c.dfcctl("cluster", "health").stdout
        check(f"yellow  '{name}' has not reported to the primary for " in said, f"health: {said}")
        listed = next(line for line in c.dfcctl("node", "ls").stdout.splitlines()
                      if line.startswith(name))
        check("active (late 2." in listed or "active (late 3." in listed, f"node ls: {listed}")
        equal(c.get_json("/v1/cluster")["version"], version, "nothing has been decided yet")
        c.wait_node(name, "unreachable")
        check("late" not in node(name), f"{name} in the end: {node(name)}")
        c.start(name)
        wait_for(
            lambda n=name: node(n)["state"] == "active" and node(n).get("silent_ms", 9999) < 1500,
            f"{name} is back")


def test_jobs_that_fail_are_counted(c):
    c.create("d")
    c.put("d", "a.tar", b"this is no tar").expect(200)
    spec = {
        "input_bck": {"name": "d"}, "output_bck": {"name": "d"},
        "input_format": {"objnames": ["a.tar"]}, "output_format": "out-%d.tar",
        "output_shard_size": "1MiB", "algorithm": {"kind": "alphanumeric"}
    }
    for failures in (1, 2):
        equal(c.wait_job(c.sort(spec))["state"], "failed", "a sort of what is no shard")
        # Counted when the primary hears that its change is durable; a reader may see it before.
        wait_for(lambda n=failures: metrics(c, "p1").get('dfc_jobs_failed_total{kind="sort"}') == n,
                 f"{failures} failed sorts")


def test_metrics_need_no_key(c):
    for node in ("p1", "p2", "t1"):
        info = c.get_json("/v1/daemon", node)
        for net in ("public", "control", "data"):
            url = info[net + "_url"]
            if url:
                reply = c.http.request("GET", url + "/metrics").expect(200)
                check(b"dfc_http_connections" in reply.body, f"{node} {net}: {reply!r}")
    check("without proof of membership" not in c.log("t1"), "a scrape is no intruder")


def signal(c, node, name):
    c.run("kill", node, "-s", name)


def says(c, node, text, since=0):
    return wait_for(lambda: text in c.log(node)[since:], f"'{text}' in the log of {node}")


def test_signals_without_a_meaning_end_nobody(c):
    for node in ("p2", "t1"):
        pid = c.pid(node)
        for name in ("USR1", "USR2", "HUP"):
            signal(c, node, name)
        says(c, node, "reloading")
        equal(c.log(node).count("means nothing here"), 2, f"{node}: lines of SIGUSR1 and SIGUSR2")
        equal(c.pid(node), pid, f"{node}: its process")


def test_a_hangup_opens_the_log_anew_and_reads_the_file(c):
    log, config = os.path.join(c.dir, "t1.log"), os.path.join(c.dir, "t1.json")

    def write(**values):
        with open(config, "w", encoding="ascii") as f:
            json.dump(values, f)

    def value(name):
        rows = c.get_json("/v1/daemon?what=params", "t1")["params"]
        return next(r["value"] for r in rows if r["name"] == name)

    write(copy_parallel=5, log_level="info")
    c.stop("t1")
    c.start("t1", f"--arg=--log-file={log}", f"--arg=--config={config}")
    with open(log, encoding="utf-8") as f:
        check("starting program=dfc-targetd" in f.readline(), "the log file begins with the start")
    os.rename(log, log + ".1")
    write(copy_parallel=9, log_level="debug", workers=7)
    signal(c, "t1", "HUP")

    def both():
        if not os.path.exists(log):
            return None
        with open(log, encoding="utf-8") as f:
            text = f.read()
        return text if "needs a restart" in text and "log_level" in text else None

    text = wait_for(both, "a new log that says what was taken")
    check("parameter changed name=copy_parallel" in text, text)
    check("parameter needs a restart to change name=workers" in text, text)
    equal((value("copy_parallel"), value("log_level")), (9, "debug"), "parameters in force")
    c.dfcctl("config", "set", "--node", "t1", "copy_parallel", "11")
    with open(config, "w", encoding="ascii") as f:
        f.write("{")
    signal(c, "t1", "HUP")
    wait_for(lambda: "configuration not taken" in open(log, encoding="utf-8").read(),
             "a broken file is told of")
    write(copy_parallel=9, log_level="info", archive_formats="arj")
    signal(c, "t1", "HUP")
    wait_for(lambda: "--archive-formats" in open(log, encoding="utf-8").read(),
             "a value that the start would refuse is told of")
    equal(value("log_level"), "debug", "nothing of it is taken")
    write(copy_parallel=9, log_level="info", workers=7)
    signal(c, "t1", "HUP")
    wait_for(lambda: value("log_level") == "info", "the next one is taken")
    equal(value("copy_parallel"), 11,
          "what config set has changed stays, for the file says the same as before")
    c.stop("t1")
    c.start("t1")


def test_the_key_is_changed_without_a_restart(c):
    def key(*lines):
        with open(c.key_file, "w", encoding="ascii") as f:
            f.write("".join(line + "\n" for line in lines))
        for node in ("p1", "p2", "t1"):
            before = len(c.log(node))
            signal(c, node, "HUP")
            says(c, node, "cluster key changed", before)

    with open(c.key_file, encoding="ascii") as f:
        old = f.read().strip()
    new = "n" * 64
    pids = [c.pid(n) for n in ("p1", "p2", "t1")]
    c.create("k")
    stranger = Member(c.http, c.key_file)  # has come in by the old key
    url = c.get_json("/v1/daemon", "t1")["control_url"] + "/v1/cluster/state"
    equal(stranger.request("GET", url).status, 200, "with the old key")
    for step, lines in enumerate(((old, new), (new, old), (new,))):
        key(*lines)
        c.put("k", f"o{step}", b"x").expect(200)
        wait_for(lambda: c.dfcctl("cluster", "status").stdout.count(" active ") == 3,
                 "all nodes are active")
    equal([c.pid(n) for n in ("p1", "p2", "t1")], pids, "processes")
    refused = c.http.request("GET", url, headers=stranger.sign("GET", url), follow=False)
    refused.expect(401, "unauthorized")  # its session went with its key
    equal(Member(c.http, c.key_file).request("GET", url).status, 200, "one of the new key")
    with open(c.key_file, "w", encoding="ascii") as f:
        f.write("short\n")
    before = len(c.log("t1"))
    signal(c, "t1", "HUP")
    says(c, "t1", "cluster key not taken", before)
    with open(c.key_file, "w", encoding="ascii") as f:
        f.write(new + "\n")
    c.put("k", "last", b"x").expect(200)


class Manager:
    """What systemd is for a service of Type=notify: a socket for messages."""

    def __init__(self, name):
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name[0] == "@" else name)
        self.socket.settimeout(60)

    def until(self, line):
        """The messages up to the first with that line, each as its lines."""
        heard = []
        while not heard or line not in heard[-1]:
            heard.append(self.socket.recv(4096).decode().splitlines())
        return heard

    def forget(self):
        """What has come, and was not read."""
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while self.socket.recv(4096):
                pass
        self.socket.settimeout(60)

    def start(self, c, node):
        started = subprocess.run([sys.executable, CLUSTER, "start", node, "--dir", c.dir],
                                 env={**os.environ, "DFC_BUILD": BUILD, "NOTIFY_SOCKET": self.name},
                                 capture_output=True, text=True, check=False)
        equal(started.returncode, 0, started.stderr)


def reload_often(c, node):
    """More messages than a manager's queue takes."""
    for _ in range(8):
        before = len(c.log(node))
        signal(c, node, "HUP")
        says(c, node, "reloading", before)


def test_the_service_manager_hears_of_a_target(c):
    """And is no hindrance when it does not read."""
    c.stop("t1")
    manager = Manager(os.path.join(c.dir, "notify"))
    manager.start(c, "t1")
    heard = manager.until("READY=1")
    check(os.path.exists(os.path.join(c.node_dir("t1"), "ready.json")), "t1 is ready")
    equal(heard[0], ["STATUS=opening the mountpaths", "EXTEND_TIMEOUT_USEC=900000000"], "at first")
    equal(heard[-1], ["READY=1", "STATUS=serving"], "then")
    signal(c, "t1", "HUP")
    reload = manager.until("READY=1")
    equal([m[0] for m in reload], ["RELOADING=1", "READY=1"], "at SIGHUP")
    check(re.fullmatch(r"MONOTONIC_USEC=\d+", reload[0][1]), f"at SIGHUP: {reload}")
    reload_often(c, "t1")
    manager.forget()
    done = c.dfcctl("config", "set", "--node", "t1", "stop_drain", "1h")
    equal(done.returncode, 0, done.stderr)
    c.stop("t1")
    said, extension = manager.until("STOPPING=1")[-1]
    equal(said, "STOPPING=1", "at its end")
    seconds = int(extension.removeprefix("EXTEND_TIMEOUT_USEC=")) // 1_000_000
    check(3720 <= seconds <= 4500, f"at its end: {extension}")  # stop_drain, 2 minutes, lingering
    manager.socket.close()
    c.start("t1")


def test_a_service_manager_that_is_gone_holds_nobody_up(c):
    c.stop("p2")
    manager = Manager(f"@{c.dir}/notify")
    manager.start(c, "p2")
    equal(manager.until("READY=1")[-1], ["READY=1", "STATUS=serving"], "p2")
    manager.socket.close()
    reload_often(c, "p2")
    equal(c.log("p2").count("the service manager cannot be reached"), 1, "complaints")
    c.stop("p2")
    c.start("p2")


def test_low_limits_are_warned_of(c):
    c.stop("t1")
    with_limit = subprocess.run(
        ["sh", "-c", f"ulimit -n 300 && exec {sys.executable} {CLUSTER} start t1 --dir {c.dir}"],
        env={**os.environ, "DFC_BUILD": BUILD}, capture_output=True, text=True, check=False)
    equal(with_limit.returncode, 0, with_limit.stderr)
    says(c, "t1", "limit of open files is low")
    line = [x for x in c.log("t1").splitlines() if "limit of open files is low" in x][-1]
    check("limit=300 wanted=12544" in line, line)
    c.stop("t1")
    c.start("t1")


if __name__ == "__main__":
    main(proxies=2, targets=1, metastore="embedded")
