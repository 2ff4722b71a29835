#!/usr/bin/env python3
"""boto3, unmodified, at a proxy and at a target of a cluster with access control."""

import io
import random
import sys

import frame  # noqa: F401 (first: the next one is found by it)
from access_lib import GuardedCluster
from cold_lib import FakeS3
from large_lib import daemons_stay_small, large_data, tag_of
from cold_meta import evict
from lib import check, equal, main
from s3_lib import use_backend_keys

try:
    import boto3
    import botocore.config
    import botocore.exceptions
except ImportError:
    print("boto3 is not installed (Debian: python3-boto3)")
    sys.exit(77)

DATA = random.Random(7).randbytes(3_000_001)
LARGE = large_data(8, 17)
PARTS = random.Random(9).randbytes(9 << 20)  # two parts
ACCESS, SECRET = "AKIDBACKEND", "backend-secret"
BACKEND = FakeS3({ACCESS: SECRET})
KINDS = {"copies": {"copies": 2}, "slices": {"ec": "2+1"},
         "cold": {"backend": f"s3://data/pre?endpoint={BACKEND.url}", "write_policy": "through"}}


def client_at(c, node):
    return boto3.client("s3", endpoint_url=c.url(node) + "/s3", region_name="us-east-1",
                        aws_access_key_id=c.root.access, aws_secret_access_key=c.root.secret,
                        config=botocore.config.Config(retries={"max_attempts": 1},
                                                      signature_version="s3v4",
                                                      s3={"addressing_style": "path"}))


def each_node(c):
    for node in ("p1", "t1", "t2"):
        yield node, client_at(c, node)


def code_of(call, **parameters):
    try:
        call(**parameters)
    except botocore.exceptions.ClientError as e:
        return e.response["Error"]["Code"]
    return None


def test_buckets(c):
    for node, s3 in each_node(c):
        s3.create_bucket(Bucket=f"b-{node}")
        s3.head_bucket(Bucket=f"b-{node}")
        check(f"b-{node}" in [b["Name"] for b in s3.list_buckets()["Buckets"]], "not in the list")
        equal(s3.get_bucket_location(Bucket=f"b-{node}")["LocationConstraint"], None, "location")
        equal(s3.get_bucket_versioning(Bucket=f"b-{node}").get("Status"), None, "versioning")
        equal(code_of(s3.delete_bucket, Bucket="nowhere"), "NoSuchBucket", "delete of nothing")


def test_objects(c):
    for node, s3 in each_node(c):
        put = s3.put_object(Bucket="b-p1", Key=node, Body=DATA, Metadata={"who": node},
                            ContentType="text/plain")
        got = s3.get_object(Bucket="b-p1", Key=node)
        check(got["Body"].read() == DATA, "other bytes")
        equal((got["ETag"], got["Metadata"], got["ContentType"]),
              (put["ETag"], {"who": node}, "text/plain"), "what GetObject says")
        part = s3.get_object(Bucket="b-p1", Key=node, Range="bytes=10-19")
        equal((part["Body"].read(), part["ContentRange"]),
              (DATA[10:20], f"bytes 10-19/{len(DATA)}"), "a range")
        equal(s3.head_object(Bucket="b-p1", Key=node)["ContentLength"], len(DATA), "HeadObject")
        equal(code_of(s3.get_object, Bucket="b-p1", Key="none"), "NoSuchKey", "a missing key")
        equal(code_of(s3.get_object, Bucket="b-p1", Key=node, IfMatch='"x"'), "PreconditionFailed",
              "a condition")
        equal(code_of(s3.get_object, Bucket="b-p1", Key=node, Range="bytes=9000000-"),
              "InvalidRange", "a range behind the end")


def there_and_back(s3, key, data, **options):
    s3.upload_fileobj(io.BytesIO(data), "b-p1", key, **options)
    out = io.BytesIO()
    s3.download_fileobj("b-p1", key, out)
    check(out.getvalue() == data, "other bytes")


def test_files(c):
    """The large one goes in parts of 8 MiB, by several threads."""
    for node, s3 in each_node(c):
        there_and_back(s3, f"file-{node}", DATA)
        there_and_back(s3, f"large-{node}", LARGE,
                       ExtraArgs={"Metadata": {"who": node}, "ContentType": "text/plain"})
        head = s3.head_object(Bucket="b-p1", Key=f"large-{node}")
        end = tag_of(LARGE, 8)
        equal((head["ETag"][-len(end):], head["Metadata"], head["ContentType"]),
              (end, {"who": node}, "text/plain"), "what HeadObject says")
        s3.copy({"Bucket": "b-p1", "Key": f"large-{node}"}, "b-t1", f"large-{node}",
                Config=boto3.s3.transfer.TransferConfig(multipart_threshold=8 << 20))
        got = s3.get_object(Bucket="b-t1", Key=f"large-{node}")
        check(got["Body"].read() == LARGE, "other bytes of a copy in parts")
        equal(got["ETag"][-len(end):], end, "tag of the copy")
        for bucket in ("b-p1", "b-t1"):
            s3.delete_object(Bucket=bucket, Key=f"large-{node}")
    daemons_stay_small(c)


