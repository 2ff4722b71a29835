#!/usr/bin/env python3
"""The datasets of aistore.pytorch, unmodified, in two releases.  aistore_torch_calls.py has the
calls, which run in the SDK's own environment beside the torch of another Python; skipped where no
Python has torch, or a release cannot be installed."""

import subprocess
import sys

import frame  # noqa: F401 (first: the next ones are found by it)
import aistore_lib
from access_lib import GuardedCluster
from aistore_lib import token_of
from lib import main, skip
from venv_lib import environment, python_that_has

PLACE = "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))"
VERSION = "import sys; print(sys.version_info[:2])"


def said(python, program):
    return subprocess.run([python, "-W", "ignore", "-c", program], capture_output=True, text=True,
                          check=True).stdout.strip()


def torch_site(python):
    """The folder of torch, which `python` can import from there."""
    heavy = python_that_has("torch")
    if said(heavy, VERSION) != said(python, VERSION):
        skip(f"{heavy} has torch for {said(heavy, VERSION)}, not for {said(python, VERSION)}")
    return said(heavy, PLACE)


def run(c, *words):
    aistore_lib.run(PYTHON, c, "aistore_torch_calls.py", *words, SITE, token=token_of(c.root))


def test_datasets_of_objects(c):
    run(c, "objects")


def test_datasets_of_shards(c):
    run(c, "shards")


def test_batches(c):
    run(c, "batches")


def test_an_epoch_outlives_a_target(c):
    """The bucket has two copies: one of two targets is killed between the samples."""
    c.create("sdk-copies", copies=2)
    run(c, "fill")
    c.kill("t2")
    run(c, "epoch")
    c.start("t2")
    c.wait_node("t2", "active")


if __name__ == "__main__":
    RELEASE = sys.argv.pop(1)
    python_that_has("torch")  # before an environment is made
    PYTHON = environment((f"aistore=={RELEASE}", "alive_progress", "webdataset"))
    SITE = torch_site(PYTHON)
    main(GuardedCluster, targets=2)
