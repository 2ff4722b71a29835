#!/usr/bin/env python3
"""No node serves openly beside nodes that ask for proof: all agree on --public-auth, or those that
do not ask serve nothing."""

from access_lib import GuardedCluster
from lib import Cluster, check, equal, main, wait_for

OPEN = "--arg=--public-auth=false"
CALLS = (("GET", "/v1/objects/b/o", None), ("PUT", "/v1/objects/b/new", b"y"),
         ("DELETE", "/v1/objects/b/o", None), ("GET", "/v1/objects/b", None),
         ("GET", "/v1/buckets", None))


def start_otherwise(c, node, arg):
    """It does not get ready."""
    c.stop(node)
    c.run("start", node, arg, "--ready-seconds", "2", ok=False)


def start_as_before(c, node):
    c.kill(node)
    c.start(node)


def test_a_target_without_the_flag_serves_nothing(c):
    c.create("b")
    c.put("b", "o", b"x")
    start_otherwise(c, "t1", OPEN)
    for method, path, body in CALLS[:3]:
        c.bare(method, path, body, "t1", follow=False).expect(503, "not_ready", "--public-auth")
    c.bare("GET", "/v1/health", node="t1").expect(503, "not_ready", "--public-auth")
    start_as_before(c, "t1")
    c.bare("GET", "/v1/objects/b/o", node="t1").expect(401, "unauthorized")
    c.get("b", "o").expect(200)


def test_a_proxy_without_the_flag_serves_nothing(c):
    start_otherwise(c, "p2", OPEN)
    for method, path, body in CALLS:
        c.bare(method, path, body, "p2", follow=False).expect(503, "not_ready", "--public-auth")
    start_as_before(c, "p2")
    c.bare("GET", "/v1/buckets", node="p2").expect(401, "unauthorized")


def test_a_primary_without_the_flag_does_not_start(c):
    c.stop("p1")
    before = len(c.log("p1"))
    done = c.run("start", "p1", OPEN, ok=False)
    check("ended" in done.stderr, f"it did not end: {done.stderr}")
    check("start every node with --public-auth" in c.log("p1")[before:], "the log of p1")
    check(c.state("p1") != "active", "it runs")
    c.bare("GET", "/v1/objects/b/o", node="t1").expect(401, "unauthorized")
    c.ended_by_test.add("p1")
    c.start("p1")
    c.get("b", "o").expect(200)


def test_an_open_cluster_makes_no_users(_):
    """Its primary would refuse the next start."""
    c = Cluster(targets=1)
    grant = {"action": "grant", "value": {"rights": ["read"], "bucket": "b"}}
    for path, body in (("/v1/users", {"name": "ann"}), ("/v1/users/anonymous/grants", grant)):
        c.administer("POST", path, body).expect(501, "not_supported", "--public-auth")
    equal(c.get_json("/v1/cluster?what=state")["format"], 1, "format of the state")
    c.kill("p1")
    c.start("p1")
    c.remove()


def test_a_primary_with_the_flag_stops_those_without(_):
    c = Cluster(targets=1)
    c.create("b")
    c.put("b", "o", b"x")
    c.call("GET", "/v1/objects/b/o", node="t1").expect(200)
    c.stop("p1")
    c.run("start", "p1", "--arg=--public-auth", "--ready-seconds", "2", ok=False)
    wait_for(lambda: c.call("GET", "/v1/objects/b/o", node="t1").status == 503, "t1 to stop")
    c.call("PUT", "/v1/objects/b/o", b"y", "t1").expect(503, "not_ready", "--public-auth")
    check("all nodes must agree" in c.log("t1"), "the log of t1")
    c.administer("DELETE", "/v1/users/root").expect(204)  # the way back to an open cluster
    start_as_before(c, "p1")
    wait_for(lambda: c.call("GET", "/v1/objects/b/o", node="t1").status == 200, "t1 again")
    c.remove()


if __name__ == "__main__":
    main(GuardedCluster, proxies=2, targets=2)
