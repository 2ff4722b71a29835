#!/usr/bin/env python3
"""Every name that a Python script of the tree uses is somewhere made: a test that fails in a branch
which is seldom taken must not be the one that finds a misspelt name.

    names.py [ROOT]

A name counts as made if the file binds it anywhere, in whatever function, or imports it; an import
from a script beside it needs the name to be bound there."""

import ast
import builtins
import os
import sys

GIVEN = set(dir(builtins)) | {"__file__", "__name__"}


def scripts(root):
    for directory, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "build")))
        yield from (os.path.join(directory, f) for f in sorted(files) if f.endswith(".py"))


def bound(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name


class Trees(dict):
    def __missing__(self, path):
        with open(path, encoding="utf-8") as f:
            self[path] = ast.parse(f.read(), path)
        return self[path]


def objections(path, trees):
    """(line, what is wrong) of one script."""
    tree = trees[path]
    made = GIVEN | set(bound(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in made:
            yield node.lineno, f"nobody makes the name '{node.id}'"
        if isinstance(node, ast.ImportFrom) and node.module:
            beside = os.path.join(os.path.dirname(path), node.module + ".py")
            have = set(bound(trees[beside])) if os.path.exists(beside) else None
            for name in node.names:
                if name.name == "*":
                    yield node.lineno, "an import of everything hides what is used"
                elif have is not None and name.name not in have:
                    yield node.lineno, f"{node.module} has no '{name.name}'"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(
        os.path.dirname(os.path.realpath(__file__)))
    trees, wrong = Trees(), 0
    for path in scripts(root):
        for line, what in sorted(objections(path, trees)):
            print(f"{os.path.relpath(path, root)}:{line}: {what}")
            wrong += 1
    if not trees:
        sys.exit(f"names.py: no script under {root}")
    print(f"{len(trees)} scripts, {wrong} names that are not there")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
