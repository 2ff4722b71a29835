#!/usr/bin/python3
"""The wheel of python/ in an environment that has nothing else: what is in it, what it needs, and that
a bucket can be used with it.  Skipped where the package index cannot be reached."""

import json
import os
import shutil
import subprocess
import tempfile
import zipfile

import frame
from access_lib import GuardedCluster
from lib import check, equal, main, skip
from venv_lib import empty, install, pip

BUILDER, NEEDED = "hatchling==1.33.0", "xxhash==4.1.0"
PROGRAM = """
import importlib.metadata, importlib.util, json, pkgutil, sys
import dfc
client = dfc.Client()
bucket = client.bucket("wheel").create(exist_ok=True)
bucket.put("a", b"hello")
assert bucket.get("a") == b"hello"
lacking = {}
for module in pkgutil.iter_modules(dfc.__path__):
    try:
        importlib.import_module("dfc." + module.name)
    except ModuleNotFoundError as e:
        lacking[module.name] = e.name
print(json.dumps({"version": dfc.__version__, "metadata": importlib.metadata.version("dfc-client"),
                  "lacking": lacking, "place": dfc.__file__,
                  "entry": [e.value for e in importlib.metadata.entry_points(group="fsspec.specs")]}))
"""


def build(folder):
    """The wheels' paths, and the Python whose pip made them.  The sources are copied: nothing is written into the tree."""
    source = os.path.join(folder, "source")
    shutil.copytree(os.path.join(frame.ROOT, "python"), source,
                    ignore=shutil.ignore_patterns("__pycache__"))
    python = empty(os.path.join(folder, "builder"))
    why = install(python, [BUILDER]) or pip(python, "download", "-q", "-d", folder, NEEDED)
    if why:
        skip(f"{BUILDER} and {NEEDED} cannot be installed: {why}")
    equal(pip(python, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, source,
              os.path.join(source, "wirehead")), "", "what pip says")
    names = sorted(f for f in os.listdir(folder) if f.startswith("dfc"))
    equal([n.split("-")[0] for n in names], ["dfc_client", "dfc_wirehead"], "wheels")
    return [os.path.join(folder, name) for name in names], python


def modules():
    top = os.path.join(frame.ROOT, "python", "src", "dfc")
    return sorted(os.path.relpath(os.path.join(folder, name), top)
                  for folder, _, names in os.walk(top) for name in names
                  if "__pycache__" not in folder)


def test_what_is_in_the_wheel(_):
    with zipfile.ZipFile(WHEEL) as wheel:
        names = [n.removeprefix("dfc/") for n in wheel.namelist() if n.startswith("dfc/")]
        rest = {n.split("/")[0] for n in wheel.namelist()} - {"dfc"}
    equal(sorted(names), modules(), "the modules")
    equal(rest, {"dfc_client-0.1.0.dist-info"}, "the rest")


def test_the_wheel_of_wirehead(_):
    with zipfile.ZipFile(WIREHEAD) as wheel:
        names = sorted(n.removeprefix("wirehead/") for n in wheel.namelist() if n.startswith("wirehead/"))
        metadata = wheel.read("dfc_wirehead-0.1.0.dist-info/METADATA").decode()
    folder = os.path.join(frame.ROOT, "python", "wirehead", "src", "wirehead")
    equal(names, sorted(n for n in os.listdir(folder) if n != "__pycache__"), "the modules")
    check("Requires-Dist: dfc-client==0.1.0" in metadata, metadata)


def test_an_empty_environment(c):
    with tempfile.TemporaryDirectory() as folder:
        python = empty(folder, with_pip=False)
        equal(pip(BUILDER_PYTHON, "--python", python, "install", "-q", "--no-index", "--find-links",
                  os.path.dirname(WHEEL), WHEEL), "", "what pip says")
        env = {**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
               "DFC_ENDPOINT": c.endpoint, "DFC_ACCESS_KEY": c.root.access,
               "DFC_SECRET_KEY": c.root.secret, "DFC_PROFILE": "", "no_proxy": "127.0.0.1"}
        done = subprocess.run([python, "-c", PROGRAM], cwd=folder, env=env, capture_output=True,
                              text=True, check=False)
        equal((done.returncode, done.stderr), (0, ""), "the end of the program")
        found = json.loads(done.stdout)
        check(found["place"].startswith(os.path.realpath(folder)), found["place"])
        equal((found["version"], found["metadata"]), ("0.1.0", "0.1.0"), "versions")
        equal(found["lacking"], {"fs": "fsspec", "torch": "torch"}, "modules that need an extra")
        equal(found["entry"], ["dfc.fs:DfcFileSystem"], "what fsspec finds")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        (WHEEL, WIREHEAD), BUILDER_PYTHON = build(place)
        main(GuardedCluster, targets=1)
