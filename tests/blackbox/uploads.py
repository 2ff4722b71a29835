#!/usr/bin/env python3
"""Uploads in parts, in buckets of each kind: what is completed is an object with the parts' bytes in
the list's order, what is refused changes nothing, and parts outlive kill -9 of their target.

DFC_LONGEST (1200): uploads of the long list."""

import base64
import concurrent.futures
import json
import os
import random
import sys
import threading

from frozen import frozen
from lib import ROOT, check, equal, in_parallel, main, wait_for
from uploads_lib import (MIB, PART, Upload, all_uploads, bodies_of, has_object, list_of, md5,
                         open_uploads, patiently, sizes_of, tag_of)

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

ACCESS, SECRET = "AKIDUPLOADS", "theSecretThatNobodyMaySee/+0123"
S3 = FakeS3({ACCESS: SECRET})
LONGEST = int(os.environ.get("DFC_LONGEST", 1200))
KINDS = ("one", "two", "sliced", "through", "tagged")
NEVER = {"Dfc-Redirect": "never"}
STRANGER = "AAABk0dnAAABAgMEBQYHCAkKCwwAAAAAAAAA_w"  # no node has its seed


def test_buckets(c):
    c.create("one")
    c.create("two", copies=2)
    c.create("sliced", ec={"data": 2, "parity": 1, "min_size": 100000})
    c.create("through", backend=f"s3://data/pre?endpoint={S3.url}", write_policy="through")
    c.create("tagged", etag="md5")
    S3.put("data", "seed", b"seed")


def test_parts_in_any_order_become_an_object(c):
    bodies = bodies_of(3, 70000)
    for kind in KINDS:
        u = Upload(c, kind, "dir/o", headers={"Content-Type": "a/b", "Dfc-Meta-Color": "red"})
        for number in (3, 1, 2):
            u.part(number, bodies[number - 1])
        c.get(kind, "dir/o").expect(404)
        equal(open_uploads(c, kind), ([("dir/o", u.id)], False), "open uploads")
        done = u.complete(list_of(bodies))
        equal((done["size"], done["tag"]), (sum(map(len, bodies)), tag_of(bodies)), kind)
        reply = has_object(c, kind, "dir/o", b"".join(bodies), Content_Type="a/b",
                           Dfc_Meta_Color="red", Dfc_Parts=sizes_of(bodies))
        if kind != "through":  # there the tag is the backend's
            equal(reply.headers["ETag"], f'"{done["version"]}"', f"ETag in {kind}")
        equal(open_uploads(c, kind), ([], False), "open uploads")
    check(S3.has("data", "pre/dir/o") == b"".join(bodies), "the backend has other bytes")


def test_other_sizes_and_gaps(c):
    """Parts that are no multiple of the first: their bytes are copied."""
    for sizes, numbers in (((PART + 1, PART, PART + 7, 3), (1, 2, 3, 4)),
                           ((PART, PART, 1), (2, 700, 10000)),
                           ((PART, 2 * PART, PART), (1, 2, 3)),
                           ((1,), (1,)),
                           ((PART + 9,), (10000,))):
        for kind in ("one", "two", "tagged"):
            bodies = [random.randbytes(size) for size in sizes]
            u = Upload(c, kind, "sizes")
            for number, body in reversed(list(zip(numbers, bodies))):
                u.part(number, body)
            equal(u.parts(), (list(numbers), False), "the parts")
            equal(u.complete(list_of(bodies, numbers))["tag"], tag_of(bodies), "tag")
            has_object(c, kind, "sizes", b"".join(bodies), Dfc_Parts=sizes_of(bodies))


def test_an_empty_part(c):
    u = Upload(c, "one", "empty")
    u.part(1, b"")
    equal(u.complete(list_of([b""]))["size"], 0, "size")
    has_object(c, "one", "empty", b"")


def test_the_last_part_of_a_number_counts(c):
    first, again = bodies_of(3, 1000), bodies_of(3, 2000, salt=9)
    for kind in ("one", "two"):
        u = Upload(c, kind, "again")
        for number, body in enumerate(first, 1):
            u.part(number, body)
        u.part(3, again[2])
        u.part(1, again[0])
        u.try_complete(list_of(first)).expect(400, "invalid_part")
        now = [again[0], first[1], again[2]]
        u.complete(list_of(now))
        has_object(c, kind, "again", b"".join(now))


