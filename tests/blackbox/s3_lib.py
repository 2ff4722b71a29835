"""A client of S3 for the black-box tests, on the signer of tests/reference/s3ref.py.

    root = S3(c, *root_keys)              its requests are signed with these keys
    root.call("GET", "/b/key").expect(200)
    root.error(reply)                     the <Code> of an error's document
"""

import datetime
import json
import os
import sys
import xml.etree.ElementTree as ElementTree

from access_lib import GuardedCluster
from lib import equal

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "reference"))
import s3ref  # noqa: E402

NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"


def use_backend_keys(access, secret):
    """Of the daemons that are started from now on, at their backend."""
    os.environ.update({"AWS_ACCESS_KEY_ID": access, "AWS_SECRET_ACCESS_KEY": secret})
    os.environ.pop("AWS_SESSION_TOKEN", None)


def time_text(offset_s=0):
    now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=offset_s)
    return now.strftime("%Y%m%dT%H%M%SZ")


def code_of(reply):
    """The <Code> of an error's document."""
    equal(reply.headers["Content-Type"], "application/xml", "type of an error")
    root = ElementTree.fromstring(reply.body)
    equal(root.tag, "Error", "root of an error's document")
    equal(root.findtext("RequestId"), reply.headers["X-Request-Id"], "RequestId")
    equal(reply.headers["x-amz-request-id"], reply.headers["X-Request-Id"], "x-amz-request-id")
    return root.findtext("Code")


def refused(reply, status, code):
    reply.expect(status)
    equal(code_of(reply), code, f"code of {reply}")


class S3:
    """A user with an access key at one node; `base`: None for /s3 of its public listener, or the
    URL of an S3 listener."""

    def __init__(self, c, access=None, secret=None, node="p1", base=None, region=s3ref.REGION):
        self.c, self.access, self.secret, self.region = c, access, secret, region
        self.base, self.prefix = (base, "") if base else (c.url(node), "/s3")

    def at(self, node):
        return S3(self.c, self.access, self.secret, node, region=self.region)

    def host(self):
        return self.base.split("//")[1]

    def url(self, path, pairs):
        query = s3ref.canonical_query(pairs)
        return self.base + s3ref.quote(path, "/-_.~") + ("?" + query if query else "")

    def signed(self, method, path, pairs, headers, payload, time):
        """The headers of the request, with its signature."""
        headers = {**headers, "Host": self.host(), "x-amz-date": time,
                   "x-amz-content-sha256": payload}
        names = sorted(n.lower() for n in headers)
        value = s3ref.signature(method, path, pairs, list(headers.items()), names, payload, time,
                                self.region, self.secret)
        scope = s3ref.scope_of(time, self.region)
        headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.access}/{scope}, "
            f"SignedHeaders={';'.join(names)}, Signature={value}")
        return headers

    def call(self, method, path, body=None, pairs=(), headers=None, payload=None, time=None):
        """`path`: decoded; `payload`: what is signed as x-amz-content-sha256."""
        path, pairs, headers = self.prefix + path, list(pairs), dict(headers or {})
        if self.access is not None:
            headers = self.signed(method, path, pairs, headers,
                                  payload or s3ref.sha(body or b""), time or time_text())
        return self.c.http.request(method, self.url(path, pairs), body, headers)

    def presigned(self, method, path, expires_s=600, time=None):
        """A URL that everybody may use."""
        path, time = self.prefix + path, time or time_text()
        pairs = [("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
                 ("X-Amz-Credential", f"{self.access}/{s3ref.scope_of(time, self.region)}"),
                 ("X-Amz-Date", time), ("X-Amz-Expires", str(expires_s)),
                 ("X-Amz-SignedHeaders", "host")]
        value = s3ref.signature(method, path, pairs, [("Host", self.host())], ["host"],
                                s3ref.UNSIGNED, time, self.region, self.secret)
        return self.url(path, pairs + [("X-Amz-Signature", value)])

    def buckets(self):
        root = ElementTree.fromstring(self.call("GET", "/").expect(200).body)
        return [e.text for e in root.iter(NAMESPACE + "Name")]


def root_of(c, node="p1", **options):
    return S3(c, c.root.access, c.root.secret, node, **options)


class S3Cluster(GuardedCluster):
    """Each node has a listener for S3 alone."""

    def __init__(self, **shape):
        super().__init__(**shape)
        for port, node in enumerate(("t1", "p1"), self.ports.base + 50):
            self.stop(node)
            self.start(node, f"--arg=--s3-port={port}")
        self.places = [(node, None) for node in ("p1", "t1")]
        self.places += [(node, self.s3_url(node)) for node in ("p1", "t1")]

    def s3_url(self, node):
        with open(self.node_dir(node) + "/ready.json", encoding="utf-8") as f:
            return json.load(f)["s3_url"]
