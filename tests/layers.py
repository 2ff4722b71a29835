#!/usr/bin/env python3
"""The layer rule of docs/design/architecture.md, read from its drawing and enforced on the
includes.

    layers.py [ROOT]

Each line of the drawing that names folders is a row.  A folder includes itself and what stands in
lower rows; never a sibling in its row, never what is above.  Rows above the line "the HTTP
contract" are clients: of what is below that line they see common/ only, and the engines of
CLIENTS_ENGINES, which need no daemon, and the tables of CLIENTS_TABLES.  tests/ may
include everything, and nobody includes tests/.

A folder whose drawing stands under '## Rooms' has rooms: the drawing begins with the folder, and a
room includes itself and what stands in lower rows.  Files of the folder itself wire all rooms;
unit tests, fuzzers and testing/ include any.  A room of target/ does not reach through
`struct target` into a room above it (REACHED).

foo.c and foo.h are one module, to which an inner header (foo_parts.h) belongs.  No chain of
includes leads from a module back to itself.

It also looks that every .c begins with its own header where it has one, that headers have #pragma
once, and that no file holds a mark of unfinished work.
"""

import os
import re
import sys

DRAWING = re.compile(r"^## Layers\n.*?^```\n(.*?)^```", re.S | re.M)
ROOMS = re.compile(r"^## Rooms\n(.*?)(?=^## |\Z)", re.S | re.M)
ROOMS_OF = re.compile(r"^```\n([a-z/]+)/[^\n]*\n(.*?)^```", re.S | re.M)
ROOM = re.compile(r"^ +([a-z][a-z0-9]*)/", re.M)
TESTING = re.compile(r"_test\.[ch]$|_fuzz\.c$|/testing/")
FOLDER = re.compile(r"\b((?:[a-z0-9]+/)+)")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
# Headers that are installed side by side.
INSTALLED = ("api/dfc.h", "api/dfc_jobs.h", "api/dfc_ring.h", "plog/plfs/plfs.h",
             "plog/plfs/plfs_error.h")
CLIENTS_TABLES = {"cluster/props/bucket_props.def"}
CLIENTS_ENGINES = {("api/ctl", "sort"), ("api/ctl", "vdisc"), ("api/ctl", "ring"), ("api/ctl", "plog"), ("vdisc/client", "vdisc"),
                   ("plog/client", "plog"), ("plog/plfs", "plog"),
                   ("mount/image", "vdisc"), ("cache", "hrw"), ("cache", "io"), ("mount/group", "hrw"),
                   ("mount/group", "io"), ("mount/group", "net"), ("mount/cached", "net")}
# The fields of `struct target` that belong to a room above target/node/.
REACH = re.compile(r"\b(?:t|target)->(\w+)\b")
REACHED = {"copies": "copies", "copier": "copies", "unrecoverable": "copies", "handers": "copies",
           "ec": "slices", "cold": "cold", "back": "cold", "fresh": "cold",
           "archives": "archive", "batches": "archive"}
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


class Rooms:
    """Which room of a folder may include which."""

    def __init__(self, folder, drawing):
        self.folder = folder
        self.row = {room: number for number, room in enumerate(ROOM.findall(drawing))}

    def room_of(self, path):
        """"": a file of the folder itself; None: of another folder."""
        if not path.startswith(self.folder + "/"):
            return None
        rest = path[len(self.folder) + 1:]
        return rest.split("/")[0] if "/" in rest else ""

    def objection(self, path, included):
        source, target = self.room_of(path), self.room_of(included)
        if source is None or target is None or source == target or TESTING.search(path):
            return None
        if source == "":
            return "only tests include that" if target == "testing" else None
        if source not in self.row:
            return f"the room {source}/ is not in the drawing of {self.folder}/"
        if target == "":
            return f"a room does not include what wires {self.folder}/"
        if self.row.get(target, -1) < self.row[source]:
            return f"an include points down the drawing of {self.folder}/, never up"
        return None