def test_parts_that_are_not_listed_are_dropped(c):
    bodies = bodies_of(4, 10)
    u = Upload(c, "one", "dropped")
    for number, body in enumerate(bodies, 1):
        u.part(number, body)
    kept = [bodies[0], bodies[2]]
    equal(u.complete(list_of(kept, (1, 3)))["tag"], tag_of(kept), "tag")
    has_object(c, "one", "dropped", b"".join(kept))


def test_clients_send_at_once(c):
    bodies = bodies_of(6, 12345)
    for kind in ("one", "two"):
        u = Upload(c, kind, "at-once")
        in_parallel(lambda n, up=u: up.part(n, bodies[n - 1]), random.sample(range(1, 7), 6), 6)
        equal(u.parts(), ([1, 2, 3, 4, 5, 6], False), "the parts")
        u.complete(list_of(bodies))
        has_object(c, kind, "at-once", b"".join(bodies))


def test_through_a_proxy_and_in_chunks(c):
    u = Upload(c, "one", "streamed", headers=NEVER)
    bodies = bodies_of(2, 4321)
    u.part(1, bodies[0], NEVER)
    equal(u.try_part(2, iter([bodies[1][:1000], bodies[1][1000:]])).expect(200).json(),
          {"part": 2, "tag": md5(bodies[1]), "size": len(bodies[1])}, "a part in chunks")
    reply = u.try_complete(list_of(bodies), NEVER).expect(200)
    check(reply.url.startswith(c.url("p1")), f"it was sent on to {reply.url}")
    has_object(c, "one", "streamed", b"".join(bodies))


# --- what is refused -----------------------------------------------------------------------------

def test_lists_that_are_refused(c):
    bodies = [bodies_of(2, 10)[0], b"small", b"x" * PART]
    u = Upload(c, "one", "refused")
    for number, body in enumerate(bodies, 1):
        u.part(number, body)
    one, two, three = list_of(bodies)
    for listed, code in (([three, one], "invalid_part_order"), ([one, one], "invalid_part_order"),
                         ([one, {"part": 4, "tag": md5(b"")}], "invalid_part"),
                         ([one, {"part": 3, "tag": md5(b"")}], "invalid_part"),
                         ([one, two, three], "part_too_small"),
                         ([], "invalid_argument"), ({}, "invalid_argument"),
                         ([7], "invalid_argument"), ([{"part": 1}], "invalid_argument"),
                         ([{"part": 0, "tag": md5(b"")}], "invalid_argument"),
                         ([{"part": 10001, "tag": md5(b"")}], "invalid_argument"),
                         ([{"part": 1, "tag": "x"}], "invalid_argument"),
                         ([{**one, "size": 1}], "invalid_argument")):
        u.try_complete(listed).expect(400, code)
    u.try_complete(b"[").expect(400, "invalid_json")
    c.get("one", "refused").expect(404)
    u.complete([one, three])
    has_object(c, "one", "refused", bodies[0] + bodies[2])


def test_parts_that_are_refused(c):
    u = Upload(c, "one", "parts")
    wrong = {"Content-MD5": base64.b64encode(bytes(16)).decode()}
    u.try_part(1, b"bytes", wrong).expect(422, "checksum_mismatch")
    u.try_part(1, b"bytes", {"Content-MD5": "x"}).expect(400, "invalid_argument")
    for number in (0, 10001, -1, "x", ""):
        u.try_part(number, b"bytes").expect(400, "invalid_argument")
    u.call("PUT", b"bytes", upload=u.id).expect(400, "invalid_argument")
    u.call("PUT", b"bytes", part=1).expect(400, "invalid_argument")
    equal(u.parts(), ([], False), "nothing was stored")
    right = {"Content-MD5": base64.b64encode(bytes.fromhex(md5(b"bytes"))).decode()}
    u.part(1, b"bytes", right)
    u.try_part(1, b"other", wrong).expect(422, "checksum_mismatch")
    u.complete(list_of([b"bytes"]))
    has_object(c, "one", "parts", b"bytes")


