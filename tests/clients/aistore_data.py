#!/usr/bin/env python3
"""AIStore's SDK, unmodified, in two releases: batches, uploads in parts, metadata, copies.
aistore_data_calls.py has the calls, which run in the SDK's own environment; skipped where a release
cannot be installed."""

import sys

import frame  # noqa: F401 (first: the next ones are found by it)
import aistore_lib
from access_lib import GuardedCluster
from aistore_lib import check_anonymous, check_reader, token_of
from lib import main
from venv_lib import environment


def run(c, *words, token=None):
    aistore_lib.run(PYTHON, c, "aistore_data_calls.py", *words, token=token)


def test_every_call(c):
    run(c, "all", token=token_of(c.root))


def test_without_a_token_nothing_is_done(c):
    check_anonymous(c, run)


def test_a_user_does_what_its_grants_say(c):
    check_reader(c, run)


if __name__ == "__main__":
    PYTHON = environment((f"aistore=={sys.argv.pop(1)}",))
    main(GuardedCluster, targets=2)
