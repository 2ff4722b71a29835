#!/usr/bin/python3
"""Samples of shards: each exactly once over all consumers, and resumed at every sample."""

import collections
import gzip
import importlib
import io
import json
import os
import random
import signal
import sys
import tarfile
import threading
import time
import unittest
from unittest import mock

import frame  # noqa: F401
import dfc
from dfc import _tar
from dfc.shards import ShardReader, expand, merge, read_index, samples

COUNTS = (3, 0, 1, 5, 4, 2, 6, 1, 3, 2, 4, 5)  # samples of each shard


def tar(members, mode="w"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=tarfile.PAX_FORMAT) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Memory:
    """A bucket whose objects are shards."""

    def __init__(self):
        self.objects = {
            f"s{i:02}.tar": tar([(f"d/{i:02}-{k}.{ext}", f"{i}/{k}/{ext}".encode())
                                 for k in range(count) for ext in ("jpg", "cls")])
            for i, count in enumerate(COUNTS)}

    name = "b"

    def open(self, name):
        return io.BytesIO(self.objects[name])

    def get(self, name):
        return self.objects[name]


ALL = sorted(f"d/{i:02}-{k}" for i, count in enumerate(COUNTS) for k in range(count))
SHARDS = "s{00..11}.tar"


def keys(reader):
    return [sample["__key__"] for sample in reader]