def every_call(u):
    """Of an upload that is not there."""
    yield u.try_part(1, b"x")
    yield u.call("GET", upload=u.id)
    yield u.try_complete(list_of([b"x"]))
    yield u.abort()


def test_ids_that_are_refused(c):
    real = Upload(c, "one", "real")
    real.part(1, b"x")
    for bucket, name in (("one", "other"), ("two", "real")):
        for reply in every_call(Upload(c, bucket, name, real.id)):
            reply.expect(404, "not_found")
    for reply in every_call(Upload(c, "one", "real", STRANGER)):
        reply.expect(404, "not_found")
    for reply in every_call(Upload(c, "one", "real", "../" * 12 + "..")):
        reply.expect(400, "invalid_argument")
    for reply in every_call(Upload(c, "none", "real", real.id)):
        reply.expect(404, "bucket_not_found")
    c.call("POST", "/v1/uploads/none/o", b"").expect(404, "bucket_not_found")
    for target in c.targets():  # each knows its own alone
        reply = c.call("GET", f"/v1/uploads/one/real?upload={real.id}", node=target, follow=False)
        check(reply.status in (200, 307, 404), f"{target}: {reply!r}")
    equal(real.parts(), ([1], False), "the parts")
    real.abort().expect(204)


def test_metadata_leaves_room_for_the_tag(c):
    name, body = "full-meta", b"a part"
    full = {"Dfc-Meta-A": "x" * 2040}
    c.call("POST", f"/v1/uploads/one/{name}", b"", headers=full).expect(400, "invalid_argument")
    u = Upload(c, "one", name, headers={"Dfc-Meta-A": "x" * 1900})
    u.part(1, body)
    u.complete(list_of([body]))
    equal(c.object("HEAD", "one", name).headers["Dfc-Md5"], tag_of([body]), "its tag")
    room = 2048 - len(f"entity-md5 {tag_of([body])} a ") - len("entity-parts 1x6 ")
    for spare, parts in ((0, "1x6"), (1, None)):
        u = Upload(c, "one", name, headers={"Dfc-Meta-A": "x" * (room + spare - 1)})
        u.part(1, body)
        u.complete(list_of([body]))
        has_object(c, "one", name, body, Dfc_Md5=tag_of([body]), Dfc_Parts=parts)


def test_sizes_of_parts_are_the_targets(c):
    c.object("PUT", "one", "whole", b"x", {"Dfc-Parts": "1x1"}).expect(200)
    has_object(c, "one", "whole", b"x", Dfc_Parts=None)
    c.object("PUT", "one", "whole", b"x", {"Dfc-Meta-Entity-Parts": "1x1"}).expect(
        400, "invalid_argument", "own")


def test_a_type_that_no_object_may_have(c):
    """A begin is refused as a PUT is, and no completion after all bytes."""
    for size, status in ((255, 200), (256, 400), (3000, 400)):
        headers = {"Content-Type": "t/" + "x" * (size - 2)}
        check(c.object("PUT", "one", "type", b"x", headers).status == status, f"a PUT of {size}")
        reply = c.call("POST", "/v1/uploads/one/type", b"", headers=headers)
        if status == 400:
            reply.expect(400, "invalid_argument", "content type")
            continue
        u = Upload(c, "one", "type", reply.expect(201).json()["upload"])
        u.part(1, b"x")
        u.complete(list_of([b"x"]))
        equal(c.object("HEAD", "one", "type").headers["Content-Type"], headers["Content-Type"],
              "its type")


def test_conditions(c):
    for kind in ("one", "two"):
        old = c.put(kind, "cond", b"old").headers["ETag"]
        u = Upload(c, kind, "cond")
        u.part(1, b"new")
        listed = list_of([b"new"])
        u.try_complete(listed, {"If-None-Match": "*"}).expect(412, "precondition_failed")
        u.try_complete(listed, {"If-Match": '"9.9.9"'}).expect(412, "precondition_failed")
        has_object(c, kind, "cond", b"old")
        u.complete(listed, {"If-Match": old})
        has_object(c, kind, "cond", b"new")
        fresh = Upload(c, kind, "cond-new")
        fresh.part(1, b"new")
        fresh.complete(listed, {"If-None-Match": "*"})
        has_object(c, kind, "cond-new", b"new")


