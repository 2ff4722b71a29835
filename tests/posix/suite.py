"""What the runners of suites share: a list of exclusions, and the judge.

A list has names of tests, or patterns of names, below the reason.  A test that is excluded must
fail, and any other must pass, so a list can only shrink."""

import fnmatch
import os
import subprocess

from lib import check, skip
from mount_lib import directory_of, mount

HERE = os.path.dirname(os.path.realpath(__file__))


def lines_of(name):
    """The lines of a list without comments."""
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        lines = [line.split("#")[0].strip() for line in f]
    return [line for line in lines if line]


def surprises(results, excluded):
    """Sentences about tests that did not end as the list says; `results`: name -> True or False."""
    for name, passed in sorted(results.items()):
        listed = any(fnmatch.fnmatchcase(name, pattern) for pattern in excluded)
        if passed and listed:
            yield f"{name} is excluded, and passes"
        elif not passed and not listed:
            yield f"{name} fails"


def unknown(results, excluded):
    """Sentences about lines that fit no test."""
    for pattern in excluded:
        if not fnmatch.filter(results, pattern):
            yield f"{pattern}: no such test"


def judge(results, excluded, whole):
    """Prints the sum.  whole: all tests have run."""
    complaints = list(surprises(results, excluded))
    if whole:
        complaints += unknown(results, excluded)
    passed = sum(results.values())
    print(f"{passed} of {len(results)} tests of the suite pass")
    check(results, "no test of the suite has run")
    check(not complaints, "\n".join(complaints))


def checkout_of(variable, suite, program):
    """Where the suite is, which its program shows to be built."""
    path = os.environ.get(variable)
    if path is None:
        skip(f"{variable} names no checkout of {suite}")
    if not os.access(os.path.join(path, program), os.X_OK):
        skip(f"{path}/{program} is missing: {suite} is not built")
    return os.path.realpath(path)


def needs_programs(*names):
    for name in names:
        if subprocess.run(["which", name], stdout=subprocess.DEVNULL, check=False).returncode != 0:
            skip(f"the suite needs the program {name}")


def made(c, name):
    """The URL of a new volume on SQLite."""
    url = "sqlite3://" + os.path.join(os.path.realpath(c.dir), name + ".db")
    done = c.dfcctl("fs", "format", url, name, "--bucket", "dfc://" + name, "--trash-days=0")
    check(done.returncode == 0, f"fs format: {done.stderr}")
    return url


def mount_of(c, url, *flags):
    """Where programs of other users see it, too."""
    os.chmod(c.dir, 0o755)
    os.chmod(directory_of(c, "one"), 0o755)
    return mount(c, url, "--allow-other", *flags)
