"""What a call can fail with.

Every failure is an `Error`.  Its subclass says what kind of failure it is, `code` exactly which:
one of the codes of docs/reference/errors.md, as the cluster sends it, or one of LOCAL_CODES.
"""

from __future__ import annotations

import json
from typing import Dict, Optional, Tuple, Type

#: What no node says: no connection, a reply that broke off, a reply that is no HTTP of ours.
LOCAL_CODES = ("network_error", "timeout", "checksum_mismatch", "invalid_argument", "unauthorized")


class Error(Exception):
    """A call failed.  Without a reply, `status` is 0 and `node` is ''."""

    def __init__(self, message: str, *, status: int = 0, code: str = "network_error",
                 node: str = "", request_id: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.node = node
        self.request_id = request_id
        self.retry_after = 0.0  #: seconds that the node asks for before another try; 0: nothing
        #: Of a push into a ring that may have been stored: its producer and sequence.
        self.pushed_as: Optional[Tuple[str, int]] = None

    def __str__(self) -> str:
        where = f" (node {self.node}, request {self.request_id})" if self.request_id else ""
        return f"{self.message}{where}"

    def __reduce__(self) -> "tuple[object, ...]":
        """Errors cross from the workers of a DataLoader to their parent."""
        return (_restored, (type(self), self.message, self.status, self.code, self.node,
                            self.request_id))


class Invalid(Error):
    """An argument, name or document is malformed, or this release does not do that."""


class NotFound(Error):
    """There is no such bucket, object, job or node."""


class Denied(Error):
    """The caller has no right to that, or is not known."""


class Conflict(Error):
    """It exists already, or the state of a job or node does not allow that."""


class Precondition(Error):
    """A condition does not hold: the object is another one, or exists already."""


class NotModified(Error):
    """`if_none_match` names the version that the object has."""


class Corrupt(Error):
    """The bytes do not have their checksum or length."""


class Unreachable(Error):
    """No endpoint answers, or the node that is needed does not."""


class Timeout(Error):
    """A node was silent for too long, or a wait ran out of time."""


_BY_STATUS: Dict[int, Type[Error]] = {
    304: NotModified, 400: Invalid, 401: Denied, 403: Denied, 404: NotFound, 405: Invalid,
    408: Timeout, 409: Conflict, 410: NotFound, 412: Precondition, 413: Invalid, 414: Invalid,
    415: Invalid, 416: Invalid, 422: Corrupt, 429: Unreachable, 431: Invalid, 501: Invalid, 502: Unreachable,
    503: Unreachable, 504: Timeout,
}


def _restored(kind: Type[Error], message: str, status: int, code: str, node: str,
              request_id: str) -> Error:
    return kind(message, status=status, code=code, node=node, request_id=request_id)


def of_reply(status: int, body: bytes, node: str, request_id: str,
             code: Optional[str] = None) -> Error:
    """From the error document of a reply.  A body that is none is quoted: its first line."""
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        first = body[:200].split(b"\n", 1)[0].decode("ascii", "replace").strip()
        if first.startswith("<?xml"):
            first = "the reply is XML, as that of an S3 port: give the public port of a proxy"
        document = {"message": f"HTTP status {status}" + (f": {first}" if first else "")}
    return _BY_STATUS.get(status, Error)(
        str(document.get("message") or f"HTTP status {status}"), status=status,
        code=str(document.get("code") or code or f"http_{status}"),
        node=str(document.get("node") or node),
        request_id=str(document.get("request_id") or request_id))
