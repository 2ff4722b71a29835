#!/usr/bin/env python3
"""dfcctl's archives: folders that become shards, and the members of archives.

DFC_BUILD names the build directory.  Python's standard library only."""
import gzip
import io
import os
import socket
import subprocess
import sys
import tarfile
import unittest
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
from dfcctl_case import Case, pattern  # noqa: E402
import formats  # noqa: E402


def members(data):
    """[(name, contents)] of a tar, in its order."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as t:
        return [(m.name, t.extractfile(m).read()) for m in t.getmembers()]


class Shards(Case):
    def setUp(self):
        super().setUp()
        self.mock.create("b")

    def shards(self):
        return self.mock.objects("b")

    def make(self, count=20):
        """A folder, and its members in the order of their keys."""
        for i in range(count):
            self.write(f"d/part-{i % 3}/{i:04}.jpg", pattern(1000 + 700 * i, i))
            self.write(f"d/part-{i % 3}/{i:04}.cls", b"%d" % i)
        order = sorted((f"part-{i % 3}/{i:04}", i) for i in range(count))
        return [m for key, i in order for m in ((key + ".cls", b"%d" % i),
                                                (key + ".jpg", pattern(1000 + 700 * i, i)))]

    def test_a_folder_becomes_shards(self):
        wanted = self.make()
        doc = self.json("put", "d", "dfc://b/train/", "--shards", "30KiB")
        names = sorted(self.shards())
        self.assertEqual(doc["done"], len(names))
        self.assertGreater(len(names), 4)
        self.assertEqual(names, [f"train/d-{i:06}.tar" for i in range(len(names))])
        got = [members(self.shards()[n]) for n in names]
        self.assertEqual([m for shard in got for m in shard], wanted)
        for shard, name in zip(got, names):
            self.assertEqual(len(shard) % 2, 0, "records are not parted")
            self.assertGreaterEqual(len(self.shards()[name]), 30 << 10 if name != names[-1] else 0)
        before = dict(self.shards())
        self.run_ctl("put", "d/", "b/train/", "--shards", "30KiB", "-j", "1")
        self.assertEqual(self.shards(), before)
        self.run_ctl("put", "d/.", "b/train/", "--shards", "30KiB")
        self.assertEqual(self.shards(), before)
        info = self.json("object", "head", "b/train/d-000000.tar")
        self.assertEqual(info["content_type"], "application/x-tar")

    def test_formats(self):
        wanted = self.make(5)
        tars = {"tar": bytes, "tar.gz": gzip.decompress, "tar.zst": formats.unzstd,
                "tar.lz4": formats.unlz4}
        for name, plain in tars.items():
            self.run_ctl("put", "d", "b/x", "--shards", "1GiB", "--format", name)
            self.assertEqual(members(plain(self.shards()[f"x-000000.{name}"])), wanted)
        self.run_ctl("put", "d", "b/x", "--shards", "1GiB", "--format", "zip")
        with zipfile.ZipFile(io.BytesIO(self.shards()["x-000000.zip"])) as z:
            self.assertEqual([(n, z.read(n)) for n in z.namelist()], wanted)

    def test_key_by_dir(self):
        for i in range(3):
            self.write(f"d/{i}/image.jpg", b"image%d" % i)
            self.write(f"d/{i}/label", b"%d" % i)
        self.run_ctl("put", "d", "b/s", "--shards", "1", "--key-by", "dir")
        self.assertEqual([members(self.shards()[f"s-{i:06}.tar"]) for i in range(3)],
                         [[(f"{i}.image.jpg", b"image%d" % i), (f"{i}.label", b"%d" % i)]
                          for i in range(3)])

    def test_odd_names(self):
        names = ["a b.jpg", "ü/ñ日本.jpg", "new\nline.jpg", "back\\slash.jpg", "x" * 200 + ".jpg",
                 "-r.jpg", "\"'.jpg", "deep/" * 30 + "f.jpg"]
        for n in names:
            self.write("d/" + n, n.encode())
        self.write("d/empty.jpg", b"")
        self.run_ctl("put", "d", "b", "--shards", "1MiB")
        self.assertEqual(dict(members(self.shards()["d-000000.tar"])),
                         {**{n: n.encode() for n in names}, "empty.jpg": b""})

    def test_what_makes_no_record(self):
        self.write("d/a.jpg", b"1")
        for name, why in (("README", "has no extension"), (".hidden", "begins with a dot")):
            path = self.write("d/" + name, b"1")
            self.run_ctl("put", "d", "b", "--shards", "1MiB", code=1)
            self.assertIn(why, self.err)
            self.assertIn("nothing was stored", self.err)
            os.unlink(path)
        os.symlink("nowhere", self.path("d/gone.jpg"))
        self.run_ctl("put", "d", "b", "--shards", "1MiB", code=1)
        self.assertIn("d/gone.jpg", self.err)
        os.unlink(self.path("d/gone.jpg"))
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.path("d/s.jpg"))
            self.run_ctl("put", "d", "b", "--shards", "1MiB", code=1)
        self.assertIn("a socket", self.err)
        with open(os.path.join(os.fsencode(self.path("d")), b"\xff.jpg"), "wb"):
            pass
        self.run_ctl("put", "d", "b", "--shards", "1MiB", code=1)
        self.assertIn("not UTF-8", self.err)
        self.assertEqual(self.shards(), {})

    def test_refusals(self):
        os.mkdir(self.path("d"))
        self.run_ctl("put", "d", "b", "--shards", "1MiB", code=4)
        self.assertIn("no file", self.err)
        self.run_ctl("put", "d", "b", "--shards", "1MiB", "--allow-empty")
        self.write("f.jpg", b"1")
        self.run_ctl("put", "f.jpg", "b", "--shards", "1MiB", code=2)
        self.run_ctl("put", "d", "d", "b", "--shards", "1MiB", code=2)
        self.run_ctl("put", "d", "b", "--shards", "0", code=2)
        self.run_ctl("put", "d", "b", "--key-by", "dir", code=2)
        self.assertIn("need --shards", self.err)
        self.run_ctl("put", "d", "b", "--shards", "1MiB", "--format", "rar", code=2)
        self.write("d/a.jpg", b"1")
        self.run_ctl("put", "d", "nobucket", "--shards", "1MiB", code=3)

    def test_shards_of_a_larger_folder(self):
        self.make()
        others = {"train/d-000000.tar.gz", "train/d-00000.tar", "train/d-000099.txt", "train/dd-000099.tar"}
        for name in others:
            self.run_ctl("put", "d/part-0/0000.cls", f"b/{name}")
        self.run_ctl("put", "d", "b/train/", "--shards", "30KiB")
        before = dict(self.shards())
        for i in range(10, 20):
            for kind in ("jpg", "cls"):
                os.unlink(f"{self.dir}/d/part-{i % 3}/{i:04}.{kind}")
        self.run_ctl("put", "d", "b/train/", "--shards", "30KiB", code=1)
        self.assertIn("--delete removes them", self.err)
        self.assertIn("'b/train/d-000004.tar'", self.err)
        self.assertNotIn("'b/train/d-000000.tar'", self.err)
        self.assertEqual(self.shards(), before)
        self.run_ctl("put", "d", "b/train/", "--shards", "30KiB", "--delete", code=2)
        self.assertIn("--yes", self.err)
        self.run_ctl("put", "d", "b/train/", "--shards", "30KiB", "--delete", "--yes", "--if-absent", code=2)
        self.assertIn("--delete does not go with --if-absent", self.err)
        self.assertEqual(self.shards(), before)
        self.mock.plan({"at": "target", "method": "PUT", "do": "status", "status": 507, "code": "no_space"})
        self.run_ctl("put", "d", "b/train/", "--shards", "30KiB", "--delete", "--yes", "-j1", code=6)
        self.assertIn("were left", self.err)
        self.assertEqual(set(self.shards()), set(before))
        doc = self.json("put", "d", "b/train/", "--shards", "30KiB", "--delete", "--yes")
        self.assertEqual(set(self.shards()), others | {f"train/d-{i:06}.tar" for i in range(doc["done"])})
        self.assertEqual(doc["removed"], len(before) - len(others) - doc["done"])
        doc = self.json("put", "d", "b/train/", "--shards", "30KiB", "--delete", "--yes")
        self.assertEqual(doc["removed"], 0)
        self.mock.plan({"at": "proxy", "method": "GET", "do": "status", "status": 403, "code": "forbidden"})
        self.run_ctl("put", "d", "b/train/", "--shards", "30KiB", code=7)

    def test_no_file_where_shards_are(self):
        self.make(3)
        self.run_ctl("put", "d", "b", "--shards", "1")
        os.makedirs(f"{self.dir}/e/d")
        self.run_ctl("put", "e/d", "b", "--shards", "1", "--allow-empty", code=1)
        self.assertEqual(len(self.shards()), 3)
        self.run_ctl("put", "e/d", "b", "--shards", "1", "--allow-empty", "--delete", "--yes")
        self.assertEqual(self.shards(), {})

    def test_a_call_is_repeated(self):
        self.make(8)
        self.mock.plan({"at": "target", "method": "PUT", "do": "drop"})
        self.run_ctl("put", "d", "b", "--shards", "1GiB")
        self.assertEqual(len(members(self.shards()["d-000000.tar"])), 16)
        before = dict(self.shards())
        self.write("d/part-0/0000.cls", b"9")
        doc = self.json("put", "d", "b", "--shards", "1GiB", "--if-absent")
        self.assertEqual(doc["existed"], 1)
        self.assertEqual(self.shards(), before)


class WithArchive(Case):
    """An archive of some files, as the object b/k."""

    def setUp(self):
        super().setUp()
        self.mock.create("b")

    FILES = {"a/one.txt": b"1", "a/zwei ü.txt": pattern(300000), "empty": b"", "z" * 150: b"long"}

    def tar(self, mode="w", files=None, **options):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode=mode, **options) as t:
            for name, data in (files or self.FILES.items()):
                info = tarfile.TarInfo(name)
                info.size, info.mtime = len(data), 1700000000
                t.addfile(info, io.BytesIO(data))
        return out.getvalue()

    def zip(self):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
            for name, data in self.FILES.items():
                z.writestr(name, data)
        return out.getvalue()

    def put(self, data, key="k"):
        self.run_ctl("put", "-", "b/" + key, stdin=data)

    def files_below(self, directory):
        root = self.path(directory)
        return {os.path.relpath(os.path.join(at, f), root): self.read(os.path.join(root, at, f))
                for at, _, files in os.walk(root) for f in files}


class Archives(WithArchive):
    def test_every_format(self):
        made = {"tar": self.tar(), "gnu": self.tar(format=tarfile.GNU_FORMAT),
                "gz": self.tar("w:gz"), "bz2": self.tar("w:bz2"), "xz": self.tar("w:xz"),
                "zst": formats.zstd(self.tar()), "lz4": formats.lz4(self.tar()), "zip": self.zip()}
        for name, data in made.items():
            with self.subTest(name):
                self.put(data)
                listed = self.json("archive", "ls", "b/k")
                self.assertEqual([(m["name"], m["size"]) for m in listed],
                                 [(n, len(d)) for n, d in self.FILES.items()])
                self.assertEqual(self.run_ctl("archive", "cat", "b/k", "a/zwei ü.txt", "a/one.txt"),
                                 self.FILES["a/zwei ü.txt"] + b"1")
                self.run_ctl("archive", "extract", "b/k", name)
                self.assertEqual(self.files_below(name), self.FILES)
        self.put(self.tar())
        self.assertIn("2023-11-14 22:13:20  a/one.txt\n", self.text("archive", "ls", "b/k"))

    def test_a_list_fetches_no_contents(self):
        self.put(self.tar(files=[(f"{i}.bin", bytes(3 << 20)) for i in range(4)]))
        self.mock.log.clear()
        self.assertEqual(len(self.json("archive", "ls", "b/k")), 4)
        asked = [r["headers"]["range"] for r in self.mock.requests(at="target", method="GET")]
        sizes = [int(b) - int(a) + 1 for a, b in (r[len("bytes="):].split("-") for r in asked)]
        self.assertLess(sum(sizes), 3 << 20)

    def test_get(self):
        self.put(self.tar(files=[("d/x", b"old"), ("d/y", b"other"), ("d/x", b"new")]))
        self.run_ctl("archive", "get", "b/k", "d/x")
        self.assertEqual(self.read("x"), b"new")
        self.run_ctl("archive", "get", "b/k", "d/y", "to")
        self.assertEqual(self.read("to"), b"other")
        self.run_ctl("archive", "get", "b/k", "d/none", "none", code=3)
        self.assertIn("has no member 'd/none'", self.err)
        self.assertFalse(os.path.exists(self.path("none")))
        self.run_ctl("archive", "cat", "b/none", "x", code=3)
        self.run_ctl("archive", "cat", "b", "x", code=2)

    def test_an_archive_that_is_overwritten_between_two_looks(self):
        """No member of another version is taken for the one that was found."""
        for other in ([("z", b"wrong"), ("x", b"later")], []):
            self.put(self.tar(files=[("x", b"right"), ("y", b"2")]))
            change = self.tar(files=other or [("none", b"")]) if other else bytes(10240)
            self.mock.plan({"at": "target", "method": "GET", "do": None, "change": change.decode()})
            self.assertEqual(self.run_ctl("archive", "cat", "b/k", "x"), b"right")

    def test_nothing_leads_out(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as t:
            for name in ("../out", "/abs", "a/../../b", "./fine"):
                info = tarfile.TarInfo(name)
                info.size = 1
                t.addfile(info, io.BytesIO(b"x"))
            info = tarfile.TarInfo("link")
            info.type, info.linkname = tarfile.SYMTYPE, "/tmp"
            t.addfile(info)
        self.put(out.getvalue())
        self.run_ctl("archive", "extract", "b/k", "here", code=6)
        self.assertEqual(self.files_below("here"), {"fine": b"x"})
        for name in ("../out", "/abs", "a/../../b", "link"):
            self.assertIn(f"'{name}'", self.err)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_damage(self):
        whole = self.tar("w:gz")
        self.put(b"plain text")
        self.run_ctl("archive", "ls", "b/k", code=1)
        self.assertIn("no archive that can be read", self.err)
        self.put(b"")
        self.run_ctl("archive", "ls", "b/k", code=1)
        self.put(whole[:len(whole) // 2])
        self.run_ctl("archive", "extract", "b/k", "d", code=1)
        self.assertNotIn("a/zwei ü.txt", self.files_below("d"))
        self.run_ctl("archive", "cat", "b/k", "a/zwei ü.txt", code=1)

    def test_an_object_that_changes(self):
        self.put(self.tar(files=[(f"{i}.bin", bytes(1 << 20)) for i in range(4)]))
        self.mock.plan({"at": "target", "method": "GET", "do": "status", "status": 412})
        self.run_ctl("archive", "ls", "b/k", code=1)

    def test_create(self):
        for name, data in self.FILES.items():
            self.write("d/" + name, data)
        wanted = sorted(self.FILES.items())
        for name, plain in {"tar": bytes, "tar.gz": gzip.decompress, "tar.zst": formats.unzstd,
                            "tar.lz4": formats.unlz4}.items():
            self.run_ctl("archive", "create", "b/k." + name, "d")
            self.assertEqual(members(plain(self.mock.objects("b")["k." + name])), wanted)
        self.run_ctl("archive", "create", "b/z", "d", "--format", "zip")
        with zipfile.ZipFile(io.BytesIO(self.mock.objects("b")["z"])) as z:
            self.assertEqual([(n, z.read(n)) for n in z.namelist()], wanted)
        self.run_ctl("archive", "extract", "b/z", "back")
        self.assertEqual(self.files_below("back"), self.FILES)

    def test_create_refuses(self):
        self.write("d/x", b"1")
        self.write("x", b"2")
        os.mkdir(self.path("none"))
        self.run_ctl("archive", "create", "b/k", "d", code=2)
        self.run_ctl("archive", "create", "b/k.tar.xz", "d", code=2)
        self.run_ctl("archive", "create", "b", "d", code=2)
        self.run_ctl("archive", "create", "b/k.tar", "d", "x", code=1)
        self.assertIn("has the same name in the archive: 'x'", self.err)
        self.run_ctl("archive", "create", "b/k.tar", "d", "gone", code=1)
        self.run_ctl("archive", "create", "b/k.tar", "none", code=4)
        self.assertEqual(self.mock.objects("b"), {})
        self.run_ctl("archive", "create", "b/k.tar", "none", "--allow-empty")
        self.assertEqual(members(self.mock.objects("b")["k.tar"]), [])
        self.run_ctl("archive", "create", "b/k.tar", "d", "--if-absent", code=1)
        self.assertIn("exists already", self.err)


class Append(WithArchive):
    """dfcctl archive append, beside what GNU tar does and reads."""

    def object(self):
        return self.mock.objects("b")["k"]

    def gnu_tar(self, *words):
        return subprocess.run(["tar", *words], cwd=self.path("."), check=True,
                              stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout

    def puts(self):
        return [r for r in self.mock.requests(at="target", method="PUT") if "members=" in r["path"]]

    def test_as_gnu_tar(self):
        more = {"new 1": b"n", "ü/deep": pattern(200000, 3), "y" * 200: b"", "a/one.txt": b"2"}
        for name, data in more.items():
            self.write("d/" + name, data)
        for name, data in {"pax": self.tar(), "gnu": self.tar(format=tarfile.GNU_FORMAT)}.items():
            with self.subTest(name):
                self.put(data)
                with open(self.path("t.tar"), "wb") as f:
                    f.write(data)
                self.gnu_tar("-rf", "t.tar", "-C", "d", *sorted(more))
                doc = self.json("archive", "append", "b/k", "d", "--overwrite")
                self.assertEqual((doc["done"], doc["bytes"]), (1, len(self.object())))
                self.assertEqual(members(self.object()), members(self.read("t.tar")))
                with open(self.path("k.tar"), "wb") as f:
                    f.write(self.object())
                self.assertEqual(self.gnu_tar("-tf", "k.tar"), self.gnu_tar("-tf", "t.tar"))
                self.assertEqual(self.run_ctl("archive", "cat", "b/k", "a/one.txt"), b"2")

    def test_the_files_alone_are_sent(self):
        self.put(self.tar(files=[("large", bytes(3 << 20))]))
        self.write("n", b"1")
        self.mock.log.clear()
        self.run_ctl("archive", "append", "b/k", "n")
        self.assertEqual(self.mock.requests(at="target", method="GET"), [])
        (sent,) = self.puts()
        self.assertEqual(sent["body"], 4 * 512)
        self.assertIn("dfc-checksum-value", sent["headers"])

    def test_a_zip(self):
        self.put(self.zip())
        self.write("n", b"1")
        self.run_ctl("archive", "append", "b/k", "n")
        with zipfile.ZipFile(io.BytesIO(self.object())) as z:
            self.assertEqual({n: z.read(n) for n in z.namelist()}, {**self.FILES, "n": b"1"})

    def test_metadata_stays(self):
        self.run_ctl("put", "-", "b/k", "-m", "step=7", "--content-type", "x/y", stdin=self.tar())
        self.write("n", b"1")
        self.run_ctl("archive", "append", "b/k", "n")
        info = self.json("object", "head", "b/k")
        self.assertEqual((info["content_type"], info["meta"]), ("x/y", {"step": "7"}))

    def test_what_is_refused(self):
        self.write("n", b"1")
        self.write("empty", b"2")
        os.mkdir(self.path("none"))
        whole = self.tar()
        self.put(b"plain text" * 100)
        self.run_ctl("archive", "append", "b/k", "n", code=1)
        self.assertIn("only these can be appended to", self.err)
        self.put(whole)
        self.run_ctl("archive", "append", "b/k", "n", "gone", code=1)
        self.assertIn("nothing was stored", self.err)
        self.run_ctl("archive", "append", "b/k", "n", "empty", code=1)
        self.assertIn("has a member 'empty'", self.err)
        self.run_ctl("archive", "append", "b/k", "none", code=4)
        self.run_ctl("archive", "append", "b/k", code=2)
        self.run_ctl("archive", "append", "b", "n", code=2)
        self.run_ctl("archive", "append", "b/none", "n", code=3)
        self.assertEqual(self.object(), whole)

    def test_a_race_is_run_again(self):
        self.write("n", b"1")
        self.put(self.tar())
        self.mock.log.clear()
        self.mock.plan({"at": "target", "method": "PUT", "do": "status", "status": 412, "times": 3,
                        "code": "precondition_failed"})
        self.run_ctl("archive", "append", "b/k", "n")
        self.assertEqual(len(self.puts()), 4)
        self.assertEqual(members(self.object()), [*self.FILES.items(), ("n", b"1")])
        before = self.object()
        self.write("m", b"1")
        self.mock.plan({"at": "target", "method": "PUT", "do": "status", "status": 412, "times": 16,
                        "code": "precondition_failed"})
        self.run_ctl("archive", "append", "b/k", "m", code=1)
        self.assertIn("other clients change the archive again and again", self.err)
        self.assertEqual(self.object(), before)

    def test_a_call_that_breaks_off(self):
        """It is repeated, and no member is there twice."""
        self.write("n", pattern(100000))
        self.put(self.tar())
        self.mock.plan({"at": "target", "method": "PUT", "do": "drop"})
        self.run_ctl("archive", "append", "b/k", "n")
        wanted = [*self.FILES.items(), ("n", pattern(100000))]
        self.assertEqual(members(self.object()), wanted)
        self.write("m", b"1")
        self.mock.plan({"at": "target", "method": "PUT", "do": "act"})
        self.run_ctl("archive", "append", "b/k", "m", code=1)
        self.assertIn("it is not known whether the members were stored", self.err)
        self.assertEqual(members(self.object()), [*wanted, ("m", b"1")])
        self.mock.plan({"at": "target", "method": "PUT", "do": "act"})
        self.run_ctl("archive", "append", "b/k", "m", "--overwrite", code=1)
        self.assertIn("it is not known whether the members were stored", self.err)
        self.assertEqual(members(self.object()), [*wanted, ("m", b"1"), ("m", b"1")])


if __name__ == "__main__":
    unittest.main()
