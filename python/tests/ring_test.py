#!/usr/bin/python3
"""dfc.ring: what is pushed is stored once and read as it was; shares, generations that are gone."""

import array
import os
import pickle
import random
import struct
import threading
import unittest

import frame  # noqa: F401
import dfc
from dfc import _arrays, _frame
from dfc.ring import Generation, Ring, RingReader, RingShare, _runs
from mock_rings import RingCluster

try:
    import numpy
except ImportError:
    numpy = None


class FakeArray(bytearray):
    """What is needed of an array of numpy."""

    class Type:
        str = "<f4"

    dtype, shape = Type(), (1, 2)


def number(sample):
    return int(bytes(sample.kinds["label"].data))


def numbers(samples):
    return [number(s) for s in samples]


def label(i):
    return {"data": array.array("f", [i, i + 0.5]), "label": b"%d" % i}


class KindsTest(unittest.TestCase):
    def test_what_is_kept(self):
        for value, dtype, shape, data in (
                (b"x", "bytes", (), b"x"), (bytearray(), "bytes", (), b""),
                (memoryview(b"ab"), "bytes", (), b"ab"),
                (array.array("h", [1, 2]), "<i2", (2,), b"\1\0\2\0"),
                (array.array("B", [7]), "|u1", (1,), b"\7"), (array.array("d"), "<f8", (0,), b""),
                (FakeArray(b"12345678"), "<f4", (1, 2), b"12345678")):
            if isinstance(value, FakeArray):
                kind = _arrays._of_numpy("k", value)
            else:
                kind = _arrays.to_kind("k", value)
            self.assertEqual((kind.dtype, kind.shape, bytes(kind.data)), (dtype, shape, data))
            self.assertIs(_arrays.to_kind("k", kind), kind)

    def test_what_is_refused(self):
        for sample, why in (({}, "1 to 64 kinds"), ({"k": "text"}, "'k' is str"),
                            ({"k": [1]}, "'k' is list"), ({"": b""}, "no name"),
                            ({"n" * 256: b""}, "no name"), ({3: b""}, "no name"),
                            ({str(i): b"" for i in range(65)}, "not 65"),
                            ({"k": memoryview(b"abcd")[::2]}, "not contiguous")):
            with self.assertRaisesRegex(dfc.Invalid, why):
                _arrays.to_kinds(sample)

    def test_lists(self):
        for value, expected in ((b"ab", b"ab"), (array.array("h", [1, -2]), [1, -2])):
            self.assertEqual(_arrays.to_kind("k", value).tolist(), expected)
        kind = dfc.ring.Kind("|u1", (2, 1, 2), memoryview(b"\1\2\3\4"))
        self.assertEqual(kind.tolist(), [[[1, 2]], [[3, 4]]])
        self.assertEqual(dfc.ring.Kind("<f2", (), memoryview(b"\0\x3c")).tolist(), 1.0)
        self.assertEqual(dfc.ring.Kind("|u1", (2, 0), memoryview(b"")).tolist(), [[], []])
        with self.assertRaisesRegex(dfc.Invalid, "numpy"):
            dfc.ring.Kind("<c8", (), memoryview(b"")).tolist()

    @unittest.skipIf(numpy is None, "numpy is not there")
    def test_arrays_of_numpy(self):
        base = numpy.arange(12).reshape(3, 4)
        for a in (base, base.T, base[::2], base.astype(">f4"), base.astype("c8"), base > 3,
                  numpy.float32(3), numpy.array(7.0), numpy.zeros((0, 3)), base.astype("f2"),
                  numpy.array(["a", "bc"]), base.astype("M8[s]")):
            kind = _arrays.to_kind("k", a)
            back = numpy.frombuffer(bytes(kind.data), dtype=kind.dtype).reshape(kind.shape)
            self.assertEqual((back.dtype, back.shape), (a.dtype, a.shape))
            self.assertTrue((back == a).all())
        with self.assertRaisesRegex(dfc.Invalid, "dtype object"):
            _arrays.to_kind("k", numpy.array([{}]))


