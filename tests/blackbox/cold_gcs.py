#!/usr/bin/env python3
"""Google Cloud Storage by its own API: reads, ranges, lists, writes, tokens.

The service is tests/reference/fake_gcs.py, which verifies what the service account's key has
signed."""

import gzip
import json
import os
import random
import subprocess
import tempfile
import threading

from cold_lib import NO_PAUSE, QUICK, is_broken, metric, run_job
from lib import check, equal, in_parallel, main, wait_for

from fake_gcs import BEGIN, TOKEN, FakeGCS

HOME = tempfile.TemporaryDirectory()
GCS, PUBLIC = FakeGCS(HOME.name, page_max=7), FakeGCS(HOME.name, public=True)
RANDOM = random.Random(9)
BIG = RANDOM.randbytes(3_000_000)
NAMES = ("a b", "ä/ö", "p+q", "p%q", "x//y", "t/", "q?x=y", "h#i", "n" * 900, "~(')*!", "../up")


def tag(key):
    return f'"{GCS.etag("data", key)}"'


def test_buckets(c):
    GCS.put("data", "seed", b"seed")
    c.create("gs", backend=f"gs://data?endpoint={GCS.url}", write_policy="through")
    c.create("asks",
             backend={"provider": "gcs", "bucket": "data", "prefix": "pre",
                      "endpoint": GCS.url}, validate="open")
    c.create("public", backend=f"gs://open?endpoint={PUBLIC.url}&auth=none")
    equal(
        c.get_json("/v1/buckets/asks")["props"]["backend"], f"gs://data/pre?endpoint={GCS.url}",
        "backend as a URL")


# --- reads ---------------------------------------------------------------------------------------

def test_reads(c):
    for size in (0, 1, 65536, 65537, len(BIG)):
        name, data = f"size/{size}", BIG[:size]
        GCS.put("data", name, data)
        for _ in range(2):
            reply = c.get("gs", name).expect(200)
            check(reply.body == data, f"{size} bytes changed")
            equal(reply.headers["ETag"], tag(name), "the generation is the entity tag")
        equal(GCS.count(name), 1, "requests to the backend")
    head = c.object("HEAD", "asks", "x")
    equal(head.status, 404, "HEAD of what is not there")
    PUBLIC.put("open", "x", b"public")
    equal(c.get("public", "x").expect(200).body, b"public", "without a token")


def test_names(c):
    for name in NAMES:
        GCS.put("data", "pre/" + name, name.encode())
        equal(c.get("asks", name).expect(200).body, name.encode(), f"object '{name}'")
        c.object("PUT", "gs", "w/" + name, name.encode()).expect(200)
        equal(GCS.has("data", "w/" + name), name.encode(), f"object '{name}', written")
        c.object("DELETE", "gs", "w/" + name).expect(204)
    for name in (".", ".."):
        c.object("GET", "gs", name).expect(404)


def test_ranges(c):
    GCS.put("data", "large", BIG)
    for headers, first, last in (({"Range": "bytes=0-99"}, 0, 100), ({"Range": "bytes=-1000"},
                                                                     len(BIG) - 1000, len(BIG)),
                                 ({"Range": "bytes=5-9", "If-Match": tag("large")}, 5, 10)):
        reply = c.get("gs", "large", headers).expect(206)
        check(reply.body == BIG[first:last], f"{headers}: bytes")
        equal(reply.headers["ETag"], tag("large"), "ETag")
    c.get("gs", "large", {"Range": "bytes=5-9", "If-Match": '"1"'}).expect(412)
    c.get("gs", "large", {"Range": "bytes=5-9", "If-Match": '"anything"'}).expect(412)
    c.get("gs", "large", {"Range": f"bytes={len(BIG)}-"}).expect(416)


def test_what_is_wrong_is_not_kept(c):
    for size in (1000, 100_000):  # a crc32c, an MD5
        GCS.put("data", f"wrong/{size}", BIG[:size])
        GCS.fail(f"wrong/{size}", flip=True)
        is_broken(c, "gs", f"wrong/{size}")
        check(c.get("gs", f"wrong/{size}").expect(200).body == BIG[:size], "the next reading")
    GCS.put("data", "cut", BIG)
    GCS.fail("cut", short=2_000_000)
    check(c.get("gs", "cut").expect(200).body == BIG, "what breaks off goes on")


