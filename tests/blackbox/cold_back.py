#!/usr/bin/env python3
"""Writes to buckets with a backend, write_policy back: answered when they are durable here, served
from here, and
uploaded later, in order, whatever dies in between.

DFC_ROUNDS (2) says how often a target is killed, DFC_SEED repeats the choices."""

import hashlib
import os
import random
import threading

from cold_lib import QUICK, FakeS3, metric
from lib import ENDED, check, equal, in_parallel, main, wait_for

ROUNDS = int(os.environ.get("DFC_ROUNDS", 2))
SEED = int(os.environ.get("DFC_SEED", 0)) or random.randrange(1, 1 << 31)
RANDOM = random.Random(SEED)
S3 = FakeS3()
LARGE = random.Random(3).randbytes(11_000_000)


def put(c, name, data, headers=None):
    return c.object("PUT", "back", name, data, headers)


def delete(c, name, headers=None):
    return c.object("DELETE", "back", name, headers=headers)


def everywhere(c, name):
    return sum(metric(c, name, node=node) for node in c.targets())


def pending(c):
    return everywhere(c, "dfc_back_waiting")


def wait_uploaded(c):
    wait_for(lambda: pending(c) == 0, "everything is uploaded")


class Refusing:
    """The backend takes nothing under these names until the end."""

    def __init__(self, *names):
        self.names = names

    def __enter__(self):
        for name in self.names:
            S3.is_so(name, status=503)

    def __exit__(self, *_):
        with S3.lock:
            for name in self.names:
                S3.always.pop(name, None)


def test_the_property(c):
    print(f"        DFC_SEED={SEED} DFC_ROUNDS={ROUNDS}", flush=True)
    S3.put("data", "seed", b"seed")
    c.create("back", backend=f"s3://data?endpoint={S3.url}&auth=none", write_policy="back")
    equal(c.get_json("/v1/buckets/back")["props"]["write_policy"], "back", "write_policy")
    c.call("POST", "/v1/buckets/web", {"action": "create", "value": {
        "backend": "http://h/", "write_policy": "back"}}).expect(501, "not_supported", "s3 and gs")
    c.call("POST", "/v1/buckets/own",
           {"action": "create", "value": {"write_policy": "back"}}).expect(400)


def health_says_it(c, said):
    text = c.dfcctl("cluster", "health").stdout
    return text.startswith("Health: ") and (" that wait for a backend " in text) == said


def test_health_tells_of_what_waits_for_long(c):
    """--back-late is 100 ms here."""
    with Refusing("late"):
        put(c, "late", b"late").expect(200)
        wait_for(lambda: health_says_it(c, True), "health says it")
    wait_for(lambda: health_says_it(c, False), "health says it no more")
    equal(S3.written("late"), [b"late"], "what was written there")


# --- what is written gets there ------------------------------------------------------------------

def test_put(c):
    for size in (0, 1, 300_000):
        name = f"size/{size}"
        reply = put(c, name, LARGE[:size], {"Content-Type": "text/x-mine"}).expect(200)
        equal(reply.json()["size"], size, "size")
    wait_uploaded(c)
    for size in (0, 1, 300_000):
        name, data = f"size/{size}", LARGE[:size]
        equal(S3.written(name), [data], "what was written there")
        equal(S3.type_of("data", name), "text/x-mine", "content type")
        got = c.get("back", name).expect(200)
        check(got.body == data, "bytes read")
        equal(got.headers["ETag"], f'"{hashlib.md5(data).hexdigest()}"', "the backend's entity tag")


def test_in_parts(c):
    put(c, "large", LARGE).expect(200)
    done = c.dfcctl("bucket", "wait", "back")
    equal((done.returncode, done.stdout), (0, "back: nothing waits\n"), "the wait")
    check(S3.has("data", "large") == LARGE, "what the backend has")
    equal(S3.uploads(), {}, "uploads that are open")


def test_delete(c):
    S3.put("data", "gone/cold", b"cold")
    S3.put("data", "gone/cached", b"cached")
    c.get("back", "gone/cached").expect(200)
    delete(c, "gone/never").expect(404, "object_not_found")
    with Refusing("gone/cached"):
        delete(c, "gone/cached").expect(204)
        delete(c, "gone/cached").expect(404, "object_not_found")
        c.get("back", "gone/cached").expect(404, "object_not_found")
        c.object("HEAD", "back", "gone/cached").expect(404)
        equal(c.names("back", prefix="gone/"), ["gone/cold"], "the list")
        equal(S3.has("data", "gone/cached"), b"cached", "what the backend has")
    delete(c, "gone/cold").expect(204)
    wait_uploaded(c)
    equal([S3.has("data", n) for n in ("gone/cold", "gone/cached")], [None, None],
          "what the backend has")
    equal(c.names("back", prefix="gone/"), [], "the list")
    S3.put("data", "gone/cold", b"again")  # behind our back
    equal(
        c.get("back", "gone/cold").expect(200).body, b"again", "a deleted name is asked for again")


