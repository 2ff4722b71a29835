#!/usr/bin/env python3
"""s3torchconnector, which is AWS's SDK for C under PyTorch: data sets, readers and checkpoints at a
proxy and at a target of a cluster with access control."""

import functools
import os
import random
import tempfile

import frame  # noqa: F401 (first: the next ones are found by it)
from large_lib import daemons_stay_small, large_data, tag_of
from lib import Failed, check, equal
from s3_lib import S3, S3Cluster
from venv_lib import run_beside

SAMPLES = {f"train/{i:02}": random.Random(i).randbytes(10_000 + i) for i in range(25)}
LARGE = large_data(17, 17)


def use_keys(access, secret, _worker=None):
    """The SDK takes them from the environment, and nothing from the files of who runs the test."""
    nowhere = os.path.join(tempfile.gettempdir(), "none")
    os.environ.update(AWS_ACCESS_KEY_ID=access, AWS_SECRET_ACCESS_KEY=secret,
                      AWS_CONFIG_FILE=nowhere, AWS_SHARED_CREDENTIALS_FILE=nowhere)


class TorchCluster(S3Cluster):
    """Its root is the user of this process."""

    def __init__(self, **shape):
        super().__init__(**shape)
        use_keys(self.root.access, self.root.secret)


def place(c, node):
    """What each class of the package takes."""
    from s3torchconnector import S3ClientConfig
    return {"region": "us-east-1", "endpoint": c.s3_url(node),
            "s3client_config": S3ClientConfig(force_path_style=True, max_attempts=2)}


def checkpoints(c):
    from s3torchconnector import S3Checkpoint
    for node in ("p1", "t1"):
        yield node, S3Checkpoint(**place(c, node))


def write(checkpoint, uri, data):
    with checkpoint.writer(uri) as out:
        out.write(data)


def read_sample(reader):
    """A transform: it goes to the workers of a loader, and so has a name."""
    return reader.key, reader.read()


def refused(call, word):
    from s3torchconnector import S3Exception
    try:
        call()
    except S3Exception as e:
        check(word in str(e), f"the error {e} has no {word}")
        return
    raise Failed(f"no error with {word}")


def test_checkpoints(c):
    import torch
    c.create("box")
    weights = {"a": torch.arange(100_000, dtype=torch.float32), "b": torch.zeros(3, 4)}
    for node, checkpoint in checkpoints(c):
        uri = f"s3://box/{node}.pt"
        with checkpoint.writer(uri) as out:
            torch.save(weights, out)
        with checkpoint.reader(uri) as stored:
            loaded = torch.load(stored)
        check(all(torch.equal(loaded[k], weights[k]) for k in weights), "other tensors")
        refused(lambda: checkpoint.reader("s3://box/none").read(), "The key does not exist")


def test_a_large_checkpoint_goes_in_parts(c):
    for node, checkpoint in checkpoints(c):
        uri = f"s3://box/large-{node}"
        write(checkpoint, uri, LARGE)
        root = S3(c, c.root.access, c.root.secret)
        tag = root.call("HEAD", f"/box/large-{node}").expect(200).headers["ETag"]
        check(tag.endswith(tag_of(LARGE, 8)), f"the tag {tag} of parts")
        check(checkpoint.reader(uri).read() == LARGE, "other bytes")
        root.call("DELETE", f"/box/large-{node}").expect(204)
    daemons_stay_small(c)


def test_a_map_of_samples(c):
    from s3torchconnector import S3MapDataset
    _, checkpoint = next(checkpoints(c))
    for name, data in SAMPLES.items():
        write(checkpoint, f"s3://box/{name}", data)
    for node in ("p1", "t1"):
        samples = S3MapDataset.from_prefix("s3://box/train/", transform=read_sample,
                                           **place(c, node))
        equal(len(samples), len(SAMPLES), "the length")
        check(dict(samples[i] for i in range(len(samples))) == SAMPLES, "other samples")
        some = S3MapDataset.from_objects(["s3://box/train/03", "s3://box/train/01"],
                                         transform=read_sample, **place(c, node))
        check(some[1] == ("train/01", SAMPLES["train/01"]), "another sample")


def test_workers_share_an_iterable(c):
    import torch
    from s3torchconnector import S3IterableDataset
    for node in ("p1", "t1"):
        samples = S3IterableDataset.from_prefix("s3://box/train/", transform=read_sample,
                                                enable_sharding=True, **place(c, node))
        check(dict(samples) == SAMPLES, "other samples")
        init = functools.partial(use_keys, c.root.access, c.root.secret)
        loader = torch.utils.data.DataLoader(samples, batch_size=None, num_workers=2,
                                             multiprocessing_context="spawn", worker_init_fn=init)
        got = list(loader)
        equal(len(got), len(SAMPLES), "samples of two workers")
        check(dict(got) == SAMPLES, "other samples of two workers")


def test_a_reader_of_ranges(c):
    from s3torchconnector import S3MapDataset, S3ReaderConstructor
    data = SAMPLES["train/07"]
    for node in ("p1", "t1"):
        for buffer in (0, 4096):
            constructor = S3ReaderConstructor.range_based(buffer_size=buffer)
            reader = S3MapDataset.from_objects(["s3://box/train/07"], reader_constructor=constructor,
                                               **place(c, node))[0]
            reader.seek(5000)
            check(reader.read(10) == data[5000:5010], "other bytes of a range")
            reader.seek(-5, 2)
            check(reader.read() == data[-5:], "other bytes of the end")


def test_a_wrong_key(c):
    use_keys(c.root.access, "wrong")
    try:
        for _, checkpoint in checkpoints(c):
            refused(lambda: checkpoint.reader("s3://box/p1.pt").read(), "The signature is not that")
    finally:
        use_keys(c.root.access, c.root.secret)


if __name__ == "__main__":
    run_beside("torch", "s3torchconnector",
               ("s3torchconnector==1.5.0", "s3torchconnectorclient==1.5.0"), TorchCluster, targets=2)