def test_packed_objects_stay_packed(c):
    packed = gzip.compress(BIG[:100_000])
    GCS.put("data", "packed", packed)
    GCS.is_so("packed", encoding="gzip")
    reply = c.get("gs", "packed").expect(200)
    check(reply.body == packed, "bytes as they are stored there")
    equal(reply.headers["Content-Encoding"], "gzip", "Content-Encoding")
    GCS.calm()


def test_validation(c):
    GCS.put("data", "pre/v", b"old")
    for _ in range(2):
        equal(c.get("asks", "v").expect(200).body, b"old", "object")
    equal([m for m, k, _ in GCS.requests if k == "pre/v"], ["GET", "HEAD"], "requests")
    equal(metric(c, 'dfc_cold_ask_total{outcome="fresh"}'), 1, "unchanged: a 304")
    GCS.put("data", "pre/v", b"new")
    equal(c.get("asks", "v").expect(200).body, b"new", "what has changed is read anew")
    GCS.remove("data", "pre/v")
    c.get("asks", "v").expect(404)


def test_errors(c):
    c.create("nobucket", backend=f"gs://missing?endpoint={GCS.url}", write_policy="through")
    c.get("nobucket", "x").expect(502, "backend_error", "NoSuchBucket")
    c.object("PUT", "nobucket", "x", b"x").expect(502, "backend_error", "NoSuchBucket")
    for status, code in ((403, "backend_denied"), (503, "backend_unavailable")):
        GCS.put("data", f"fails/{status}", b"x")
        GCS.fail(f"fails/{status}", times=9, status=status)
        c.get("gs", f"fails/{status}").expect(status, code)
        GCS.calm()


def test_lists(c):
    names = sorted((f"l/{i:02d}/{n}" for i in range(4) for n in ("a", "b", "ü")), key=str.encode)
    for name in names:
        GCS.put("data", "pre/" + name, b"x")
    c.get("asks", names[3]).expect(200)
    equal(c.names("asks", prefix="l/"), names, "by pages of 7")
    equal(c.names("asks", prefix="l/", limit=2), names, "by pages of 2")
    equal(c.names("asks", prefix="l/", start_after=names[4]), names[5:], "behind a name")
    prefixes = [
        p for page in c.pages("asks", prefix="l/", delimiter="/", limit=2) for p in page["prefixes"]
    ]
    equal(prefixes, [f"l/{i:02d}/" for i in range(4)], "common prefixes")
    equal(c.names("asks", prefix="l/", cached="true"), [names[3]], "what is here")


# --- writes --------------------------------------------------------------------------------------

def test_rename(c):
    """In one step, in several; of what was written meanwhile, again."""
    for steps, data in ((1, b"one"), (3, BIG)):
        GCS.rewrite_steps = steps
        for name in NAMES:
            new_name = f"new/{name}"
            GCS.put("data", name, data)
            before = tag(name)
            c.object("POST", "gs", name,
                     json.dumps({"action": "rename", "name": new_name}).encode()).expect(204)
            check((GCS.has("data", name), GCS.has("data", new_name)) == (None, data),
                  "what the backend has")
            c.get("gs", name).expect(404)
            check(c.get("gs", new_name).expect(200).body == data, "bytes read")
            check(tag(new_name) != before, "a generation of its own")
    GCS.put("data", "moves", b"moves")
    GCS.fail("moved", times=9, status=503)
    rename = json.dumps({"action": "rename", "name": "moved"}).encode()
    c.object("POST", "gs", "moves", rename).expect(503, "backend_unavailable", "'moves' still")
    GCS.calm()
    go, replies = threading.Event(), []
    GCS.fail("moved", stall=go)
    renamer = threading.Thread(
        target=lambda: replies.append(c.object("POST", "gs", "moves", rename)))
    before = GCS.count("moved")
    renamer.start()
    wait_for(lambda: GCS.count("moved") > before, "the copy is under way")
    GCS.put("data", "moves", b"later")
    go.set()
    renamer.join()
    replies[0].expect(204)
    equal((GCS.has("data", "moves"), GCS.has("data", "moved")), (None, b"later"),
          "what the backend has")