class ShardsTest(unittest.TestCase):
    def setUp(self):
        self.bucket = Memory()

    def reader(self, **options):
        return ShardReader(self.bucket, SHARDS, **options)

    def test_names(self):
        self.assertEqual(expand("a-{08..11}.tar"), ["a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"])
        self.assertEqual(expand("{9..10}/{0..1}"), ["9/0", "9/1", "10/0", "10/1"])
        self.assertEqual(expand("one.tar"), ["one.tar"])
        with self.assertRaises(dfc.Invalid):
            expand("{3..2}")

    def test_an_index(self):
        rows = [("x/y/0.tar", "y/0.tar", 3), ("1.tar", "../1.tar", 0), ("z/2.tar", "dfc://b/z/2.tar", 4)]
        text = json.dumps({"shardlist": [{"url": url, "nsamples": n} for _, url, n in rows]})
        self.bucket.objects["x/index.json"] = text.encode()
        index = read_index(self.bucket, "x/index.json")
        self.assertEqual((index.names, index.samples, len(index)),
                         ([name for name, _, _ in rows], [3, 0, 4], 7))
        for wrong in (b"", b"[]", b"{}", b'{"shardlist": [{"url": "a"}]}', b'{"shardlist": 5}',
                      b'{"shardlist": [{"url": "http://h/a", "nsamples": 1}]}',
                      b'{"shardlist": [{"url": "dfc://other/a", "nsamples": 1}]}'):
            self.bucket.objects["x/index.json"] = wrong
            with self.assertRaises(dfc.Invalid):
                read_index(self.bucket, "x/index.json")

    def test_samples_of_a_shard(self):
        members = [("a/1.jpg", b"J"), ("a/1.seg.png", b"S"), ("b.1/x.txt", b"T"), ("README", b"-"),
                   (".hidden", b"-"), ("n" * 300 + ".bin", b"B"), ("empty.cls", b"")]
        for mode in ("w", "w:gz", "w:bz2", "w:xz"):
            found = list(samples(io.BytesIO(tar(members, mode)), "s"))
            self.assertEqual(found, [
                {"__key__": "a/1", "__shard__": "s", "jpg": b"J", "seg.png": b"S"},
                {"__key__": "b.1/x", "__shard__": "s", "txt": b"T"},
                {"__key__": "n" * 300, "__shard__": "s", "bin": b"B"},
                {"__key__": "empty", "__shard__": "s", "cls": b""}])

    def test_shards_that_cannot_be_read(self):
        whole = tar([("a.jpg", b"x" * 3000), ("b.jpg", b"y" * 3000)])
        cut = tar([("a.jpg", b"x" * 3000)])[:3584]  # where a member ends: nothing else tells
        for text in (whole[:5000], b"no archive" * 100, cut, gzip.compress(cut)):
            with self.assertRaisesRegex(dfc.Corrupt, "the shard 's'"):
                list(samples(io.BytesIO(text), "s"))
        with mock.patch.dict(sys.modules, {"zstandard": None, "lz4.frame": None}):
            for magic, package in ((b"(\xb5/\xfd", "zstandard"), (b"\x04\"M\x18", "lz4")):
                with self.assertRaisesRegex(dfc.Invalid, f"shard 's'.*pip install {package}"):
                    list(samples(io.BytesIO(magic * 300), "s"))
        with self.assertRaisesRegex(dfc.Invalid, "it is a zip"):
            list(samples(io.BytesIO(b"PK\x03\x04" * 300), "s"))
        self.bucket.objects["s03.tar"] = whole[:5000]
        with self.assertRaisesRegex(dfc.Corrupt, "s03.tar"):
            keys(self.reader())

    def test_forms_of_tar(self):
        """As tarfile reads them: names of all lengths, and members that are no files."""
        sizes = (0, 1, 511, 512, 513, 5000)
        for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            out = io.BytesIO()
            with tarfile.open(fileobj=out, mode="w", format=form,
                              pax_headers={"comment": "all"}) as archive:
                for kind in (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
                    info = tarfile.TarInfo("other.txt")
                    info.type, info.linkname = kind, "long/" * 19 + "x"
                    archive.addfile(info)
                for size in sizes:
                    info = tarfile.TarInfo("d/" * 70 + "\u00e9" * 40 + f"{size}.bin")
                    info.size = size
                    archive.addfile(info, io.BytesIO(b"z" * size))
            text = out.getvalue()
            with tarfile.open(fileobj=io.BytesIO(text)) as archive:
                want = [(m.name, m.size) for m in archive if m.isfile()]
            found = list(_tar.files(io.BytesIO(text)))
            self.assertEqual([(name, len(data)) for name, data in found], want)
            self.assertEqual([len(data) for _, data in found], list(sizes))

    def test_what_is_refused(self):
        block = bytearray(tar([("a.jpg", b"x")])[:512])
        for kind, error in ((b"S", dfc.Invalid), (b"g", dfc.Corrupt)):
            block[156:157] = kind
            block[124:136] = b"77777777777\0" if kind == b"g" else b"00000000000\0"
            block[148:156] = b"%06o\0 " % (sum(block) - sum(block[148:156]) + 256)
            with self.assertRaisesRegex(error, "shard 's'"):
                list(samples(io.BytesIO(block + bytes(9999)), "s"))

    def test_an_error_of_the_stream_is_told_as_it_is(self):
        class Bad(io.BytesIO):
            def read(self, *args):
                if self.tell() > 600:
                    raise dfc.Unreachable("no node")
                return super().read(*args)

        data = random.Random(3).randbytes(9000)
        for mode in ("w", "w:gz", "w:bz2", "w:xz"):
            with self.assertRaises(dfc.Unreachable):
                list(samples(Bad(tar([("a.bin", data)] * 40, mode)), "s"))

    def test_zstd_and_lz4(self):
        text = tar([("a.txt", b"t" * 5000), ("b.txt", b"")])
        made = 0
        for name, pack in (("zstandard", lambda m: m.ZstdCompressor().compress(text)),
                           ("lz4.frame", lambda m: m.compress(text))):
            try:
                packed = pack(importlib.import_module(name))
            except ImportError:
                continue
            made += 1
            self.assertEqual([len(s["txt"]) for s in samples(io.BytesIO(packed))], [5000, 0])
            for damaged in (packed[:-30], packed[:20] + b"???" + packed[23:]):
                with self.assertRaises(dfc.Corrupt):
                    list(samples(io.BytesIO(damaged)))
        if not made:
            self.skipTest("neither zstandard nor lz4 is installed")

    def test_damage_has_one_error(self):
        members = [("a/1.jpg", b"J" * 700), ("n" * 200 + ".bin", b"B" * 100), ("\u00e9.txt", b"")]
        whole = [tar(members, mode) for mode in ("w", "w:gz", "w:bz2", "w:xz")]
        draw = random.Random(11)
        for _ in range(3000):
            text = bytearray(draw.choice(whole))
            for _ in range(draw.randrange(1, 4)):
                text[draw.randrange(len(text))] = draw.randrange(256)
            if draw.random() < 0.2:
                del text[draw.randrange(len(text)):]
            try:
                list(samples(io.BytesIO(bytes(text))))
            except dfc.Corrupt:
                pass

    def test_a_shard_is_read_to_its_end(self):
        """Behind the archive's own end, so that its checksum is compared."""
        stream = io.BytesIO(tar([("a.jpg", b"x")]) + bytes(1 << 20))
        self.assertEqual(len(list(samples(stream))), 1)
        self.assertEqual(stream.read(), b"")

    def test_each_sample_once_over_ranks_and_workers(self):
        for world in range(1, 5):
            for workers in range(5):
                consumers = world * max(workers, 1)
                for window in (1, 4, 1000):
                    found = [key for consumer in range(consumers) for key in keys(self.reader(
                        consumer=consumer, consumers=consumers, window=window))]
                    self.assertEqual(sorted(found), ALL, (world, workers, window))

    def test_orders(self):
        self.assertEqual(keys(self.reader(shuffle=False)), ALL)
        first, again, other = (keys(self.reader(seed=s, window=8)) for s in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        reader = self.reader(seed=1, window=8)
        reader.set_epoch(1)
        self.assertNotEqual(keys(reader), first)
        self.assertEqual(keys(reader), [])  # the epoch is over
        reader.set_epoch(0)
        self.assertEqual(keys(reader), first)

    def test_resumed_at_every_sample(self):
        for window in (1, 4, 1000):
            for consumer in range(2):
                options = {"consumer": consumer, "consumers": 2, "window": window, "seed": 3}
                whole = keys(self.reader(**options))
                for at in range(len(whole) + 1):
                    reader, before = self.reader(**options), []
                    iterator = iter(reader)
                    for _ in range(at):
                        before.append(next(iterator)["__key__"])
                    state = json.loads(json.dumps(reader.state()))
                    iterator.close()
                    resumed = self.reader(**options)
                    resumed.restore(state)
                    self.assertEqual(before + keys(resumed), whole, (window, consumer, at))

    def test_another_number_of_consumers(self):
        """What is done does not come again; what was begun does."""
        for at in range(12):
            states, given = [], []
            for consumer in range(3):
                reader = self.reader(consumer=consumer, consumers=3, seed=5)
                for _, sample in zip(range(at), reader):
                    given.append(sample["__key__"])
                states.append(reader.state())
            state = merge(json.loads(json.dumps(states)))
            later = []
            for consumer in range(2):
                reader = self.reader(consumer=consumer, consumers=2, seed=5)
                reader.restore(state)
                later += keys(reader)
            self.assertEqual(sorted(set(given) | set(later)), ALL, at)
            twice = [key for key, n in collections.Counter(given + later).items() if n > 1]
            done = {name[1:3] for name in state["done"]}
            self.assertFalse([key for key in twice if key[2:4] in done], at)

    def test_states_that_do_not_fit(self):
        state = self.reader(consumer=0, consumers=2).state()
        for options in ({"consumer": 1, "consumers": 2}, {}, {"seed": 9, "consumers": 2},
                        {"consumers": 2, "window": 3}, {"consumers": 2, "shuffle": False}):
            with self.assertRaises(dfc.Invalid):
                self.reader(**options).restore(state)
        for wrong in ({}, {"seed": 0, "done": []}):
            with self.assertRaises(dfc.Invalid):
                self.reader(consumers=2).restore(wrong)
        with self.assertRaisesRegex(dfc.Invalid, "shards that it was made with"):
            ShardReader(self.bucket, "s{00..10}.tar", consumers=2).restore(state)
        one = self.reader(consumer=1, consumers=2, shuffle=False).state()
        for states in ([], [state], [state, state], [state, one], [state, state, one]):
            with self.assertRaises(dfc.Invalid):
                merge(states)

    def test_a_shard_that_has_become_shorter(self):
        reader = self.reader(shuffle=False)
        for _, _ in zip(range(2), reader):
            pass
        self.bucket.objects["s00.tar"] = tar([("d/00-0.jpg", b"x")])
        resumed = self.reader(shuffle=False)
        resumed.restore(reader.state())
        with self.assertRaisesRegex(dfc.Corrupt, "lost 1 samples"):
            keys(resumed)

    def test_an_iteration_that_is_dropped_leaves_no_thread(self):
        before = threading.active_count()
        for _ in range(5):
            iterator = iter(self.reader(ahead=1))
            next(iterator)
            iterator.close()
        self.assertEqual(threading.active_count(), before)

    def test_an_iteration_that_is_dropped_during_a_long_read(self):
        """It does not wait for a node that is silent."""
        wait, bucket = threading.Event(), self.bucket

        class Silent(io.BytesIO):
            def read(self, *args):
                wait.wait(60)
                return super().read(*args)

        class Stuck:
            def open(self, name):
                return Silent(bucket.objects[name]) if name == "s03.tar" else bucket.open(name)

        iterator = iter(ShardReader(Stuck(), SHARDS, shuffle=False))
        next(iterator)
        begun = time.monotonic()
        iterator.close()
        self.assertLess(time.monotonic() - begun, 30)
        wait.set()
        for thread in threading.enumerate():
            if thread.name == "dfc-ahead":
                thread.join()

    def test_an_iteration_in_a_forked_process(self):
        """It says so, where it would wait for a thread that is not there."""
        iterator = iter(self.reader())
        next(iterator)
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                list(iterator)
            except dfc.Invalid:
                iterator.close()
                os._exit(0)
            os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        iterator.close()

    def test_settings_that_cannot_be(self):
        for options in ({"consumer": 2, "consumers": 2}, {"consumer": -1}, {"window": 0},
                        {"ahead": 0}):
            with self.assertRaises(dfc.Invalid):
                self.reader(**options)
        with self.assertRaisesRegex(dfc.Invalid, "'b' is named twice"):
            ShardReader(self.bucket, ["a", "b", "b"])

    def test_a_transform_that_fails(self):
        """The sample is not lost: after a resume it comes again."""
        def fail(sample):
            raise ValueError(sample["__key__"])

        reader = self.reader(shuffle=False)
        iterator = iter(reader)
        next(iterator)
        iterator.close()
        failing = self.reader(shuffle=False, transform=fail)
        failing.restore(reader.state())
        with self.assertRaisesRegex(ValueError, ALL[1]):
            next(iter(failing))
        reader.restore(failing.state())
        self.assertEqual(keys(reader), ALL[1:])

    def test_a_transform(self):
        found = list(self.reader(shuffle=False, transform=lambda s: len(s["jpg"])))
        self.assertEqual(len(found), len(ALL))


if __name__ == "__main__":
    unittest.main()
