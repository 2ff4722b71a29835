#!/usr/bin/env python3
"""Whoever asks is known wherever the call ends: the primary hears of the user whom another proxy has
let in, and believes no client that says so itself."""

from access_lib import GuardedCluster, make_user
from lib import main, wait_for

CHIEF = [{"rights": ["users"]}]
PROXIES = ("p1", "p2")


def wait_line(c, node, *words):
    """A call's line comes when its reply has been sent."""
    def written():
        return any(all(word in line for word in words) for line in c.log(node).splitlines())
    wait_for(written, f"a line in the log of {node} with {words}")


def test_a_bucket_belongs_to_its_creator(c):
    creator = make_user(c, "creator", [{"rights": ["create"]}])
    other = make_user(c, "other", [{"rights": ["create"]}])
    for node in PROXIES:
        bucket = f"of-creator-{node}"
        creator.call("POST", f"/v1/buckets/{bucket}", {"action": "create"}, node).expect(201)
        creator.call("PUT", f"/v1/objects/{bucket}/o", b"x", node).expect(200)
        other.call("PUT", f"/v1/objects/{bucket}/o", b"x", node).expect(403, "access_denied")
        other.call("DELETE", f"/v1/buckets/{bucket}", {"action": "destroy"}, node).expect(
            403, "access_denied")
        wait_line(c, "p1", "bucket made", f"bucket={bucket}", "user=creator")
        creator.call("DELETE", f"/v1/buckets/{bucket}", {"action": "destroy"}, node).expect(204)
        wait_line(c, "p1", "bucket destroyed", f"bucket={bucket}", "user=creator")


def test_nobody_gives_more_than_they_have(c):
    chief = make_user(c, "chief", CHIEF)
    for node in PROXIES:
        for method, path, body in (
                ("PUT", "/v1/users/chief", {"roles": ["admin"]}),
                ("POST", "/v1/users", {"name": "mine", "roles": ["admin"]}),
                ("POST", "/v1/users/chief/grants",
                 {"action": "grant", "value": {"rights": ["read"], "bucket": "*"}}),
                ("PUT", "/v1/roles/mine", {"grants": [{"rights": ["operate"]}]}),
                ("POST", "/v1/users/root/keys", None),
                ("DELETE", "/v1/users/root", None),
                ("PUT", "/v1/users/root/password", {"password": "long enough"})):
            chief.call(method, path, body, node).expect(403, "access_denied")
        name = f"made-{node}"
        chief.call("POST", "/v1/users", {"name": name, "grants": CHIEF}, node).expect(201)
        chief.call("DELETE", f"/v1/users/{name}", node=node).expect(204)
        wait_line(c, "p1", "access changed", "call=user_remove", f"name={name}", "user=chief")
        wait_line(c, node, "AUDIT", "call=user_remove", f"path=/v1/users/{name}", "user=chief")


def test_a_client_is_not_believed(c):
    """It says itself that it asks for root."""
    chief = make_user(c, "liar", CHIEF)
    nobody = make_user(c, "nobody", [])
    as_root = {"Dfc-User": f"{c.root.id()} root"}
    for node in PROXIES:
        chief.call("PUT", "/v1/users/liar", {"roles": ["admin"]}, node, as_root).expect(
            403, "access_denied")
        nobody.call("POST", "/v1/buckets/b", {"action": "create"}, node, as_root).expect(
            403, "access_denied")
        c.bare("GET", "/v1/users", node=node, headers=as_root).expect(401, "unauthorized")
        c.http.request("GET", c.control_url(node) + "/v1/users", headers=as_root).expect(
            401, "unauthorized")


def test_a_node_is_believed(c):
    """Signed with the cluster key, for a user who may do less than the key."""
    liar = c.administer("GET", "/v1/users/liar").expect(200).json()
    for node in PROXIES:
        def change(name, user, roles, node=node):
            headers = {"Dfc-User": f"{user} liar"} if user is not None else {}
            return c.administer("PUT", f"/v1/users/{name}", {"roles": roles}, node, headers)
        change("liar", None, []).expect(200)
        if node == "p1":
            change("liar", liar["id"], ["admin"]).expect(403, "access_denied")
            change("liar", "f" * 32, []).expect(403, "access_denied", "gone")
        wait_line(c, "p1", "access changed", 'user="(cluster key)"')


def test_a_redirect_names_its_user(c):
    c.create("b")
    deleter = make_user(c, "deleter", [{"rights": ["delete", "write"], "bucket": "b"}])
    deleter.call("PUT", "/v1/objects/b/o", b"x").expect(200)
    deleter.call("DELETE", "/v1/objects/b/o").expect(204)
    wait_for(lambda: c.call("HEAD", "/v1/objects/b/o").status == 404, "the object to be gone")


if __name__ == "__main__":
    main(GuardedCluster, proxies=2, targets=1)
