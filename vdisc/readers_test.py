#!/usr/bin/env python3
"""Programs that dfc has no part in read its images right: xorriso, isoinfo, bsdtar, 7z, iso-info
and pycdlib, on trees of all kinds.

DFC_BUILD names the build directory."""
import os
import random
import re
import shutil
import stat
import subprocess
import tempfile
import unittest

import pycdlib

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BUILD = os.environ.get("DFC_BUILD", os.path.join(ROOT, "build"))
HARNESS = os.path.join(BUILD, "vdisc", "vdisc-harness")
TREES = 6
BLOCK = 2048
LONGEST_IN_7Z = 144  # it does not look for names in continuations
LONGEST_IN_ISO_INFO = 250  # of a path
LETTERS = "abcXYZ019._- +é中"


def run(*words):
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return (done.stdout + done.stderr).decode(errors="replace")


def describe(top, links=True):
    """{path: what a reader must show}"""
    found = {}
    for at, directories, files in os.walk(top):
        for name in directories + files:
            path = os.path.join(at, name)
            st = os.lstat(path)
            if stat.S_ISLNK(st.st_mode):
                what = ("link", os.readlink(path))
                if not links:
                    continue
            elif stat.S_ISDIR(st.st_mode):
                what = ("directory",)
            else:
                with open(path, "rb") as f:
                    what = ("file", f.read(), int(st.st_mtime))
            found[os.path.relpath(path, top)] = what
    return found


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="vdisc-readers-")
        self.addCleanup(self.clean)
        self.top = os.path.join(self.dir, "tree")
        self.image = os.path.join(self.dir, "x.iso")
        os.mkdir(self.top)

    def clean(self):
        for at, directories, _ in os.walk(self.dir):
            for name in directories:
                os.chmod(os.path.join(at, name), 0o755)
        shutil.rmtree(self.dir)

    def write(self, path, data=b"", mtime=None):
        path = os.path.join(self.top, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        if mtime is not None:
            os.utime(path, (mtime, mtime))

    def grow(self, seed, longest=253, links=True):
        r = random.Random(seed)
        directories = [""]
        for number in range(120):
            room = longest - len(str(number))
            name = "".join(r.choice(LETTERS) for _ in range(r.choice([3, 8, 20, 240])))
            while len(name.encode()) > room or name.endswith("."):
                name = name[:-1]
            path = os.path.join(r.choice(directories), f"{number}{name}")
            full = os.path.join(self.top, path)
            kind = r.randrange(8)
            if kind == 0 and len(full) < 3000:
                os.mkdir(full)
                directories.append(path)
            elif kind == 1 and links:
                parts = [r.choice(["..", ".", "a" * r.randrange(1, 250), "b"])
                         for _ in range(r.choice([1, 2, 3]))]
                os.symlink(r.choice(["", "/"]) + "/".join(parts), full)
            else:
                self.write(path, r.randbytes(r.choice([0, 1, 2047, 2048, 2049, 7000])),
                           r.randrange(0, 4 * 10 ** 9))

    def make(self, *flags):
        run(HARNESS, *flags, self.top, self.image)

    def extracted(self, *words):
        out = os.path.join(self.dir, "out")
        shutil.rmtree(out, ignore_errors=True)
        os.mkdir(out)
        run(*[w.replace("OUT", out) for w in words])
        return out

    def check_xorriso(self):
        text = run("xorriso", "-indev", self.image, "-check_media", "--")
        self.assertFalse(re.findall(r"SORRY|WARNING|FAILURE|FATAL", text), text)
        out = self.extracted("xorriso", "-osirrox", "on", "-indev", self.image, "-extract", "/",
                             "OUT/x")
        self.assertEqual(describe(self.top), describe(os.path.join(out, "x")))

    def check_bsdtar(self):
        out = self.extracted("bsdtar", "-xpf", self.image, "-C", "OUT")
        self.assertEqual(describe(self.top), describe(out))

    def check_7z(self):
        out = self.extracted("7z", "x", "-bd", "-oOUT", self.image)
        plain = {p: w[:2] for p, w in describe(self.top, links=False).items()}
        got = {p: w[:2] for p, w in describe(out, links=False).items()}
        self.assertEqual(plain, {p: w for p, w in got.items() if p in plain})

    def check_lists(self):
        wanted = {"/" + p for p in describe(self.top)}
        text = run("isoinfo", "-R", "-f", "-i", self.image)
        self.assertEqual(wanted, set(text.split("\n")) & wanted)
        text = run("iso-info", "--no-header", "-f", "-i", self.image)
        for path in wanted:
            if len(path.encode()) < LONGEST_IN_ISO_INFO:
                self.assertIn(path, text)


class Readers(Case):
    def test_any_tree(self):
        for seed in range(1, TREES + 1):
            with self.subTest(seed=seed):
                self.clean_tree()
                self.grow(seed)
                self.make()
                self.check_xorriso()
                self.check_bsdtar()
                self.check_lists()

    def clean_tree(self):
        shutil.rmtree(self.top)
        os.mkdir(self.top)

    def test_names_that_7z_finds(self):
        for seed in range(TREES + 1, TREES + 4):
            with self.subTest(seed=seed):
                self.clean_tree()
                self.grow(seed, LONGEST_IN_7Z, links=False)  # 7z refuses those that lead out
                self.make()
                self.check_7z()

    def test_pycdlib(self):
        self.grow(99)
        self.make()
        iso = pycdlib.PyCdlib()
        iso.open(self.image)
        self.addCleanup(iso.close)
        got = {}
        for at, directories, files in iso.walk(rr_path="/"):
            for name in directories + files:
                path = f"{at.rstrip('/')}/{name}"
                record = iso.get_record(rr_path=path)
                got[path[1:]] = record.get_data_length() if not (
                    record.is_dir() or record.rock_ridge.is_symlink()) else None
        self.assertEqual(got, {p: len(w[1]) if w[0] == "file" else None
                               for p, w in describe(self.top).items()})

    def test_path_table(self):
        for path in ("b/y/z", "a/x", "c"):
            os.makedirs(os.path.join(self.top, path))
        self.make()
        rows = [line.split() for line in run("isoinfo", "-p", "-i", self.image).splitlines()]
        rows = [(r[0], r[1], r[3] if len(r) > 3 else "") for r in rows if r and r[0].endswith(":")]
        self.assertEqual(rows, [("1:", "1", ""), ("2:", "1", "A"), ("3:", "1", "B"),
                                ("4:", "1", "C"), ("5:", "2", "X"), ("6:", "3", "Y"),
                                ("7:", "6", "Z")])

    def test_joliet(self):
        self.write("Some directory/File with spaces.text", b"x" * 5000)
        self.write("Some directory/grüße", b"y")
        self.write("empty", b"")
        self.make("--joliet")
        self.check_xorriso()
        self.check_bsdtar()
        self.check_7z()
        text = run("isoinfo", "-J", "-f", "-i", self.image)
        self.assertIn("/Some directory/File with spaces.text", text)
        self.assertIn("Joliet with UCS level 3 found", run("isoinfo", "-d", "-i", self.image))

    def test_files_beyond_4_gib(self):
        self.write("small", b"s")
        size = (5 << 30) + 3
        self.write("big", b"")
        with open(os.path.join(self.top, "big"), "r+b") as f:
            f.truncate(size)
            f.seek(size - 3)
            f.write(b"end")
            f.seek((4 << 30) - 4096)
            f.write(b"border" * 1000)
        self.make()
        text = run("xorriso", "-indev", self.image, "-find", "/big", "-exec", "report_lba", "--")
        self.assertNotRegex(text, "SORRY|WARNING|FAILURE|FATAL")
        sections = re.findall(r"File data lba: +\d+ , +(\d+) , +(\d+) , +(\d+) , '/big'", text)
        lba, blocks = int(sections[0][0]), sum(int(s[1]) for s in sections)
        self.assertEqual((len(sections), blocks), (2, -(-size // BLOCK)))
        self.assertEqual(int(sections[1][0]), lba + (1 << 32) // BLOCK - 1)
        with open(self.image, "rb") as f:
            f.seek(lba * BLOCK + size - 3)
            self.assertEqual(f.read(4), b"end\0")
            f.seek(lba * BLOCK + (4 << 30) - 4096)
            self.assertEqual(f.read(6000), b"border" * 1000)
        text = run("isoinfo", "-R", "-l", "-i", self.image)
        self.assertRegex(text, r"small")

    def test_many_directories(self):
        for i in range(3000):
            os.mkdir(os.path.join(self.top, f"d{i}"))
        self.make()
        self.assertLess(os.path.getsize(self.image), 3000 * 2048 * 1.3)
        self.assertEqual(len(run("isoinfo", "-R", "-f", "-i", self.image).splitlines()), 3000)

    def test_the_order_of_entries_does_not_show(self):
        self.grow(5)
        self.make()
        with open(self.image, "rb") as f:
            first = f.read()
        self.make("--reverse")
        with open(self.image, "rb") as f:
            self.assertEqual(first, f.read())


if __name__ == "__main__":
    unittest.main()
