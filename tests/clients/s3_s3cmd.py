#!/usr/bin/env python3
"""s3cmd: buckets, files, metadata, copies, sync and deletes."""

import re
import subprocess

from large_lib import daemons_stay_small
from s3_programs import LARGE, Program, cluster_for, gone, same, stored, write
from s3_lib import S3
from lib import check, equal, main, wait_for

CONFIGURATION = """[default]
access_key = {access}
secret_key = {secret}
host_base = {host}
host_bucket = {host}
use_https = False
bucket_location = us-east-1
signature_v2 = False
"""


class S3cmd(Program):
    name = package = "s3cmd"

    def prepare(self):
        with open(self.directory + "/.s3cfg", "w", encoding="ascii") as f:
            f.write(CONFIGURATION.format(access=self.key.access, secret=self.key.secret,
                                         host=self.endpoint.split("//")[1]))


def test_a_file_there_and_back(c):
    c.program.run("mb", "s3://box")
    c.program.run("put", "data", "s3://box/folder/data", "--mime-type", "text/plain",
                  "--add-header", "x-amz-meta-who: me")
    stored(c, "box", "folder/data")
    c.program.run("get", "s3://box/folder/data", "back")
    same(c, "back")
    c.program.run("get", "s3://box/none", "none", ok=False)


def test_a_download_is_resumed(c):
    with open(c.directory + "/back", "r+b") as f:
        f.truncate(1000)
    c.program.run("get", "--continue", "s3://box/folder/data", "back")
    same(c, "back")


def test_what_info_says(c):
    printed = c.program.run("info", "s3://box/folder/data")
    for line in ("MIME type: text/plain", "x-amz-meta-who: me"):
        check(line in printed, f"no '{line}' in: {printed}")


def test_a_copy_and_a_move(c):
    c.program.run("cp", "s3://box/folder/data", "s3://box/copy")
    stored(c, "box", "copy")
    c.program.run("mv", "s3://box/copy", "s3://box/moved")
    stored(c, "box", "moved")
    gone(c, "box", "copy")


def test_a_large_file_goes_in_parts(c):
    write(c, "large", LARGE)
    c.program.run("put", "large", "s3://box/large", "--multipart-chunk-size-mb=5",
                  "--add-header", "x-amz-meta-who: me")
    stored(c, "box", "large", LARGE)
    check("x-amz-meta-who: me" in c.program.run("info", "s3://box/large"), "no metadata")
    c.program.run("get", "s3://box/large", "large-back")
    same(c, "large-back", LARGE)
    c.program.run("del", "s3://box/large")
    daemons_stay_small(c)


def parts_of_upload(c, bucket, key):
    """How many parts the one open upload of a bucket has."""
    root = S3(c, c.root.access, c.root.secret)
    upload = re.search(b"<UploadId>(.*)</UploadId>",
                       root.call("GET", "/" + bucket, pairs=[("uploads", "")]).expect(200).body)
    if not upload:
        return 0
    listed = root.call("GET", f"/{bucket}/{key}", pairs=[("uploadId", upload[1].decode())])
    return listed.expect(200).body.count(b"<PartNumber>")


def test_an_upload_is_resumed(c):
    """s3cmd is killed after a part.  The next one compares MD5 sums, which `--etag md5` gives."""
    c.create("md5", etag="md5")
    write(c, "large", LARGE)
    put = ["put", "large", "s3://md5/large", "--multipart-chunk-size-mb=5"]
    slowly = f"--limit-rate={max(2, len(LARGE) >> 26)}m"  # bytes a second: it does not end by itself
    with subprocess.Popen(["s3cmd", *put, slowly], cwd=c.directory, env=c.program.environment,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        try:
            wait_for(lambda: parts_of_upload(c, "md5", "large") > 0, "a part")
        finally:
            first.kill()
    began = parts_of_upload(c, "md5", "large")
    check(0 < began < len(LARGE) / (5 << 20), f"{began} parts before the end")
    printed = c.program.run(*put, "--continue-put", "--progress")
    for part in range(1, began + 2):
        equal(f"[part {part} of" in printed, part > began, f"part {part} is sent")
    stored(c, "md5", "large", LARGE)
    equal(parts_of_upload(c, "md5", "large"), 0, "an open upload")
    c.program.run("del", "s3://md5/large")
    c.program.run("rb", "s3://md5")


def test_a_sync(c):
    for i in range(3):
        write(c, f"many/{i}", b"x" * i)
    c.program.run("sync", "many/", "s3://box/many/")
    write(c, "many/1", b"longer")
    c.program.run("sync", "many/", "s3://box/many/")
    stored(c, "box", "many/1", b"longer")
    listed = c.program.run("ls", "s3://box/many/").split()
    equal([w for w in listed if w.startswith("s3:")], [f"s3://box/many/{i}" for i in range(3)],
          "the list")


def test_deletes(c):
    c.program.run("rb", "s3://box", ok=False)
    c.program.run("del", "s3://box/moved")
    gone(c, "box", "moved")
    c.program.run("del", "--recursive", "--force", "s3://box")
    c.program.run("rb", "s3://box")
    equal(c.program.run("ls"), "", "the buckets")


if __name__ == "__main__":
    main(cluster_for(S3cmd), targets=2)
