#!/usr/bin/env python3
"""Buckets with a backend: what is not here is read from there, once, and only if it is right.

The backends are tests/reference/fake_s3.py: one S3 service that wants signatures, one that wants
none, and a plain HTTP server."""

import hashlib
import http.client
import os
import random
import socket
import sys
import threading
import urllib.parse

from lib import ROOT, check, equal, escape, in_parallel, main, wait_for

sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from fake_s3 import FakeS3  # noqa: E402

ACCESS, SECRET = "AKIDCOLDREADS", "theSecretThatNobodyMaySee/+0123"
TOKEN = "aSessionTokenThatNobodyMaySee"
S3, PUBLIC, PLAIN = FakeS3({ACCESS: SECRET}, TOKEN), FakeS3(), FakeS3(plain=True)
RANDOM = random.Random(7)
BIG = RANDOM.randbytes(3_000_000)
CLIENTS = 64


def etag_of(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


def target_of(c):
    return next(n for n in c.targets())


def metric(c, name):
    text = c.call("GET", "/metrics", node=target_of(c)).expect(200).body.decode()
    return sum(int(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


def broken(c, bucket, name):
    """A GET that must not look complete: an error, or a connection that is cut."""
    try:
        reply = c.get(bucket, name)
    except (http.client.IncompleteRead, ConnectionError, http.client.HTTPException):
        c.http.close()
        return None
    check(reply.status >= 400, f"a broken object was served: {reply!r}")
    return reply


# --- buckets -------------------------------------------------------------------------------------

def test_buckets(c):
    c.create("s3", backend=f"s3://data?endpoint={S3.url}")
    c.create("public", backend={"provider": "s3", "bucket": "open", "prefix": "set/one",
                                "endpoint": PUBLIC.url, "auth": "none"})
    c.create("web", backend={"provider": "http", "url": PLAIN.url + "/base/"})
    props = c.get_json("/v1/buckets/public")["props"]
    equal(props["backend"], f"s3://open/set/one?endpoint={PUBLIC.url}&auth=none",
          "backend as a URL")
    equal(props["durability"], "async", "durability of what can be read again")
    done = c.dfcctl("bucket", "create", "ctl", "--no-check", "--backend",
                    f"s3://data/p?endpoint={S3.url}")
    equal(done.returncode, 0, done.stderr)
    check(f"s3://data/p?endpoint={S3.url}" in c.dfcctl("bucket", "ls").stdout, "dfcctl bucket ls")


def test_backends_that_are_none(c):
    for backend, status in (("s3://", 400), ("ftp://x", 400), ("gs://b?profile=x", 400),
                            ("s3://b?x=y", 400), ("http://me:secret@h/", 400),
                            ({"provider": "s3"}, 400), ({"provider": "gcs"}, 400), (7, 400)):
        reply = c.call("POST", "/v1/buckets/never",
                       {"action": "create", "value": {"backend": backend}})
        equal(reply.status, status, f"{backend}: {reply!r}")


def test_the_backend_stays(c):
    def set_to(bucket, backend):
        return c.call("PUT", f"/v1/buckets/{bucket}",
                      {"action": "setprops", "value": {"backend": backend}})

    c.create("own")
    set_to("own", "s3://data").expect(400, "invalid_argument")
    set_to("s3", "s3://other").expect(400, "invalid_argument")
    set_to("s3", f"s3://data?endpoint={S3.url}&region=us-east-1").expect(200)


def test_it_is_only_read(c):
    S3.put("data", "w", b"w")
    for method, body in (("PUT", b"x"), ("DELETE", None), ("POST",
                                                           b'{"action": "rename", "name": "n"}')):
        c.object(method, "s3", "w", body).expect(501, "not_supported")
    c.call("POST", "/v1/buckets/s3",
           {"action": "delete", "value": {"prefix": ""}}).expect(501, "not_supported")
    equal(S3.count("w"), 0, "requests")


# --- whole objects -------------------------------------------------------------------------------

def test_a_miss_is_read_once(c):
    for size in (0, 1, 65536, 65537, len(BIG)):
        name, data = f"size/{size}", BIG[:size]
        S3.put("data", name, data)
        cold = c.get("s3", name).expect(200)
        check(cold.body == data, f"{size} bytes came changed")
        equal(cold.headers["Content-Length"], str(size), "Content-Length")
        equal(cold.headers["ETag"], etag_of(data), "entity tag of a miss")
        equal(cold.headers["Content-Type"], "application/x-test", "Content-Type")
        hot = c.get("s3", name).expect(200)
        check(hot.body == data, f"{size} bytes changed here")
        equal(hot.headers["ETag"], cold.headers["ETag"], "entity tag of a hit")
        equal(S3.count(name), 1, "requests to the backend")
        wait_for(lambda n=name: n in c.names("s3", cached="true"), f"{name} is listed")


def test_names(c):
    for name in ("a b", "ä/ö", "p+q", "p%q", "x//y", "t/", "q?x=y", "h#i", "n" * 900, "~(')*!",
                 "../up"):
        S3.put("data", name, name.encode())
        equal(c.get("s3", name).expect(200).body, name.encode(), f"object '{name}'")
        PUBLIC.put("open", "set/one/" + name, name.encode())
        equal(
            c.get("public", name).expect(200).body, name.encode(), f"object '{name}' with a prefix")


def test_what_is_not_there(c):
    c.get("s3", "none").expect(404, "object_not_found")
    c.object("HEAD", "s3", "none").expect(404)
    c.create("nobucket", backend=f"s3://missing?endpoint={S3.url}")
    message = c.get("nobucket", "x").expect(502, "backend_error", "NoSuchBucket").json()["message"]
    check(f"backend {S3.url}: " in message, f"the server's name: {message}")


def test_create_asks_the_backend_first(c):
    def create(name, url, *more):
        return c.dfcctl("bucket", "create", name, "--backend", url, *more)

    with socket.socket() as unused:  # bound, and not listening
        unused.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}"
        for url, words in ((f"s3://missing?endpoint={S3.url}", (S3.url, "NoSuchBucket")),
                           (f"s3://data?endpoint={closed}", (closed, "connect")),
                           (closed + "/base", (closed, "connect"))):
            done = create("asked", url)
            equal(done.returncode, 5, f"{url}: {done.stdout}{done.stderr}")
            for word in ("bucket 'asked' is not made", *words):
                check(word in done.stderr, f"{url}: '{word}' is not in {done.stderr}")
            c.call("GET", "/v1/buckets/asked").expect(404, "bucket_not_found")
            body = {"action": "create", "value": {"backend": url}, "check": True}
            c.call("POST", "/v1/buckets/asked", body).expect(502, "backend_error")
            equal(create("asked", url, "--no-check").returncode, 0, "without a check")
            c.destroy("asked")
    equal(create("asked", f"s3://data?endpoint={S3.url}").returncode, 0, "one that answers")
    equal(c.get_json("/v1/buckets/asked")["props"]["backend"], f"s3://data?endpoint={S3.url}",
          "its backend")
    c.destroy("asked")
    equal(create("asked", PLAIN.url + "/base").returncode, 0, "a web server that answers")
    c.destroy("asked")


def test_health_names_a_backend_that_fails(c):
    def health():
        return c.dfcctl("cluster", "health").stdout

    c.create("ails", backend=f"s3://ails?endpoint={S3.url}")
    S3.put("ails", "x", b"x")
    c.destroy("nobucket")
    wait_for(lambda: "Health: green" in health(), "a green health")
    S3.is_so("x", status=500)
    for _ in range(2):
        c.get("ails", "x").expect(502, "backend_error", f"backend {S3.url}: ")
    text = wait_for(lambda: (lambda h: "yellow" in h and h)(health()), "a yellow health")
    check(f"to {S3.url}, the backend of bucket 'ails', failed" in text, text)
    check(SECRET not in text and ACCESS not in text, text)
    S3.calm()
    c.get("ails", "x").expect(200)
    wait_for(lambda: "Health: green" in health(), "a green health")
    c.destroy("ails")


def test_wrong_keys_are_said_without_them(c):
    c.create("denied", backend=f"s3://data?endpoint={S3.url}&auth=none")
    c.get("denied", "size/1").expect(403, "backend_denied", "AccessDenied")
    c.create("noprofile", backend=f"s3://data?endpoint={S3.url}&profile=nobody")
    c.get("noprofile", "size/1").expect(403, "backend_denied", "nobody")
    c.create("badkeys", backend=f"s3://data?endpoint={S3.url}&profile=wrong")
    c.get("badkeys", "size/1").expect(403, "backend_denied", "SignatureDoesNotMatch")
    c.create("region", backend=f"s3://data?endpoint={S3.url}&region=mars-1")
    c.get("region", "size/1").expect(403, "backend_denied")


def test_virtual_host_style(c):
    port = urllib.parse.urlsplit(S3.url).port
    # The client resolves names below localhost by itself.
    c.create("virtual", backend=f"s3://data?endpoint=http://localhost:{port}&style=virtual")
    S3.put("data", "virtual", b"by its host")
    equal(c.get("virtual", "virtual").expect(200).body, b"by its host", "object")


def test_many_clients_one_request(c):
    S3.put("data", "wanted", BIG)
    hold = threading.Event()
    S3.fail("wanted", hold=hold, held_bytes=100_000)
    got = []

    def ask():
        got.append(c.get("s3", "wanted").expect(200).body == BIG)
        c.http.close()

    threads = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    wait_for(lambda: metric(c, 'dfc_http_connections{listener="public"}') > CLIENTS,
             "all of them are here")
    hold.set()
    for thread in threads:
        thread.join()
    equal(got, [True] * CLIENTS, "what they got")
    equal(S3.count("wanted"), 1, "requests to the backend")


def test_many_clients_many_objects(c):
    names = [f"many/{i}" for i in range(40)]
    for name in names:
        S3.put("data", name, name.encode() * 1000)
    asked = names * 4
    RANDOM.shuffle(asked)
    in_parallel(lambda n: equal(c.get("s3", n).expect(200).body, n.encode() * 1000, n), asked, 16)
    equal({S3.count(n) for n in names}, {1}, "requests for each")


def open_get(c, bucket, name):
    """A connection to the target with the request sent; its file for reading."""
    host, port = c.address(target_of(c))
    s = socket.create_connection((host, port), timeout=60)
    s.sendall(
        f"GET /v1/objects/{bucket}/{escape(name)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    response = http.client.HTTPResponse(s, method="GET")
    response.begin()
    equal(response.status, 200, "status")
    return s, response


def test_bytes_go_out_as_they_come(c):
    S3.put("data", "slow", BIG)
    hold = threading.Event()
    S3.fail("slow", hold=hold, held_bytes=500_000)
    s, response = open_get(c, "s3", "slow")
    equal(response.read(400_000) == BIG[:400_000], True, "the first bytes, while the backend waits")
    hold.set()
    equal(response.read() == BIG[400_000:], True, "the rest")
    s.close()


def test_a_client_that_leaves_changes_nothing(c):
    S3.put("data", "left", BIG)
    hold = threading.Event()
    S3.fail("left", hold=hold, held_bytes=500_000)
    leaving, response = open_get(c, "s3", "left")
    response.read(1000)
    staying, other = open_get(c, "s3", "left")
    response.close()
    leaving.close()
    hold.set()
    equal(other.read() == BIG, True, "what the other one got")
    staying.close()
    wait_for(lambda: "left" in c.names("s3", cached="true"), "it is stored")
    equal(S3.count("left"), 1, "requests to the backend")


def test_conditions(c):
    S3.put("data", "cond", b"cond")
    tag = etag_of(b"cond")
    c.get("s3", "cond", {"If-None-Match": tag}).expect(304)
    equal(S3.count("cond"), 1, "it was read for that")
    c.get("s3", "cond", {"If-Match": '"other"'}).expect(412)
    S3.put("data", "cond2", b"cond2")
    c.object("HEAD", "s3", "cond2", headers={"If-Match": '"other"'}).expect(412)
    c.object("HEAD", "s3", "cond2", headers={"If-None-Match": etag_of(b"cond2")}).expect(304)
    check("cond2" not in c.names("s3", cached="true"), "HEAD reads nothing")


def test_head_asks_the_backend(c):
    S3.put("data", "head", BIG)
    head = c.object("HEAD", "s3", "head").expect(200)
    equal((head.headers["Content-Length"], head.headers["ETag"]), (str(len(BIG)), etag_of(BIG)),
          "HEAD")
    check("head" not in c.names("s3", cached="true"), "HEAD reads nothing")


# --- faults --------------------------------------------------------------------------------------

def test_what_is_wrong_is_not_kept(c):
    for i, fault in enumerate(({"flip": True}, {"etag": etag_of(b"other")}, {"status": 418},
                               {"flip": True, "chunked": True})):
        for size in (10, 70_000, len(BIG)):
            name, data = f"wrong/{i}/{size}", BIG[:size]
            S3.put("data", name, data)
            S3.fail(name, **fault)
            broken(c, "s3", name)
            check(name not in c.names("s3", cached="true"), f"{fault}: it was stored")
            check(c.get("s3", name).expect(200).body == data, f"{fault}: bytes of the next reading")


def test_what_breaks_off_goes_on(c):
    faults = ({"cut_at": 0}, {"cut_at": 70_000}, {"short": 1}, {"short": 200_000})
    for i, fault in enumerate(faults):
        name = f"cut/{i}"
        S3.put("data", name, BIG)
        S3.fail(name, **fault)
        check(c.get("s3", name).expect(200).body == BIG, f"{fault}: bytes")
        equal(S3.count(name), 2, f"{fault}: requests")
        second = S3.headers_of(name)[1]
        if second.get("range"):
            equal(second.get("if-match"), etag_of(BIG), f"{fault}: the version is pinned")


def test_another_version_is_not_mixed_in(c):
    S3.put("data", "mixed", BIG)
    S3.fail("mixed", short=2_000_000)
    S3.fail("mixed", change=BIG[::-1])
    broken(c, "s3", "mixed")
    check("mixed" not in c.names("s3", cached="true"), "it was stored")
    check(c.get("s3", "mixed").expect(200).body == BIG[::-1], "bytes of the new version")


def test_it_gives_up_in_the_end(c):
    S3.put("data", "hopeless", BIG)
    S3.fail("hopeless", times=20, cut_at=1_000)
    broken(c, "s3", "hopeless")
    # Three tries, and two times three for the rest, as a reset may destroy the head, too.  curl
    # repeats a request once by itself, if its connection was a kept one and not a byte came back.
    check(3 <= S3.count("hopeless") <= 2 * 9, f"{S3.count('hopeless')} requests")
    S3.calm()


def test_failures_that_pass(c):
    for status, header in ((503, "0"), (429, None), (500, None), (502, None), (504, None)):
        name = f"again/{status}"
        S3.put("data", name, b"again")
        S3.fail(name, status=status, **({"retry_after": header} if header else {}))
        equal(c.get("s3", name).expect(200).body, b"again", f"after {status}")
        equal(S3.count(name), 2, "requests")


def test_failures_that_stay(c):
    for status, fault, code in ((503, {"status": 503}, "backend_unavailable"), (502, {
            "status": 500
    }, "backend_error"), (504, {"status": 504}, "backend_timeout"),
                                (503, {"status": 503,
                                       "retry_after": "3600"}, "backend_unavailable")):
        name = f"stays/{len(S3.requests)}"
        S3.put("data", name, b"x")
        S3.fail(name, times=10, **fault)
        c.get("s3", name).expect(status, code)
        equal(S3.count(name), 1 if "retry_after" in fault else 3, f"{fault}: requests")
    S3.calm()


# --- ranges --------------------------------------------------------------------------------------

def test_a_range_of_a_large_object_is_asked_for_alone(c):
    S3.put("data", "large", BIG)
    end = len(BIG)
    for headers, query, first, last in (({"Range": "bytes=0-99"}, "", 0, 100),
                                        ({"Range": "bytes=2999990-"}, "", 2999990, end),
                                        ({"Range": "bytes=-1000"}, "", end - 1000, end),
                                        ({}, "offset=100&length=200000", 100, 200100),
                                        ({}, "offset=2999999", 2999999, end)):
        reply = c.get("s3", "large", headers, query=query).expect(206)
        check(reply.body == BIG[first:last], f"{headers} {query}: bytes")
        equal(reply.headers["Content-Range"], f"bytes {first}-{last - 1}/{end}", "Content-Range")
        equal(reply.headers["ETag"], etag_of(BIG), "ETag")
    check(all(h.get("range") for h in S3.headers_of("large")), "every request had a range")
    check("large" not in c.names("s3", cached="true"), "it was not read whole")
    c.get("s3", "large", {"Range": f"bytes={end}-"}).expect(416, "range_not_satisfiable")
    c.get("s3", "large", query="offset=x").expect(400, "invalid_argument")
    c.get("s3", "large", {"Range": "bytes=0-9", "If-Match": '"other"'}).expect(412)
    c.get("s3", "large", {"Range": "bytes=0-9", "If-Match": etag_of(BIG)}).expect(206)


def test_a_range_that_breaks_off_is_cut(c):
    S3.put("data", "large-cut", BIG)
    for short in (1, 70_000, 1_999_999):
        S3.fail("large-cut", short=short)
        try:
            c.get("s3", "large-cut", {"Range": "bytes=0-1999999"})
            check(False, f"{short} bytes too few: it looked complete")
        except (http.client.IncompleteRead, ConnectionError):
            c.http.close()


def test_a_range_of_a_small_object_brings_it(c):
    S3.put("data", "small", BIG[:5000])
    equal(c.get("s3", "small", {"Range": "bytes=10-19"}).expect(206).body, BIG[10:20], "bytes")
    wait_for(lambda: "small" in c.names("s3", cached="true"), "it is stored")
    S3.put("data", "empty", b"")
    equal(c.get("s3", "empty", query="offset=0&length=10").expect(200).body, b"", "of nothing")


def test_servers_without_ranges(c):
    PLAIN.put("", "base/whole", BIG)
    PLAIN.fail("base/whole", no_ranges=True)
    reply = c.get("web", "whole", {"Range": "bytes=1000-1999"}).expect(206)
    check(reply.body == BIG[1000:2000], "bytes")
    equal(PLAIN.count("base/whole"), 2, "requests: the range, and the whole")


# --- plain HTTP ----------------------------------------------------------------------------------

def test_http(c):
    PLAIN.put("", "base/dir/x", b"plain")
    equal(c.get("web", "dir/x").expect(200).body, b"plain", "object")
    c.get("web", "none").expect(404, "object_not_found")
    c.object("GET", "web", "../secret", query="").expect(404, "object_not_found")
    PLAIN.put("", "base/chunked", BIG)
    PLAIN.fail("base/chunked", chunked=True)
    check(c.get("web", "chunked").expect(200).body == BIG, "bytes without a length")
    PLAIN.put("", "elsewhere", b"moved")
    PLAIN.fail("base/moved", redirect="/elsewhere")
    equal(c.get("web", "moved").expect(200).body, b"moved", "a redirect is followed")
    PLAIN.fail("base/round", times=20, redirect="/base/round")
    c.get("web", "round").expect(502, "backend_error")
    PLAIN.calm()


def test_another_cluster(c):
    c.create("mirror",
             backend={"provider": "dfc", "bucket": "own", "prefix": "set", "endpoint": c.endpoint})
    for name, data in (("a b/ä", b"over there"), ("large", BIG)):
        tag = c.put("own", "set/" + name, data).headers["ETag"]
        for _ in range(2):
            reply = c.get("mirror", name).expect(200)
            check(reply.body == data, f"bytes of '{name}'")
            equal(reply.headers["ETag"], tag, "ETag")
    c.get("mirror", "none").expect(404, "object_not_found")
    equal(sorted(c.names("mirror", cached="true")), ["a b/ä", "large"], "what is kept")


# --- the end: these restart the target -----------------------------------------------------------

def restart(c, *args):
    node = target_of(c)
    c.restart(node, *args)


def test_a_length_that_is_none(c):
    for server, bucket, where in ((PUBLIC, "public", ("open", "set/one/")), (PLAIN, "web",
                                                                             ("", "base/"))):
        server.put(where[0], where[1] + "lengthless", BIG)
        server.fail(where[1] + "lengthless", times=20, part=1000, method="HEAD")
        head = c.object("HEAD", bucket, "lengthless").expect(200)
        equal(head.headers["Content-Length"], str(len(BIG)), "of the object, not of the part")
        server.fail(where[1] + "lengthless", endless=True, method="GET")
        c.get(bucket, "lengthless").expect(502, "backend_error", "cannot be told from a cut")
        server.fail(where[1] + "lengthless", endless=True, method="GET")
        c.get(bucket, "lengthless", {"Range": "bytes=5-9"}).expect(502, "backend_error")
        check(c.get(bucket, "lengthless").expect(200).body == BIG, "the next answer is whole")


def test_silence(c):
    restart(c, "--arg=--backend-timeout=300ms", "--arg=--backend-retries=1")
    S3.put("data", "silent", b"x")
    S3.fail("silent", times=2, stall=threading.Event())
    c.get("s3", "silent").expect(504, "backend_timeout")
    wait_for(lambda: S3.count("silent") == 2, "both requests are seen")


def test_without_room_it_is_passed_through(c):
    restart(c, "--arg=--space-low=1%", "--arg=--space-high=2%", "--arg=--space-out=3%")
    for size in (0, 10, 65536, 70_000, len(BIG)):
        name = f"noroom/{size}"
        S3.put("data", name, BIG[:size])
        for _ in range(2):
            check(c.get("s3", name).expect(200).body == BIG[:size], f"{size} bytes")
        check(name not in c.names("s3", cached="true"), "it was stored")
        if size > 0:
            S3.fail(name, times=2, flip=True)
            broken(c, "s3", name)


def test_keys_are_nowhere(c):
    texts = {node: c.log(node) for node in c.nodes}
    texts["state"] = c.call("GET", "/v1/cluster?what=state").body.decode()
    texts["config"] = c.call("GET", "/v1/daemon?what=config", node=target_of(c)).body.decode()
    for where, text in texts.items():
        for secret in (SECRET, TOKEN, "anotherSecret"):
            check(secret not in text, f"a key stands in {where}")


if __name__ == "__main__":
    import tempfile
    with tempfile.TemporaryDirectory() as home, S3, PUBLIC, PLAIN:
        with open(os.path.join(home, "credentials"), "w", encoding="ascii") as f:
            f.write(f"[default]\naws_access_key_id = {ACCESS}\naws_secret_access_key = {SECRET}\n"
                    f"aws_session_token={TOKEN}\n\n[wrong]\naws_access_key_id={ACCESS}\n"
                    f"aws_secret_access_key=anotherSecret\naws_session_token={TOKEN}\n")
        for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
            os.environ.pop(variable, None)
        os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.path.join(home, "credentials")
        main(targets=1, args=[f"--target-arg={a}" for a in (
            "--backend-backoff=5ms", "--backend-backoff-max=2s", "--backend-retries=2",
            "--cold-range-fetch=64KiB")])
