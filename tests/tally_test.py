#!/usr/bin/env python3
"""tally.py counts, and does not let skips and empty runs pass."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import tally  # noqa: E402


class Tally(unittest.TestCase):
    def run_tally(self, *logs, allowed=""):
        """(exit status, last line) for logs of {name: result}; None is a log that is missing."""
        with tempfile.TemporaryDirectory(prefix="dfc-tally-") as d:
            paths = [os.path.join(d, "allowed")]
            with open(paths[0], "w", encoding="utf-8") as f:
                f.write(allowed)
            for i, log in enumerate(logs):
                paths.append(os.path.join(d, f"{i}.json"))
                if log is None:
                    continue
                with open(paths[-1], "w", encoding="utf-8") as f:
                    f.writelines(json.dumps({"name": f"dfc:unit / {name}", "result": result,
                                             "duration": 1}) + "\n" for name, result in log.items())
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                status = tally.main(*paths)
            return status, out.getvalue().splitlines()[-1]

    def run_with_again(self, first, again, suite="blackbox"):
        """The same for one log of [(name, result, text)] and its second run."""
        with tempfile.TemporaryDirectory(prefix="dfc-tally-") as d:
            for name, rows in (("testlog.json", first), ("again.json", again)):
                with open(os.path.join(d, name), "w", encoding="utf-8") as f:
                    f.writelines(json.dumps({"name": f"dfc:{suite} / {n}", "result": result,
                                             "duration": 1, "stdout": text}) + "\n"
                                 for n, result, text in rows)
            path, allowed = os.path.join(d, "testlog.json"), os.path.join(d, "allowed")
            with open(allowed, "w", encoding="utf-8") as f:
                f.write("a  # it may skip\n")
            with contextlib.redirect_stdout(io.StringIO()) as out:
                status = tally.main(allowed, path)
            return tally.unsteady(path), status, out.getvalue().splitlines()[-1]

    def test_what_fails_beside_others_is_repeated_twice(self):
        bad = "not ok  test_a: a thing: not within 60 s\n        x.py:1\nok      test_b (0.1 s)\n"
        passed, failed = (0, "1 passed, 0 failed, 0 skipped"), (1, "0 passed, 1 failed, 0 skipped")
        for first in (("a", "FAIL", bad), ("a", "TIMEOUT", "")):
            for again, wanted in ((("OK", "OK"), passed), (("OK", "FAIL"), failed),
                                  (("FAIL", "OK"), failed), (("TIMEOUT", "OK"), failed),
                                  (("SKIP", "SKIP"), failed), (("OK", "SKIP"), failed)):
                self.assertEqual(self.run_with_again([first], [("a", r, "") for r in again]),
                                 (["a"], *wanted))
        for too_few in ([], [("a", "OK", "")]):
            self.assertEqual(self.run_with_again([("a", "FAIL", bad)], too_few)[1:], failed)

    def test_what_looks_for_rare_failures_is_final(self):
        for name in ("history", "copies_promise", "crash", "primary_kills", "mount_kill"):
            self.assertEqual(self.run_with_again([(name, "FAIL", "not ok  test_a: bad\n")],
                                                 [(name, "OK", "")] * 2)[:2], ([], 1))

    def test_an_exception_of_time_is_repeated(self):
        trace = "Traceback (most recent call last):\n  x\n"
        late = f"not ok  test_a: TimeoutError('timed out')\n        x.py:1\n{trace}TimeoutError: timed out\n"
        chained = f"{late}\nDuring handling of the above exception, another exception occurred:\n\n{trace}E\n"
        other = f"not ok  test_b: OSError(5, 'Input/output error')\n{trace}OSError: [Errno 5]\n"
        for text, wanted in ((late, 0), (chained, 0), (late + other, 1), (other, 1), (trace, 1)):
            self.assertEqual(self.run_with_again([("a", "FAIL", text)], [("a", "OK", "")] * 2)[1],
                             wanted, text)

    def test_what_is_final(self):
        for result, text in (("FAIL", "[  FAILED  ] test_a\n"), ("FAIL", ""), ("ERROR", "not ok x\n"),
                             ("FAIL", "not ok  test_a: bad\nWARNING: ThreadSanitizer: data race\n"),
                             ("TIMEOUT", "==1==ERROR: AddressSanitizer: heap-use-after-free\n"),
                             ("FAIL", "not ok  test_a: bad\nTraceback (most recent call last):\n")):
            self.assertEqual(self.run_with_again([("a", result, text)], [("a", "OK", "")] * 2),
                             ([], 1, "0 passed, 1 failed, 0 skipped"), text)

    def test_many_failures_are_final(self):
        rows = [(f"t{i}", "FAIL", "not ok  test_a: bad\n") for i in range(tally.UNSTEADY_MAX + 1)]
        again = [(name, "OK", "") for name, _, _ in rows] * 2
        self.assertEqual(self.run_with_again(rows, again)[:2], ([], 1))
        self.assertEqual(self.run_with_again(rows[1:], again)[1], 0)

    def test_adds_up(self):
        self.assertEqual(self.run_tally({"a": "OK", "b": "OK"}, {"a": "OK"}),
                         (0, "3 passed, 0 failed, 0 skipped"))

    def test_whatever_is_not_passed_failed(self):
        for result in ("FAIL", "TIMEOUT", "ERROR", "INTERRUPT", "UNEXPECTEDPASS"):
            self.assertEqual(self.run_tally({"a": "OK", "b": result}),
                             (1, "1 passed, 1 failed, 0 skipped"))

    def test_skips_need_a_reason(self):
        self.assertEqual(self.run_tally({"a": "OK", "b": "SKIP"}),
                         (1, "1 passed, 1 failed, 0 skipped"))
        self.assertEqual(
            self.run_tally({"a": "OK", "b": "SKIP"}, allowed="# x\nb  # no such disk\n"),
            (0, "1 passed, 0 failed, 1 skipped"))
        with self.assertRaises(SystemExit):
            self.run_tally({"b": "SKIP"}, allowed="b\n")

    def test_a_unit_test_that_hangs_is_final(self):
        for suite, wanted in (("blackbox+blackbox-address", (["a"], 0)), ("unit", ([], 1)),
                              ("sim+sort", ([], 1)), ("fuzz", ([], 1))):
            self.assertEqual(self.run_with_again([("a", "TIMEOUT", "")], [("a", "OK", "")] * 2,
                                                 suite)[:2], wanted, suite)

    def test_what_was_planned_must_have_run(self):
        """As when meson itself is killed."""
        with tempfile.TemporaryDirectory(prefix="dfc-tally-") as d:
            log = os.path.join(d, "testlog.json")
            with open(log, "w", encoding="utf-8") as f:
                f.write('{"name": "dfc:unit / list", "result": "OK", "duration": 1}\n')
            for names, wanted in ((["list"], (0, "1 passed, 0 failed, 0 skipped")),
                                  (["list", "list"], (1, "1 passed, 1 failed, 0 skipped")),
                                  (["a", "list", "b"], (1, "1 passed, 2 failed, 0 skipped"))):
                with open(os.path.join(d, "testlog.planned"), "w", encoding="utf-8") as f:
                    f.writelines(f"dfc:unit / {name}\n" for name in names)
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    status = tally.main(os.devnull, log)
                self.assertEqual((status, out.getvalue().splitlines()[-1]), wanted, names)
            alone = os.path.join(d, "long_a.json")  # of a run that has no plan
            os.rename(log, alone)
            with contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(tally.main(os.devnull, alone), 0)

    def test_nothing_is_not_success(self):
        self.assertEqual(self.run_tally({})[0], 1)
        self.assertEqual(self.run_tally({"a": "OK"}, None)[0], 1)


if __name__ == "__main__":
    unittest.main()
