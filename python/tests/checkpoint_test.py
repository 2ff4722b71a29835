#!/usr/bin/python3
"""What a load of a checkpoint reads, how a save is split into files, and the order of checkpoints."""

import itertools
import random
import unittest

import frame  # noqa: F401
from dfc._checkpoint import Want, flat, is_data, order, pieces, reads, split


def covered(want, got):
    return {at for piece in got for at in range(piece.begin, piece.end)} >= set(
        range(want.begin, want.end))


class SplitTest(unittest.TestCase):
    def test_each_item_is_in_one_file(self):
        chance = random.Random(1)
        for _ in range(200):
            sizes = [chance.choice((0, 1, 50, 1000)) for _ in range(chance.randrange(40))]
            threads, limit = chance.randrange(1, 6), chance.choice((10, 500, 10**6))
            files = split(sizes, threads, limit)
            self.assertEqual(sorted(i for f in files for i in f), list(range(len(sizes))))
            self.assertTrue(all(files), "a file without items")
            self.assertTrue(len(files) >= min(threads, len(sizes)))
            for one in files:
                self.assertTrue(len(one) == 1 or sum(sizes[i] for i in one) <= 2 * max(
                    limit, *sizes, sum(sizes) // len(files)), (sizes, files))

    def test_examples(self):
        self.assertEqual(split([], 4, 100), [])
        self.assertEqual(split([5], 4, 1), [[0]])
        self.assertEqual(split([10, 60, 10, 50], 2, 1000), [[1, 2], [0, 3]])
        self.assertEqual(len(split([10] * 100, 2, 100)), 10)


class FlatTest(unittest.TestCase):
    def boxes(self, shape):
        ways = [[(o, n) for o in range(size) for n in range(1, size - o + 1)] for size in shape]
        return itertools.product(*ways)

    def test_as_the_numbers_of_the_elements_say(self):
        for shape in ((5,), (3, 4), (1, 4), (4, 1), (2, 3, 4), (2, 1, 3), (1, 1, 5)):
            for box in self.boxes(shape):
                numbers = []
                for at in itertools.product(*(range(o, o + n) for o, n in box)):
                    number = 0
                    for size, i in zip(shape, at):
                        number = number * size + i
                    numbers.append(number)
                together = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
                found = flat(shape, [o for o, _ in box], [n for _, n in box])
                self.assertEqual(found, (numbers[0], len(numbers)) if together else None,
                                 (shape, box))

    def test_no_dimensions_and_no_elements(self):
        self.assertEqual(flat((), (), ()), (0, 1))
        self.assertEqual(flat((4, 3), (0, 0), (0, 3)), (0, 0))


class ReadsTest(unittest.TestCase):
    def test_pieces_are_whole_blocks(self):
        want = Want("f", 100, 1050, 310, 720, 100)
        self.assertEqual([(p.at, p.begin, p.end) for p in pieces(want, None, 200)],
                         [(400, 300, 500), (600, 500, 700), (800, 700, 800)])
        last = Want("f", 100, 1050, 1040, 1050, 100)
        self.assertEqual([(p.begin, p.end) for p in pieces(last, None, 200)], [(1000, 1050)])
        self.assertEqual([(p.begin, p.end) for p in pieces(last, None, 1)], [(1000, 1050)])
        empty = Want("f", 7, 0, 0, 0, 100)
        self.assertEqual([(p.at, p.begin, p.end) for p in pieces(empty, None, 200)], [(7, 0, 0)])

    def test_pieces_cover_what_is_wanted(self):
        chance = random.Random(2)
        for _ in range(500):
            length = chance.randrange(1, 400)
            begin = chance.randrange(length)
            want = Want("f", chance.randrange(90), length, begin, chance.randrange(begin, length) + 1,
                        chance.choice((1, 7, 64)))
            found = pieces(want, None, chance.randrange(1, 200))
            self.assertTrue(covered(want, found))
            for piece in found:
                self.assertEqual(piece.begin % want.block, 0)
                self.assertTrue(piece.end % want.block == 0 or piece.end == length)
                self.assertEqual(piece.at, want.offset + piece.begin)

    def test_near_pieces_are_one_read(self):
        def piece(file, at, size):
            return pieces(Want(file, at, size, 0, size), None)[0]
        rows = [piece("a", 0, 10), piece("a", 10, 10), piece("a", 25, 5), piece("a", 40, 60),
                piece("a", 30, 2), piece("b", 32, 1), piece("b", 33, 90)]
        self.assertEqual([len(g) for g in reads(rows, 60, 5)], [3, 1, 1, 1, 1])
        self.assertEqual([len(g) for g in reads(rows, 1000, 10)], [4, 1, 2])
        self.assertEqual(list(reads([], 60, 5)), [])


class OrderTest(unittest.TestCase):
    def test_digits_are_numbers(self):
        names = ["a", "run/2", "run/10", "step-9", "step-10", "step-10-b", "step-100", "x"]
        mixed = names[:]
        random.Random(3).shuffle(mixed)
        self.assertEqual(sorted(mixed, key=order), names)

    def test_names_of_files(self):
        for name in ("__0_0.distcp", "__12_3.distcp", "__0_0123abcd_7.distcp"):
            self.assertTrue(is_data(name), name)
        for name in (".metadata", "__0_0.distcp.txt", "a__0_0.distcp", "__0.distcp", "__0_0.distcp/x"):
            self.assertFalse(is_data(name), name)


if __name__ == "__main__":
    unittest.main()
