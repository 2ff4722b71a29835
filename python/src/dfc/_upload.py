"""A large file as an upload in parts (docs/design/uploads.md of the cluster).

Threads send parts, each read from the file as it is sent: memory does not grow with the file.  A part
that fails is sent again, alone.  The object appears at the completion, or the upload is aborted.
"""

from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional

from ._body import Body, Bytes, Memory
from ._call import Request, read_json
from ._wire import STEP
from .errors import Corrupt, Error, Invalid

if TYPE_CHECKING:
    from ._call import Caller

PART_MIN = 5 << 20  #: of each part but the last, as targets have it
PARTS_MAX = 10_000
SENT_MAX = 3  #: times that a part is sent which arrives with other bytes, or is lost at its target


class FilePart(Body):
    """Bytes of a file, which are read as they are sent; `tag` is then their MD5."""

    repeatable = True

    def __init__(self, file: int, offset: int, size: int) -> None:
        self._file, self._offset = file, offset
        self.size = size
        self.tag = ""

    def pieces(self) -> Iterator[Bytes]:
        digest = hashlib.md5(usedforsecurity=False)
        at, end = self._offset, self._offset + (self.size or 0)
        while at < end:
            piece = os.pread(self._file, min(STEP, end - at), at)
            if not piece:
                raise Invalid(f"the file has become {end - at} bytes shorter while it was sent",
                              code="bad_length")
            digest.update(piece)
            at += len(piece)
            yield piece
        self.tag = digest.hexdigest()


def part_size(size: int, wanted: int) -> int:
    """Bytes of each part but the last, so that there are not too many of them."""
    return max(wanted, -(-size // PARTS_MAX))


class Upload:
    """Of one file to one object.  Threads: one calls send(); parts are sent by its own."""

    def __init__(self, caller: "Caller", bucket: str, name: str, path: str) -> None:
        self._caller, self._owner, self._path = caller, (bucket, name), path
        self._query: Dict[str, str] = {}
        self._failure: Optional[BaseException] = None  # of the first part that failed

    def _call(self, method: str, query: Optional[Dict[str, str]] = None,
              headers: Optional[Dict[str, str]] = None, body: Optional[Body] = None) -> Any:
        return self._caller.call(Request(
            method, self._path, query={**self._query, **(query or {})}, headers=headers or {},
            body=body, owner=self._owner, by_proxy=True))

    def send(self, file: int, size: int, part: int, threads: int, headers: Dict[str, str],
             conditions: Dict[str, str]) -> Dict[str, Any]:
        """The reply of the completion.  `headers` are those of a PUT."""
        begun: Dict[str, Any] = read_json(self._call("POST", headers=headers))
        self._query = {"upload": str(begun["upload"])}
        try:
            offsets = range(0, size, part)
            for times in range(1, SENT_MAX + 1):
                with ThreadPoolExecutor(threads, "dfc-upload") as pool:
                    tags = list(pool.map(
                        lambda at: self._send_part(file, at, min(part, size - at), at // part + 1),
                        offsets))
                try:
                    return self._complete(tags, conditions)
                except Invalid as e:
                    if e.code != "invalid_part" or times == SENT_MAX:
                        raise  # else a target has lost bytes: all is sent again
            raise AssertionError("the last completion returns or raises")
        except BaseException:
            self._abort()
            raise

    def _send_part(self, file: int, offset: int, size: int, number: int) -> str:
        """Its tag.  After a failure nothing more is sent."""
        if self._failure is not None:
            raise self._failure
        try:
            return self._sent_part(FilePart(file, offset, size), number)
        except BaseException as e:
            self._failure = self._failure or e
            raise self._failure from None

    def _sent_part(self, body: FilePart, number: int) -> str:
        for _ in range(SENT_MAX):
            reply = read_json(self._call("PUT", {"part": str(number)}, body=body))
            if str(reply["tag"]) == body.tag:
                return body.tag
        raise Corrupt(f"part {number} arrived {SENT_MAX} times with other bytes than were sent",
                      code="checksum_mismatch")

    def _complete(self, tags: List[str], conditions: Dict[str, str]) -> Dict[str, Any]:
        rows = [{"part": i + 1, "tag": tag} for i, tag in enumerate(tags)]
        return read_json(self._call("POST", headers={"Content-Type": "application/json",
                                                     **conditions},
                                    body=Memory(json.dumps(rows).encode())))

    def _abort(self) -> None:
        """What cannot be aborted ends by itself (`uploads_expire`): the failure before is told."""
        try:
            self._call("DELETE").close()
        except Error:
            pass
