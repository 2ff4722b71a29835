#!/usr/bin/env python3
"""Line coverage by folder of everything that ran from a build with -Db_coverage=true.

    coverage.py BUILD       a table in Markdown: docs/project/testing.md says how it is made

gcovr.cfg says what does not count: tests, fuzzers and their helpers.
"""

import collections
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def files_of(build):
    """gcovr's summary of each file."""
    command = ["gcovr", "--root", ROOT, "--json-summary", "-", "-j", str(os.cpu_count())]
    done = subprocess.run([*command, build], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"coverage: gcovr failed: {done.stderr.strip()}")
    return json.loads(done.stdout)["files"]


def by_folder(files):
    """{folder: (lines run, lines)}: the folder of each file, and "all"."""
    sums = collections.defaultdict(lambda: (0, 0))
    for file in files:
        for folder in (os.path.dirname(file["filename"]), "all"):
            run, lines = sums[folder]
            sums[folder] = run + file["line_covered"], lines + file["line_total"]
    return sums


def table(sums):
    rows = [f"| {folder} | {lines} | {100 * run / lines:.0f} |"
            for folder, (run, lines) in sorted(sums.items(), key=lambda s: (s[0] == "all", s[0]))
            if lines]
    return "\n".join(["| folder | lines | % run |", "|---|---|---|", *rows])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = files_of(os.path.abspath(sys.argv[1]))
    if not any(file["line_covered"] for file in found):
        sys.exit("coverage: nothing has run yet: meson test -C build-cov")
    print(table(by_folder(found)))
