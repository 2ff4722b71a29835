#!/usr/bin/env python3
"""Rename in buckets with a backend: under the new name there with the same bytes and metadata, the
old one gone, and
whatever fails on the way leaves at least one of them.

The backend is tests/reference/fake_s3.py, which verifies signatures, conditions and parts of
copies."""

import os
import pathlib
import random
import threading

from cold_lib import QUICK, FakeS3, metric
from lib import check, equal, in_parallel, main, wait_for

ACCESS, SECRET = "AKIDCOLDRENAME", "theSecretThatNobodyMaySee/+0123"
S3 = FakeS3({ACCESS: SECRET})
PART = 5 << 20
LARGE = random.Random(13).randbytes(2 * PART + 12345)
META = {"colour": "dark blue"}


def rename(c, bucket, name, new_name, headers=None):
    return c.object("POST", bucket, name, f'{{"action": "rename", "name": "{new_name}"}}'.encode(),
                    headers)


def there(*names):
    return [S3.has("data", f"pre/{n}") for n in names]


def another_owner(c, name, same, bucket="s3"):
    """A name that the same target has, or the other one."""
    owner = c.owner(bucket, name)
    return next(n for n in (f"{name}-{i}" for i in range(100))
                if (c.owner(bucket, n) == owner) == same)


def check_renamed(c, name, new_name, data, meta=None):
    equal(there(name, new_name), [None, data], "what the backend has")
    c.get("s3", name).expect(404, "object_not_found")
    reply = c.get("s3", new_name).expect(200)
    check(reply.body == data, "bytes read")
    equal(reply.headers["ETag"], S3.etag("data", f"pre/{new_name}"), "entity tag")
    equal(S3.meta("data", f"pre/{new_name}"), meta or {}, "metadata there")
    for key, value in (meta or {}).items():
        equal(reply.headers[f"Dfc-Meta-{key}"], value, "metadata here")


def test_buckets(c):
    S3.put("data", "seed", b"seed")
    c.create("s3", backend=f"s3://data/pre?endpoint={S3.url}", write_policy="through")
    c.create("read", backend=f"s3://data/pre?endpoint={S3.url}")
    c.create("web", backend=f"{S3.url}/data")
    for bucket in ("read", "web"):
        rename(c, bucket, "x", "y").expect(501, "not_supported", "only read")
    rename(c, "s3", "nothing", "new").expect(404, "object_not_found")


def test_what_is_here_and_what_is_not(c):
    for how in ("written", "read", "cold"):
        for same in (True, False):
            name, data = f"{how}/{same}", f"{how} {same}".encode() * 100
            new_name = another_owner(c, name, same)
            if how == "written":
                c.object("PUT", "s3", name, data, {"Dfc-Meta-Colour": "dark blue"}).expect(200)
            else:
                S3.put("data", f"pre/{name}", data, META)
            if how == "read":
                c.get("s3", name).expect(200)
            S3.put("data", f"pre/{new_name}", b"what was there")
            c.get("s3", new_name).expect(200)
            rename(c, "s3", name, new_name).expect(204)
            check_renamed(c, name, new_name, data, META)
            rename(c, "s3", name, new_name).expect(404, "object_not_found")


def test_names(c):
    for name in ("a b", "ä/ö", "p+q", "p%q", "x//y", "t/", "q?x=y", "h#i", "n" * 900, "~(')*!",
                 "a&b=c", "z=?v"):
        S3.put("data", f"pre/{name}", name.encode())
        rename(c, "s3", name, f"new {name}").expect(204)
        check_renamed(c, name, f"new {name}", name.encode())


