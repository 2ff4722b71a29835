"""Uploads in parts (docs/design/uploads.md), as a client makes them."""

import hashlib
import itertools
import os
import time
import urllib.parse

from lib import Failed, check, equal, escape

MIB = 1 << 20
PART = 5 * MIB  # the least of each part but the last
PATIENCE = 60
PASSING = (409, 500, 502, 503, 504)  # what a client repeats; 500: the tests' own I/O errors
ID_CHARS = 38


def md5(data):
    return hashlib.md5(data).hexdigest()


def tag_of(bodies):
    """Of the object that these parts make."""
    digests = b"".join(hashlib.md5(body).digest() for body in bodies)
    return f"{md5(digests)}-{len(bodies)}"


def sizes_of(bodies):
    """What Dfc-Parts says of an object that these parts make."""
    runs = [(len(list(run)), size) for size, run in itertools.groupby(map(len, bodies))]
    return ",".join(f"{count}x{size}" for count, size in runs)


def bodies_of(count, last, salt=0):
    """Parts of the least size, and a last one; each has other bytes."""
    sizes = [PART] * (count - 1) + [last]
    return [bytes([(salt + i) % 256]) * 7 + b"%d" % i + bytes([(salt + 3 * i + 1) % 256]) * size
            for i, size in enumerate(sizes)]


def list_of(bodies, numbers=None):
    """What a completion sends."""
    numbers = numbers or range(1, len(bodies) + 1)
    return [{"part": n, "tag": md5(body)} for n, body in zip(numbers, bodies)]


class Upload:
    """One upload of an object, by its id."""

    def __init__(self, c, bucket, name, upload=None, headers=None, **options):
        self.c, self.bucket, self.name, self.options = c, bucket, name, options
        self.id = upload or self.begin(headers)

    def call(self, method, body=None, headers=None, **query):
        path = f"/v1/uploads/{self.bucket}/{escape(self.name)}"
        if query:
            path += "?" + urllib.parse.urlencode(query)
        return self.c.call(method, path, body, headers=headers, **self.options)

    def begin(self, headers=None):
        upload = self.call("POST", b"", headers).expect(201).json()["upload"]
        equal(len(upload), ID_CHARS, f"characters of {upload}")
        return upload

    def try_part(self, number, body, headers=None):
        return self.call("PUT", body, headers, upload=self.id, part=number)

    def part(self, number, body, headers=None):
        reply = self.try_part(number, body, headers).expect(200)
        size = len(body) if isinstance(body, bytes) else reply.json()["size"]
        tag = md5(body) if isinstance(body, bytes) else reply.json()["tag"]
        equal(reply.json(), {"part": number, "tag": tag, "size": size}, "the reply to a part")

    def parts(self, **query):
        page = self.call("GET", upload=self.id, **query).expect(200).json()
        return [p["part"] for p in page["parts"]], page["more"]

    def try_complete(self, listed, headers=None):
        return self.call("POST", listed, headers, upload=self.id)

    def complete(self, listed, headers=None):
        return self.try_complete(listed, headers).expect(200).json()

    def abort(self):
        return self.call("DELETE", upload=self.id)

    def is_open(self):
        return self.call("GET", upload=self.id).status == 200


def patiently(function):
    """As a client does that repeats what may pass: the last reply."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            reply = function()
        except OSError as e:
            reply = e
        if not isinstance(reply, OSError) and reply.status not in PASSING:
            return reply
        if time.monotonic() > deadline:
            raise Failed(f"still {reply!r} after {PATIENCE} s")
        time.sleep(0.05)


def has_object(c, bucket, name, data, **headers):
    reply = patiently(lambda: c.get(bucket, name)).expect(200)
    check(reply.body == data, f"{bucket}/{name} has {len(reply.body)} bytes, not these "
                              f"{len(data)}")
    for header, value in headers.items():
        equal(reply.headers[header.replace("_", "-")], value, f"{header} of {bucket}/{name}")
    return reply


def open_uploads(c, bucket, node="p1", **query):
    """A page: [(object, upload)], and whether there are more."""
    fields = urllib.parse.urlencode(query, quote_via=urllib.parse.quote)
    page = c.get_json(f"/v1/uploads/{bucket}?{fields}", node)
    return [(u["object"], u["upload"]) for u in page["uploads"]], page["more"]


def all_uploads(c, bucket, **query):
    """Of all pages."""
    found, mark = [], {}
    while True:
        page, more = open_uploads(c, bucket, **query, **mark)
        found += page
        if not more:
            return found
        mark = {"after": page[-1][0], "after_upload": page[-1][1]}


def folder(c, upload):
    """Of an upload, on whichever disk it lies; None: there is none."""
    for target in c.targets():
        for mountpath in sorted(d for d in os.listdir(c.node_dir(target)) if d.startswith("mp")):
            path = os.path.join(c.node_dir(target), mountpath, ".dfc", "uploads", upload)
            if os.path.isdir(path):
                return path
    return None


def on_mountpath(c, upload):
    """Where it lies."""
    return folder(c, upload).partition("/.dfc/")[0]
