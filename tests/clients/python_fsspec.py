#!/usr/bin/python3
"""dfc:// of fsspec at real daemons: names, moves, deletions, transactions, errors, and what must not
be lost."""

import gzip
import os
import sys
import tempfile
import threading

import frame
from access_lib import GuardedCluster, make_user
from lib import check, equal, main

sys.path.insert(0, os.path.join(frame.ROOT, "python", "src"))
import fsspec  # noqa: E402 pylint: disable=wrong-import-position
from dfc.errors import Invalid  # noqa: E402 pylint: disable=wrong-import-position
from dfc.fs import JOB_MIN, DfcFileSystem  # noqa: E402 pylint: disable=wrong-import-position


class Files(GuardedCluster):
    def __init__(self, **shape):
        super().__init__(**shape)
        fsspec.register_implementation("dfc", "dfc.fs.DfcFileSystem", clobber=True)

    def files(self, user=None):
        """A file system, and an empty bucket `b`."""
        who = user or self.root
        fs = DfcFileSystem(self.endpoint, profile="", access_key=who.access, secret_key=who.secret,
                           skip_instance_cache=True,
                           **({"ca_file": self.ca_file()} if self.http.context else {}))
        if user is None:
            fs.makedirs("b", exist_ok=True)
            fs.rm("b", recursive=True)
        return fs


def raises(kind, call, *args, **options):
    try:
        call(*args, **options)
    except kind:
        return
    check(False, f"no {kind.__name__}: {args} {options}")


def pipe(fs, *names):
    for name in names:
        fs.pipe(name, name.encode())


def test_walks(c):
    fs = c.files()
    pipe(fs, "b/a", "b/d/x.csv", "b/d/y.txt", "b/d/e/z.csv", "b/de")
    equal(list(fs.walk("b")), [("b", ["d"], ["a", "de"]), ("b/d", ["e"], ["x.csv", "y.txt"]),
                               ("b/d/e", [], ["z.csv"])], "walk")
    equal(fs.find("b/d"), ["b/d/e/z.csv", "b/d/x.csv", "b/d/y.txt"], "find")
    equal(fs.find("b", maxdepth=1), ["b/a", "b/de"], "find to a depth")
    equal(fs.find("b/a"), ["b/a"], "find of a file")
    equal(fs.glob("b/**/*.csv"), ["b/d/e/z.csv", "b/d/x.csv"], "glob")
    equal(fs.du("b/d"), sum(map(len, fs.find("b/d"))), "du")
    equal((fs.isfile("b/d"), fs.isdir("b/d/"), fs.exists("b/x"), fs.exists("none/x")),
          (False, True, False, False), "what is there")
    equal((fs.size("b/a"), fs.info("dfc://b/a")["type"], fs.checksum("b/a")),
          (3, "file", fs.info("b/a")["etag"]), "info")
    for call in (fs.ls, fs.info, fs.cat_file, fs.rm, fs.open):
        raises(FileNotFoundError, call, "b/nothing")
        raises(FileNotFoundError, call, "none/nothing")
    raises(IsADirectoryError, fs.open, "b/d")
    raises(ValueError, fs.open, "b/a", "ab")


def test_options_of_s3fs(_):
    raises(Invalid, fsspec.filesystem, "dfc", endpoint_url="http://127.0.0.1:1")


def test_parts(c):
    fs = c.files()
    fs.pipe({"b/a": b"0123456789", "b/empty": b""})
    for start, end in ((None, None), (0, None), (3, 5), (-3, None), (-30, None), (-5, -2), (2, -2),
                       (8, 99), (10, 12), (99, None), (5, 5), (5, 2), (0, 0)):
        for name, data in (("b/a", b"0123456789"), ("b/empty", b"")):
            equal(fs.cat_file(name, start, end), data[start:end], f"{name} {start} {end}")
    equal(fs.cat(["b/a", "b/empty"]), {"b/a": b"0123456789", "b/empty": b""}, "cat")
    equal((fs.head("b/a", 2), fs.tail("b/a", 3), fs.read_block("b/a", 2, 3)),
          (b"01", b"789", b"234"), "blocks")
    found = fs.cat_ranges(["b/a", "b/none", "b/a"], [1, 0, 7], [3, 2, 9])
    equal((found[0], found[2], type(found[1])), (b"12", b"78", FileNotFoundError), "ranges")


