#!/usr/bin/env python3
"""The real WebDataset reads as README and docs/guide/sorting.md say, and a target that is killed
for 4 s does not end the epoch.

The programs are the pages' own, with this cluster's address.  Each sample is read when the test
says so: a kill comes where it is meant to come.  Skipped where the package is not there and cannot be installed."""

import os
import re
import threading

import frame
from lib import check, equal, main
from venv_lib import python_with
from webdataset_lib import LARGE, PACKAGE, SAMPLES, SHARDS, SMALL, Epoch, all_samples, make_shards

AWAY_SECONDS = 4


# --- the pages' programs --------------------------------------------------------------------------

PAGES = ("README.md", "docs/guide/sorting.md")
BLOCK = re.compile(r"^```python\n(import webdataset.*?)^```$", re.M | re.S)


def examples():
    """The blocks of the pages that import webdataset, in order."""
    found = []
    for page in PAGES:
        with open(os.path.join(frame.ROOT, page), encoding="utf-8") as f:
            found += BLOCK.findall(f.read())
    equal(len(found), len(PAGES), f"programs of {' and '.join(PAGES)} that import webdataset")
    return found


def example(c, marker):
    code = next(e for e in examples() if marker in e)
    check(
        "/quickstart/shard-{00000..00007}.tar" in code or
        "quickstart/shard-{00000..00007}.tar" in code,
        "the example reads the shards that the quickstart makes")
    return code.replace("http://127.0.0.1:8080", c.endpoint)


def begin(c, code):
    return Epoch(PYTHON, code, {"DFC_ENDPOINT": c.endpoint})


# --- a target that is away ------------------------------------------------------------------------

def away_for_a_while(c, node):
    c.kill(node, "-9")
    back = threading.Timer(AWAY_SECONDS, c.start, [node])
    back.start()
    return back


def read_over_a_kill(c, code, size, before):
    """The owner of the shard after the one in which the kill comes is away; each sample comes once,
    in order."""
    epoch = begin(c, code)
    for _ in range(before):
        check(epoch.step() is not None, "the epoch has begun")
    current = (before - 1) // SAMPLES
    owners = [c.owner("quickstart", f"shard-{i:05d}.tar") for i in range(SHARDS)]
    back = away_for_a_while(c, owners[current if before % SAMPLES else current + 1])
    epoch.finish()
    back.join()
    equal(epoch.read, all_samples(size), "samples")
    for node in c.targets():
        c.wait_node(node, "active")


# --- the tests ------------------------------------------------------------------------------------

def test_the_epoch(c):
    c.create("quickstart")
    make_shards(c, SMALL)
    for marker in ("redirect=never", "dfcctl"):
        epoch = begin(c, example(c, marker))
        epoch.finish()
        equal(epoch.read, all_samples(SMALL), f"samples, {marker}")


def test_http_over_a_target_that_is_away(c):
    """Its curl repeats a request that is refused (502, 503): the shards that begin meanwhile are
    read."""
    read_over_a_kill(c, example(c, "redirect=never"), SMALL, before=2 * SAMPLES)


def test_dfcctl_in_the_middle_of_a_shard(c):
    """More than the buffers on the way hold: dfcctl goes on where it was."""
    make_shards(c, LARGE)
    read_over_a_kill(c, example(c, "dfcctl"), LARGE, before=2 * SAMPLES + 2)


if __name__ == "__main__":
    PYTHON = python_with("webdataset", (PACKAGE,))
    main(targets=3)
