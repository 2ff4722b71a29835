#!/usr/bin/python3
"""Objects as samples: each exactly once over all consumers, and resumed at every one."""

import collections
import json
import pickle
import threading
import unittest

import frame  # noqa: F401
import dfc
from dfc.objects import Names, ObjectReader, Permutation, Share, merge

NAMES = [f"d/{i:02}\u00e9" for i in range(23)]


class Memory:
    """A bucket whose objects are their names; those of `missing` are not there."""

    def __init__(self, missing=()):
        self.missing = missing

    def get(self, name):
        if name in self.missing:
            raise dfc.NotFound(name)
        return name.encode()


def reader(**options):
    return ObjectReader(Memory(), NAMES, **options)


def names_of(items):
    return [name for name, _ in items]


class ObjectsTest(unittest.TestCase):
    def test_names(self):
        names = Names(iter(NAMES))
        self.assertEqual((list(names), len(names), names[-1], names[3:5]),
                         (NAMES, 23, NAMES[-1], NAMES[3:5]))
        self.assertEqual(list(pickle.loads(pickle.dumps(names))), NAMES)
        for at in (23, -24):
            with self.assertRaises(IndexError):
                names.__getitem__(at)
        self.assertEqual((list(Names([])), len(Names(["", ""]))), ([], 2))
        self.assertNotEqual(Names(["ab", "c"]).digest(), Names(["a", "bc"]).digest())

    def test_permutations(self):
        for count in (1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097):
            for key in ("0/0", "0/1"):
                found = [Permutation(count, key)[i] for i in range(count)]
                self.assertEqual(sorted(found), list(range(count)))
        orders = collections.Counter(
            tuple(Permutation(4, str(key))[i] for i in range(4)) for key in range(2400))
        self.assertEqual(len(orders), 24)
        self.assertGreater(min(orders.values()), 40)  # of 100
        large = Permutation(1 << 40, "x")
        self.assertEqual(len({large[i] for i in range(1000)}), 1000)
        with self.assertRaises(IndexError):
            Permutation(3, "x").__getitem__(3)

    def test_each_item_once_over_ranks_and_workers(self):
        for count in (0, 1, 5, 23):
            for consumers in range(1, 9):
                shares = [Share(count, consumer=i, consumers=consumers) for i in range(consumers)]
                lengths = [len(share) for share in shares]
                found = [list(share) for share in shares]
                self.assertEqual(sorted(sum(found, [])), list(range(count)))
                self.assertEqual((lengths, [len(share) for share in shares]),
                                 ([len(one) for one in found], [0] * consumers))

    def test_even_shares(self):
        for count in (0, 1, 5, 23):
            for consumers in (1, 2, 4, 7):
                found = [list(Share(count, consumer=i, consumers=consumers, even=True))
                         for i in range(consumers)]
                self.assertEqual({len(one) for one in found}, {-(-count // consumers)})
                self.assertEqual(set(sum(found, [])), set(range(count)))

    def test_orders(self):
        self.assertEqual(names_of(reader(shuffle=False)), NAMES)
        first, again, other = (names_of(reader(seed=s)) for s in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        self.assertEqual(sorted(first), NAMES)
        one = reader(seed=1)
        one.set_epoch(1)
        self.assertNotEqual(names_of(one), first)
        self.assertEqual((names_of(one), len(one)), ([], 0))
        one.set_epoch(0)
        self.assertEqual(names_of(one), first)

    def test_resumed_at_every_item(self):
        for ahead in (1, 3, 100):
            options = {"consumer": 1, "consumers": 2, "seed": 3, "ahead": ahead}
            whole = names_of(reader(**options))
            for at in range(len(whole) + 1):
                begun = reader(**options)
                iterator = iter(begun)
                before = [next(iterator)[0] for _ in range(at)]
                state = json.loads(json.dumps(begun.state()))
                self.assertEqual(len(begun), len(whole) - at)
                iterator.close()
                self.assertEqual(begun.state(), state)
                resumed = reader(**options)
                resumed.restore(state)
                self.assertEqual(before + names_of(resumed), whole, (ahead, at))
                self.assertEqual(before + names_of(begun), whole, (ahead, at))

    def test_another_number_of_consumers(self):
        """Twice in one epoch: no item is lost, and none comes again."""
        for even in (False, True):
            for at in range(8):
                given, state = [], None
                for consumers, take in ((3, at), (2, 3), (4, 100)):
                    states = []
                    for consumer in range(consumers):
                        share = Share(23, consumer=consumer, consumers=consumers, even=even)
                        if state is not None:
                            share.restore(state)
                        given += [i for _, i in zip(range(take), share)]
                        states.append(share.state())
                    state = json.loads(json.dumps(merge(states)))
                if even:
                    self.assertEqual(set(given), set(range(23)), at)
                else:
                    self.assertEqual(sorted(given), list(range(23)), at)

    def test_states_that_do_not_fit(self):
        state = Share(23, consumers=2).state()
        for options in ({"consumer": 1, "consumers": 2}, {}, {"seed": 9, "consumers": 2},
                        {"consumers": 2, "shuffle": False}, {"consumers": 2, "names": "x"}):
            with self.assertRaises(dfc.Invalid):
                Share(23, **options).restore(state)
        with self.assertRaises(dfc.Invalid):
            Share(22, consumers=2).restore(state)
        for states in ([], [state], [state, state]):
            with self.assertRaises(dfc.Invalid):
                merge(states)

    def test_an_object_that_is_not_there(self):
        """It is told, and after that the reader stands before it."""
        one = ObjectReader(Memory([NAMES[2]]), NAMES, shuffle=False, ahead=5)
        found = []
        with self.assertRaises(dfc.NotFound):
            for name, _ in one:
                found.append(name)
        self.assertEqual((found, one.state()["given"]), (NAMES[:2], 2))

    def test_a_transform(self):
        self.assertEqual(list(reader(shuffle=False, transform=lambda name, data: len(data))),
                         [len(name.encode()) for name in NAMES])

    def test_an_iteration_that_is_dropped_leaves_no_thread(self):
        iterator = iter(reader(ahead=2))
        next(iterator)
        iterator.close()
        for thread in threading.enumerate():
            if thread is not threading.main_thread():
                thread.join(30)
        self.assertEqual(threading.active_count(), 1)

    def test_settings_that_cannot_be(self):
        for options in ({"consumer": 2, "consumers": 2}, {"consumer": -1}, {"ahead": 0},
                        {"threads": 0}):
            with self.assertRaises(dfc.Invalid):
                reader(**options)


if __name__ == "__main__":
    unittest.main()
