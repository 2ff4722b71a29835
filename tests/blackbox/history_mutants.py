#!/usr/bin/env python3
"""Does history.py find anything?  Each row is a target that leaves out a step on which the promise
rests
(a fault point that can be skipped, common/fault.def), and the rounds in which that has to be found.
 By
hand: it takes minutes.

    tests/blackbox/history_mutants.py [POINT...]     # all rows, or these"""

import os
import re
import subprocess
import sys

ROWS = [
    # point, copies, faults
    ("none", "1", "kills,moves"),  # the daemons as they are: nothing may be found
    ("earlier.ask", "1", "moves"),
    ("none", "2,3", "kills,cuts"),
    ("copies.others", "2,3", "kills,cuts"),
    ("copies.compare", "2,3", "kills,cuts"),
    ("copies.lease", "2,3", "cuts"),
    ("copies.marks", "2,3", "kills,cuts"),
    ("copies.quorum", "3m", "kills,cuts"),
]
SEEDS_MOST = int(os.environ.get("DFC_ROUNDS", 12))


def run(point, copies, faults):
    """The seed that found it and the sentence, or None."""
    env = dict(os.environ, DFC_SEEDS=f"1-{SEEDS_MOST}", DFC_COPIES=copies, DFC_TROUBLE=faults)
    if point != "none":
        env["DFC_MUTANT"] = point
    script = os.path.join(os.path.dirname(os.path.realpath(__file__)), "history.py")
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True,
                          check=False)
    if done.returncode == 0:
        return None
    found = re.search(r"not ok  test_histories: (seed \d+[^\n]*)", done.stdout)
    return found.group(1) if found else done.stdout[-2000:] + done.stderr[-2000:]


def main():
    wrong = 0
    for point, copies, faults in ROWS:
        if sys.argv[1:] and point not in sys.argv[1:]:
            continue
        found = run(point, copies, faults)
        wrong += (found is None) == (point != "none")
        print(
            f"{point:<16} copies {copies:<4} {faults:<12} {found or f'not by {SEEDS_MOST} seeds'}",
            flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