def test_in_parts(c):
    """More than the service copies at once."""
    S3.copy_max = PART
    S3.put("data", "pre/large", LARGE, META)
    S3.fail("pre/large-new", method="PUT", part=2, status=503)
    rename(c, "s3", "large", "large-new").expect(204)
    check_renamed(c, "large", "large-new", LARGE, META)
    equal(S3.type_of("data", "pre/large-new"), "application/x-test", "content type")
    for fault in ({"part": 3,
                   "status": 403}, {"part": 1,
                                    "late_error": True}, {"method": "POST", "status": 400}):
        S3.fail("pre/larger", **fault)
        reply = rename(c, "s3", "large-new", "larger")
        check(reply.status in (403, 502), f"{fault}: {reply!r}")
        equal(there("large-new", "larger"), [LARGE, None], f"what the backend has after {fault}")
        equal(S3.uploads(), {}, "uploads that are open")
        S3.calm()
    S3.copy_max = 5 << 30


def test_conditions(c):
    S3.put("data", "pre/cond", b"1")
    tag = S3.etag("data", "pre/cond")
    rename(c, "s3", "cond", "cond-new", {"If-Match": '"other"'}).expect(412, "precondition_failed")
    equal(there("cond", "cond-new"), [b"1", None], "what the backend has")
    rename(c, "s3", "cond", "cond-new", {"If-Match": tag}).expect(204)
    equal(there("cond", "cond-new"), [None, b"1"], "what the backend has")


# --- failures ------------------------------------------------------------------------------------

def test_a_copy_that_fails_for_a_while(c):
    for fault in ({"status": 503, "times": 2}, {"deaf": True}, {"status": 500}):
        S3.put("data", "pre/while", b"while")
        S3.fail("pre/while-new", method="PUT", **fault)
        rename(c, "s3", "while", "while-new").expect(204)
        check_renamed(c, "while", "while-new", b"while")


def test_a_copy_that_fails(c):
    for fault, status, code in (({"status": 403}, 403, "backend_denied"), ({
            "late_error": True
    }, 502, "backend_error"), ({"text": b"<html>"}, 502, "backend_error"),
                                ({"status": 503, "times": 9}, 503, "backend_unavailable")):
        S3.put("data", "pre/fails", b"fails")
        c.get("s3", "fails").expect(200)
        S3.fail("pre/fails-new", method="PUT", **fault)
        rename(c, "s3", "fails", "fails-new").expect(status, code, "'fails' still")
        S3.calm()
        equal(there("fails", "fails-new"), [b"fails", None], f"what the backend has after {fault}")
        equal(c.get("s3", "fails").expect(200).body, b"fails", "what is read")
        c.get("s3", "fails-new").expect(404)


def test_a_deletion_that_fails(c):
    for fault, status, code in (({"status": 403}, 403, "backend_denied"),
                                ({"status": 503, "times": 9}, 503, "backend_unavailable")):
        S3.put("data", "pre/stays", b"stays")
        S3.fail("pre/stays", method="DELETE", **fault)
        rename(c, "s3", "stays", "stays-new").expect(status, code, "'stays-new' now")
        S3.calm()
        for name in ("stays", "stays-new"):
            equal(c.get("s3", name).expect(200).body, b"stays", f"object '{name}'")
        rename(c, "s3", "stays", "stays-new").expect(204)
        check_renamed(c, "stays", "stays-new", b"stays")


def test_written_meanwhile(c):
    """Between the copy and the deletion: the new object is copied, too; with the old one's tag, but
    through the cluster,
    that is seen as well."""
    for data, meta in ((b"second", {}), (b"first", META)):
        go = threading.Event()
        S3.put("data", "pre/busy", b"first")
        S3.fail("pre/busy-new", method="PUT", stall=go)
        replies = []
        renamer = threading.Thread(
            target=lambda: replies.append(rename(c, "s3", "busy", "busy-new")))
        before = S3.count("pre/busy-new")
        renamer.start()
        wait_for(lambda: S3.count("pre/busy-new") > before, "the copy is under way")
        c.object("PUT", "s3", "busy", data, {f"Dfc-Meta-{k}": v
                                             for k, v in meta.items()}).expect(200)
        go.set()
        renamer.join()
        replies[0].expect(204)
        check_renamed(c, "busy", "busy-new", data, meta)