class FramesTest(unittest.TestCase):
    """Whatever comes in place of frames: samples of it, or Corrupt."""

    def setUp(self):
        self.dice = random.Random(1)
        self.frame = b"".join(bytes(p) for p in _frame.make(_arrays.to_kinds(label(7))))

    def seal(self, changed):
        """Sums that are right, of whatever is in the head."""
        head_len, = struct.unpack_from("<I", changed, 4)
        struct.pack_into("<QQ", changed, 48, _frame._sum(bytes(changed[head_len:])), 0)
        struct.pack_into("<Q", changed, 56, _frame._sum(bytes(changed[:head_len])))

    def test_a_changed_byte(self):
        for at in range(len(self.frame)):
            changed = bytearray(self.frame)
            changed[at] ^= 1 << self.dice.randrange(8)
            with self.assertRaises(dfc.Corrupt):
                list(_frame.parse(changed))

    def test_a_cut(self):
        for end in range(1, len(self.frame)):
            with self.assertRaises(dfc.Corrupt):
                list(_frame.parse(self.frame[:end]))

    def test_a_head_that_was_made_wrong(self):
        taken = refused = 0
        head_len, = struct.unpack_from("<I", self.frame, 4)
        for _ in range(5000):
            changed = bytearray(self.frame)
            for _ in range(self.dice.randrange(1, 4)):
                value = self.dice.choice([0, 1, 8, 255, self.dice.randrange(256)])
                changed[self.dice.choice([24, 25, *range(64, head_len)])] = value
            self.seal(changed)
            try:
                sample, = _frame.parse(changed)
            except dfc.Corrupt:
                refused += 1
                continue
            taken += 1
            for kind in sample.kinds.values():
                self.listed(kind)
            self.assertLessEqual(sum(len(k.data) for k in sample.kinds.values()), 2 * len(changed))
        self.assertGreater(min(taken, refused), 100)

    @staticmethod
    def listed(kind):
        """As a list, or None where that needs numpy."""
        try:
            return kind.tolist()
        except dfc.Invalid as e:
            if "needs numpy" not in str(e):
                raise
            return None

    @staticmethod
    def framed(dtype, shape, data):
        """A frame with one kind, which nobody has looked at."""
        kind = dfc.ring.Kind(dtype, shape, memoryview(data))
        return b"".join(bytes(p) for p in _frame.make({"k": kind}))

    def test_a_kind_that_contradicts_itself(self):
        for dtype, shape, data in (
                ("<f4", (2,), bytes(6)), ("<f4", (), bytes(6)), ("<f4", (), b""),
                ("|u1", (), bytes(2)), ("<i8", (2, 3), bytes(40)), ("<i8", (2, 3), bytes(56)),
                ("<f4", (0, 3), bytes(12)), ("<U2", (2,), bytes(4)), ("<M8[s]", (1,), bytes(4)),
                ("<f4", (1 << 40, 0), b""), ("<f4", (0, 1 << 40), b""), ("|u1", (1 << 63, 2), b""),
                ("float32", (1 << 40, 0), b"")):
            with self.subTest(dtype=dtype, shape=shape, bytes=len(data)):
                with self.assertRaisesRegex(dfc.Corrupt, "kind 'k'"):
                    list(_frame.parse(self.framed(dtype, shape, data)))
                with self.assertRaises(dfc.Invalid):
                    dfc.ring.Kind(dtype, shape, memoryview(data)).tolist()
                with self.assertRaisesRegex(dfc.Invalid, "kind 'k'"):
                    _arrays.to_kinds({"k": dfc.ring.Kind(dtype, shape, memoryview(data))})

    def test_a_kind_that_does_not(self):
        for dtype, shape, data, expected in (
                ("<f4", (), bytes(4), 0.0), ("<f4", (0, 3), b"", []), ("|b1", (1, 1), b"\1", [[True]]),
                ("<u2", (3, 0), b"", [[], [], []]), ("<U2", (2,), bytes(16), None),
                ("|S3", (1,), bytes(3), None), ("<M8[s]", (1,), bytes(8), None),
                ("<c16", (), bytes(16), None), (">f4", (1,), bytes(4), None),
                ("xf4", (1,), bytes(4), None), ("float32", (2,), bytes(8), None),
                ("bytes", (), bytes(3), bytes(3)), ("bytes", (), b"", b"")):
            with self.subTest(dtype=dtype, shape=shape):
                sample, = _frame.parse(self.framed(dtype, shape, data))
                self.assertEqual(self.listed(sample.kinds["k"]), expected)


class PlacesTest(unittest.TestCase):
    def test_indexes(self):
        g = Generation({"generation": 3, "cuts": [{"lane": "a", "from": 5, "to": 7},
                                                  {"lane": "b", "from": 0, "to": 3}]})
        self.assertEqual([g.place(i) for i in range(len(g))],
                         [("a", 5), ("a", 6), ("b", 0), ("b", 1), ("b", 2)])
        for index in (-1, 5):
            self.assertRaises(IndexError, g.place, index)

    def test_runs(self):
        self.assertEqual(_runs([]), [])
        self.assertEqual(_runs([("b", 1), ("a", 3), ("b", 2), ("a", 1), ("b", 1), ("a", 2)]),
                         [("a", 1, 3), ("b", 1, 2)])


