#!/usr/bin/env python3
"""dfcctl vdisc: an image is burned of a list, read, verified, exported.

DFC_BUILD names the build directory."""
import hashlib
import json
import os
import random
import subprocess
import sys
import unittest
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
from dfcctl_case import Case  # noqa: E402

SCHEMA = os.path.join(ROOT, "vdisc", "schema", "vdisc.capnp")
IMAGE = "dfc://img/sets/one.vdsc"
FILES = {"raw/a.jpg": b"a" * 5000, "raw/b c.jpg": b"bb" * 1024, "raw/empty": b"",
         "deep/x/y/z%41:?.bin": bytes(range(256)) * 20}
OTHER = {"labels.csv": b"0,cat\n1,dog\n"}


def address(table, extent):
    """The reference of an extent, put together."""
    text, node = extent.get("uriSuffix", ""), extent["uriPrefix"]
    while True:
        text = table["uris"][node].get("content", "") + text
        if table["uris"][node]["parent"] == node:
            return text
        node = table["uris"][node]["parent"]


class Images(Case):
    def setUp(self):
        super().setUp()
        self.mock.create("img", dict(FILES))
        self.mock.create("other", dict(OTHER))

    def rows(self):
        return [f"/train/{os.path.basename(k)},dfc://img/{k},{len(v)}" for k, v in FILES.items()] \
            + [f"labels.csv,dfc://other/labels.csv,{len(OTHER['labels.csv'])}"]

    def as_url(self, row):
        path, address, size = row.rsplit(",", 2)
        key = urllib.parse.quote(address[len("dfc://"):])
        return f"{path},{self.mock.endpoint}/v1/objects/{key},{size}"

    def write_list(self, rows):
        with open(self.path("list.csv"), "w", encoding="utf-8") as f:
            f.write("".join(row + "\n" for row in rows))

    def burn(self, rows=None, to=IMAGE, flags=(), **options):
        self.write_list(self.rows() if rows is None else rows)
        return self.text("vdisc", "burn", "-i", "list.csv", "-o", to, *flags, **options)

    def export(self, image=IMAGE):
        self.run_ctl("vdisc", "export", image, "-o", "x.iso")
        with open(self.path("x.iso"), "rb") as f:
            return f.read()

    def stored(self, key, bucket="img"):
        return self.run_ctl("cat", f"{bucket}/{key}")

    def decoded(self, key="sets/one.vdsc"):
        """The table as the program capnp shows it."""
        raw = subprocess.run(["gzip", "-dc"], input=self.stored(key), capture_output=True,
                             check=True).stdout
        text = subprocess.run(["capnp", "convert", "binary:json", SCHEMA, "VDisc"], input=raw,
                              capture_output=True, check=True).stdout
        return json.loads(text)

    def header(self):
        """The header's name, beside the table's."""
        table = self.decoded()["v1"]
        return address(table, table["extents"][0])

    def test_a_list_becomes_an_image(self):
        out = self.burn()
        self.assertIn("5 files, 6 extents", out)
        names = [e["name"] for e in self.json("vdisc", "ls", IMAGE, "-r")]
        self.assertEqual(names, ["labels.csv", "train", "train/a.jpg", "train/b c.jpg",
                                 "train/empty", "train/z%41:?.bin"])
        for key, data in FILES.items():
            path = f"/train/{os.path.basename(key)}"
            self.assertEqual(self.run_ctl("vdisc", "cat", IMAGE, path), data)
        self.assertEqual(self.run_ctl("vdisc", "cat", IMAGE, "labels.csv", "labels.csv"),
                         OTHER["labels.csv"] * 2)

    def test_other_programs_read_the_export(self):
        self.burn()
        self.export()
        os.mkdir(self.path("out"))
        subprocess.run(["bsdtar", "-xf", "x.iso", "-C", "out"], cwd=self.dir, check=True)
        for key, data in FILES.items():
            with open(self.path("out/train/" + os.path.basename(key)), "rb") as f:
                self.assertEqual(f.read(), data)
        self.assertEqual(os.path.getsize(self.path("x.iso")),
                         self.json("vdisc", "inspect", IMAGE)["image_bytes"])

    def test_references_are_relative(self):
        self.burn()
        table = self.decoded()["v1"]

        header = self.header()
        self.assertEqual(sorted(address(table, e) for e in table["extents"]), sorted([
            header, "/v1/objects/other/labels.csv", "../raw/a.jpg",
            "../raw/b%20c.jpg", "../raw/empty", "../deep/x/y/z%2541%3A%3F.bin"]))
        self.assertEqual((table["blockSize"], table["fsType"]), (2048, "iso9660"))
        sizes = {address(table, e): e["blocks"] * 2048 - e["padding"] for e in table["extents"]}
        self.assertEqual(sizes["../raw/a.jpg"], 5000)
        self.assertEqual(sizes["../raw/empty"], 0)
        name = hashlib.sha256(self.stored("sets/" + header)).hexdigest()[:16]
        self.assertEqual(header, f"one.vdsc.{name}.isohdr")

    def test_tables_of_another_encoder(self):
        self.burn()
        raw = subprocess.run(["gzip", "-dc"], input=self.stored("sets/one.vdsc"),
                             capture_output=True, check=True).stdout
        text = subprocess.run(["capnp", "decode", SCHEMA, "VDisc"], input=raw,
                              capture_output=True, check=True).stdout
        listed = self.json("vdisc", "ls", "-r", IMAGE)
        for number, flags in enumerate(([], ["--segment-size=1"], ["--segment-size=50"])):
            made = subprocess.run(["capnp", "encode", *flags, SCHEMA, "VDisc"], input=text,
                                  capture_output=True, check=True).stdout
            self.run_ctl("put", "-", f"img/sets/made{number}.vdsc", stdin=made)
            image = f"dfc://img/sets/made{number}.vdsc"
            self.assertEqual(self.json("vdisc", "ls", "-r", image), listed)
            self.assertTrue(self.json("vdisc", "verify", image)["ok"])

    def test_addresses_of_nodes(self):
        """As NVIDIA's VDisc writes them; those of other hosts are refused."""
        self.burn(["a,dfc://img/raw/a.jpg,5000"])
        blocks = self.decoded()["v1"]["extents"][0]["blocks"]
        for host, code in ((self.mock.endpoint, 0), ("http://elsewhere", 2)):
            text = f"""(v1 = (blockSize = 2048, fsType = "iso9660", uris = [(parent = 0)], extents = [
                (uriSuffix = "{self.header()}", blocks = {blocks}),
                (uriSuffix = "{host}/v1/objects/img/raw/a.jpg", blocks = 3, padding = 1144)]))"""
            made = subprocess.run(["capnp", "encode", SCHEMA, "VDisc"], input=text.encode(),
                                  capture_output=True, check=True).stdout
            self.run_ctl("put", "-", "img/sets/made.vdsc", stdin=made)
            got = self.run_ctl("vdisc", "cat", "dfc://img/sets/made.vdsc", "a", code=code)
            self.assertEqual(got, FILES["raw/a.jpg"] if code == 0 else b"")

    def test_bytes_depend_on_entries_and_options_alone(self):
        rows = self.rows()
        self.burn(rows)
        first = self.export()
        self.mock.create("img2", dict(FILES))
        random.Random(1).shuffle(rows)
        self.burn(rows, "dfc://img2/another name.vdsc")
        self.assertEqual(self.export("dfc://img2/another name.vdsc"), first)
        self.burn(["iso_path,object_url,size"] + rows, "dfc://img2/three.vdsc")
        self.assertEqual(self.export("dfc://img2/three.vdsc"), first)
        self.burn(rows, "dfc://img2/four.vdsc", ["--date", "86400"])
        self.assertNotEqual(self.export("dfc://img2/four.vdsc"), first)
        self.burn([self.as_url(r) for r in rows], "dfc://img2/five.vdsc")
        self.assertEqual(self.export("dfc://img2/five.vdsc"), first)
        self.burn([r.replace("dfc://", "s3://") for r in rows], "dfc://img2/six.vdsc")
        self.assertEqual(self.export("dfc://img2/six.vdsc"), first)

    def test_verify(self):
        self.burn()
        doc = self.json("vdisc", "verify", IMAGE)
        self.assertEqual((doc["ok"], doc["extents"], doc["equal"], doc["found"]), (True, 6, 6, []))
        self.assertIn("OK: 6 of 6 extents", self.text("vdisc", "verify", IMAGE))
        self.run_ctl("put", "-", "img/raw/a.jpg", stdin=b"x" * 5000)
        doc = self.json("vdisc", "verify", IMAGE, code=6)
        self.assertEqual((doc["ok"], doc["equal"], doc["differing"]), (False, 5, 1))
        self.assertEqual(doc["found"][0]["object"], "img/raw/a.jpg")
        self.run_ctl("rm", "img/raw/a.jpg")
        self.assertIn("0 differ, 0 have no checksum, 1 could not be read",
                      self.text("vdisc", "verify", IMAGE, code=6))
        self.run_ctl("vdisc", "cat", IMAGE, "/train/a.jpg", code=3)
        self.assertIn("object 'img/raw/a.jpg', which the image needs, cannot be found", self.err)
        self.run_ctl("put", "-", "img/raw/a.jpg", stdin=FILES["raw/a.jpg"])  # its tag is another
        self.assertTrue(self.json("vdisc", "verify", IMAGE)["ok"])
        self.assertEqual(self.run_ctl("vdisc", "cat", IMAGE, "/train/a.jpg"), FILES["raw/a.jpg"])

    def test_verify_of_a_lost_header_or_table(self):
        self.burn()
        name = "sets/" + self.header()
        header = self.stored(name)
        self.run_ctl("rm", "img/" + name)
        self.assertIn("5 of 6", self.text("vdisc", "verify", IMAGE, code=6))
        self.run_ctl("vdisc", "ls", IMAGE, code=3)
        self.run_ctl("put", "-", "img/" + name, stdin=header[:-2048] + bytes(2048))
        self.text("vdisc", "verify", IMAGE, code=6)
        self.run_ctl("put", "-", "img/sets/one.vdsc", stdin=self.stored("sets/one.vdsc")[:-9])
        self.text("vdisc", "verify", IMAGE, code=6)
        self.text("vdisc", "verify", "dfc://img/none.vdsc", code=3)

    def test_an_image_without_checksums_is_not_equal(self):
        self.burn(flags=["--no-check"])
        doc = self.json("vdisc", "verify", IMAGE, code=6)
        self.assertEqual((doc["equal"], doc["not_compared"]), (1, 5))

    def test_an_object_that_was_replaced_is_an_error(self):
        self.burn()
        self.run_ctl("put", "-", "img/raw/a.jpg", stdin=b"x" * 5000)
        self.assertEqual(self.run_ctl("vdisc", "cat", IMAGE, "/train/a.jpg", code=1), b"")
        self.assertIn("img/raw/a.jpg' has been replaced", self.err)
        self.assertIn("burn the image again", self.err)
        self.run_ctl("vdisc", "export", IMAGE, "-o", "y.iso", code=1)
        self.assertFalse(os.path.exists(self.path("y.iso")))

    def test_checksums_of_the_list(self):
        data = FILES["raw/a.jpg"]
        digest = hashlib.sha256(data).hexdigest()
        self.burn([f"a,dfc://img/raw/a.jpg,5000,{digest}", "b,dfc://img/raw/empty,0,"])
        self.assertTrue(self.json("vdisc", "verify", IMAGE)["ok"])
        pins = self.decoded()["v2"]["pins"]
        self.assertIn("sha256:" + digest, [p["checksum"] for p in pins])
        self.assertEqual(len(self.json("vdisc", "inspect", IMAGE)["content_id"]), 64)
        self.burn([f"a,dfc://img/raw/a.jpg,5000,{'0' * 64}"], "dfc://img/wrong.vdsc")
        self.json("vdisc", "verify", "dfc://img/wrong.vdsc", code=6)
        for words in (("cat", "dfc://img/wrong.vdsc", "a"), ("export", "dfc://img/wrong.vdsc", "-o", "w.iso"),
                      ("cp", "dfc://img/wrong.vdsc", "a", "w.iso")):
            self.run_ctl("vdisc", *words, code=1)
            self.assertIn("'img/raw/a.jpg' do not have the checksum that the image has", self.err)
        self.assertFalse(os.path.exists(self.path("w.iso")))

    def test_equal_contents_are_stored_once(self):
        digest = hashlib.sha256(FILES["raw/a.jpg"]).hexdigest()
        self.mock.create("copy", {"z": FILES["raw/a.jpg"]})
        self.burn(["1,dfc://img/raw/a.jpg,5000", "2,dfc://img/raw/a.jpg,5000",
                   f"3,dfc://copy/z,5000,{digest}", f"4,dfc://img/raw/a.jpg,5000,{digest}"])
        doc = self.json("vdisc", "inspect", IMAGE)
        self.assertEqual(doc["extents"], 2)
        for name in "1234":
            self.assertEqual(self.run_ctl("vdisc", "cat", IMAGE, name), FILES["raw/a.jpg"])

    def test_what_the_list_may_not_say(self):
        for rows, code, said in (
                (["a,dfc://img/raw/a.jpg,99"], 1, "has 5000 bytes, and the list says 99"),
                (["a,dfc://img/none,1"], 3, "line 1: object 'img/none' does not exist"),
                (["a,dfc://none/x,1"], 3, "line 1: object 'none/x': bucket 'none'"),
                ([f"{i},dfc://img/none{200 - i},1" for i in range(200)], 3, "line 1: object 'img/none200'"),
                (["a,dfc://img/raw/a.jpg"], 2, "line 1: 2 fields"),
                (["a,dfc://img/raw/a.jpg,x"], 2, "line 1"),
                (["a,ftp://h/x,1"], 2, "is no address of an object"),
                (["a,http://elsewhere:80/v1/objects/img/raw/a.jpg,5000"], 2,
                 "'elsewhere:80' is not a node of this cluster"),
                (["a,dfc://img/raw/a.jpg,5000", "a,dfc://img/raw/empty,0"], 2,
                 "line 2: path 'a' is there twice, first in line 1"),
                (["a,dfc://img/raw/a.jpg,5000", "a/b,dfc://img/raw/empty,0"], 2, "line 2: path 'a/b'"),
                (["../a,dfc://img/raw/a.jpg,5000"], 2, "line 1: path '../a': a part '..'"),
                (["z,dfc://img/raw/empty,0", "l,symlink:,"], 2, "line 2: path 'l': the target of a link"),
                (["z,dfc://img/raw/empty,0", f"{'x' * 300},dfc://img/raw/empty,0"], 2, "line 2: path"),
                (["ISO_path,object_url,size"], 2, "line 1: the header must be iso_path,object_url,size"),
                (["size,iso_path,object_url"], 2, "line 1: the header must be"),
                (["iso_path,object_url,size,checksum,mtime,mode,uid,gid,note"], 2, "line 1: the header must be"),
                (["a,dfc://img/raw/a.jpg,5000", "b,dfc://img/raw/a.jpg,1"], 2, "different sizes"),
                ([], 4, "there is no entry"),
                (['a,"dfc://img/raw/a.jpg,5000'], 2, "line 1: a quote that begins here is not closed")):
            self.burn(rows, code=code)
            self.assertIn(said, self.err)
            self.run_ctl("object", "head", IMAGE[len("dfc://"):], code=3)
        self.burn([], flags=["--allow-empty"])
        self.assertEqual(self.json("vdisc", "ls", IMAGE), [])

    def test_an_image_is_not_overwritten(self):
        self.burn()
        before = self.export()
        self.burn(["a,dfc://img/raw/a.jpg,5000"], code=1)
        self.assertIn("an image is not overwritten", self.err)
        self.assertEqual(self.export(), before)
        self.run_ctl("rm", "img/sets/one.vdsc")  # its header stays, as after a burn that was killed
        self.burn(["a,dfc://img/raw/a.jpg,5000"])
        self.assertEqual(len(self.json("vdisc", "ls", IMAGE)), 1)

    def test_links_directories_and_attributes(self):
        self.burn(["d/l,symlink:../a,", "a,dfc://img/raw/a.jpg,5000,,1700000000,0640,7,8", "e/,,"])
        rows = {e["name"]: e for e in self.json("vdisc", "ls", IMAGE, "-r")}
        self.assertEqual((rows["d/l"]["kind"], rows["d/l"]["target"]), ("link", "../a"))
        self.assertEqual(rows["e"]["kind"], "directory")
        self.assertEqual([rows["a"][k] for k in ("modified", "mode", "uid", "gid", "object")],
                         [1700000000, 0o640, 7, 8, "dfc://img/raw/a.jpg"])
        self.assertIn("-rw-r-----  7:8", self.text("vdisc", "ls", "-l", IMAGE))
        tree = self.text("vdisc", "tree", IMAGE, "--urls")
        self.assertEqual(tree, "a  dfc://img/raw/a.jpg\nd/\n  l -> ../a\ne/\n")
        self.run_ctl("vdisc", "cat", IMAGE, "/d/l", code=2)
        self.run_ctl("vdisc", "cat", IMAGE, "/none", code=3)

    def test_cp(self):
        self.burn()
        self.run_ctl("vdisc", "cp", IMAGE, "/train/a.jpg", "a.jpg")
        self.run_ctl("vdisc", "cp", "-r", IMAGE, "/", "all")
        self.run_ctl("vdisc", "cp", IMAGE, "/", "x", code=2)
        with open(self.path("a.jpg"), "rb") as f:
            self.assertEqual(f.read(), FILES["raw/a.jpg"])
        for key, data in FILES.items():
            with open(self.path("all/train/" + os.path.basename(key)), "rb") as f:
                self.assertEqual(f.read(), data)

    def test_a_damaged_table(self):
        self.burn()
        table = self.stored("sets/one.vdsc")
        for at in range(0, len(table), 41):
            for damaged in (table[:at], table[:at] + b"?" + table[at + 1:]):
                self.run_ctl("put", "-", "img/bad.vdsc", stdin=damaged)
                p = self.start("vdisc", "ls", "dfc://img/bad.vdsc")
                _, err = p.communicate(timeout=60)
                if damaged != table and p.returncode != 0:
                    self.assertEqual(p.returncode, 1, err)
                    self.assertIn(b"damaged", err)

    def test_output_has_two_meanings(self):
        self.write_list(self.rows())
        doc = self.json("vdisc", "burn", "-i", "list.csv", "--to", IMAGE)
        self.assertEqual((doc["image"], doc["files"]), (IMAGE, 5))
        self.run_ctl("vdisc", "export", IMAGE, code=2)
        self.assertIn("-o FILE.iso", self.err)
        self.run_ctl("vdisc", "ls", IMAGE, "-o", "xml", code=2)
        self.assertIn("'xml' is none of table|json", self.err)


if __name__ == "__main__":
    unittest.main()
