#!/usr/bin/env python3
"""Requests of a real client, for the unit test s3/client_test.c.

    s3_record.py --write FILE    what botocore sends, kept from the network; 77 without botocore

The file says which release made it.  It is made anew by hand, since each release signs another
User-Agent and the time.
"""

import argparse
import base64
import io
import json
import sys
from urllib.parse import urlsplit

KEY_ID, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
BODY = b"some bytes\r\n" * 100
CORS = {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["http://*.example"],
                       "AllowedHeaders": ["*"], "ExposeHeaders": ["ETag"], "MaxAgeSeconds": 60}]}
LIFECYCLE = {"Rules": [
    {"ID": "a", "Status": "Enabled", "Expiration": {"Days": 3},
     "Filter": {"And": {"Prefix": "logs/", "Tags": [{"Key": "k", "Value": "v"}]}}},
    {"ID": "b", "Status": "Enabled", "Filter": {"Prefix": ""},
     "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}}]}
TAGS = {"TagSet": [{"Key": "colour", "Value": "r\u00e9d & <blue>"}]}
PARTS = {"Parts": [{"PartNumber": 1, "ETag": '"e1"', "ChecksumCRC32": "AAAAAA=="},
                   {"PartNumber": 2, "ETag": '"e2"', "ChecksumCRC32": "AAAAAA=="}]}

# (operation, its parameters besides the bucket)
CALLS = [
    ("ListBuckets", None),
    ("CreateBucket", {}),
    ("HeadBucket", {}),
    ("DeleteBucket", {}),
    ("GetBucketLocation", {}),
    ("GetBucketVersioning", {}),
    ("ListObjects", {"Prefix": "a b/", "Delimiter": "/"}),
    ("ListObjectsV2", {"Prefix": "\u00e9+&=", "MaxKeys": 7, "StartAfter": "x/y"}),
    ("ListObjectVersions", {}),
    ("GetObject", {"Key": "k", "Range": "bytes=0-9"}),
    ("GetObject", {"Key": "a b+c/\u2603/~$!'()*,;:@&=?#%.txt", "PartNumber": 1}),
    ("HeadObject", {"Key": "a//b/../c/"}),
    ("PutObject", {"Key": "k", "Body": BODY}),
    ("PutObject", {"Key": "k", "Body": BODY, "ChecksumAlgorithm": "SHA256",
                   "Metadata": {"One": "two  three"}, "Tagging": "a=1"}),
    ("PutObject", {"Key": "empty", "Body": b""}),
    ("PutObject", {"Key": "k", "Body": io.BytesIO(BODY), "ChecksumAlgorithm": "SHA1"}),
    ("CopyObject", {"Key": "to", "CopySource": {"Bucket": "from", "Key": "a b"}}),
    ("DeleteObject", {"Key": "k"}),
    ("DeleteObjects", {"Delete": {"Objects": [{"Key": "a&b"}, {"Key": "c"}], "Quiet": True}}),
    ("CreateMultipartUpload", {"Key": "k", "ChecksumAlgorithm": "CRC32"}),
    ("UploadPart", {"Key": "k", "UploadId": "u+/=", "PartNumber": 1, "Body": BODY}),
    ("UploadPartCopy", {"Key": "k", "UploadId": "u", "PartNumber": 2, "CopySource": "from/k"}),
    ("ListParts", {"Key": "k", "UploadId": "u"}),
    ("ListMultipartUploads", {}),
    ("CompleteMultipartUpload", {"Key": "k", "UploadId": "u", "MultipartUpload": PARTS}),
    ("AbortMultipartUpload", {"Key": "k", "UploadId": "u"}),
    ("PutObjectTagging", {"Key": "k", "Tagging": TAGS}),
    ("GetObjectAttributes", {"Key": "k", "ObjectAttributes": ["ETag", "ObjectSize"]}),
    ("PutBucketCors", {"CORSConfiguration": CORS}),
    ("PutBucketLifecycleConfiguration", {"LifecycleConfiguration": LIFECYCLE}),
]


class Sent(Exception):
    """In place of the network."""


def text_of(value):
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def row_of(name, key, request):
    """The request as it would leave; `request` is botocore's prepared one."""
    url = urlsplit(request.url)
    headers = [(n, text_of(v)) for n, v in request.headers.items()]
    if "host" not in {n.lower() for n, _ in headers}:
        headers.append(("Host", url.netloc))
    body = request.body if request.body is not None else b""
    if hasattr(body, "read"):
        body = body.read()
    data = body.encode() if isinstance(body, str) else body
    text = "\n".join([request.method, url.path or "/", url.query]
                     + [f"{n}:{v}" for n, v in headers])
    return {"operation": name, "key": key, "request": text, "body": base64.b64encode(data).decode()}


def client_of(session, scheme, style):
    """Presigned URLs of the endpoint would be of Version 2 by default."""
    from botocore.config import Config
    return session.create_client(
        "s3", region_name="us-east-1", endpoint_url=f"{scheme}://s3.example.com:9000",
        aws_access_key_id=KEY_ID, aws_secret_access_key=SECRET,
        config=Config(s3={"addressing_style": style}, retries={"max_attempts": 0},
                      signature_version="s3v4"))


def method_of(client, name):
    from botocore import xform_name
    return getattr(client, xform_name(name))


def record(session):
    rows = []
    for scheme, style in (("http", "path"), ("https", "virtual")):
        client = client_of(session, scheme, style)
        sent = []

        def keep(request, kept=sent, **_):
            kept.append(request)
            raise Sent

        client.meta.events.register("before-send.s3", keep)
        for name, parameters in CALLS:
            arguments = {} if parameters is None else {"Bucket": "bucket", **parameters}
            if isinstance(arguments.get("Body"), io.BytesIO):
                arguments["Body"].seek(0)
            try:
                method_of(client, name)(**arguments)
            except Sent:
                pass
            rows.append(row_of(name, arguments.get("Key", ""), sent.pop()))
        rows.append(presigned(client))
    return rows


def presigned(client):
    from botocore.awsrequest import AWSRequest
    url = client.generate_presigned_url("get_object", Params={"Bucket": "bucket", "Key": "a b"})
    return row_of("GetObject", "a b", AWSRequest("GET", url).prepare())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", metavar="FILE", required=True)
    args = parser.parse_args()
    try:
        import botocore
        import botocore.session
    except ImportError:
        print("botocore is not installed")
        sys.exit(77)
    rows = record(botocore.session.get_session())
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    with open(args.write, "w", encoding="utf-8") as out:
        out.write(f'{{"client": "botocore {botocore.__version__}", "requests": [\n  {lines}\n]}}\n')
    print(f"{len(rows)} requests")


if __name__ == "__main__":
    main()