def test_condition_that_held_once(c):
    """The object is written between its copy and its deletion: then the condition does not hold any
    more, or it is deleted,
    too, and the error says that the new name has it."""
    for again, status, code in ((None, 412, "precondition_failed"), (404, 404, "object_not_found")):
        name = f"once/{status}"
        S3.put("data", f"pre/{name}", b"first")
        tag = S3.etag("data", f"pre/{name}")
        for fault in ({}, {"change": b"second"},
                      {"status": again} if again else {}):  # of three questions
            S3.fail(f"pre/{name}", method="HEAD", **fault)
        reply = rename(c, "s3", name, f"{name}-new", {} if again else {"If-Match": tag})
        reply.expect(status, code, f"copied to '{name}-new'")
        equal(there(name, f"{name}-new"), [b"second", b"first"], "what the backend has")


def test_an_owner_that_does_not_answer(c):
    """The new name's hangs in the middle of the copy: the old one's gives up, and says that it may
    still be made."""
    go, name, data = threading.Event(), "hangs", b"hangs" * 100
    new_name = another_owner(c, name, False)
    owner = c.owner("s3", name)
    S3.put("data", f"pre/{name}", data)
    c.kill(owner)
    c.start(
        owner,
        *(f"--arg=--{a}" for a in ("backend-timeout=1s", "backend-retries=0",
                                   "backend-backoff-max=5ms", "call-timeout=1s")))
    c.wait_node(owner, "active")
    S3.fail(f"pre/{new_name}", method="PUT", stall=go)
    reply = rename(c, "s3", name, new_name)
    equal(there(name, new_name), [data, None], "what the backend has")
    go.set()
    reply.expect(504, "timeout",
                 f"the object is '{name}' still, and may be '{new_name}', too, now or later")
    wait_for(lambda: there(name, new_name) == [data, data], "the copy is made later")
    c.kill(owner)
    c.start(owner)
    c.wait_node(owner, "active")
    rename(c, "s3", name, new_name).expect(204)
    check_renamed(c, name, new_name, data)


def test_there_and_back(c):
    """The copy is there, its answer is not, and the new name is renamed to the old one: which then
    has the same tag."""
    S3.put("data", "pre/there", b"there")
    done, go, store, replies = threading.Event(), threading.Event(), S3.store, []

    def store_and_wait(bucket, key, *args, **kwargs):
        tag = store(bucket, key, *args, **kwargs)
        if key == "pre/back" and not done.is_set():
            done.set()
            go.wait()
        return tag

    S3.store = store_and_wait
    renamers = [threading.Thread(target=lambda names=names: replies.append(rename(c, "s3", *names)))
                for names in (("there", "back"), ("back", "there"))]
    renamers[0].start()
    check(done.wait(60), "the first copy")
    renamers[1].start()
    wait_for(lambda: ("data", "pre/there", b"there") in S3.puts, "the second copy")
    go.set()
    for renamer in renamers:
        renamer.join()
    S3.store = store
    check(all(r.status in (204, 404, 412) for r in replies), f"replies: {replies}")
    check(b"there" in there("there", "back"), "the object is gone")


def test_round_and_round(c):
    """Renames in a ring, at once."""
    for i in range(6):
        S3.put("data", f"pre/ring/{i}", b"%d" % i)
    in_parallel(lambda i: rename(c, "s3", f"ring/{i}", f"ring/{(i + 1) % 6}"), range(6), workers=6)
    left = [data for data in there(*(f"ring/{i}" for i in range(6))) if data is not None]
    check(left, "every object is gone")
    for i in range(6):
        data = S3.has("data", f"pre/ring/{i}")
        reply = c.get("s3", f"ring/{i}")
        equal((reply.status, reply.body if data is not None else None),
              (200, data) if data is not None else (404, None), f"ring/{i}")


def rename_or_none(c, name, new_name, replies):
    try:
        replies.append(rename(c, "s3", name, new_name).status)
    except OSError:
        replies.append(None)


