#!/usr/bin/env python3
"""Adds up meson's test logs.

    tally.py ALLOWED_SKIPS testlog.json...
    tally.py --unsteady testlog.json

Says what failed and why, and what was skipped, and ends with the plain line
"N passed, N failed, N skipped".
A skip that ALLOWED_SKIPS does not list ("name  # reason" a line), a log that is missing and a run
of no test at all are failures.  So is a test that testlog.planned beside the log lists (test.sh
has meson write it before a run) and the log does not have: meson itself was ended.

--unsteady prints the names of tests that failed where a busy machine may be why: at most
UNSTEADY_MAX of a log.  test.sh runs each twice more, alone; both runs, in again.json beside the
first log, must pass.  A test that passed so is named in the output with its first failure: the test
must be mended, or what it found.  These failures are final:

  - a report of a sanitizer, a crash, a failed assertion, an exception of Python that is not about time
  - unit tests, simulations and fuzzers, also where they hang: only black-box tests are repeated
  - histories, copies, crashes and kills
  - all of a log with more failures than UNSTEADY_MAX
"""

import collections
import json
import os
import re
import sys

PASSED = ("OK", "EXPECTEDFAIL")
TOLD = ("not ok", "[  ERROR", "[   LINE", "FAIL", "ERROR: ", "WARNING: ThreadSanitizer",
        "SUMMARY: ")
LINES_MAX = 20
UNSTEADY_MAX = 3
AGAIN_RUNS = 2  # as in test.sh
FAILED_TEST = re.compile(r"^not ok ", re.M)
FINAL = re.compile(r"history|copies|crash|kill|power")  # a rare failure is what they look for
REPORT = re.compile(r"Sanitizer|\bdied$|runtime error:|Assertion .* failed|core dumped", re.M)
TRACEBACK = re.compile(r"^Traceback ", re.M)
CHAINED = re.compile(r"^(During handling of the above|The above) exception", re.M)
# The test script's own exceptions: nobody answered in time, or nobody listened yet.  A connection that
# is cut is no matter of time.
WAITED = re.compile(r"^not ok  \w+: (Timeout|TimeoutError|TimeoutExpired|ConnectTimeout|ReadTimeout"
                    r"|ConnectionRefusedError)\(", re.M)


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
    """[(test's name, meson's result, seconds, what it printed, its suites)]"""
    with open(path, encoding="utf-8") as f:
        return [(r["name"].split(" / ")[-1], r["result"], r["duration"],
                 r.get("stdout", "") + r.get("stderr", ""), r["name"].split(" / ")[0])
                for r in map(json.loads, f)]


def did_not_run(path):
    """The names of planned tests that the log does not have, each as often as it lacks it."""
    planned = os.path.splitext(path)[0] + ".planned"
    if not os.path.exists(planned):
        return []
    with open(planned, encoding="utf-8") as f:
        names = collections.Counter(line.strip().split(" / ")[-1] for line in f if " / " in line)
    return sorted((names - collections.Counter(row[0] for row in results(path))).elements())


def told(text):
    """What a failed test says of why: these lines and the one after each, or its last ones."""
    lines = text.splitlines()
    at = [i for i, line in enumerate(lines) if line.lstrip().startswith(TOLD)]
    chosen = sorted({k for i in at for k in (i, i + 1) if k < len(lines)})[:LINES_MAX]
    return [lines[i] for i in chosen] or lines[-LINES_MAX:]


def has_other_exceptions(text):
    waited = len(WAITED.findall(text))
    return len(TRACEBACK.findall(text)) > (waited + len(CHAINED.findall(text)) if waited else 0)


def is_unsteady(result, text, suites):
    """May it pass on a machine that does nothing else?"""
    if REPORT.search(text) or has_other_exceptions(text) or "blackbox" not in suites:
        return False
    return result == "TIMEOUT" or (result == "FAIL" and FAILED_TEST.search(text) is not None)


def unsteady(path):
    """The names of those that are repeated; none, where so much fails that the program may be bad."""
    rows = results(path)
    failed = [row for row in rows if row[1] not in (*PASSED, "SKIP")]
    names = [name for name, result, _, text, suites in failed
             if is_unsteady(result, text, suites) and not FINAL.search(name)]
    return names if len(failed) <= UNSTEADY_MAX else []


def again_of(path):
    return os.path.join(os.path.dirname(path), "again.json")


def repeated(path):
    """{name: row} of the tests that ran alone as often as they must: of each the worst run."""
    runs = {}
    if os.path.exists(again_of(path)):
        for row in results(again_of(path)):
            runs.setdefault(row[0], []).append(row)
    return {name: next((row for row in rows if row[1] not in PASSED), rows[0])
            for name, rows in runs.items() if len(rows) == AGAIN_RUNS}


def decided(path):
    """The rows of a log, where a test that was repeated has its worst run alone.  A repetition that was
    skipped says nothing: the first failure stays."""
    again, names = repeated(path), unsteady(path)
    for row in results(path):
        if row[0] in names and row[0] in again:
            print(f"unsteady: {path}: {row[0]}: {row[1]} ({row[2]:.1f} s), and was repeated alone")
            for line in told(row[3]):
                print(f"    {line[:300]}")
            row = again[row[0]] if again[row[0]][1] != "SKIP" else row
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
    passed = skipped = 0
    lacking = did_not_run(path)
    failed = len(lacking)
    for name in lacking:
        print(f"failed: {path}: {name}: did not run")
    for name, result, seconds, text, _ in rows:
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
    if len(sys.argv) == 3 and sys.argv[1] == "--unsteady":
        print("\n".join(unsteady(sys.argv[2])))
        sys.exit(0)
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
