#!/usr/bin/python3
"""dfc.vdisc: images that dfcctl has burned, tables of another encoder, and damaged ones.

DFC_BUILD names the build directory."""

import hashlib
import os
import pickle
import random
import subprocess
import tempfile
import threading
import unittest

import frame
import dfc
import dfc.vdisc
from mocked import MockedTest

BUILD = os.path.abspath(os.environ.get("DFC_BUILD") or os.path.join(frame.ROOT, "build"))
SCHEMA = os.path.join(frame.ROOT, "vdisc", "schema", "vdisc.capnp")
TIME = 1_700_000_000
LONG = "ä" * 126  # 252 bytes: its record goes on behind the directory


def files_of(seed):
    rng = random.Random(seed)
    files = {f"d{i % 7}/s{i % 3}/{i:03}.bin": rng.randbytes(rng.choice([0, 1, 2048, 5000]))
             for i in range(300)}
    files["large"] = rng.randbytes((1 << 20) + 7)
    files[LONG] = b"long"
    files["d0/copy"] = files["large"]
    return files


class ImageTest(MockedTest):
    def setUp(self):
        super().setUp()
        top = tempfile.TemporaryDirectory(prefix="dfc-vdisc-")
        self.addCleanup(top.cleanup)
        self.top = top.name
        self.files = files_of(1)
        for name, data in self.files.items():
            path = os.path.join(self.top, "tree", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data)
            os.chmod(path, 0o640)
            os.utime(path, (TIME, TIME))
        for name, target in (("d0/link", "../a/b"), ("d0/far", "/x//y"), ("d0/up", ".." + "/.." * 120 + "/" + LONG)):
            os.symlink(target, os.path.join(self.top, "tree", name))

    def dfcctl(self, *words):
        env = {**os.environ, "DFC_ENDPOINT": self.mock.endpoint, "HOME": self.top}
        subprocess.run([os.path.join(BUILD, "dfcctl"), *words], env=env, cwd=self.top, check=True,
                       stdout=subprocess.DEVNULL)

    def burn(self, name, *words):
        self.dfcctl("vdisc", "burn", *words, "-o", f"dfc://b/{name}.vdsc")
        return dfc.vdisc.Image(self.client, f"dfc://b/{name}.vdsc")

    def test_everything_is_as_it_was_burned(self):
        for store in ("unique", "pack"):
            image = self.burn(store, "--tree", "tree", "--store", store)
            found = {name: image.read_entry(e) for name, e in image.walk() if e.kind == "file"}
            self.assertEqual(found, self.files)
            entry = image.stat("/d1//./s1/001.bin")
            self.assertEqual((entry.mode, entry.modified, entry.size),
                             (0o640, TIME, len(self.files["d1/s1/001.bin"])))
            self.assertEqual(sorted(image.listdir("d0")), ["copy", "far", "link", "s0", "s1", "s2", "up"])
            self.assertEqual(image.stat("d0/link").target, "../a/b")
            self.assertEqual(image.stat("d0/far").target, "/x/y")
            self.assertEqual(image.stat("d0/up").target, ".." + "/.." * 120 + "/" + LONG)
            self.assertEqual(image.stat(LONG).name, LONG)

    def test_files_are_seekable(self):
        image = self.burn("p", "--tree", "tree", "--store", "pack")
        data = self.files["large"]
        with image.open("large") as f:
            self.assertEqual(f.read(10), data[:10])
            f.seek(-5, os.SEEK_END)
            self.assertEqual(f.read(), data[-5:])
            f.seek(700000)
            self.assertEqual(f.read(100000), data[700000:800000])
        with image.open("d0/s0/000.bin") as f:
            self.assertEqual(f.read(), self.files["d0/s0/000.bin"])

    def test_what_is_not_there(self):
        image = self.burn("a", "--tree", "tree")
        for path in ("none", "large/x", "d0/none"):
            with self.assertRaisesRegex(dfc.NotFound, "has no path"):
                image.stat(path)
        for call in (lambda: image.read("d0"), lambda: image.listdir("large"),
                     lambda: image.read("d0/link"), lambda: dfc.vdisc.Image(self.client, "b/x")):
            with self.assertRaises(dfc.Invalid):
                call()
        with self.assertRaises(dfc.NotFound):
            dfc.vdisc.Image(self.client, "dfc://b/none.vdsc")

    def test_an_object_was_replaced(self):
        self.bucket.put("raw", b"a" * 5000)
        with open(os.path.join(self.top, "l.csv"), "w", encoding="utf-8") as f:
            f.write("/raw,dfc://b/raw,5000\n")
        image = self.burn("a", "-i", "l.csv")
        self.assertEqual(image.read("raw"), b"a" * 5000)
        self.bucket.put("raw", b"b" * 5000)
        with self.assertRaisesRegex(dfc.Precondition, "'b/raw' has been replaced") as caught:
            image.read("raw")
        self.assertEqual(caught.exception.code, "image_stale")
        self.bucket.put("raw", b"a" * 5000)
        self.assertNotEqual(self.bucket.head("raw").etag, image._table.extents[1].etag)
        self.assertEqual(image.read("raw"), b"a" * 5000)  # the same bytes under another tag

    def test_a_file_of_a_pack_has_other_bytes(self):
        """Found by the checksum of the file, since the pack's tag is the right one."""
        image = self.burn("p", "--tree", "tree", "--store", "pack")
        entry = image.stat(LONG)
        image._table.members[entry.block] = hashlib.sha256(b"other").digest()
        with self.assertRaises(dfc.Corrupt):
            image.read(LONG)
        self.assertEqual(image.read(LONG, verify=False), b"long")

    def test_a_list_with_a_wrong_checksum(self):
        self.bucket.put("raw", b"a" * 5000)
        with open(os.path.join(self.top, "l.csv"), "w", encoding="utf-8") as f:
            f.write(f"/raw,dfc://b/raw,5000,{'0' * 64}\n")
        image = self.burn("a", "-i", "l.csv")
        with self.assertRaisesRegex(dfc.Corrupt, "do not have the checksum") as caught:
            image.read("raw")
        self.assertEqual(caught.exception.code, "checksum_mismatch")
        self.assertEqual(image.read("raw", verify=False), b"a" * 5000)

    def test_tables_of_another_encoder(self):
        image = self.burn("a", "--tree", "tree", "--store", "pack")
        raw = subprocess.run(["gzip", "-dc"], input=self.bucket.get("a.vdsc"), capture_output=True,
                             check=True).stdout
        text = subprocess.run(["capnp", "decode", SCHEMA, "VDisc"], input=raw, capture_output=True,
                              check=True).stdout
        for number, flags in enumerate(([], ["--segment-size=1"], ["--segment-size=50"])):
            made = subprocess.run(["capnp", "encode", *flags, SCHEMA, "VDisc"], input=text,
                                  capture_output=True, check=True).stdout
            self.bucket.put(f"made{number}.vdsc", made)
            other = dfc.vdisc.Image(self.client, f"dfc://b/made{number}.vdsc")
            self.assertEqual(other._table, image._table)

    def test_damage_is_an_error(self):
        """Never anything but an error of the package."""
        self.burn("a", "--tree", "tree", "--store", "pack")
        raw = subprocess.run(["gzip", "-dc"], input=self.bucket.get("a.vdsc"), capture_output=True,
                             check=True).stdout
        rng = random.Random(4)
        for _ in range(100):
            data = bytearray(raw)
            data[rng.randrange(len(data) if rng.random() < 0.5 else 400)] = rng.randrange(256)
            self.bucket.put("bad.vdsc", bytes(data[:rng.randrange(len(data))] if rng.random() < 0.2 else data))
            try:
                image = dfc.vdisc.Image(self.client, "dfc://b/bad.vdsc")
                for name, entry in image.walk():
                    if entry.kind == "file" and name in (LONG, "d0/s0/000.bin"):
                        image.read_entry(entry)
            except dfc.Error:
                pass

    def test_damaged_metadata(self):
        """A header with other bytes: an error of the package, or entries."""
        image = self.burn("a", "--tree", "tree")
        extent = image._table.extents[0]
        header = self.bucket.get(extent.key)
        rng = random.Random(5)
        for _ in range(400):
            data = bytearray(header)
            for _ in range(rng.choice((1, 20))):
                data[rng.choice((rng.randrange(32768, 34816), rng.randrange(34816, len(data))))] = rng.randrange(256)

            def read(offset, length, data=data):
                return bytes(data[offset:offset + length])
            try:
                reader = dfc._iso9660.opened(read, image._table.size)
                directories, seen = [reader.root], 0
                while directories and seen < 50:
                    seen += 1
                    found = dfc._iso9660.index(reader, directories.pop())
                    directories += [e for e in found.values() if e.kind == "directory"]
            except dfc.Error:
                pass

    def test_threads_and_processes(self):
        image = self.burn("p", "--tree", "tree", "--store", "pack")
        copy = pickle.loads(pickle.dumps(image))
        wrong = []

        def read(one):
            for name in list(self.files)[::5]:
                if one.read(name) != self.files[name]:
                    wrong.append(name)

        threads = [threading.Thread(target=read, args=(one,)) for one in (image, copy) * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        pid = os.fork()
        if pid == 0:
            os._exit(0 if image.read(LONG) == b"long" else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)


if __name__ == "__main__":
    unittest.main()
