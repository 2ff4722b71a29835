"""A tar as it streams: the files that it has, by name, with their bytes.

The forms of ustar, POSIX (pax) and GNU are read, plain or compressed (CODECS).  Sparse files of GNU
tar are refused.  `Damaged` is what is wrong with the bytes; errors of the stream itself pass.
"""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO, Callable, Dict, Iterator, Tuple, Type

from .errors import Error, Invalid

BLOCK = 512
STEP = 16 << 20  #: bytes that are read at once: a damaged length asks for no more memory than came
EXTRA_MAX = 1 << 20  #: bytes of a header's extension
ZEROS = bytes(BLOCK)
_FILES = (b"0", b"\0", b"7")
_BARE = b"123456"  # links, devices, directories: nothing follows their header, whatever it says


class Damaged(Exception):
    """The bytes are no tar, or end too early."""


class CutOff(Damaged):
    """They end too early."""


def octal(field: bytes) -> int:
    """A number of a header: octal digits, or (GNU) binary after a byte of 0x80."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b"\0 ")
    if not digits or digits.strip(b"01234567"):
        raise Damaged(f"{field!r} is no number of a header")
    return int(digits, 8)


def records(data: bytes) -> Dict[bytes, bytes]:
    """Of the extension of a POSIX header: "LENGTH KEY=VALUE\\n" each."""
    found: Dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        space = data.find(b" ", at, at + 12)
        digits = data[at:space]
        if space < 0 or not digits.isdigit() or not space + 1 < at + int(digits) <= len(data):
            raise Damaged("a damaged record of a header")
        key, _, value = data[space + 1:at + int(digits)].partition(b"=")
        found[key] = value[:-1] if value.endswith(b"\n") else value
        at += int(digits)
    return found


def _exactly(stream: Any, count: int) -> bytes:
    """`read` may give less than it is asked for, and gives nothing at the end."""
    data: bytes = stream.read(min(count, STEP))
    if len(data) == count:
        return data
    parts, left = [data], count - len(data)
    while left > 0 and data:
        data = stream.read(min(left, STEP))
        parts.append(data)
        left -= len(data)
    if left > 0:
        raise CutOff("it ends too early, so it was cut off")
    return b"".join(parts)


def _check_sum(block: bytes) -> None:
    field = block[148:156]
    plain = sum(block) - sum(field) + 8 * 32
    want = octal(field)
    if want != plain and want != plain - 256 * sum(c > 127 for c in block[:148] + block[156:]):
        raise Damaged("a header does not have its checksum")


def _size(more: Dict[bytes, bytes], block: bytes) -> int:
    if b"size" not in more:
        return octal(block[124:136])
    if not more[b"size"].isdigit() or len(more[b"size"]) > 19:
        raise Damaged("a length that is no number")
    return int(more[b"size"])


def _name(more: Dict[bytes, bytes], block: bytes) -> str:
    name = more.get(b"path")
    if name is None:
        name = block[:100].partition(b"\0")[0]
        if block[257:263] == b"ustar\0" and block[345] != 0:
            name = block[345:500].partition(b"\0")[0] + b"/" + name
    return name.decode("utf-8", "surrogateescape")


def _refuse_sparse(kind: bytes, more: Dict[bytes, bytes]) -> None:
    if kind == b"S" or any(key.startswith(b"GNU.sparse.") for key in more):
        raise Invalid("it has a sparse file: make it without --sparse", code="not_supported")


def files(stream: Any) -> Iterator[Tuple[str, bytes]]:
    """Name and bytes of each file of a tar that is not compressed, up to its end mark."""
    every: Dict[bytes, bytes] = {}  # what a global header says
    more: Dict[bytes, bytes] = {}
    while True:
        block = _exactly(stream, BLOCK)
        if block == ZEROS:
            return
        _check_sum(block)
        kind = block[156:157]
        size = 0 if kind in _BARE else _size(more, block)
        if kind in b"xXgLK" and size > EXTRA_MAX:
            raise Damaged(f"a header's extension of {size} bytes")
        data = _exactly(stream, size + -size % BLOCK)
        if size % BLOCK:
            data = data[:size]
        if kind in b"xX":
            more = {**more, **records(data)}
        elif kind == b"g":
            every = {**every, **records(data)}
            more = {**every, **more}
        elif kind == b"L":
            more = {**more, b"path": data.partition(b"\0")[0]}
        elif kind != b"K":
            _refuse_sparse(kind, more)
            name = _name(more, block)
            if kind in _FILES and not (kind == b"\0" and name.endswith("/")):  # a directory, before ustar
                yield name, data
            more = dict(every)


# --- compression ---


@dataclass(frozen=True)
class Codec:
    """How a compressed tar begins, and a reader of what it holds."""

    magic: bytes
    open: Callable[[Any], Any]
    errors: Tuple[Type[Exception], ...]


class _Again(io.RawIOBase):
    """A stream whose first bytes were read."""

    def __init__(self, first: bytes, stream: BinaryIO) -> None:
        super().__init__()
        self._first, self._stream = first, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._first[:len(buffer)] or self._stream.read(len(buffer))
        self._first = self._first[len(buffer):]
        buffer[:len(data)] = data
        return len(data)


def _module(name: str, package: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise Invalid(f"it is compressed by {name.partition('.')[0]}, and the Python package "
                      f"'{package}' is not there: pip install {package}",
                      code="not_supported") from e


def _zstd(stream: Any) -> Any:
    return _module("zstandard", "zstandard").ZstdDecompressor().stream_reader(
        stream, read_across_frames=True)


def _lz4(stream: Any) -> Any:
    return _module("lz4.frame", "lz4").LZ4FrameFile(stream)


#: zstandard's and lz4's errors are no classes of ours: ZstdError is an Exception, lz4 has RuntimeError.
CODECS = (
    Codec(b"\x1f\x8b", lambda s: gzip.GzipFile(fileobj=s), (EOFError, zlib.error)),
    Codec(b"BZh", bz2.BZ2File, (EOFError, ValueError)),
    Codec(b"\xfd7zXZ\0", lzma.LZMAFile, (EOFError, lzma.LZMAError)),
    Codec(b"(\xb5/\xfd", _zstd, (Exception,)),
    Codec(b"\x04\"M\x18", _lz4, (EOFError, RuntimeError)),
)
ZIP = b"PK\x03\x04"


class _Unpacked:
    """What a codec gives; its errors are damage.  Those of the stream below have a number, or are
    none of the codec's."""

    def __init__(self, codec: Codec, stream: Any) -> None:
        self._codec, self._stream = codec, codec.open(io.BufferedReader(stream, 1 << 20))

    def read(self, count: int) -> bytes:
        try:
            data: bytes = self._stream.read(count)
            return data
        except Error:
            raise  # of the read of the object
        except OSError as e:
            if e.errno is not None:
                raise
            raise Damaged(str(e)) from e
        except self._codec.errors as e:
            raise Damaged(str(e)) from e


def unpacked(stream: BinaryIO) -> Any:
    """The tar in a stream, with read(): plain ones as they are."""
    first = b""
    while len(first) < BLOCK and (data := stream.read(BLOCK - len(first))):
        first += data
    for codec in CODECS:
        if first.startswith(codec.magic):
            return _Unpacked(codec, _Again(first, stream))
    if first.startswith(ZIP):
        raise Invalid("it is a zip: a shard is a tar; a sort converts it", code="not_supported")
    return _Plain(first, stream)


class _Plain:
    """A stream whose first block was read."""

    def __init__(self, first: bytes, stream: BinaryIO) -> None:
        self._first, self._stream = first, stream

    def read(self, count: int) -> bytes:
        if self._first:
            first, self._first = self._first, b""
            return first  # the caller asks for a block first
        return self._stream.read(count)
