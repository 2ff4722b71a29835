#!/usr/bin/env python3
"""The layer rule of docs/ARCHITECTURE.md, read from its drawing and enforced on the includes.

    layers.py [ROOT]

Each line of the drawing that names folders is a row.  A folder includes itself and what stands in
lower rows; never a sibling in its row, never what is above.  Rows above the line "the HTTP
contract" are clients: of what is below that line they see common/ only, and dfcctl the engine
sort/, which sorts files without a daemon.  tests/ may include everything, and nobody includes
tests/.

It also looks that every .c begins with its own header where it has one, that headers have #pragma
once, and that no file holds a mark of unfinished work.
"""

import os
import re
import sys

DRAWING = re.compile(r"^## Layers\n.*?^```\n(.*?)^```", re.S | re.M)
FOLDER = re.compile(r"\b((?:[a-z0-9]+/)+)")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
CLIENTS_ENGINES = {("api/ctl", "sort")}
MARKS = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")
TEXTS = (".c", ".h", ".def", ".py", ".sh", ".md", ".build", ".map", "")


class Rule:
    """Which folder may include which."""

    def __init__(self, drawing):
        self.row = {}
        self.clients = set()
        clients = True
        for number, line in enumerate(drawing.splitlines()):
            if "HTTP contract" in line:
                clients = False
                continue
            for folder in FOLDER.findall(line):
                folder = folder.rstrip("/")
                self.row[folder] = number
                if clients:
                    self.clients.add(folder)

    def folder_of(self, path):
        """The most particular folder of the drawing that holds this path; None outside of all."""
        directory = os.path.dirname(path)
        while directory:
            if directory in self.row:
                return directory
            directory = os.path.dirname(directory)
        return None

    def objection(self, source, target):
        """Why folder `source` may not include folder `target`, or None."""
        if source == target:
            return None
        if self.row[target] == self.row[source]:
            return "siblings in one row do not meet"
        if self.row[target] < self.row[source]:
            return "an include points down the drawing, never up"
        below = source in self.clients and target not in self.clients
        if below and target != "common" and (source, target) not in CLIENTS_ENGINES:
            return "a client meets the daemons over HTTP only"
        return None


def files_of(root):
    """Paths below root, without what is built, hidden or cached."""
    for at, directories, files in os.walk(root):
        directories[:] = sorted(d for d in directories
                                if not d.startswith((".", "build")) and d != "__pycache__")
        for name in sorted(files):
            yield os.path.relpath(os.path.join(at, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def check_includes(rule, root, path, text):
    source = rule.folder_of(path)
    in_tests = path.startswith("tests/")
    if source is None and not in_tests:
        yield f"{path}: its folder is not in the drawing of docs/ARCHITECTURE.md"
        return
    for found in INCLUDE.finditer(text):
        at = f"{path}:{line_of(text, found.start())}"
        target_path = found.group(1)
        if not os.path.exists(os.path.join(root, target_path)):
            if os.path.exists(os.path.join(root, os.path.dirname(path), target_path)):
                yield f"{at}: \"{target_path}\": includes are written from the root"
            continue
        if in_tests:
            continue
        target = rule.folder_of(target_path)
        if target is None:
            yield f"{at}: {source}/ -> {target_path}: only tests include that"
            continue
        objection = rule.objection(source, target)
        if objection:
            yield f"{at}: {source}/ -> {target}/: {objection}"


def check_own_header(root, path, text):
    """Directly, or by an inner header of its folder that includes it."""
    own = re.sub(r"\.c$", ".h", path)
    if not path.endswith(".c") or not os.path.exists(os.path.join(root, own)):
        return
    first = (INCLUDE.findall(text) or [""])[0]
    inner = os.path.dirname(first) == os.path.dirname(path) and os.path.exists(
        os.path.join(root, first))
    if first != own and not (inner and own in INCLUDE.findall(read(root, first))):
        yield f"{path}: its first include is not \"{own}\""


def check_file(rule, root, path):
    if os.path.splitext(path)[1] not in TEXTS:
        return
    text = read(root, path)
    for found in MARKS.finditer(text):
        yield f"{path}:{line_of(text, found.start())}: '{found.group()}': finish it, or file it"
    if not path.endswith((".c", ".h")):
        return
    yield from check_includes(rule, root, path, text)
    yield from check_own_header(root, path, text)
    if path.endswith(".h") and "#pragma once" not in text:
        yield f"{path}: no #pragma once"


def check(root):
    """Sentences on everything that is wrong, and how many files were looked at."""
    drawing = DRAWING.search(read(root, "docs/ARCHITECTURE.md"))
    if drawing is None:
        return ["docs/ARCHITECTURE.md: no drawing under '## Layers'"], 0
    rule = Rule(drawing.group(1))
    paths = list(files_of(root))
    return [wrong for path in paths for wrong in check_file(rule, root, path)], len(paths)


def main(args):
    root = os.path.abspath(args[0] if args else os.path.join(os.path.dirname(__file__), ".."))
    wrong, looked_at = check(root)
    print("\n".join(wrong + [f"{looked_at} files, {len(wrong)} objections"]))
    return 1 if wrong or looked_at == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
