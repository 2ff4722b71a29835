#!/usr/bin/python3
"""WebDataset and wids read and write dfc://, by the packages of the Python package index: shards of a
real sort, its index, workers, errors.

Skipped where webdataset cannot be installed.  The package wids needs torch: it is tested if
DFC_TORCH_PYTHON has it.  dfc's own reader of the index is tested always."""

import io
import os
import subprocess
import sys
import tarfile
import tempfile

import frame
from access_lib import GuardedCluster
from lib import check, equal, main
from venv_lib import imports, python_with

SOURCE = os.path.join(frame.ROOT, "python", "src")
sys.path.insert(0, SOURCE)
import dfc.shards  # noqa: E402 pylint: disable=wrong-import-position

PACKAGES = ("webdataset==1.0.2", "xxhash==4.1.0")
KEYS = [f"s/{i:03}" for i in range(60)]

BEGIN = """
import sys
import dfc.webdataset
dfc.webdataset.register()
"""
READ = BEGIN + """
import webdataset
for sample in webdataset.WebDataset(sys.argv[1], shardshuffle=False):
    print(sample["__key__"], len(sample["bin"]), sample["cls"].decode())
"""
WRITE = BEGIN + """
import webdataset
with webdataset.ShardWriter("dfc://b/written/%03d.tar", maxcount=20) as writer:
    for i in range(60):
        writer.write({"__key__": f"s/{i:03}", "bin": bytes(i), "cls": str(i % 7)})
"""
WORKERS = BEGIN + """
import torch, webdataset
if __name__ == "__main__":
    for context in ("fork", "spawn"):
        data = webdataset.WebDataset(sys.argv[1], shardshuffle=10)
        loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=2,
                                             multiprocessing_context=context,
                                             worker_init_fn=dfc.webdataset.register)
        print(*sorted(sample["__key__"] for sample in loader))
"""
WIDS = BEGIN + """
import wids
data = wids.ShardListDataset(sys.argv[1], cache_dir=sys.argv[2], transformations=[])
for i in range(len(data)):
    print(data[i]["__key__"], len(data[i][".bin"].read()), data[i][".cls"].read().decode())
"""


def run(c, program, *args):
    """Its lines; as a file, for spawned workers import it again."""
    env = {**os.environ, "DFC_ENDPOINT": c.endpoint, "DFC_ACCESS_KEY": c.root.access,
           "DFC_SECRET_KEY": c.root.secret, "DFC_PROFILE": "", "PYTHONPATH": SOURCE,
           "no_proxy": "127.0.0.1", "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(program)
        file.flush()
        return subprocess.run([PYTHON, "-W", "ignore", file.name, *args], env=env, check=False,
                              capture_output=True, text=True, timeout=300)


def lines(c, program, *args):
    done = run(c, program, *args)
    equal(done.returncode, 0, f"the end of the program: {done.stderr}")
    return done.stdout.splitlines()


def bucket_of(c):
    client = dfc.Client(c.endpoint, profile="", access_key=c.root.access, secret_key=c.root.secret)
    return client, client.bucket("b").create(exist_ok=True)


def expected(key):
    number = int(key[2:])
    return f"{key} {number} {number % 7}"


def test_what_webdataset_writes_it_reads(c):
    _, bucket = bucket_of(c)
    lines(c, WRITE)
    equal([e.name for e in bucket.list("written/")],
          [f"written/{i:03}.tar" for i in range(3)], "shards")
    equal(lines(c, READ, "dfc://b/written/{000..002}.tar"), list(map(expected, KEYS)), "samples")
    equal(sorted(sample["__key__"] for sample in dfc.shards.ShardReader(
        bucket, "written/{000..002}.tar")), KEYS, "by dfc.shards")


def test_errors(c):
    bucket_of(c)
    for url, kind in (("dfc://b/none.tar", "NotFound"), ("dfc://none/x.tar", "NotFound"),
                      ("dfc://b", "Invalid")):
        done = run(c, READ, url)
        check(done.returncode != 0 and f"dfc.errors.{kind}" in done.stderr, f"{url}: {done.stderr}")


def unsorted_shards(bucket):
    for first in range(0, 60, 15):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for key in KEYS[first:first + 15][::-1]:
                for extension, data in (("bin", bytes(int(key[2:]))),
                                        ("cls", str(int(key[2:]) % 7).encode())):
                    member = tarfile.TarInfo(f"{key}.{extension}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
        bucket.put(f"in-{first // 15}.tar", out.getvalue())


def test_the_index_of_a_sort(c):
    client, bucket = bucket_of(c)
    unsorted_shards(bucket)
    client.sort({"input_bck": {"name": "b"}, "input_format": {"template": "in-{0..3}.tar"},
                 "output_format": "sorted/deep/%03d.tar", "output_shard_size": "16KiB",
                 "wids_index": "sorted/index.json"}).wait(timeout=120)
    index = dfc.shards.read_index(bucket, "sorted/index.json")
    check(len(index.names) > 2, f"shards of the sort: {index.names}")
    equal(len(index), 60, "samples")
    found = [sample["__key__"] for sample in dfc.shards.ShardReader(bucket, index.names, shuffle=False)]
    equal(found, KEYS, "samples in the order of the sort")
    if imports(PYTHON, "wids"):
        with tempfile.TemporaryDirectory() as cache:
            equal(lines(c, WIDS, "dfc://b/sorted/index.json", cache), list(map(expected, KEYS)),
                  "samples by wids")


def test_workers(c):
    if not imports(PYTHON, "torch"):
        return
    _, bucket = bucket_of(c)
    unsorted_shards(bucket)
    equal(lines(c, WORKERS, "dfc://b/in-{0..3}.tar"), [" ".join(KEYS)] * 2, "samples of workers")


if __name__ == "__main__":
    PYTHON = python_with("webdataset", PACKAGES)
    main(GuardedCluster, targets=2)
