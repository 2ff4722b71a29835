"""A request of a load: which bytes of an item it reads, and where they arrive."""

from __future__ import annotations

import io
from typing import Any, Callable, List, Tuple

import torch
import xxhash
from torch.distributed.checkpoint.planner import LoadItemType

from .._checkpoint import BLOCK, Piece, Want, flat, pieces
from ..errors import Corrupt, Invalid
from ._saved import is_plain, memory


class Loaded:
    """An item that is read whole: an object, a small tensor, or one that torch's writer wrote."""

    def __init__(self, request: Any, info: Any, planner: Any) -> None:
        self._request, self._info, self._planner = request, info, planner
        facts = getattr(info, "dfc", {})
        self._sums = facts.get("sums")
        self._block = int(facts.get("block", BLOCK))
        self._view = memoryview(b"")
        self._left = 0  # pieces
        self._want = self._wanted(0, info.length)

    def _wanted(self, begin: int, end: int) -> Want:
        info = self._info
        return Want(info.relative_path, info.offset, info.length, begin, end, self._block)

    def begin(self) -> List[Piece]:
        """Makes room.  What has to be read."""
        self._view = self._room()
        found = pieces(self._want, self)
        self._left = len(found)
        return found

    def _room(self) -> memoryview:
        return memoryview(bytearray(self._info.length))

    def fill(self, piece: Piece, read: Callable[[memoryview], None]) -> None:
        """Reads a piece, block by block, and compares the checksums."""
        for begin in range(piece.begin, piece.end, self._block):
            digest = xxhash.xxh3_64()
            for part in self._parts(begin, min(begin + self._block, piece.end)):
                read(part)
                digest.update(part)
            if self._sums and digest.intdigest() != self._sums[begin // self._block]:
                raise Corrupt(f"'{self._request.storage_index.fqn}' in '{piece.file}' differs from "
                              f"what was saved, in the block at byte {self._want.offset + begin}: "
                              "load another checkpoint", code="checksum_mismatch")

    def _parts(self, begin: int, end: int) -> "Tuple[memoryview, ...]":
        """Of a block: what is before the wanted bytes, they, and what is behind them."""
        low = min(max(self._want.begin, begin), end)
        high = max(min(self._want.end, end), low)
        first = self._want.begin
        own = self._view[low - first:high - first] if high > low else memoryview(b"")
        return memoryview(bytearray(low - begin)), own, memoryview(bytearray(end - high))

    def filled(self) -> None:
        """A piece has come.  After the last one, the planner gets the item."""
        self._left -= 1
        if self._left == 0:
            self._finish()
            self._view = memoryview(b"")

    def _finish(self) -> None:
        request, stream = self._request, io.BytesIO(self._view)
        if request.type == LoadItemType.BYTE_IO:
            self._planner.load_bytes(request, stream)
            return
        tensor = torch.load(stream, map_location="cpu", weights_only=True)
        for dim, (offset, length) in enumerate(zip(request.storage_offsets, request.lengths)):
            tensor = tensor.narrow(dim, offset, length)
        target = _target(request, self._planner)
        target.copy_(tensor)
        self._planner.commit_tensor(request, target)


class LoadedRows(Loaded):
    """Elements of a tensor that are together in its file: only they are read.  They arrive in the
    target itself if it is in the memory of the CPU and has their type and order."""

    def __init__(self, request: Any, info: Any, planner: Any, first: int, count: int) -> None:
        super().__init__(request, info, planner)
        facts = info.dfc
        self._dtype = facts["dtype"]
        begin = facts["data"] + first * self._dtype.itemsize
        self._want = self._wanted(begin, begin + count * self._dtype.itemsize)
        self._target: Any = None
        self._stage: Any = None

    def _room(self) -> memoryview:
        self._target = self._stage = _target(self._request, self._planner)
        if self._stage.device.type != "cpu" or self._stage.dtype != self._dtype or \
                not is_plain(self._stage):
            self._stage = torch.empty(tuple(self._request.lengths), dtype=self._dtype)
        return memory(self._stage)

    def _finish(self) -> None:
        if self._stage is not self._target:
            self._target.copy_(self._stage)
        self._planner.commit_tensor(self._request, self._target)
        self._target = self._stage = None


def _target(request: Any, planner: Any) -> Any:
    target = planner.resolve_tensor(request).detach()
    if tuple(target.shape) != tuple(request.lengths):
        raise Invalid(f"'{request.storage_index.fqn}' has the shape {tuple(target.shape)} here, the "
                      f"plan loads {tuple(request.lengths)}: make a state of the saved shapes",
                      code="invalid_argument")
    return target


def loaded(request: Any, info: Any, planner: Any) -> Loaded:
    """For one request of a plan; `info` is what the metadata say of its item."""
    if getattr(info, "transform_descriptors", None):
        raise Invalid(f"'{request.storage_index.fqn}' was saved through extensions of torch, which "
                      "are not supported: load a copy by torch's FileSystemReader",
                      code="not_supported")
    facts = getattr(info, "dfc", {})
    if request.type != LoadItemType.BYTE_IO and "data" in facts:
        box = flat(facts["shape"], request.storage_offsets, request.lengths)
        if box is not None and box[1] > 0:
            return LoadedRows(request, info, planner, *box)
    return Loaded(request, info, planner)