def test_killed(c):
    """In the copy, between copy and deletion, in the deletion: what the backend has is under one
    name at least, and the
    same request again does the rest."""
    for step, method in (("copy", "PUT"), ("between", "HEAD"), ("deletion", "DELETE")):
        name, go, replies = f"killed/{step}", threading.Event(), []
        new_name = another_owner(c, name, step == "copy")
        data, key = name.encode() * 50, f"pre/{new_name if step == 'copy' else name}"
        S3.put("data", f"pre/{name}", data)
        c.get("s3", name).expect(200)
        if step == "between":  # the second question
            S3.fail(key, method="HEAD")
        S3.fail(key, method=method, stall=go)
        renamer = threading.Thread(target=rename_or_none, args=(c, name, new_name, replies))
        renamer.start()
        wait_for(lambda key=key: not S3.faults[key], "the backend was asked")
        c.kill(c.owner("s3", name))
        go.set()
        renamer.join()
        check(replies[0] != 204, "it was answered")
        wait_for(S3.is_idle, "what the dead one has asked is done")
        check(data in there(name, new_name), "the object is gone")
        c.start(c.owner("s3", name))
        c.wait_node(c.owner("s3", name), "active")
        reply = rename(c, "s3", name, new_name)
        check(reply.status in (204, 404), f"the same again: {reply!r}")
        check_renamed(c, name, new_name, data)


# --- written back --------------------------------------------------------------------------------

def back_there(*names):
    return [S3.has("data", f"back/{n}") for n in names]


def wait_uploaded(c):
    wait_for(lambda: sum(metric(c, "dfc_back_waiting", node=n) for n in c.targets()) == 0,
             "everything is uploaded")


def refuse(*names):
    """The backend takes nothing under these, until calm()."""
    for name in names:
        S3.is_so(f"back/{name}", status=503)


def check_back(c, name, new_name, data):
    """As clients see it at once, wherever the backend is."""
    c.get("back", name).expect(404, "object_not_found")
    reply = c.get("back", new_name).expect(200)
    equal((reply.body, reply.headers["Dfc-Meta-Colour"]), (data, "dark blue"),
          f"object '{new_name}'")


def check_order(name, new_name, data):
    """The backend had the new name before it lost the old one."""
    equal(back_there(name, new_name), [None, data], "what the backend has")
    equal(S3.meta("data", f"back/{new_name}"), META, "metadata there")
    writes = [(key, what) for _, key, what in S3.puts]
    check(
        writes.index((f"back/{new_name}", data)) < writes.index((f"back/{name}", None)),
        "the order of the writes")


def write_back(c, name, data):
    c.object("PUT", "back", name, data, {"Dfc-Meta-Colour": "dark blue"}).expect(200)


def test_back(c):
    c.create("back", backend=f"s3://data/back?endpoint={S3.url}", write_policy="back")
    cases = []
    for how in ("uploaded", "waits", "read", "cold"):
        for same in (True, False):
            name, data = f"{how}/{same}", f"{how} {same}".encode() * 100
            cases.append((name, another_owner(c, name, same)
                          if how != "waits" else f"{name}-\u00e4".ljust(900, "+"), data))
            if how == "waits":
                refuse(*cases[-1][:2])
            if how in ("waits", "uploaded"):
                write_back(c, name, data)
            else:
                S3.put("data", f"back/{name}", data, META)
            if how == "read":
                c.get("back", name).expect(200)
        if how == "uploaded":
            wait_uploaded(c)
    for name, new_name, data in cases:
        rename(c, "back", name, new_name).expect(204)
        check_back(c, name, new_name, data)
    S3.calm()
    wait_uploaded(c)
    for name, new_name, data in cases:
        check_order(name, new_name, data)
        check_back(c, name, new_name, data)
        rename(c, "back", name, new_name).expect(404, "object_not_found")