class Rings(unittest.TestCase):
    CAP = 10

    def setUp(self):
        self.mock = RingCluster()
        self.mock.__enter__()
        self.addCleanup(self.mock.__exit__, None, None, None)
        self.client = dfc.Client(self.mock.endpoint, profile="")
        self.addCleanup(self.client.close)
        self.made = self.mock.ring("r", self.CAP)
        self.ring = Ring(self.client, "r")

    def fill(self, begin=0, count=None):
        count = self.CAP if count is None else count
        list(self.ring.push_all(label(i) for i in range(begin, begin + count)))

    def stored(self):
        return sum(map(len, self.made.lanes.values()))


class RingTest(Rings):

    def test_an_empty_ring(self):
        head = self.ring.head()
        self.assertEqual((head.number, head.newest(), head.samples_total), (0, None, 0))
        with self.assertRaisesRegex(dfc.Timeout, "no generation after 0 within 0.1 s"):
            self.ring.wait(timeout=0.1)
        with self.assertRaises(dfc.NotFound):
            self.ring.swap()

    def test_a_group_acknowledges(self):
        self.assertTrue(self.ring.ack("trainers", 0))
        self.fill()
        self.assertFalse(self.ring.ack("trainers", self.ring.wait().number, lease="5m"))
        self.assertEqual(self.made.groups, {"trainers": ("1", "5m")})
        self.ring.leave("trainers")
        self.assertEqual(self.made.groups, {})

    def test_what_is_pushed_is_read(self):
        stored = self.ring.push(label(0))
        self.assertEqual((stored.first, stored.count), (0, 1))
        self.fill(1, self.CAP - 1)
        g = self.ring.wait()
        samples = self.ring.read(g, range(len(g)))
        self.assertEqual(sorted(numbers(samples)), list(range(self.CAP)))
        for sample in samples:
            data = sample.kinds["data"]
            self.assertEqual((data.dtype, data.shape), ("<f4", (2,)))
            self.assertEqual(data.tolist(), [number(sample), number(sample) + 0.5])
            self.assertFalse(data.data.readonly)

    def test_many_in_a_request(self):
        stored = list(self.ring.push_all(label(i) for i in range(25)))
        self.assertEqual([s.count for s in stored], [25])
        large = [{"data": bytes(5 << 20)} for _ in range(3)]
        self.assertEqual([s.count for s in self.ring.push_all(large)], [1, 1, 1])
        self.assertEqual(list(self.ring.push_all([])), [])

    def test_a_push_whose_reply_is_lost_is_stored_once(self):
        for sample in (label(0), {"data": bytes(100_000)}):
            before = self.stored()
            self.mock.plan({"at": "target", "method": "POST", "do": "act"},
                           {"at": "target", "method": "POST", "do": "status", "status": 503,
                            "retry_after": 1},
                           {"at": "target", "method": "POST", "do": "act"})
            self.ring.push(sample)
            self.assertEqual(self.stored(), before + 1)

    def test_a_full_ring(self):
        """Refused: as long as Retry-After says, then with the next number."""
        self.mock.plan({"at": "target", "method": "POST", "do": "status", "status": 429,
                        "code": "ring_full", "retry_after": 1})
        self.ring.push(label(0))
        first, second = (r["path"].split("&dfcb")[0] for r in self.mock.requests(at="target", method="POST"))
        self.assertNotEqual(first, second)
        self.mock.plan({"at": "target", "method": "POST", "do": "status", "status": 429,
                        "code": "ring_full", "times": 100})
        with self.assertRaises(dfc.Error) as caught:
            self.ring.push(label(1), full_timeout=0.1)
        self.assertEqual((caught.exception.code, self.stored()), ("ring_full", 1))

    def test_a_full_disk(self):
        """Nothing is stored: another number leads to another target, perhaps."""
        full = {"at": "target", "method": "POST", "do": "status", "status": 507, "code": "no_space"}
        self.mock.plan(full)
        self.ring.push(label(0))
        paths = {r["path"].split("&dfcb")[0]
                 for r in self.mock.requests(at="target", method="POST")}
        self.assertEqual(len(paths), 2)
        self.mock.plan({**full, "times": 100})
        for name, sequence in ((None, None), ("m", 5)):
            with self.assertRaises(dfc.Error) as caught:
                self.ring.push(label(1), producer=name, sequence=sequence, full_timeout=0.1)
            self.assertEqual((caught.exception.code, self.stored()), ("no_space", 1))
            self.assertEqual(caught.exception.pushed_as, name and (name, sequence))

    def test_in_doubt_the_number_stays(self):
        """Also while the ring or a disk is full: the first try may have been stored.  The
        second time it goes over a kept connection."""
        for status, code in ((429, "ring_full"), (507, "no_space")):
            stored, seen = self.stored(), len(self.mock.requests(at="target", method="POST"))
            self.mock.plan({"at": "target", "method": "POST", "do": "act"},
                           {"at": "target", "method": "POST", "do": "status", "status": status,
                            "code": code, "retry_after": 1, "times": 2})
            self.ring.push(label(0))
            paths = {r["path"].split("&dfcb")[0]
                     for r in self.mock.requests(at="target", method="POST")[seen:]}
            self.assertEqual((len(paths), self.stored()), (1, stored + 1))

    def test_numbers_of_the_maker(self):
        self.assertRaises(dfc.Invalid, self.ring.push, label(0), producer="m")
        for _ in range(3):
            self.ring.push(label(0), producer="m", sequence=5)
        self.assertEqual(self.stored(), 1)

    def test_threads_and_children_have_names_of_their_own(self):
        names = set()

        def push():
            names.add(self.ring._maker.number()[0])

        threads = [threading.Thread(target=push) for _ in range(3)]
        for thread in threads:
            thread.start()
            thread.join()
        push()
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, self.ring._maker.number()[0].encode())
            os._exit(0)
        os.close(write)
        os.wait()
        names.add(os.read(read, 100).decode())
        os.close(read)
        self.assertEqual(len(names), 5)

    def test_pickles(self):
        self.fill()
        ring, reader = pickle.loads(pickle.dumps((self.ring, RingReader(self.ring))))
        self.assertEqual(len(ring.head().generations), 1)
        self.assertEqual(len(reader), self.CAP)
        ring._client.close()

    # --- reads ---

    def test_a_reply_with_fewer_samples_and_one_that_breaks_off(self):
        self.fill()
        self.made.most = 2
        self.mock.plan({"at": "target", "method": "GET", "path": "samples", "do": "cut", "bytes": 100})
        g = self.ring.head().newest()
        self.assertEqual(sorted(numbers(self.ring.read(g, range(self.CAP)))), list(range(self.CAP)))

    def test_a_batch_is_of_one_generation(self):
        self.fill()
        reader = RingReader(self.ring, poll=1000.0)
        self.assertEqual(len(reader), self.CAP)
        self.fill(100)
        generation, samples = reader.batch_of([0, -1, 3, 3])
        self.assertEqual(generation.number, 1)  # it is kept, and 1000 seconds have not passed
        self.assertEqual(samples[2], samples[3])
        self.fill(200)
        generation, samples = reader.batch_of(range(self.CAP))
        self.assertEqual((generation.number, sorted(numbers(samples))), (3, list(range(200, 210))))
        for index in (self.CAP, -1 - self.CAP):
            self.assertRaises(IndexError, reader.batch, [index])
        self.assertEqual(reader.batch([]), [])

    def test_a_smaller_generation(self):
        self.fill()
        reader = RingReader(self.ring, poll=0)
        self.assertEqual(len(reader), self.CAP)
        self.fill(50, 3)
        self.assertEqual(self.ring.swap(), 2)
        self.assertEqual((len(reader), len(reader.batch(range(self.CAP)))), (3, self.CAP))

    def test_a_lost_sample_is_an_error(self):
        self.fill()
        self.made.lanes.clear()
        with self.assertRaises(dfc.NotFound) as caught:
            RingReader(self.ring).batch([0])
        self.assertEqual(caught.exception.code, "generation_gone")


