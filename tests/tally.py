#!/usr/bin/env python3
"""Adds up meson's test logs.

    tally.py ALLOWED_SKIPS testlog.json...

Says what failed and why, and what was skipped, and ends with the plain line "N passed, N failed, N skipped".
A skip that ALLOWED_SKIPS does not list ("name  # reason" a line), a log that is missing and a run
of no test at all are failures.
"""

import json
import sys

PASSED = ("OK", "EXPECTEDFAIL")
TOLD = ("not ok", "[  ERROR", "[   LINE", "FAIL", "ERROR: ", "WARNING: ThreadSanitizer", "SUMMARY: ")
LINES_MAX = 20


def allowed_skips(path):
    with open(path, encoding="utf-8") as f:
        lines = [line.strip() for line in f]
    allowed = {}
    for line in lines:
        name, mark, reason = (part.strip() for part in line.partition("#"))
        if name:
            if not mark or not reason:
                sys.exit(f"{path}: '{name}' has no reason")
            allowed[name] = reason
    return allowed


def results(path):
    """[(test's name, meson's result, seconds, what it printed)]"""
    with open(path, encoding="utf-8") as f:
        return [(r["name"].split(" / ")[-1], r["result"], r["duration"],
                 r.get("stdout", "") + r.get("stderr", ""))
                for r in map(json.loads, f)]


def told(text):
    """What a failed test says of why: these lines and the one after each, or its last ones."""
    lines = text.splitlines()
    at = [i for i, line in enumerate(lines) if line.lstrip().startswith(TOLD)]
    chosen = sorted({k for i in at for k in (i, i + 1) if k < len(lines)})[:LINES_MAX]
    return [lines[i] for i in chosen] or lines[-LINES_MAX:]


def judge(path, allowed):
    """(passed, failed, skipped) of one log; prints what is not passed."""
    try:
        rows = results(path)
    except OSError as e:
        print(f"failed: {path}: {e.strerror}")
        return 0, 1, 0
    if not rows:
        print(f"failed: {path}: no test ran")
        return 0, 1, 0
    passed = failed = skipped = 0
    for name, result, seconds, text in rows:
        if result in PASSED:
            passed += 1
        elif result == "SKIP" and name in allowed:
            skipped += 1
            print(f"skipped: {path}: {name}: {allowed[name]}")
        else:
            failed += 1
            what = "skipped, which tests/allowed-skips does not allow" if result == "SKIP" else result
            print(f"failed: {path}: {name}: {what} ({seconds:.1f} s)")
            for line in told(text):
                print(f"    {line[:300]}")
    return passed, failed, skipped


def main(allowed_path, *logs):
    allowed = allowed_skips(allowed_path)
    counts = [judge(path, allowed) for path in logs]
    passed, failed, skipped = (sum(column) for column in zip(*counts))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
