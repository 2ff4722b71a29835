#!/usr/bin/env python3
"""house.py finds what it is there for."""

import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import house  # noqa: E402

README = "| file | what |\n|---|---|\n| `a`, `b.h` | `z` is no file |\n"


class House(unittest.TestCase):
    def objections(self, check, files):
        """What check(root, paths) says of a tree of {path: text}."""
        with tempfile.TemporaryDirectory(prefix="dfc-house-") as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            return list(check(root, sorted(files)))

    def test_a_table_names_every_source(self):
        whole = {"net/http/README.md": README, "net/http/a.c": "",
                 "net/http/b.h": "", "net/http/b_test.c": "", "net/http/sub/x.c": ""}
        self.assertEqual(self.objections(house.check_readmes, whole), [])
        self.assertEqual(self.objections(house.check_readmes, {**whole, "net/http/c.c": ""}),
                         ["net/http/README.md: its table has no row for c"])
        del whole["net/http/b.h"]
        self.assertEqual(self.objections(house.check_readmes, whole),
                         ["net/http/README.md: its table has b, which is not there"])

    def test_sizes(self):
        function = "int f(void)\n{\n" + "    x();\n" * (house.FUNCTION - 2) + "}\n"
        self.assertEqual(self.objections(house.check_sizes, {"x/a.c": function}), [])
        longer = function.replace("{\n", "{\n    x();\n")
        self.assertIn("x/a.c:1: 61 lines", self.objections(house.check_sizes, {"x/a.c": longer})[0])
        wide = "/* " + "\u00e9" * house.LINE + " */\n"
        self.assertIn("x/a.h:1: 106 col", self.objections(house.check_sizes, {"x/a.h": wide})[0])
        long = "x = 1\n" * (house.FILE + 1)
        self.assertIn("x/a.py: 601 lines", self.objections(house.check_sizes, {"x/a.py": long})[0])
        many = {f"x/{i}.c": "" for i in range(house.FOLDER)}
        self.assertEqual(self.objections(house.check_sizes, {**many, "x/a_test.c": ""}), [])
        self.assertIn("x/: 61 files", self.objections(house.check_sizes, {**many, "x/a.h": ""})[0])

    def test_form(self):
        self.assertEqual(self.objections(house.check_format, {"x/a.c": "int  a;\n"}),
                         [f"x/a.c: not formatted; run {house.FORMAT} -i on it"])
        self.assertIn("chmod +x", self.objections(house.check_scripts, {"x/a": "#!/bin/sh\n"})[0])
        self.assertEqual(self.objections(house.check_scripts, {"x/a": "text\n"}), [])


if __name__ == "__main__":
    unittest.main()
