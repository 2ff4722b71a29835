#!/usr/bin/env python3
"""AIStore's SDK, unmodified, in two releases: batches, uploads in parts, metadata,
copies.  aistore_data_calls.py has the calls, which
run in the SDK's own environment; skipped where a release cannot be installed."""

import sys

import frame  # noqa: F401 (first: the next ones are found by it)
import aistore_lib
from access_lib import GuardedCluster, make_user
from aistore_lib import token_of
from lib import equal, main
from venv_lib import python_with_release


def run(c, *words, token=None):
    aistore_lib.run(PYTHON, c, "aistore_data_calls.py", *words, token=token)


def test_every_call(c):
    run(c, "all", token=token_of(c.root))


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
    equal(c.get("shared", "o").expect(200).body, b"bytes", "the object")


if __name__ == "__main__":
    with python_with_release("aistore", sys.argv.pop(1)) as PYTHON:
        main(GuardedCluster, targets=2)
