#!/usr/bin/env python3
"""Keys for S3 that end: from the metadata service of an instance, from a container's agent, for a
web identity.

All of them, and the S3 that they let in to, are tests/reference/fake_aws.py.  Each part begins with
a restart of the
target, whose environment says whom to ask."""

import contextlib
import os
import tempfile
import threading

from cold_lib import MANY, NO_PAUSE, QUICK, FakeS3
from lib import check, equal, in_parallel, main, wait_for

from fake_aws import CONTAINER, CONTAINER_PATH, KEYS, ROLE, ROLE_ARN, SESSION, STS, FakeAWS

HOME = tempfile.TemporaryDirectory()
IN_FILE = {
    "AKIDINFILE": "theFile'sSecretThatNobodyMaySee", "AKIDAGAIN": "anotherSecretThatNobodyMaySee"
}
AWS = FakeAWS(IN_FILE)
OPEN = FakeS3()  # where nothing is signed
INSTANCE = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": AWS.url + "/"}
SAID = []  # error documents
TRIES = 3  # of a question: QUICK
NUMBERS = iter(range(1_000_000))


def path_of(name):
    return os.path.join(HOME.name, name)


def write_file(name, text):
    with open(path_of(name + ".new"), "w", encoding="ascii") as f:
        f.write(text)
    os.rename(path_of(name + ".new"), path_of(name))
    return path_of(name)


def write_keys(access):
    write_file("credentials",
               f"[default]\naws_access_key_id={access}\naws_secret_access_key={IN_FILE[access]}\n")