# --- while it waits ------------------------------------------------------------------------------

def test_what_waits_is_what_is_there(c):
    S3.put("data", "wait/over", b"theirs")
    c.get("back", "wait/over").expect(200)
    with Refusing("wait/over", "wait/new"):
        put(c, "wait/over", b"ours, and longer").expect(200)
        put(c, "wait/new", b"new").expect(200)
        put(c, "wait/new", b"newer").expect(200)
        equal(c.get("back", "wait/over").expect(200).body, b"ours, and longer", "what is read")
        page = c.get_json("/v1/objects/back?prefix=wait/")
        equal([(e["name"], e["size"]) for e in page["entries"]], [("wait/new", 5),
                                                                  ("wait/over", 16)], "list")
        equal(S3.has("data", "wait/over"), b"theirs", "what the backend has")
        job = c.call("POST", "/v1/buckets/back",
                     {"action": "evict", "value": {"prefix": "wait/"}}).expect(202)
        c.wait_job(job.json()["id"], "finished")
        equal(sorted(c.names("back", prefix="wait/", cached="true")), ["wait/new", "wait/over"],
              "not evicted")
        check(pending(c) >= 2, "both wait")
        done = c.dfcctl("bucket", "wait", "back", "--timeout", "1ms")
        equal(done.returncode, 5, "the wait, in vain")
        check("2 writes wait" in done.stderr, done.stderr)
    wait_uploaded(c)
    equal(S3.written("wait/new")[-1], b"newer", "the last write")
    job = c.call("POST", "/v1/buckets/back",
                 {"action": "evict", "value": {"prefix": "wait/"}}).expect(202)
    c.wait_job(job.json()["id"], "finished")
    equal(c.names("back", prefix="wait/", cached="true"), [], "evicted")
    equal(c.get("back", "wait/new").expect(200).body, b"newer", "read again from the backend")


def test_conditions(c):
    S3.put("data", "cond", b"1")
    tag = '"' + hashlib.md5(b"1").hexdigest() + '"'
    put(c, "cond", b"2", {"If-None-Match": "*"}).expect(412, "precondition_failed")
    put(c, "cond", b"2", {"If-Match": '"0"'}).expect(412)
    delete(c, "cond", {"If-Match": '"0"'}).expect(412)
    with Refusing("cond"):
        put(c, "cond", b"2",
            {"If-Match": tag}).expect(503)  # the backend has the last word, and does not say it
    put(c, "cond", b"2", {"If-Match": tag}).expect(200)
    with Refusing("cond"):
        waiting = put(c, "cond", b"3").expect(200).headers["ETag"]
        put(c, "cond", b"4", {"If-None-Match": "*"}).expect(412)
        put(c, "cond", b"4", {"If-Match": waiting}).expect(200)
        delete(c, "cond").expect(204)
        put(c, "cond", b"5", {"If-Match": tag}).expect(412)
        put(c, "cond", b"6", {"If-None-Match": "*"}).expect(200)
    wait_uploaded(c)
    equal(S3.has("data", "cond"), b"6", "what the backend has")
    put(c, "cond-new", b"1", {"If-None-Match": "*"}).expect(200)
    wait_uploaded(c)


def test_writes_during_an_upload(c):
    """The one that is under way ends; of those that came meanwhile the last goes, alone."""
    go = threading.Event()
    S3.fail("during", method="PUT", stall=go)
    put(c, "during", b"0").expect(200)
    wait_for(lambda: S3.count("during") == 1, "the upload is under way")
    for i in range(1, 6):
        put(c, "during", b"%d" % i).expect(200)
        equal(c.get("back", "during").expect(200).body, b"%d" % i, "what is read")
    go.set()
    wait_uploaded(c)
    equal(S3.written("during"), [b"0", b"5"], "what was written there")


def test_a_read_that_a_deletion_overtakes(c):
    """It began before: it gets the old bytes, whole, and they are not kept."""
    go = threading.Event()
    S3.put("data", "race", LARGE)
    S3.fail("race", method="GET", hold=go, held_bytes=200_000)
    got, before = [], everywhere(c, "dfc_cold_fetch_bytes_total")
    reader = threading.Thread(target=lambda: got.append(c.get("back", "race")))
    reader.start()
    wait_for(lambda: everywhere(c, "dfc_cold_fetch_bytes_total") > before, "the read is under way")
    delete(c, "race").expect(204)
    c.get("back", "race").expect(404)
    wait_uploaded(c)
    c.get("back", "race").expect(404)  # and not what the other one reads still
    go.set()
    reader.join()
    check(got[0].expect(200).body == LARGE, "the old bytes, whole")
    c.get("back", "race").expect(404)


