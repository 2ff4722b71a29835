#!/usr/bin/env python3
"""Rings: what is pushed comes into generations of exactly cap samples, and is read there as it was;
what is wrong is refused; a full ring refuses pushes until a generation is dropped."""

import json
import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import ring_lib as ring
from lib import Http, check, equal, main, wait_for

KIND = {"data": b"0123", "label": b"cat"}


def sample(number, size=100):
    return {"data": number.to_bytes(4, "little") * (size // 4), "label": b"%d" % number}


def numbers(samples):
    return sorted(int(bytes(s.kinds["label"].data)) for s in samples)


def test_what_is_no_ring(c):
    c.create("plain")
    ring.push(c, "plain", ring.frames(KIND)).expect(400, "not_a_ring")
    ring.status(c, "plain").expect(400, "not_a_ring")
    ring.status(c, "absent").expect(404, "bucket_not_found")
    for shape in ("cap=0", "cap=x", "100", "cap=5,keep=17", "cap=5,bytes_max=1", "cap=5,swap=x", "cap=5,policy=x"):
        reply = c.call("POST", "/v1/buckets/wrong", {"action": "create", "value": {"ring": shape}})
        reply.expect(400, "invalid_argument", text="props.ring")
    reply = c.call("PUT", "/v1/buckets/plain", {"action": "setprops", "value": {"ring": "cap=5"}})
    reply.expect(400, "invalid_argument", text="when a bucket is created")


def test_a_generation_has_exactly_cap_samples(c):
    c.create("ring", ring="cap=10,keep=2")
    equal(ring.head(c, "ring"), None, "the head of a new ring")
    for i in range(9):
        ring.push(c, "ring", ring.frames(sample(i))).expect(201)
    wait_for(lambda: ring.status(c, "ring").expect(200).json()["fill"] == 9, "9 samples")
    equal(ring.status(c, "ring").json()["head"]["generation"], 0, "generation")
    ring.push(c, "ring", ring.frames(*(sample(i) for i in range(9, 25)))).expect(201)
    h = ring.wait_generation(c, "ring", 2)
    found = []
    for number in (1, 2):
        samples = ring.read_generation(c, "ring", ring.generation(h, number))
        equal(len(samples), 10, "samples")
        for s in samples:
            i = int(bytes(s.kinds["label"].data))
            equal(bytes(s.kinds["data"].data), sample(i)["data"], f"sample {i}")
        found += numbers(samples)
    equal(len(set(found)), 20, "different samples")
    equal(ring.status(c, "ring").json()["fill"], 5, "fill")


def test_a_swap_takes_what_there_is(c):
    reply = c.call("PUT", "/v1/rings/ring/generation").expect(200).json()
    equal(reply, {"generation": 3}, "swap")
    h = ring.head(c, "ring")
    equal(ring.size_of(ring.generation(h)), 5, "samples")
    found = [n for g in h["generations"] for n in numbers(ring.read_generation(c, "ring", g))]
    equal(sorted(found), list(range(25)), "all samples, each once")
    c.call("PUT", "/v1/rings/ring/generation").expect(404, "no_generation")
    equal(ring.head(c, "ring")["generation"], 3, "generation")


def test_clear_drops_all(c):
    c.call("DELETE", "/v1/rings/ring/samples").expect(200)
    h = ring.head(c, "ring")
    equal((h["generation"], h["generations"]), (3, []), "head")
    ring.push(c, "ring", ring.frames(*(sample(i) for i in range(10)))).expect(201)
    h = ring.wait_generation(c, "ring", 4)
    equal(numbers(ring.read_generation(c, "ring", ring.generation(h))), list(range(10)), "samples")


def poll(c, after, wait, query=""):
    path = f"/v1/rings/polled/status?after={after}&wait={wait}{query}"
    return Http().request("GET", c.url() + path)


def test_a_call_waits_for_the_next_generation(c):
    """Redirected or relayed; and all that wait are told."""
    def found(reply):
        return reply.expect(200).json()["head"]["generation"]
    c.create("polled", ring="cap=2")
    ring.push(c, "polled", ring.frames(sample(1), sample(2))).expect(201)
    equal(found(poll(c, 0, "60s")), 1, "the first generation")
    equal(found(poll(c, 0, "60s")), 1, "a generation that is there")
    began = time.monotonic()
    equal(found(poll(c, 1, "300ms")), 1, "the time is over")
    check(time.monotonic() - began >= 0.3, "it has waited")
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(poll, c, 1, "60s", "&redirect=never" if i % 2 else "") for i in range(8)]
        began = time.monotonic()
        ring.push(c, "polled", ring.frames(sample(1), sample(2))).expect(201)
        equal([found(call.result()) for call in calls], 8 * [2], "the next generation")
    check(time.monotonic() - began < 50, "nobody has waited to the end")
    for query in ("after=1", "wait=1s", "after=x&wait=1s", "after=1&wait=x", "after=1&wait=2h"):
        c.call("GET", f"/v1/rings/polled/status?{query}").expect(400, "invalid_argument")


def test_so_many_calls_wait(c):
    with ThreadPoolExecutor(30) as pool:
        calls = [pool.submit(poll, c, 2, "3s") for _ in range(30)]
        statuses = Counter(call.result().status for call in calls)
    equal(set(statuses), {200, 503}, "replies")
    check(statuses[200] >= 20, f"{statuses}")


def test_a_wait_ends_with_the_ring(c):
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(poll, c, 2, "60s")
        began = time.monotonic()
        c.destroy("polled")
        check(call.result().status in (404, 503), "the reply")
    check(time.monotonic() - began < 50, "it has not waited to the end")


def test_a_push_that_is_repeated_is_stored_once(c):
    c.create("once", ring="cap=2")
    first = ring.push(c, "once", ring.frames(sample(1)), "maker", 7).expect(201).json()
    for _ in range(3):
        again = ring.push(c, "once", ring.frames(sample(1)), "maker", 7).expect(201).json()
        equal(again, first, "the answer")
    ring.push(c, "once", ring.frames(sample(2)), "maker", 8).expect(201)
    h = ring.wait_generation(c, "once", 1)
    equal(numbers(ring.read_generation(c, "once", ring.generation(h))), [1, 2], "samples")
    wait_for(lambda: ring.status(c, "once").json()["fill"] == 0, "the keeper to know of its head")
    ring.push(c, "once", b"x", sequence=5).expect(400, "bad_sample")
    for half in ("sequence=5", "producer=maker"):
        c.call("POST", f"/v1/rings/once/samples?{half}", b"x").expect(400, "invalid_argument", text="go together")


def test_what_is_no_sample_is_refused(c):
    good = ring.frames(KIND)
    damaged = bytearray(good)
    damaged[-64] ^= 1
    for body, code in ((b"", "bad_sample"), (good[:-1], "bad_sample"), (good + b"x", "bad_sample"),
                       (b"z" * 4096, "bad_sample")):
        ring.push(c, "once", body).expect(400, code)
    ring.push(c, "once", bytes(damaged)).expect(422, "checksum_mismatch")
    reply = ring.push(c, "once", good + bytes(damaged))
    reply.expect(422, "checksum_mismatch", text="sample 1 of the push")
    wait_for(lambda: ring.status(c, "once").json()["fill"] == 0, "the keeper to know of its head")
    c.call("POST", "/v1/rings/once/else", good).expect(404, "not_found")
    c.call("GET", "/v1/rings/once/samples").expect(400, "invalid_argument", text="lane")
    c.call("GET", "/v1/rings/once/samples?lane=t9.abc").expect(410, "generation_gone")
    c.call("GET", "/v1/rings/once/samples?lane=t1.abc").expect(410, "generation_gone")


def size_of(path):
    """0: the target has removed it meanwhile."""
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return 0


def files_of(c):
    """Bytes of all segments."""
    total = 0
    for t in c.targets():
        for mp in (d for d in os.listdir(c.node_dir(t)) if d.startswith("mp")):
            for at, _, names in os.walk(os.path.join(c.node_dir(t), mp, ".dfc", "ring")):
                total += sum(size_of(os.path.join(at, n)) for n in names)
    return total


def test_a_full_ring_refuses(c):
    """bytes_max holds, the maker is told to wait, and goes on when generations are dropped."""
    shape = {"cap": 1000, "keep": 0, "bytes_max": 6 << 20}
    c.create("full", ring=shape)
    body = ring.frames(sample(1, 100_000))
    for i in range(100):
        reply = ring.push(c, "full", body, "m", i)
        if reply.status != 201:
            break
    reply.expect(429, "ring_full", text="bytes_max")
    check("Retry-After" in reply.headers, "Retry-After is there")
    check(files_of(c) <= 6 << 20, f"the ring has {files_of(c)} bytes")
    c.call("DELETE", "/v1/rings/full/samples").expect(200)
    wait_for(lambda: ring.push(c, "full", body, "m", i).status == 201, "room after all was dropped")
    c.call("PUT", "/v1/buckets/full", {"action": "setprops", "value": {"ring": {**shape, "cap": 10}}}).expect(200)
    for i in range(1000, 1099):
        wait_for(lambda i=i: ring.push(c, "full", body, "m", i).status == 201, f"push {i}")
        check(files_of(c) <= 6 << 20, f"the ring has {files_of(c)} bytes")
    equal(ring.wait_generation(c, "full", 10)["samples_total"], 100, "samples")
    ring.push(c, "full", ring.frames(sample(1, 4_000_000))).expect(413, "too_large")


def test_a_paused_ring(c):
    """No generation but by a swap, until it is resumed; whoever asks."""
    def call(what):
        return c.call("PUT", f"/v1/rings/paused/{what}").expect(200).json()["generation"]
    c.create("paused", ring="cap=2,keep=9")
    equal(call("pause"), 0, "generation")
    ring.push(c, "paused", ring.frames(*(sample(i) for i in range(6)))).expect(201)
    wait_for(lambda: ring.status(c, "paused").expect(200).json()["fill"] == 6, "6 samples")
    equal(ring.status(c, "paused").json()["head"]["paused"], True, "paused")
    check("paused" in c.dfcctl("ring", "status", "paused").stdout, "dfcctl shows it")
    equal(call("generation"), 1, "a swap by hand")
    equal(call("pause"), 1, "paused again")
    equal(c.dfcctl("ring", "resume", "paused").returncode, 0, "resume")
    h = ring.wait_generation(c, "paused", 3)
    check("paused" not in h, "no longer paused")
    found = [n for g in h["generations"] for n in numbers(ring.read_generation(c, "paused", g))]
    equal(sorted(found), list(range(6)), "all samples, each once")
    c.call("PUT", "/v1/rings/paused/else").expect(404, "not_found", text="resume")


def test_the_oldest_are_dropped(c):
    """With the policy drop no push is refused: generations and the newest samples stay."""
    c.create("drops", ring={"cap": 4, "keep": 0, "bytes_max": 6 << 20})
    ring.push(c, "drops", ring.frames(*(sample(i) for i in range(4)))).expect(201)
    ring.wait_generation(c, "drops", 1)
    c.call("PUT", "/v1/rings/drops/pause").expect(200)
    for i in range(150):
        path = f"/v1/rings/drops/samples?producer=m&sequence={i}&policy=drop"
        c.call("POST", path, ring.frames(sample(i, 100_000))).expect(201)
        check(files_of(c) <= 4 * (6 << 20), f"the rings have {files_of(c)} bytes")
    h = ring.head(c, "drops")
    check(h["dropped_total"] > 50, f"{h['dropped_total']} were dropped")
    equal(numbers(ring.read_generation(c, "drops", ring.generation(h))), list(range(4)), "the generation")
    shape = {"cap": 4, "keep": 16, "bytes_max": 6 << 20}
    c.call("PUT", "/v1/buckets/drops", {"action": "setprops", "value": {"ring": shape}}).expect(200)
    c.call("PUT", "/v1/rings/drops/resume").expect(200)

    def all_is_told():
        known = ring.status(c, "drops").expect(200).json()
        h = known["head"]
        return known["fill"] < 4 and h["samples_total"] - 4 + h["dropped_total"] + known["fill"] == 150
    wait_for(all_is_told, "each sample in a generation, dropped or left")
    h = ring.head(c, "drops")
    c.call("POST", path.replace("=drop", "=x"), b"").expect(400, "invalid_argument", text="policy")
    for g in h["generations"]:
        equal(len(ring.read_generation(c, "drops", g)), 4, "samples of a generation")


def test_the_policy_of_the_ring(c):
    """It holds for pushes that say none, from the change on."""
    shape = {"cap": 1000, "keep": 0, "bytes_max": 6 << 20}
    c.create("policy", ring={**shape, "policy": "drop"})
    body = ring.frames(sample(1, 100_000))
    for i in range(100):
        ring.push(c, "policy", body, "m", i).expect(201)
    check(ring.head(c, "policy")["dropped_total"] > 0, "some were dropped")
    equal(ring.status(c, "policy").expect(200).json()["policy"], "drop", "the status")
    path = "/v1/rings/policy/samples?producer=m&sequence=%d&policy=block"
    wait_for(lambda: c.call("POST", path % 100, body).status == 429, "a push that says block")
    c.dfcctl("bucket", "props", "policy", "--ring", "policy=block")
    equal(c.get_json("/v1/buckets/policy")["props"]["ring"], shape, "the property")
    wait_for(lambda: ring.push(c, "policy", body, "m", 101).status == 429, "the new policy")


def test_no_more_is_dropped_than_a_push_needs(c):
    """Where the files stay for ring_grace: no generation has been there."""
    c.create("fresh", ring={"cap": 1000, "keep": 0, "bytes_max": 6 << 20})
    body = ring.frames(sample(1, 100_000))
    i = 0
    while ring.push(c, "fresh", body, "m", i).status == 201:
        i += 1
    wait_for(lambda: ring.status(c, "fresh").expect(200).json()["fill"] == i, f"{i} samples")
    c.call("POST", f"/v1/rings/fresh/samples?producer=m&sequence={i}&policy=drop", body).expect(201)
    dropped = ring.head(c, "fresh")["dropped_total"]
    check(0 < dropped <= 4, f"{dropped} of {i} were dropped")


def test_a_push_waits_for_room(c):
    c.create("waits", ring={"cap": 1000, "keep": 0, "bytes_max": 6 << 20})
    body = ring.frames(sample(1, 100_000))
    i = 0
    while ring.push(c, "waits", body, "m", i).status == 201:
        i += 1
    path = f"/v1/rings/waits/samples?producer=m&sequence={i}&wait="
    began = time.monotonic()
    c.call("POST", path + "300ms", body).expect(429, "ring_full")
    check(time.monotonic() - began >= 0.3, "it has waited")
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(Http().request, "POST", c.url() + path + "60s", body)
        c.call("DELETE", "/v1/rings/waits/samples").expect(200)
        call.result().expect(201)
    check(time.monotonic() - began < 50, "it has not waited to the end")
    c.call("POST", path + "2h", body).expect(400, "invalid_argument", text="ring_wait_max")


def test_the_head_is_synced(c):
    """Whatever the samples are: generations that a loss of power took back would be numbered twice."""
    c.create("async", ring="cap=1", durability="async", copies=2)
    ring.push(c, "async", ring.frames(sample(1))).expect(201)
    ring.wait_generation(c, "async", 1)
    found = str(c.get_json("/v1/buckets/async")["id"])
    flags = [os.getxattr(os.path.join(at, name), "user.dfc")[1] for t in c.targets()
             for at, _, names in os.walk(c.node_dir(t)) for name in names if f"/.dfc/obj/{found}/" in at + "/"]
    equal([flag & 2 for flag in flags], [2, 2], "the flag of what is durable (target/format/attr.h)")
    c.destroy("async")


def metrics(c, name):
    """The sum over the targets."""
    lines = [line for t in c.targets() for line in
             c.call("GET", "/metrics", node=t).expect(200).body.decode().splitlines()]
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f"dfc_ring_{name} "))


