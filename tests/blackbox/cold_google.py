#!/usr/bin/env python3
"""Google's credentials where no key file is named: a machine's metadata server, a user's login.

Both, and the storage they let in to, are tests/reference/fake_gcs.py."""

import os
import tempfile
import threading

from cold_lib import MANY, NO_PAUSE, QUICK
from lib import check, equal, in_parallel, main, wait_for

from fake_gcs import METADATA, TOKEN, FakeGCS

HOME = tempfile.TemporaryDirectory()
GCS = FakeGCS(HOME.name)
LOGIN = os.path.join(HOME.name, "application_default_credentials.json")


def fresh(c, name):
    GCS.put("data", name, name.encode())
    return c.get("gs", name)


def test_the_machine_is_let_in(c):
    GCS.put("data", "seed", b"seed")
    c.create("gs", backend=f"gs://data?endpoint={GCS.url}", write_policy="through")
    equal(fresh(c, "first").expect(200).body, b"first", "object")
    c.object("PUT", "gs", "written", b"written").expect(200)
    equal(GCS.has("data", "written"), b"written", "what was written")
    equal((GCS.count(METADATA), GCS.count(TOKEN)), (1, 0),
          "one token for all, from the metadata server")


def test_tokens_end(c):
    """They are renewed before; whoever reads meanwhile notices nothing."""
    before, GCS.said_life = GCS.count(METADATA), 2
    GCS.revoke()
    number = iter(range(1_000_000))
    try:
        def three_are_through():
            in_parallel(lambda i: fresh(c, f"short/{i}").expect(200),
                        [next(number) for _ in range(4)], 4)
            return GCS.count(METADATA) >= before + 3
        wait_for(three_are_through, "three tokens, one after the other")
    finally:
        GCS.said_life = None
    GCS.revoke()
    fresh(c, "long").expect(200)


def test_many_wait_for_one_token(c):
    GCS.revoke()
    go, before = threading.Event(), GCS.count(METADATA)
    GCS.fail(METADATA, stall=go)
    for i in range(8):
        GCS.put("data", f"wait/{i}", b"x")
    got = []
    threads = [
        threading.Thread(target=lambda i=i: got.append(c.get("gs", f"wait/{i}").status))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    wait_for(lambda: GCS.count(METADATA) == before + 1, "one asks")
    go.set()
    for thread in threads:
        thread.join()
    equal(got, [200] * 8, "what they got")


def test_what_fails_is_named(c):
    for fault, status, code, words in (({"status": 404}, 403,
                                        "backend_denied", "no service account for this machine"), ({
                                            "foreign": True
                                        }, 403, "backend_denied", "no Metadata-Flavor"), ({
                                            "text": b"<html>"
                                        }, 403, "backend_denied", "no Metadata-Flavor"), ({
                                            "status": 503, "times": MANY
                                        }, 503, "backend_unavailable", "metadata server"), ({
                                            "read_at": 0, "times": MANY
                                        }, 502, "backend_error", "GOOGLE_APPLICATION_CREDENTIALS")):
        GCS.revoke()
        GCS.fail(METADATA, **fault)
        reply = fresh(c, "named").expect(status, code, words)
        check(GCS.host in reply.body.decode(), f"{fault}: who was asked: {reply.body}")
        GCS.calm()
    GCS.fail(METADATA, status=503)
    fresh(c, "named").expect(200)


def test_a_server_that_hangs(c):
    GCS.revoke()
    go = threading.Event()
    GCS.fail(METADATA, times=MANY, stall=go)
    try:
        fresh(c, "hangs").expect(504, "backend_timeout", "metadata server")
    finally:
        GCS.calm()
        go.set()
    fresh(c, "hangs").expect(200)


def test_a_login_comes_before_the_machine(c):
    """It is read when the next token is needed."""
    before = GCS.count(METADATA), GCS.count(TOKEN)
    GCS.write_user(LOGIN)
    GCS.revoke()
    fresh(c, "user").expect(200)
    equal((GCS.count(METADATA), GCS.count(TOKEN)), (before[0], before[1] + 1), "who was asked")
    GCS.write_user(LOGIN, refresh_token="another/NobodyMaySee")
    GCS.revoke()
    fresh(c, "denied").expect(403, "backend_denied", "expired or revoked")
    os.unlink(LOGIN)
    fresh(c, "denied").expect(200)


def test_secrets_are_nowhere(c):
    texts = {node: c.log(node) for node in c.nodes}
    texts["state"] = c.call("GET", "/v1/cluster?what=state").body.decode()
    for where, text in texts.items():
        check("NobodyMaySee" not in text, f"a secret stands in {where}")


if __name__ == "__main__":
    os.environ.pop("GOOGLE_APPLICATION_CREDENTIALS", None)
    os.environ.update({"GCE_METADATA_HOST": GCS.host, "CLOUDSDK_CONFIG": HOME.name})
    with HOME, GCS:
        main(targets=1, args=[*QUICK, NO_PAUSE])