def test_deletions(c):
    fs = c.files()
    client = fs.client.bucket("b")
    for count in (5, JOB_MIN + 20):
        pipe(fs, "b/dir-not", *(f"b/dir/{i}" for i in range(count)))
        client.put("dir/", b"")  # a mark of a directory, as other programs make them
        client.put("dir/sub/", b"")
        fs.rm("b/dir", recursive=True)
        equal([e.name for e in client.list()], ["dir-not"], f"left of {count}")
    raises(FileNotFoundError, fs.rm, "b/dir", recursive=True)
    pipe(fs, "b/d/1", "b/d/2", "b/d/e/3", "b/x1", "b/x2", "b/y")
    raises(IsADirectoryError, fs.rm, "b/d")
    fs.rm("b/x*")
    fs.rm(["b/y", "b/d/2"])
    equal(fs.find("b"), ["b/d/1", "b/d/e/3", "b/dir-not"], "after rm")
    fs.rm("b/d", recursive=True, maxdepth=1)
    equal(fs.find("b"), ["b/d/e/3", "b/dir-not"], "after rm to a depth")
    raises(OSError, fs.rmdir, "b")
    fs.rm("b", recursive=True)
    fs.rmdir("b")
    raises(FileNotFoundError, fs.ls, "b")


def test_moves(c):
    fs = c.files()
    fs.makedirs("b2", exist_ok=True)
    pipe(fs, "b/a", "b/d/1", "b/d/e/2")
    fs.mv("b/a", "b/a")
    fs.mv("b/a", "b/d/")
    fs.mv("b/d/a", "b/d/e")
    equal(fs.find("b"), ["b/d/1", "b/d/e/2", "b/d/e/a"], "into directories")
    raises(FileNotFoundError, fs.mv, "b/none", "b/x")
    raises(FileNotFoundError, fs.mv, "b/none", "b/none")
    for target in ("b/d", "b/d/", "b/d/e/f"):
        if target == "b/d/e/f":
            raises(ValueError, fs.mv, "b/d", target, recursive=True)
        else:
            fs.mv("b/d", target, recursive=True)
    equal(fs.find("b"), ["b/d/1", "b/d/e/2", "b/d/e/a"], "a directory into itself")
    fs.mv("b/d", "b/n", recursive=True)
    equal(fs.find("b"), ["b/n/1", "b/n/e/2", "b/n/e/a"], "a directory")
    fs.mv("b/n/e/2", "b2/two")
    fs.mv("b/n/e/a", "b/new/a")
    equal((fs.cat("b2/two"), fs.cat("b/new/a"), fs.find("b")),
          (b"b/d/e/2", b"b/a", ["b/n/1", "b/new/a"]), "other buckets")


def test_copies(c):
    fs = c.files()
    fs.client.bucket("b").put("a", b"x" * 100_000, content_type="image/jpeg", meta={"k": "v"})
    fs.cp("b/a", "b/c")
    fs.cp("b/a", "b/a")
    info = fs.client.bucket("b").head("c")
    equal((info.content_type, info.meta, info.size), ("image/jpeg", {"k": "v"}, 100_000), "a copy")
    pipe(fs, "b/d/1", "b/d/e/2")
    fs.cp("b/d", "b/f", recursive=True)
    equal(fs.find("b/f"), ["b/f/1", "b/f/e/2"], "a tree")


