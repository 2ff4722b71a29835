#!/usr/bin/env python3
"""The document of users: it reaches every node and every disk, outlives the primary, and shows no
secret."""

import glob
import os
import secrets
import signal

from access_lib import GuardedCluster
from lib import check, equal, main, wait_for

READS = {"rights": ["list", "read"], "bucket": "train-*"}


def add(c, name, **more):
    return c.administer("POST", "/v1/users", {"name": name, **more}).expect(201).json()


def bytes_on_disk(c):
    """Everything that nodes keep of the documents, and what they log."""
    files = glob.glob(os.path.join(c.dir, "*", "**", "*state*"), recursive=True)
    files += glob.glob(os.path.join(c.dir, "*", "metastore", "**"), recursive=True)
    files += glob.glob(os.path.join(c.dir, "*", "mp*", ".dfc", "docs", "*"))
    files += glob.glob(os.path.join(c.dir, "logs", "*"))
    files = sorted({f for f in files if os.path.isfile(f)})
    check(len(files) > 3, f"found only {files}")
    for path in files:
        with open(path, "rb") as f:
            yield path, f.read()


def test_users_reach_every_node(c):
    user = add(c, "trainer", kind="service", grants=[READS])
    equal(user["grants"], [READS], "grants")
    c.administer("POST", "/v1/users", {"name": "trainer"}).expect(409, "user_exists")
    equal(c.administer("GET", "/v1/users/trainer", node="p2").expect(200).json(), user, "by p2")
    state = c.get_json("/v1/cluster?what=state")
    equal(state["format"], 3, "format")
    for node in ("p2", "t1"):
        wait_for(lambda node=node: c.administer("GET", "/v1/cluster/state", node=node).json()
                 .get("access", {}).get("version") == state["access"]["version"], f"the document at {node}")


def test_a_secret_is_shown_once(c):
    key = c.administer("POST", "/v1/users/trainer/keys", node="p2").expect(201).json()
    add(c, "anna")
    password = "correct horse battery"
    c.administer("PUT", "/v1/users/anna/password", {"password": password}).expect(204)
    c.administer("PUT", "/v1/users/trainer/password", {"password": password}).expect(
        400, "invalid_argument")
    c.administer("PUT", "/v1/users/anna/password", {"password": "short"}).expect(
        400, "invalid_argument")
    sealed = c.administer("GET", "/v1/cluster/state").expect(200).json()["access"]["users"]
    sealed = {u["name"]: u for u in sealed}
    hidden = [sealed["trainer"]["keys"][0]["secret"], sealed["anna"]["password"]]
    for path in ("/v1/cluster?what=state", "/v1/cluster?what=access"):
        shown = c.call("GET", path).expect(200).body.decode()
        check(key["access"] in shown, f"{path}: no access key")
        check(not any(h in shown for h in hidden), f"{path} shows {hidden}")
    shown = c.administer("GET", "/v1/users").expect(200).body.decode()
    check(not any(h in shown for h in hidden), "/v1/users shows secrets")
    for path, data in bytes_on_disk(c):
        check(key["secret"].encode() not in data, f"{path} has a secret in clear")
        check(password.encode() not in data, f"{path} has a password in clear")
        if "/logs/" in path:
            check(not any(h.encode() in data for h in hidden), f"{path} has a sealed secret")


def test_malformed_calls_have_their_answers(c):
    for method, path, body, status, code in (
            ("POST", "", [], 400, "invalid_json"),
            ("POST", "", {}, 400, "invalid_json"),
            ("POST", "", {"name": "a b"}, 400, "invalid_name"),
            ("POST", "", {"name": "ben", "colour": 1}, 400, "invalid_json"),
            ("POST", "", {"name": "ben", "kind": "robot"}, 400, "invalid_argument"),
            ("PUT", "/ben", {"enabled": True}, 404, "user_not_found"),
            ("PUT", "/trainer", {"name": "coach"}, 400, "invalid_json"),
            ("PUT", "/trainer", {"grants": [{"rights": ["fly"]}]}, 400, "invalid_argument"),
            ("POST", "/trainer/grants", {"action": "grant"}, 400, "invalid_json"),
            ("POST", "/trainer/grants", {"action": "lend", "value": READS}, 400,
             "invalid_argument"),
            ("POST", "/ben/keys", None, 404, "user_not_found"),
            ("DELETE", "/trainer/keys/DFC", None, 404, "not_found"),
            ("DELETE", "/ben", None, 404, "user_not_found")):
        c.administer(method, "/v1/users" + path, body).expect(status, code)


