"""The table of a dataset image (NAME.vdsc): a Cap'n Proto message, plain or in gzip.

Nothing in it is trusted: a place that is outside is Corrupt, and every walk ends."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Dict, List, Tuple
from urllib.parse import quote, unquote, urljoin

from .errors import Corrupt, Invalid

BLOCK = 2048
_PREFIX = "/v1/objects/"
_DEPTH = 4096  #: nodes of one address


@dataclass(frozen=True)
class Extent:
    """An object of an image, and where its bytes are."""

    bucket: str
    key: str
    begin: int  #: in the image, bytes
    size: int
    etag: str
    checksum: str  #: "TYPE:HEX" or ""


@dataclass(frozen=True)
class Table:
    extents: List[Extent]
    members: Dict[int, bytes]  #: SHA-256 by first block, of contents that share an object
    size: int  #: of the image, bytes


def damaged(what: str) -> Corrupt:
    return Corrupt(f"the image is damaged: {what}", code="image_damaged")


@dataclass(frozen=True)
class _Struct:
    segment: int
    word: int  #: of its data
    data: int  #: words
    pointers: int


class _Message:
    def __init__(self, data: bytes) -> None:
        count = struct.unpack_from("<I", data)[0] + 1
        if count > 512:
            raise damaged("the table has too many segments")
        sizes = struct.unpack_from(f"<{count}I", data, 4)
        at = (4 + 4 * count + 7) // 8 * 8
        self._segments: List[bytes] = []
        for size in sizes:
            self._segments.append(data[at:at + 8 * size])
            at += 8 * size
        if at > len(data):
            raise damaged("the table is cut")

    def _at(self, segment: int, word: int) -> int:
        value: int = struct.unpack_from("<Q", self._segments[segment], 8 * word)[0]
        return value

    def _target(self, segment: int, word: int) -> Tuple[int, int, int]:
        """(pointer, segment, word of its content), behind far pointers."""
        pointer = self._at(segment, word)
        if pointer & 3 != 2:
            return pointer, segment, word + 1 + _signed(pointer)
        far, pad = pointer >> 32, pointer >> 3 & 0x1fffffff
        if not pointer & 4:
            pointer = self._at(far, pad)
            return pointer, far, pad + 1 + _signed(pointer)
        landing = self._at(far, pad)
        return self._at(far, pad + 1), landing >> 32, landing >> 3 & 0x1fffffff

    def struct_at(self, segment: int, word: int) -> _Struct:
        if self._at(segment, word) == 0:
            return _Struct(0, 0, 0, 0)
        pointer, segment, at = self._target(segment, word)
        if pointer & 3 != 0 or at < 0:
            raise damaged("a pointer of the table is none of a struct")
        return _Struct(segment, at, pointer >> 32 & 0xffff, pointer >> 48)

    def root(self) -> _Struct:
        return self.struct_at(0, 0)

    def struct(self, of: _Struct, index: int) -> _Struct:
        if index >= of.pointers:
            return _Struct(0, 0, 0, 0)
        return self.struct_at(of.segment, of.word + of.data + index)

    def number(self, of: _Struct, form: str, byte: int) -> int:
        if byte + struct.calcsize(form) > 8 * of.data:
            return 0
        value: int = struct.unpack_from("<" + form, self._segments[of.segment], 8 * of.word + byte)[0]
        return value

    def structs(self, of: _Struct, index: int) -> List[_Struct]:
        if index >= of.pointers or self._at(of.segment, of.word + of.data + index) == 0:
            return []
        pointer, segment, at = self._target(of.segment, of.word + of.data + index)
        if pointer & 3 != 1 or pointer >> 32 & 7 != 7 or at < 0:
            raise damaged("a list of the table is none of structs")
        tag = self._at(segment, at)
        count, data, pointers = tag >> 2 & 0x3fffffff, tag >> 32 & 0xffff, tag >> 48
        step = data + pointers
        if 8 * (at + 1 + count * step) > len(self._segments[segment]) or (step == 0 and count > 0):
            raise damaged("a list of the table is cut")
        return [_Struct(segment, at + 1 + i * step, data, pointers) for i in range(count)]

    def data(self, of: _Struct, index: int) -> bytes:
        if index >= of.pointers or self._at(of.segment, of.word + of.data + index) == 0:
            return b""
        pointer, segment, at = self._target(of.segment, of.word + of.data + index)
        size = pointer >> 35
        if pointer & 3 != 1 or pointer >> 32 & 7 != 2 or at < 0 or \
                8 * at + size > len(self._segments[segment]):
            raise damaged("a text of the table is cut")
        return self._segments[segment][8 * at:8 * at + size]

    def text(self, of: _Struct, index: int) -> str:
        return self.data(of, index)[:-1].decode("utf-8")


def _signed(pointer: int) -> int:
    """The offset of a pointer: 30 bits with a sign."""
    offset = pointer >> 2 & 0x3fffffff
    return offset - (1 << 30) if offset >> 29 else offset


def unpacked(data: bytes, most: int = 1 << 30) -> bytes:
    if data[:3] != b"\x1f\x8b\x08":
        return data
    engine = zlib.decompressobj(31)
    out = engine.decompress(data, most)
    if not engine.eof:
        raise damaged("its table is cut, or larger than 1 GiB")
    return out


def _address(message: _Message, nodes: List[_Struct], extent: _Struct) -> str:
    text, at = message.text(extent, 0), message.number(extent, "I", 0)
    for _ in range(_DEPTH):
        text = message.text(nodes[at], 0) + text
        parent = message.number(nodes[at], "I", 0)
        if parent == at:
            return text
        at = parent
    raise damaged("an address of the table has no begin")


def _resolved(bucket: str, key: str, address: str) -> Tuple[str, str]:
    if "://" in address:
        raise Invalid(f"the image refers to '{address}': only relative addresses are read here",
                      code="not_supported")
    path = urljoin(_PREFIX + quote(f"{bucket}/{key}"), address)
    name, slash, rest = path[len(_PREFIX):].partition("/")
    if not path.startswith(_PREFIX) or not slash or not name or not rest:
        raise damaged(f"its address '{address}' leads out of {_PREFIX}")
    return unquote(name), unquote(rest)


def _read(data: bytes, bucket: str, key: str) -> Table:
    message = _Message(unpacked(data))
    v1, v2 = message.struct(message.root(), 0), message.struct(message.root(), 1)
    if message.number(v1, "H", 0) != BLOCK:
        raise damaged("its blocks have another size than 2048 bytes")
    nodes, pins = message.structs(v1, 1), message.structs(v2, 0)
    extents: List[Extent] = []
    begin = 0
    for number, one in enumerate(message.structs(v1, 2)):
        whole = message.number(one, "I", 4) * BLOCK
        size = whole - message.number(one, "H", 8)
        if size < 0:
            raise damaged("an extent has more padding than bytes")
        place = _resolved(bucket, key, _address(message, nodes, one))
        pin = pins[number] if number < len(pins) else _Struct(0, 0, 0, 0)
        extents.append(Extent(*place, begin, size, message.text(pin, 0), message.text(pin, 1)))
        begin += whole
    members = {message.number(m, "I", 0): message.data(m, 0) for m in message.structs(v2, 3)}
    return Table(extents, members, begin)


def read(data: bytes, bucket: str, key: str) -> Table:
    """Of the object's bytes; `bucket` and `key` name it.  Corrupt, Invalid."""
    try:
        return _read(data, bucket, key)
    except (struct.error, IndexError, UnicodeDecodeError, zlib.error) as e:
        raise damaged(f"its table: {e}") from e
