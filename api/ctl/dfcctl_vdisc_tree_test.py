#!/usr/bin/env python3
"""dfcctl vdisc burn: directories and older images become images, and contents are stored once.

DFC_BUILD names the build directory."""
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
import unittest
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
from dfcctl_case import Case  # noqa: E402

SCHEMA = os.path.join(ROOT, "vdisc", "schema", "vdisc.capnp")
SMALL = 1 << 20
TIME = 1_700_000_000


def digest(data):
    return hashlib.sha256(data).hexdigest()


def files_of(seed, count=60):
    """Some equal, some empty, one larger than a file of a pack."""
    rng = random.Random(seed)
    files = {f"d{i % 5}/s{i % 3}/{i:03}.bin": rng.randbytes(rng.choice([0, 1, 2048, 5000, 70000]))
             for i in range(count)}
    files["big"] = rng.randbytes(SMALL + 7)
    files["d0/copy of 001"] = files["d1/s1/001.bin"]
    return files


class Trees(Case):
    def setUp(self):
        super().setUp()
        self.mock.create("img", {})
        self.files = files_of(1)
        self.write_tree("tree", self.files)

    def write_tree(self, name, files):
        for path, data in files.items():
            full = self.path(os.path.join(name, path))
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as f:
                f.write(data)
            os.chmod(full, 0o644)
            os.utime(full, (TIME, TIME))
        for at, _, _ in os.walk(self.path(name)):
            os.chmod(at, 0o755)

    def burn(self, key, *words, **options):
        out = self.run_ctl("vdisc", "burn", *words, "--to", f"dfc://img/{key}.vdsc", "-o", "json",
                           **options)
        return json.loads(out) if out else None

    def export(self, key):
        self.run_ctl("vdisc", "export", f"dfc://img/{key}.vdsc", "-o", "x.iso")
        with open(self.path("x.iso"), "rb") as f:
            return f.read()

    def contents(self, key):
        """What bsdtar, which knows nothing of dfc, reads of the image."""
        self.export(key)
        out = self.path("out")
        shutil.rmtree(out, ignore_errors=True)
        os.mkdir(out)
        subprocess.run(["bsdtar", "-xf", self.path("x.iso"), "-C", out], check=True)
        found = {}
        for at, _, names in os.walk(out):
            for name in names:
                full = os.path.join(at, name)
                with open(full, "rb") as f:
                    found[os.path.relpath(full, out)] = f.read()
        return found

    def stored(self, prefix):
        return {e["name"]: e["size"] for e in self.json("ls", "img", "--prefix", prefix, "--internal",
                                                        "--allow-empty")["entries"]}

    def check(self, key, files):
        self.assertEqual(self.contents(key), files)
        self.assertTrue(self.json("vdisc", "verify", f"dfc://img/{key}.vdsc")["ok"])

    def content_id(self, key):
        return self.json("vdisc", "inspect", f"dfc://img/{key}.vdsc")["content_id"]

    def test_each_content_is_an_object(self):
        done = self.burn("a", "--tree", "tree")
        wanted = {f".dfc-unique/{digest(d)[:2]}/{digest(d)}": len(d) for d in self.files.values()}
        self.assertEqual(self.stored(".dfc-unique/"), wanted)
        self.assertEqual((done["sent_objects"], done["sent_bytes"]),
                         (len(wanted), sum(wanted.values())))
        self.check("a", self.files)
        self.assertEqual(self.burn("b", "--tree", "tree")["sent_objects"], 0)
        self.assertEqual(self.export("b"), self.export("a"))
        said = self.text("vdisc", "burn", "--tree", "tree", "-o", "dfc://img/c.vdsc")
        self.assertIn("stored 0 objects", said)

    def test_a_list_of_the_same_makes_the_same_bytes(self):
        self.burn("a", "--tree", "tree", "-j", "1")
        rows = [f"/{path},dfc://img/.dfc-unique/{digest(d)[:2]}/{digest(d)},{len(d)},{digest(d)},"
                f"{TIME},0644" for path, d in self.files.items()]
        rows += [f"/{at}/,,,,,0755" for at in {os.path.dirname(p) for p in self.files} | {
            p.split("/")[0] for p in self.files if "/" in p} if at]
        random.Random(2).shuffle(rows)
        with open(self.path("list.csv"), "w", encoding="utf-8") as f:
            f.write("".join(r + "\n" for r in rows))
        self.burn("b", "-i", "list.csv")
        self.assertEqual(self.export("b"), self.export("a"))
        self.assertEqual(self.content_id("b"), self.content_id("a"))

    def test_packs(self):
        self.burn("a", "--tree", "tree")
        done = self.burn("p", "--tree", "tree", "--store", "pack")
        packs = self.stored(".dfc-packs/")
        self.assertTrue(1 <= len(packs) <= 3, packs)
        self.assertEqual(done["sent_objects"], len(packs))  # `big` was there
        for name in packs:
            self.assertEqual(digest(self.run_ctl("cat", f"img/{name}")), os.path.basename(name))
        self.check("p", self.files)
        self.assertEqual(self.content_id("p"), self.content_id("a"))
        self.assertEqual(self.burn("q", "--tree", "tree", "--store", "pack")["sent_objects"], 0)

    def test_files_of_a_pack_have_checksums(self):
        self.burn("p", "--tree", "tree", "--store", "pack")
        raw = subprocess.run(["gzip", "-dc"], input=self.run_ctl("cat", "img/p.vdsc"),
                             capture_output=True, check=True).stdout
        text = subprocess.run(["capnp", "convert", "binary:json", SCHEMA, "VDisc"], input=raw,
                              capture_output=True, check=True).stdout
        members = json.loads(text)["v2"]["members"]
        image = self.export("p")
        sizes = {digest(d): len(d) for d in self.files.values()}
        self.assertEqual({bytes(m["sha256"]).hex() for m in members},
                         {h for h, size in sizes.items() if size <= SMALL})
        for m in members:
            at, name = m.get("lba") * 2048, bytes(m["sha256"]).hex()
            self.assertEqual(digest(image[at:at + sizes[name]]), name)

    def test_a_base_is_not_stored_again(self):
        for store in ("unique", "pack"):
            with self.subTest(store):
                self.write_tree(store, self.files)
                self.burn(store + "1", "--tree", store, "--store", store)
                changed = dict(self.files)
                changed["d1/new"] = store.encode() * 100
                changed["d2/s2/002.bin"] = store.encode() * 50
                del changed["d3/s0/003.bin"]
                os.unlink(self.path(f"{store}/d3/s0/003.bin"))
                self.write_tree(store, {k: v for k, v in changed.items() if self.files.get(k) != v})
                os.utime(self.path(f"{store}/d2/s2/002.bin"), (TIME + 1, TIME + 1))
                done = self.burn(store + "2", "--tree", store, "--store", store, "--base",
                                 f"dfc://img/{store}1.vdsc")
                self.assertEqual(done["sent_objects"], 2 if store == "unique" else 1)
                self.assertLess(done["sent_bytes"], 5000)
                self.check(store + "2", changed)

    def test_what_the_base_knows_is_not_read(self):
        """A file of the same path, size and time: its bytes are those of the base."""
        self.burn("a", "--tree", "tree")
        self.write_tree("tree", {"big": b"x" * len(self.files["big"])})
        self.burn("b", "--tree", "tree", "--base", "dfc://img/a.vdsc")
        self.check("b", self.files)
        os.utime(self.path("tree/big"), (TIME + 9, TIME + 9))
        self.burn("c", "--tree", "tree", "--base", "dfc://img/a.vdsc")
        self.check("c", {**self.files, "big": b"x" * len(self.files["big"])})

    def test_a_pack_of_which_little_is_wanted(self):
        self.burn("p", "--tree", "tree", "--store", "pack")
        old = self.stored(".dfc-packs/")
        few = {k: v for k, v in sorted(self.files.items())[:4] if v}
        self.write_tree("few", few)
        self.burn("q", "--tree", "few", "--store", "pack", "--base", "dfc://img/p.vdsc")
        new = {k: v for k, v in self.stored(".dfc-packs/").items() if k not in old}
        self.assertEqual(len(new), 1)
        self.assertLess(sum(new.values()), sum(old.values()) / 2)
        self.check("q", few)

    def test_an_older_image_is_changed(self):
        for store in ("unique", "pack"):
            with self.subTest(store):
                first = store + "1"
                self.burn(first, "--tree", "tree", "--store", store)
                before = len(self.stored(""))
                more = {"d1/new": b"new", "d4/s1/004.bin": b"another", "x/y/z": b"deep"}
                self.write_tree(store, more)
                done = self.burn(store + "2", "--from", f"dfc://img/{first}.vdsc", "--remove",
                                 "/d0", "--remove", "big", "--tree", store)
                wanted = {k: v for k, v in self.files.items()
                          if not k.startswith("d0/") and k != "big"} | more
                self.check(store + "2", wanted)
                self.assertLessEqual(done["sent_objects"], 3)
                self.assertLessEqual(len(self.stored("")), before + 5)

    def test_a_changed_copy_is_as_a_burn_of_all(self):
        self.write_tree("tree", {"old": b"1"})
        self.burn("a", "--tree", "tree")
        more = {"d1/new": b"new"}
        self.write_tree("more", more)
        os.utime(self.path("more/d1/new"), (TIME + 5, TIME + 5))
        self.burn("b", "--from", "dfc://img/a.vdsc", "--remove", "old", "--tree", "more")
        os.unlink(self.path("tree/old"))
        self.write_tree("tree", more)
        os.utime(self.path("tree/d1/new"), (TIME + 5, TIME + 5))
        self.burn("c", "--tree", "tree")
        self.assertEqual(self.export("b"), self.export("c"))

    def test_an_object_of_the_older_image_was_replaced(self):
        self.burn("a", "--tree", "tree")
        name = next(iter(self.stored(".dfc-unique/")))
        self.run_ctl("put", "-", f"img/{name}", stdin=b"other")
        self.burn("b", "--from", "dfc://img/a.vdsc", code=1)
        self.assertIn("has been replaced since its tag or checksum was taken", self.err)
        self.run_ctl("object", "head", "img/b.vdsc", code=3)

    def test_rm_and_gc(self):
        """What the second image needs stays; what nothing needs leaves, if it is old enough."""
        self.burn("a", "--tree", "tree", "--store", "pack")
        few = {k: v for k, v in self.files.items() if k.startswith("d0/")}
        self.write_tree("few", few)
        self.burn("b", "--tree", "few")
        both = self.json("vdisc", "stats", "dfc://img/a.vdsc", "dfc://img/b.vdsc")
        self.assertEqual([i["files"] for i in both["images"]], [len(self.files), len(few)])
        self.assertEqual(both["images"][1]["file_bytes"], sum(map(len, few.values())))
        self.run_ctl("put", "-", "img/.dfc-other/x", stdin=b"not of a burn")
        self.assertEqual(self.json("vdisc", "gc", "img", "--grace", "1ms")["objects"], 0)
        self.run_ctl("vdisc", "rm", "dfc://img/a.vdsc")
        self.assertEqual([n for n in self.stored("") if n.startswith("a.")], [])
        doc = self.json("vdisc", "gc", "img", "--grace", "600000h")
        self.assertEqual((doc["objects"], doc["images"]), (0, 1))
        self.assertGreater(doc["younger"], 0)
        doc = self.json("vdisc", "gc", "img", "--grace", "1ms", "--dry-run")
        before = self.stored("")
        done = self.json("vdisc", "gc", "img", "--grace", "1ms")
        self.assertEqual((doc["objects"], doc["bytes"]), (done["objects"], done["bytes"]))
        self.assertEqual(len(before) - len(self.stored("")), done["objects"])
        self.assertEqual(self.stored(".dfc-packs/"), {})
        self.check("b", few)

    def test_gc_removes_nothing_if_an_image_cannot_be_read(self):
        self.burn("a", "--tree", "tree")
        self.run_ctl("vdisc", "rm", "dfc://img/a.vdsc")
        self.mock.create("other", {})
        self.run_ctl("put", "-", "other/bad.vdsc", stdin=b"no table")
        before = self.stored("")
        self.run_ctl("vdisc", "gc", "img", "--grace", "1ms", code=1)
        self.assertIn("image 'other/bad.vdsc' cannot be read, so nothing is removed", self.err)
        self.assertEqual(self.stored(""), before)

    def test_gc_keeps_what_images_of_other_buckets_need(self):
        self.burn("a", "--tree", "tree")
        self.mock.create("other", {})
        self.run_ctl("vdisc", "burn", "--from", "dfc://img/a.vdsc", "-o", "dfc://other/b.vdsc")
        self.run_ctl("vdisc", "rm", "dfc://img/a.vdsc")
        self.assertEqual(self.json("vdisc", "gc", "img", "--grace", "1ms")["objects"], 0)
        self.assertTrue(self.json("vdisc", "verify", "dfc://other/b.vdsc")["ok"])

    def test_gc_keeps_what_images_of_internal_names_need(self):
        self.burn("a", "--tree", "tree")
        self.run_ctl("vdisc", "burn", "--from", "dfc://img/a.vdsc", "-o", "dfc://img/.dfc-old/a.vdsc")
        self.run_ctl("vdisc", "rm", "dfc://img/a.vdsc")
        doc = self.json("vdisc", "gc", "img", "--grace", "1ms")
        self.assertEqual((doc["objects"], doc["images"]), (0, 1))
        self.assertTrue(self.json("vdisc", "verify", "dfc://img/.dfc-old/a.vdsc")["ok"])

    def put_now(self, key):
        """An object of now: those of the mock are old."""
        self.run_ctl("put", "-", f"img/{key}", stdin=b"")
        self.mock.buckets["img"][1][key].modified = int(time.time())

    def test_gc_waits_for_a_burn(self):
        """What a burn has put while it works keeps contents from being removed."""
        self.burn("a", "--tree", "tree")
        self.run_ctl("vdisc", "rm", "dfc://img/a.vdsc")
        before = self.stored("")
        lease = ".dfc-vdisc/burn/0123456789abcdef/b.vdsc"
        self.put_now(lease)
        self.mock.create("other", {})
        for bucket in ("img", "other"):
            self.run_ctl("vdisc", "gc", bucket, "--grace", "1h", code=1)
            self.assertIn(f"a burn is at work: repeat when it has ended; if it was killed, remove the object "
                          f"'img/{lease}'", self.err)
        self.assertEqual(self.stored(""), {**before, lease: 0})
        # A short grace is not for a burn that is at work: it puts the object every 5 minutes.
        self.run_ctl("vdisc", "gc", "img", "--grace", "1ms", code=1)
        self.mock.buckets["img"][1][lease].modified -= 7200  # of a burn that was killed
        # If it only slept, it sees that the object is gone.
        self.run_ctl("put", "-", "other/bad.vdsc", stdin=b"no table")
        self.run_ctl("vdisc", "gc", "img", "--grace", "1h", code=1)
        self.assertEqual(self.stored(""), before)
        self.run_ctl("rm", "other/bad.vdsc")
        self.assertEqual(self.json("vdisc", "gc", "img", "--grace", "1h")["objects"], len(before))
        self.assertEqual(self.stored(""), {})
        self.burn("b", "--tree", "tree")  # its image is there: so it has ended
        self.put_now(lease)
        self.run_ctl("vdisc", "gc", "img", "--grace", "1h")

    def test_a_burn_waits_for_gc(self):
        self.burn("a", "--tree", "tree")
        self.put_now(".dfc-vdisc/gc/0123456789abcdef")
        self.burn("b", "--tree", "tree", code=1)
        self.assertIn("'vdisc gc' is at work: repeat when it has ended", self.err)
        self.run_ctl("object", "head", "img/b.vdsc", code=3)
        self.assertEqual(list(self.stored(".dfc-vdisc/")), [".dfc-vdisc/gc/0123456789abcdef"])
        self.run_ctl("put", "-", "img/plain", stdin=b"plain")
        with open(self.path("plain.csv"), "w", encoding="utf-8") as f:
            f.write("/plain,dfc://img/plain,5\n")
        self.burn("plain", "-i", "plain.csv")  # it needs nothing that gc removes
        self.mock.buckets["img"][1][".dfc-vdisc/gc/0123456789abcdef"].modified -= 25 * 3600
        self.burn("b", "--tree", "tree")  # it was killed a day ago

    def test_burns_and_gc_say_that_they_are_at_work(self):
        """First that, then the question for the other, then what is removed or used."""
        self.burn("a", "--tree", "tree")
        self.run_ctl("vdisc", "rm", "dfc://img/a.vdsc")
        for words, order in (
                (("burn", "--tree", "tree", "-o", "dfc://img/b.vdsc"),
                 (("PUT", ".dfc-vdisc/burn/"), ("GET", "prefix=.dfc-vdisc/gc/"), ("HEAD", ".dfc-unique/"),
                  ("PUT", "objects/img/b.vdsc"), ("DELETE", ".dfc-vdisc/burn/"))),
                (("gc", "img", "--grace", "1ms"),
                 (("PUT", ".dfc-vdisc/gc/"), ("GET", "prefix=.dfc-vdisc/burn/"), ("GET", "objects/img/b.vdsc"),
                  ("DELETE", ".dfc-vdisc/gc/")))):
            self.mock.log.clear()
            self.run_ctl("vdisc", *words)
            asked = [f"{r['method']} {urllib.parse.unquote(r['path'])}" for r in self.mock.requests()]
            at = [next(i for i, a in enumerate(asked) if a.startswith(method) and what in a)
                  for method, what in order]
            self.assertEqual(at, sorted(at), asked)
        self.assertEqual(self.stored(".dfc-vdisc/"), {})

    def test_a_bucket_becomes_an_image(self):
        files = {"a/1": b"one", "a/2": b"two" * 900, "b": b"", "é x": b"three"}
        self.mock.create("raw", {**{"set/" + k: v for k, v in files.items()}, "other": b"x",
                                 "set/e/": b"", ".dfc-unique/x": b"y"})
        self.burn("s", "--bucket", "dfc://raw/set/")
        self.assertEqual(self.contents("s"), files)
        self.assertEqual(self.json("vdisc", "ls", "dfc://img/s.vdsc", "e"), [])
        self.assertEqual(self.stored(".dfc-unique/"), {})
        self.burn("all", "--bucket", "dfc://raw")
        self.assertEqual(self.contents("all"), {**{"set/" + k: v for k, v in files.items()}, "other": b"x"})
        self.burn("none", "--bucket", "dfc://raw/nothing", code=4)
        self.run_ctl("put", "-", "img/set/x.vdsc.0123456789abcdef.isohdr", stdin=b"of a burn that failed")
        self.run_ctl("put", "-", "img/set/y", stdin=b"content")
        self.run_ctl("vdisc", "burn", "--bucket", "dfc://img/set/", "-o", "dfc://img/set/x.vdsc")
        self.assertEqual([e["name"] for e in self.json("vdisc", "ls", "dfc://img/set/x.vdsc")], ["y"])

    def test_links_and_empty_directories(self):
        os.makedirs(self.path("t/e"))
        os.symlink("../none", self.path("t/e/l"))
        self.burn("a", "--tree", "t")
        rows = {e["name"]: e for e in self.json("vdisc", "ls", "dfc://img/a.vdsc", "-r")}
        self.assertEqual((rows["e"]["kind"], rows["e/l"]["target"]), ("directory", "../none"))

    def test_a_copy_stays_below_its_directory(self):
        """A link of an earlier image, where a later one has a directory."""
        os.makedirs(self.path("outside"))
        os.makedirs(self.path("t"))
        os.symlink(self.path("outside"), self.path("t/a"))
        self.burn("a", "--tree", "t")
        self.run_ctl("vdisc", "cp", "-r", "dfc://img/a.vdsc", "/", "to")
        for name in ("d/", "l"):
            shutil.rmtree(self.path("t"))
            os.makedirs(self.path("t/a"))
            if name == "l":
                os.symlink("x", self.path("t/a/l"))
            else:
                os.makedirs(self.path("t/a/d"))
            self.burn("b" + name[0], "--tree", "t")
            self.run_ctl("vdisc", "cp", "-r", f"dfc://img/b{name[0]}.vdsc", "/", "to", code=1)
            self.assertEqual(os.listdir(self.path("outside")), [])
        self.run_ctl("vdisc", "cp", "-r", "dfc://img/bl.vdsc", "/", "new")
        self.assertEqual(os.readlink(self.path("new/a/l")), "x")

    def test_a_copy_replaces_links(self):
        os.makedirs(self.path("t"))
        for number, target in enumerate(("one", "one", "another")):
            if os.path.lexists(self.path("t/l")):
                os.unlink(self.path("t/l"))
            os.symlink(target, self.path("t/l"))
            image = f"dfc://img/{number}.vdsc"
            self.run_ctl("vdisc", "burn", "--tree", "t", "-o", image)
            self.run_ctl("vdisc", "cp", "-r", image, "/", "to")
            self.assertEqual((os.listdir(self.path("to")), os.readlink(self.path("to/l"))), (["l"], target))
        os.unlink(self.path("to/l"))
        with open(self.path("to/l"), "wb") as f:
            f.write(b"a file")
        self.run_ctl("vdisc", "cp", "-r", image, "/", "to", code=1)
        self.assertIn("make link 'l'", self.err)

    def test_removals_may_not_leave_nothing(self):
        self.burn("a", "--tree", "tree")
        self.burn("b", "--from", "dfc://img/a.vdsc", "--remove", "/", code=4)
        self.assertIn("the image would be empty (--allow-empty", self.err)
        self.burn("b", "--from", "dfc://img/a.vdsc", "--remove", "/", "--allow-empty")

    def test_a_burn_that_fails_says_what_stays(self):
        self.mock.plan({"at": "target", "method": "PUT", "do": "status", "status": 507, "code": "no_space",
                        "path": "isohdr"})
        self.run_ctl("vdisc", "burn", "--tree", "tree", "-o", "dfc://img/a.vdsc", code=1)
        self.assertRegex(self.err,
                         r"objects were stored before the failure, .*'dfcctl vdisc gc img --grace 0' removes it")
        self.mock.plan({"at": "target", "method": "PUT", "do": "status", "status": 507, "code": "no_space",
                        "path": "isohdr"})
        self.run_ctl("vdisc", "burn", "--tree", "tree", "-o", "dfc://img/a.vdsc", code=1)
        self.assertNotIn("stored before", self.err)

    def test_an_image_has_a_name_that_gc_knows(self):
        for name in ("a", "a.iso", ".vdsc", ".dfc-unique/a.vdsc", ".dfc-packs/a.vdsc", ".dfc-vdisc/a.vdsc"):
            self.run_ctl("vdisc", "burn", "--tree", "tree", "-o", f"dfc://img/{name}", code=2)
            self.assertIn("'vdisc gc'", self.err)
        self.assertEqual(self.stored(""), {})

    def test_gc_needs_all_buckets(self):
        """Images of a bucket that the user does not see may need the contents."""
        self.burn("a", "--tree", "tree")
        self.run_ctl("vdisc", "rm", "dfc://img/a.vdsc")
        before = self.stored("")
        self.mock.more = {"hidden": True}
        self.run_ctl("vdisc", "gc", "img", "--grace", "1ms", code=7)
        self.assertIn("buckets that you do not see", self.err)
        self.assertEqual(self.stored(""), before)

    def test_what_is_refused(self):
        os.mkdir(self.path("t"))
        os.mkfifo(self.path("t/pipe"))
        for words, code, said in (
                (["--tree", "t"], 1, "is a device, a pipe or a socket"),
                (["--tree", "none"], 1, "none"),
                (["--from", "dfc://img/none.vdsc"], 3, "open image"),
                (["--tree", "tree", "--no-check"], 2, "--no-check"),
                (["--tree", "tree", "-i", "x"], 2, "takes one of"),
                (["--bucket", "dfc://none"], 3, "none"),
                (["--remove", "x", "-i", "x"], 2, "--remove needs --from"),
                (["--base", "dfc://img/a.vdsc", "-i", "x"], 2, "--base needs --tree"),
                ([], 2, "needs -i")):
            self.burn("x", *words, code=code)
            self.assertIn(said, self.err)
        self.burn("a", "--tree", "tree")
        self.burn("x", "--from", "dfc://img/a.vdsc", "--remove", "d0/none", code=2)
        self.assertIn("has no such path", self.err)
        self.run_ctl("object", "head", "img/x.vdsc", code=3)


if __name__ == "__main__":
    unittest.main()
