#!/usr/bin/env python3
"""Archives by AIStore's SDK, unmodified, in two releases: lists of members, and members by name.
aistore_archive_calls.py has the calls, which run in the SDK's own environment; skipped where a
release cannot be installed."""

import sys

import frame  # noqa: F401 (first: the next ones are found by it)
import aistore_lib
from access_lib import GuardedCluster, make_user
from aistore_lib import token_of
from lib import main
from venv_lib import environment


def run(c, *words, token=None):
    aistore_lib.run(PYTHON, c, "aistore_archive_calls.py", *words, token=token)


def test_every_call(c):
    run(c, "all", token=token_of(c.root))


def test_who_may_list_may_not_read(c):
    run(c, "prepare", token=token_of(c.root))
    for name, rights in (("lister", ["list"]), ("reader", ["list", "read"])):
        user = make_user(c, name, [{"rights": rights, "bucket": "sdk-shared"}])
        run(c, name, token=token_of(user))
    run(c, "anonymous")


if __name__ == "__main__":
    PYTHON = environment((f"aistore=={sys.argv.pop(1)}",))
    main(GuardedCluster, targets=2)
