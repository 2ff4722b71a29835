#!/usr/bin/env python3
"""Adds up meson's test logs.

    tally.py ALLOWED_SKIPS testlog.json...
    tally.py --late testlog.json

Says what failed and why, and what was skipped, and ends with the plain line
"N passed, N failed, N skipped".
A skip that ALLOWED_SKIPS does not list ("name  # reason" a line), a log that is missing and a run
of no test at all are failures.

--late prints the names of tests that failed for time alone: a wait, or the whole test, took longer
than its limit.  On a busy machine that says nothing of the program, so test.sh runs these once
more, each alone; its log again.json beside the first one decides.  Whatever else fails, wrong bytes
or a sanitizer's report, is never repeated.
"""

import json
import os
import re
import sys

PASSED = ("OK", "EXPECTEDFAIL")
TOLD = ("not ok", "[  ERROR", "[   LINE", "FAIL", "ERROR: ", "WARNING: ThreadSanitizer",
        "SUMMARY: ")
LINES_MAX = 20
FAILED_TEST = re.compile(r"^not ok .*?: (.*)$", re.M)
WAITED = re.compile(r"not within [\d.]+ s\b")
REPORT = re.compile(r"Sanitizer|runtime error:|Assertion .* failed|core dumped|^Traceback ", re.M)


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


def is_late(result, text):
    """Did it fail for time alone?"""
    if REPORT.search(text):
        return False
    reasons = FAILED_TEST.findall(text)
    if result == "TIMEOUT":
        return all(WAITED.search(reason) for reason in reasons)
    return result == "FAIL" and reasons != [] and all(WAITED.search(r) for r in reasons)


def late(path):
    return [name for name, result, _, text in results(path) if is_late(result, text)]


def again_of(path):
    return os.path.join(os.path.dirname(path), "again.json")


def decided(path):
    """The rows of a log, where a test that was late has its second run."""
    again = {}
    if os.path.exists(again_of(path)):
        again = {row[0]: row for row in results(again_of(path))}
    for row in results(path):
        if row[0] in again and is_late(row[1], row[3]):
            print(f"late: {path}: {row[0]}: {row[1]} ({row[2]:.1f} s), and was repeated alone")
            for line in told(row[3]):
                print(f"    {line[:300]}")
            row = again[row[0]]
        yield row


def judge(path, allowed):
    """(passed, failed, skipped) of one log; prints what is not passed."""
    try:
        rows = list(decided(path))
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
            what = result if result != "SKIP" else "skipped, not in tests/allowed-skips"
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
    if len(sys.argv) == 3 and sys.argv[1] == "--late":
        print("\n".join(late(sys.argv[2])))
        sys.exit(0)
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
