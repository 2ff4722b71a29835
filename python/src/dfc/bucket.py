"""A bucket: its objects, lists and properties, and jobs over its objects."""

from __future__ import annotations

import io
import os
import re
from typing import (TYPE_CHECKING, Any, BinaryIO, Dict, Iterable, Iterator, List, Mapping, Optional,
                    Tuple, Union)

import xxhash

from . import _body, _retry, _upload, _wire, batch
from ._call import Failed, Reply, Request, encode_name, json_request, read_json
from .errors import Conflict, Corrupt, Error, Invalid, NotFound, Unreachable
from .job import Job
from .object import Entry, ObjectInfo, Reader, compare, info_of, size_of

if TYPE_CHECKING:
    from .client import Client

BUFFER = 1 << 20  #: bytes that open() reads at once
PART = 64 << 20  #: bytes of a part of put_file()
#: A Content-Range of a part.
_PART = re.compile(r"bytes ([0-9]+)-([0-9]+)/[0-9]+").fullmatch
#: Of a name that stands in a path as it is.
_PLAIN = re.compile(r"[A-Za-z0-9_.\-/~()!*']+").fullmatch


class Bucket:
    """By name; nothing is asked until a method is called."""

    def __init__(self, client: "Client", name: str) -> None:
        if not name or "/" in name:
            raise Invalid(f"'{name}' is no name of a bucket", code="invalid_name")
        self._client = client
        self.name = name
        self._path = "/v1/buckets/" + encode_name(name)
        self._objects = "/v1/objects/" + encode_name(name)

    def __repr__(self) -> str:
        return f"dfc.Bucket({self.name!r})"

    # --- the bucket itself ---

    def create(self, exist_ok: bool = False, **props: Any) -> "Bucket":
        """`props`: properties as docs/reference/buckets.md has them (copies=2, ec="2+1", …)."""
        try:
            self._client.send_json("POST", self._path, {"action": "create", "value": props}).close()
        except Conflict as e:
            if not exist_ok or e.code != "bucket_exists":
                raise
        return self

    def destroy(self, missing_ok: bool = False) -> None:
        """The bucket and all that it holds."""
        try:
            self._client.call(Request("DELETE", self._path, twice_is_harmless=False)).close()
        except NotFound:
            if not missing_ok:
                raise

    def exists(self) -> bool:
        """Whether there is such a bucket."""
        try:
            self._client.call(Request("HEAD", self._path)).close()
            return True
        except NotFound:
            return False

    def info(self) -> Dict[str, Any]:
        """The bucket's document."""
        return self._client.get_json(self._path)

    def set(self, **props: Any) -> Dict[str, Any]:
        """Changes properties; those that are not named stay."""
        return read_json(self._client.send_json(
            "PUT", self._path, {"action": "setprops", "value": props}, twice_is_harmless=True))

    # --- one object ---

    def _request(self, method: str, name: str, **options: Any) -> Request:
        if not name:
            raise Invalid("the name of an object is empty", code="invalid_name")
        try:
            name.encode()
        except UnicodeEncodeError as e:
            raise Invalid(f"the name {name!r} is no text of Unicode", code="invalid_name") from e
        return Request(method, self._objects + "/" + encode_name(name), owner=(self.name, name), **options)

    def put(self, name: str, data: "Union[_body.Source, os.PathLike[str]]", *,
            content_type: Optional[str] = None, meta: Optional[Mapping[str, str]] = None,
            if_absent: bool = False, if_match: Optional[str] = None) -> ObjectInfo:
        """Stores bytes, the file of a path, an open binary file from its position on, or pieces.

        Readers see the earlier object or this one, never a mixture.  Pieces can be read once, so
        that the call is repeated only where nothing of them was sent.
        """
        if isinstance(data, os.PathLike):
            with open(data, "rb") as f:
                return self.put(name, f, content_type=content_type, meta=meta,
                                if_absent=if_absent, if_match=if_match)
        body = _body.of(data)
        headers = {**_about(content_type, meta), **_conditions(if_absent, if_match)}
        if body.checksum is not None:
            headers.update({"Dfc-Checksum-Type": "xxh3", "Dfc-Checksum-Value": body.checksum})
        reply = self._client.call(self._request(
            "PUT", name, headers=headers, body=body,
            twice_is_harmless=not if_absent and if_match is None))
        document: Dict[str, Any] = read_json(reply)
        return ObjectInfo(int(document["size"]), str(document["etag"]), str(document["version"]),
                          str(document["checksum"]["type"]), str(document["checksum"]["value"]),
                          content_type or "", meta=dict(meta or {}))

    def put_file(self, name: str, path: "Union[str, os.PathLike[str]]", *,
                 content_type: Optional[str] = None, meta: Optional[Mapping[str, str]] = None,
                 if_absent: bool = False, if_match: Optional[str] = None,
                 part_size: int = PART, threads: int = 4) -> ObjectInfo:
        """Stores a file.  One of more than `part_size` bytes goes in parts, `threads` at a time; a
        part that fails is sent again, alone.  Readers see the object when all parts are there."""
        if part_size < _upload.PART_MIN or threads < 1:
            raise Invalid(f"part_size has to be at least {_upload.PART_MIN} bytes, threads 1",
                          code="invalid_argument")
        with open(path, "rb") as f:
            size = os.fstat(f.fileno()).st_size
            if size <= part_size:
                return self.put(name, f, content_type=content_type, meta=meta,
                                if_absent=if_absent, if_match=if_match)
            at = self._request("POST", name).path.replace("/v1/objects/", "/v1/uploads/", 1)
            reply = _upload.Upload(self._client.caller, self.name, name, at).send(
                f.fileno(), size, _upload.part_size(size, part_size), threads,
                _about(content_type, meta), _conditions(if_absent, if_match))
        return ObjectInfo(int(reply["size"]), str(reply.get("etag", "")), str(reply["version"]),
                          content_type=content_type or "", meta=dict(meta or {}))

    def open(self, name: str, *, offset: int = 0, length: Optional[int] = None,
             if_match: Optional[str] = None, if_none_match: Optional[str] = None,
             verify: bool = True, buffering: int = BUFFER) -> BinaryIO:
        """A reader of the bytes, in order.  What breaks off goes on, in the same version."""
        reader = self._reader(name, offset, length, if_match, if_none_match, verify)
        return reader if buffering == 0 else io.BufferedReader(  # type: ignore[return-value]
            reader, buffering)

    def _reader(self, name: str, offset: int, length: Optional[int], if_match: Optional[str],
                if_none_match: Optional[str], verify: bool,
                found: Union[Reply, Failed, None] = None) -> Reader:
        """`found`: what a try before this came to."""
        if length is not None and (length <= 0 or offset < 0):
            raise Invalid("a length has to be above 0, and its offset not below 0",
                          code="invalid_argument")

        def begin(at: int, etag: str, retry: _retry.Retry) -> Reply:
            headers = {}
            if etag or if_match:
                headers["If-Match"] = etag or str(if_match)
            if if_none_match:
                headers["If-None-Match"] = if_none_match
            if offset < 0 and at == 0:
                headers["Range"] = f"bytes={offset}"
            elif offset or length is not None or at:
                first = begins + at
                last = "" if length is None else str(offset + length - 1)
                headers["Range"] = f"bytes={first}-{last}"
            reply = self._client.caller.call(self._request("GET", name, headers=headers), retry,
                                             failed.pop() if failed else None)
            _check_part(reply, headers.get("Range", ""))
            return reply

        begins = offset
        failed = [found] if isinstance(found, Failed) else []
        reader = Reader(begin, self._client.policy, verify,
                        found if isinstance(found, Reply) else None)
        if offset < 0:
            begins = max(0, reader.size + offset)
        return reader

    def get(self, name: str, *, offset: int = 0, length: Optional[int] = None,
            if_match: Optional[str] = None, if_none_match: Optional[str] = None,
            verify: bool = True) -> bytes:
        """The bytes.  `offset` and `length` name a part; a negative offset counts from the end."""
        if offset == 0 and length is None and if_match is None and if_none_match is None:
            return self._whole(name, verify)
        if length == 0:
            return b""
        with self._reader(name, offset, length, if_match, if_none_match, verify) as reader:
            return reader.readall()

    def _whole(self, name: str, verify: bool) -> bytes:
        """By the short way of Caller.get(), else by a reader.  A plain name needs no encoding."""
        caller = self._client.caller
        path = self._objects + "/" + name if _PLAIN(name) else self._request("GET", name).path
        found = caller.get(self.name, name, path)
        if isinstance(found, tuple):
            data, checksum = found
            if verify and checksum:
                compare(xxhash.xxh3_64_hexdigest(data), checksum.decode("latin-1"))
            return data
        with self._reader(name, 0, None, None, None, verify, found) as reader:
            return reader.readall()

    def get_into(self, name: str, view: "Union[memoryview, bytearray]", *, offset: int = 0,
                 verify: bool = True) -> int:
        """Fills `view`, as far as the object goes; how many bytes that were."""
        target = memoryview(view).cast("B")
        if len(target) == 0:
            return 0
        with self._reader(name, offset, None if offset == 0 else len(target), None, None,
                          verify) as reader:
            if offset == 0 and reader.size > len(target):
                raise Invalid(f"the object has {reader.size} bytes, the room is "
                              f"{len(target)}: name a part by offset, or make more room",
                              code="too_large")
            done = 0
            while True:
                count = reader.readinto(target[done:])
                if count == 0:
                    return done
                done += count

    def head(self, name: str) -> ObjectInfo:
        """What is known of an object, without its bytes."""
        reply = self._client.call(self._request("HEAD", name))
        reply.close()
        return info_of(reply.headers, size_of(reply))

    def delete(self, name: str, missing_ok: bool = False) -> None:
        """One object."""
        try:
            self._client.call(self._request("DELETE", name)).close()
        except NotFound as e:
            if not missing_ok or e.code != "object_not_found":
                raise

    def rename(self, name: str, new_name: str) -> None:
        """Within the bucket; an object of the new name is replaced."""
        request = self._request("POST", name)
        action = json_request("POST", request.path, {"action": "rename", "name": new_name})
        action.owner = request.owner
        action.twice_is_harmless = False
        self._client.call(action).close()

    # --- archives ---

    def member(self, archive: str, name: str) -> bytes:
        """The bytes of one member of an object that is a tar."""
        reply = self._client.call(self._request("GET", archive, query={"member": name}))
        try:
            return reply.read()
        except _wire.Broken as e:
            reply.drop()
            raise Unreachable(f"the member broke off: {e}") from e
        finally:
            reply.close()

    def members(self, archive: str) -> Iterator[Dict[str, Any]]:
        """Of an object that is a tar: name, type, size, offset and modified of each, by name."""
        query = {"members": "list", "limit": "10000"}
        while True:
            page = read_json(self._client.call(self._request("GET", archive, query=query)))
            yield from page["members"]
            if not page["truncated"]:
                return
            last = page["members"][-1]
            if "name" not in last:
                raise Invalid(f"the member {last['escaped']} has a name that is no UTF-8",
                              code="invalid_name")
            query["after"] = str(last["name"])

    # --- many ---

    def batch(self, names: Iterable[Any], *,
              missing_ok: bool = False) -> "Iterator[Tuple[Any, Optional[bytes]]]":
        """Each name and its bytes, in this order, by few requests.

        A name is that of an object, a pair of an archive and its member, or a dictionary with
        `object` and perhaps `member`, `offset` and `length`.  What does not exist raises NotFound, or
        with `missing_ok` has None for its bytes.
        """
        asked = list(names)
        items = [batch.item_of(self.name, name) for name in asked]
        return zip(asked, batch.read(self._client, items, missing_ok))

    def list(self, prefix: str = "", *, delimiter: str = "", start_after: str = "",
             page_size: int = 1000, cached: bool = False) -> Iterator[Entry]:
        """Entries in bytewise order of names, asked for page by page as they are needed."""
        query = {"limit": str(page_size)}
        for key, value in (("prefix", prefix), ("delimiter", delimiter),
                           ("start_after", start_after), ("cached", "true" if cached else "")):
            if value:
                query[key] = value
        while True:
            page = self._client.get_json(self._objects, query)
            yield from _entries(page)
            if not page["next"]:
                return
            query["token"] = str(page["next"])

    def _job(self, action: str, value: Dict[str, Any], prefix: Optional[str],
             template: Optional[str], names: Optional[List[str]]) -> Job:
        which = {k: v for k, v in (("prefix", prefix), ("template", template), ("list", names))
                 if v is not None}
        if len(which) != 1:
            raise Invalid("name the objects in one way: prefix, template or names",
                          code="invalid_argument")
        return self._client.start_job(self._path, {"action": action, "value": {**value, **which}})

    def delete_many(self, *, prefix: Optional[str] = None, template: Optional[str] = None,
                    names: Optional[List[str]] = None) -> Job:
        """The objects of a prefix, of a template as "a-{00..99}", or of a list of names."""
        return self._job("delete", {}, prefix, template, names)

    def copy_many(self, to: str, *, prepend: str = "", prefix: Optional[str] = None,
                  template: Optional[str] = None, names: Optional[List[str]] = None) -> Job:
        """To another bucket, or within this one where `prepend` gives other names."""
        return self._job("copy", {"to": to, "prepend": prepend}, prefix, template, names)

    def prefetch(self, *, prefix: Optional[str] = None, template: Optional[str] = None,
                 names: Optional[List[str]] = None) -> Job:
        """Of a bucket with a backend: brings objects here before they are read."""
        return self._job("prefetch", {}, prefix, template, names)