def test_back_conditions(c):
    write_back(c, "cond", b"1")
    rename(c, "back", "cond", "cond-new", {"If-Match": '"other"'}).expect(412)
    refuse("gone")
    write_back(c, "gone", b"gone")
    c.object("DELETE", "back", "gone").expect(204)
    rename(c, "back", "gone", "gone-new").expect(404, "object_not_found")
    refuse("waits-new")
    write_back(c, "waits-new", b"waits")
    S3.put("data", "back/cold", b"cold", META)
    rename(c, "back", "cold", "waits-new").expect(503, "not_ready", "try again")
    equal(c.get("back", "waits-new").expect(200).body, b"waits", "what waits")
    S3.calm()
    wait_uploaded(c)
    rename(c, "back", "cold", "waits-new").expect(204)
    check_back(c, "cold", "waits-new", b"cold")


def test_back_odd_metadata(c):
    """An object that others gave metadata that is refused here: it is renamed all the same, and
    keeps it."""
    for same in (True, False):
        name, odd = f"odd/{same}", {"odd_name": "x"}
        new_name = another_owner(c, name, same, "back")
        S3.put("data", f"back/{name}", b"odd", odd)
        equal(c.get("back", name).expect(200).headers["Dfc-Meta-odd_name"], "x", "metadata here")
        c.object("PUT", "back", f"{name}-put", b"odd", {"Dfc-Meta-odd_name": "x"}).expect(400)
        rename(c, "back", name, new_name).expect(204)
        equal(back_there(name, new_name), [None, b"odd"], "what the backend has")
        equal(S3.meta("data", f"back/{new_name}"), odd, "metadata there")
        equal(
            c.get("back", new_name).expect(200).headers["Dfc-Meta-odd_name"], "x",
            "metadata under the new name")


def test_back_in_a_row(c):
    """Renamed again before the backend has heard of it, and back to the first name."""
    names = [f"row/{i}" for i in range(3)]
    S3.put("data", "back/row/0", b"row", META)
    c.get("back", "row/0").expect(200)
    refuse(*names)
    for name, new_name in zip(names, (*names[1:], names[0])):
        rename(c, "back", name, new_name).expect(204)
        check_back(c, name, new_name, b"row")
    S3.calm()
    wait_uploaded(c)
    equal(back_there(*names), [b"row", None, None], "what the backend has")
    check_back(c, names[1], names[0], b"row")


def test_back_lost_before_its_upload(c):
    """Then the backend's are the only bytes, and it keeps them under the old name."""
    name, data = "lost", b"bytes that the backend has" * 100
    write_back(c, name, data)
    wait_uploaded(c)
    new_name = another_owner(c, name, False, "back")
    owner = c.owner("back", new_name)
    refuse(new_name)
    rename(c, "back", name, new_name).expect(204)
    c.kill(owner)
    for path in list(c.object_files(owner)):
        with open(path, "rb") as f:
            mine = f.read() == data
        if mine:
            os.unlink(path)
    c.start(owner)
    c.wait_node(owner, "active")
    S3.calm()
    before = len(S3.requests)
    wait_for(lambda: ("HEAD", f"back/{new_name}") in [r[:2] for r in S3.requests[before:]],
             "the backend is asked")
    equal(back_there(name, new_name), [data, None], "what the backend has")
    write_back(c, new_name, data)
    wait_uploaded(c)
    check_order(name, new_name, data)


def lose(c, node, data):
    """The file on that target with these bytes, of which there is one."""
    lost = [path for path in list(c.object_files(node)) if pathlib.Path(path).read_bytes() == data]
    equal(len(lost), 1, "files with these bytes")
    os.unlink(lost[0])


def asked_since(before, method, key):
    return sum(r[:2] == (method, key) for r in S3.requests[before:])


