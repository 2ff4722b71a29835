#!/usr/bin/env python3
"""The settings in deploy/container, deploy/kubernetes and the chart are parameters of the daemons
they are given to: a daemon does not look at other variables of its environment, so that a wrong
name would do nothing. And the image's build is sent every folder that meson reads."""

import json
import pathlib
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("DFC_BUILD", ROOT / "build"))
# file → the daemons that its settings may be for
FILES = {
    "deploy/container/Dockerfile": ("dfc-proxyd", "dfc-targetd"),
    "deploy/container/dfc-healthy": ("dfc-proxyd", "dfc-targetd"),
    "deploy/container/compose.etcd.yaml": ("dfc-proxyd", "dfc-targetd"),
    "deploy/container/compose.yaml": ("dfc-proxyd", "dfc-targetd"),
    "deploy/helm/dfc/templates/cached.yaml": ("dfc-cached",),
    "deploy/helm/dfc/templates/proxy.yaml": ("dfc-proxyd",),
    "deploy/helm/dfc/templates/target.yaml": ("dfc-targetd",),
    "deploy/kubernetes/cached.yaml": ("dfc-cached",),
    "deploy/kubernetes/mount.yaml": ("dfc-cached",),  # as a member's, which --help lists
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


def read_by_a_script(text):
    """The variables that a shell script in the image looks at."""
    return set(re.findall(r"\$\{?(DFC_[A-Z0-9_]+)", text))


def let_in(text):
    """The names that a .dockerignore which begins with `*` takes back."""
    return {line[1:].split("/")[0] for line in text.split() if line.startswith("!")}


def meson_reads():
    """meson.build, its options, and the folders that it goes into."""
    text = (ROOT / "meson.build").read_text()
    folders = re.findall(r"^subdir\('([^'/]+)", text, re.MULTILINE)
    return {"meson.build", "meson_options.txt", *folders}


class Image(unittest.TestCase):
    def test_the_build_gets_what_meson_reads(self):
        text = (ROOT / ".dockerignore").read_text()
        self.assertEqual(text.split()[0], "*")
        self.assertGreater(len(meson_reads()), 8)
        self.assertLessEqual(meson_reads(), let_in(text))

    def test_nothing_is_let_in_that_is_not_there(self):
        for name in let_in((ROOT / ".dockerignore").read_text()):
            self.assertTrue((ROOT / name).exists(), name)


class Kubernetes(unittest.TestCase):
    """What the standard "restricted" asks of pods, and what reaches the machine's credentials."""

    def test_pods_may_do_little(self):
        for name in ("proxy", "target"):
            text = (ROOT / "deploy/kubernetes" / f"{name}.yaml").read_text()
            for words in ("runAsNonRoot: true", "seccompProfile: {type: RuntimeDefault}",
                          "drop: [ALL]", "allowPrivilegeEscalation: false",
                          "readOnlyRootFilesystem: true", '"limits":{"memory":',
                          "automountServiceAccountToken: false", "kind: PodDisruptionBudget",
                          "topologySpreadConstraints"):
                self.assertIn(words, text, name)

    def test_the_metadata_service_is_cut_off(self):
        text = (ROOT / "deploy/kubernetes/network.yaml").read_text()
        self.assertIn("policyTypes: [Ingress, Egress]", text)
        self.assertRegex(text, r"cidr: 0\.0\.0\.0/0\n\s+except: \[\"169\.254\.0\.0/16\"\]")

    @unittest.skipUnless(shutil.which("kubectl"), "kubectl is not installed")
    def test_kustomize_builds_it(self):
        text = subprocess.run(["kubectl", "kustomize", ROOT / "deploy/kubernetes"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        self.assertEqual(text.count("kind: StatefulSet"), 2)


class Systemd(unittest.TestCase):
    UNITS = ("dfc-proxyd", "dfc-targetd")

    def unit(self, directory, name):
        text = (ROOT / "deploy/systemd" / f"{name}.service.in").read_text().replace(
            "@bindir@", str(BUILD))
        path = pathlib.Path(directory) / f"{name}.service"
        path.write_text(text)
        return path, text

    def test_units_come_back_and_wait_for_no_disk(self):
        for name in self.UNITS:
            text = (ROOT / "deploy/systemd" / f"{name}.service.in").read_text()
            for words in ("StartLimitIntervalSec=0", "RestartSec=", "NoNewPrivileges=yes",
                          "ProtectSystem=strict", "CapabilityBoundingSet=\n", "ExecReload=",
                          "Type=notify\nNotifyAccess=main\nTimeoutStartSec="):
                self.assertIn(words, text, name)
            self.assertNotIn("RequiresMountsFor", text, name)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_units_are_hardly_exposed(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in self.UNITS:
                path, _ = self.unit(directory, name)
                done = subprocess.run(
                    ["systemd-analyze", "security", "--offline=true", "--threshold=20", path],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stdout)

    def test_examples_have_parameters_of_their_daemons(self):
        for name, program in (("proxy", "dfc-proxyd"), ("target", "dfc-targetd")):
            example = json.loads((ROOT / "deploy/systemd" / f"{name}.json").read_text())
            used = {f"DFC_{key.upper()}" for key in example}
            self.assertLessEqual(used, parameters(program), name)


class Deployments(unittest.TestCase):
    def test_settings_are_parameters(self):
        for name, programs in FILES.items():
            known = set().union(*(parameters(p) for p in programs))
            text = (ROOT / name).read_text()
            used = read_by_a_script(text) if text.startswith("#!") else settings(text)
            self.assertTrue(used, f"{name}: no setting was found")
            self.assertLessEqual(used, known, name)

    def test_settings_are_found(self):
        text = ("a: {DFC_ID: t1, DFC_X: ${DFC_Y:-z}}\n- {name: DFC_Z, value: 1}\n"
                "ENV DFC_DIR=/x\n# DFC_NO: 1\n")
        self.assertEqual(settings(text), {"DFC_ID", "DFC_X", "DFC_Z", "DFC_DIR"})

    def test_every_file_is_looked_at(self):
        found = {str(p.relative_to(ROOT))
                 for folder in ("container", "kubernetes", "helm/dfc/templates")
                 for p in (ROOT / "deploy" / folder).iterdir()
                 if re.search("DFC_[A-Z]", p.read_text()) and p.suffix not in (".md", ".tpl")}
        self.assertEqual(found, set(FILES))


if __name__ == "__main__":
    unittest.main()
