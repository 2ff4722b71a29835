"""A file of a checkpoint as it is sent.

The layout is that of torch's own writer: one torch.save() behind the other.  Beside the place of an
item, the metadata say the checksum of each block of it, and where the elements of a tensor begin.
"""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
import xxhash
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.planner import WriteItemType
from torch.distributed.checkpoint.storage import WriteResult

from .._body import Body, Bytes
from .._checkpoint import BLOCK

OWN_MIN = 64 << 10  #: bytes of a tensor from which on they are not copied
JOINED = 256 << 10  #: bytes of small pieces that are sent at once


def memory(tensor: Any) -> memoryview:
    """The bytes of a contiguous tensor on the CPU.  The caller keeps the tensor."""
    size = tensor.numel() * tensor.element_size()
    return memoryview((ctypes.c_ubyte * size).from_address(tensor.data_ptr())).cast("B")


def is_plain(tensor: Any) -> bool:
    """Whether its elements, in their order, are all that its bytes say."""
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and \
        tensor.layout == torch.strided and tensor.is_contiguous() and \
        not tensor.is_quantized and not tensor.is_conj() and not tensor.is_neg()


class _Sink:
    """What torch.save() writes to.  The elements of `tensor` stay where they are."""

    def __init__(self, tensor: Any) -> None:
        size = tensor.numel() * tensor.element_size()
        self._own = memory(tensor) if size >= OWN_MIN and is_plain(tensor) else None
        self.parts: List[Bytes] = []
        self.size = 0
        self.data: Optional[int] = None  # where the elements begin

    def write(self, data: Any) -> int:
        if self._own is not None and len(data) == len(self._own):  # all else is far smaller
            self.parts.append(self._own)
            self.data = self.size
        else:
            self.parts.append(bytes(data))
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""


def _on_cpu(tensor: Any) -> Any:
    """With a storage of its own size: torch.save() writes the storage whole."""
    tensor = tensor.detach().cpu()
    size = tensor.numel() * tensor.element_size()
    return tensor if tensor.untyped_storage().nbytes() == size else tensor.clone()


class SavedFile(Body):
    """The body of a PUT.  Each try makes the bytes anew out of the state, and so `results`."""

    repeatable = True

    def __init__(self, name: str, items: Sequence[Any], planner: Any) -> None:
        self.name = name
        self._items, self._planner = items, planner
        self.results: List[Any] = []
        self._digest = xxhash.xxh3_64()
        self._at = 0

    @property
    def sent(self) -> str:
        """The checksum of what the last try has sent."""
        return str(self._digest.hexdigest())

    def pieces(self) -> Iterator[Bytes]:
        self.results, self._digest, self._at = [], xxhash.xxh3_64(), 0
        return _joined(piece for item in self._items for piece in self._item(item))

    def _item(self, item: Any) -> Iterator[memoryview]:
        kept, parts, facts = self._serialized(item)
        begin, room, block = self._at, BLOCK, xxhash.xxh3_64()
        for part in parts:
            view = memoryview(part)
            while len(view) > 0:
                piece, view = view[:room], view[room:]
                block.update(piece)
                self._digest.update(piece)
                self._at += len(piece)
                room -= len(piece)
                if room == 0:
                    facts["sums"].append(block.intdigest())
                    room, block = BLOCK, xxhash.xxh3_64()
                yield piece
        del kept
        if room < BLOCK:
            facts["sums"].append(block.intdigest())
        info = _StorageInfo(self.name, begin, self._at - begin)
        info.dfc = facts
        self.results.append(WriteResult(index=item.index, size_in_bytes=self._at - begin,
                                        storage_data=info))

    def _serialized(self, item: Any) -> Tuple[Any, List[Bytes], Dict[str, Any]]:
        """What owns the bytes, the bytes, and what the metadata say of them."""
        facts: Dict[str, Any] = {"block": BLOCK, "sums": []}
        data = self._planner.resolve_data(item)
        if item.type == WriteItemType.BYTE_IO:
            return data, [data.getbuffer()], facts
        tensor = _on_cpu(data)
        sink = _Sink(tensor)
        torch.save(tensor, sink)
        if sink.data is not None:
            facts.update(data=sink.data, dtype=tensor.dtype, shape=tuple(tensor.shape))
        return tensor, sink.parts, facts


def _joined(pieces: Iterator[memoryview]) -> Iterator[Bytes]:
    small = bytearray()
    for piece in pieces:
        if len(piece) < OWN_MIN:
            small += piece
        if len(small) >= JOINED or len(piece) >= OWN_MIN and small:
            yield small
            small = bytearray()
        if len(piece) >= OWN_MIN:
            yield piece
    if small:
        yield small
