"""Directories of ISO 9660 with Rock Ridge: names, links, attributes, sections.

Sources: ECMA-119, SUSP 1.12, RRIP 1.12.  Nothing is trusted: see _vdisc_table."""

from __future__ import annotations

import calendar
import struct
from dataclasses import dataclass
from typing import Callable, Dict, Iterator, List, Optional, Tuple

from ._vdisc_table import BLOCK, damaged

#: (offset, length) -> bytes of the image
Read = Callable[[int, int], bytes]

_MORE, _DIRECTORY = 0x80, 0x02
_AREAS = 64  #: continuations of one record


@dataclass(frozen=True)
class Entry:
    """A file, a directory or a link of an image."""

    name: str
    kind: str  #: "file", "directory" or "link"
    size: int  #: of a file, bytes
    modified: float  #: Unix time in seconds
    mode: int  #: permissions
    uid: int = 0
    gid: int = 0
    target: str = ""  #: of a link
    block: int = 0  #: the first one
    length: int = 0  #: of a directory's records, bytes


def _date(data: bytes) -> float:
    year, month, day, hour, minute, second, zone = struct.unpack("6Bb", data)
    try:
        return float(calendar.timegm((1900 + year, month, day, hour, minute, second)) - zone * 900)
    except ValueError:
        return 0.0


class _Fields:
    """System use fields of one record."""

    def __init__(self) -> None:
        self.name, self.target = b"", b""
        self.mode: Optional[int] = None
        self.uid = self.gid = 0
        self.modified: Optional[float] = None
        self._joined = True  # a part of a link's target begins

    def take(self, read: Read, data: bytes) -> None:
        for _ in range(_AREAS):
            more = self._take_area(data)
            if more is None:
                return
            block, offset, length = more
            data = read(block * BLOCK + offset, length)
        raise damaged("a record goes on without end")

    def _take_area(self, data: bytes) -> Optional[Tuple[int, int, int]]:
        more, at = None, 0
        while at + 4 <= len(data) and data[at + 2] >= 4:
            body = data[at + 4:at + data[at + 2]]
            kind = data[at:at + 2]
            at += data[at + 2]
            if kind == b"CE":
                block, offset, length = struct.unpack("<I4xI4xI4x", body[:24])
                more = (block, offset, length)
            elif kind == b"ST":
                break
            else:
                self._take_field(kind, body)
        return more

    def _take_field(self, kind: bytes, body: bytes) -> None:
        if kind == b"NM" and not body[0] & 6:
            self.name += body[1:]
        elif kind == b"PX":
            self.mode, _, self.uid, self.gid = struct.unpack("<I4xI4xI4xI4x", body[:32])
        elif kind == b"TF" and not body[0] & 0x80:
            if body[0] & 2:
                at = 1 + 7 * (body[0] & 1)
                self.modified = _date(body[at:at + 7])
        elif kind == b"SL":
            self._take_link(body)

    def _take_link(self, body: bytes) -> None:
        at = 1
        while at + 2 <= len(body):
            flags, text = body[at], body[at + 2:at + 2 + body[at + 1]]
            at += 2 + body[at + 1]
            if flags & 8:
                self.target = b"/"
                continue
            if self._joined and self.target and not self.target.endswith(b"/"):
                self.target += b"/"
            self.target += b"." if flags & 2 else b".." if flags & 4 else text
            self._joined = not flags & 1


def _plain(name: bytes) -> bytes:
    """Without Rock Ridge: "NAME.EXT;1"."""
    name = name.split(b";")[0]
    return name[:-1] if name.endswith(b".") and len(name) > 1 else name


class Reader:
    def __init__(self, read: Read, size: int) -> None:
        self._read, self._size = read, size
        for block in range(16, 80):
            descriptor = read(block * BLOCK, BLOCK)
            if descriptor[1:6] != b"CD001" or descriptor[0] == 255:
                break
            if descriptor[0] == 1:
                first, length = struct.unpack_from("<I4xI", descriptor, 158)
                self.root = Entry("", "directory", 0, _date(descriptor[174:181]), 0o555,
                                  block=first, length=length)
                record = read(first * BLOCK, BLOCK)
                self._rock_ridge = record[34:36] == b"SP"
                self._skip = record[40] if self._rock_ridge else 0
                return
        raise damaged("it has no ISO 9660 volume descriptor")

    def entries(self, directory: Entry) -> Iterator[Entry]:
        found: Optional[Entry] = None
        for record in self._records(directory):
            if record[32] == 1 and record[33] <= 1:  # "." and ".."
                continue
            first, length = struct.unpack_from("<I4xI", record, 2)
            if found is None:
                found = self._entry(record, first, length)
            elif found.block * BLOCK + found.size != first * BLOCK:
                raise damaged("the sections of a file are not neighbours")
            else:
                found = Entry(**{**found.__dict__, "size": found.size + length})
            if not record[25] & _MORE:
                yield found
                found = None
        if found is not None:
            raise damaged("the last section of a file is missing")

    def _records(self, directory: Entry) -> Iterator[bytes]:
        begin = directory.block * BLOCK
        if begin + directory.length > self._size:
            raise damaged("a directory is behind its end")
        for offset in range(0, directory.length, BLOCK):
            data = self._read(begin + offset, BLOCK)
            at = 0
            while at < BLOCK and data[at] != 0:
                record = data[at:at + data[at]]
                if len(record) < 34 or at + len(record) > BLOCK or 33 + record[32] > len(record):
                    raise damaged("a directory record is cut")
                yield record
                at += len(record)

    def _entry(self, record: bytes, first: int, length: int) -> Entry:
        fields = _Fields()
        use = 33 + record[32] + (record[32] % 2 == 0) + self._skip
        if self._rock_ridge:
            fields.take(self._read, record[use:])
        name = (fields.name or _plain(record[33:33 + record[32]])).decode("utf-8", "surrogateescape")
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise damaged(f"a file is named '{name}'")
        is_directory = bool(record[25] & _DIRECTORY)
        mode = fields.mode if fields.mode is not None else 0o555 if is_directory else 0o444
        is_link = mode & 0o170000 == 0o120000
        kind = "directory" if is_directory else "link" if is_link else "file"
        return Entry(name, kind, 0 if kind != "file" else length,
                     fields.modified if fields.modified is not None else _date(record[18:25]),
                     mode & 0o7777, fields.uid, fields.gid,
                     fields.target.decode("utf-8", "surrogateescape"), first, length)


def opened(read: Read, size: int) -> Reader:
    try:
        return Reader(read, size)
    except (struct.error, IndexError) as e:
        raise damaged(f"its volume descriptor: {e}") from e


def index(reader: Reader, directory: Entry) -> Dict[str, Entry]:
    try:
        return {entry.name: entry for entry in reader.entries(directory)}
    except (struct.error, IndexError) as e:
        raise damaged(f"a directory record: {e}") from e


def parts(path: str) -> List[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
