"""A client of dfc, the object store for training data.

    import dfc

    client = dfc.Client("http://127.0.0.1:8080")
    bucket = client.bucket("train").create(exist_ok=True)
    bucket.put("a/1.jpg", data)
    data = bucket.get("a/1.jpg")
    for entry in bucket.list(prefix="a/"):
        print(entry.name, entry.size)

Errors are subclasses of dfc.Error.  `fsspec` finds dfc://BUCKET/OBJECT by itself (dfc.fs).
"""

from .bucket import Bucket
from .client import VERSION as __version__
from .client import Client
from .errors import (Conflict, Corrupt, Denied, Error, Invalid, NotFound, NotModified,
                     Precondition, Timeout, Unreachable)
from .job import Job, JobFailed
from .object import Entry, ObjectInfo

__all__ = [
    "Bucket", "Client", "Conflict", "Corrupt", "Denied", "Entry", "Error", "Invalid", "Job",
    "JobFailed", "NotFound", "NotModified", "ObjectInfo", "Precondition", "Timeout", "Unreachable",
    "__version__",
]