def test_rights_are_explained(c):
    def explain(query):
        return c.administer("GET", f"/v1/auth/explain?{query}").expect(200).json()
    check(explain("user=trainer&right=read&bucket=train-1")["allowed"], "a granted right")
    check(not explain("user=trainer&right=write&bucket=train-1")["allowed"], "no such grant")
    c.administer("PUT", "/v1/roles/lab", {"grants": [{"rights": ["write"], "bucket": "train-1"}]}
                 ).expect(200)
    c.administer("PUT", "/v1/users/trainer", {"roles": ["lab", "nothing"]}).expect(
        404, "role_not_found")
    c.administer("PUT", "/v1/users/trainer", {"roles": ["lab"]}).expect(200)
    got = explain("user=trainer&right=write&bucket=train-1&object=a")
    equal(got, {"allowed": True, "rule": "role lab on train-1/*"}, "explained")
    c.administer("DELETE", "/v1/roles/lab").expect(412, "precondition_failed")
    c.administer("POST", "/v1/users/anonymous/grants", {
        "action": "grant", "value": {"rights": ["delete"], "bucket": "b"}}).expect(
            400, "invalid_argument")
    c.administer("GET", "/v1/auth/explain?right=fly&bucket=b").expect(400, "invalid_argument")


def test_users_outlive_the_primary(c):
    before = c.administer("GET", "/v1/users").expect(200).json()
    c.kill("p1")
    c.start("p1")
    wait_for(lambda: c.call("GET", "/v1/health").status == 200, "the primary again")
    equal(c.administer("GET", "/v1/users").expect(200).json(), before, "users")
    c.administer("DELETE", "/v1/users/anna").expect(204)
    c.administer("GET", "/v1/users/anna").expect(404, "user_not_found")


def sealed_by(c):
    users = c.administer("GET", "/v1/cluster/state").expect(200).json()["access"]["users"]
    return [k["secret"].split(":")[0] for u in users for k in u.get("keys", [])]


def unreadable(c):
    return c.administer("POST", "/v1/auth/reseal").expect(200).json()["unreadable"]


def test_secrets_follow_a_new_cluster_key(c):
    old = sealed_by(c)
    check(old, "no secrets")
    c.administer("POST", "/v1/auth/reseal").expect(200)
    equal(sealed_by(c), old, "sealed by the same key")
    with open(c.key_file, encoding="utf-8") as f:
        lines = f.read()
    with open(c.key_file, "w", encoding="utf-8") as f:
        f.write(secrets.token_hex(32) + "\n" + lines)
    for node in c.nodes:
        os.kill(c.pid(node), signal.SIGHUP)
    got = c.administer("POST", "/v1/auth/reseal", node="p2").expect(200).json()
    equal(got["unreadable"], 0, "reply")  # the primary has begun with it by itself
    check(not set(old) & set(sealed_by(c)), "secrets are still sealed by the old key")
    with open(c.key_file, "w", encoding="utf-8") as f:
        f.write(lines)
    os.kill(c.pid("p1"), signal.SIGHUP)
    wait_for(lambda: unreadable(c) == len(old), "the primary to know the old key alone")
    got = c.administer("POST", "/v1/auth/reseal").expect(200).json()
    equal(got, {"resealed": 0, "unreadable": len(old)}, "reply without the new key")


def test_strangers_reach_no_user(c):
    c.http.request("GET", c.url() + "/v1/users").expect(401, "unauthorized")
    c.http.request("GET", c.control_url() + "/v1/users").expect(401, "unauthorized")


if __name__ == "__main__":
    main(GuardedCluster, proxies=2, targets=1)
