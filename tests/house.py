#!/usr/bin/env python3
"""The form and the sizes that keep the house readable.

    house.py            clang-format over all of C; the README of a folder names every source in
                        it; scripts are executable; what is larger than it should be
    house.py --sizes    the sizes alone

Lines of C have at most 100 columns, functions 60 lines, files of C and Python 600, folders 60 .c
and .h files: unit tests, fuzzers and testing/ do not count there.
"""

import os
import re
import subprocess
import sys
import unicodedata

LINE, FUNCTION, FILE, FOLDER = 100, 60, 600, 60
TEST = re.compile(r"_test\.[ch]$|_fuzz\.c$|/testing/")
WITHOUT_TABLE = ("api", "api/ctl", "target", "hrw")  # their READMEs explain the whole
ROW = re.compile(r"^\| (`.*?) \|", re.M)
NAME = re.compile(r"`([a-z0-9_]+)(?:\.[ch])?`")
FORMAT = "clang-format-14"


def files_of(root):
    out = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False)
    if out.returncode == 0:
        yield from (f for f in out.stdout.splitlines() if os.path.isfile(os.path.join(root, f)))
        return
    for at, directories, files in os.walk(root):  # a tree without git: of an archive
        directories[:] = sorted(d for d in directories
                                if not d.startswith((".", "build")) and d != "__pycache__")
        yield from (os.path.relpath(os.path.join(at, f), root) for f in sorted(files))


def columns(line):
    """What a terminal takes for it."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF"
               else 1 for c in line)


def functions(lines):
    """(name's line, number of lines) of each function, by its braces in the first column."""
    begin = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            begin = number
        elif line == "}" and begin is not None:
            yield begin - 1, number - begin + 1
            begin = None


def check_text(path, lines):
    for number, line in enumerate(lines, 1):
        if not path.endswith(".py") and columns(line) > LINE:
            yield f"{path}:{number}: {columns(line)} columns, at most {LINE}: break the line"
    if len(lines) > FILE:
        yield f"{path}: {len(lines)} lines, at most {FILE}: part the file"
    if path.endswith(".c"):
        for number, length in functions(lines):
            if length > FUNCTION:
                yield f"{path}:{number}: {length} lines, at most {FUNCTION}: part the function"


def check_folders(paths):
    folders = {}
    for path in paths:
        if path.endswith((".c", ".h")) and not TEST.search(path):
            folders.setdefault(os.path.dirname(path), []).append(path)
    for folder, files in sorted(folders.items()):
        if len(files) > FOLDER:
            yield f"{folder}/: {len(files)} files, at most {FOLDER}: make a room of some"


def check_readmes(root, paths):
    """The first cells of a README's table name the modules of its folder, and no others."""
    for readme in paths:
        room = os.path.dirname(readme)
        judged = room not in WITHOUT_TABLE and not room.startswith("tests")
        if os.path.basename(readme) != "README.md" or not judged:
            continue
        with open(os.path.join(root, readme), encoding="utf-8") as f:
            text = f.read()
        stems = {os.path.splitext(os.path.basename(p))[0] for p in paths
                 if os.path.dirname(p) == room and p.endswith((".c", ".h")) and not TEST.search(p)}
        rows = ROW.findall(text) if stems else []
        named = {name for cell in rows for name in NAME.findall(cell)}
        for stem in sorted(stems - named):
            yield f"{readme}: its table has no row for {stem}"
        for stem in sorted(named - stems):
            yield f"{readme}: its table has {stem}, which is not there"


def check_scripts(root, paths):
    """What names its interpreter can be run by its name."""
    for path in paths:
        full = os.path.join(root, path)
        with open(full, "rb") as f:
            if f.read(2) == b"#!" and not os.access(full, os.X_OK):
                yield f"{path}: begins with #! and is not executable: chmod +x it"


def check_sizes(root, paths):
    for path in paths:
        if path.endswith((".c", ".h", ".py")):
            with open(os.path.join(root, path), encoding="utf-8") as f:
                yield from check_text(path, f.read().split("\n")[:-1])
    yield from check_folders(paths)


def check_format(root, paths):
    sources = [p for p in paths if p.endswith((".c", ".h"))]
    for at in range(0, len(sources), 100):
        done = subprocess.run([FORMAT, "--dry-run", "-Werror", *sources[at:at + 100]], cwd=root,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            yield from sorted({f"{line.split(':')[0]}: not formatted; run {FORMAT} -i on it"
                               for line in done.stderr.splitlines() if ": error:" in line}
                              or {done.stderr})


def main(args):
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
    paths = list(files_of(root))
    wrong = list(check_sizes(root, paths))
    if args != ["--sizes"]:
        wrong += [*check_format(root, paths), *check_readmes(root, paths),
                  *check_scripts(root, paths)]
    print("\n".join(wrong + [f"{len(paths)} files, {len(wrong)} objections"]))
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
