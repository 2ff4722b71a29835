#!/usr/bin/python3
"""The rules of api/retry_test.c, for the client in Python."""

import unittest

import frame  # noqa: F401
from dfc._retry import Outcome, Policy, Question, Retry, outcome_of

POLICY = Policy(attempts=5, budget=10.0, base=0.1, cap=1.0)


def ask(retry, outcome=Outcome.REFUSED, now=0.0, chance=0.0, **options):
    return retry.next(Question(outcome, now, chance, **options))


class RetryTest(unittest.TestCase):
    def test_what_may_be_repeated(self):
        for outcome, harmless, again in (
                (Outcome.NEVER, True, False), (Outcome.NEVER, False, False),
                (Outcome.UNSENT, False, True), (Outcome.REFUSED, False, True),
                (Outcome.BROKEN, True, True), (Outcome.BROKEN, False, False)):
            pause = ask(Retry(POLICY, 0.0), outcome, twice_is_harmless=harmless)
            self.assertEqual(pause is not None, again, outcome)

    def test_pauses_grow_to_a_cap(self):
        for chance in (0.0, 0.3, 1.0):
            retry = Retry(Policy(attempts=100, budget=1000.0, base=0.1, cap=1.0), 0.0)
            for most in (0.1, 0.2, 0.4, 0.8, 1.0, 1.0):
                pause = ask(retry, chance=chance)
                self.assertTrue(most / 2 - 1e-9 <= pause <= most + 1e-9, (pause, most))

    def test_pauses_differ(self):
        self.assertAlmostEqual(ask(Retry(POLICY, 0.0), chance=0.0), 0.05)
        self.assertAlmostEqual(ask(Retry(POLICY, 0.0), chance=1.0), 0.1)

    def test_the_server_may_ask_for_time(self):
        self.assertAlmostEqual(ask(Retry(POLICY, 0.0), retry_after=3.0, chance=0.0), 3.0)
        self.assertAlmostEqual(ask(Retry(POLICY, 0.0), retry_after=3.0, chance=1.0), 3.75)

    def test_a_server_that_asks_for_little_time_gets_more(self):
        """Nodes ask for a second whatever is wrong: the pauses grow nevertheless."""
        retry = Retry(POLICY, 0.0)
        self.assertEqual([round(ask(retry, retry_after=0.11), 3) for _ in range(4)], [0.11, 0.11, 0.2, 0.4])

    def test_a_call_goes_on_for_half_a_minute(self):
        for chance in (0.0, 0.5, 1.0):
            for asked in (0.0, 1.0):
                retry, now = Retry(Policy(), 0.0), 0.0
                while (pause := ask(retry, now=now, chance=chance, retry_after=asked)) is not None:
                    now += pause
                self.assertTrue(30 <= now <= 60, (chance, asked, now))

    def test_attempts_are_bounded(self):
        retry = Retry(POLICY, 0.0)
        for _ in range(POLICY.attempts - 1):
            self.assertIsNotNone(ask(retry, Outcome.UNSENT))
        self.assertIsNone(ask(retry, Outcome.UNSENT))

    def test_time_is_bounded(self):
        self.assertIsNotNone(ask(Retry(POLICY, 0.0), now=9.0))
        self.assertIsNone(ask(Retry(POLICY, 0.0), now=9.96))
        self.assertIsNotNone(ask(Retry(POLICY, 5.0), now=9.96))
        self.assertIsNone(ask(Retry(POLICY, 0.0), retry_after=10.001))

    def test_a_round_of_endpoints_is_one_attempt(self):
        retry = Retry(POLICY, 0.0)
        for _ in range(100):
            self.assertEqual(ask(retry, Outcome.UNSENT, other_endpoint=True), 0.0)
        for _ in range(POLICY.attempts - 1):
            self.assertIsNotNone(ask(retry, Outcome.UNSENT))
        self.assertIsNone(ask(retry, Outcome.UNSENT))
        # An endpoint that refused is not passed over: the next would say the same.
        self.assertGreater(ask(Retry(POLICY, 0.0), other_endpoint=True), 0)

    def test_progress_begins_anew(self):
        retry = Retry(POLICY, 0.0)
        for _ in range(50):
            retry.progress(50.0)
            pause = ask(retry, Outcome.BROKEN, now=50.0, twice_is_harmless=True)
            self.assertTrue(0.05 <= pause <= 0.1)

    def test_what_replies_mean(self):
        for status, code, outcome in (
                (429, "rate_limited", Outcome.REFUSED), (503, "overloaded", Outcome.REFUSED),
                (503, "in_doubt", Outcome.BROKEN), (409, "stale_map", Outcome.REFUSED),
                (409, "bucket_exists", Outcome.NEVER), (502, "network_error", Outcome.BROKEN),
                (504, "timeout", Outcome.BROKEN), (408, "request_timeout", Outcome.BROKEN),
                (404, "object_not_found", Outcome.NEVER), (500, "internal", Outcome.NEVER)):
            self.assertEqual(outcome_of(status, code), outcome, code)


if __name__ == "__main__":
    unittest.main()
