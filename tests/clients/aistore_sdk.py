#!/usr/bin/env python3
"""AIStore's SDK, unmodified, in two releases: it needs no option but the endpoint and, with access
control, a token.  aistore_calls.py has the calls, which run in the SDK's own environment; skipped
where a release cannot be installed."""

import os
import subprocess
import sys

import frame
from access_lib import GuardedCluster, make_user
from lib import equal, main
from venv_lib import python_with_release

CALLS = os.path.join(frame.HERE, "aistore_calls.py")


def run(c, *words, token=None):
    # requests takes these before the file that the SDK names.
    others = {n: v for n, v in os.environ.items() if n not in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")}
    env = {**others, "AIS_CLIENT_CA": c.ca_file() or "", "no_proxy": "127.0.0.1",
           "PYTHONDONTWRITEBYTECODE": "1", "AIS_AUTHN_TOKEN": token or ""}
    done = subprocess.run([PYTHON, "-W", "ignore", CALLS, c.url(), *words], env=env, check=False,
                          capture_output=True, text=True)
    equal(done.returncode, 0, f"calls {words}: {done.stderr[-3000:]}\nthe end of them")


def token_of(identity):
    return identity.headers()["Authorization"].removeprefix("Bearer ")


def test_every_call(c):
    run(c, "all", token=token_of(c.root))


def test_what_is_not_there_says_so(c):
    run(c, "refused", token=token_of(c.root))


def test_without_a_token_nothing_is_done(c):
    c.create("closed")
    c.put("closed", "o", b"bytes")
    run(c, "anonymous")
    equal(c.get("closed", "o").expect(200).body, b"bytes", "the object")


def test_a_user_does_what_its_grants_say(c):
    c.create("shared")
    c.put("shared", "o", b"bytes")
    reader = make_user(c, "reader", [{"rights": ["read", "list"], "bucket": "shared"}])
    run(c, "reader", token=token_of(reader))


if __name__ == "__main__":
    with python_with_release("aistore", sys.argv.pop(1)) as PYTHON:
        main(GuardedCluster, targets=2)