def test_writes(c):
    for size in (0, 1, 300_000, len(BIG)):
        name, data = f"put/{size}", BIG[:size]
        reply = c.object("PUT", "gs", name, data, {"Content-Type": "text/x-mine"}).expect(200)
        check(GCS.has("data", name) == data, f"{size} bytes at the backend")
        equal(reply.headers["ETag"], tag(name), "the generation")
        equal(GCS.type_of("data", name), "text/x-mine", "content type")
        before = GCS.count(name)
        check(c.get("gs", name).expect(200).body == data, "bytes read")
        equal(GCS.count(name), before, "requests for what is here")
    c.object("PUT", "gs", "put/1", b"2", {"If-None-Match": "*"}).expect(412)
    c.object("PUT", "gs", "put/1", b"2", {"If-Match": tag("put/1")}).expect(200)
    c.object("DELETE", "gs", "put/1").expect(204)
    equal(GCS.has("data", "put/1"), None, "deleted")
    c.object("DELETE", "gs", "put/1").expect(404)
    equal(GCS.uploads(), {}, "sessions that are open")


def test_copies_are_uploaded(c):
    c.create("own")
    c.create("back", backend=f"gs://data?endpoint={GCS.url}", write_policy="back")
    c.put("own", "copied", b"1234")
    equal(run_job(c, "own", "copy", {"to": "back"}), (1, 0, 0, 0), "copied")
    wait_for(lambda: GCS.has("data", "copied") == b"1234", "the copy is at the backend")


def test_user_metadata(c):
    sent = {
        "Content-Type": "text/x-mine", "Content-Encoding": "gzip", "Dfc-Meta-Colour": "dark blue",
        "Dfc-Meta-A.b": 'x="1"; y'
    }
    wanted = {"colour": "dark blue", "a.b": 'x="1"; y'}
    c.object("PUT", "gs", "meta/mine", BIG, sent).expect(200)
    equal(GCS.meta("data", "meta/mine"), wanted, "what the backend has")
    equal(GCS.encoding_of("data", "meta/mine"), "gzip", "the encoding there")
    GCS.put("data", "meta/theirs", b"theirs", wanted)
    rename = json.dumps({"action": "rename", "name": "meta/renamed"}).encode()
    c.object("POST", "gs", "meta/mine", rename).expect(204)
    for name in ("meta/renamed", "meta/theirs"):
        for method, headers in (("HEAD", {}), ("GET", {"Range": "bytes=0-1"}), ("GET", {}),
                                ("GET", {}), ("HEAD", {})):
            got = {
                n.lower(): v
                for n, v in c.object(method, "gs", name, headers=headers).headers.items()
            }
            equal({n: got.get(f"dfc-meta-{n}")
                   for n in wanted}, wanted, f"what {method} {headers} gives of {name}")
            equal(got.get("content-encoding"), "gzip" if name == "meta/renamed" else None,
                  "the encoding")


def test_sessions_that_break_off_go_on(c):
    """From where the service has got to: not a byte twice that it kept, none left out."""
    for i, faults in enumerate((({"read_at": 1_000_000},), ({"deaf": True},), ({"status": 503},),
                                ({"keep": 1_000_000},), ({"read_at": 500_000}, {"status": 500}),
                                ({"keep": 0},), ({"status": 429},))):
        name, data = f"session/{i}", BIG[i:]
        for fault in faults:
            GCS.fail(name, method="PUT", **fault)
        c.object("PUT", "gs", name, data).expect(200)
        check(GCS.has("data", name) == data, f"after {faults}")
        equal(len(GCS.written(name)), 1, f"times it was written after {faults}")
    GCS.fail(BEGIN, status=503)
    c.object("PUT", "gs", "session/begun", b"x").expect(200)


