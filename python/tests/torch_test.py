#!/usr/bin/python3
"""dfc.torch under the loaders of PyTorch: 0 to 4 workers, forked and spawned, several ranks, resume.

DFC_TORCH_PYTHON names a Python with torch, and torchdata for StatefulDataLoader."""

import io
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import unittest
from unittest import mock

import frame  # noqa: F401
import dfc
from mock_cluster import MockCluster

try:
    import torch
    import torch.utils.data
except ImportError:
    torch = None
try:
    from torchdata.stateful_dataloader import StatefulDataLoader
except ImportError:
    StatefulDataLoader = None

COUNTS = (3, 0, 1, 5, 4, 2, 6, 1, 3, 2, 4, 5)  # samples of each shard
SAMPLES = sorted(f"{i:02}-{k}" for i, count in enumerate(COUNTS) for k in range(count))
NAMES = [f"o/{i:02}" for i in range(37)]


def shard(number):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for k in range(COUNTS[number]):
            member = tarfile.TarInfo(f"{number:02}-{k}.txt")
            member.size = 4
            archive.addfile(member, io.BytesIO(b"%02d-%d" % (number, k)))
    return out.getvalue()


def key(sample):
    assert sample["txt"].decode() == sample["__key__"]
    return sample["__key__"]


def name(name_, data):
    assert data.decode() == name_
    return name_


def same(batch):
    return batch


def fail(name_, _data):
    raise dfc.Corrupt(f"{name_} is damaged", status=422, code="checksum_mismatch")


class TorchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mock = MockCluster()
        cls.mock.__enter__()
        cls.client = dfc.Client(cls.mock.endpoint, profile="")
        cls.bucket = cls.client.bucket("b").create()
        for number in range(len(COUNTS)):
            cls.bucket.put(f"s{number:02}.tar", shard(number))
        for one in NAMES:
            cls.bucket.put(one, one.encode())

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.mock.__exit__(None, None, None)

    def test_a_prefix_that_nothing_has(self):
        from dfc.torch import MapDataset, ObjectDataset
        for kind in (MapDataset, ObjectDataset):
            with self.assertRaisesRegex(dfc.NotFound, "begins with 'x/'"):
                kind(self.bucket, "x/")

    def image(self):
        """Of 37 files, made by dfcctl."""
        with tempfile.TemporaryDirectory(prefix="dfc-torch-") as top:
            for one in NAMES:
                os.makedirs(os.path.join(top, "o"), exist_ok=True)
                with open(os.path.join(top, one), "w", encoding="ascii") as f:
                    f.write(one)
            build = os.environ.get("DFC_BUILD") or os.path.join(frame.ROOT, "build")
            subprocess.run([os.path.join(build, "dfcctl"), "vdisc", "burn", "--tree", top, "--store", "pack",
                            "-o", "dfc://b/i.vdsc"], check=True, stdout=subprocess.DEVNULL,
                           env={**os.environ, "DFC_ENDPOINT": self.mock.endpoint, "HOME": top})
        self.addCleanup(self.bucket.delete, "i.vdsc")
        from dfc.vdisc import Image
        return Image(self.client, "dfc://b/i.vdsc")

    def test_files_of_an_image(self):
        from dfc.torch import ImageDataset, Sampler
        data = ImageDataset(self.image(), transform=name)
        self.assertEqual(len(data), len(NAMES))
        for workers, context in ((0, None), (2, "fork"), (8, "fork"), (2, "spawn")):
            for epoch in range(2):
                loader = torch.utils.data.DataLoader(data, batch_size=5, collate_fn=same,
                                                     sampler=Sampler(data, seed=epoch), num_workers=workers,
                                                     multiprocessing_context=context)
                found = [one for batch in loader for one in batch]
                self.assertEqual(sorted(found), NAMES, (workers, context, epoch))

    def shards(self, rank=0, world=1, **options):
        from dfc.torch import ShardDataset
        return ShardDataset(self.bucket, "s{00..11}.tar", rank=rank, world=world, transform=key,
                            **options)

    def objects(self, rank=0, world=1, **options):
        from dfc.torch import ObjectDataset
        return ObjectDataset(self.bucket, "o/", rank=rank, world=world, transform=name, **options)

    @staticmethod
    def loader(data, workers=0, kind=None, **options):
        if workers:
            options["multiprocessing_context"] = options.get("multiprocessing_context", "fork")
        kind = kind or torch.utils.data.DataLoader
        return kind(data, num_workers=workers, **{"batch_size": None, **options})

    def test_each_sample_once_over_ranks_and_workers(self):
        for make, all_ in ((self.shards, SAMPLES), (self.objects, NAMES)):
            for world in (1, 2, 3):
                for workers in range(5):
                    if world == 3 and workers in (1, 2, 3):
                        continue  # as with two ranks
                    found = []
                    for rank in range(world):
                        found += self.loader(make(rank, world), workers)
                    self.assertEqual(sorted(found), all_, (world, workers))

    def test_spawned_workers(self):
        for make, all_ in ((self.shards, SAMPLES), (self.objects, NAMES)):
            found = list(self.loader(make(), 2, multiprocessing_context="spawn"))
            self.assertEqual(sorted(found), all_)

    def test_batches(self):
        found = list(self.loader(self.objects(), 3, batch_size=5, collate_fn=same))
        self.assertEqual(sorted(sum(found, [])), NAMES)

    def test_epochs(self):
        """Each has an order of its own, also where workers outlive an epoch."""
        for context in ("fork", "spawn"):
            data = self.objects(seed=4)
            loader = self.loader(data, 2, persistent_workers=True, multiprocessing_context=context)
            orders = []
            for epoch in (0, 1, 0):
                data.set_epoch(epoch)
                orders.append(list(loader))
                self.assertEqual(sorted(orders[-1]), NAMES)
            self.assertNotEqual(orders[0], orders[1])
            self.assertEqual(orders[0], orders[2])

    def test_objects_by_number(self):
        from dfc.torch import MapDataset, Sampler
        data = MapDataset(self.bucket, "o/", transform=name, threads=3)
        self.assertEqual((len(data), data[5], data[-1]), (37, NAMES[5], NAMES[-1]))
        self.assertEqual(data.__getitems__([3, 0]), [NAMES[3], NAMES[0]])
        for workers, context in ((0, None), (2, "fork"), (2, "spawn")):
            found = []
            for rank in range(3):
                sampler = Sampler(data, rank=rank, world=3, seed=2)
                loader = torch.utils.data.DataLoader(
                    data, batch_size=4, sampler=sampler, num_workers=workers, collate_fn=same,
                    multiprocessing_context=context)
                batches = list(loader)
                self.assertEqual(len(batches), len(loader))
                found += sum(batches, [])
                self.assertEqual(len(list(loader)), len(loader))  # another epoch
            self.assertEqual(sorted(found), NAMES)
        even = [list(Sampler(data, rank=rank, world=3, even=True)) for rank in range(3)]
        self.assertEqual([len(one) for one in even], [13] * 3)

    def test_resume_in_one_process(self):
        for make, all_ in ((self.shards, SAMPLES), (self.objects, NAMES)):
            whole = list(make(seed=1))
            for at in range(len(all_) + 1):
                data = make(seed=1)
                iterator = iter(data)
                before = [next(iterator) for _ in range(at)]
                state = data.state_dict()
                iterator.close()
                again = make(seed=1)
                again.load_state_dict(state)
                again.set_epoch(0)  # as loops over epochs do
                self.assertEqual(before + list(again), whole, at)
                self.assertEqual(list(again), whole, "another epoch")

    def test_resume_of_workers(self):
        """Killed at any sample: none is lost, and none comes again."""
        if StatefulDataLoader is None:
            self.skipTest("torchdata is not there")
        for make, all_ in ((self.shards, SAMPLES), (self.objects, NAMES)):
            for workers in (0, 2, 3):
                for at in random.Random(workers).sample(range(len(all_) + 1), 4):
                    loader = self.loader(make(seed=1), workers, StatefulDataLoader)
                    iterator = iter(loader)
                    before = [next(iterator) for _ in range(at)]
                    state = loader.state_dict()
                    del iterator, loader
                    again = self.loader(make(seed=1), workers, StatefulDataLoader)
                    again.load_state_dict(state)
                    self.assertEqual(sorted(before + list(again)), all_, (workers, at))

    def test_a_batch_by_number_is_one_request(self):
        from dfc.torch import MapDataset

        class Bucket:
            asked = []

            def batch(self, names):
                self.asked.append(list(names))
                return ((name, name.encode() * 2) for name in names)

        bucket = Bucket()
        data = MapDataset(bucket, names=["a", "b", "c"])
        self.assertEqual(data.__getitems__([2, 0]), [("c", b"cc"), ("a", b"aa")])
        self.assertEqual(bucket.asked, [["c", "a"]])
        with self.assertRaises(dfc.Invalid):
            MapDataset(bucket, names=["a"], threads=0)

    def test_resume_of_a_sampler(self):
        if StatefulDataLoader is None:
            self.skipTest("torchdata is not there")
        from dfc.torch import MapDataset, Sampler
        data = MapDataset(self.bucket, "o/", transform=name, threads=3)

        def make(workers):
            return StatefulDataLoader(data, batch_size=4, sampler=Sampler(data, rank=0, world=1),
                                      num_workers=workers, collate_fn=same)

        for workers in (0, 2):
            whole = list(make(workers))
            for at in (0, 1, 4, 9):
                loader = make(workers)
                iterator = iter(loader)
                before = [next(iterator) for _ in range(at)]
                state = loader.state_dict()
                del iterator, loader
                again = make(workers)
                again.load_state_dict(state)
                self.assertEqual(before + list(again), whole, (workers, at))

    def test_another_number_of_ranks_and_workers(self):
        """Objects: exactly. Shards: those that were begun come again."""
        if StatefulDataLoader is None:
            self.skipTest("torchdata is not there")
        from dfc.torch import merge
        for make, all_ in ((self.shards, SAMPLES), (self.objects, NAMES)):
            given, states = [], []
            for rank in range(2):
                loader = self.loader(make(rank, 2), 2, StatefulDataLoader)
                iterator = iter(loader)
                given += [next(iterator) for _ in range(7)]
                states.append(loader.state_dict())
                del iterator, loader
            state = merge(states)
            later = []
            for rank in range(3):
                data = make(rank, 3)
                data.load_state_dict(state)
                data.set_epoch(0)
                later += self.loader(data, 1)
            if make == self.objects:
                self.assertEqual(sorted(given + later), all_)
            self.assertEqual(sorted(set(given + later)), all_)
            self.assertEqual(len(later), len(set(later)))

    def test_errors_of_workers(self):
        """They have their class and code in the parent."""
        from dfc.torch import ObjectDataset
        data = ObjectDataset(self.bucket, "o/", transform=fail)
        with self.assertRaisesRegex(dfc.Corrupt, "is damaged"):
            list(self.loader(data, 2))

    def test_ranks(self):
        from dfc.torch import rank_and_world
        with mock.patch.dict(os.environ, {"RANK": "3", "WORLD_SIZE": "4"}):
            self.assertEqual(rank_and_world(), (3, 4))
        for rank, world in ((2, 2), (-1, 2), (0, None)):
            with self.assertRaises(dfc.Invalid):
                self.objects(rank, world)
        for options in ({"window": 0}, {"ahead": 0}):
            with self.assertRaises(dfc.Invalid):
                self.shards(**options)

    def test_the_ranks_of_torch_distributed(self):
        """Two processes of one group."""
        program = ("import sys; sys.path[:0] = sys.argv[3:]; import torch.distributed as d\n"
                   "from dfc.torch import rank_and_world\n"
                   "d.init_process_group('gloo', init_method='file://' + sys.argv[1],"
                   " rank=int(sys.argv[2]), world_size=2)\n"
                   "print(*rank_and_world()); d.destroy_process_group()")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "meeting")
        both = [subprocess.Popen([sys.executable, "-c", program, path, str(rank), *sys.path],
                                 stdout=subprocess.PIPE, text=True) for rank in range(2)]
        self.assertEqual([one.communicate(timeout=120)[0] for one in both], ["0 2\n", "1 2\n"])


if __name__ == "__main__":
    python = os.environ.get("DFC_TORCH_PYTHON")
    if torch is None and python and python != sys.executable:
        os.execv(python, [python, *sys.argv])
    if torch is None:
        print("skipped: torch is not there; DFC_TORCH_PYTHON names a Python that has it")
        sys.exit(77)
    unittest.main()