def test_uploads_step_by_step(c):
    for node, s3 in each_node(c):
        key = {"Bucket": "b-p1", "Key": f"steps-{node}"}
        upload = {**key, "UploadId": s3.create_multipart_upload(**key)["UploadId"]}
        tags = [s3.upload_part(**upload, PartNumber=n, Body=body)["ETag"]
                for n, body in ((1, LARGE[:5 << 20]), (2, b"end"))]
        parts = s3.list_parts(**upload)["Parts"]
        equal([(p["PartNumber"], p["ETag"], p["Size"]) for p in parts],
              [(1, tags[0], 5 << 20), (2, tags[1], 3)], "list of parts")
        listed = s3.list_multipart_uploads(Bucket="b-p1")["Uploads"]
        equal([u["UploadId"] for u in listed], [upload["UploadId"]], "list of uploads")
        wrong = {"Parts": [{"PartNumber": 1, "ETag": tags[1]}]}
        equal(code_of(s3.complete_multipart_upload, **upload, MultipartUpload=wrong), "InvalidPart",
              "a wrong tag")
        rows = {"Parts": [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(tags, 1)]}
        done = s3.complete_multipart_upload(**upload, MultipartUpload=rows)
        equal(s3.head_object(**key)["ETag"], done["ETag"], "the tag")
        equal(code_of(s3.abort_multipart_upload, **{**upload, "UploadId": "x"}), "NoSuchUpload",
              "no upload")


def test_copies(c):
    for node, s3 in each_node(c):
        source = {"Bucket": "b-p1", "Key": node}
        copied = s3.copy_object(Bucket="b-p1", Key=f"copy-{node}", CopySource=source)
        got = s3.get_object(Bucket="b-p1", Key=f"copy-{node}")
        check(got["Body"].read() == DATA, "other bytes")
        equal((got["ETag"], got["Metadata"], got["LastModified"]),
              (copied["CopyObjectResult"]["ETag"], {"who": node},
               copied["CopyObjectResult"]["LastModified"]), "what GetObject says")
        s3.copy(source, "b-t1", f"managed-{node}",
                ExtraArgs={"MetadataDirective": "REPLACE", "Metadata": {"a": "b"}})
        equal(s3.head_object(Bucket="b-t1", Key=f"managed-{node}")["Metadata"], {"a": "b"},
              "metadata")
        equal(code_of(s3.copy_object, Bucket="b-p1", Key="no",
                      CopySource={"Bucket": "b-p1", "Key": "none"}), "NoSuchKey", "no source")


def test_checksums(c):
    for node, s3 in each_node(c):
        put = s3.put_object(Bucket="b-p1", Key=f"sum-{node}", Body=DATA, ChecksumAlgorithm="SHA256")
        got = s3.get_object(Bucket="b-p1", Key=f"sum-{node}", ChecksumMode="ENABLED")
        check(got["Body"].read() == DATA, "other bytes")
        equal(got["ChecksumSHA256"], put["ChecksumSHA256"], "checksum")
        seen = s3.get_object_attributes(Bucket="b-p1", Key=f"sum-{node}",
                                        ObjectAttributes=["ETag", "Checksum", "ObjectSize"])
        equal((seen["ETag"], seen["Checksum"]["ChecksumSHA256"], seen["ObjectSize"]),
              (put["ETag"].strip('"'), put["ChecksumSHA256"], len(DATA)), "attributes")


def test_headers_that_are_kept(c):
    kept = {"CacheControl": "max-age=60", "ContentDisposition": "attachment; filename=a",
            "ContentLanguage": "de", "ContentEncoding": "gzip"}
    for node, s3 in each_node(c):
        s3.put_object(Bucket="b-p1", Key=f"kept-{node}", Body=b"x", **kept)
        got = s3.head_object(Bucket="b-p1", Key=f"kept-{node}")
        equal({name: got.get(name) for name in kept}, kept, "what HeadObject says")


