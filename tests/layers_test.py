#!/usr/bin/env python3
"""layers.py finds what it is there for."""

import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import layers  # noqa: E402

DRAWING = """# A
## Layers
text
```
 clients   api/ctl/
           api/
 ======= the HTTP contract =======
 daemons   proxy/  target/
 engines   sort/
 model     cluster/
 ground    common/
```

## Rooms
```
target/       wiring
  http/       calls
  cold/       backends
  copies/     several targets
  store/      objects
```
"""


class Layers(unittest.TestCase):
    def objections(self, more="", **files):
        """What is said of a tree of a.h in every folder and these: {folder_name: text of x.c}."""
        with tempfile.TemporaryDirectory(prefix="dfc-layers-") as root:
            tree = {"docs/design/architecture.md": DRAWING + more}
            for folder in ("api/ctl", "api", "proxy", "target", "target/http", "target/store",
                           "target/testing", "sort", "cluster", "common",
                           "tests"):
                tree[f"{folder}/a.h"] = "#pragma once\n"
            for name, text in files.items():
                path = name.replace("__", "/")
                tree[path if path.endswith(".def") else path + ".c"] = text
            for path, text in tree.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            return layers.check(root)[0]

    def one(self, expected, more="", **files):
        wrong = self.objections(more, **files)
        self.assertEqual(len(wrong), 1, wrong)
        self.assertIn(expected, wrong[0])

    def test_allows_what_points_down(self):
        self.assertEqual([], self.objections(
            proxy__x='#include "proxy/a.h"\n#include "common/a.h"\n#include <stdio.h>\n',
            api__ctl__x='#include "api/a.h"\n#include "common/a.h"\n#include "sort/a.h"\n',
            tests__x='#include "proxy/a.h"\n#include "target/a.h"\n'))

    def test_rooms(self):
        self.assertEqual([], self.objections(
            target__http__x='#include "target/store/a.h"\n#include "target/http/a.h"\n',
            target__store__x_test='#include "target/http/a.h"\n#include "target/testing/a.h"\n',
            target__main='#include "target/http/a.h"\n#include "target/store/a.h"\n'))
        self.one("target/store/x.c:1: target/ -> target/http/a.h: an include points down",
                 target__store__x='#include "target/http/a.h"\n')
        self.one("a room does not include what wires", target__store__x='#include "target/a.h"\n')
        self.one("never up", target__store__x='#include "target/testing/a.h"\n')
        self.one("only tests include", target__main='#include "target/testing/a.h"\n')
        self.one("the room cellar/ is not in the drawing",
                 target__cellar__x='#include "target/store/a.h"\n')

    def test_rooms_do_not_reach_up_through_the_target(self):
        reach = "void f(void) { cold_want(t->cold); back_note(s->target->back, t->store); }\n"
        self.assertEqual([], self.objections(target__http__x=reach, target__cold__x=reach,
                                             target__copies__x_test=reach, target__main=reach))
        self.one("target/copies/x.c:2: target->cold: target/copies/ does not reach up",
                 target__copies__x="\nint x = p->target->cold->count;\n")
        self.one("t->unrecoverable: target/store/ does not reach up into target/copies/",
                 target__store__x="int x = t->unrecoverable->count, y = list->cold;\n")

    def test_clients_read_tables(self):
        def said(table):
            return self.objections(**{f"cluster__{table}.def": "", "api__ctl__x":
                                      f'#include "cluster/{table.replace("__", "/")}.def"\n'})
        self.assertEqual([], said("props__bucket_props"))
        self.assertIn("HTTP only", "".join(said("props__settings")))

    def test_finds_circles(self):
        below = '#include "cluster/a.h"\n'
        self.assertEqual([], self.objections(cluster__x=below, cluster__x_test=below))
        self.one("a circle of includes: cluster/x, cluster/y",
                 cluster__x='#include "cluster/y.h"\n',
                 cluster__y=below + '#include "cluster/x.h"\n',
                 cluster__above='#include "cluster/x.h"\n')

    def test_names_each_circle_by_itself(self):
        wrong = self.objections(
            cluster__x='#include "cluster/y.h"\n', cluster__y='#include "cluster/x.h"\n',
            cluster__between='#include "cluster/x.h"\n#include "cluster/a.h"\n',
            sort__x='#include "sort/y.h"\n', sort__y='#include "sort/z.h"\n',
            sort__z='#include "sort/x.h"\n')
        self.assertEqual(["a circle of includes: cluster/x, cluster/y",
                          "a circle of includes: sort/x, sort/y, sort/z"], wrong)

    def test_finds_circles_through_several_folders(self):
        self.one("a circle of includes: cluster/base/x, cluster/x",
                 cluster__x='#include "cluster/base/x.h"\n',
                 cluster__base__x='#include "cluster/x.h"\n')

    def test_an_inner_header_belongs_to_its_module(self):
        self.one("a circle of includes: cluster/x, cluster/y",
                 cluster__x_parts='#include "cluster/y.h"\n',
                 cluster__y='#include "cluster/x.h"\n')

    def test_names_the_arrow(self):
        self.one("common/x.c:2: common/ -> proxy/: an include points down",
                 common__x='\n#include "proxy/a.h"\n')
        self.one("proxy/ -> target/: siblings", proxy__x='#include "target/a.h"\n')
        self.one("api/ -> api/ctl/: an include points down", api__x='#include "api/ctl/a.h"\n')
        self.one("api/ -> proxy/: a client meets", api__x='#include "proxy/a.h"\n')
        self.one("api/ -> sort/: a client meets", api__x='#include "sort/a.h"\n')
        self.one("only tests", proxy__x='#include "tests/a.h"\n')

    def test_wants_includes_from_the_root_and_the_own_header_first(self):
        self.one("written from the root", proxy__x='#include "a.h"\n')
        self.one("first include", proxy__a='#include "common/a.h"\n#include "proxy/a.h"\n')

    def test_finds_strange_folders_and_marks(self):
        self.one("not in the drawing", other__x="int x;\n")
        self.one("finish it", proxy__x="/* " + "TO" + "DO */\n")

    def test_needs_the_drawing(self):
        with tempfile.TemporaryDirectory(prefix="dfc-layers-") as root:
            os.makedirs(os.path.join(root, "docs", "design"))
            page = os.path.join(root, "docs", "design", "architecture.md")
            with open(page, "w", encoding="utf-8") as f:
                f.write("# nothing\n")
            self.assertEqual(1, len(layers.check(root)[0]))


if __name__ == "__main__":
    unittest.main()