# --- the end of an upload ------------------------------------------------------------------------

def test_a_completion_is_repeated(c):
    bodies = bodies_of(2, 99)
    for kind in KINDS:
        u = Upload(c, kind, "repeated")
        for number, body in enumerate(bodies, 1):
            u.part(number, body)
        done = u.complete(list_of(bodies))
        equal(u.complete(list_of(bodies)), done, "the second reply")
        c.put(kind, "repeated", b"later")
        equal(u.complete(list_of(bodies)), done, "the third reply")
        has_object(c, kind, "repeated", b"later")
        u.try_part(1, b"x").expect(404, "not_found")
        u.abort().expect(404, "not_found")


def test_two_completions_at_once(c):
    bodies = bodies_of(3, 99)
    for kind in ("one", "two", "through"):
        u = Upload(c, kind, "twice")
        for number, body in enumerate(bodies, 1):
            u.part(number, body)
        together = threading.Barrier(2)

        def complete(_, upload=u, barrier=together):
            barrier.wait()
            return patiently(lambda: upload.try_complete(list_of(bodies))).expect(200).json()
        first, second = in_parallel(complete, range(2), 2)
        equal(first, second, f"the replies in {kind}")
        has_object(c, kind, "twice", b"".join(bodies))


def test_two_uploads_of_one_object(c):
    """The one that is completed last counts."""
    first, second = Upload(c, "one", "both"), Upload(c, "one", "both")
    first.part(1, b"first")
    second.part(1, b"second")
    check(first.id != second.id, "two uploads have one id")
    equal(sorted(open_uploads(c, "one", prefix="both")[0]),
          sorted([("both", first.id), ("both", second.id)]), "open uploads")
    second.complete(list_of([b"second"]))
    first.complete(list_of([b"first"]))
    has_object(c, "one", "both", b"first")


def upload_folders(c):
    """Directories of uploads on all disks."""
    found = []
    for target in c.targets():
        for mountpath in sorted(d for d in os.listdir(c.node_dir(target)) if d.startswith("mp")):
            top = os.path.join(c.node_dir(target), mountpath, ".dfc", "uploads")
            found += os.listdir(top) if os.path.isdir(top) else []
    return found


def test_an_abort_deletes_the_parts(c):
    u = Upload(c, "one", "aborted")
    u.part(1, b"x" * PART)
    check(u.id in upload_folders(c), "the upload is on no disk")
    u.abort().expect(204)
    for reply in every_call(u):
        reply.expect(404, "not_found")
    wait_for(lambda: u.id not in upload_folders(c), "its files gone")
    equal(open_uploads(c, "one"), ([], False), "open uploads")
    c.get("one", "aborted").expect(404)


def test_a_bucket_that_is_destroyed_ends_its_uploads(c):
    c.create("gone")
    u = Upload(c, "gone", "o")
    u.part(1, b"x" * 1000)
    c.destroy("gone")
    for reply in every_call(u):
        reply.expect(404, "bucket_not_found")
    c.create("gone")
    equal(open_uploads(c, "gone"), ([], False), "uploads of a bucket made anew")
    for reply in every_call(u):  # 409: its target has not heard of the new bucket
        check(reply.status in (404, 409), f"an upload of the old bucket: {reply!r}")
    c.destroy("gone")


def test_calls_right_after_a_rename_of_the_bucket(c):
    c.create("was0")
    u = Upload(c, "was0", "o")
    for i in range(10):
        c.call("POST", f"/v1/buckets/was{i}",
               {"action": "rename", "name": f"was{i + 1}"}).expect(204)
        u.bucket = f"was{i + 1}"
        u.part(i + 1, b"x" * 1000)
        equal(len(u.parts()[0]), i + 1, "parts")
    u.abort().expect(204)
    c.destroy(u.bucket)


def while_behind(c, target, path, method, body, flag):
    """The reply to a call that the target gets by a state which is still on its way to it."""
    before = location(c, path, method)
    change = {"action": "setprops", "value": {"verify_on_read": flag}}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        with frozen(c, target):
            changed = pool.submit(c.call, "PUT", "/v1/buckets/two", change)
            url = wait_for(lambda: newer(c, path, method, before), "another state")
            sent = pool.submit(c.http.request, method, url, body)
        changed.result()
        return sent.result()


