#!/usr/bin/env python3
"""The files that tests need, a line each, as ninja's targets in their directory.

    needed.py DIRECTORY SUITE... < TESTS

TESTS has the names of tests, a line each: of those, the tests of these suites.  With no name at
all, every test of these suites."""

import json
import os
import subprocess
import sys


def needed(tests, targets, suites, names):
    """Files of `targets`, as meson's introspection has both, for tests of `suites` and `names`."""
    ids = {d for t in tests if (not names or t["name"] in names)
           and suites & {s.rpartition(":")[2] for s in t["suite"]} for d in t["depends"]}
    return sorted({f for t in targets if t["id"] in ids for f in t["filename"]})


if __name__ == "__main__":
    directory = sys.argv[1]
    known = json.loads(subprocess.run(["meson", "introspect", directory, "--tests", "--targets"],
                                      check=True, stdout=subprocess.PIPE).stdout)
    for file in needed(known["tests"], known["targets"], set(sys.argv[2:]), set(sys.stdin.read().split())):
        print(os.path.relpath(file, directory))
