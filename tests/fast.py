#!/usr/bin/env python3
"""Names of the tests for what has changed, a line each: `./test.sh --fast` runs them.

    fast.py BASE < TESTS

TESTS is what `meson introspect --tests` prints, BASE a commit.  What has changed since BASE, or is
not committed, chooses:

  the tree's own tests        always, and all of them
  unit tests and fuzzers      of the top folders that changed
  tests of dfcctl             where api/ changed
  simulators                  of sort/ and of the proxies, where a folder that they run changed
"""

import json
import subprocess
import sys

PROXIES = ("common", "cluster", "xaction", "proxy")
SIMULATED = {"membership_sim": ("cluster",), "sort_differential": ("common", "sort"),
             "sim": PROXIES, "sim_mutants": PROXIES}


def changed(base):
    """Paths that differ from BASE, and those that git does not know yet."""
    def lines(*command):
        return subprocess.run(command, text=True, check=True,
                              capture_output=True).stdout.split("\n")

    return {f for f in lines("git", "diff", "--name-only", base)
            + lines("git", "ls-files", "--others", "--exclude-standard") if f}


def folders(paths):
    return {path.split("/")[0] for path in paths if "/" in path}


def place(test):
    """The folder in the build directory of the program that the test runs, or ''."""
    for word in test["cmd"]:
        parts = word.split("/")
        for i, part in enumerate(parts):
            if part.startswith("build") and i + 2 < len(parts):
                return parts[i + 1]
    return ""


def is_chosen(test, where):
    suites = {s.split(":")[-1] for s in test["suite"]}
    if "long" in suites:
        return False
    if "tree" in suites:
        return True
    if test["name"] in SIMULATED:
        return any(folder in where for folder in SIMULATED[test["name"]])
    if test["name"].startswith("dfcctl"):
        return "api" in where
    return "unit" in suites and place(test) in where


def choose(tests, paths):
    return sorted({t["name"] for t in tests if is_chosen(t, folders(paths))})


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("\n".join(choose(json.load(sys.stdin), changed(sys.argv[1]))))
