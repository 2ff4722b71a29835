#!/usr/bin/env python3
"""Other names for objects and buckets."""

import json
import os
import threading

from lib import check, equal, in_parallel, main, wait_for


def rename(c, bucket, old, new, headers=None, **options):
    body = json.dumps({"action": "rename", "name": new}).encode()
    return c.object("POST", bucket, old, body, headers, **options)


def rename_bucket(c, old, new, node="p1"):
    return c.call("POST", f"/v1/buckets/{old}", {"action": "rename", "name": new}, node=node)


def names_by_owner(c, bucket, stem, count=40):
    """{node: [name, …]}"""
    owners = {}
    for i in range(count):
        owners.setdefault(c.owner(bucket, f"{stem}{i}"), []).append(f"{stem}{i}")
    return owners


def test_objects(c):
    for durability in ("sync", "async"):
        bucket = "b-" + durability
        c.create(bucket, durability=durability)
        big = os.urandom(2 * 1024 * 1024 + 3)
        for i in range(12):  # to one's own target, and to others
            body = big if i % 3 == 0 else f"{i}".encode()
            c.put(bucket, f"old{i}", body, {"Content-Type": "text/x", "Dfc-Meta-A": "b"})
            rename(c, bucket, f"old{i}", f"new/ä {i}").expect(204)
            c.get(bucket, f"old{i}").expect(404, "object_not_found")
            reply = c.get(bucket, f"new/ä {i}").expect(200)
            equal(reply.body, body, "bytes")
            equal(reply.headers["Content-Type"], "text/x", "type")
            equal(reply.headers["Dfc-Meta-A"], "b", "metadata")
        equal(c.names(bucket), sorted((f"new/ä {i}" for i in range(12)), key=str.encode), "names")


def test_over_another_object(c):
    c.put("b-sync", "x", b"1")
    c.put("b-sync", "y", b"2", {"Dfc-Meta-A": "b"})
    before = c.object("HEAD", "b-sync", "x").headers["Dfc-Version"]
    rename(c, "b-sync", "y", "x").expect(204)
    reply = c.get("b-sync", "x").expect(200)
    equal(reply.body, b"2", "bytes")
    check([int(n) for n in reply.headers["Dfc-Version"].split(".")] >
          [int(n) for n in before.split(".")], "the version grows")
    c.get("b-sync", "y").expect(404)
    c.put("b-sync", "y", b"3")
    equal(c.get("b-sync", "y").body, b"3", "the old name is free")


def test_streamed_through_the_proxy(c):
    rename(c, "b-sync", "y", "y2", query="redirect=never", follow=False).expect(204)
    equal(c.get("b-sync", "y2").body, b"3", "bytes")
    rename(c, "b-sync", "y2", "y").expect(204)


def test_refusals(c):
    rename(c, "b-sync", "none", "a").expect(404, "object_not_found")
    rename(c, "none", "x", "a").expect(404, "bucket_not_found")
    rename(c, "b-sync", "x", "x").expect(400, "invalid_argument")
    rename(c, "b-sync", "x", "").expect(400, "invalid_name")
    rename(c, "b-sync", "x", "a" * 1025).expect(400, "invalid_name")
    etag = c.object("HEAD", "b-sync", "x").headers["ETag"]
    rename(c, "b-sync", "x", "z", {"If-Match": '"1.1.1"'}).expect(412, "precondition_failed")
    for body in (b"", b"{}", b"[]", b'{"action": "move", "name": "a"}', b'{"action": "rename"}',
                 b'{"action": "rename", "name": "a", "to": "b"}'):
        reply = c.object("POST", "b-sync", "x", body)
        check(reply.status == 400, f"{body}: {reply}")
    equal(c.get("b-sync", "x").expect(200).body, b"2", "the object stays")
    rename(c, "b-sync", "x", "z", {"If-Match": etag}).expect(204)


def test_never_neither(c):
    """Readers ask for the old name, then the new one: one of them is there."""
    owners = names_by_owner(c, "b-sync", "n")
    for target in c.targets():
        c.restart(target, "--arg=--faults=disk.rename=delay:5")
    done = threading.Event()
    wrong = []
    lists = []
    # From each target to the next one, and one that stays.
    pairs = [(owners[x][0], owners[y][1]) for x, y in zip(owners, [*list(owners)[1:], *owners])]

    def read():
        while not done.is_set():
            for old, new in pairs:
                if c.get("b-sync", old).status == 404 and c.get("b-sync", new).status != 200:
                    wrong.append((old, new))
            lists.append(len(c.names("b-sync", prefix="n")))

    for old, _ in pairs:
        c.put("b-sync", old, old.encode() * 1000)
    readers = [threading.Thread(target=read) for _ in range(3)]
    for r in readers:
        r.start()
    in_parallel(lambda pair: rename(c, "b-sync", *pair).expect(204), pairs)
    done.set()
    for r in readers:
        r.join()
    equal(wrong, [], "moments without the object")
    for old, new in pairs:
        equal(c.get("b-sync", new).expect(200).body, old.encode() * 1000, new)


def test_a_write_during_the_rename_is_not_lost(c):
    c.put("b-sync", "w", b"first")
    for target in c.targets():
        c.restart(target, "--arg=--faults=disk.rename=delay:100")
    replies = []
    thread = threading.Thread(target=lambda: replies.append(rename(c, "b-sync", "w", "w2")))
    thread.start()
    c.put("b-sync", "w", b"second")
    thread.join()
    for target in c.targets():
        c.restart(target)
    replies[0].expect(204)
    old = c.get("b-sync", "w")
    check(old.body == b"second" or c.get("b-sync", "w2").expect(200).body == b"second",
          "the later write is under one of the names")


