"""What aistore_torch.py has the datasets of aistore.pytorch do, in the SDK's own Python:
aistore_torch_calls.py URL SET SITE, of which SITE is the folder of torch"""

import io
import os
import pathlib
import sys
import tarfile
import tempfile

URL, SET, SITE = sys.argv[1:4]
sys.path.append(SITE)  # behind the SDK's own packages

# pylint: disable=wrong-import-position
from aistore.pytorch import (AISIterDataset, AISMapDataset, AISMultiShardStream,  # noqa: E402
                             AISParallelMapDataset, AISShardReader, DynamicBatchSampler)
from aistore.pytorch.batch_iter_dataset import AISBatchIterDataset  # noqa: E402
from aistore.sdk import Client, DataShard  # noqa: E402
from aistore.sdk.dataset.data_attribute import DataAttribute  # noqa: E402
from aistore.sdk.dataset.dataset_config import DatasetConfig  # noqa: E402
from aistore.sdk.dataset.label_attribute import LabelAttribute  # noqa: E402
from aistore_checks import equal  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

SAMPLES = {f"train/{i:03}": bytes([i]) * (i * 100 + 1) for i in range(40)}
OTHERS = {f"valid/{i}": b"other" * (i + 1) for i in range(5)}


def put(bucket, objects):
    for name, data in objects.items():
        bucket.object(name).get_writer().put_content(data)
    return bucket


def made(c, name, objects):
    return put(c.bucket(name).create(), objects)


def samples_of(loader):
    """Of batches that a DataLoader makes of (name, bytes)."""
    return [pair for names, data in loader for pair in zip(names, data)]


def check_all(pairs, wanted, what):
    """Each sample exactly once, whoever has read it."""
    equal(len(pairs), len(wanted), f"samples, {what}")
    equal(dict(pairs) == wanted, True, f"bytes, {what}")


# --- objects -------------------------------------------------------------------------------------


def map_dataset(_, one, two):
    data = AISMapDataset([one, two], prefix_map={one: "train/"})
    equal(len(data), len(SAMPLES) + len(OTHERS), "length")
    equal(data[7], ("train/007", SAMPLES["train/007"]), "a sample")
    try:
        data[len(data)]
    except IndexError:
        pass
    else:
        raise AssertionError("an index beyond the end")
    for workers in (0, 2):
        for shuffle in (False, True):
            loader = DataLoader(data, batch_size=7, num_workers=workers, shuffle=shuffle)
            check_all(samples_of(loader), {**SAMPLES, **OTHERS}, f"{workers} workers")


def iter_dataset(_, one, two):
    data = AISIterDataset([one, two], prefix_map={one: ["train/00", "train/01"]})
    wanted = {n: d for n, d in SAMPLES.items() if n < "train/02"} | OTHERS
    equal(len(data), len(wanted), "length")
    for workers in (0, 1, 3):
        check_all(samples_of(DataLoader(data, batch_size=4, num_workers=workers)), wanted,
                  f"{workers} workers")
    apart = AISIterDataset([one, two], partition_sources_by_worker=True)
    check_all(samples_of(DataLoader(apart, num_workers=2)), {**SAMPLES, **OTHERS}, "a bucket a worker")


def group_dataset(_, one, __):
    names = ["train/001", "train/030"]
    data = AISMapDataset(one.objects(obj_names=names))
    equal([data[i] for i in range(len(data))], [(n, SAMPLES[n]) for n in names], "named objects")


def parallel_dataset(_, one, __):
    big = os.urandom(9 << 20)
    put(one, {"big/o": big})
    data = AISParallelMapDataset(one, prefix_map={one: "big/"}, num_workers=4)
    name, content = data[0]
    with content:
        equal((name, content.tobytes() == big), ("big/o", True), "in ranges")
    one.object("big/o").delete()


def sampler(_, one, __):
    data = AISMapDataset(one)
    for shuffle in (False, True):
        batches = list(DynamicBatchSampler(data, max_batch_size=5000, shuffle=shuffle))
        equal(sorted(i for batch in batches for i in batch), list(range(len(SAMPLES))), "indices")
        sizes = [sum(len(data[i][1]) for i in batch) for batch in batches]
        assert max(sizes) <= 5000, sizes


def objects(c):
    one, two = made(c, "sdk-train", SAMPLES), made(c, "sdk-valid", OTHERS)
    for step in (map_dataset, iter_dataset, group_dataset, parallel_dataset, sampler):
        step(c, one, two)
    one.delete()
    two.delete()


# --- shards --------------------------------------------------------------------------------------


