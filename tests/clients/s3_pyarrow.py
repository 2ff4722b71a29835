#!/usr/bin/env python3
"""pyarrow's S3 file system, which is AWS's SDK for C++, at a proxy and at a target of a cluster with
access control."""

import random

import frame  # noqa: F401 (first: the next ones are found by it)
from large_lib import daemons_stay_small, large_data, tag_of
from lib import Failed, check, equal
from s3_lib import S3, S3Cluster
from venv_lib import run_with

DATA = random.Random(15).randbytes(3_000_001)
LARGE = large_data(16, 23)  # more than two parts of 10 MiB


def files_at(c, node, secret=None):
    from pyarrow import fs
    return fs.S3FileSystem(access_key=c.root.access, secret_key=secret or c.root.secret,
                           scheme="http", endpoint_override=c.s3_url(node).split("//")[1],
                           region="us-east-1", allow_bucket_creation=True,
                           allow_bucket_deletion=True)


def each_node(c):
    for node in ("p1", "t1"):
        yield node, files_at(c, node)


def write(files, path, data, pieces=1 << 20, **options):
    with files.open_output_stream(path, **options) as out:
        for at in range(0, len(data), pieces):
            out.write(data[at:at + pieces])


def same(files, path, data):
    with files.open_input_stream(path) as stream:
        check(stream.read() == data, f"{path}: other bytes")


def head(c, path):
    """What HeadObject says."""
    return S3(c, c.root.access, c.root.secret).call("HEAD", "/" + path).expect(200).headers


def refused(call, word):
    try:
        call()
    except OSError as e:
        check(word in str(e), f"the error {e} has no {word}")
        return
    raise Failed(f"no error with {word}")


def test_buckets(c):
    for node, files in each_node(c):
        files.create_dir(f"box-{node}")
        check(files.get_file_info(f"box-{node}").type.name == "Directory", "there is no bucket")
        check(files.get_file_info("none").type.name == "NotFound", "there is a bucket")


def test_objects(c):
    for node, files in each_node(c):
        path = f"box-p1/{node}"
        write(files, path, DATA, metadata={"Content-Type": "text/plain"})
        same(files, path, DATA)
        write(files, path + "-empty", b"")
        same(files, path + "-empty", b"")
        info = files.get_file_info(path)
        equal((info.type.name, info.size), ("File", len(DATA)), "what is known of the object")
        with files.open_input_stream(path) as stream:
            equal(stream.metadata()["Content-Type"], b"text/plain", "type")
        stored = c.call("GET", "/v1/objects/" + path, node="t1").expect(200)
        check(stored.body == DATA, "other bytes of the native API")
        refused(lambda: files.open_input_stream("box-p1/none"), "none")


def test_ranges(c):
    for node, files in each_node(c):
        with files.open_input_file(f"box-p1/{node}") as f:
            equal(f.size(), len(DATA), "size")
            equal(f.read_at(10, 10), DATA[10:20], "a range")
            equal(f.read_at(10, len(DATA) - 3), DATA[-3:], "a range over the end")
            f.seek(1_000_000)
            equal(f.read(5), DATA[1_000_000:1_000_005], "a range after a seek")


def test_a_stream_goes_in_parts(c):
    """The stream sends each part when it is full, in the background."""
    for node, files in each_node(c):
        path = f"box-p1/large-{node}"
        write(files, path, LARGE)
        same(files, path, LARGE)
        etag = head(c, path)["ETag"]
        check(etag.endswith(tag_of(LARGE, 10)), f"the tag {etag} of parts")
        files.delete_file(path)
    daemons_stay_small(c)


def test_copies_and_moves(c):
    for node, files in each_node(c):
        files.copy_file(f"box-p1/{node}", f"box-t1/copy-{node}")
        same(files, f"box-t1/copy-{node}", DATA)
        files.move(f"box-t1/copy-{node}", f"box-t1/moved-{node}")
        same(files, f"box-t1/moved-{node}", DATA)
        equal(files.get_file_info(f"box-t1/copy-{node}").type.name, "NotFound", "what was moved")


def test_lists(c):
    from pyarrow import fs
    names = sorted(f"box-p1/list/{d}/{i:02}" for d in "xy" for i in range(5))
    for name in names:
        write(files_at(c, "p1"), name, b"x")
    for _, files in each_node(c):
        found = files.get_file_info(fs.FileSelector("box-p1/list", recursive=True))
        equal(sorted(i.path for i in found if i.is_file), names, "a whole folder")
        found = files.get_file_info(fs.FileSelector("box-p1/list"))
        equal(sorted(i.path for i in found), ["box-p1/list/x", "box-p1/list/y"], "one level")


def test_a_parquet_dataset(c):
    import pyarrow
    from pyarrow import dataset
    table = pyarrow.table({"n": list(range(1000)), "kind": [f"k{i % 3}" for i in range(1000)]})
    for node, files in each_node(c):
        place = f"box-p1/parquet-{node}"
        dataset.write_dataset(table, place, format="parquet", filesystem=files,
                              partitioning=["kind"], partitioning_flavor="hive")
        read = dataset.dataset(place, format="parquet", filesystem=files, partitioning="hive")
        equal(read.to_table().sort_by("n").select(["n", "kind"]).to_pydict(), table.to_pydict(),
              "the table")
        equal(read.to_table(filter=dataset.field("kind") == "k1").num_rows, 333, "rows of one kind")


def test_a_wrong_key(c):
    for node in ("p1", "t1"):
        files = files_at(c, node, secret="wrong")
        refused(lambda: files.open_output_stream("box-p1/refused").close(), "SIGNATURE_DOES_NOT_MATCH")
        # A HEAD has no document that could name the code.
        refused(lambda: files.open_input_file(f"box-p1/{node}"), "ACCESS_DENIED")


def test_deletes(c):
    for node, files in each_node(c):
        files.delete_file(f"box-p1/{node}")
        equal(files.get_file_info(f"box-p1/{node}").type.name, "NotFound", "what was deleted")
    for node, files in each_node(c):
        files.delete_dir_contents(f"box-{node}")
        files.delete_dir(f"box-{node}")
        equal(files.get_file_info(f"box-{node}").type.name, "NotFound", "the bucket")


if __name__ == "__main__":
    run_with("pyarrow", ("pyarrow==26.0.1",), S3Cluster, targets=2)