def test_killed_in_between(c):
    """The owner of the old name dies before its tombstone: both names, and again does the rest."""
    owners = names_by_owner(c, "b-sync", "k")
    (t_old, olds), (t_new, news) = sorted(owners.items())[:2]
    old, new = olds[0], news[0]
    c.put("b-sync", old, b"kept" * 100)
    c.restart(t_old, "--arg=--faults=disk.xattr=kill@1")
    reply = rename(c, "b-sync", old, new, query="redirect=never", follow=False)
    check(reply.status >= 500, f"{reply}")
    wait_for(lambda: c.pid(t_old) is None, f"{t_old} dead")
    c.start(t_old)
    c.ended_by_test.add(t_old)
    c.wait_node(t_old, "active")
    equal(c.get("b-sync", old).expect(200).body, b"kept" * 100, "old name")
    equal(c.get("b-sync", new).expect(200).body, b"kept" * 100, "new name")
    rename(c, "b-sync", old, new).expect(204)
    c.get("b-sync", old).expect(404)
    # The new name's owner dies: the old one stays.
    c.restart(t_new, "--arg=--faults=disk.xattr=kill@1")
    c.put("b-sync", olds[1], b"again")
    reply = rename(c, "b-sync", olds[1], news[1])
    check(reply.status >= 500, f"{reply}")
    equal(c.get("b-sync", olds[1]).expect(200).body, b"again", "old name")
    wait_for(lambda: c.pid(t_new) is None, f"{t_new} dead")
    c.start(t_new)
    c.ended_by_test.add(t_new)
    c.wait_node(t_new, "active")
    rename(c, "b-sync", olds[1], news[1]).expect(204)
    equal(c.get("b-sync", news[1]).expect(200).body, b"again", "new name")


def test_buckets(c):
    c.create("one", durability="async")
    names = [f"o{i}" for i in range(50)]
    in_parallel(lambda name: c.put("one", name, name.encode()), names)
    before = c.get_json("/v1/buckets/one")
    etag = c.object("HEAD", "one", "o7").headers["ETag"]
    rename_bucket(c, "one", "two").expect(204)
    for node in ("p1", "p2"):
        c.get("one", "o7", node=node).expect(404, "bucket_not_found")
        reply = c.get("two", "o7", node=node).expect(200)
        equal((reply.body, reply.headers["ETag"]), (b"o7", etag), "object")
        equal(c.names("two", node=node), sorted(names), "names")
        c.call("GET", "/v1/buckets/one", node=node).expect(404, "bucket_not_found")
    after = c.get_json("/v1/buckets/two")
    equal({**after, "name": "one"}, before, "all but the name")
    c.create("one")
    equal(c.names("one"), [], "a new bucket of the old name is empty")
    rename_bucket(c, "two", "one").expect(409, "bucket_exists")
    rename_bucket(c, "none", "x").expect(404, "bucket_not_found")
    rename_bucket(c, "two", "-x").expect(400, "invalid_name")
    c.call("POST", "/v1/buckets/two", {"action": "rename"}).expect(400, "invalid_json", "name")
    rename_bucket(c, "two", "three", node="p2").expect(204)  # by a proxy that is not the primary
    equal(c.names("three", node="p2"), sorted(names), "names")


def test_buckets_after_restarts(c):
    c.kill("p1")
    c.start("p1")
    for target in c.targets():
        c.wait_node(target, "active")
    equal(len(c.names("three")), 50, "names")
    rename_bucket(c, "three", "two").expect(204)
    for target in c.targets():
        c.restart(target)
    equal(c.get("two", "o7").expect(200).body, b"o7", "object")
    c.get("three", "o7").expect(404, "bucket_not_found")


def test_a_bucket_with_a_job_keeps_its_name(c):
    for target in c.targets():
        c.restart(target, "--arg=--faults=disk.rename=delay:50")
    c.create("copies")
    job_id = c.call("POST", "/v1/buckets/two",
                    {"action": "copy", "value": {"to": "copies"}}).expect(202).json()["id"]
    rename_bucket(c, "two", "x").expect(409, "job_state", job_id)
    rename_bucket(c, "copies", "x").expect(409, "job_state", job_id)
    c.call("DELETE", f"/v1/jobs/{job_id}").expect(202)
    wait_for(lambda: c.get_json(f"/v1/jobs/{job_id}")["state"] == "aborted", "aborted")
    rename_bucket(c, "copies", "x").expect(204)
    for target in c.targets():
        c.restart(target)


def test_dfcctl(c):
    def ctl(*args, code=0):
        done = c.dfcctl(*args)
        equal(done.returncode, code, f"dfcctl {args}: {done.stdout} {done.stderr}")

    c.put("two", "dir/a", b"a")
    ctl("mv", "two/dir/a", "two/dir/b")
    equal(c.get("two", "dir/b").expect(200).body, b"a", "bytes")
    ctl("mv", "two/dir/a", "two/dir/b", code=3)
    ctl("mv", "two/dir/b", "one/dir/b", code=2)
    ctl("mv", "two", "one", code=2)
    ctl("bucket", "mv", "two", "one", code=1)
    ctl("bucket", "mv", "two", "four")
    equal(c.get("four", "dir/b").expect(200).body, b"a", "bytes")


if __name__ == "__main__":
    main(targets=3, proxies=2)
