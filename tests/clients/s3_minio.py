#!/usr/bin/env python3
"""The Python SDK of MinIO at a proxy and at a target of a cluster with access control."""

import io
import random

import frame  # noqa: F401 (first: the next ones are found by it)
from large_lib import daemons_stay_small, large_data, tag_of
from lib import check, equal
from s3_lib import S3Cluster
from venv_lib import run_with

DATA = random.Random(13).randbytes(3_000_001)
LARGE = large_data(14, 11)


def client_at(c, node):
    from minio import Minio
    return Minio(endpoint=c.s3_url(node).split("//")[1], access_key=c.root.access,
                 secret_key=c.root.secret, secure=False, region="us-east-1")


def each_node(c):
    for node in ("p1", "t1"):
        yield node, client_at(c, node)


def code_of(call, **parameters):
    from minio.error import S3Error
    try:
        call(**parameters)
    except S3Error as e:
        return e.code
    return None


def body_of(reply):
    with reply:
        return reply.read()


def test_buckets(c):
    client = client_at(c, "p1")
    client.make_bucket(bucket_name="box")
    check(client.bucket_exists(bucket_name="box"), "there is no bucket")
    check(not client.bucket_exists(bucket_name="none"), "there is a bucket")
    equal([b.name for b in client.list_buckets()], ["box"], "the buckets")


def test_objects(c):
    for node, client in each_node(c):
        put = client.put_object(bucket_name="box", object_name=node, data=io.BytesIO(DATA),
                                length=len(DATA), metadata={"who": node})
        got = client.stat_object(bucket_name="box", object_name=node)
        equal((got.etag, got.size, got.metadata["x-amz-meta-who"]), (put.etag, len(DATA), node),
              "what stat_object says")
        check(body_of(client.get_object(bucket_name="box", object_name=node)) == DATA,
              "other bytes")
        equal(body_of(client.get_object(bucket_name="box", object_name=node, offset=10,
                                        length=10)), DATA[10:20], "a range")
        equal(code_of(client.get_object, bucket_name="box", object_name="none"), "NoSuchKey",
              "a missing key")


def test_copies(c):
    from minio.commonconfig import CopySource
    for node, client in each_node(c):
        client.copy_object(bucket_name="box", object_name="copy-" + node,
                           source=CopySource(bucket_name="box", object_name=node))
        check(body_of(client.get_object(bucket_name="box", object_name="copy-" + node)) == DATA,
              "other bytes")


def test_a_large_object_goes_in_parts(c):
    from minio.commonconfig import ComposeSource
    for node, client in each_node(c):
        put = client.put_object(bucket_name="box", object_name="large-" + node,
                                data=io.BytesIO(LARGE), length=-1, part_size=5 << 20)
        check(put.etag.endswith(tag_of(LARGE, 5).strip('"')), f"the tag {put.etag} of parts")
        check(body_of(client.get_object(bucket_name="box", object_name="large-" + node)) == LARGE,
              "other bytes")
        client.compose_object(bucket_name="box", object_name="joined-" + node,
                              sources=[ComposeSource(bucket_name="box",
                                                     object_name="large-" + node),
                                       ComposeSource(bucket_name="box", object_name=node)])
        check(body_of(client.get_object(bucket_name="box", object_name="joined-" + node)) ==
              LARGE + DATA, "other bytes of two sources")
        for name in ("large-", "joined-"):
            client.remove_object(bucket_name="box", object_name=name + node)
    daemons_stay_small(c)


def test_lists(c):
    for _, client in each_node(c):
        equal([o.object_name for o in client.list_objects(bucket_name="box", prefix="copy-")],
              ["copy-p1", "copy-t1"], "a list with a prefix")


def test_presigned_urls(c):
    for node, client in each_node(c):
        url = client.presigned_get_object(bucket_name="box", object_name=node)
        check(c.http.request("GET", url).expect(200).body == DATA, "other bytes")


def test_deletes(c):
    from minio.deleteobjects import DeleteObject
    client = client_at(c, "t1")
    equal(code_of(client.remove_bucket, bucket_name="box"), "BucketNotEmpty", "a full bucket")
    client.remove_object(bucket_name="box", object_name="p1")
    names = [DeleteObject(n) for n in ("t1", "copy-p1", "copy-t1")]
    equal(list(client.remove_objects(bucket_name="box", delete_object_list=names)), [], "failures")
    client.remove_bucket(bucket_name="box")
    equal(client.list_buckets(), [], "the buckets")


if __name__ == "__main__":
    run_with("minio", ("minio==7.2.20",), S3Cluster, targets=2)
