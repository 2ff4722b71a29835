#!/usr/bin/env python3
"""Several proxies: one writes the cluster's documents, all serve clients."""

import os

from lib import check, contents, equal, main, wait_for


def on_all(c, condition, what):
    """Changes travel to the other proxies; the wait is for that."""
    for proxy in ("p1", "p2", "p3"):
        wait_for(lambda p=proxy: condition(p), f"{what} at {proxy}")


def test_one_is_primary(c):
    for proxy in ("p1", "p2", "p3"):
        document = c.get_json("/v1/cluster", node=proxy)
        equal(document["primary"], "p1", f"primary as {proxy} knows it")
        equal(len(document["nodes"]), 5, f"nodes as {proxy} knows them")


def test_any_takes_changes(c):
    for proxy in ("p1", "p2", "p3"):
        c.call("POST", f"/v1/buckets/by-{proxy}", {"action": "create"}, node=proxy).expect(201)
        on_all(c, lambda p, b=proxy: c.call("HEAD", f"/v1/buckets/by-{b}", node=p).status == 200,
               f"the bucket made at {proxy}")


def test_any_serves_objects(c):
    for writer in ("p1", "p2", "p3"):
        c.put("by-p1", f"from-{writer}", writer.encode(), node=writer)
        for reader in ("p1", "p2", "p3"):
            equal(c.get("by-p1", f"from-{writer}", node=reader).expect(200).body, writer.encode(),
                  f"written at {writer}, read at {reader}")
            equal(c.get("by-p1", f"from-{writer}", {"Dfc-Redirect": "never"}, node=reader,
                        follow=False).expect(200).body, writer.encode(), "streamed")


def test_any_lists(c):
    for i in range(50):
        c.put("by-p2", f"{i:02d}", b"")
    for proxy in ("p1", "p2", "p3"):
        equal([e["name"] for page in c.pages("by-p2", proxy, limit=7) for e in page["entries"]],
              [f"{i:02d}" for i in range(50)], f"names by {proxy}")


def test_any_starts_and_shows_a_sort(c):
    job = c.call(
        "POST", "/v1/sort", {
            "input_bck": {"name": "by-p3"}, "input_format": {"prefix": ""}, "output_format": "o-%d",
            "output_shard_size": "1M", "allow_empty": True
        }, node="p2").expect(202).json()["id"]
    wait_for(lambda: c.get_json(f"/v1/sort?id={job}", "p3")["state"] == "finished", "the sort ends")


def test_without_the_primary_objects_are_served_and_changes_are_not(c):
    c.kill("p1")
    equal(c.get("by-p1", "from-p1", node="p2").expect(200).body, b"p1", "GET without the primary")
    c.put("by-p1", "without", b"x", node="p3")
    reply = c.call("POST", "/v1/buckets/without", {"action": "create"}, node="p2")
    check(reply.status in (502, 503, 504), f"a change without the primary: {reply!r}")
    c.start("p1")
    wait_for(lambda: c.call("POST", "/v1/buckets/with", {"action": "create"}, node="p2").status
             in (201, 409), "changes are taken again")


def test_one_that_has_not_heard_of_the_primary_denies_no_bucket(c):
    """It began from what it had seen in its last life; what was made since is there all the
    same."""
    seen = os.path.join(c.node_dir("p2"), "state.json")
    wait_for(lambda: b"by-p1" in (contents(seen) or b""), "p2 has saved what it has seen")
    c.kill("p2")  # so that the map still has it when it comes back
    c.create("later")
    c.put("later", "o", b"x")
    c.kill("p1")
    c.start("p2")
    for method, path in (("GET", "/v1/objects/later/o"), ("PUT", "/v1/objects/later/o"),
                         ("GET", "/v1/objects/later"), ("GET", "/v1/buckets/later")):
        c.call(method, path, node="p2").expect(503, "not_ready", "'later'")
    equal(c.get("by-p1", "from-p1", node="p2").expect(200).body, b"p1", "GET of what it knows")
    c.start("p1")
    wait_for(lambda: c.get("none", "o", node="p2").status == 404, "it has heard")
    equal(c.get("later", "o", node="p2").expect(200).body, b"x", "GET of what was made since")


if __name__ == "__main__":
    # Nobody is given up while it is away for a moment.
    main(proxies=3, targets=2, args=["--proxy-arg=--keepalive-timeout=60s"])