def test_calls_wait_for_a_state_that_is_on_its_way(c):
    """Each with its body, which is taken when the state is there."""
    bodies = [b"x" * PART, b""]
    for i in range(3):
        u = Upload(c, "one", f"behind-{i}")
        target, path = c.owner("one", u.name), f"/v1/uploads/one/behind-{i}?upload={u.id}"
        for at, (method, query, body, status) in enumerate((
                ("PUT", "&part=1", bodies[0], 200), ("PUT", "&part=2", bodies[1], 200),
                ("GET", "", None, 200), ("POST", "", json.dumps(list_of(bodies)).encode(), 200),
                ("DELETE", "", None, 404))):
            while_behind(c, target, path + query, method, body, (5 * i + at) % 2 == 0).expect(
                status)
        has_object(c, "one", u.name, bodies[0])


def location(c, path, method):
    return c.call(method, path, follow=False).expect(307).headers["Location"]


def newer(c, path, method, before):
    """Where it is redirected by another state than before; or None."""
    url = location(c, path, method)
    return url if url.partition("dfcv=")[2] != before.partition("dfcv=")[2] else None


def test_a_target_that_knows_less_than_the_sender_knows_no_bucket(c):
    """It asks for the state that the sender has, which is none here."""
    id_of = Upload(c, "one", "o").id
    for method, body, query in (("PUT", b"x", {"part": 1}), ("GET", None, {}),
                                ("POST", list_of([b"x"]), {}), ("DELETE", None, {})):
        u = Upload(c, "was", "o", id_of, node="t1")
        for state, code in (("9999999999999.1", "not_ready"), ("1.1", "bucket_not_found")):
            u.call(method, body, upload=u.id, dfcb=1, dfcv=state, **query).expect(
                503 if code == "not_ready" else 404, code)
    Upload(c, "one", "o", id_of).abort().expect(204)


# --- lists ---------------------------------------------------------------------------------------

def test_parts_are_listed_in_pages(c):
    u = Upload(c, "one", "pages")
    numbers = sorted(random.sample(range(1, 10001), 23))
    in_parallel(lambda n: u.part(n, b"%d" % n), random.sample(numbers, len(numbers)))
    found, more = [], True
    while more:
        page, more = u.parts(after=found[-1] if found else 0, limit=5)
        check(len(page) == 5 or not more, f"a page of {len(page)}")
        found += page
    equal(found, numbers, "the parts")
    one = u.call("GET", upload=u.id, after=numbers[0] - 1, limit=1).expect(200).json()["parts"][0]
    equal((one["tag"], one["size"]), (md5(b"%d" % numbers[0]), len(str(numbers[0]))), "a row")
    check(abs(one["time"] / 1000 - os.stat(c.dir).st_mtime) < 3600, f"the time {one['time']}")
    for field in ("after=x", "after=-1", "limit=0", "limit=1001", "limit=x", "page=1"):
        name, value = field.split("=")
        u.call("GET", upload=u.id, **{name: value}).expect(400, "invalid_argument")
    u.abort().expect(204)


def test_uploads_are_listed_in_pages(c):
    names = [f"{top}/{i}" for top in ("a", "b", "ü") for i in range(7)]
    made = in_parallel(lambda n: (n, Upload(c, "one", n).id), names + names[:5] * 2)
    got = all_uploads(c, "one", limit=4)
    equal(sorted(got), sorted(made), "the uploads")
    equal([n for n, _ in got], sorted((n for n, _ in made), key=str.encode), "their order")
    equal(all_uploads(c, "one"), got, "in one page")
    equal(all_uploads(c, "one", prefix="b/", limit=3), [u for u in got if u[0].startswith("b/")],
          "with a prefix")
    equal(open_uploads(c, "one", after="a/4", limit=1)[0][0][0], "a/5", "behind all of an object")
    first = [u for u in got if u[0] == "a/0"]
    equal(open_uploads(c, "one", after="a/0", after_upload=first[0][1], limit=2)[0], first[1:],
          "behind one of an object")
    equal(open_uploads(c, "one", prefix="none"), ([], False), "a prefix of no object")
    equal(open_uploads(c, "two"), ([], False), "another bucket")
    for field in ("limit=0", "limit=1001", "after_upload=x", "partial=true"):
        c.call("GET", f"/v1/uploads/one?{field}").expect(400, "invalid_argument")
    c.call("GET", "/v1/uploads/none").expect(404, "bucket_not_found")
    in_parallel(lambda u: Upload(c, "one", *u).abort().expect(204), made)
    equal(open_uploads(c, "one"), ([], False), "open uploads")