def _about(content_type: Optional[str], meta: Optional[Mapping[str, str]]) -> Dict[str, str]:
    headers = {f"Dfc-Meta-{key}": value for key, value in (meta or {}).items()}
    return headers if content_type is None else {**headers, "Content-Type": content_type}


def _conditions(if_absent: bool, if_match: Optional[str]) -> Dict[str, str]:
    absent = {"If-None-Match": "*"} if if_absent else {}
    return absent if if_match is None else {**absent, "If-Match": if_match}


def _check_part(reply: Reply, asked: str) -> None:
    """Nobody takes the whole for a part, or one part for another.  Of an object without bytes, the
    last ones are the whole."""
    first, _, last = asked[len("bytes="):].partition("-")
    came = reply.headers.get("content-range", "")
    if not asked or \
            not first and reply.status == 200 and reply.headers.get("content-length") == "0":
        return
    part = _PART(came) if reply.status == 206 else None
    if part is None or not _fits(int(part[1]), int(part[2]), first, last):
        reply.close()
        raise Error(f"a reply with the part '{came}' where '{asked}' was asked for")


def _fits(begin: int, end: int, first: str, last: str) -> bool:
    """A part from `begin` to `end`, where `first` to `last` was asked for; it may end earlier."""
    if not first:
        return end - begin < int(last)
    return begin == int(first) and (not last or end <= int(last))


def _entries(page: Dict[str, Any]) -> Iterator[Entry]:
    """Entries and prefixes of a page, in one order."""
    if page.get("incomplete"):
        raise Corrupt("the list is incomplete", code="node_unreachable")
    rows = [Entry(str(e["name"]), int(e["size"]), str(e["version"]),
                  str((e.get("checksum") or {}).get("value", "")), e["modified_ms"] / 1000,
                  cached=bool(e.get("cached", True)))
            for e in page["entries"]]
    rows += [Entry(str(name), is_prefix=True) for name in page["prefixes"]]
    rows.sort(key=lambda e: e.name.encode())
    yield from rows
