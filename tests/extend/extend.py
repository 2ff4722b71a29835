#!/usr/bin/env python3
"""A job kind and a bucket property are added in the places that docs/project/extending.md names, and
in no other.

    tests/extend/extend.py [--build]    --build: stops when the daemons are built

The folders beside this script are the addition: the job `census`, and the property `census` that it
heeds.  A .def there has rows for the end of the table of its name.  Every other file is a new one.
The script adds them to a copy of the source, builds the programs, and runs census.py, which uses the
addition on a cluster."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "blackbox"))
from lib import copy_source  # noqa: E402

ADDITION = ("cluster/props/bucket_props.def", "proxy/jobs/census_job.c", "target/jobs/census_job.c",
            "xaction/kinds.def")
PROGRAMS = ("dfc-proxyd", "dfc-targetd", "dfcctl")


def addition():
    """Paths of all files in the folders beside this script."""
    for at, _, files in os.walk(HERE):
        if at != HERE and not at.endswith("__pycache__"):
            yield from (os.path.relpath(os.path.join(at, f), HERE) for f in files)


def add(path, source):
    """One file of the addition; returns what is wrong with it, or None."""
    target = os.path.join(source, path)
    is_table = path.endswith(".def")
    if os.path.exists(target) != is_table:
        return f"{path}: " + ("there is no such table" if is_table else "the source has that file")
    with open(os.path.join(HERE, path), encoding="utf-8") as f:
        text = f.read()
    with open(target, "a", encoding="utf-8") as f:
        f.write(text)
    return None


def build(source):
    """As the tree is built, in a directory of the same name: then ccache has what did not change."""
    directory = os.path.join(source, "build")
    for command in (["meson", "setup", directory, source, "-Dtests=disabled"],
                    ["ninja", "-C", directory, *PROGRAMS]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return directory


def main():
    found = tuple(sorted(addition()))
    if found != ADDITION:
        sys.exit(f"an addition is one row and two files, and one row: these are {found}")
    with tempfile.TemporaryDirectory(prefix="dfc-extend-") as top:
        source = os.path.join(top, "source")
        copy_source(source)
        wrong = [why for why in (add(path, source) for path in ADDITION) if why]
        if wrong:
            sys.exit("\n".join(wrong))
        directory = build(source)
        if sys.argv[1:] == ["--build"]:
            return 0
        return subprocess.run([sys.executable, os.path.join(HERE, "census.py")], check=False,
                              env=dict(os.environ, DFC_BUILD=directory)).returncode


if __name__ == "__main__":
    sys.exit(main())
