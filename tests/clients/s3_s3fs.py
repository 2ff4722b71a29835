#!/usr/bin/env python3
"""s3fs: a bucket as a file system.  Files are written, read at offsets, renamed and removed."""

import atexit
import os
import subprocess

from large_lib import daemons_stay_small
from s3_programs import DATA, LARGE, Program, cluster_for, gone, path_of, stored
from lib import check, equal, main, skip, wait_for


class S3fs(Program):
    name = package = "s3fs"

    def prepare(self):
        self.environment.update(AWSACCESSKEYID=self.key.access, AWSSECRETACCESSKEY=self.key.secret)
        self.options = ("-o", f"url={self.endpoint}", "-o", "use_path_request_style",
                        "-o", "endpoint=us-east-1", "-o", "multipart_size=5")
        atexit.register(self.unmount)

    def unmount(self):
        """After a test that failed, too."""
        if os.path.ismount(self.directory + "/mounted"):
            subprocess.run(["fusermount", "-u", "-z", self.directory + "/mounted"], check=True)


def file_of(c, name):
    return path_of(c, "mounted/" + name)


def test_a_bucket_is_mounted(c):
    c.create("box")
    os.mkdir(path_of(c, "mounted"))
    c.program.run("box", "mounted")
    wait_for(lambda: os.path.ismount(path_of(c, "mounted")), "the mount")
    equal(os.listdir(path_of(c, "mounted")), [], "an empty bucket")


def test_a_file_there_and_back(c):
    os.mkdir(file_of(c, "folder"))
    with open(file_of(c, "folder/data"), "wb") as f:
        f.write(DATA)
    stored(c, "box", "folder/data")
    with open(file_of(c, "folder/data"), "rb") as f:
        f.seek(1_000_000)
        check(f.read(100) == DATA[1_000_000:1_000_100], "other bytes at an offset")
    equal(os.stat(file_of(c, "folder/data")).st_size, len(DATA), "the size")


def test_a_change_in_the_middle(c):
    with open(file_of(c, "folder/data"), "r+b") as f:
        f.seek(5)
        f.write(b"changed")
    stored(c, "box", "folder/data", DATA[:5] + b"changed" + DATA[12:])


def test_a_large_file_goes_in_parts(c):
    with open(file_of(c, "large"), "wb") as f:
        f.write(LARGE)
    stored(c, "box", "large", LARGE)
    with open(file_of(c, "large"), "r+b") as f:
        f.seek(7_000_000)
        f.write(b"changed")
    changed = LARGE[:7_000_000] + b"changed" + LARGE[7_000_007:]
    stored(c, "box", "large", changed)
    os.rename(file_of(c, "large"), file_of(c, "renamed"))
    stored(c, "box", "renamed", changed)
    os.remove(file_of(c, "renamed"))
    daemons_stay_small(c)


def test_a_rename_keeps_the_bytes(c):
    os.rename(file_of(c, "folder/data"), file_of(c, "moved"))
    stored(c, "box", "moved", DATA[:5] + b"changed" + DATA[12:])
    gone(c, "box", "folder/data")


def test_attributes_are_kept(c):
    os.chmod(file_of(c, "moved"), 0o640)
    equal(os.stat(file_of(c, "moved")).st_mode & 0o777, 0o640, "the mode")


def test_a_removal(c):
    os.remove(file_of(c, "moved"))
    os.rmdir(file_of(c, "folder"))
    gone(c, "box", "moved")
    equal(os.listdir(path_of(c, "mounted")), [], "what is left")


def test_an_unmount(c):
    c.program.unmount()
    equal(os.listdir(path_of(c, "mounted")), [], "the directory without a bucket")


if __name__ == "__main__":
    if not os.path.exists("/dev/fuse") or os.geteuid() != 0:
        skip("needs root and /dev/fuse")
    main(cluster_for(S3fs), targets=2)