def test_sessions_that_fail(c):
    GCS.put("data", "half", b"before")
    for fault, status in (({"status": 403}, 403), ({"status": 400}, 502),
                          ({"status": 503, "times": 20}, 503), ({"read_at": 10, "times": 20}, 502)):
        c.get("gs", "half").expect(200)
        GCS.fail("half", method="PUT", **fault)
        c.object("PUT", "gs", "half", BIG).expect(status)
        equal(GCS.uploads(), {}, f"sessions that are open after {fault}")
        GCS.calm()
        equal(c.get("gs", "half").expect(200).body, b"before", "what is read")


# --- tokens --------------------------------------------------------------------------------------

def fresh(c, name):
    GCS.put("data", name, name.encode())
    return c.get("gs", name)


def test_one_token_for_all(c):
    before = GCS.count(TOKEN)
    equal(before, 1, "tokens so far")
    GCS.revoke()
    for i in range(16):
        GCS.put("data", f"many/{i}", b"x")
    in_parallel(lambda i: c.get("gs", f"many/{i}").expect(200), range(16), 16)
    check(1 <= GCS.count(TOKEN) - before <= 16, "a token that is refused is asked for anew")
    asked = GCS.count(TOKEN)
    fresh(c, "quiet").expect(200)
    equal(GCS.count(TOKEN), asked, "and kept")


def test_many_wait_for_one_token(c):
    GCS.revoke()
    go, before = threading.Event(), GCS.count(TOKEN)
    GCS.fail(TOKEN, stall=go)
    for i in range(12):
        GCS.put("data", f"wait/{i}", b"x")
    threads = [
        threading.Thread(target=lambda i=i: got.append(c.get("gs", f"wait/{i}").status))
        for i in range(12)
    ]
    got = []
    for thread in threads:
        thread.start()
    wait_for(lambda: GCS.count(TOKEN) == before + 1, "one asks")
    go.set()
    for thread in threads:
        thread.join()
    equal(got, [200] * 12, "what they got")


def test_tokens_that_are_not_to_be_had(c):
    for fault, status, code in (({"status": 503, "times": 9}, 503, "backend_unavailable"), ({
            "status": 400
    }, 403, "backend_denied"), ({"text": b"no json"}, 502, "backend_error"), ({"status": 404}, 502,
                                                                              "backend_error")):
        GCS.revoke()
        GCS.fail(TOKEN, **fault)
        fresh(c, "denied").expect(status, code)
        GCS.calm()
    GCS.fail(TOKEN, status=503)
    fresh(c, "denied").expect(200)


def test_wrong_keys_are_said_without_them(c):
    other = os.path.join(HOME.name, "other.pem")
    subprocess.run([
        "openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", other
    ], check=True, capture_output=True)
    broken, good = os.path.join(HOME.name, "broken.pem"), GCS.key_file + ".good"
    os.rename(GCS.key_file, good)
    with open(broken, "w", encoding="ascii") as f:
        f.write("thisIsNoKeyAtAll")
    for path, text in ((GCS.write_key("foreign.json", other), "Invalid JWT Signature"),
                       (GCS.write_key("broken.json", broken), "no key in PEM"), (GCS.write_key(
                           "user.json", other,
                           type="authorized_user"), "no client_id"), (GCS.write_key(
                               "else.json", other, type="external_account"), "service account")):
        os.rename(path, GCS.key_file)  # it is read for the next token
        GCS.revoke()
        fresh(c, "keys").expect(403, "backend_denied", text)
    os.unlink(GCS.key_file)
    fresh(c, "keys").expect(403, "backend_denied", "cannot be read")
    os.rename(good, GCS.key_file)
    fresh(c, "keys").expect(200)


def test_keys_are_nowhere(c):
    texts = {node: c.log(node) for node in c.nodes}
    texts["state"] = c.call("GET", "/v1/cluster?what=state").body.decode()
    for where, text in texts.items():
        for secret in ("NobodyMaySee", "PRIVATE KEY", "thisIsNoKeyAtAll", "upload_id"):
            check(secret not in text, f"{secret} stands in {where}")


if __name__ == "__main__":
    os.environ["GOOGLE_APPLICATION_CREDENTIALS"] = GCS.key_file
    with HOME, GCS, PUBLIC:
        main(targets=1, args=[*QUICK, NO_PAUSE, "--target-arg=--cold-range-fetch=64KiB"])
