#!/usr/bin/env python3
"""User metadata and content type: how much is taken, and that all of it stays, whatever way an
object goes: to
other owners, to another name, to another target, into slices, and back after a repair."""

import http.client
import itertools
import random
import string

from copies import patient, settled, wait_repaired
from lib import check, equal, main, wait_for
from user_meta import PAIRS_MAX, Meta, random_meta, seen

http.client._MAXHEADERS = 2000  # of a reply
EC = {"ec": {"data": 1, "parity": 1, "min_size": 1000}}
BUCKETS = {
    "one": {}, "two": {"copies": 2, "read_from": "any"},
    "major": {"copies": 3, "write_quorum": "majority"}, "sliced": EC
}
BODY = b"b" * 3000
EMPTY = Meta((("Empty", ""), ("Blank", " \t "), ("Full", "x")), "")
WAYS = ({}, {"query": "redirect=never", "follow": False})


def pairs(count):
    return Meta(tuple((f"K{i}", f"v{i}" if i % 3 else "") for i in range(count)), None)


def rename(c, bucket, old, new):
    return c.object("POST", bucket, old, b'{"action": "rename", "name": "%s"}' % new.encode())


def copy_job(c, bucket, names, prefix):
    job = c.call("POST", f"/v1/buckets/{bucket}", {"action": "copy", "value": {
        "to": bucket, "list": names, "prepend": prefix}}).expect(202).json()["id"]
    equal(c.wait_job(job, "finished")["progress"]["objects"]["done"], len(names), "objects copied")


def test_buckets(c):
    c.setting("repair_delay", "0s")
    c.setting("rebalance_delay", "0s")
    c.setting("rebalance_keep", "2s")
    c.encoded = []  # names of objects with a Content-Encoding
    c.objects = {}  # what is there: {(bucket, name): Meta}
    for bucket, props in BUCKETS.items():
        c.create(bucket, **props)


def test_so_many_pairs_and_no_more(c):
    for bucket in BUCKETS:
        for way, options in enumerate(WAYS):
            most = pairs(PAIRS_MAX)
            c.object("PUT", bucket, f"most{way}", BODY, most.headers, **options).expect(200)
            for method in ("GET", "HEAD"):
                most.check(
                    c.object(method, bucket, f"most{way}", **options).expect(200),
                    f"{bucket}/most{way}")
            for count in (65, 80, 200):
                reply = c.object("PUT", bucket, "more", BODY, pairs(count).headers, **options)
                reply.expect(400, "invalid_argument", f"{count} headers of user metadata")
                check("at most 64" in reply.json()["message"], f"no limit in {reply!r}")
        c.get(bucket, "more").expect(404)


def test_names_that_mean_something_with_a_backend(c):
    """Here they are the user's: nothing is lost by a rename or a copy, and nothing becomes a header
    of the reply."""
    meta = Meta(
        tuple((f"Backend-{name}", name)
              for name in ("etag", "modified", "sent")) + (("Source", "s"), ), "a/b")
    for bucket in BUCKETS:
        c.put(bucket, "names", BODY, meta.headers)
        for i in range(4):
            rename(c, bucket, "names" if i == 0 else f"names{i - 1}", f"names{i}").expect(204)
        reply = c.get(bucket, "names3").expect(200)
        meta.check(reply, f"{bucket}/names3")
        check(reply.headers["ETag"] != "etag", "a user's entity tag")
        reply = c.object("PUT", bucket, "refused", BODY, {"Dfc-Meta-Backend-Encoding": "gzip"})
        reply.expect(400, "invalid_argument", "send the header Content-Encoding")
        c.put(bucket, "coded", BODY, {"Content-Encoding": "gzip", **EMPTY.headers})
        for step, name in enumerate(("coded", "coded/r", "coded/s")):
            for options in WAYS:
                reply = c.object("HEAD", bucket, name, **options).expect(200)
                EMPTY.check(reply, f"{bucket}/{name}")
                equal(reply.headers["Content-Encoding"], "gzip",
                      f"Content-Encoding of {bucket}/{name}")
            if step < 2:
                rename(c, bucket, name, ("coded/r", "coded/s")[step]).expect(204)
        c.encoded.append((bucket, "coded/s"))
        if "write_quorum" not in BUCKETS[bucket]:
            copy_job(c, bucket, ["names3"], "copied/")
            meta.check(c.get(bucket, "copied/names3").expect(200), f"{bucket}/copied/names3")


