#!/usr/bin/env python3
"""The judge of histories is judged: by hand, by every order of small histories, by histories of a
real register (all must pass), and by the same with one answer changed (of which most are wrong).

DFC_HISTORIES (80) says how many are drawn; DFC_SEED repeats them."""

import itertools
import os
import random
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import linear  # noqa: E402
from linear import (  # noqa: E402
    ABSENT, ANY, KEEP, MATCH, NEVER, delete, missing, put, read, refused)

HISTORIES = int(os.environ.get("DFC_HISTORIES", 80))
SEED = int(os.environ.get("DFC_SEED", 4))


class ByHand(unittest.TestCase):
    def good(self, *operations, initial=None):
        verdict = linear.check(operations, initial)
        self.assertIs(verdict.ok, True, verdict.story)

    def bad(self, *operations, initial=None, window=None):
        verdict = linear.check(operations, initial)
        self.assertIs(verdict.ok, False)
        if window is not None:
            self.assertEqual([o.who for o in verdict.window], window, verdict.story)
        return verdict.story

    def test_nothing_happened(self):
        self.good()
        self.good(put(1, 0))

    def test_one_after_the_other(self):
        self.good(missing(0, 1), put(1, 2, 3), read(1, 4, 5), delete(6, 7), read(None, 8, 9),
                  missing(10, 11), put(2, 12, 13), read(2, 14, 15))

    def test_who_overlap_may_go_either_way(self):
        self.good(put(1, 0, 10), read(None, 1, 2), read(1, 3, 4))
        self.good(put(1, 0, 10), put(2, 0, 10), read(2, 11, 12))
        self.good(put(1, 0, 10), put(2, 0, 10), read(1, 11, 12))
        self.good(put(1, 0, 10), put(2, 0, 10), read(1, 3, 4), read(2, 5, 6))

    def test_a_stale_read(self):
        self.bad(put(1, 0, 1, who="a"), put(2, 2, 3, who="b"), read(1, 4, 5, who="c"),
                 window=["b", "c"])

    def test_an_older_value_after_a_newer_one(self):
        self.bad(put(1, 0, 1), put(2, 2, 20), read(2, 3, 4), read(1, 5, 6))

    def test_two_values_by_turns(self):
        self.bad(put(1, 0, 10), put(2, 0, 10), read(1, 1, 2), read(2, 3, 4), read(1, 5, 6))
        self.bad(put(1, 0), put(2, 0), read(1, 1, 2), read(2, 3, 4), read(1, 5, 6))

    def test_a_lost_write(self):
        self.bad(put(1, 0, 1), missing(2, 3))
        self.bad(put(1, 0, 1), delete(2, 3), put(2, 4, 5), missing(6, 7))

    def test_a_lost_update(self):
        self.bad(put(1, 0, 1), put(2, 2, 10, MATCH(1)), put(3, 2, 10, MATCH(1)))
        self.good(put(1, 0, 1), put(2, 2, 10, MATCH(1)), refused(MATCH(1), 2, 10))
        self.good(put(1, 0, 1), put(2, 2, 10, MATCH(1)), put(3, 2, 10, MATCH(2)))

    def test_two_that_were_the_first(self):
        self.bad(put(1, 0, 10, ABSENT), put(2, 0, 10, ABSENT))
        self.good(put(1, 0, 10, ABSENT), put(2, 0, 10, ABSENT), delete(0, 10))
        self.good(put(1, 0, 10, ABSENT), refused(ABSENT, 0, 10))
        self.bad(put(1, 4, 10, ABSENT), refused(ABSENT, 0, 3))

    def test_what_was_deleted_comes_back(self):
        self.bad(put(1, 0, 1, who="a"), delete(2, 3, who="b"), read(1, 4, 5, who="c"),
                 window=["b", "c"])
        self.bad(put(1, 0, 1), delete(2, 3), delete(4, 5))
        self.bad(put(1, 0, 1), delete(2, 3), missing(4, 5), read(1, 6, 7))

    def test_a_value_that_nobody_put(self):
        self.bad(put(1, 0, 1), read(9, 2, 3))
        self.bad(put(1, 5, 6), read(1, 0, 4))

    def test_a_refused_write_is_read(self):
        """What was answered as not done is not in the history at all."""
        self.bad(put(1, 0, 1), read(2, 2, 3))

    def test_unknown_ones_may_be_done_or_not_and_late(self):
        self.good(put(1, 0), missing(1, 2))
        self.good(put(1, 0), read(1, 1, 2))
        self.good(put(1, 0), missing(1, 2), read(1, 3, 4))
        self.good(put(1, 0, 1), delete(2), read(1, 3, 4), missing(5, 6))
        self.bad(put(1, 0, 1), delete(2), missing(3, 4), read(1, 5, 6))
        self.bad(read(1, 0, 1), put(1, 2))

    def test_unknown_ones_are_done_once(self):
        self.bad(put(1, 0), read(1, 1, 2), put(2, 3, 4), read(1, 5, 6))
        self.bad(put(1, 0, 1), delete(2), missing(3, 4), put(2, 5, 6), missing(7, 8))
        self.good(put(1, 0, 1), delete(2), delete(2), missing(3, 4), put(2, 5, 6), missing(7, 8))

    def test_unknown_ones_upon_unknown_ones(self):
        """2 is there only if the delete was done first, and that only if 1 was."""
        self.good(put(1, 0), delete(1), put(2, 2, need=ABSENT), read(1, 3, 4), read(2, 5, 6))
        self.bad(put(1, 0, 1), put(2, 2, need=ABSENT), read(2, 5, 6))
        self.good(put(1, 0, 1), put(2, 2, need=MATCH(1)), put(3, 3, need=MATCH(2)), read(3, 5, 6))
        self.bad(put(1, 0, 1), put(2, 2, need=MATCH(1)), put(3, 3, need=MATCH(2)), read(3, 5, 6),
                 read(2, 7, 8))

    def test_unknown_ones_that_only_conditions_notice(self):
        self.good(put(1, 0), refused(ABSENT, 1, 2))
        self.bad(refused(ABSENT, 1, 2), put(1, 3))
        self.good(put(1, 0, 1), put(2, 2), refused(MATCH(1), 3, 4))
        self.good(put(1, 0), delete(1, 2))
        self.bad(put(1, 0), delete(1, 2), delete(3, 4))

    def test_deletes_that_match(self):
        self.good(put(1, 0, 1), delete(2, 3, MATCH(1)), missing(4, 5))
        self.bad(put(1, 0, 1), put(2, 2, 3), delete(4, 5, MATCH(1)))
        self.good(put(1, 0, 1), put(2, 2, 3), refused(MATCH(1), 4, 5, present=True))
        self.bad(put(1, 0, 1), delete(2, 3), refused(MATCH(1), 4, 5, present=True))

    def test_what_was_there_before(self):
        self.good(read(7, 0, 1), initial=7)
        self.bad(missing(0, 1), initial=7)

    def test_the_window_leaves_out_what_does_not_matter(self):
        noise = [x for i in range(100) for x in (put(i, 10 * i, 10 * i + 1, who="noise"),
                                                 read(i, 10 * i + 2, 10 * i + 3, who="noise"))]
        story = self.bad(*noise, put(1000, 2000, 2001, who="a"), put(1001, 2002, 2003, who="b"),
                         read(1000, 2004, 2005, who="c"), *[read(1000, 2010 + i, 2010.5 + i)
                                                            for i in range(50)], window=["b", "c"])
        self.assertIn("(anything was there before)", story)

    def test_too_much_is_not_known(self):
        self.assertIs(linear.check(mixed(random.Random(1), 400, 40), steps=10).ok, None)


