#!/usr/bin/env python3
"""Buckets: make, look, change, remove; what a bucket was is not what its successor is."""

from lib import check, equal, main


def names(c):
    return [b["name"] for b in c.get_json("/v1/buckets")["buckets"]]


def document(c, name):
    return c.get_json(f"/v1/buckets/{name}")


def test_make_and_remove(c):
    equal(names(c), [], "buckets of a new cluster")
    c.create("one")
    c.create("two")
    equal(names(c), ["one", "two"], "buckets")
    equal([b["name"] for b in c.get_json("/v1/buckets/*")["buckets"]], ["one", "two"],
          "as DFC asks")
    c.call("HEAD", "/v1/buckets/one").expect(200)
    c.destroy("one")
    equal(names(c), ["two"], "buckets")
    c.call("HEAD", "/v1/buckets/one").expect(404)
    c.call("GET", "/v1/buckets/one").expect(404, "bucket_not_found")
    c.call("DELETE", "/v1/buckets/one").expect(404, "bucket_not_found")


def test_the_names_of_dfc_work(c):
    c.call("POST", "/v1/buckets/old", {"action": "createlb"}).expect(201)
    c.call("DELETE", "/v1/buckets/old", {"action": "destroylb"}).expect(204)


def test_a_name_is_taken_once(c):
    c.create("twice")
    c.call("POST", "/v1/buckets/twice", {"action": "create"}).expect(409, "bucket_exists", "twice")


def test_names_that_are_none(c):
    for name in ("-x", ".x", "_x", "a%20b", "%C3%A9", "x" * 64, "a%2Fb", "a*"):
        c.call("POST", f"/v1/buckets/{name}", {"action": "create"}).expect(400, "invalid_name")
    c.create("x" * 63)
    c.create("A.b-c_9")


def test_properties(c):
    defaults = document(c, "two")["props"]
    equal(defaults["copies"], 1, "copies")
    equal(defaults["durability"], "sync", "durability")
    equal(defaults["checksum"], "xxh3", "checksum")
    equal(defaults["verify_on_read"], False, "verify_on_read")
    c.create("props", durability="async", checksum="sha256")
    c.call("PUT", "/v1/buckets/props", {"action": "setprops", "value": {"verify_on_read": True}}
           ).expect(200)
    props = document(c, "props")["props"]
    equal((props["durability"], props["checksum"], props["verify_on_read"]),
          ("async", "sha256", True), "properties after one was set")


def test_properties_that_are_none(c):
    for value, status, code in (
            ({"copies": 0}, 400, None), ({"copies": 9}, 400, None),
            ({"write_quorum": "majority"}, 400, "invalid_argument"),  # of one copy
            ({"backend": "gcs://x"}, 400, None), ({"durability": "maybe"}, 400, None),
            ({"checksum": "rot13"}, 400, None), ({"verify_on_read": "yes"}, 400, None),
            ({"colour": "blue"}, 400, None)):
        for method, action in (("POST", "create"), ("PUT", "setprops")):
            bucket = "never" if method == "POST" else "props"
            reply = c.call(method, f"/v1/buckets/{bucket}", {"action": action, "value": value})
            check(reply.status == status, f"{action} {value}: {reply!r}")
            reply.expect(status, code or reply.json()["code"])
    check("never" not in names(c), "a refused bucket was made")


def test_a_new_bucket_does_not_show_the_old_ones_objects(c):
    c.create("again")
    first = document(c, "again")["id"]
    for i in range(30):
        c.put("again", f"old-{i}", b"x")
    tag = c.get("again", "old-1").expect(200).headers["ETag"]
    c.destroy("again")
    c.get("again", "old-1").expect(404, "bucket_not_found")
    c.create("again")
    check(document(c, "again")["id"] > first, "bucket ids go on")
    equal(c.names("again"), [], "names in the new bucket")
    c.get("again", "old-1").expect(404, "object_not_found")
    c.put("again", "old-1", b"new")
    equal(c.names("again"), ["old-1"], "names")
    check(c.get("again", "old-1").headers["ETag"] != tag, "a new object has an old one's tag")


def test_buckets_do_not_share_names(c):
    c.put("two", "n", b"2")
    c.put("props", "n", b"p")
    equal(c.get("two", "n").body + c.get("props", "n").body, b"2p", "contents")


def test_many_buckets(c):
    made = [f"many-{i:03d}" for i in range(60)]
    for name in made:
        c.create(name)
    equal([n for n in names(c) if n.startswith("many-")], made, "buckets")
    for name in made:
        c.put(name, "x", name.encode())
    for name in made:
        equal(c.get(name, "x").body, name.encode(), "contents")


def test_buckets_survive_a_restart_of_the_proxy(c):
    before = c.get_json("/v1/buckets")
    c.kill("p1")
    c.start("p1")
    equal(c.get_json("/v1/buckets"), before, "buckets")


if __name__ == "__main__":
    main(targets=2)
