#!/usr/bin/env python3
"""Administration is on the control listener alone, and signed: on the public one it is not there,
and dfcctl makes it with the cluster's key."""

import json
import os
import shutil
import subprocess
import tempfile

from lib import BUILD, check, equal, main, wait_for

DENIED = 7

# (who has it, method, path, body)
MOVED = (
    ("p1", "GET", "/v1/cluster/documents", None),
    ("p1", "POST", "/v1/cluster/documents",
     {"action": "migrate", "value": {"to": "etcd://127.0.0.1:1"}}),
    ("p1", "PUT", "/v1/cluster", {"action": "setconfig", "name": "jobs_max", "value": 7}),
    ("p1", "PUT", "/v1/daemon", {"action": "setparam", "name": "log_level", "value": "off"}),
    ("t1", "PUT", "/v1/daemon", {"action": "setparam", "name": "log_level", "value": "off"}),
    ("t1", "PUT", "/v1/daemon/mountpaths", {"action": "attach", "value": "/tmp"}),
    ("t1", "GET", "/v1/daemon/indexes", None),
    ("t1", "PUT", "/v1/daemon/indexes", {"action": "reindex"}),
)
STAYS = (("p1", "/v1/cluster"), ("p1", "/v1/cluster?what=settings"), ("p1", "/v1/daemon"),
         ("t1", "/v1/daemon"), ("t1", "/v1/daemon?what=mountpaths"), ("p1", "/metrics"),
         ("t1", "/metrics"))


def body_of(document):
    return json.dumps(document).encode() if document is not None else None


def log_level(c, node):
    params = c.get_json("/v1/daemon?what=params", node)["params"]
    return next(p["value"] for p in params if p["name"] == "log_level")


def test_it_is_not_on_the_public_listener(c):
    before = c.get_json("/v1/cluster")["version"]
    for node, method, path, body in MOVED:
        reply = c.http.request(method, c.url(node) + path, body_of(body))
        reply.expect(404, "no_such_route", "control listener")
    equal(c.get_json("/v1/cluster")["version"], before, "version of the documents")
    equal([log_level(c, n) for n in ("p1", "t1")], ["info", "info"], "log levels")


def test_on_the_control_listener_it_needs_a_signature(c):
    for node, method, path, body in MOVED:
        reply = c.http.request(method, c.control_url(node) + path, body_of(body))
        reply.expect(401, "unauthorized")
        equal(reply.headers["WWW-Authenticate"], 'Dfc error="missing"', "challenge")
    c.administer("GET", "/v1/cluster/documents").expect(200)
    c.administer("GET", "/v1/daemon/indexes", node="t1").expect(200)
    c.administer("PUT", "/v1/cluster",
                 {"action": "setconfig", "name": "jobs_max", "value": 50}).expect(200)


def test_what_everybody_may_look_at_stays(c):
    for node, path in STAYS:
        c.call("GET", path, node=node).expect(200)


def lines_of(c, node, word):
    return [line for line in c.log(node).splitlines() if f" {word} " in line]


def test_every_change_leaves_a_line(c):
    """Who made it, and what came of it; that of administration whatever the log level is."""
    c.create("logged")
    c.call("POST", "/v1/buckets/logged", {"action": "create"}).expect(409)
    c.destroy("logged")
    wait_for(lambda: len(lines_of(c, "p1", "change")) >= 3, "the lines")
    line = next(x for x in lines_of(c, "p1", "change") if "path=/v1/buckets/logged" in x)
    check(all(w in line for w in ("peer=127.0.0.1:", "method=POST", "status=201", "req=")), line)
    check(any("status=409" in x for x in lines_of(c, "p1", "change")), "the one that was refused")
    text = c.log("p1")
    check("bucket made" in text and "bucket destroyed" in text and "bucket=logged" in text,
          "buckets by name")
    for node in ("p1", "t1"):
        for level in ("off", "info"):
            body = {"action": "setparam", "name": "log_level", "value": level}
            c.administer("PUT", "/v1/daemon", body, node,
                         {"X-Request-Id": f"by-{level}"}).expect(200)
        wait_for(
            lambda n=node: all(
                any(f"req=by-{level}" in x for x in lines_of(c, n, "administration"))
                for level in ("off", "info")), f"lines of {node}")
    before = len(lines_of(c, "p1", "change"))
    c.get_json("/v1/jobs")
    equal(len(lines_of(c, "p1", "change")), before, "looking leaves none")


def test_secrets_are_not_for_everybody(c):
    c.create("web")
    spec = {
        "action": "download",
        "value": {"list": ["http://127.0.0.1:1/a?sig=SECRET"], "prepend": "x/"}
    }
    job = c.call("POST", "/v1/buckets/web", spec).expect(202).json()["id"]
    for path in ("/v1/cluster?what=state", "/v1/cluster?what=jobs", f"/v1/jobs/{job}", "/v1/jobs"):
        text = c.call("GET", path).expect(200).body.decode()
        check("SECRET" not in text, f"{path}: {text[:2000]}")
    check("/a?…" in json.dumps(c.get_json("/v1/cluster?what=jobs"), ensure_ascii=False),
          "a query is shown as such")
    whole = c.administer("GET", "/v1/cluster?what=state").expect(200).body.decode()
    check("sig=SECRET" in whole, "an operator's backup has it")
    check("sig=SECRET" in c.dfcctl("cluster", "backup", "-").stdout, "dfcctl cluster backup")
    for node in ("p1", "t1"):
        for what in ("config", "params"):
            text = c.call("GET", f"/v1/daemon?what={what}", node=node).expect(200).body.decode()
            check(c.key_file not in text, f"{node} {what}: {text[:500]}")
            whole = c.administer("GET", f"/v1/daemon?what={what}",
                                 node=node).expect(200).body.decode()
            check(c.key_file in whole, f"{node} {what} on the control listener")
    wait_for(lambda: c.get_json(f"/v1/jobs/{job}")["state"] in ("finished", "failed", "aborted"),
             "the job's end")
    c.destroy("web")


