#!/usr/bin/python3
"""The suites of fsspec (fsspec.tests.abstract) on dfc://, by the fsspec of the Python package index:
fsspec_suites.py under pytest.  Skipped where they cannot be installed."""

import os
import subprocess

import frame
from access_lib import GuardedCluster
from lib import equal, main
from venv_lib import python_with

SUITES = os.path.join(frame.HERE, "fsspec_suites.py")
PACKAGES = ("pytest==9.2.0", "fsspec==2026.9.0", "xxhash==4.1.0")


def test_the_suites(c):
    env = {**os.environ, "DFC_ENDPOINT": c.endpoint, "DFC_ACCESS_KEY": c.root.access,
           "DFC_SECRET_KEY": c.root.secret, "DFC_PROFILE": "", "DFC_SUITE_BUCKET": "suite",
           "PYTHONPATH": os.path.join(frame.ROOT, "python", "src"), "PYTHONDONTWRITEBYTECODE": "1",
           "no_proxy": "127.0.0.1"}
    done = subprocess.run([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", SUITES], env=env,
                          check=False, capture_output=True, text=True)
    equal((done.returncode, done.stderr), (0, ""), f"the end of the suites:\n{done.stdout[-4000:]}")


if __name__ == "__main__":
    PYTHON = python_with("fsspec.tests.abstract", PACKAGES)
    main(GuardedCluster, targets=2)
