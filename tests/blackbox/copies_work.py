#!/usr/bin/env python3
"""What is done to objects of buckets with several copies beside reading and writing them: other
names, jobs that delete and copy, buckets with another name; over the end of an owner, too."""

import json
import os

from copies import create, get, holders, patient, put, wait_repaired
from lib import Failed, check, equal, in_parallel, main, wait_for
from object_jobs import ended, run, start

NAMES = [f"n-{i:02d}" for i in range(40)]


def body_of(name):
    return name.encode() * 40


def fill(c, bucket, copies, names=NAMES):
    if copies > 1:
        create(c, bucket, copies)
    else:
        c.create(bucket)
    in_parallel(lambda name: put(c, bucket, name, body_of(name)), names)


def rename(c, bucket, old, new, headers=None):
    body = json.dumps({"action": "rename", "name": new}).encode()
    return patient(c, "POST", bucket, old, body, headers)[0]


def nowhere(c, bytes_, what):
    equal(holders(c, bytes_), [], f"targets with {what}")


def test_an_object_gets_another_name(c):
    create(c, "names", 2)
    for i, size in enumerate((10, 5000, 700000, 3000000)):
        body = os.urandom(size)
        put(c, "names", f"old{i}", body, {"Dfc-Meta-A": "b", "Content-Type": "x/y"})
        rename(c, "names", f"old{i}", f"new{i}").expect(204)
        get(c, "names", f"old{i}").expect(404, "object_not_found")
        reply = get(c, "names", f"new{i}").expect(200)
        check(reply.body == body, "other bytes")
        equal((reply.headers["Dfc-Meta-A"], reply.headers["Content-Type"]), ("b", "x/y"),
              "metadata")
        equal(len(set(holders(c, body))), 2, "targets that have it")
    rename(c, "names", "old0", "other").expect(404, "object_not_found")
    etag = get(c, "names", "new0").headers["ETag"]
    rename(c, "names", "new0", "x", {"If-Match": '"1.1.1"'}).expect(412, "precondition_failed")
    rename(c, "names", "new0", "x", {"If-Match": etag}).expect(204)
    equal(c.names("names"), ["new1", "new2", "new3", "x"], "names")


def test_a_bucket_gets_another_name(c):
    c.call("POST", "/v1/buckets/names", {"action": "rename", "name": "called"}).expect(204)
    equal(get(c, "called", "x").expect(200).headers["Dfc-Meta-A"], "b", "metadata")
    put(c, "called", "y", b"y")
    equal(get(c, "called", "y").body, b"y", "the object")


def test_jobs_delete(c):
    fill(c, "less", 2)
    got = run(c, "less", "delete", {"template": "n-{00..09}"})
    equal((got["done"], got["missing"], got["total"]), (10, 0, 10), "by template")
    got = run(c, "less", "delete", {"list": ["n-10", "n-11", "nothing"]})
    equal((got["done"], got["missing"]), (2, 1), "by list")
    got = run(c, "less", "delete", {"prefix": "n-2"})
    equal((got["done"], got["missing"], got["total"]), (10, 0, 10), "by prefix")
    left = NAMES[12:20] + NAMES[30:]
    equal(c.names("less"), left, "names")
    for name in ("n-00", "n-10", "n-29"):
        get(c, "less", name).expect(404, "object_not_found")
        nowhere(c, body_of(name), name)


def test_jobs_copy(c):
    create(c, "two", 2)
    c.create("one")
    got = run(c, "less", "copy", {"to": "two", "prepend": "c/"})
    equal((got["done"], got["total"], got["failed"]), (18, 18, 0), "to a bucket of two copies")
    got = run(c, "two", "copy", {"to": "one", "prefix": "c/n-1"})
    equal((got["done"], got["failed"]), (8, 0), "to a bucket of one copy")
    for name in NAMES[12:20]:
        equal(get(c, "two", f"c/{name}").expect(200).body, body_of(name), name)
        equal(get(c, "one", f"c/{name}").expect(200).body, body_of(name), name)
        equal(len(holders(c, body_of(name))), 5, f"copies of {name} in the three")
    equal(len(c.names("two")), 18, "names")


