#!/usr/bin/python3
"""dfc.torch.checkpoint in one process: what is saved comes back, torch's own reader and writer have
the same layout, and no damage, cut or second save makes a mixture.

DFC_TORCH_PYTHON names a Python with torch."""

import io
import os
import pickle
import sys
import tempfile
import unittest

import frame  # noqa: F401
import dfc
from mocked import MockedTest

try:
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.api import CheckpointException
except ImportError:
    torch = None

BIG = 5 << 20  # bytes: more than one block


def state(seed=0):
    torch.manual_seed(seed)
    rows = torch.randn(1024, BIG // 4096)
    return {"weight": rows, "half": torch.randn(300, 200).to(torch.bfloat16),
            "turned": torch.randn(400, 100).t(), "part": torch.randn(2000, 100)[500:900],
            "flags": torch.rand(70000) > 0.5, "complex": torch.randn(200, 200, dtype=torch.complex64),
            "scalar": torch.tensor(3.5), "empty": torch.empty(0, 7), "step": 17 + seed,
            "nested": {"lr": 0.1, "names": ["a", "b"], "bias": torch.randn(3)},
            "conj": torch.randn(200, 100, dtype=torch.complex64).conj()}


def blank(value):
    if isinstance(value, dict):
        return {key: blank(one) for key, one in value.items()}
    return torch.zeros_like(value) if torch is not None and isinstance(value, torch.Tensor) else None


class CheckpointTest(MockedTest):
    def same(self, left, right):
        self.assertEqual(set(left), set(right))
        for key, value in left.items():
            if isinstance(value, dict):
                self.same(value, right[key])
            elif isinstance(value, torch.Tensor):
                self.assertTrue(torch.equal(value, right[key]), key)
            else:
                self.assertEqual(value, right[key], key)

    def save(self, name="c", made=None, **options):
        from dfc.torch.checkpoint import DfcWriter
        made = state() if made is None else made
        dcp.save(made, storage_writer=DfcWriter(self.bucket, name, **options), no_dist=True)
        return made

    def load(self, name="c", into=None, **options):
        from dfc.torch.checkpoint import DfcReader
        into = blank(state()) if into is None else into
        dcp.load(into, storage_reader=DfcReader(self.bucket, name, **options), no_dist=True)
        return into

    def names(self, prefix="c/"):
        return [entry.name for entry in self.bucket.list(prefix)]

    def refused(self, kind, text, call, *args, **options):
        """torch packs the errors of all ranks into one."""
        with self.assertRaises((CheckpointException, dfc.Error)) as caught:
            call(*args, **options)
        error = caught.exception
        found = [e for e, _ in error.failures.values()] if hasattr(error, "failures") else [error]
        self.assertEqual([type(e) for e in found], [kind], found)
        self.assertRegex(str(found[0]), text)

    def test_what_is_saved_comes_back(self):
        for threads, file_size in ((1, 1 << 30), (4, 1 << 30), (2, 100_000)):
            made = self.save(f"c{threads}", threads=threads, file_size=file_size)
            self.same(made, self.load(f"c{threads}", threads=threads))
            files = self.names(f"c{threads}/")
            self.assertIn(f"c{threads}/.metadata", files)
            self.assertEqual(len(files) - 1 > 4, file_size == 100_000, files)
            self.assertEqual(self.mock.requests(method="PUT")[-1]["path"].split("?")[0],
                             f"/v1/objects/b/c{threads}/.metadata")

    def test_targets_of_another_type_or_order(self):
        made = self.save()
        into = blank(state())
        into["weight"] = torch.zeros(made["weight"].shape, dtype=torch.float64)
        into["half"] = torch.zeros(200, 300, dtype=torch.bfloat16).t()
        self.load(into=into)
        self.assertTrue(torch.equal(into["weight"].float(), made["weight"]))
        self.assertTrue(torch.equal(into["half"], made["half"]))
        self.assertEqual(into["half"].stride(), (1, 300))

    def test_only_what_is_wanted_is_read(self):
        self.save(threads=1)
        self.mock.log.clear()
        self.load(into={"half": torch.zeros(300, 200, dtype=torch.bfloat16)})
        ranges = [r["headers"]["range"] for r in self.mock.requests(method="GET")
                  if "range" in r["headers"]]
        begin, end = (int(n) for n in ranges[0][len("bytes="):].split("-"))
        self.assertEqual(len(ranges), 1)
        self.assertLess(end - begin, 130_000)

    def test_torchs_reader_loads_it(self):
        made = self.save()
        with tempfile.TemporaryDirectory() as folder:
            for name in self.names():
                with open(os.path.join(folder, name[2:]), "wb") as f:
                    f.write(self.bucket.get(name))
            into = blank(state())
            dcp.load(into, storage_reader=dcp.FileSystemReader(folder), no_dist=True)
            self.same(made, into)
            # The metadata need nothing of this package.
            with open(os.path.join(folder, ".metadata"), "rb") as f:
                self.assertNotIn(b"dfc.torch", f.read())

    def test_what_torchs_writer_wrote_is_loaded(self):
        made = state()
        with tempfile.TemporaryDirectory() as folder:
            dcp.save(made, storage_writer=dcp.FileSystemWriter(folder, thread_count=2), no_dist=True)
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), "rb") as f:
                    self.bucket.put("c/" + name, f)
        self.same(made, self.load())

    def test_an_existing_checkpoint_is_refused(self):
        made = self.save()
        before = self.names()
        self.refused(dfc.Conflict, "already: choose another name", self.save, made=state(1))
        self.assertEqual(self.names(), before)
        self.same(made, self.load())

    def test_it_is_replaced_at_once(self):
        """Until the new one is complete, the old one is."""
        made = self.save(file_size=1_000_000)
        self.mock.plan({"at": "target", "method": "PUT", "path": "metadata", "do": "status",
                        "status": 507, "code": "no_space"})
        self.refused(dfc.Error, "as planned", self.save, made=state(1), overwrite=True)
        self.same(made, self.load())
        after = self.save(made=state(1), threads=1, overwrite=True)
        self.same(after, self.load())
        self.assertEqual(len(self.names()), 2)  # what both saves before had left is deleted

    def test_files_of_others_stay(self):
        self.bucket.put("c/config.json", b"{}")
        self.bucket.put("c/__7_0.distcp", b"of a save that was killed")
        self.save()
        self.assertIn("c/config.json", self.names())
        self.assertNotIn("c/__7_0.distcp", self.names())

    def test_a_second_save_of_that_name(self):
        """Both begin where there is none, or over the same one: one of them commits."""
        from dfc.torch.checkpoint import DfcWriter
        for made in (None, state()):
            if made is not None:
                self.save("d", made)
            faster = self

            class Overtaken(DfcWriter):
                def finish(self, metadata, results):
                    faster.save("d", state(2), overwrite=True)
                    super().finish(metadata, results)
            slow = Overtaken(self.bucket, "d", overwrite=True)
            self.refused(dfc.Precondition, "was faster", dcp.save, state(1), storage_writer=slow,
                         no_dist=True)
            if made is not None:
                self.same(state(2), self.load("d"))
            self.bucket.delete("d/.metadata")

    def test_a_call_that_breaks_off_is_repeated(self):
        self.mock.plan({"at": "target", "method": "PUT", "path": "distcp", "do": "drop"},
                       {"at": "target", "method": "PUT", "path": "distcp", "do": "act"},
                       {"at": "target", "method": "PUT", "path": "metadata", "do": "act"},
                       {"at": "target", "method": "GET", "path": "distcp", "do": "cut",
                        "bytes": 100_000, "times": 3})
        made = self.save(threads=1)
        self.same(made, self.load())
        puts = [r for r in self.mock.requests(method="PUT", at="target") if "distcp" in r["path"]]
        self.assertEqual(len(puts), 3)
        self.assertEqual(self.mock.steps, [])

    def test_other_bytes_arrive(self):
        self.mock.plan({"at": "target", "method": "PUT", "path": "distcp", "do": "corrupt"})
        self.refused(dfc.Corrupt, "checksum", self.save)
        self.assertNotIn("c/.metadata", self.names())

    def test_damage_is_found(self):
        self.save(threads=1)
        name = self.names()[1]
        data = bytearray(self.bucket.get(name))
        data[len(data) // 2] ^= 1
        self.bucket.put(name, bytes(data))
        self.refused(dfc.Corrupt, "differs from what was saved", self.load)
        self.bucket.put(name, bytes(data[:-1000]))
        with self.assertRaises(CheckpointException):
            self.load()
        self.bucket.delete(name)
        self.refused(dfc.NotFound, "does not exist", self.load)

    def test_a_file_is_replaced_during_a_load(self):
        """Of a checkpoint without checksums: that of torch's writer."""
        made = {"a": torch.randn(20 << 20), "b": torch.randn(20 << 20)}
        with tempfile.TemporaryDirectory() as folder:
            dcp.save(made, storage_writer=dcp.FileSystemWriter(folder), no_dist=True)
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), "rb") as f:
                    self.bucket.put("c/" + name, f)
        self.mock.plan({"at": "target", "method": "GET", "path": "distcp", "do": "cut",
                        "bytes": 100, "change": "x" * 1000})
        into = {key: torch.zeros_like(value) for key, value in made.items()}
        with self.assertRaises(CheckpointException):
            self.load(into=into, threads=1)

    def test_no_checkpoint(self):
        with self.assertRaisesRegex(CheckpointException, "no complete checkpoint"):
            self.load("absent")
        from dfc.torch.checkpoint import DfcReader, DfcWriter, complete, latest
        self.assertEqual((complete(self.bucket), latest(self.bucket, "x")), ([], None))
        for call in (lambda: DfcWriter(self.bucket, threads=0), lambda: DfcReader(self.bucket, threads=0),
                     lambda: DfcWriter(self.bucket, file_size=0),
                     lambda: DfcReader(self.bucket).reset("dfc://other/c")):
            self.assertRaises(dfc.Invalid, call)
        self.refused(dfc.Invalid, "has no name", self.save, "")

    def test_checkpoint_id(self):
        from dfc.torch.checkpoint import DfcReader, DfcWriter
        writer, reader = DfcWriter(self.bucket), DfcReader(self.bucket)
        for name in ("run/1", "dfc://b/run/2/"):
            dcp.save({"a": torch.ones(3)}, checkpoint_id=name, storage_writer=writer, no_dist=True)
            into = {"a": torch.zeros(3)}
            dcp.load(into, checkpoint_id=name, storage_reader=reader, no_dist=True)
            self.assertEqual(into["a"].tolist(), [1, 1, 1])
        self.assertEqual(writer.checkpoint_id, "dfc://b/run/2")
        self.assertIn("run/2/.metadata", self.names("run/"))

    def test_without_collectives(self):
        from dfc.torch.checkpoint import DfcWriter
        self.refused(dfc.Invalid, "half there", dcp.save, {"a": 1}, no_dist=True,
                     storage_writer=DfcWriter(self.bucket, "c"), use_collectives=False)

    def test_extensions_are_refused(self):
        self.save(made={"a": torch.ones(3)})
        metadata = pickle.loads(self.bucket.get("c/.metadata"))
        for info in metadata.storage_data.values():
            info.transform_descriptors = ["stream.zstd"]
        self.bucket.put("c/.metadata", pickle.dumps(metadata))
        self.refused(dfc.Invalid, "extensions", self.load, into={"a": torch.zeros(3)})

    def test_async_save(self):
        from dfc.torch.checkpoint import DfcWriter
        made = state()
        del made["conj"]  # torch's copy of it is not conjugated
        kept = {key: value.clone() for key, value in made.items() if isinstance(value, torch.Tensor)}
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{folder.name}/meeting", rank=0, world_size=1)
        self.addCleanup(torch.distributed.destroy_process_group)
        saved = dcp.async_save(made, storage_writer=DfcWriter(self.bucket, "c"))
        for key in kept:
            made[key].zero_()  # the training goes on
        saved.result()
        into = self.load(into={key: torch.zeros_like(value) for key, value in kept.items()})
        for key, value in kept.items():
            self.assertTrue(torch.equal(value, into[key]), key)

    def test_a_writer_is_pickled(self):
        """As torch does for a process that saves."""
        from dfc.torch.checkpoint import DfcReader, DfcWriter
        writer = pickle.loads(pickle.dumps(DfcWriter(self.bucket, "c")))
        dcp.save({"a": torch.ones(3)}, storage_writer=writer, no_dist=True)
        reader = pickle.loads(pickle.dumps(DfcReader(self.bucket, "c")))
        into = {"a": torch.zeros(3)}
        dcp.load(into, storage_reader=reader, no_dist=True)
        self.assertEqual(into["a"].tolist(), [1, 1, 1])

    def test_the_checkpoints_of_a_run(self):
        from dfc.torch.checkpoint import complete, keep_last, latest
        for step in (9, 10, 100):
            self.bucket.put(f"run/step-{step}/.metadata", b"x")
            self.bucket.put(f"run/step-{step}/__0_0.distcp", b"x")
        self.bucket.put("run/step-101/__0_0.distcp", b"x")
        self.assertEqual(complete(self.bucket, "run"), ["run/step-9", "run/step-10", "run/step-100"])
        self.assertEqual(latest(self.bucket, "run/"), "run/step-100")
        self.assertEqual(keep_last(self.bucket, 3, "run"), [])
        self.assertEqual(keep_last(self.bucket, 4, "run"), [])
        self.assertRaises(dfc.Invalid, keep_last, self.bucket, 0, "run")

    def test_sums_are_of_the_bytes(self):
        """What the metadata say, compared with the object."""
        import xxhash
        self.save(threads=1)
        metadata = pickle.loads(self.bucket.get("c/.metadata"))
        file, = [name for name in self.names() if name.endswith("_0.distcp")]
        data = self.bucket.get(file)
        for index, info in metadata.storage_data.items():
            item = data[info.offset:info.offset + info.length]
            block = info.dfc["block"]
            self.assertEqual(info.dfc["sums"], [xxhash.xxh3_64_intdigest(item[at:at + block])
                                                for at in range(0, len(item), block)], index)
            if "data" in info.dfc:
                whole = torch.load(io.BytesIO(item), weights_only=True)
                begin = info.dfc["data"]
                again = torch.frombuffer(bytearray(item[begin:begin + whole.nbytes]),
                                         dtype=whole.dtype).reshape(whole.shape)
                self.assertTrue(torch.equal(whole, again), index)
        with_data = {i.fqn for i, info in metadata.storage_data.items() if "data" in info.dfc}
        self.assertEqual(with_data, {"weight", "half", "part", "flags", "complex"})


if __name__ == "__main__":
    python = os.environ.get("DFC_TORCH_PYTHON")
    if torch is None and python and python != sys.executable:
        os.execv(python, [python, *sys.argv])
    if torch is None:
        print("skipped: torch is not there; DFC_TORCH_PYTHON names a Python that has it")
        sys.exit(77)
    unittest.main()