def rooms_of(architecture):
    """Of each folder that has a drawing."""
    section = ROOMS.search(architecture)
    return [Rooms(folder, drawing)
            for folder, drawing in (ROOMS_OF.findall(section.group(1)) if section else [])]


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
        yield f"{path}: its folder is not in the drawing of docs/design/architecture.md"
        return
    for found in INCLUDE.finditer(text):
        at = f"{path}:{line_of(text, found.start())}"
        target_path = found.group(1)
        if path in INSTALLED and os.path.join(os.path.dirname(path), target_path) in INSTALLED:
            continue
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
        if objection and not (source in rule.clients and target_path in CLIENTS_TABLES):
            yield f"{at}: {source}/ -> {target}/: {objection}"


def check_rooms(rooms, path, text):
    for found in INCLUDE.finditer(text):
        for folder in rooms:
            objection = folder.objection(path, found.group(1))
            if objection:
                yield (f"{path}:{line_of(text, found.start())}: {folder.folder}/ -> "
                       f"{found.group(1)}: {objection}")


def module_of(path):
    return re.sub(r"(?:_parts)?\.[ch]$", "", path)


def modules_of(root, paths):
    """{module: modules that it includes}"""
    uses = {}
    for path in paths:
        if path.endswith((".c", ".h")) and not TESTING.search(path):
            included = {module_of(name) for name in INCLUDE.findall(read(root, path))}
            uses.setdefault(module_of(path), set()).update(included - {module_of(path)})
    return uses


def reachable(uses, start):
    """The modules that a chain of includes leads to."""
    found, ahead = set(), [start]
    while ahead:
        for module in uses.get(ahead.pop(), ()):
            if module in uses and module not in found:
                found.add(module)
                ahead.append(module)
    return found


def circles_of(uses):
    """Of modules each of which leads to all of the others."""
    reach = {module: reachable(uses, module) for module in uses}
    circles = {frozenset(other for other in reach[module] if module in reach[other])
               for module in uses if module in reach[module]}
    return sorted(circles, key=sorted)


def check_circles(root, paths):
    for circle in circles_of(modules_of(root, paths)):
        yield f"a circle of includes: {', '.join(sorted(circle))}"


def check_reach(rooms, path, text):
    """A room reaches through `struct target` into itself and what stands below it."""
    for folder in rooms:
        source = folder.room_of(path)
        if folder.folder != "target" or source not in folder.row or TESTING.search(path):
            continue
        for found in REACH.finditer(text):
            room = REACHED.get(found.group(1))
            if room is not None and folder.row.get(room, -1) < folder.row[source]:
                yield (f"{path}:{line_of(text, found.start())}: {found.group()}: "
                       f"target/{source}/ does not reach up into target/{room}/")


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


def check_file(rule, rooms, root, path):
    if os.path.splitext(path)[1] not in TEXTS:
        return
    text = read(root, path)
    for found in MARKS.finditer(text):
        yield f"{path}:{line_of(text, found.start())}: '{found.group()}': finish it, or file it"
    if not path.endswith((".c", ".h")):
        return
    yield from check_includes(rule, root, path, text)
    yield from check_rooms(rooms, path, text)
    yield from check_reach(rooms, path, text)
    yield from check_own_header(root, path, text)
    if path.endswith(".h") and "#pragma once" not in text:
        yield f"{path}: no #pragma once"


def check(root):
    """Sentences on everything that is wrong, and how many files were looked at."""
    architecture = read(root, "docs/design/architecture.md")
    drawing = DRAWING.search(architecture)
    if drawing is None:
        return ["docs/design/architecture.md: no drawing under '## Layers'"], 0
    rule = Rule(drawing.group(1))
    rooms = rooms_of(architecture)
    paths = list(files_of(root))
    wrong = [wrong for path in paths for wrong in check_file(rule, rooms, root, path)]
    wrong += check_circles(root, paths)
    return wrong, len(paths)


def main(args):
    root = os.path.abspath(args[0] if args else os.path.join(os.path.dirname(__file__), ".."))
    wrong, looked_at = check(root)
    print("\n".join(wrong + [f"{looked_at} files, {len(wrong)} objections"]))
    return 1 if wrong or looked_at == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
