"""A Python with packages of the Python package index, or the test is skipped.

    with python_with("webdataset", ("webdataset==1.0.2",)) as python:
        subprocess.run([python, …])

    run_with("pyarrow", ("pyarrow==26.0.1",), GuardedCluster, targets=2)   # main() in such a Python

    run_beside("torch", "s3torchconnector", …)   # as run_with(), where a Python has torch

DFC_TORCH_PYTHON names a Python that is taken if it has the module."""

import contextlib
import os
import subprocess
import sys
import tempfile
import venv

import frame  # noqa: F401 (first: the next one is found by it)
from lib import check, main, skip


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


@contextlib.contextmanager
def python_with(module, packages):
    for python in (os.environ.get("DFC_TORCH_PYTHON"), sys.executable):
        if python and imports(python, module):
            yield python
            return
    with tempfile.TemporaryDirectory() as folder:
        python = empty(folder)
        why = install(python, packages)
        if why:
            skip(f"{' '.join(packages)} cannot be installed: {why}")
        check(imports(python, module), f"{module} is installed and cannot be imported")
        yield python


@contextlib.contextmanager
def python_with_release(package, release, *also):
    """A new environment with this release alone: two of them are compared by two tests.  `also`:
    modules that are installed beside it, each by the package of its name."""
    folder = os.environ.get("DFC_VENVS")  # NAME/RELEASE below it: made before, for who runs it often
    ready = folder and os.path.join(folder, package, release, "bin", "python")
    if ready and os.path.exists(ready) and all(imports(ready, module) for module in also):
        yield ready
        return
    with tempfile.TemporaryDirectory() as new:
        python = empty(new)
        why = install(python, (f"{package}=={release}", *also))
        if why:
            skip(f"{package} {release} cannot be installed: {why}")
        yield python


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
    with python_with(module, packages) as python:
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
