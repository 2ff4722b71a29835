"""Dataset images, read without a mount.

    image = dfc.vdisc.Image(client, "dfc://images/mnist.vdsc")
    image.listdir("/train")
    data = image.read("/train/0001.png")
    with image.open("/train/0001.png") as f:
        ...

Bytes are of the objects that the image was burned of, or the read fails: Precondition with the code
`image_stale` if an object has been replaced.  An image may be used by several threads, and by
processes that were forked or spawned.  dfc.torch.ImageDataset gives its files to PyTorch.
"""

from __future__ import annotations

import bisect
import hashlib
import io
import threading
from collections import OrderedDict
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Tuple

from . import _iso9660, _vdisc_table
from ._iso9660 import Entry
from ._vdisc_table import BLOCK, Extent, damaged
from .client import Client
from .errors import Corrupt, Invalid, NotFound, Precondition

__all__ = ["Entry", "Image"]

_SCHEME = "dfc://"
_PIECE = 256 << 10  #: bytes of metadata that are fetched at once
_PIECES = 256  #: of them that are kept
_DIRECTORIES = 1024  #: whose names are kept
_DEPTH = 2048  #: of directories


class _Kept:
    """The values that were used last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: "OrderedDict[Any, Any]" = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any) -> Any:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Any, value: Any) -> None:
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)


class Image:
    """An image, opened by the name of its table: "dfc://BUCKET/NAME.vdsc"."""

    def __init__(self, client: Client, url: str) -> None:
        bucket, _, key = url[len(_SCHEME):].partition("/")
        if not url.startswith(_SCHEME) or not bucket or not key:
            raise Invalid(f"'{url}' is no image: expected dfc://BUCKET/NAME.vdsc",
                          code="invalid_argument")
        self._client, self.url = client, url
        self._table = _vdisc_table.read(client.bucket(bucket).get(key), bucket, key)
        self._begins = [extent.begin for extent in self._table.extents]
        self._forget()

    def _forget(self) -> None:
        self._pieces, self._names = _Kept(_PIECES), _Kept(_DIRECTORIES)
        self._reader = _iso9660.opened(self._metadata, self._table.size)

    def __getstate__(self) -> Dict[str, Any]:
        return {"_client": self._client, "url": self.url, "_table": self._table,
                "_begins": self._begins}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    # --- names ---

    def stat(self, path: str) -> Entry:
        """NotFound.  Links are not followed."""
        entry = self._reader.root
        for part in _iso9660.parts(path):
            found = self._index(entry).get(part) if entry.kind == "directory" else None
            if found is None:
                raise NotFound(f"the image has no path '{path}'", code="not_found")
            entry = found
        return entry

    def scandir(self, path: str = "/") -> List[Entry]:
        """The entries of a directory."""
        entry = self.stat(path)
        if entry.kind != "directory":
            raise Invalid(f"'{path}' is no directory", code="invalid_argument")
        return list(self._index(entry).values())

    def listdir(self, path: str = "/") -> List[str]:
        """The names in a directory."""
        return [entry.name for entry in self.scandir(path)]

    def walk(self, path: str = "/") -> Iterator[Tuple[str, Entry]]:
        """Each entry below a directory, with its path ("a/b"); a directory before what is in it."""
        top = "/".join(_iso9660.parts(path))
        levels = [(top + "/" if top else "", iter(self.scandir(path)))]
        while levels:
            prefix, entries = levels[-1]
            entry = next(entries, None)
            if entry is None:
                levels.pop()
                continue
            yield prefix + entry.name, entry
            if entry.kind == "directory":
                if len(levels) > _DEPTH:
                    raise damaged("its directories are nested without end")
                levels.append((f"{prefix}{entry.name}/", iter(self._index(entry).values())))

    def _index(self, directory: Entry) -> Dict[str, Entry]:
        names: Dict[str, Entry] = self._names.get(directory.block)
        if names is None:
            names = _iso9660.index(self._reader, directory)
            self._names.put(directory.block, names)
        return names

    # --- bytes ---

    def read(self, path: str, *, verify: bool = True) -> bytes:
        """The bytes of a file; with `verify` compared with the SHA-256 that the image has."""
        return self.read_entry(self._file(path), verify=verify)

    def read_entry(self, entry: Entry, *, verify: bool = True) -> bytes:
        """The same of an entry of scandir() or walk()."""
        if entry.size == 0:
            return b""
        extent, offset = self._extent(entry.block * BLOCK)
        data = self._get(extent, offset, entry.size)
        if verify and self._has_other(extent, entry, data):
            raise Corrupt(f"the bytes of '{entry.name}' do not have the checksum that the image "
                          "has: burn the image again", code="checksum_mismatch")
        return data

    def _has_other(self, extent: Extent, entry: Entry, data: bytes) -> bool:
        """Than the checksums: of a part of a pack, and of a whole object."""
        wanted = self._table.members.get(entry.block)
        if wanted is not None and hashlib.sha256(data).digest() != wanted:
            return True
        kind, _, digest = extent.checksum.partition(":")
        whole = entry.block * BLOCK == extent.begin and len(data) == extent.size
        return whole and kind == "sha256" and hashlib.sha256(data).hexdigest() != digest.lower()

    def open(self, path: str) -> BinaryIO:
        """A seekable file."""
        return io.BufferedReader(_File(self, self._file(path)), 1 << 20)

    def _file(self, path: str) -> Entry:
        entry = self.stat(path)
        if entry.kind != "file":
            raise Invalid(f"'{path}' is a {entry.kind}, not a file", code="invalid_argument")
        return entry

    def read_range(self, entry: Entry, offset: int, length: int) -> bytes:
        length = min(length, entry.size - offset)
        if length <= 0:
            return b""
        extent, begin = self._extent(entry.block * BLOCK)
        return self._get(extent, begin + offset, length)

    def _extent(self, at: int) -> Tuple[Extent, int]:
        """The one that has this byte of the image, and where in it."""
        number = bisect.bisect_right(self._begins, at) - 1
        if number < 0 or at >= self._table.size:
            raise damaged("a file is behind its end")
        extent = self._table.extents[number]
        return extent, at - extent.begin

    def _get(self, extent: Extent, offset: int, length: int) -> bytes:
        name = f"{extent.bucket}/{extent.key}"
        if offset + length > extent.size:
            raise damaged(f"a file is longer than its object '{name}'")
        part: Dict[str, Any] = {}
        if offset > 0 or length < extent.size:
            part = {"offset": offset, "length": length}
        bucket = self._client.bucket(extent.bucket)
        try:
            data = bucket.get(extent.key, if_match=extent.etag or None, **part)
        except Precondition as e:
            etag = self._same_bytes_etag(extent)
            if etag is None:
                raise Precondition(f"object '{name}' has been replaced since the image was burned: "
                                   "burn the image again", status=e.status, code="image_stale",
                                   node=e.node, request_id=e.request_id) from e
            data = bucket.get(extent.key, if_match=etag, **part)
        if len(data) != length:
            raise Corrupt(f"object '{name}' is not as long as the image says", code="image_stale")
        return data

    def _same_bytes_etag(self, extent: Extent) -> Optional[str]:
        """Of an object that was stored again with the bytes that it had, by size and checksum."""
        info = self._client.bucket(extent.bucket).head(extent.key)
        same = info.size == extent.size and f"{info.checksum_type}:{info.checksum}" == extent.checksum
        return info.etag if same else None

    def _metadata(self, offset: int, length: int) -> bytes:
        out = b""
        while length > 0:
            extent, at = self._extent(offset)
            begin = at - at % _PIECE
            piece = self._pieces.get((extent.begin, begin))
            if piece is None:
                piece = self._get(extent, begin, min(_PIECE, extent.size - begin))
                self._pieces.put((extent.begin, begin), piece)
            part = piece[at - begin:at - begin + length]
            if not part:
                raise damaged("its metadata are behind their object")
            out += part
            offset += len(part)
            length -= len(part)
        return out


class _File(io.RawIOBase):
    def __init__(self, image: Image, entry: Entry) -> None:
        super().__init__()
        self._image, self._entry, self._at = image, entry, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._entry.size}[whence]
        if base + offset < 0:
            raise ValueError(f"seek to {base + offset}, before the file")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self._image.read_range(self._entry, self._at, len(view))
        view[:len(data)] = data
        self._at += len(data)
        return len(data)