def begin(**variables):
    """What is in the environment of a target that starts now."""
    for name in [n for n in os.environ if n.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update({"AWS_SHARED_CREDENTIALS_FILE": path_of("credentials"), **variables})


def restart(c, *args, **variables):
    begin(**variables)
    c.restart("t1", *args)


def new_object():
    name = f"object/{next(NUMBERS)}"
    AWS.put("data", name, name.encode())
    return name


def fresh(c):
    """An object that has to be fetched."""
    return c.get("s3", new_object())


def refused(c, *expected):
    """The keys have ended, and there are no others."""
    AWS.end_keys()
    reply = fresh(c).expect(*expected)
    SAID.append(reply.body.decode())
    return reply


def counts(*keys):
    return tuple(AWS.count(k) for k in keys)


@contextlib.contextmanager
def asked(times, *keys):
    """Within it these are asked so often."""
    before = counts(*keys)
    yield
    equal(counts(*keys), tuple(n + times for n in before), f"how often {keys} were asked")


@contextlib.contextmanager
def renewed():
    """Within it keys are given by the instance, to one who asks.  (On a machine that is slow it
    asks again.)"""
    before = AWS.count(KEYS)
    yield
    check(1 <= AWS.count(KEYS) - before <= TRIES,
          f"keys were given {AWS.count(KEYS) - before} times")


# --- an instance


def test_an_instance(c):
    with renewed():
        c.create("s3", backend=f"s3://data?endpoint={AWS.url}", write_policy="through",
                 range_fetch="never")
        for _ in range(3):
            equal(fresh(c).expect(200).body[:7], b"object/", "object")
        c.object("PUT", "s3", "written", b"written").expect(200)
        equal(AWS.has("data", "written"), b"written", "what was written")
        check("written" in c.names("s3"), "it is listed")
        c.object("DELETE", "s3", "written").expect(204)
        c.object("HEAD", "s3", new_object()).expect(200)


def test_each_request_is_repeated_once_with_new_keys(c):
    name = new_object()
    AWS.put("data", "gone", b"x")
    for do in (lambda: c.get("s3", new_object()),
               lambda: c.get("s3", new_object(), {"Range": "bytes=1-2"}),
               lambda: c.object("HEAD", "s3", new_object()),  # refused without words
               lambda: c.object("PUT", "s3", name, b"y" * 300_000),
               lambda: c.object("DELETE", "s3", "gone"),
               lambda: c.call("GET", "/v1/objects/s3")):
        with renewed():
            AWS.end_keys()
            check(do().status in (200, 204, 206), "it went through")
    equal(AWS.has("data", name), b"y" * 300_000, "what was written")


def test_what_is_refused_again_is_an_error(c):
    for code in ("ExpiredToken", "InvalidToken"):
        name = new_object()
        AWS.is_so(name, status=400, code=code)
        with asked(2, name), renewed():
            SAID.append(c.get("s3", name).expect(502, "backend_error", code).body.decode())
        AWS.calm()
        c.get("s3", name).expect(200)


def test_keys_are_renewed_before_they_end(c):
    """Whoever reads meanwhile notices nothing."""
    before, AWS.said_life = AWS.count(KEYS), 6
    AWS.end_keys()
    try:
        def they_are_renewed():
            in_parallel(lambda _: fresh(c).expect(200), range(4), 4)
            return AWS.count(KEYS) >= before + 2
        wait_for(they_are_renewed, "keys that were given twice")
    finally:
        AWS.said_life = None
    AWS.end_keys()
    fresh(c).expect(200)


def test_many_wait_for_one_answer(c):
    go, sessions = threading.Event(), AWS.count(SESSION)
    names, got = [new_object() for _ in range(8)], []
    threads = [
        threading.Thread(target=lambda n=n: got.append(c.get("s3", n).status)) for n in names
    ]
    with renewed():
        AWS.end_keys()
        AWS.fail(SESSION, stall=go)
        for thread in threads:
            thread.start()
        wait_for(lambda: AWS.count(SESSION) > sessions, "one asks")
        go.set()
        for thread in threads:
            thread.join()
    equal(got, [200] * 8, "what they got")


def test_what_an_instance_answers_is_named(c):
    document = {
        "AccessKeyId": "ASIAX", "SecretAccessKey": "aNobodyMaySee", "Token": "aNobodyMaySee"
    }
    text = str(document).replace("'", '"')
    for key, fault, expected in ((SESSION, {"status": 403}, (403, "backend_denied", "status 403")),
                                 (SESSION, {"text": b""}, (502, "backend_error", "no token")),
                                 (SESSION, {"text": b"aNobodyMaySee\r\nX: y z"}, None), (SESSION, {
                                     "text": b"aNobody MaySee"
                                 }, (502, "backend_error", "no token")), (SESSION, {
                                     "status": 503, "times": MANY
                                 }, (503, "backend_unavailable", "status 503")), (SESSION, {
                                     "read_at": 0, "times": MANY
                                 }, (502, "backend_error", "could not be asked")), (ROLE, {
                                     "status": 404
                                 }, (403, "backend_denied", "no role")),
                                 (ROLE, {"text": b""}, (403, "backend_denied", "no role")), (ROLE, {
                                     "text": b"../../user-data"
                                 }, (502, "backend_error", "no name of a role")), (KEYS, {
                                     "text": b'{"Code": "Failed", "Message": "as it is"}'
                                 }, (403, "backend_denied", "Failed: as it is")), (KEYS, {
                                     "text": b"<html>NobodyMaySee"
                                 }, (502, "backend_error", "no JSON")), (KEYS, {
                                     "text": b'"' + b"NobodyMaySee" * 10_000 + b'"'
                                 }, (502, "backend_error", "too long")), (KEYS, {
                                     "text": text.encode()
                                 }, (502, "backend_error", "no Expiration")), (KEYS, {
                                     "text": text.replace(
                                         "}", ', "Expiration": "2001-01-01T00:00:00Z"}').encode()
                                 }, (502, "backend_error", "2001-01-01T00:00:00Z"))):
        AWS.fail(key, **fault)
        if expected is None:  # its first line is a token, and not the one that was given
            expected = (403, "backend_denied", "status 401")
        reply = refused(c, *expected)
        check(AWS.host in reply.body.decode(), f"{key} {fault}: who was asked: {reply.body}")
        AWS.calm()
    AWS.fail(SESSION, status=503)
    AWS.fail(KEYS, read_at=0)
    AWS.end_keys()
    fresh(c).expect(200)


def test_an_instance_that_hangs(c):
    go = threading.Event()
    AWS.fail(SESSION, times=MANY, stall=go)
    try:
        refused(c, 504, "backend_timeout",
                "HttpPutResponseHopLimit 2: the instance's metadata service")
    finally:
        AWS.calm()
        go.set()
    fresh(c).expect(200)


# --- who comes before whom


def test_the_file_comes_before_the_instance(c):
    """It is read for every request, and again for one that S3 refuses."""
    write_keys("AKIDINFILE")
    with asked(0, SESSION):
        fresh(c).expect(200)
        name, go = new_object(), threading.Event()
        AWS.fail(name, stall=go, status=400, code="ExpiredToken")
        got = []
        thread = threading.Thread(target=lambda: got.append(c.get("s3", name).status))
        thread.start()
        wait_for(lambda: AWS.count(name) == 1, "it is asked for")
        write_keys("AKIDAGAIN")
        go.set()
        thread.join()
        equal(got, [200], "with what the file has then")
        equal(["AKIDAGAIN" in h["authorization"] for h in AWS.headers_of(name)], [False, True],
              "whose keys")
    os.unlink(path_of("credentials"))
    with asked(0, SESSION):
        fresh(c).expect(200)  # with the keys that are kept


def test_nobody_may_be_asked(c):
    restart(c, **INSTANCE, AWS_EC2_METADATA_DISABLED="true")
    with asked(0, SESSION):
        fresh(c).expect(403, "backend_denied", "AWS_EC2_METADATA_DISABLED")
    write_keys("AKIDINFILE")
    fresh(c).expect(200)


# --- a container


def test_a_container(c):
    """The file of the section before is there still, and comes before it."""
    AWS.authorization = "Bearer first/NobodyMaySee"
    restart(
        c, **INSTANCE, AWS_CONTAINER_CREDENTIALS_FULL_URI=AWS.url + CONTAINER_PATH,
        AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=write_file("authorization",
                                                          AWS.authorization + "\n"))
    with asked(0, CONTAINER):
        fresh(c).expect(200)
    os.unlink(path_of("credentials"))
    with asked(1, CONTAINER), asked(0, SESSION):
        fresh(c).expect(200)
        fresh(c).expect(200)
    AWS.authorization = "Bearer second/NobodyMaySee"
    refused(c, 403, "backend_denied", "AccessDeniedException")
    write_file("authorization", AWS.authorization)
    fresh(c).expect(200)


def test_what_a_container_answers_is_named(c):
    for fault, expected in (
            ({"status": 404, "code": "NoCredentials"}, (502, "backend_error", "NoCredentials")),
            ({"status": 412, "code": "OfItsOwn"}, (502, "backend_error", "status 412: OfItsOwn")),
            ({"status": 416, "code": "OfItsOwn"}, (502, "backend_error", "status 416: OfItsOwn")),
            ({"status": 504, "times": MANY}, (504, "backend_timeout", "status 504")),
            ({"status": 500, "times": MANY}, (502, "backend_error", "status 500")),
            ({"text": b"{}"}, (502, "backend_error", "no AccessKeyId")),
            ({"read_at": 0, "times": MANY}, (502, "backend_error", "could not be asked"))):
        AWS.fail(CONTAINER, **fault)
        reply = refused(c, *expected)
        check(AWS.host in reply.body.decode(), f"{fault}: who was asked: {reply.body}")
        AWS.calm()
    os.unlink(path_of("authorization"))
    refused(c, 403, "backend_denied", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")


# --- a web identity


def test_a_web_identity(c):
    """It comes before the file and the container."""
    write_keys("AKIDINFILE")
    restart(c, **INSTANCE, AWS_ENDPOINT_URL_STS=AWS.url, AWS_ROLE_ARN=ROLE_ARN,
            AWS_WEB_IDENTITY_TOKEN_FILE=write_file("identity", AWS.identity),
            AWS_CONTAINER_CREDENTIALS_FULL_URI=AWS.url + CONTAINER_PATH)
    with asked(1, STS), asked(0, CONTAINER, SESSION):
        in_parallel(lambda _: fresh(c).expect(200), range(8), 8)
        check("AKIDINFILE" not in str(AWS.requests[-1]), "the file's keys were used")
    AWS.identity = "ey.anotherThatNobodyMaySee"
    refused(c, 403, "backend_denied", "AccessDenied: Not authorized")
    write_file("identity", AWS.identity + "\n")
    with asked(1, STS):
        fresh(c).expect(200)


def test_what_sts_answers_is_named(c):
    for fault, expected in (({"status": 400, "code": "ExpiredTokenException"},
                             (403, "backend_denied", "ExpiredTokenException")),
                            ({"status": 503,
                              "times": MANY}, (503, "backend_unavailable", "status 503")), ({
                                  "status": 302, "redirect": AWS.url + "/elsewhere"
                              }, (502, "backend_error", "status 302")), ({
                                  "text": b"<html/>"
                              }, (502, "backend_error", "no AssumeRoleWithWebIdentityResponse")), ({
                                  "read_at": 0, "times": MANY
                              }, (502, "backend_error", "could not be asked"))):
        AWS.fail(STS, **fault)
        reply = refused(c, *expected)
        check(AWS.host in reply.body.decode(), f"{fault}: who was asked: {reply.body}")
        AWS.calm()
    AWS.fail(STS, times=2, status=400, code="IDPCommunicationError")
    AWS.end_keys()
    with asked(3, STS):
        fresh(c).expect(200)
    os.unlink(path_of("identity"))
    refused(c, 403, "backend_denied", "AWS_WEB_IDENTITY_TOKEN_FILE")


# --- keys that do not come


def identity(**variables):
    AWS.identity = "ey.theLastThatNobodyMaySee"
    return {"AWS_ENDPOINT_URL_STS": AWS.url, "AWS_ROLE_ARN": ROLE_ARN,
            "AWS_WEB_IDENTITY_TOKEN_FILE": write_file("identity", AWS.identity), **variables}


def denied(c):
    SAID.append(fresh(c).expect(403, "backend_denied", "AccessDenied").body.decode())


def test_one_who_is_refused_takes_nothing_from_others(c):
    """S3 says no more of a HEAD than 400, which may be of old keys, or not."""
    restart(c, **identity())
    fresh(c).expect(200)
    name = new_object()
    AWS.is_so(name, status=400)
    AWS.fail(STS, times=MANY, status=403, code="AccessDenied")
    with asked(1, STS):
        c.object("HEAD", "s3", name).expect(403)
        fresh(c).expect(200)
    AWS.calm()


def test_keys_that_do_not_come_hold_nobody_up(c):
    """Once they could not be had one asks for them, and has to wait; more than there are threads do
    not."""
    restart(c, **identity())
    c.create("open", backend=f"s3://open?endpoint={OPEN.url}&auth=none")
    AWS.fail(STS, status=403, code="AccessDenied")
    denied(c)
    go, before, got = threading.Event(), AWS.count(STS), []
    AWS.fail(STS, times=MANY, stall=go)
    thread = threading.Thread(target=lambda: got.append(fresh(c).status))
    thread.start()
    try:
        wait_for(lambda: AWS.count(STS) > before, "one asks")
        in_parallel(lambda _: denied(c), range(40), 40)
        for i in range(4):
            OPEN.put("open", f"o/{i}", b"open")
            equal(c.get("open", f"o/{i}").expect(200).body, b"open", "what needs no keys")
    finally:
        go.set()
        AWS.calm()
        thread.join()
    equal(got, [200], "who asked")
    fresh(c).expect(200)


def test_who_comes_soon_after_has_the_same_error(c):
    restart(c, "--arg=--backend-pause=1h", **identity())
    AWS.fail(STS, status=403, code="AccessDenied")
    denied(c)
    with asked(0, STS):
        in_parallel(lambda _: denied(c), range(8), 8)
    restart(c, "--arg=--backend-pause=1h", **identity())
    name = new_object()
    AWS.is_so(name, status=400, code="ExpiredToken")
    with asked(1, STS):
        fresh(c).expect(200)
        SAID.append(c.get("s3", name).expect(502, "backend_error",
                                             "ExpiredToken").body.decode())  # and new ones, too
    AWS.calm()


# --- secrets


def test_secrets_are_nowhere(c):
    check(len(SAID) > 20, "errors were seen")
    texts = {f"error {i}": text for i, text in enumerate(SAID)}
    texts.update((node, c.log(node)) for node in c.nodes)
    texts["state"] = c.call("GET", "/v1/cluster?what=state").body.decode()
    texts["config"] = c.call("GET", "/v1/daemon?what=config", node="t1").body.decode()
    for where, text in texts.items():
        check("NobodyMaySee" not in text, f"a secret stands in {where}")


if __name__ == "__main__":
    begin(**INSTANCE)
    with HOME, AWS, OPEN:
        main(targets=1, args=[*QUICK, NO_PAUSE])