def test_metrics(c):
    """Gauges are as old as a heartbeat."""
    rings = [b["name"] for b in c.get_json("/v1/buckets")["buckets"] if b["props"].get("ring")]
    heads = [ring.status(c, name).expect(200).json()["head"] for name in rings]
    kept = sum(len(h["generations"]) for h in heads)
    wait_for(lambda: metrics(c, "kept") == len(rings), f"a keeper for each of {rings}")
    wait_for(lambda: metrics(c, "generations") == kept, f"{kept} generations")
    wait_for(lambda: metrics(c, "waiting_samples") > 0 and metrics(c, "bytes") > 0, "samples that wait")
    check(metrics(c, "swaps_total") >= metrics(c, "swap_seconds_count") > 0, "swaps have a time")
    check(metrics(c, "dropped_samples_total") >= sum(h.get("dropped_total", 0) for h in heads) > 0, "dropped")
    held = metrics(c, "held")
    c.call("PUT", "/v1/rings/fresh/pause").expect(200)
    c.call("PUT", "/v1/buckets/fresh", {"action": "setprops", "value": {"ring": "cap=1"}}).expect(200)
    wait_for(lambda: metrics(c, "held") == held + 1, "a full ring that is paused")


def test_a_destroyed_ring_leaves_nothing(c):
    for name in ("ring", "once", "full", "paused", "drops", "policy", "fresh", "waits"):
        c.destroy(name)
    wait_for(lambda: files_of(c) == 0, "removal of all files")


