#!/usr/bin/env python3
"""The AWS CLI: buckets, files, folders, ranges, copies, presigned URLs and deletes."""

import json

from large_lib import daemons_stay_small, tag_of
from s3_programs import DATA, LARGE, Program, cluster_for, gone, read, same, stored, write
from lib import check, equal, main


class AwsCli(Program):
    name, package = "aws", "awscli"

    def prepare(self):
        self.options = ("--endpoint-url", self.endpoint)
        self.run("configure", "set", "default.s3.addressing_style", "path")
        self.run("configure", "set", "default.s3.signature_version", "s3v4")

    def api(self, *arguments):
        """The document that a command of `aws s3api` prints."""
        printed = self.run("s3api", *arguments)
        return json.loads(printed) if printed else None


def test_a_file_there_and_back(c):
    c.program.run("s3", "mb", "s3://box")
    check("box" in c.program.run("s3", "ls"), "not in the list of buckets")
    c.program.run("s3", "cp", "data", "s3://box/folder/data")
    stored(c, "box", "folder/data")
    c.program.run("s3", "cp", "s3://box/folder/data", "back")
    same(c, "back")
    c.program.run("s3", "cp", "s3://box/none", "none", ok=False)


def test_a_large_file_goes_in_parts(c):
    write(c, "large", LARGE)
    c.program.run("s3", "cp", "large", "s3://box/large", "--metadata", "who=me")
    stored(c, "box", "large", LARGE)
    head = c.program.api("head-object", "--bucket", "box", "--key", "large")
    check(head["ETag"].endswith(tag_of(LARGE, 8)), f"the tag {head['ETag']} of parts")
    equal(head["Metadata"], {"who": "me"}, "metadata")
    c.program.run("s3", "cp", "s3://box/large", "s3://box/large-copy")
    stored(c, "box", "large-copy", LARGE)
    c.program.run("s3", "cp", "s3://box/large", "large-back")
    same(c, "large-back", LARGE)
    equal(c.program.run("s3", "sync", "--size-only", "s3://box/", ".", "--exclude", "*",
                        "--include", "large"), "", "a sync of nothing new")
    daemons_stay_small(c)


def test_uploads_that_are_open(c):
    begun = c.program.api("create-multipart-upload", "--bucket", "box", "--key", "open")
    listed = c.program.api("list-multipart-uploads", "--bucket", "box")
    equal([(u["Key"], u["UploadId"]) for u in listed["Uploads"]], [("open", begun["UploadId"])],
          "the list")
    c.program.api("abort-multipart-upload", "--bucket", "box", "--key", "open", "--upload-id",
                  begun["UploadId"])
    equal(c.program.api("list-multipart-uploads", "--bucket", "box").get("Uploads"), None,
          "the list after the abort")


def test_a_range(c):
    got = c.program.api("get-object", "--bucket", "box", "--key", "folder/data", "--range",
                        "bytes=10-19", "part")
    equal((got["ContentRange"], read(c, "part")), (f"bytes 10-19/{len(DATA)}", DATA[10:20]),
          "the range")


def test_a_copy_and_a_move(c):
    c.program.run("s3", "cp", "s3://box/folder/data", "s3://box/copy")
    stored(c, "box", "copy")
    c.program.run("s3", "mv", "s3://box/copy", "s3://box/moved")
    stored(c, "box", "moved")
    gone(c, "box", "copy")


def test_pages_of_a_list(c):
    for i in range(7):
        write(c, f"many/{i}", b"x")
    c.program.run("s3", "sync", "many", "s3://box/many")
    listed = c.program.api("list-objects-v2", "--bucket", "box", "--prefix", "many/",
                           "--page-size", "3")
    equal([o["Key"] for o in listed["Contents"]], [f"many/{i}" for i in range(7)], "the list")


def test_a_sync_transfers_what_changed(c):
    equal(c.program.run("s3", "sync", "many", "s3://box/many"), "", "a sync of nothing new")
    write(c, "many/3", b"longer")
    check("many/3" in c.program.run("s3", "sync", "many", "s3://box/many"), "nothing is uploaded")
    c.program.run("s3", "sync", "s3://box/many", "many-back")
    equal(read(c, "many-back/3"), b"longer", "what comes back")


def test_a_presigned_url(c):
    url = c.program.run("s3", "presign", "s3://box/moved").strip()
    check(c.http.request("GET", url).expect(200).body == DATA, "other bytes")


def test_deletes(c):
    c.program.run("s3", "rb", "s3://box", ok=False)
    c.program.run("s3", "rm", "s3://box/moved")
    gone(c, "box", "moved")
    c.program.run("s3", "rm", "--recursive", "s3://box")
    c.program.run("s3", "rb", "s3://box")
    equal(c.program.run("s3", "ls"), "", "the list of buckets")


if __name__ == "__main__":
    main(cluster_for(AwsCli), targets=2)