def hosts_of(c, node):
    urls = next(n for n in c.get_json("/v1/cluster")["nodes"] if n["id"] == node)
    return [urls[f"{net}_url"].rpartition(":")[0] for net in ("public", "control", "data")]


def test_each_listener_has_its_address(c):
    c.stop("t2")
    args = ("--public-address=127.0.0.2", "--control-address=127.0.0.3", "--data-address=127.0.0.4")
    c.start("t2", *(f"--arg={a}" for a in args))
    wanted = ["http://127.0.0.2", "http://127.0.0.3", "http://127.0.0.4"]
    wait_for(lambda: hosts_of(c, "t2") == wanted, "the map has its addresses")
    c.wait_node("t2", "active")
    urls = next(n for n in c.get_json("/v1/cluster")["nodes"] if n["id"] == "t2")
    c.http.request("GET", urls["public_url"] + "/v1/daemon").expect(200)
    done = c.dfcctl("storage", "reindex", "t2")
    equal(done.returncode, 0, done.stderr)
    c.stop("t2")
    c.start("t2")
    wait_for(lambda: hosts_of(c, "t2") == 3 * ["http://127.0.0.1"], "it is back at its address")
    c.wait_node("t2", "active")


# --- dfcctl ---------------------------------------------------------------------------------------

COMMANDS = (
    ("config", "set", "jobs_max", "60"),
    ("config", "set", "log_level", "info", "--node", "t1"),
    ("cluster", "backup", "-"),
    ("cluster", "recover", "--dry-run"),
    ("node", "maintenance", "start", "t2"),
    ("node", "maintenance", "stop", "t2"),
    ("storage", "mountpath", "resilver", "t1"),
    ("storage", "reindex", "t1"),
)


def dfcctl(c, *args, cwd=None, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("DFC_")}
    return subprocess.run([os.path.join(BUILD, "dfcctl"), *args], cwd=cwd, capture_output=True,
                          text=True, env={**clean, "DFC_ENDPOINT": c.endpoint,
                                          **env}, check=False, timeout=60)


def test_dfcctl_signs(c):
    for args in COMMANDS:
        by_flag = dfcctl(c, *args, "--cluster-key-file", c.key_file)
        by_env = dfcctl(c, *args, DFC_CLUSTER_KEY_FILE=c.key_file)
        for done in (by_flag, by_env):
            # Nobody is to be recovered, and t2 is in maintenance already the second time.
            check("unauthorized" not in done.stderr, f"{args}: {done.stderr}")
        if args[1] != "recover":
            equal([by_flag.returncode, by_env.returncode], [0, 0],
                  f"{args}: {by_flag.stderr}{by_env.stderr}")


def test_dfcctl_finds_the_key_of_the_cluster_here(c):
    with tempfile.TemporaryDirectory() as here:
        os.mkdir(os.path.join(here, ".dfc-cluster"))
        shutil.copy(c.key_file, os.path.join(here, ".dfc-cluster", "cluster.key"))
        done = dfcctl(c, "config", "set", "jobs_max", "61", cwd=here)
        equal(done.returncode, 0, done.stderr)
    equal(
        dfcctl(c, "config", "set", "jobs_max", "62", cwd="/").returncode, DENIED,
        "without the file")


def test_without_the_key_dfcctl_says_what_is_missing(c):
    for args in COMMANDS:
        done = dfcctl(c, *args, cwd="/")
        equal(done.returncode, DENIED, f"{args}: {done.stderr}")
        check("needs the cluster key: give --cluster-key-file" in done.stderr,
              f"{args}: {done.stderr}")
    done = dfcctl(c, "cluster", "status", cwd="/")
    equal(done.returncode, 0, f"looking needs no key: {done.stderr}")
    equal(dfcctl(c, "cluster", "health", cwd="/").returncode, 0, "health")


def test_another_key_is_refused(c):
    with tempfile.NamedTemporaryFile("w") as other:
        other.write("another-key-" + "x" * 40)
        other.flush()
        done = dfcctl(c, "config", "set", "jobs_max", "63", "--cluster-key-file", other.name)
        equal(done.returncode, DENIED, done.stderr)
        check(f"the key in '{other.name}' is not this cluster's\n" in done.stderr, done.stderr)
        os.chmod(other.name, 0o644)
        done = dfcctl(c, "config", "set", "jobs_max", "63", "--cluster-key-file", other.name)
        check(done.returncode != 0 and "chmod 600" in done.stderr, done.stderr)
        equal(dfcctl(c, "bucket", "ls", "--cluster-key-file", other.name).returncode, 0,
              "what needs no key does not look at it")


def test_a_restarted_node_gets_a_new_session(c):
    for node in ("p1", "t1"):
        c.administer("PUT", "/v1/daemon",
                     {"action": "setparam", "name": "log_level", "value": "info"}, node).expect(200)
        c.restart(node)
        c.administer("PUT", "/v1/daemon",
                     {"action": "setparam", "name": "log_level", "value": "info"}, node).expect(200)
        done = c.dfcctl("config", "set", "log_level", "info", "--node", node)
        equal(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main(targets=2)