# --- every order ---------------------------------------------------------------------------------

def explained_by_trying(operations):
    """All orders of all choices of those that are not known: only for a handful."""
    sure = [o for o in operations if o.end != NEVER]
    loose = [o for o in operations if o.end == NEVER and o.effect is not KEEP]
    return any(in_some_order(sure + list(chosen)) for n in range(len(loose) + 1)
               for chosen in itertools.combinations(loose, n))


def in_some_order(operations):
    def go_on(left, state):
        if not left:
            return True
        horizon = min(o.end for o in left)
        return any(go_on([x for x in left if x is not o], state if o.effect is KEEP else o.effect)
                   for o in left if o.begin <= horizon and o.need.holds(state))

    return go_on(operations, None)


def scribble(rng, count):
    """Operations that may have any answer."""
    made, operations = [1, 2, 3], []
    for i in range(count):
        begin = rng.randrange(12)
        end = NEVER if rng.random() < 0.35 else begin + rng.randrange(1, 8)
        other = rng.choice(made)
        condition = rng.choice((ABSENT, MATCH(other)))
        kind = rng.randrange(7)
        if kind <= 1:
            made.append(10 + i)
            operations.append(put(10 + i, begin, end, rng.choice((ANY, ANY, condition))))
        elif kind == 2:
            operations.append(delete(begin, end, rng.choice((linear.PRESENT, MATCH(other)))))
        elif end != NEVER:
            operations.append(rng.choice((
                read(rng.choice(made[-2:]), begin, end), missing(begin, end),
                refused(condition, begin, end), refused(MATCH(other), begin, end, present=True))))
    rng.shuffle(operations)
    return operations