def test_dfcctl(c):
    folder = os.path.join(c.dir, "sample")
    with open(os.path.join(c.dir, "scan.raw"), "wb") as f:
        f.write(b"bytes of a scan")
    made = c.dfcctl("bucket", "create", "ctl", "--ring", "cap=2,keep=3")
    equal((made.returncode, made.stderr), (0, ""), "bucket create")
    for _ in range(2):
        out = c.dfcctl("ring", "push", "ctl", os.path.join(c.dir, "scan.raw"),
                       f"again={c.dir}/scan.raw").stdout
        check("ring ctl: sample" in out, out)
    ring.wait_generation(c, "ctl", 1)
    check("generation 1, 0 of 2" in c.dfcctl("ring", "status", "ctl").stdout, "status")
    shown = json.loads(c.dfcctl("ring", "get", "ctl", "1", folder, "-o", "json").stdout)
    equal([k["kind"] for k in shown["kinds"]], ["scan", "again"], "kinds")
    for kind in ("scan", "again"):
        with open(os.path.join(folder, kind), "rb") as f:
            equal(f.read(), b"bytes of a scan", kind)
    equal(c.dfcctl("ring", "get", "ctl", "2").returncode, 4, "exit code of a wrong index")
    equal(c.dfcctl("ring", "clear", "ctl").returncode, 0, "exit code of clear")
    equal(c.dfcctl("ring", "swap", "ctl").returncode, 3, "exit code of an empty swap")


if __name__ == "__main__":
    main(targets=3, mountpaths=2, args=("--target-arg=--ring-grace=200ms", "--target-arg=--ring-waits-max=20"))
