"""What is known of an object, and a reader of its bytes."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Callable, Dict, Mapping, Optional, TypeVar

import xxhash

from . import _retry, _wire
from ._call import Reply
from .errors import Corrupt, Error, NotModified, Precondition, Unreachable


@dataclass(frozen=True)
class ObjectInfo:
    """Texts are '' where the reply does not say.  `etag` has its quotes, ready for `if_match`."""

    size: int
    etag: str = ""
    version: str = ""
    checksum_type: str = ""
    checksum: str = ""
    content_type: str = ""
    modified: float = 0.0  #: Unix time in seconds
    meta: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """An entry of a list.  A prefix (`delimiter`) has a name alone."""

    name: str
    size: int = 0
    version: str = ""
    checksum: str = ""
    modified: float = 0.0
    is_prefix: bool = False
    cached: bool = True  #: False: the bucket's backend has it, and no target


META = "dfc-meta-"
STEP = 16 << 20  #: bytes after which a long read counts as progress
T = TypeVar("T")


def info_of(headers: Dict[str, str], size: int) -> ObjectInfo:
    get = headers.get
    modified = get("last-modified", "")
    return ObjectInfo(
        size, get("etag", ""), get("dfc-version", ""), get("dfc-checksum-type", ""),
        get("dfc-checksum-value", ""), get("content-type", ""),
        parsedate_to_datetime(modified).timestamp() if modified else 0.0,
        {k[len(META):]: v for k, v in headers.items() if k.startswith(META)})


def size_of(reply: Reply) -> int:
    """Of the whole object, also where a part of it comes."""
    total = reply.headers.get("content-range", "").rpartition("/")[2]
    text = total if reply.status == 206 else reply.headers.get("content-length", "")
    if not text.isdigit():
        raise Error("a reply that does not say the size of the object")
    return int(text)


#: Begins to read: (offset, etag or '', the count of tries) -> the reply from there on.
Begin = Callable[[int, str, _retry.Retry], Reply]


class Reader(io.RawIOBase):
    """The bytes of one version of an object, in order.  What breaks off goes on behind the last
    byte that came.  A whole object is compared with its checksum at its end."""

    def __init__(self, begin: Begin, policy: _retry.Policy, verify: bool,
                 reply: Optional[Reply] = None) -> None:
        """`reply`: the first one, where there is one already."""
        super().__init__()
        self._begin = begin
        self._retry = _retry.Retry(policy, time.monotonic())
        self._reply: Optional[Reply] = reply
        if reply is None:
            reply = self._reply = begin(0, "", self._retry)
        self._headers = reply.headers
        self.size = size_of(reply)  #: of the whole object, also where a part is read
        self._end = int(reply.headers.get("content-length", self.size))  # bytes of this read
        self._at = 0
        whole = reply.status == 200 and reply.headers.get("dfc-checksum-type") == "xxh3"
        self._digest = xxhash.xxh3_64() if verify and whole else None

    @property
    def info(self) -> ObjectInfo:
        return info_of(self._headers, self.size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        view = memoryview(buffer).cast("B")[:min(self._end - self._at, STEP)]
        if len(view) == 0:
            return 0
        count = self._moved(lambda reply: _some(reply, view))
        if self._digest is not None:
            self._digest.update(view[:count])
        self._at += count
        self._check_end()
        return count

    def readall(self) -> bytes:
        left = self._end - self._at
        if left > STEP:
            return _wire.filled(left, self._fill)
        if left == 0:
            return b""
        data = self._moved(Reply.read)
        if len(data) != self._end - self._at:
            raise Corrupt(f"{len(data)} bytes came where {self._end - self._at} were announced",
                          code="bad_length")
        if self._digest is not None:
            self._digest.update(data)
        self._at = self._end
        self._check_end()
        return data

    def _fill(self, view: memoryview) -> None:
        at = 0
        while at < len(view):
            at += self.readinto(view[at:])

    def close(self) -> None:
        if self._reply is not None:
            reply, self._reply = self._reply, None
            reply.close()
        super().close()

    def _moved(self, step: Callable[[Reply], T]) -> T:
        """step() on the reply, or on another one that begins where this one broke off."""
        while True:
            if self._reply is None:
                self._resume()
            assert self._reply is not None
            try:
                result = step(self._reply)
                self._retry.progress(time.monotonic())
                return result
            except _wire.Broken as e:
                self._drop()
                self._wait(e)
            except BaseException:
                self._drop()  # a signal: how far the step came is not known
                raise

    def _drop(self) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.drop()

    def _wait(self, e: _wire.Broken) -> None:
        question = _retry.Question(_retry.Outcome.BROKEN, time.monotonic(), 0.5,
                                   twice_is_harmless=True)
        pause = self._retry.next(question)
        if pause is None:
            raise Unreachable(f"the reply broke off at byte {self._at} of {self._end}: {e}") from e
        time.sleep(pause)

    def _resume(self) -> None:
        try:
            reply = self._begin(self._at, self._headers.get("etag", ""), self._retry)
        except (Precondition, NotModified) as e:
            raise Precondition("the object changed while it was read", status=e.status,
                               code="precondition_failed") from e
        self._reply = reply

    def _check_end(self) -> None:
        if self._at == self._end and self._digest is not None:
            compare(self._digest.hexdigest(), self._headers.get("dfc-checksum-value", ""))


def _some(reply: Reply, view: memoryview) -> int:
    """At least one byte: a reply may end before the object does, and the next one goes on."""
    count = reply.read_into(view)
    if count == 0:
        raise _wire.Broken("the reply ended too early", sent=True)
    return count


def compare(came: str, stored: str) -> None:
    """Checksums of the bytes that came, and of the object."""
    if came != stored:
        raise Corrupt(f"the bytes have the checksum {came}, the object has {stored}",
                      code="checksum_mismatch")