def test_back_lost_over_an_older_one(c):
    """The backend has an object under the new name which is not the one that was renamed, whether
    that has been read from
    there meanwhile or not."""
    for how in ("asked", "read", "same length"):
        name, data = f"over/{how}", f"over {how} ".encode() * 100
        older = data[::-1] if how == "same length" else b"older"
        write_back(c, name, data)
        wait_uploaded(c)
        new_name = another_owner(c, name, False, "back")
        owner, key = c.owner("back", new_name), f"back/{new_name}"
        S3.put("data", key, older, META)
        S3.is_so(key, method="PUT", status=503)
        rename(c, "back", name, new_name).expect(204)
        before = len(S3.requests)
        c.kill(owner)
        lose(c, owner, data)
        c.start(owner)
        c.wait_node(owner, "active")
        if how == "read":
            c.dfcctl("storage", "reindex", owner, "--wait")
            equal(c.get("back", new_name).expect(200).body, older, "what is read")
        wait_for(
            lambda name=name, key=key, before=before: back_there(name) == [None] or asked_since(
                before, "HEAD", key) > 2, "the old name has been asked for more than once")
        equal(back_there(name, new_name), [data, older], f"what the backend has, {how}")
        if how == "same length":
            equal(asked_since(before, "GET", key), 1,
                  "reads of what the backend has: once is enough")
        S3.calm()
        write_back(c, new_name, data)
        wait_uploaded(c)
        check_order(name, new_name, data)


def test_back_gone_after_its_upload(c):
    """Nothing is here under the new name when the old one's turn comes, as after an eviction: the
    bytes tell."""
    name, data = "evicted", b"evicted before" * 100
    write_back(c, name, data)
    wait_uploaded(c)
    new_name = another_owner(c, name, False, "back")
    owner, owner_before = c.owner("back", new_name), c.owner("back", name)
    S3.put("data", f"back/{new_name}", b"older", META)
    refuse(new_name)
    rename(c, "back", name, new_name).expect(204)
    c.kill(owner_before)
    S3.calm()
    wait_for(lambda: metric(c, "dfc_back_waiting", node=owner) == 0, "the new name is uploaded")
    equal(back_there(name, new_name), [data, data], "what the backend has")
    lose(c, owner, data)
    before = len(S3.requests)
    c.start(owner_before)
    c.wait_node(owner_before, "active")
    wait_uploaded(c)
    check_order(name, new_name, data)
    equal(asked_since(before, "GET", f"back/{new_name}"), 1, "reads of what the backend has")
    write_back(c, new_name, data)  # what a target has lost cannot be moved
    wait_uploaded(c)


def test_back_same_bytes(c):
    """Over an object with the same bytes, which is here already."""
    for name in ("twin", "twin-new"):
        write_back(c, name, b"twins")
    wait_uploaded(c)
    rename(c, "back", "twin", "twin-new").expect(204)
    wait_uploaded(c)
    check_order("twin", "twin-new", b"twins")


def test_back_killed_and_moved(c):
    """What the backend has is under one name at least, over kill -9 and changes of owners."""
    names = [(f"safe/{i}", f"safe-new/{i}") for i in range(6)]
    for name, _ in names:
        S3.put("data", f"back/{name}", name.encode(), META)
        c.get("back", name).expect(200)
    refuse(*(new_name for _, new_name in names))
    for name, new_name in names:
        rename(c, "back", name, new_name).expect(204)
    for node in c.targets():
        c.kill(node)
    for node in c.targets():
        c.start(node)
        c.wait_node(node, "active")
    equal(back_there(*(n for n, _ in names)), [n.encode() for n, _ in names], "the old names there")
    for name, value in (("rebalance_delay", "100ms"), ("rebalance_keep", "2s")):
        c.setting(name, value)
    c.wait_node(c.add_target(), "active")
    wait_for(lambda: not c.get_json("/v1/cluster?what=smap").get("earlier"), "all has moved")
    for name, new_name in names:
        check_back(c, name, new_name, name.encode())
    equal(back_there(*(n for n, _ in names)), [n.encode() for n, _ in names], "the old names there")
    equal(sorted(c.names("back", prefix="safe")), sorted(n for _, n in names), "the list")
    S3.calm()
    wait_uploaded(c)
    for name, new_name in names:
        check_order(name, new_name, name.encode())


if __name__ == "__main__":
    os.environ.update({"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET})
    os.environ.pop("AWS_SESSION_TOKEN", None)
    with S3:
        main(targets=2, args=[*QUICK, "--target-arg=--backend-copy-size=5MiB"])
