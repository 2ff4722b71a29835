#!/usr/bin/env python3
"""Which tests ./test.sh --long runs: reads `meson introspect --tests`, prints "NAME MINUTES" a
line.

The minutes are what a test takes about, by tests/long/meson.build."""

import json
import sys


def minutes_of(test):
    try:
        return int(test["env"]["DFC_LONG_MINUTES"])
    except KeyError:
        sys.exit(f"plan.py: {test['name']} has no DFC_LONG_MINUTES in its environment")


def rows(tests):
    """[(name, minutes)], the longest first: none is left to run alone at the end."""
    long = [(t["name"], minutes_of(t)) for t in tests
            if "long" in [suite.rpartition(":")[2] for suite in t["suite"]]]
    return sorted(long, key=lambda row: -row[1])


def main():
    plan = rows(json.load(sys.stdin))
    if not plan:
        sys.exit("plan.py: there is no test in the suite 'long'")
    for name, minutes in plan:
        print(name, minutes)


if __name__ == "__main__":
    main()
