#!/usr/bin/env python3
"""The real WebDataset reads a cluster with access control as docs/guide/sorting.md says: by
`dfcctl cat` with a key or a token, and by curl with a token in a file.  A user without the right
gets an error, and no empty epoch."""

import os

import frame  # noqa: F401 (first: the next one is found by it)
from access_lib import GuardedCluster, make_user
from lib import Failed, check, equal, main
from venv_lib import python_with
from webdataset_lib import PACKAGE, SMALL, Epoch, all_samples, make_shards

PROGRAM = """import webdataset as wds
for sample in wds.WebDataset({shards!r}, shardshuffle=False):
    print(sample["__key__"], len(sample["jpg"]))
"""
NAMES = "quickstart/shard-{00000..00007}.tar"
DFCCTL = "pipe:dfcctl cat " + NAMES


class Locked(GuardedCluster):
    def __init__(self, **shape):
        super().__init__(**shape)
        self.create("quickstart")
        make_shards(self, SMALL)
        self.trainer = make_user(self, "trainer", [{"rights": ["read"], "bucket": "quickstart"}])
        self.token = self.trainer.headers()["Authorization"]

    def epoch(self, shards, **env):
        """It has no cluster key and no login of its own."""
        return Epoch(PYTHON, PROGRAM.format(shards=shards),
                     {"DFC_ENDPOINT": self.endpoint, "DFC_CLUSTER_KEY_FILE": "",
                      "DFC_CA_FILE": self.ca_file() if self.http.context else "",
                      "XDG_CONFIG_HOME": self.dir, "XDG_CACHE_HOME": self.dir, **env})


def read(epoch):
    epoch.finish()
    equal(epoch.read, all_samples(SMALL), "samples")


def test_dfcctl_with_a_key(c):
    read(c.epoch(DFCCTL, DFC_ACCESS_KEY=c.trainer.access, DFC_SECRET_KEY=c.trainer.secret))


def test_dfcctl_with_a_token(c):
    read(c.epoch(DFCCTL, DFC_TOKEN=c.token.split()[1]))


def test_curl_with_a_token_in_a_file(c):
    path = os.path.join(c.dir, "trainer.token")
    with open(path, "w", encoding="ascii") as f:
        f.write(f"Authorization: {c.token}\n")
    trust = f" --cacert {c.ca_file()}" if c.http.context else ""
    read(c.epoch(f"pipe:curl -sfL -H @{path}{trust} {c.endpoint}/v1/objects/{NAMES}"))


def test_without_the_right(c):
    stranger = make_user(c, "stranger", [{"rights": ["list"], "bucket": "quickstart"}])
    for env in ({}, {"DFC_TOKEN": stranger.headers()["Authorization"].split()[1]}):
        epoch = c.epoch(DFCCTL, **env)
        try:
            epoch.finish()
        except Failed:
            equal(epoch.read, [], "samples of a user without the right")
            continue
        check(False, "the epoch ended well, without a sample")


if __name__ == "__main__":
    PYTHON = python_with("webdataset", (PACKAGE,))
    main(Locked, targets=3)