def test_a_list_of_long_names(c):
    """A page of more than 1 MiB."""
    names = [f"{i:06}" + "n" * 1010 for i in range(LONGEST)]
    made = in_parallel(lambda n: (n, Upload(c, "two", n).id), names)
    page = c.call("GET", "/v1/uploads/two").expect(200)
    check(len(page.body) > MIB, f"a page of {len(page.body)} bytes")
    equal(all_uploads(c, "two"), sorted(made), "all pages")
    in_parallel(lambda u: Upload(c, "two", *u).abort().expect(204), made)


def test_a_list_needs_every_target(c):
    c.kill("t2")
    c.call("GET", "/v1/uploads/one").expect(503, "node_unreachable")
    c.start("t2")
    c.wait_node("t2", "active")
    equal(patiently(lambda: c.call("GET", "/v1/uploads/one")).expect(200).json(),
          {"uploads": [], "more": False}, "the list")


# --- restarts ------------------------------------------------------------------------------------

def restart(c, node):
    c.kill(node)
    c.start(node)
    c.wait_node(node, "active")


def test_parts_outlive_a_kill(c):
    bodies = bodies_of(4, 321)
    for kind in KINDS:
        u = Upload(c, kind, "killed")
        owner = c.owner(kind, "killed")
        u.part(2, bodies[1])
        u.part(1, bodies[3])
        u.part(1, bodies[0])
        restart(c, owner)
        equal(patiently(lambda up=u: up.call("GET", upload=up.id)).expect(200).json()["more"],
              False, "more")
        equal(u.parts(), ([1, 2], False), "the parts after a kill")
        u.part(4, bodies[3])
        restart(c, owner)
        patiently(lambda up=u: up.try_part(3, bodies[2])).expect(200)
        done = patiently(lambda up=u: up.try_complete(list_of(bodies))).expect(200).json()
        has_object(c, kind, "killed", b"".join(bodies))
        restart(c, owner)
        equal(patiently(lambda up=u: up.try_complete(list_of(bodies))).expect(200).json(), done,
              "the reply after a kill")
        has_object(c, kind, "killed", b"".join(bodies))


def test_clients_do_all_at_once(c):
    """Several uploads of few names by several clients: an object is always one of them, whole."""
    def work(seed):
        rng = random.Random(seed)
        made = []
        for _ in range(4):
            bodies = bodies_of(rng.randint(1, 3), rng.randint(1, 5000), salt=rng.randrange(200))
            u = Upload(c, rng.choice(("one", "two")), f"busy{rng.randrange(2)}")
            for number in rng.sample(range(1, len(bodies) + 1), len(bodies)):
                u.part(number, bodies[number - 1])
            if rng.random() < 0.3:
                u.abort().expect(204)
                continue
            patiently(lambda up=u, b=bodies: up.try_complete(list_of(b))).expect(200)
            made.append((u.bucket, u.name, b"".join(bodies)))
        return made
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        made = [row for rows in pool.map(work, range(4)) for row in rows]
    for bucket, name in {row[:2] for row in made}:
        body = c.get(bucket, name).expect(200).body
        check((bucket, name, body) in made, f"{bucket}/{name} has bytes that nobody completed")
    for bucket in ("one", "two"):
        equal(open_uploads(c, bucket), ([], False), "open uploads")


if __name__ == "__main__":
    os.environ.update({"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET})
    os.environ.pop("AWS_SESSION_TOKEN", None)
    with S3:
        main(targets=4, args=["--target-arg=--backend-backoff=5ms", "--target-arg=--backend-retries=2"])