def test_prefetch_passes_over_what_waits(c):
    S3.put("data", "pre/deleted", b"old")
    S3.put("data", "pre/written", b"old")
    c.get("back", "pre/deleted").expect(200)
    with Refusing("pre/deleted", "pre/written"):
        delete(c, "pre/deleted").expect(204)
        put(c, "pre/written", b"new").expect(200)
        job = c.call("POST", "/v1/buckets/back",
                     {"action": "prefetch", "value": {"prefix": "pre/"}}).expect(202)
        done = c.wait_job(job.json()["id"], *ENDED)
        equal(done["state"], "finished", "the prefetch")
        c.get("back", "pre/deleted").expect(404)
        equal(c.get("back", "pre/written").expect(200).body, b"new", "what is read")
    wait_uploaded(c)


def test_another_policy(c):
    """What waits is not lost: who writes through has to wait for it, and it gets there under any
    policy."""
    with Refusing("policy"):
        put(c, "policy", b"back").expect(200)
        c.call("PUT", "/v1/buckets/back",
               {"action": "setprops", "value": {"write_policy": "through"}}).expect(200)
        put(c, "policy", b"through").expect(503, "not_ready", "try again")
        equal(c.get("back", "policy").expect(200).body, b"back", "what is read")
        c.call("PUT", "/v1/buckets/back",
               {"action": "setprops", "value": {"write_policy": "none"}}).expect(200)
    wait_uploaded(c)
    equal(S3.written("policy"), [b"back"], "what was written there")
    c.call("PUT", "/v1/buckets/back",
           {"action": "setprops", "value": {"write_policy": "back"}}).expect(200)


def same_owner(c, name):
    """Another name that the same target has."""
    owner = c.owner("back", name)
    return next(n for n in (f"{name}-{i}" for i in range(100)) if c.owner("back", n) == owner)


def test_policies_that_change_during_an_upload(c):
    """A write through and one back, side by side: they get to the backend one after the other, and
    what is there
    in the end is what is here."""
    def policy(value):
        c.call("PUT", "/v1/buckets/back",
               {"action": "setprops", "value": {"write_policy": value}}).expect(200)

    first, second, replies = threading.Event(), threading.Event(), []
    policy("through")
    S3.fail("both", method="PUT", stall=first)
    writer = threading.Thread(target=lambda: replies.append(put(c, "both", b"through")))
    writer.start()
    wait_for(lambda: S3.count("both") == 1, "the upload is under way")
    policy("back")
    S3.fail("both", method="PUT", stall=second)  # one that would overtake it
    put(c, "both", b"back").expect(200)
    after = same_owner(c, "both")
    put(c, after, b"after").expect(200)
    wait_for(lambda: S3.has("data", after) == b"after", "what was written later is there")
    first.set()
    writer.join()
    replies[0].expect(200)
    second.set()
    S3.calm()
    wait_uploaded(c)
    equal(S3.has("data", "both"),
          c.get("back", "both").expect(200).body, "what the backend has is what is here")


# --- kills and moves -----------------------------------------------------------------------------

def write_some(c, prefix, count):
    """What is there then, by name: bytes, or None."""
    wanted = {}
    for i in range(count):
        name = f"{prefix}/{i % (count // 2)}"
        if wanted.get(name) is not None and RANDOM.random() < 0.3:
            delete(c, name).expect(204)
            wanted[name] = None
        else:
            wanted[name] = b"%s %d" % (name.encode(), i) + RANDOM.randbytes(
                RANDOM.choice((0, 20_000)))
            put(c, name, wanted[name]).expect(200)
    return wanted


def check_all(c, wanted, prefix, **query):
    def one(item):
        name, data = item
        reply = c.get("back", name)
        equal((reply.status, reply.body if data is not None else None),
              (200, data) if data is not None else (404, None), name)

    in_parallel(one, wanted.items())
    equal(c.names("back", prefix=prefix, **query),
          sorted(n for n, data in wanted.items() if data is not None), "the list")


def check_backend(wanted):
    for name, data in wanted.items():
        equal(S3.has("data", name), data, f"{name}: what the backend has")
        written = S3.written(name)
        last = len(written) - 1 - written[::-1].index(data) if data in written else len(written)
        equal(written[last + 1:], [], f"{name}: after its last write")


