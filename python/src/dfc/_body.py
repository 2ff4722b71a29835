"""What a PUT sends: bytes in memory, a file, or an iterator of pieces, which can be read once."""

from __future__ import annotations

import io
from typing import BinaryIO, Iterable, Iterator, Optional, Union

import xxhash

from ._wire import STEP
from .errors import Invalid

Bytes = Union[bytes, bytearray, memoryview]


class Body:
    """`size` None: unknown, sent in chunks.  `checksum` None: not known before it is sent."""

    size: Optional[int] = None
    checksum: Optional[str] = None
    repeatable = False

    def pieces(self) -> Iterator[Bytes]:
        raise NotImplementedError


#: Bytes, an open binary file, pieces, or a body that other modules of the package made.
Source = Union[Bytes, BinaryIO, Iterable[bytes], Body]


class Memory(Body):
    repeatable = True

    def __init__(self, data: Bytes) -> None:
        self.data = data if isinstance(data, bytes) else memoryview(data).cast("B")
        self.size = len(self.data)
        self.checksum = xxhash.xxh3_64_hexdigest(self.data)

    def pieces(self) -> Iterator[Bytes]:
        yield self.data


class File(Body):
    """From its position to its end.  It is read twice: the first time for its checksum."""

    repeatable = True

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._begin = file.tell()
        total, digest = 0, xxhash.xxh3_64()
        for piece in self._read():
            total += len(piece)
            digest.update(piece)
        self.size = total
        self.checksum = digest.hexdigest()

    def _read(self) -> Iterator[bytes]:
        self._file.seek(self._begin)
        return iter(lambda: self._file.read(STEP), b"")

    def pieces(self) -> Iterator[Bytes]:
        """As many bytes as were announced, whatever the file has by now."""
        assert self.size is not None
        left = self.size
        for piece in self._read():
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return
        if left > 0:
            raise Invalid(f"the file has become {left} bytes shorter while it was sent",
                          code="bad_length")


class Pieces(Body):
    """Repeatable until the first piece is asked for: a node that refuses asks for none."""

    repeatable = True

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces

    def pieces(self) -> Iterator[Bytes]:
        self.repeatable = False
        for piece in self._pieces:
            if len(piece) > 0:
                yield piece


def of(source: Source) -> Body:
    if isinstance(source, Body):
        return source
    if isinstance(source, (bytes, bytearray, memoryview)):
        return Memory(source)
    if isinstance(source, str):
        raise Invalid("put() takes bytes: encode the text, or give a file as pathlib.Path",
                      code="invalid_argument")
    if isinstance(source, io.IOBase) or hasattr(source, "read"):
        file: BinaryIO = source  # type: ignore[assignment]
        if isinstance(file, io.TextIOBase):
            raise Invalid("the file is open as text: open it with 'rb'", code="invalid_argument")
        return File(file) if file.seekable() else Pieces(iter(lambda: file.read(STEP), b""))
    if isinstance(source, Iterable):
        pieces: Iterable[bytes] = source  # type: ignore[assignment]
        return Pieces(pieces)
    raise Invalid(f"put() takes bytes, a path, an open file or an iterator, not {type(source).__name__}",
                  code="invalid_argument")