class ShareTest(Rings):
    CAP = 7

    def shares(self, consumers, **options):
        return [RingShare(self.ring, consumer=i, consumers=consumers, **options)
                for i in range(consumers)]

    def test_each_sample_once(self):
        self.made.keep = 3
        for begin in (0, 100, 200):
            self.fill(begin)
        for consumers in (1, 3):
            for ahead in (0, 2):
                found = [numbers(share) for share in self.shares(
                    consumers, after=0, generations=3, ahead=ahead)]
                self.assertEqual(sorted(sum(found, [])),
                                 [b + i for b in (0, 100, 200) for i in range(self.CAP)])
        one, other = (numbers(RingShare(self.ring, after=0, generations=1, seed=s)) for s in (1, 2))
        self.assertNotEqual(one, other)
        self.assertEqual(one, numbers(RingShare(self.ring, after=0, generations=1, seed=1)))

    def test_it_begins_with_the_newest(self):
        for begin in (0, 100):
            self.fill(begin)
        self.assertEqual(sorted(numbers(RingShare(self.ring, generations=1))), list(range(100, 107)))

    def test_it_goes_on_at_the_next_sample(self):
        self.made.keep = 3
        for begin in (0, 100):
            self.fill(begin)
        for stop in (0, 1, 6, 7, 8, 13):
            share = RingShare(self.ring, after=0, generations=2)
            first = [number(sample) for _, sample in zip(range(stop), share)]
            again = RingShare(self.ring, after=0, generations=2)
            again.restore(share.state())
            rest = []
            for sample in again:
                rest.append(number(sample))
                if len(first) + len(rest) == 2 * self.CAP:
                    break
            self.assertEqual(sorted(first + rest), [*range(7), *range(100, 107)], stop)
        with self.assertRaisesRegex(dfc.Invalid, "consumers 1"):
            RingShare(self.ring, consumers=2).restore(share.state())

    def test_a_lost_sample_is_passed_over_alone(self):
        """Also by a share that goes on within the samples that were read together."""
        for i in range(self.CAP):
            self.ring.push(label(i), producer="m", sequence=i)
        g = self.ring.wait()
        self.made.lost.add(g.place(3))
        order = numbers(self.ring.read(g, [0, 1, 2, 4, 5, 6]))
        for ahead in (0, 2):
            for stop in range(1, 7):
                share, again = (RingShare(self.ring, after=0, generations=1, shuffle=False,
                                          ahead=ahead) for _ in range(2))
                first = [number(sample) for _, sample in zip(range(stop), share)]
                self.assertEqual(share.state()["given"], stop if stop <= 3 else stop + 1)
                again.restore(share.state())
                self.assertEqual(first + numbers(again), order)
                self.assertEqual(again.missed, int(stop <= 3))

    def test_a_damaged_sample_is_passed_over(self):
        for at in (-1, 20):  # in the payload, in the head
            self.fill()
            g = self.ring.head().newest()
            good = set(numbers(self.ring.read(g, range(self.CAP))))
            lane, ordinal = g.place(3)
            frames = self.made.lanes[lane]
            good.remove(number(self.ring.read(g, [3])[0]))
            data = bytearray(frames[ordinal])
            data[at] ^= 1
            frames[ordinal] = bytes(data)
            share = RingShare(self.ring, after=g.number - 1, generations=1)
            with self.assertLogs("dfc.ring", "WARNING"):
                self.assertEqual(set(numbers(share)), good)
            self.assertEqual(share.missed, 1)
            strict = RingShare(self.ring, after=g.number - 1, generations=1, on_gone="raise")
            self.assertRaises(dfc.Corrupt, list, strict)

    def test_generations_that_are_gone(self):
        self.fill()
        share = RingShare(self.ring, after=0, generations=1, ahead=0)
        steps = iter(share)
        next(steps)
        for begin in (100, 200, 300):
            self.fill(begin)
        with self.assertLogs("dfc.ring", "WARNING"):
            self.assertEqual(list(steps), [])
        self.assertEqual((share.missed, share.skipped), (self.CAP - 1, 0))
        with self.assertLogs("dfc.ring", "WARNING"):
            self.assertEqual(sorted(numbers(share)), list(range(200, 207)))
        self.assertEqual((share.missed, share.skipped), (self.CAP - 1, 1))
        strict = RingShare(self.ring, after=2, ahead=0, on_gone="raise")
        steps = iter(strict)
        next(steps)
        for begin in (400, 500, 600):
            self.fill(begin)
        with self.assertRaises(dfc.NotFound):
            list(steps)

    def test_a_lane_that_is_lost(self):
        """The other samples of the generation are read."""
        for i in range(self.CAP):
            self.ring.push(label(i), producer="x" * (1 + i % 2), sequence=i)
        lost = len(self.made.lanes.pop("t1.1"))
        share = RingShare(self.ring, after=0, generations=1)
        with self.assertLogs("dfc.ring", "WARNING"):
            self.assertEqual(len(list(share)), self.CAP - lost)
        self.assertTrue(0 < lost == share.missed < self.CAP)

    def test_arguments(self):
        for options in ({"consumer": 1}, {"on_gone": "x"}, {"ahead": -1}):
            self.assertRaises(dfc.Invalid, RingShare, self.ring, **options)


if __name__ == "__main__":
    unittest.main()
