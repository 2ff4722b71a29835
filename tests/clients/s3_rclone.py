#!/usr/bin/env python3
"""rclone: copies of folders, `check --download`, sync, ranges, moves and deletes."""

import json

from large_lib import daemons_stay_small
from s3_programs import DATA, LARGE, Program, cluster_for, gone, same, stored, write
from lib import equal, main

FILES = {"a": b"first", "deep/b": b"", "deep/c d": DATA}


class Rclone(Program):
    name = package = "rclone"

    def prepare(self):
        self.environment.update({
            "RCLONE_CONFIG_DFC_TYPE": "s3", "RCLONE_CONFIG_DFC_PROVIDER": "Other",
            "RCLONE_CONFIG_DFC_ENV_AUTH": "true", "RCLONE_CONFIG_DFC_REGION": "us-east-1",
            "RCLONE_CONFIG_DFC_ENDPOINT": self.endpoint})


def test_a_folder_is_copied_and_checked(c):
    for name, data in FILES.items():
        write(c, "from/" + name, data)
    c.program.run("mkdir", "dfc:box")
    c.program.run("copy", "from", "dfc:box/to")
    for name, data in FILES.items():
        stored(c, "box", "to/" + name.replace(" ", "%20"), data)
    c.program.run("check", "--download", "from", "dfc:box/to")
    write(c, "from/a", b"changed")
    c.program.run("check", "--download", "from", "dfc:box/to", ok=False)


def test_a_sync_transfers_and_deletes(c):
    c.program.run("sync", "from", "dfc:box/to")
    c.program.run("check", "--download", "from", "dfc:box/to")
    c.program.run("sync", "--exclude", "/deep/b", "--delete-excluded", "from", "dfc:box/to")
    gone(c, "box", "to/deep/b")


def test_times_are_kept(c):
    c.program.run("copy", "dfc:box/to", "back")
    same(c, "back/deep/c d")
    equal(c.program.run("lsf", "--format", "tp", "back/a"),
          c.program.run("lsf", "--format", "tp", "from/a"), "the time of a file")


def test_a_list(c):
    listed = json.loads(c.program.run("lsjson", "--recursive", "--files-only", "dfc:box/to"))
    equal(sorted((o["Path"], o["Size"]) for o in listed), [("a", 7), ("deep/c d", len(DATA))],
          "the list")


def test_a_large_file_goes_in_parts(c):
    write(c, "large/file", LARGE)
    c.program.run("copy", "--s3-upload-cutoff", "8M", "--s3-chunk-size", "5M", "large",
                  "dfc:box/large")
    stored(c, "box", "large/file", LARGE)
    c.program.run("check", "--download", "large", "dfc:box/large")
    c.program.run("copyto", "--s3-copy-cutoff", "8M", "--s3-chunk-size", "5M",
                  "dfc:box/large/file", "dfc:box/large/copy")
    stored(c, "box", "large/copy", LARGE)
    daemons_stay_small(c)
    c.program.run("delete", "dfc:box/large")
    # rclone does not know the length of what it reads from a pipe.
    c.program.run("rcat", "--streaming-upload-cutoff", "1M", "dfc:box/stream", text="x" * 6000000)
    stored(c, "box", "stream", b"x" * 6000000)
    c.program.run("deletefile", "dfc:box/stream")


def test_a_range(c):
    printed = c.program.run("cat", "--offset", "1", "--count", "3", "dfc:box/to/a")
    equal(printed, "han", "bytes 1 to 3")


def test_a_copy_and_a_move_in_the_cluster(c):
    c.program.run("copyto", "dfc:box/to/a", "dfc:box/copy")
    stored(c, "box", "copy", b"changed")
    c.program.run("moveto", "dfc:box/copy", "dfc:box/moved")
    stored(c, "box", "moved", b"changed")
    gone(c, "box", "copy")


def test_deletes(c):
    c.program.run("rmdir", "dfc:box", ok=False)
    c.program.run("deletefile", "dfc:box/moved")
    gone(c, "box", "moved")
    c.program.run("purge", "dfc:box")
    equal(c.program.run("lsf", "dfc:"), "", "the buckets")


if __name__ == "__main__":
    main(cluster_for(Rclone), targets=2)
