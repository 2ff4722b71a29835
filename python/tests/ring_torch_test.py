#!/usr/bin/python3
"""Ring datasets of dfc.torch and of wirehead under DataLoader: 0 to 8 workers, forked and spawned,
several ranks.  DFC_TORCH_PYTHON names a Python with torch."""

import array
import os
import sys
import tempfile
import unittest

import frame
import dfc
from dfc.ring import Ring
from mock_rings import RingCluster

sys.path.insert(0, os.path.join(frame.ROOT, "python", "wirehead", "src"))
try:
    import torch
    import torch.utils.data
except ImportError:
    torch = None

CAP = 24
WAYS = ((0, None), (2, "fork"), (8, "fork"), (2, "spawn"))


def sample(i):
    return {"data": array.array("f", [i, i / 2]), "label": array.array("h", [i])}


def same(batch):
    return batch


def number(made):
    return int(made["label"][0])


def half(img):
    return img / 2


def saved(data):
    import io
    return torch.load(io.BytesIO(data)) + 1


class RingTorchTest(unittest.TestCase):
    def setUp(self):
        self.mock = RingCluster()
        self.mock.__enter__()
        self.addCleanup(self.mock.__exit__, None, None, None)
        self.client = dfc.Client(self.mock.endpoint, profile="")
        self.addCleanup(self.client.close)
        self.made = self.mock.ring("r", CAP, keep=8)
        self.ring = Ring(self.client, "r")

    def fill(self, begin=0):
        list(self.ring.push_all(sample(i) for i in range(begin, begin + CAP)))

    def loader(self, data, workers, context, **options):
        return torch.utils.data.DataLoader(data, collate_fn=same, num_workers=workers,
                                           multiprocessing_context=context, **options)

    def test_tensors(self):
        from dfc.torch import tensors
        values = {"f": torch.arange(6, dtype=torch.float16).reshape(2, 3), "b": b"xy",
                  "t": torch.arange(6).reshape(2, 3).T, "e": torch.zeros(0, 4),
                  "s": torch.tensor(3.5), "c": torch.tensor([1j]), "o": torch.tensor([True])}
        self.made.cap = 1
        self.ring.push(values)
        back = tensors(self.ring.read(self.ring.wait(), [0])[0])
        self.assertEqual(back.pop("b"), values.pop("b"))
        for name, value in values.items():
            self.assertEqual((back[name].dtype, back[name].shape), (value.dtype, value.shape))
            self.assertTrue(torch.equal(back[name], value), name)
        back["f"][0] = 1  # its memory may be written to
        with self.assertRaisesRegex(dfc.Invalid, "bfloat16"):
            self.ring.push({"x": torch.zeros(1, dtype=torch.bfloat16)})

    def test_with_replacement(self):
        from dfc.torch import RingDataset
        self.fill()
        data = RingDataset(self.ring)
        for workers, context in WAYS:
            loader = self.loader(data, workers, context, batch_size=5, shuffle=True)
            found = [number(made) for batch in loader for made in batch]
            self.assertEqual(sorted(found), list(range(CAP)), (workers, context))
        self.assertEqual(number(data[3]), number(data[3]))

    def test_each_sample_once(self):
        from dfc.torch import RingIterableDataset
        for begin in (0, 100, 200, 300):
            self.fill(begin)
        for workers, context in WAYS:
            data = [RingIterableDataset(self.ring, rank=rank, world=2, after=0, generations=2, timeout=20)
                    for rank in range(2)]
            for begin in (0, 200):  # the second epoch goes on where the first one ended
                found = [number(made) for one in data
                         for batch in self.loader(one, workers, context, batch_size=4)
                         for made in batch]
                self.assertEqual(sorted(found), [b + i for b in (begin, begin + 100)
                                                 for i in range(CAP)], (workers, context))

    def test_another_number_of_workers(self):
        from dfc.torch import RingIterableDataset
        for begin in (0, 100, 200, 300, 400):
            self.fill(begin)
        data = RingIterableDataset(self.ring, rank=0, world=1, after=0, generations=1)
        for begin, workers in ((0, 2), (100, 3), (200, 2), (300, 0), (400, 3)):
            loader = self.loader(data, workers, "fork" if workers else None, batch_size=4)
            found = [number(made) for batch in loader for made in batch]
            self.assertEqual(sorted(found), list(range(begin, begin + CAP)))
        with self.assertRaisesRegex(dfc.Invalid, "go together"):
            RingIterableDataset(self.ring, rank=0)

    def config(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "config.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"ENDPOINT: {self.mock.endpoint}\nDBNAME: r\nSWAP_CAP: {CAP}\n"
                    "SAMPLE: [data, label]\n")
        return path

    def test_wirehead_datasets(self):
        from wirehead import MongoheadDataset, MongoTupleheadDataset
        self.fill()

        def label(pair):
            return int(pair[1][0])

        pairs = MongoTupleheadDataset(config_path=self.config(), normalize=half)
        self.assertEqual((len(pairs), len(pairs[[3, 4]]), len(pairs[2:7])), (CAP, 2, 5))
        self.assertEqual(pairs[3][0].dtype, torch.float32)
        self.assertEqual(pairs[3][0].tolist(), [label(pairs[3]) / 2, label(pairs[3]) / 4])
        self.assertEqual(sorted(label(pair) for pair in pairs), list(range(CAP)))
        dicts = MongoheadDataset(config_path=self.config())
        self.assertEqual(list(dicts[[5, 2]]), [5, 2])
        self.assertEqual(set(dicts[1]), {"input", "label"})
        self.assertEqual(dicts[[5]][5]["label"].tolist(), pairs[5][1].tolist())
        ours = MongoTupleheadDataset(collection=self.ring, transform=saved)
        self.assertTrue(torch.equal(ours[1][1], pairs[1][1] + 1))
        self.assertRaises(IndexError, pairs.__getitem__, CAP)
        for workers, context in WAYS:
            loader = self.loader(pairs, workers, context, batch_size=5)
            self.assertEqual(sorted(label(pair) for batch in loader for pair in batch),
                             list(range(CAP)), (workers, context))


if __name__ == "__main__":
    python = os.environ.get("DFC_TORCH_PYTHON")
    if torch is None and python and python != sys.executable:
        os.execv(python, [python, *sys.argv])
    if torch is None:
        print("skipped: torch is not there; DFC_TORCH_PYTHON names a Python that has it")
        sys.exit(77)
    unittest.main()