def test_tags(c):
    for node, s3 in each_node(c):
        at = {"Bucket": "b-p1", "Key": f"tags-{node}"}
        s3.put_object(**at, Body=DATA, Tagging="colour=red&a%20b=%C3%A9")
        first = [{"Key": "a b", "Value": "\u00e9"}, {"Key": "colour", "Value": "red"}]
        equal(s3.get_object_tagging(**at)["TagSet"], first, "tags of the PUT")
        s3.copy_object(Bucket="b-p1", Key=f"tags-copy-{node}", CopySource=at,
                       TaggingDirective="REPLACE", Tagging="copied=1")
        copied = s3.get_object_tagging(Bucket="b-p1", Key=f"tags-copy-{node}")["TagSet"]
        equal(copied, [{"Key": "copied", "Value": "1"}], "tags of the copy")
        second = [{"Key": "<&>", "Value": ""}]
        s3.put_object_tagging(**at, Tagging={"TagSet": second})
        equal(s3.get_object_tagging(**at)["TagSet"], second, "changed tags")
        check(s3.get_object(**at)["Body"].read() == DATA, "other bytes")
        equal(code_of(s3.put_object_tagging, **at, Tagging={"TagSet": second * 2}), "InvalidTag",
              "one key twice")
        s3.delete_object_tagging(**at)
        equal(s3.get_object_tagging(**at)["TagSet"], [], "deleted tags")


def test_lists(c):
    names = [f"{d}/{i:02}" for d in "xy" for i in range(30)]
    first = client_at(c, "p1")
    first.create_bucket(Bucket="listed")
    for name in names:
        first.put_object(Bucket="listed", Key=name, Body=b"")
    for _, s3 in each_node(c):
        for operation in ("list_objects", "list_objects_v2"):
            pages = s3.get_paginator(operation).paginate(
                Bucket="listed", PaginationConfig={"PageSize": 7})
            equal([o["Key"] for p in pages for o in p.get("Contents", [])], names, operation)
            folders = s3.get_paginator(operation).paginate(
                Bucket="listed", Delimiter="/", PaginationConfig={"PageSize": 1})
            equal([o["Prefix"] for p in folders for o in p.get("CommonPrefixes", [])],
                  ["x/", "y/"], f"{operation} with a delimiter")


def test_presigned_urls(c):
    for node, s3 in each_node(c):
        url = s3.generate_presigned_url("get_object", {"Bucket": "b-p1", "Key": node})
        check(c.http.request("GET", url).expect(200).body == DATA, "other bytes")


def test_each_kind_of_bucket(c):
    """Copies, slices and a backend: the client sees no difference."""
    BACKEND.put("data", "elsewhere", b"x")
    for bucket, props in KINDS.items():
        c.create(bucket, **props)
        for node, s3 in each_node(c):
            at = {"Bucket": bucket, "Key": f"small-{node}"}
            put = s3.put_object(**at, Body=DATA, Metadata={"who": node})
            large = {"Bucket": bucket, "Key": f"large-{node}"}
            s3.upload_fileobj(io.BytesIO(PARTS), *large.values())
            copied = {"Bucket": bucket, "Key": f"copy-{node}"}
            s3.copy_object(**copied, CopySource=at)
            if "backend" in props:
                evict(c, bucket)
            for reader, other in each_node(c):
                what = f"at {reader}, of {bucket} by {node}"
                got = other.get_object(**at)
                check(got["Body"].read() == DATA, f"other bytes {what}")
                equal((got["ETag"], got["Metadata"]), (put["ETag"], {"who": node}), what)
                part = other.get_object(**large, Range="bytes=8388600-8388615")["Body"].read()
                equal(part, PARTS[8388600:8388616], f"a range over two parts {what}")
                check(other.get_object(**large)["Body"].read() == PARTS, f"other bytes {what}")
                check(other.get_object(**copied)["Body"].read() == DATA, f"another copy {what}")
            keys = sorted(k["Key"] for k in (at, large, copied))
            listed = s3.list_objects_v2(Bucket=bucket)["Contents"]
            equal(sorted(o["Key"] for o in listed), keys, f"the list of {bucket}")
            gone = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": k} for k in keys]})
            equal(gone.get("Errors"), None, f"failures of a deletion in {bucket}")
            equal(code_of(s3.head_object, **at), "404", "HEAD of what was deleted")
        c.destroy(bucket)


def test_deletes(c):
    s3 = client_at(c, "t1")
    equal(code_of(s3.delete_bucket, Bucket="listed"), "BucketNotEmpty", "a bucket with objects")
    names, one_by_one = [], s3.get_paginator("list_object_versions")
    for page in one_by_one.paginate(Bucket="listed", PaginationConfig={"PageSize": 7}):
        names += [{"Key": v["Key"], "VersionId": v["VersionId"]} for v in page["Versions"]]
    s3.delete_object(Bucket="listed", Key=names[0]["Key"])
    reply = s3.delete_objects(Bucket="listed", Delete={"Objects": names})
    equal(([d["Key"] for d in reply["Deleted"]], reply.get("Errors")),
          ([n["Key"] for n in names], None), "DeleteObjects")
    s3.delete_bucket(Bucket="listed")
    equal(code_of(s3.head_bucket, Bucket="listed"), "404", "HEAD of what was deleted")


if __name__ == "__main__":
    use_backend_keys(ACCESS, SECRET)
    with BACKEND:
        main(GuardedCluster, targets=3)
