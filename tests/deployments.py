#!/usr/bin/env python3
"""The settings in deploy/container and deploy/kubernetes are parameters of the daemons they are given
to: a daemon does not look at other variables of its environment, so that a wrong name would do nothing."""

import pathlib
import os
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("DFC_BUILD", ROOT / "build"))
# file → the daemons that its settings may be for
FILES = {
    "deploy/container/Dockerfile": ("dfc-proxyd", "dfc-targetd"),
    "deploy/container/compose.yaml": ("dfc-proxyd", "dfc-targetd"),
    "deploy/kubernetes/proxy.yaml": ("dfc-proxyd",),
    "deploy/kubernetes/target.yaml": ("dfc-targetd",),
}


def parameters(program):
    """The variables of the environment that a daemon looks at."""
    text = subprocess.run([BUILD / program, "--help"], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    return {"DFC_" + name.upper().replace("-", "_")
            for name in re.findall(r"^  --([a-z0-9-]+)", text, re.MULTILINE)}


def settings(text):
    """The variables that a file sets: `DFC_X: …`, `name: DFC_X`, `DFC_X=…`."""
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    return (set(re.findall(r"(?<![A-Z_])(?<!\$\{)(DFC_[A-Z0-9_]+)\s*[:=]", text)) |
            set(re.findall(r"name:\s*(DFC_[A-Z0-9_]+)", text)))


class Deployments(unittest.TestCase):
    def test_settings_are_parameters(self):
        for name, programs in FILES.items():
            known = set().union(*(parameters(p) for p in programs))
            used = settings((ROOT / name).read_text())
            self.assertTrue(used, f"{name}: no setting was found")
            self.assertLessEqual(used, known, name)

    def test_settings_are_found(self):
        text = "a: {DFC_ID: t1, DFC_X: ${DFC_Y:-z}}\n- {name: DFC_Z, value: 1}\nENV DFC_DIR=/x\n# DFC_NO: 1\n"
        self.assertEqual(settings(text), {"DFC_ID", "DFC_X", "DFC_Z", "DFC_DIR"})

    def test_every_file_is_looked_at(self):
        found = {str(p.relative_to(ROOT)) for folder in ("container", "kubernetes")
                 for p in (ROOT / "deploy" / folder).iterdir()
                 if "DFC_" in p.read_text() and p.suffix != ".md"}
        self.assertEqual(found, set(FILES))


if __name__ == "__main__":
    unittest.main()
