#!/usr/bin/env python3
"""The group `quick` of xfstests on two volumes on SQLite.

    DFC_XFSTESTS=CHECKOUT [DFC_POSIX_ONLY=NAMES] tests/posix/xfstests.py

The checkout is built.  DFC_POSIX_ONLY has names of tests (`generic/001`) with spaces between them.
`xfstests.excluded` has names of tests, and `xfstests.left_out` those that are not run.  A test that does not run, since the file system lacks what
it is about, is neither passed nor failed.

mount(8) calls /sbin/mount.fuse.dfc.  That, and the users of the suite, are in a mount namespace of
the script's own: the machine stays as it is."""

import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "blackbox"))

from lib import BUILD, Failed, check, equal, main, skip  # noqa: E402
from mount_lib import directory_of, needs_fuse, said_by_sanitizers, to_be_cleaned  # noqa: E402
from suite import checkout_of, judge, lines_of, made, needs_programs  # noqa: E402

VARIABLE, SUITE, PROGRAM = "DFC_XFSTESTS", "kdave/xfstests", "ltp/fsstress"
GROUPS = "tests/generic/group.list"  # what `make` builds last
GROUP = "quick"
BATCH = 20
RUN_AT_LEAST = 110
BATCH_SECONDS = 3600
USERS = ("fsgqa", "fsgqa2", "123456-fsgqa")
CONFIGURATION = """
export TEST_DEV={test_url}
export TEST_DIR={test}
export SCRATCH_DEV={scratch_url}
export SCRATCH_MNT={scratch}
export FSTYP=fuse
export FUSE_SUBTYP=.dfc
export MOUNT_OPTIONS="-o allow_other"
export TEST_FS_MOUNT_OPTS="-o allow_other"
export RESULT_BASE={results}
"""


def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        skip(f"{' '.join(argv)}: {done.stderr.strip()}")


def with_helper(directory):
    """mount(8) finds its helper."""
    helpers = os.path.join(directory, "sbin")
    os.mkdir(helpers)
    os.symlink(os.path.join(BUILD, "dfc-mount"), os.path.join(helpers, "mount.fuse.dfc"))
    sbin = os.path.realpath("/sbin")
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={helpers}:{sbin}", sbin)


def with_df(directory):
    """The suite knows the type `fuse` alone, without what comes behind the dot."""
    df, programs = shutil.which("df"), os.path.join(directory, "bin")
    os.mkdir(programs)
    with open(os.open(os.path.join(programs, "df"), os.O_CREAT | os.O_WRONLY, 0o755), "w",
              encoding="utf-8") as f:
        f.write(f"#!/bin/bash\nset -o pipefail\n{df} \"$@\" | sed 's/ fuse[.]dfc / fuse /'\n")
    os.environ["PATH"] = programs + ":" + os.environ["PATH"]


def with_users(directory):
    for name, line in (("passwd", "{0}:x:{1}:{1}::/:/bin/bash"), ("group", "{0}:x:{1}:"),
                       ("shadow", "{0}:*:20000:0:99999:7:::")):
        copy = os.path.join(directory, name)
        shutil.copyfile("/etc/" + name, copy)
        with open(copy, "a", encoding="utf-8") as f:
            f.writelines(line.format(user, 41000 + i) + "\n" for i, user in enumerate(USERS))
        run("mount", "--bind", copy, "/etc/" + name)


def results_of(report):
    """(name -> did it pass, names of those that did not run)."""
    ran, lacks = {}, set()
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is not None:
            lacks.add(case.get("name"))
        else:
            ran[case.get("name")] = case.find("failure") is None
    return ran, lacks


class Suite:
    def __init__(self, c, checkout):
        self.cluster, self.checkout = c, checkout
        self.results = tempfile.mkdtemp(dir=c.dir, prefix="results-")
        self.configuration = os.path.join(c.dir, "xfstests.config")
        os.chmod(c.dir, 0o755)
        values = {"results": self.results}
        for name in ("test", "scratch"):
            values[name] = directory_of(c, name)
            values[name + "_url"] = made(c, name)
            to_be_cleaned(values[name])
        with open(self.configuration, "w", encoding="utf-8") as f:
            f.write(CONFIGURATION.format(**values))

    def check(self, *arguments, **options):
        env = {**self.cluster.dfcctl_environment(), "HOST_OPTIONS": self.configuration}
        return subprocess.run(["./check", *arguments], cwd=self.checkout, env=env, text=True,
                              check=False, timeout=BATCH_SECONDS, **options)

    def names(self):
        listed = self.check("-n", "-fuse", "-g", "generic/" + GROUP, stdout=subprocess.PIPE)
        names = [line.split()[0] for line in listed.stdout.splitlines()
                 if line.startswith("generic/")]
        check(names, f"the suite has no tests: {listed.stdout}")
        return names

    def run(self, names):
        """As results_of()."""
        report = os.path.join(self.results, "result.xml")
        if os.path.exists(report):
            os.unlink(report)
        self.check("-R", "xunit-quiet", "-fuse", *names)
        if not os.path.exists(report):
            raise Failed(f"the suite made no report of {' '.join(names)}")
        return results_of(report)


def test_each_test_ends_as_its_list_says(c):
    suite = Suite(c, checkout_of(VARIABLE, SUITE, PROGRAM))
    only = os.environ.get("DFC_POSIX_ONLY", "").split()
    left_out = lines_of("xfstests.left_out")
    names = only or [name for name in suite.names() if name not in left_out]
    results, lacks = {}, set()
    for first in range(0, len(names), BATCH):
        ran, not_run = suite.run(names[first:first + BATCH])
        results.update(ran)
        lacks |= not_run
    print(f"{len(results)} tests have run, and {len(lacks)} have no use here")
    check(only or len(results) >= RUN_AT_LEAST, f"fewer than {RUN_AT_LEAST} tests have run")
    judge(results, lines_of("xfstests.excluded"), not only)


def test_sanitizers_found_nothing(_):
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    if not os.path.exists(os.path.join(checkout_of(VARIABLE, SUITE, PROGRAM), GROUPS)):
        skip(f"the checkout of {SUITE} has no {GROUPS}: its `make` has not ended")
    needs_programs("bc", "gawk", "perl", "xfs_io")
    needs_fuse()
    with tempfile.TemporaryDirectory() as place:
        with_helper(place)
        with_df(place)
        with_users(place)
        main(targets=1)
