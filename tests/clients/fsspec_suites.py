"""The suites of fsspec for file systems, on dfc://.  python_fsspec.py runs pytest with this file
against a cluster; it needs an fsspec that has fsspec.tests.abstract."""

import os

import fsspec
import pytest
from fsspec.tests import abstract

from dfc.fs import DfcFileSystem


class Fixtures(abstract.AbstractFixtures):
    @pytest.fixture
    def fs(self):
        fsspec.register_implementation("dfc", DfcFileSystem, clobber=True)
        return fsspec.filesystem("dfc")

    @pytest.fixture
    def fs_path(self, fs):
        """A bucket, empty before each test."""
        bucket = os.environ["DFC_SUITE_BUCKET"]
        fs.makedirs(bucket, exist_ok=True)
        yield bucket
        fs.rm(bucket, recursive=True)

    @pytest.fixture
    def supports_empty_directories(self):
        return False


class TestCopy(abstract.AbstractCopyTests, Fixtures):
    pass


class TestGet(abstract.AbstractGetTests, Fixtures):
    pass


class TestPut(abstract.AbstractPutTests, Fixtures):
    pass


class TestPipe(abstract.AbstractPipeTests, Fixtures):
    pass


class TestOpen(abstract.AbstractOpenTests, Fixtures):
    pass
