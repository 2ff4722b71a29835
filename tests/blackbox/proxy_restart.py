#!/usr/bin/env python3
"""The proxy dies and comes back: what it had acknowledged stays, and targets go on by
themselves."""

from lib import check, equal, main, wait_for


def test_documents_survive_a_crash(c):
    for i in range(5):
        c.create(f"b{i}", durability="async")
        c.put(f"b{i}", "x", b"%d" % i)
    c.destroy("b4")
    before = c.get_json("/v1/cluster?what=bmd")
    c.kill("p1", "-9")
    c.start("p1")
    equal(c.get_json("/v1/cluster?what=bmd"), before, "buckets")
    for i in range(4):
        equal(c.get(f"b{i}", "x").expect(200).body, b"%d" % i, "contents")
    c.get("b4", "x").expect(404, "bucket_not_found")


def test_versions_only_grow(c):
    def version():
        document = c.get_json("/v1/cluster")
        return document["term"], document["version"]

    seen = [version()]
    for i in range(3):
        c.kill("p1", "-9")
        c.start("p1")
        c.create(f"v{i}")
        seen.append(version())
    equal(seen, sorted(set(seen)), "state versions")


def test_targets_serve_without_a_proxy(c):
    owner = c.owner("b0", "x")
    c.kill("p1", "-9")
    reply = c.call("GET", "/v1/objects/b0/x", node=owner)
    equal(reply.expect(200).body, b"0", "GET at the owner")
    c.call("PUT", "/v1/objects/b0/x", b"new", node=owner).expect(200)
    c.start("p1")
    equal(c.get("b0", "x").expect(200).body, b"new", "what was written meanwhile")


def test_a_target_restarts_without_a_proxy(c):
    owner = c.owner("b0", "x")
    c.kill("p1", "-9")
    c.kill(owner, "-9")
    c.start(owner)
    equal(c.call("GET", "/v1/objects/b0/x", node=owner).expect(200).body, b"new", "contents")
    c.start("p1")
    c.wait_node(owner, "active")
    equal(c.get("b0", "x").expect(200).body, b"new", "contents")


def test_the_whole_cluster_at_once(c):
    names = [f"k{i}" for i in range(30)]
    for name in names:
        c.put("b1", name, name.encode())
    for node in ("p1", "t1", "t2", "t3"):
        c.kill(node, "-9")
    c.run("up")
    c.ended_by_test.clear()
    for target in c.targets():
        c.wait_node(target, "active")
    for name in names:
        equal(c.get("b1", name).expect(200).body, name.encode(), name)
    equal(c.names("b1"), sorted(names + ["x"]), "names")


def test_a_redirect_of_an_old_map(c):
    """A client that kept a redirect over a change of the map is served; over one of its bucket it
    is told to ask again."""
    c.create("remade")
    c.put("remade", "x", b"old")
    location = c.get("remade", "x", follow=False).expect(307).headers["Location"]
    c.create("change")
    equal(c.http.request("GET", location).expect(200).body, b"old", "after a change")
    c.destroy("remade")
    c.create("remade")

    def refused():
        answer = c.http.request("GET", location, follow=False)
        check(answer.status in (200, 404, 409), f"{answer!r}")
        return answer if answer.status == 409 else None

    # The target learns of the change a moment after the proxy has made it.
    wait_for(refused, "409").expect(409, "stale_map")


if __name__ == "__main__":
    main(targets=3)
