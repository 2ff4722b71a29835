"""docs/reference/python.md, out of the sources of the Python package: what its docstrings and
signatures say.  A public name is on the page or in LEFT_OUT, and has a docstring: a new one cannot
be forgotten.  The sources are parsed and not imported, as some need torch or fsspec."""

import ast
import copy
import inspect
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
SOURCES = os.path.join(ROOT, "python", "src", "dfc")

#: Section, module, and what it says beside the docstrings.
SECTIONS = (
    ("dfc", "client", ""), ("dfc", "bucket", ""), ("dfc", "object", ""), ("dfc", "job", ""),
    ("dfc", "errors", ""), ("dfc.objects", "objects", ""), ("dfc.ring", "ring", ""), ("dfc.shards", "shards", ""),
    ("dfc.torch", "torch", "It needs the package `torch`."),
    ("dfc.torch.checkpoint", "torch/checkpoint", "It needs the package `torch`."), ("dfc.vdisc", "vdisc", ""),
    ("dfc.webdataset", "webdataset", ""),
    ("dfc.fs", "fs", "It needs the package `fsspec`. Its methods are those of any file system of fsspec."),
)

#: What torch calls of a StorageWriter and a StorageReader.
_OF_TORCH = {"reset", "validate_checkpoint_id", "set_up_storage_writer", "set_up_storage_reader",
             "prepare_local_plan", "prepare_global_plan", "read_metadata", "read_data", "write_data",
             "finish", "storage_meta"}

#: What the modules of the package use of each other, or torch of them: no caller needs it.
LEFT_OUT = {
    "dfc.Client": {"policy", "call", "caller", "get_json", "send_json", "start_job"},
    "dfc.object": {"info_of", "size_of", "compare", "Reader"},
    "dfc.errors": {"of_reply"},
    "dfc.objects": {"Permutation", "Share"},
    "dfc.webdataset": {"gopen", "download"},
    "dfc.vdisc.Image": {"read_range"},
    "dfc.fs": {"Download"},
    "dfc.torch.checkpoint.DfcWriter": _OF_TORCH, "dfc.torch.checkpoint.DfcReader": _OF_TORCH,
}

#: What a variable of a class is called; else the name of the class.
CALLED = {"ObjectReader": "reader", "ShardReader": "reader", "ShardDataset": "data",
          "ObjectDataset": "data", "MapDataset": "data", "ImageDataset": "data",
          "RingReader": "reader", "RingShare": "share", "DfcWriter": "writer", "DfcReader": "reader"}

HEAD = """# Python package

<!-- Written by tests/docs.py from the docstrings of the package; change those. -->

The classes and functions of `dfc-client`. [The guide](../guide/python.md) shows how to use them.
A call that fails raises a subclass of `dfc.Error`.
"""


def is_public(node, left_out):
    kinds = (ast.ClassDef, ast.FunctionDef)
    return isinstance(node, kinds) and not node.name.startswith("_") and node.name not in left_out


def said(node, where):
    text = ast.get_docstring(node)
    if not text:
        sys.exit(f"{where} has no docstring: give it one, or leave it out in tests/python_pages.py")
    return re.sub(r"\bdocs/reference/([\w-]+)\.md", r"[\1](\1.md)", inspect.cleandoc(text))


class Named(ast.NodeTransformer):
    """A module whose defaults are values, and not the names of its constants."""

    def __init__(self, source):
        tree = ast.parse(source)
        self._values = {n.targets[0].id: n.value for n in tree.body
                        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)}
        self.tree = self.visit(tree)

    def visit_arguments(self, node):
        for defaults in (node.defaults, node.kw_defaults):
            defaults[:] = [self._values.get(getattr(d, "id", ""), d) for d in defaults]
        return node


def plain(node):
    """The text of an annotation that may be in quotes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    return ast.unparse(node).replace("_body.", "")


def signature(name, node, bound):
    arguments = copy.deepcopy(node.args)
    if bound:
        arguments.args = arguments.args[1:]
    for one in (*arguments.args, *arguments.kwonlyargs):
        if one.annotation is not None:
            one.annotation = ast.Name(plain(one.annotation))
    result = "" if node.returns is None else " -> " + plain(node.returns)
    text = ast.unparse(arguments).replace("'", '"')
    return f"{name}({text}){result}"


def fields(node):
    rows = [n for n in node.body if isinstance(n, ast.AnnAssign) and not n.target.id.startswith("_")]
    return [f"{n.target.id}: {ast.unparse(n.annotation)}" for n in rows]


def decorated(node, name):
    return any(name in ast.unparse(d) for d in node.decorator_list)


def call(name, text):
    return f"`{name}`\n\n{text}\n\n"


def method(node, of, where):
    name = f"{of}.{node.name}"
    head = name if decorated(node, "property") else signature(name, node, True)
    return call(head, said(node, f"{where}.{node.name}"))


def members(node, tree):
    """Of a class, and of those that it is made of and that only this module knows."""
    hidden = {ast.unparse(b) for b in node.bases if ast.unparse(b).startswith("_")}
    own = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name in hidden] + [node]
    return [n for one in own for n in one.body]


def class_part(node, section, tree):
    where = f"{section}.{node.name}"
    made = next((n for n in node.body if getattr(n, "name", "") == "__init__"), None)
    bases = [b for b in map(ast.unparse, node.bases) if b in ("Exception", "Error")]
    out, of = f"### {where}\n\n", CALLED.get(node.name, node.name.lower())
    if made is not None:
        out += f"`{signature(node.name, made, True)}`\n\n".replace(" -> None", "")
    out += said(node, where) + "\n\n"
    if decorated(node, "dataclass"):
        out += "".join(f"- `{one}`\n" for one in fields(node)) + "\n"
    out += f"Base: `{bases[0]}`.\n\n" if bases else ""
    left_out = LEFT_OUT.get(where, set())
    return out + "".join(method(n, of, where) for n in members(node, tree)
                         if is_public(n, left_out) and section != "dfc.fs")


def function_part(node, section, _):
    name = f"{section}.{node.name}"
    return f"### {name}\n\n" + call(signature(name, node, False), said(node, name))


def module_part(section, module):
    path = os.path.join(SOURCES, module)
    path = os.path.join(path, "__init__") if os.path.isdir(path) else path
    with open(path + ".py", encoding="utf-8") as f:
        tree = Named(f.read()).tree
    left_out = LEFT_OUT.get(section if section != "dfc" else "dfc." + module, set())
    return "".join((class_part if isinstance(n, ast.ClassDef) else function_part)(n, section, tree)
                   for n in tree.body if is_public(n, left_out))


def forgotten():
    """Modules that no section has."""
    known = {module for _, module, _ in SECTIONS} | {"batch"}
    names = {os.path.relpath(os.path.join(folder, name), SOURCES)[:-3]
             for folder, _, files in os.walk(SOURCES) for name in files
             if re.fullmatch(r"[a-z]\w*\.py", name)}
    return sorted(names - known)


def page():
    if forgotten():
        sys.exit(f"tests/python_pages.py: no section has the modules {', '.join(forgotten())}")
    out, last = HEAD, ""
    for section, module, more in SECTIONS:
        if section != last:
            out += f"\n## {section}\n\n" + (more + "\n\n" if more else "")
        out += module_part(section, module)
        last = section
    return out.rstrip("\n") + "\n"
