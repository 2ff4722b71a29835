"""A Python with packages of the Python package index, or the test is skipped.

    python = python_with("webdataset", ("webdataset==1.0.2",))
    subprocess.run([python, …])

    run_with("pyarrow", ("pyarrow==26.0.1",), GuardedCluster, targets=2)   # main() in such a Python

    run_beside("torch", "s3torchconnector", …)   # as run_with(), where a Python has torch

An environment is made once, in the folder venvs of the build directory, for all tests that want the
same packages.  What cannot be installed is tried again after some minutes.

DFC_TORCH_PYTHON names a Python that is taken if it has the module."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv

import frame  # noqa: F401 (first: the next one is found by it)
from lib import BUILD, check, main, skip

AGAIN_SECONDS = 600  # what could not be installed is tried again


def imports(python, module):
    return subprocess.run([python, "-W", "ignore", "-c", f"import {module}"], capture_output=True,
                          check=False).returncode == 0


def pip(python, *words):
    """The last line of what pip says against it, or ''."""
    done = subprocess.run([python, "-m", "pip", *words], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else str(done.stderr.strip().splitlines()[-1:])


def install(python, packages):
    return pip(python, "install", "-q", "--retries", "1", "--timeout", "30", *packages)


def empty(folder, with_pip=True):
    """The Python of a new environment without packages."""
    try:
        venv.create(folder, with_pip=with_pip)
    except (OSError, subprocess.CalledProcessError) as e:
        skip(f"no virtual environment (Debian: python3-venv): {e}")
    return os.path.join(folder, "bin", "python")


def is_recent(path):
    return os.path.exists(path) and time.time() - os.path.getmtime(path) < AGAIN_SECONDS


def make(folder, packages):
    """What cannot be installed leaves the reason in the file `refused`."""
    shutil.rmtree(folder, ignore_errors=True)
    why = install(empty(folder), packages)
    with open(os.path.join(folder, "refused" if why else "complete"), "w", encoding="utf-8") as f:
        f.write(why)


def environment(packages):
    """The Python of the environment with these packages, or the test is skipped."""
    key = hashlib.sha256(" ".join((sys.executable, *packages)).encode()).hexdigest()[:12]
    folder = os.path.join(BUILD, "venvs", packages[0].replace("=", "") + "-" + key)
    refused = os.path.join(folder, "refused")
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(folder + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, "complete")) and not is_recent(refused):
            make(folder, packages)
    if os.path.exists(refused):
        with open(refused, encoding="utf-8") as f:
            skip(f"{' '.join(packages)} cannot be installed: {f.read()}")
    return os.path.join(folder, "bin", "python")


def python_with(module, packages):
    for python in (os.environ.get("DFC_TORCH_PYTHON"), sys.executable):
        if python and imports(python, module):
            return python
    python = environment(packages)
    check(imports(python, module), f"{module} is installed and cannot be imported")
    return python


def python_that_has(heavy):
    known = [p for p in (os.environ.get("DFC_TORCH_PYTHON"), sys.executable) if p]
    python = next((p for p in known if imports(p, heavy)), None)
    if python is None:
        skip(f"no {heavy} here: DFC_TORCH_PYTHON names a Python that has it")
    return python


def run_with(module, packages, make, **shape):
    """main() of the calling script, which imports the module within its tests."""
    if imports(sys.executable, module):
        main(make, **shape)
    python = python_with(module, packages)
    sys.exit(subprocess.run([python, *sys.argv], check=False).returncode)


def run_beside(heavy, module, packages, make, **shape):
    """As run_with(), for packages that need a heavy module: a Python must have it.  The packages
    are installed beside it, without what they need."""
    if imports(sys.executable, module):
        main(make, **shape)
    python = python_that_has(heavy)
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if not imports(python, module):
            new = empty(os.path.join(folder, "pip"))
            why = pip(new, "--python", python, "install", "-q", "--retries", "1", "--timeout", "30",
                      "--no-deps", "--target", os.path.join(folder, "beside"), *packages)
            if why:
                skip(f"{' '.join(packages)} cannot be installed: {why}")
            environment["PYTHONPATH"] = os.path.join(folder, "beside")
        sys.exit(subprocess.run([python, *sys.argv], env=environment, check=False).returncode)
