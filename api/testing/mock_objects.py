"""Objects of the mock cluster, and their checksums as a cluster computes them."""

import hashlib

try:
    import ctypes
    import ctypes.util

    _xxhash = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
    _xxhash.XXH3_64bits.restype = ctypes.c_uint64
    _xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]

    def checksum(data):
        return {"type": "xxh3", "value": "%016x" % _xxhash.XXH3_64bits(data, len(data))}
except OSError:

    def checksum(data):
        return {"type": "sha256", "value": hashlib.sha256(data).hexdigest()}


class Failure(Exception):
    def __init__(self, status, code, message, headers=None):
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers or {}


def listed(names, query):
    """Those that a list shows: no internal ones, unless the request wants them."""
    wants = query.get("internal") == "true" or query.get("prefix", "").startswith(".dfc-")
    return [n for n in names if wants or not n.startswith(".dfc-")]


class Object:
    counter = 0

    def __init__(self, data, content_type=None, meta=None):
        Object.counter += 1
        self.data = data
        self.content_type = content_type or "application/octet-stream"
        self.meta = meta or {}
        self.version = "1.1.%d" % Object.counter
        self.modified = 1700000000
        self.checksum = checksum(data)

    @property
    def etag(self):
        return '"%s"' % self.version

    def need_match(self, match):
        if match not in (None, self.etag):
            raise Failure(412, "precondition_failed", "it is another")
