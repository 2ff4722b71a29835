#!/usr/bin/env python3
"""debian/ packs what the build installs, and builds with what deploy/local/packages.sh names; the
manual pages can be read.

That the packages build, install and run is shown by the test `debian_root` of the suite `long`."""

import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("DFC_BUILD", ROOT / "build"))
DEBIAN = ROOT / "debian"
# What every build for Debian has (the package build-essential).
ESSENTIAL = {"gcc", "libc6-dev"}
# Only a build with -Dsystemd=true installs these.
UNITS = {"lib/systemd/system/dfc-proxyd.service", "lib/systemd/system/dfc-targetd.service",
         "usr/lib/sysusers.d/dfc.conf"}
MANUAL = (("dfcctl", "help", "--man"), ("dfc-proxyd", "--man"), ("dfc-targetd", "--man"),
          ("dfc-cached", "--man"))


def build_depends():
    text = re.search(r"^Build-Depends:(.*?)^\S|\Z", (DEBIAN / "control").read_text() + "\nX",
                     re.M | re.S).group(1)
    return {re.sub(r"[(|].*", "", one).strip() for one in text.split(",")}


def build_packages():
    text = subprocess.run(["bash", "-c", ". deploy/local/packages.sh; echo $build_packages"],
                          cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return set(text.split())


def packages():
    return re.findall(r"^Package: (\S+)", (DEBIAN / "control").read_text(), re.M)


def patterns():
    """[(package, the pattern of files below the root of the system)]"""
    return [(p.stem, line.split()[0]) for p in sorted(DEBIAN.glob("*.install"))
            for line in p.read_text().splitlines()]


def installed():
    """The files that this build installs, as a build of the packages names them."""
    files = json.loads(subprocess.run(["meson", "introspect", "--installed", BUILD], check=True,
                                      capture_output=True, text=True).stdout).values()
    prefix = next(o["value"] for o in json.loads(
        subprocess.run(["meson", "introspect", "--buildoptions", BUILD], check=True,
                       capture_output=True, text=True).stdout) if o["name"] == "prefix")
    return {"usr/" + os.path.relpath(name, prefix) for name in files} | UNITS


def fits(name, pattern):
    return fnmatch.fnmatch(name, pattern) or name.startswith(pattern + "/")


class Packages(unittest.TestCase):
    def test_each_file_is_in_one_package(self):
        rows = patterns()
        for name in installed():
            owners = [package for package, pattern in rows if fits(name, pattern)]
            self.assertEqual(len(owners), 1, f"{name} is in {owners}")

    def test_each_pattern_fits_a_file(self):
        names = installed()
        for package, pattern in patterns():
            self.assertTrue([n for n in names if fits(n, pattern)], f"{package}: {pattern}")

    def test_files_are_of_packages(self):
        self.assertEqual(packages(),
                         ["dfc-server", "dfc-client", "libdfc", "libdfc-dev", "python3-dfc"])
        for path in DEBIAN.iterdir():
            if path.suffix in (".install", ".dirs", ".examples", ".docs", ".prerm", ".postinst"):
                self.assertIn(path.stem, packages())
            if path.suffix in (".examples", ".docs"):
                for name in path.read_text().split():
                    self.assertTrue((ROOT / name).exists(), name)

    def test_a_build_needs_what_the_quickstart_installs(self):
        self.assertLessEqual(build_packages() - ESSENTIAL, build_depends())

    def test_the_version_is_that_of_the_source(self):
        version = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text()).group(1)
        packed = re.match(r"dfc \(([^)]+)\)", (DEBIAN / "changelog").read_text()).group(1)
        python = re.search(r'^version = "([^"]+)"', (ROOT / "python/pyproject.toml").read_text(),
                           re.M).group(1)
        self.assertEqual((packed, python), (version, version))


class Scripts(unittest.TestCase):
    """What the maintainer scripts of dfc-server ask of systemd."""

    def asked(self, script, *arguments, systemd=True):
        """The commands that the script runs, as it does where systemd runs, or does not."""
        with tempfile.TemporaryDirectory(prefix="dfc-packages-") as directory:
            place = pathlib.Path(directory)
            for name in ("deb-systemd-invoke", "systemctl"):
                (place / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {place}/log\nexit 1\n')
                (place / name).chmod(0o755)
            if systemd:
                (place / "running").mkdir()
            text = (DEBIAN / f"dfc-server.{script}").read_text()
            self.assertRegex(text, "(?m)^#DEBHELPER#$")
            (place / script).write_text(text.replace("/run/systemd/system", f"{place}/running"))
            subprocess.run(["sh", place / script, *arguments], check=True,
                           env={"PATH": f"{place}:/usr/bin:/bin"})
            log = place / "log"
            return log.read_text().splitlines() if log.exists() else []

    def test_a_removal_alone_stops_the_daemons(self):
        stop = ["deb-systemd-invoke stop dfc-targetd.service dfc-proxyd.service"]
        self.assertEqual(self.asked("prerm", "remove"), stop)
        self.assertEqual(self.asked("prerm", "upgrade", "2"), [])
        self.assertEqual(self.asked("prerm", "remove", systemd=False), [])

    def test_an_installation_makes_systemd_read_the_units(self):
        reload = ["systemctl --system daemon-reload"]
        self.assertEqual(self.asked("postinst", "configure"), reload)
        self.assertEqual(self.asked("postinst", "configure", "1"), reload)
        self.assertEqual(self.asked("postinst", "abort-upgrade", "2"), [])
        self.assertEqual(self.asked("postinst", "configure", systemd=False), [])


class Manual(unittest.TestCase):
    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_groff_has_no_complaint(self):
        for command in MANUAL:
            page = subprocess.run([BUILD / command[0], *command[1:]], check=True,
                                  capture_output=True).stdout
            done = subprocess.run(["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-rLL=90n"],
                                  input=page, check=False, capture_output=True)
            text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout.decode())
            self.assertEqual((done.returncode, done.stderr), (0, b""), command)
            self.assertIn(command[0] + " -", text.replace("\N{MINUS SIGN}", "-"))

    def test_a_page_has_each_parameter(self):
        page = subprocess.run([BUILD / "dfc-targetd", "--man"], check=True, capture_output=True,
                              text=True).stdout.replace("\\-", "-")
        shown = subprocess.run([BUILD / "dfc-targetd", "--help"], check=True, capture_output=True,
                               text=True).stdout
        names = re.findall(r"^  (--[a-z0-9-]+)[=\[]", shown, re.M)
        self.assertGreater(len(names), 50)
        for name in names:
            self.assertRegex(page, rf'(?m)^\.B "{name}[=\[]')

    def test_a_page_has_each_command(self):
        page = subprocess.run([BUILD / "dfcctl", "help", "--man"], check=True, capture_output=True,
                              text=True).stdout
        for noun in ("bucket create", "node maintenance", "help"):
            self.assertIn(f'.SS "{noun}"', page)


if __name__ == "__main__":
    unittest.main()