# --- what an earlier build has taken --------------------------------------------------------------

def data_url(c, node, bucket, name):
    state = c.get_json("/v1/cluster?what=state")
    number = next(b["id"] for b in state["bmd"]["buckets"] if b["name"] == bucket)
    return (c.get_json("/v1/daemon", node)["data_url"] +
            f"/v1/objects/{bucket}/{name}?dfcb={number}"
            f"&dfcv={state['term']}.{state['version']}")


def put_as_before(c, bucket, name, meta):
    """As another target sends it: then nobody counts the pairs."""
    c.object("PUT", bucket, name, BODY).expect(200)
    for _ in range(3):  # the owner may have another one of these by now
        url = data_url(c, c.owner(bucket, name), bucket, name)
        reply = c.member.request("PUT", url, BODY, {"Dfc-Copy": "durable", **meta.headers})
        if reply.status == 200:
            break
    reply.expect(200)
    meta.check(c.get(bucket, name).expect(200), f"{bucket}/{name}")


SHORTEST = ["".join(letters) for letters in itertools.product(string.ascii_lowercase, repeat=2)]
OLD = {"old98": pairs(98), "old512": Meta(tuple((name, "") for name in SHORTEST[:512]), "")}


def test_objects_with_more_pairs_are_read_renamed_copied_and_deleted(c):
    for bucket in BUCKETS:
        for name, meta in OLD.items():
            put_as_before(c, bucket, name, meta)
            for options in WAYS:
                meta.check(
                    c.object("HEAD", bucket, name, **options).expect(200), f"HEAD {bucket}/{name}")
            for i in range(4):  # to one's own target, and to others
                rename(c, bucket, name if i == 0 else f"{name}-{i - 1}", f"{name}-{i}").expect(204)
                meta.check(c.get(bucket, f"{name}-{i}").expect(200), f"{bucket}/{name}-{i}")
            rename(c, bucket, f"{name}-3", name).expect(204)
            c.objects[bucket, name] = meta
        if "write_quorum" in BUCKETS[bucket]:  # without jobs
            continue
        copy_job(c, bucket, list(OLD), "copied/")
        for name, meta in OLD.items():
            meta.check(c.get(bucket, "copied/" + name).expect(200), f"{bucket}/copied/{name}")
            c.object("DELETE", bucket, "copied/" + name).expect(204)
            c.get(bucket, "copied/" + name).expect(404)


# --- everything everywhere
# -------------------------------------------------------------------------

def check_all(c, objects, when):
    for (bucket, name), meta in objects.items():
        for options in WAYS:
            meta.check(patient(c, "GET", bucket, name)[0].expect(200), f"{bucket}/{name} {when}")
            meta.check(
                c.object("HEAD", bucket, name, **options).expect(200), f"{bucket}/{name} {when}")

    for bucket, name in c.encoded:
        reply = patient(c, "GET", bucket, name)[0].expect(200)
        equal(reply.headers["Content-Encoding"], "gzip",
              f"Content-Encoding of {bucket}/{name} {when}")
        EMPTY.check(reply, f"{bucket}/{name} {when}")


def everywhere(c, bucket, name):
    """What each target has of it itself: {target: (pairs, type)}."""
    found = {}
    for target in c.targets():
        reply = c.member.request("GET", data_url(c, target, bucket, name))
        if reply.status == 200:
            found[target] = seen(reply)
    return found


