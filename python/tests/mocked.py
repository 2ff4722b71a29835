"""A test with a mock cluster of its own, a client of it, and a bucket."""

import unittest

import frame  # noqa: F401
import dfc
from mock_cluster import MockCluster


class MockedTest(unittest.TestCase):
    def setUp(self):
        self.mock = MockCluster()
        self.mock.__enter__()
        self.addCleanup(self.mock.__exit__, None, None, None)
        self.client = dfc.Client(self.mock.endpoint, profile="")
        self.addCleanup(self.client.close)
        self.bucket = self.client.bucket("b").create()
