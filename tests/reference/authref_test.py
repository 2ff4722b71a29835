#!/usr/bin/env python3
"""The vectors of the C code's test are those of the independent computation, and that is RFC
5869."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, HERE)

import authref  # noqa: E402

C_TEST = os.path.join(HERE, "..", "..", "common", "auth", "mac_test.c")


class Vectors(unittest.TestCase):
    def test_the_c_code_is_tested_with_these(self):
        with open(C_TEST, encoding="utf-8") as f:
            text = f.read()
        for name, value in authref.vectors().items():
            self.assertIn(f'"{value}"', text, name)

    def test_hkdf_of_the_rfc(self):
        self.assertEqual(
            authref.hkdf(b"\x0b" * 22, bytes(range(13)), bytes(range(0xf0, 0xfa))).hex(),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf")


if __name__ == "__main__":
    unittest.main()
