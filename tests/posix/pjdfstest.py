#!/usr/bin/env python3
"""pjdfstest on a volume on SQLite.

    DFC_PJDFSTEST=CHECKOUT [DFC_POSIX_ONLY=NAMES] tests/posix/pjdfstest.py

The checkout is built.  DFC_POSIX_ONLY has names of files (`rename/00.t`) with spaces between them.
`pjdfstest.excluded` has names of tests, which are a file's and a number: `rename/00.t:7`."""

import concurrent.futures
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "blackbox"))

from lib import equal, main  # noqa: E402
from mount_lib import needs_fuse, said_by_sanitizers, umount  # noqa: E402
from suite import (checkout_of, judge, lines_of, made, mount_of,  # noqa: E402
                   needs_programs)

VARIABLE, SUITE, PROGRAM = "DFC_PJDFSTEST", "pjd/pjdfstest", "pjdfstest"
FILE_SECONDS = 1200
FILES_AT_ONCE = 4
PLAN = re.compile(r"1\.\.(\d+)")
EXPECTED = "# " + "TO" + "DO"  # Linux is known to do so
RESULT = re.compile(r"(not )?ok (\d+)")


def results_of(name, output):
    """Of each test of a file: did it pass?  One that the plan has and the output lacks did not."""
    plan = PLAN.search(output)
    results = {f"{name}:{i + 1}": False for i in range(int(plan[1]) if plan else 1)}
    for line in output.splitlines():
        found = RESULT.match(line)
        if found:
            results[f"{name}:{found[2]}"] = found[1] is None or EXPECTED in line
    return results


def run_file(checkout, mounted, name):
    work = os.path.join(mounted, name.replace("/", "-"))
    os.mkdir(work)
    done = subprocess.run(["sh", os.path.join(checkout, "tests", name)], cwd=work, text=True,
                          stdout=subprocess.PIPE, check=False, timeout=FILE_SECONDS)
    results = results_of(name, done.stdout)
    for line in done.stdout.splitlines():
        if line.startswith("not ok") and EXPECTED not in line:
            print(f"{name}: {line}", flush=True)
    return results


def files_of(checkout):
    tests = os.path.join(checkout, "tests")
    return sorted(os.path.relpath(os.path.join(at, name), tests)
                  for at, _, names in os.walk(tests) for name in names if name.endswith(".t"))


def test_each_test_ends_as_its_list_says(c):
    checkout = checkout_of(VARIABLE, SUITE, PROGRAM)
    only = os.environ.get("DFC_POSIX_ONLY", "").split()
    path = mount_of(c, made(c, "pjdfstest"))
    results = {}
    with concurrent.futures.ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        for of_file in pool.map(lambda name: run_file(checkout, path, name),
                                only or files_of(checkout)):
            results.update(of_file)
    umount(c, path)
    judge(results, lines_of("pjdfstest.excluded"), not only)


def test_sanitizers_found_nothing(_):
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    checkout_of(VARIABLE, SUITE, PROGRAM)
    needs_programs("openssl", "awk")
    needs_fuse()
    main(targets=1)
