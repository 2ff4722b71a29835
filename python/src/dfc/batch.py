"""Many objects, members of archives and ranges in one request, in order.

The reply is a tar whose entries come in the order asked for.  Where it breaks off, the rest is
asked for again, from the first entry that did not come whole: what is wrong with that is then the error.
Numbers of entries in errors count from 0 in what the caller gave, whichever request had the entry.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional

from . import _retry, _tar, _wire
from ._call import Reply, json_request
from .errors import Corrupt, Error, Invalid, Unreachable

if TYPE_CHECKING:
    from .client import Client

#: Entries of one request: a target takes 10,000 (`batch_entries_max`), and 4 MiB of their names.
REQUEST_MAX = 1000
MISSING = "__404__/"
#: How a target names an entry of a request: "entry 7, 'b/o': …", or "entries[7]: …" of its form.
_ENTRY = re.compile(r"\b(entry |entries\[)(\d+)(?=, '|\])")

Item = Dict[str, Any]


class _Pieces:
    """Pieces of a reply as a stream; none of their bytes is moved but to be given."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece, self._at = b"", 0

    def read(self, count: int) -> bytes:
        """At most so many bytes; nothing at the end."""
        if self._at == len(self._piece):
            self._piece, self._at = next(self._pieces, b""), 0
        data = self._piece[self._at:self._at + count]
        self._at += len(data)
        return data


def _name_of(item: Item) -> str:
    """As the reply has it."""
    return "/".join(str(item[part]) for part in ("bucket", "object", "member") if item.get(part))


def _come(reply: Reply, items: List[Item]) -> Iterator[Optional[bytes]]:
    stream = _Pieces(reply.pieces())
    found = 0
    try:
        for name, data in _tar.files(stream):
            if found == len(items):
                raise Corrupt("the tar of a batch has too many entries", code="bad_length")
            wanted = _name_of(items[found])
            if name not in (wanted, MISSING + wanted):
                raise Corrupt(f"a batch has '{name}' where '{wanted}' was asked for",
                              code="bad_length")
            found += 1
            yield None if name.startswith(MISSING) else data
    except _tar.CutOff as e:
        raise _wire.Broken(str(e), sent=True) from e
    except _tar.Damaged as e:
        raise Corrupt(f"a batch that is damaged: {e}", code="bad_length") from e
    if found < len(items):
        raise _wire.Broken("the tar has too few entries", sent=True)
    while stream.read(1 << 20):  # what is behind the end: then the connection can be used again
        pass


def _count_from(first: int, error: Error) -> None:
    """Its message says an entry's number in a request that began with the caller's entry `first`."""
    error.message = _ENTRY.sub(lambda m: f"{m[1]}{first + int(m[2])}", error.message, count=1)
    error.args = (error.message,)


def _request(client: "Client", items: List[Item], first: int, missing_ok: bool,
             retry: _retry.Retry) -> Reply:
    try:
        return client.call(json_request("POST", "/v1/batch", {
            "entries": items, "on_missing": "empty" if missing_ok else "fail"}), retry)
    except Error as e:
        _count_from(first, e)
        raise


def _one(client: "Client", items: List[Item], first: int, missing_ok: bool) -> Iterator[Optional[bytes]]:
    """What one request can have, however often it breaks off; its first item is the caller's `first`."""
    retry = _retry.Retry(client.policy, time.monotonic())
    done = 0
    while done < len(items):
        reply = _request(client, items[done:], first + done, missing_ok, retry)
        try:
            for data in _come(reply, items[done:]):
                done += 1
                retry.progress(time.monotonic())
                yield data
            reply.close()
        except _wire.Broken as e:
            pause = retry.next(_retry.Question(_retry.Outcome.BROKEN, time.monotonic(), 0.5,
                                               twice_is_harmless=True))
            if pause is None:
                raise Unreachable(f"the batch broke off at entry {first + done}: {e}") from e
            time.sleep(pause)
        finally:
            reply.drop()


def read(client: "Client", items: Iterable[Item], missing_ok: bool) -> Iterator[Optional[bytes]]:
    """The bytes of each item; None where there is no such object or member, if that is in order."""
    some: List[Item] = []
    first = 0
    for item in items:
        some.append(item)
        if len(some) == REQUEST_MAX:
            yield from _one(client, some, first, missing_ok)
            first += len(some)
            some = []
    yield from _one(client, some, first, missing_ok)


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