def test_a_job_goes_on_when_an_owner_has_died_and_is_back(c):
    """A target that has missed writes works on its names when it has been repaired."""
    fill(c, "more", 2)
    create(c, "copied", 2)
    c.kill("t2")
    c.wait_node("t2", "unreachable")
    for name in NAMES[:10]:
        patient(c, "DELETE", "more", name)
    put(c, "more", "late", b"late" * 99)
    c.setting("repair", "false")
    c.start("t2")
    c.wait_node("t2", "active")
    job_id = start(c, "more", "copy", {"to": "copied"})
    wait_for(lambda: "repair" in json.dumps(c.get_json(f"/v1/jobs/{job_id}")), "t2 waits")
    c.setting("repair", "true")
    job = ended(c, job_id)
    equal(job["state"], "finished", f"the copy: {job['errors']}")
    equal(c.names("copied"), ["late"] + NAMES[10:], "what was copied")


def test_what_was_deleted_is_remembered_while_somebody_was_away(c):
    fill(c, "gone", 3, NAMES[:6])
    c.kill("t3")
    c.wait_node("t3", "unreachable")
    for name in NAMES[:6]:
        patient(c, "DELETE", "gone", name)
    c.setting("repair", "false")
    c.start("t3")
    c.wait_node("t3", "active")
    job = ended(c, c.call("POST", "/v1/jobs", {"action": "start", "name": "cleanup"}
                          ).expect(202).json()["id"])
    equal(job["state"], "finished", "the cleanup")
    c.setting("repair", "true")
    wait_repaired(c)
    equal(c.names("gone"), [], "names")
    for name in NAMES[:6]:
        get(c, "gone", name).expect(404)
        nowhere(c, body_of(name), name)


def names_of(c, bucket):
    """None: not all who have to be asked have answered."""
    try:
        return sorted(c.names(bucket))
    except Failed:
        return None


def test_a_majority_of_the_owners_is_enough(c):
    create(c, "most", 3, write_quorum="majority")
    put(c, "most", "a", b"one")
    put(c, "most", "gone", b"one")
    check(patient(c, "DELETE", "most", "gone")[0].status in (204, 404), "not deleted")
    for name in ("a", "b"):
        put(c, "most", name, b"two")
    c.kill("t3")
    put(c, "most", "b", b"three")
    equal([get(c, "most", name).expect(200).body for name in ("a", "b")], [b"two", b"three"],
          "bytes")
    get(c, "most", "gone").expect(404, "object_not_found")
    c.start("t3")
    c.wait_node("t3", "active")
    wait_for(lambda: names_of(c, "most") == ["a", "b"], "the whole list")
    for action, value in (("delete", {"list": ["a"]}),
                          ("copy", {"list": ["a"], "to": "most", "prepend": "c"})):
        c.call("POST", "/v1/buckets/most",
               {"action": action, "value": value}).expect(501, "not_supported")
    spec = {"input_bck": "most", "output_bck": "most", "input_format": "n-{00..01}",
            "output_format": "o-{0..9}", "extension": ".tar", "output_shard_size": "1MB"}
    c.call("POST", "/v1/sort", spec).expect(501, "not_supported")
    for props, status in (({"write_quorum": "all"}, 400), ({"copies": 4}, 501)):
        c.call("PUT", "/v1/buckets/most", {"action": "setprops", "value": props}).expect(status)


def test_what_such_buckets_do_not_do(c):
    create(c, "refuses", 2)
    for body in ({"action": "prefetch", "value": {"list": ["a"]}},
                 {"action": "evict", "value": {"list": ["a"]}}):
        reply = c.call("POST", "/v1/buckets/refuses", body)
        check(reply.status in (400, 501), f"{body}: {reply!r}")


if __name__ == "__main__":
    main(targets=3, args=("--target-arg=--tombstone-ttl=1s", "--target-arg=--sweep-interval=7d"))