def shard_of(numbers, *extensions):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in numbers:
            for extension in extensions:
                info = tarfile.TarInfo(f"dir/{i:04}.{extension}")
                data = content(i, extension)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def content(i, extension):
    return f"{extension} of {i}".encode() * 50


def shard_reader(c):
    shards = {f"s-{s}.tar": shard_of(range(s * 20, s * 20 + 20), "jpg", "cls") for s in range(4)}
    b = made(c, "sdk-shards", shards)
    data = AISShardReader(b)
    wanted = {f"{i:04}": {e: content(i, e) for e in ("jpg", "cls")} for i in range(80)}
    equal({key: dict(files) for key, files in data} == wanted, True, "samples")
    for workers in (2, 3):
        keys = [key for batch, _ in DataLoader(data, batch_size=8, num_workers=workers) for key in batch]
        equal(sorted(keys), sorted(wanted), f"{workers} workers")
    some = AISShardReader(b, prefix_map={b: "s-1"})
    equal([key for key, _ in some], [f"{i:04}" for i in range(20, 40)], "of a prefix")
    b.delete()


def multi_shard_stream(c):
    """Members of shards in two buckets, side by side; one kind of shard is packed."""
    made(c, "sdk-images", {f"s-{s}.tar": shard_of(range(s * 9, s * 9 + 9), "jpg") for s in range(3)})
    made(c, "sdk-labels", {"all.tgz": packed(shard_of(range(27), "cls"))})
    stream = AISMultiShardStream([DataShard(URL, "sdk-images", prefix="s-"),
                                  DataShard(URL, "sdk-labels")])
    equal(list(stream), [(content(i, "jpg"), content(i, "cls")) for i in range(27)], "pairs")
    c.bucket("sdk-images").delete()
    c.bucket("sdk-labels").delete()


def packed(data):
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as old, tarfile.open(fileobj=out, mode="w:gz") as new:
        for member in old:
            new.addfile(member, old.extractfile(member))
    return out.getvalue()


def written_dataset(c):
    """bucket.write_dataset(): the SDK makes shards of files, which a reader reads."""
    b = c.bucket("sdk-written").create()
    with tempfile.TemporaryDirectory() as folder:
        for i in range(30):
            with open(os.path.join(folder, f"{i:02}.jpg"), "wb") as f:
                f.write(content(i, "jpg"))
        os.chdir(folder)  # shards are files of the working directory before they are objects
        b.write_dataset(DatasetConfig(
            primary_attribute=DataAttribute(path=pathlib.Path(folder), name="image", file_type="jpg"),
            secondary_attributes=[LabelAttribute("cls", lambda stem: stem)]),
            pattern="made", maxcount=10, verbose=False)
        os.chdir("/")
    equal(sorted(o.name for o in b.list_all_objects()), [f"made-{i:02}.tar" for i in range(3)], "shards")
    samples = [dict(files) for _, files in AISShardReader(b)]
    equal(len(samples), 30, "samples")
    equal(all(s["jpg"] == content(int(s["cls"]), "jpg") for s in samples), True, "files of one sample")
    b.delete()


def shards(c):
    shard_reader(c)
    multi_shard_stream(c)
    written_dataset(c)


# --- batches -------------------------------------------------------------------------------------


def batches(c):
    one, two = made(c, "sdk-batch-1", SAMPLES), made(c, "sdk-batch-2", OTHERS)
    for extension in (".tar", ".tgz", ".zip"):
        for streams in (True, False):
            data = AISBatchIterDataset([one, two], c, max_batch_size=16, output_format=extension,
                                       streaming=streams)
            what = f"{extension}, streaming: {streams}"
            equal(list(data) == [*SAMPLES.items(), *OTHERS.items()], True, what)
    data = AISBatchIterDataset([one, two], c, max_batch_size=16)
    check_all(samples_of(DataLoader(data, batch_size=5, num_workers=2)), {**SAMPLES, **OTHERS}, "workers")
    one.delete()
    two.delete()


# --- a target that is gone -----------------------------------------------------------------------


def fill(c):
    put(c.bucket("sdk-copies"), SAMPLES)


def epoch(_):
    """By a client that repeats what fails for now."""
    b = Client(URL).bucket("sdk-copies")
    check_all(samples_of(DataLoader(AISMapDataset(b), batch_size=8, num_workers=2)), SAMPLES, "an epoch")
    check_all(samples_of(DataLoader(AISIterDataset(b), batch_size=8)), SAMPLES, "another one")


SETS = {"objects": objects, "shards": shards, "batches": batches, "fill": fill, "epoch": epoch}

if __name__ == "__main__":
    SETS[SET](Client(URL, retry_config=None))
