#!/usr/bin/env python3
"""Names of the tests that the thread sanitizer can say something about, a line each.

    threaded.py < TESTS

TESTS is what `meson introspect --tests` prints.  A unit test is left out if its program imports
nothing that starts a thread: it has no second thread to race with."""

import json
import re
import subprocess
import sys

# Calls that start threads themselves, and libraries that do.
STARTS = re.compile(r"\b(pthread_create|thrd_create|uv_\w+|MHD_\w+|curl_\w+)\b")


def imports(program):
    """What the program takes from shared libraries, as text."""
    return subprocess.run(["nm", "-D", "--undefined-only", program], text=True, check=True,
                          capture_output=True).stdout


def chosen(tests, imported=imports):
    names = set()
    for test in tests:
        is_script = test["cmd"][0].endswith((".py", ".sh", "python3"))
        if is_script or STARTS.search(imported(test["cmd"][0])):
            names.add(test["name"])
    return names


if __name__ == "__main__":
    for name in sorted(chosen(json.load(sys.stdin))):
        print(name)