def check_owners(c, objects, when):
    for (bucket, name), meta in objects.items():
        if "copies" not in BUCKETS[bucket]:
            continue
        found = everywhere(c, bucket, name)
        equal(len(found), BUCKETS[bucket]["copies"], f"owners of {bucket}/{name} {when}")
        for target, what in found.items():
            equal(what, meta.wanted, f"metadata and type of {bucket}/{name} on {target} {when}")


def test_all_owners_have_the_same(c):
    rng = random.Random(16)
    for bucket in BUCKETS:
        for i in range(24):
            meta = EMPTY if i < 4 else random_meta(rng)
            c.put(bucket, f"o{i}", BODY if i % 2 else b"small", meta.headers)
            c.objects[bucket, f"o{i}"] = meta
    check_all(c, c.objects, "as it was put")
    check_owners(c, c.objects, "as it was put")


def test_renamed(c):
    for bucket, name in list(c.objects):
        rename(c, bucket, name, name + "/r").expect(204)
        c.objects[bucket, name + "/r"] = c.objects.pop((bucket, name))
    check_all(c, c.objects, "renamed")
    check_owners(c, c.objects, "renamed")


def test_after_a_repair(c):
    c.kill("t2")
    for (bucket, name), meta in c.objects.items():
        if bucket == "two" and "old" not in name:
            patient(c, "PUT", bucket, name, b"again", meta.headers)[0].expect(200)
    c.start("t2")
    c.wait_node("t2", "active")
    wait_repaired(c)
    check_all(c, c.objects, "after a repair")
    check_owners(c, c.objects, "after a repair")


# --- owners that differ under one version, as an earlier build has left them
# -------------------------

FULL = Meta((("Empty", ""), ("Full", "x")), "")
LESS = Meta((("Full", "x"),), None)
LESSER = Meta((), "text/x-mine")


def make_differ(c, names):
    """Each owner of three gets its own of one new version, as if another one had sent it."""
    c.setting("repair", "false")
    given = [FULL, LESS, LESSER]
    for i, name in enumerate(names):
        term, map_version, counter = c.put("three", name, BODY).json()["version"].split(".")
        for k, target in enumerate(everywhere(c, "three", name)):
            headers = {
                "Dfc-Copy": "move", "Dfc-Version": f"{term}.{map_version}.{int(counter) + 1}",
                "Dfc-Modified": "1700000000000", **given[(i + k) % 3].headers
            }
            c.member.request("PUT", data_url(c, target, "three", name), BODY, headers).expect(200)


def owners_agree(c, names):
    return all(list(everywhere(c, "three", name).values()) == [FULL.wanted] * 3 for name in names)


def test_owners_that_differ_are_evened_out(c):
    """The one with most metadata wins: by a comparison of what is marked, and by a repair that
    knows of nothing."""
    c.create("three", copies=3)
    marked, forgotten = ([f"{word}{i}" for i in range(6)] for word in ("marked", "forgotten"))
    make_differ(c, marked)
    wait_for(lambda: owners_agree(c, marked), "comparisons of what was marked")
    make_differ(c, forgotten)
    for target in c.targets():
        c.kill(target, "-9")
    for target in c.targets():
        c.start(target)
        c.wait_node(target, "active")
    c.setting("repair", "true")
    wait_repaired(c)
    check(owners_agree(c, forgotten), "owners differ after a repair")


def test_moved(c):
    for step in ("start", "stop"):
        done = c.dfcctl("node", "maintenance", step, "t1")
        equal(done.returncode, 0, done.stderr)
        while not settled(c):  # through the new owner from the old one, too
            check_all(c, c.objects, f"on its way, {step}")
        check_all(c, c.objects, f"after maintenance {step}")
    wait_repaired(c)
    check_owners(c, c.objects, "after maintenance")


if __name__ == "__main__":
    main(targets=4)