def test_nothing_is_replaced_that_must_not_be(c):
    fs = c.files()
    pipe(fs, "b/a")
    raises(FileExistsError, fs.pipe_file, "b/a", b"new", mode="create")
    with tempfile.NamedTemporaryFile() as local:
        raises(FileExistsError, fs.put_file, local.name, "b/a", mode="create")
    raises(FileExistsError, fs.open, "b/a", "xb")
    fs.touch("b/a", truncate=False)
    equal(fs.cat("b/a"), b"b/a", "bytes")
    fs.pipe_file("b/new", b"1", mode="create")
    with fs.open("b/late", "xb") as f:
        pipe(fs, "b/late")  # another client was faster
        f.write(b"mine")
        raises(FileExistsError, f.close)
    equal(fs.cat("b/late"), b"b/late", "the first")
    fs.touch("b/a")
    equal((fs.cat("b/a"), fs.size("b/a")), (b"", 0), "touched")
    raises(FileExistsError, fs.mkdir, "b")
    raises(FileExistsError, fs.makedirs, "b")
    fs.makedirs("b/x/y")
    fs.mkdir("b/x")
    raises(FileNotFoundError, fs.makedirs, "misspelled/x", exist_ok=True)
    raises(FileNotFoundError, fs.pipe, "misspelled/x/y", b"x")
    check(not fs.exists("misspelled"), "a bucket was made on the way to an object")


def test_downloads(c):
    """Two of one file at a time give one whole file; one that fails leaves nothing."""
    fs = c.files()
    data = os.urandom(5_000_000)
    fs.pipe("b/large", data)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sub", "file")
        threads = [threading.Thread(target=fs.get_file, args=("b/large", path)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with open(path, "rb") as f:
            check(f.read() == data, "the file has other bytes")
        moved = []

        class Counting(fsspec.Callback):
            def relative_update(self, inc=1):
                moved.append(inc)

        fs.get_file("b/large", path, callback=Counting())
        equal(sum(moved), len(data), "bytes that were told of")

        class Failing(fsspec.Callback):
            def relative_update(self, inc=1):
                raise InterruptedError

        raises(InterruptedError, fs.get_file, "b/large", path + "2", callback=Failing())
        raises(FileNotFoundError, fs.get_file, "b/none", path + "3")
        equal(os.listdir(os.path.dirname(path)), ["file"], "files")


def test_files_that_compress(c):
    fs = c.files()
    for mode, text in (("wb", b"lines\n" * 1000), ("wt", "lines\n" * 1000)):
        with fs.open("b/a.gz", mode, compression="gzip") as f:
            f.write(text)
        equal(gzip.decompress(fs.cat("b/a.gz")), b"lines\n" * 1000, mode)
        with fs.open("b/a.gz", mode.replace("w", "r"), compression="infer") as f:
            equal(f.read(), text, mode)
    try:
        with fs.open("b/half.gz", "wb", compression="gzip") as f:
            f.write(b"half")
            raise InterruptedError
    except InterruptedError:
        pass
    with fs.open("b/plain.txt", "wb", compression="infer") as f:
        f.write(b"plain")
    equal((fs.find("b"), fs.cat("b/plain.txt")), (["b/a.gz", "b/plain.txt"], b"plain"), "files")


def test_transactions(c):
    fs = c.files()
    with fs.transaction:
        for name in ("b/1", "b/2"):
            with fs.open(name, "wb") as f:
                f.write(b"x")
        equal(fs.find("b"), [], "before the end")
    equal(fs.find("b"), ["b/1", "b/2"], "after it")
    try:
        with fs.transaction:
            with fs.open("b/3", "wb") as f:
                f.write(b"x")
            raise InterruptedError
    except InterruptedError:
        pass
    equal(fs.find("b"), ["b/1", "b/2"], "after one that failed")


def test_rights(c):
    fs = c.files()
    pipe(fs, "b/a")
    reader = c.files(make_user(c, "reads", [{"rights": ["read", "list"], "bucket": "b"}]))
    equal((reader.cat("b/a"), reader.find("b")), (b"b/a", ["b/a"]), "a reader")
    reader.makedirs("b/x", exist_ok=True)
    for call in (lambda: reader.pipe("b/a", b"x"), lambda: reader.rm("b/a"),
                 lambda: reader.mv("b/a", "b/c"), lambda: reader.cp("b/a", "b/c")):
        raises(PermissionError, call)


def test_a_bucket_without_checksums(c):
    fs = c.files()
    fs.mkdir("plain", checksum="none")
    pipe(fs, "plain/a")
    fs.cp("plain/a", "plain/b")
    equal(fs.cat("plain/b"), b"plain/a", "bytes")
    equal(fs.client.bucket("plain").put("c", b"x").checksum, "", "checksum")


if __name__ == "__main__":
    main(Files, targets=2)