def test_kill(c):
    """Killed when some has been uploaded and some answers stand still: the rest goes after the
    restart."""
    for number in range(ROUNDS):
        prefix, go = f"kill/{number}", threading.Event()
        for i in range(0, 20, 3):
            S3.fail(f"{prefix}/{i}", stall=go)
        wanted = write_some(c, prefix, 40)
        for node in c.targets():
            c.kill(node)
        go.set()
        S3.calm()
        wait_for(S3.is_idle, "what the dead have sent is done, or is not")
        for node in c.targets():
            c.start(node)
            c.wait_node(node, "active")
        check_all(c, wanted, prefix)
        wait_uploaded(c)
        check_backend(wanted)
        check_all(c, wanted, prefix)


def test_damaged_bytes_never_go(c):
    """Not either where a sound write comes between the opening of the damaged one and the look at
    its bytes."""
    with Refusing("damaged"):
        put(c, "damaged", b"first").expect(200)
        owner = next(n for n in c.targets() if metric(c, "dfc_back_waiting", node=n) > 0)
        c.kill(owner)
        wait_for(S3.is_idle, "what the dead has sent is refused")
    for path in c.object_files(owner):
        with open(path, "r+b") as f:
            if f.read() == b"first":
                f.seek(0)
                f.write(b"worst")
    c.start(owner, "--arg=--faults=back.opened=delay:5000@1")
    c.wait_node(owner, "active")
    put(c, "damaged", b"second").expect(200)
    wait_uploaded(c)
    check(b"worst" not in S3.written("damaged"), "damaged bytes were written there")
    equal(S3.has("data", "damaged"), b"second", "what the backend has")


def test_a_read_over_two_changes_of_owners(c):
    """It began at the first owner; the second one deleted the object; what is read is not kept by
    the first, who owns it again."""
    go = threading.Event()
    name = next(f"twice/{i}" for i in range(100) if c.owner("back", f"twice/{i}") == "t1")
    S3.put("data", name, LARGE)
    S3.fail(name, method="GET", hold=go, held_bytes=200_000)
    c.setting("rebalance_delay", "100ms")
    got, before = [], everywhere(c, "dfc_cold_fetch_bytes_total")
    reader = threading.Thread(target=lambda: got.append(c.get("back", name)))
    reader.start()
    wait_for(lambda: everywhere(c, "dfc_cold_fetch_bytes_total") > before, "the read is under way")
    c.call("PUT", "/v1/cluster", {"action": "startmaintenance", "name": "t1"}).expect(200)
    wait_for(lambda: c.owner("back", name) == "t2", "another owner")
    delete(c, name).expect(204)
    c.call("PUT", "/v1/cluster", {"action": "stopmaintenance", "name": "t1"}).expect(200)
    wait_for(lambda: c.owner("back", name) == "t1", "the first owner")
    go.set()
    reader.join()
    check(got[0].expect(200).body == LARGE, "the old bytes, whole")
    wait_for(lambda: not c.get_json("/v1/cluster?what=smap").get("earlier"), "all has moved")
    wait_uploaded(c)
    c.get("back", name).expect(404)


def test_owners_change(c):
    """What waits goes with its object to the new owner, while an old one is uploading still."""
    go = threading.Event()
    names = [f"move/{i}" for i in range(24)]
    for name in names[::2]:
        S3.is_so(name, status=503)
    for name in names[1::2]:
        S3.fail(name, method="PUT", stall=go)
    first = {name: b"first " + name.encode() for name in names}
    for name, data in first.items():
        put(c, name, data).expect(200)
    wait_for(lambda: any(S3.count(name) for name in names[1::2]), "uploads are under way")
    c.setting("rebalance_delay", "100ms")
    node = c.add_target()
    c.wait_node(node, "active")
    wanted = {
        name: b"second " + name.encode() if i % 3 == 0 else first[name]
        for i, name in enumerate(names)
    }
    for name in names[::3]:
        put(c, name, wanted[name]).expect(200)
    check_all(c, wanted, "move/", cached="true")  # the backend stands still
    go.set()
    S3.calm()
    wait_uploaded(c)
    wait_for(lambda: not c.get_json("/v1/cluster?what=smap").get("earlier"), "all has moved")
    wait_uploaded(c)
    check_backend(wanted)
    check_all(c, wanted, "move/")


if __name__ == "__main__":
    with S3:
        main(
            targets=2, args=[
                *QUICK, "--target-arg=--backend-part-size=5MiB",
                "--target-arg=--backend-timeout=10m", "--target-arg=--back-late=100ms"
            ])
