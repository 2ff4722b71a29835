"""Many objects, members of archives and ranges in one request, in order.

The reply is a tar whose entries come in the order asked for.  Where it breaks off, the rest is
asked for again, from the first entry that did not come whole: what is wrong with that is then the error.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Tuple

from . import _retry, _tar, _wire
from ._call import Reply, json_request
from .errors import Corrupt, Invalid, Unreachable

if TYPE_CHECKING:
    from .client import Client

#: Entries of one request: a target takes 10,000 (`batch_entries_max`), and 4 MiB of their names.
REQUEST_MAX = 1000
BLOCK = 512
MISSING = b"__404__/"

Item = Dict[str, Any]


class _Tar:
    """A tar as it comes.  What targets write: ustar headers, and extended headers before them."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._buffer = b""

    def _exactly(self, count: int) -> bytes:
        parts, left = [self._buffer], count - len(self._buffer)
        while left > 0:
            piece = next(self._pieces, b"")
            if not piece:
                raise _wire.Broken("the tar ends too early", sent=True)
            parts.append(piece)
            left -= len(piece)
        data = b"".join(parts)
        self._buffer = data[count:]
        return data[:count]

    def _contents(self, size: int) -> bytes:
        data = self._exactly(size)
        self._exactly(-size % BLOCK)
        return data

    def drain(self) -> None:
        """What is behind the end: then the connection can be used again."""
        for _ in self._pieces:
            pass

    def next(self) -> Optional[Tuple[bytes, bytes]]:
        """Name and bytes; None at the end."""
        more: Dict[bytes, bytes] = {}
        while True:
            block = self._exactly(BLOCK)
            if block == bytes(BLOCK):
                return None
            size = int(more.get(b"size") or _tar.octal(block[124:136]))
            data = self._contents(size)
            if block[156:157] == b"x":
                more = _tar.records(data)
            elif block[156:157] == b"0":
                return more.get(b"path") or block[:100].rstrip(b"\0"), data
            else:
                raise Corrupt(f"an entry of type {block[156:157]!r} in a batch", code="bad_length")


def _come(reply: Reply, count: int) -> Iterator[Optional[bytes]]:
    tar = _Tar(reply.pieces())
    for _ in range(count):
        try:
            entry = tar.next()
        except _tar.Damaged as e:
            raise Corrupt(f"a batch that is damaged: {e}", code="bad_length") from e
        if entry is None:
            raise _wire.Broken("the tar has too few entries", sent=True)
        yield None if entry[0].startswith(MISSING) else entry[1]
    if tar.next() is not None:
        raise Corrupt("the tar of a batch has too many entries", code="bad_length")
    tar.drain()


def _request(client: "Client", items: List[Item], missing_ok: bool, retry: _retry.Retry) -> Reply:
    return client.call(json_request("POST", "/v1/batch", {
        "entries": items, "on_missing": "empty" if missing_ok else "fail"}), retry)


def _one(client: "Client", items: List[Item], missing_ok: bool) -> Iterator[Optional[bytes]]:
    """What one request can have, however often it breaks off."""
    retry = _retry.Retry(client.policy, time.monotonic())
    done = 0
    while done < len(items):
        reply = _request(client, items[done:], missing_ok, retry)
        try:
            for data in _come(reply, len(items) - done):
                done += 1
                retry.progress(time.monotonic())
                yield data
            reply.close()
        except _wire.Broken as e:
            pause = retry.next(_retry.Question(_retry.Outcome.BROKEN, time.monotonic(), 0.5,
                                               twice_is_harmless=True))
            if pause is None:
                raise Unreachable(f"the batch broke off at entry {done}: {e}") from e
            time.sleep(pause)
        finally:
            reply.drop()


def read(client: "Client", items: Iterable[Item], missing_ok: bool) -> Iterator[Optional[bytes]]:
    """The bytes of each item; None where there is no such object or member, if that is in order."""
    some: List[Item] = []
    for item in items:
        some.append(item)
        if len(some) == REQUEST_MAX:
            yield from _one(client, some, missing_ok)
            some = []
    yield from _one(client, some, missing_ok)


def item_of(bucket: str, name: object) -> Item:
    """Of a name, a pair of archive and member, or a dictionary with `object`."""
    if isinstance(name, str):
        return {"bucket": bucket, "object": name}
    if isinstance(name, tuple) and len(name) == 2:
        return {"bucket": bucket, "object": name[0], "member": name[1]}
    if isinstance(name, dict) and "object" in name:
        return {"bucket": bucket, **name}
    raise Invalid(f"{name!r} names nothing to read: a name, (archive, member), or a dictionary with "
                  "object, member, offset and length", code="invalid_argument")