# --- a real register -----------------------------------------------------------------------------

class Register:
    """Does operations one after the other, and says what is answered."""

    def __init__(self):
        self.value = None
        self.past = [None]

    def act(self, rng, number, begin, end):
        kind = rng.random()
        old = rng.choice(self.past[-3:])
        if kind < 0.4:
            return read(self.value, begin, end)
        if kind < 0.6:
            return self.write(put(number, begin, end), MATCH(old))
        if kind < 0.75:
            return self.write(put(number, begin, end, MATCH(old)), MATCH(old))
        if kind < 0.85:
            return self.write(put(number, begin, end, ABSENT), ABSENT)
        if self.value is None and end != NEVER:
            return missing(begin, end)
        return self.write(delete(begin, end), MATCH(old))

    def write(self, operation, condition):
        if operation.need.holds(self.value):
            self.value = operation.effect
            self.past.append(self.value)
        elif operation.end != NEVER:
            return refused(condition, operation.begin, operation.end)
        return operation


def mixed(rng, count, clients, unknown=0.1):
    """A history of a register whose clients overlap; some never hear what became of theirs."""
    register, events = Register(), []
    free = [rng.random() for _ in range(clients)]
    for number in range(1, count + 1):
        client = rng.randrange(clients)
        begin = free[client] + rng.random() * 0.1
        done = begin + rng.random()
        end = done + rng.random()
        free[client] = end
        lost = rng.random() < unknown
        if lost:
            done += rng.choice(
                (0, 0, 3, 10))  # late, behind operations that began after it ended for its client
        events.append((done, number, begin, NEVER if lost else end))
    operations = [
        register.act(rng, number, begin, end) for done, number, begin, end in sorted(events)
    ]
    return [o for o in operations if o.end != NEVER or o.effect is not KEEP]


def with_one_answer_changed(rng, operations):
    """None where that is no change."""
    i = rng.choice([i for i, o in enumerate(operations) if o.end != NEVER])
    o = operations[i]
    values = [x.effect for x in operations if x.effect is not KEEP]
    if o.effect is KEEP:
        other = read(rng.choice([*values, None]), o.begin, o.end)
    else:
        other = missing(o.begin, o.end)  # a write that was done and told as: nothing was there
    return None if other.need == o.need else operations[:i] + [other] + operations[i + 1:]


class Drawn(unittest.TestCase):
    def test_small_ones_as_every_order_says(self):
        rng, wrong = random.Random(f"small {SEED}"), 0
        for i in range(HISTORIES * 5):
            operations = scribble(rng, rng.randrange(1, 8))
            expected = explained_by_trying(operations)
            wrong += not expected
            verdict = linear.check(operations)
            self.assertIs(verdict.ok, expected, f"{i}: {operations}")
            if not expected:
                self.assertFalse(explained_by_trying(verdict.window) and
                                 "(nothing was there" in verdict.story, f"{i}: {verdict.story}")
        self.assertGreater(wrong, HISTORIES / 2)
        self.assertLess(wrong, HISTORIES * 4.5)

    def test_those_of_a_register_pass_and_changed_ones_mostly_do_not(self):
        rng, changed, found = random.Random(f"register {SEED}"), 0, 0
        for i in range(HISTORIES):
            operations = mixed(rng, rng.randrange(2, 120), rng.randrange(1, 8))
            verdict = linear.check(operations)
            self.assertIs(verdict.ok, True, f"{i}: {verdict.story}")
            other = with_one_answer_changed(rng, operations) if operations else None
            if other is not None:
                changed += 1
                found += linear.check(other).ok is False
        print(f"{found} of {changed} histories with one answer changed are found wrong",
              file=sys.stderr)
        self.assertGreater(changed, HISTORIES / 2)
        self.assertGreater(found, changed * 0.6)

    def test_long_ones_take_little(self):
        verdict = linear.check(mixed(random.Random(f"long {SEED}"), 3000, 12), steps=200_000)
        self.assertIs(verdict.ok, True, verdict.story)


if __name__ == "__main__":
    unittest.main()
