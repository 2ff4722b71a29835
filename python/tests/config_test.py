#!/usr/bin/python3
"""Endpoints and identities: arguments before the environment before profiles."""

import json
import os
import re
import tempfile
import unittest
from unittest import mock

from frame import ROOT
import dfc
from dfc import _config, errors
from dfc._auth import login_body

LAB = {"endpoints": "http://lab:1", "access_key": "A", "secret_key": "S"}


class ConfigTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        patch = mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": self.folder}, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def profiles(self, document, mode=0o600):
        path = _config.profile_path()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(document if isinstance(document, str) else json.dumps(document))
        os.chmod(path, mode)

    def test_without_anything(self):
        config = _config.load()
        self.assertEqual([str(o) for o in config.endpoints], ["http://127.0.0.1:8080"])
        self.assertIsNone(config.access_key or config.token)

    def test_arguments_then_environment_then_profile(self):
        self.profiles({"current": "lab", "profiles": {"lab": LAB}})
        self.assertEqual((str(_config.load().endpoints[0]), _config.load().access_key),
                         ("http://lab:1", "A"))
        os.environ.update(DFC_ENDPOINT="http://env:2", DFC_TOKEN="T")
        config = _config.load()
        self.assertEqual((str(config.endpoints[0]), config.access_key, config.token),
                         ("http://env:2", None, "T"))
        config = _config.load("http://arg:3", access_key="B", secret_key="C")
        self.assertEqual((str(config.endpoints[0]), config.access_key, config.token),
                         ("http://arg:3", "B", None))

    def test_the_current_profile_counts_for_its_own_endpoints_alone(self):
        self.profiles({"current": "lab", "profiles": {"lab": LAB}})
        self.assertIsNone(_config.load("http://other:1").access_key)
        self.assertEqual(_config.load("http://other:1", profile="lab").access_key, "A")
        self.assertIsNone(_config.load(profile="").access_key)

    def test_profiles_that_are_no_good(self):
        with self.assertRaisesRegex(dfc.NotFound, "no profile 'x'"):
            _config.load(profile="x")
        self.profiles({"profiles": {"lab": LAB}}, 0o644)
        with self.assertRaisesRegex(dfc.Denied, "chmod 600"):
            _config.load(profile="lab")
        for text in ("{", "[]"):
            self.profiles(text)
            with self.assertRaises(dfc.Invalid):
                _config.load(profile="lab")

    def test_endpoints_that_are_none(self):
        for text in ("host:1", "ftp://h:1", "http://", "http://h:x", "http://h:99999", ",",
                     "http://a:1,https://b:1"):
            with self.assertRaises(dfc.Invalid, msg=text):
                _config.load(text)

    def test_addresses(self):
        self.assertEqual(str(_config.Origin.of("https://[::1]")), "https://[::1]:443")
        self.assertEqual(_config.Origin.of("http://[fe80::1]:8080/").authority, "[fe80::1]:8080")

    def test_keys_go_together(self):
        for keys in ({"access_key": "A"}, {"secret_key": "S"},
                     {"access_key": "A", "secret_key": "S", "token": "T"}):
            with self.assertRaises(dfc.Invalid):
                _config.load(**keys)

    def test_the_proof_of_a_login_is_that_of_the_cluster(self):
        import sys
        sys.path.insert(0, os.path.join(ROOT, "tests", "reference"))
        import accessref
        theirs = accessref.login("AK", "secret", time_ms=17, nonce="00ff")
        self.assertEqual(login_body("AK", "secret", 17, "00ff"), json.loads(theirs))

    def test_the_codes_of_this_client_are_the_clusters(self):
        with open(os.path.join(ROOT, "common", "error.def"), encoding="utf-8") as f:
            codes = set(re.findall(r'^ERROR\(\w+, \d+, "(\w+)"', f.read(), re.M))
        self.assertLessEqual(set(errors.LOCAL_CODES), codes)
        source = os.path.join(ROOT, "python", "src", "dfc")
        for name in os.listdir(source):
            if name.endswith(".py"):
                with open(os.path.join(source, name), encoding="utf-8") as f:
                    for code in re.findall(r'code="(\w+)"', f.read()):
                        self.assertIn(code, codes, name)

    def test_versions_agree(self):
        with open(os.path.join(ROOT, "python", "pyproject.toml"), encoding="utf-8") as f:
            mine = re.search(r'^version = "(.*)"', f.read(), re.M)[1]
        with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as f:
            theirs = re.search(r"version: '(.*?)'", f.read())[1]
        self.assertEqual((mine, dfc.__version__), (theirs, theirs))


if __name__ == "__main__":
    unittest.main()
