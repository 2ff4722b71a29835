"""A sample of a ring as bytes: the frame of docs/design/ring.md.

A sample is a dict of kinds.  A kind is bytes, or an array: numpy's, or anything with `dtype`,
`shape` and a contiguous buffer.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

import xxhash

from .errors import Corrupt, Invalid

FIXED = 64
ALIGN = 64
ENDS = 1
_MAGIC = b"DFRF"
_HEAD = struct.Struct("<4sIQQHHIQQQQ")
_KIND = struct.Struct("<HBBIQQ")
#: A value that is no array.
BYTES = "bytes"
#: Of an array without bytes: the product of its dimensions but those that are 0.
EMPTY_MAX = 1 << 16


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _sum(*parts: "Union[bytes, bytearray, memoryview]") -> int:
    state = xxhash.xxh3_64()
    for part in parts:
        state.update(part)
    return int(state.intdigest())


#: Formats of `struct`, by numpy's text without the order of bytes.
_FORMATS = {"b1": "?", "u1": "B", "i1": "b", "u2": "H", "i2": "h", "u4": "I", "i4": "i", "u8": "Q",
            "i8": "q", "f2": "e", "f4": "f", "f8": "d"}
#: Order of bytes, type and size of an item, as numpy writes them; "<M8[s]" has a unit behind.
_DTYPE = re.compile(r"([<>|=]?)([A-Za-z])([0-9]+)(\[.*\])?")
_CHARACTER = 4  # bytes of one, in the type U


def _item_size(dtype: str) -> Optional[int]:
    """In bytes.  None: the text is not numpy's."""
    found = _DTYPE.fullmatch(dtype)
    if found is None:
        return None
    return int(found[3]) * (_CHARACTER if found[2] == "U" else 1)


def _nest(numbers: List[Any], shape: Tuple[int, ...]) -> List[Any]:
    if len(shape) == 1:
        return numbers
    step = len(numbers) // max(shape[0], 1)
    return [_nest(numbers[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]


@dataclass(frozen=True)
class Kind:
    """One array of a sample, as it was pushed."""

    dtype: str  #: numpy's text, "<f4", or "bytes"
    shape: Tuple[int, ...]
    data: memoryview

    def contradiction(self) -> str:
        """Why dtype, shape and length cannot all be true; "": they can."""
        if self.dtype == BYTES:
            return ""
        size, length = _item_size(self.dtype), self.data.nbytes
        if size is not None and size * math.prod(self.shape) != length:
            return f"an array {self.dtype} of shape {self.shape} does not have {length} bytes"
        if length == 0 and math.prod(n for n in self.shape if n > 0) > EMPTY_MAX:
            return f"an array without bytes has at most {EMPTY_MAX} rows, not shape {self.shape}"
        return ""

    def numpy(self) -> Any:
        """An array over the same memory; not of bytes."""
        import numpy  # type: ignore[import] # pylint: disable=import-outside-toplevel
        return numpy.frombuffer(self.data, dtype=self.dtype).reshape(self.shape)

    def tolist(self) -> Any:
        """Nested lists of numbers, a number, or bytes of what is no array; without numpy."""
        if self.dtype == BYTES:
            return bytes(self.data)
        form = _FORMATS.get(self.dtype[1:]) if self.dtype[:1] in ("<", "|") else None
        if form is None:
            raise Invalid(f"the dtype {self.dtype} needs numpy", code="invalid_argument")
        wrong = self.contradiction()
        if wrong:
            raise Invalid(wrong, code="invalid_argument")
        numbers = list(struct.unpack(f"<{len(self.data) // int(self.dtype[2:])}{form}", self.data))
        return _nest(numbers, self.shape) if self.shape else numbers[0]


@dataclass(frozen=True)
class Sample:
    """What a ring gives: its kinds, and where they were."""

    kinds: Dict[str, Kind]
    ordinal: int
    producer: int
    sequence: int


def _describe(name: str, value: Any) -> Tuple[str, Tuple[int, ...], memoryview]:
    if isinstance(value, Kind):
        return value.dtype, value.shape, value.data
    dtype = getattr(getattr(value, "dtype", None), "str", None)
    view = memoryview(value)
    if not view.c_contiguous:
        raise Invalid(f"kind '{name}' is not contiguous: push a copy of it",
                      code="invalid_argument")
    shape = tuple(int(n) for n in value.shape) if dtype is not None else ()
    data = view.cast("B") if view.nbytes > 0 else memoryview(b"")
    return (str(dtype) if dtype is not None else BYTES), shape, data


def make(kinds: Mapping[str, Any]) -> List[Union[bytes, memoryview]]:
    """The pieces of a frame, in order."""
    table = bytearray()
    pieces: List[Union[bytes, memoryview]] = []
    described = [(name.encode(), *_describe(name, value)) for name, value in kinds.items()]
    head_len = _up(FIXED + sum(_up(_KIND.size + 8 * len(shape) + len(name) + len(dtype), 8)
                               for name, dtype, shape, _ in described), ALIGN)
    at = head_len
    for name, dtype, shape, data in described:
        row = _KIND.pack(len(name), len(dtype), len(shape), 0, at, data.nbytes)
        row += struct.pack(f"<{len(shape)}Q", *shape) + name + dtype.encode()
        table += row.ljust(_up(len(row), 8), b"\0")
        padded = _up(data.nbytes, ALIGN)
        pieces += [data, bytes(padded - data.nbytes)]
        at += padded
    table = table.ljust(head_len - FIXED, b"\0")
    fields = [_MAGIC, head_len, at, 0, len(described), 0, 0, 0, 0, _sum(*pieces), 0]
    fields[-1] = _sum(_HEAD.pack(*fields), table)
    return [_HEAD.pack(*fields), bytes(table), *pieces]


def _kinds(head: memoryview, frame: memoryview, count: int) -> Dict[str, Kind]:
    kinds: Dict[str, Kind] = {}
    at = FIXED
    for _ in range(count):
        if at + _KIND.size > len(head):
            raise ValueError("a kind is beyond the head")
        name_len, dtype_len, dims, _, offset, length = _KIND.unpack_from(head, at)
        shape = struct.unpack_from(f"<{dims}Q", head, at + _KIND.size)
        text = at + _KIND.size + 8 * dims
        if text + name_len + dtype_len > len(head) or offset + length > len(frame):
            raise ValueError("a kind is beyond the sample")
        name = bytes(head[text:text + name_len]).decode()
        dtype = bytes(head[text + name_len:text + name_len + dtype_len]).decode()
        kinds[name] = Kind(dtype, shape, frame[offset:offset + length])
        wrong = kinds[name].contradiction()
        if wrong:
            raise ValueError(f"kind '{name}': {wrong}")
        at += _up(_KIND.size + 8 * dims + name_len + dtype_len, 8)
    return kinds


def parse(data: "Union[bytes, bytearray, memoryview]") -> Iterator[Sample]:
    """The samples of frames that stand one behind the other.

    Corrupt: a checksum is wrong, or a kind contradicts itself."""
    rest = memoryview(data)
    while len(rest) > 0:
        if len(rest) < FIXED or bytes(rest[:4]) != _MAGIC:
            raise Corrupt("the reply has no sample", code="bad_sample")
        fields = list(_HEAD.unpack_from(rest))
        head_len, total, head_sum = fields[1], fields[2], fields[-1]
        fields[-1] = 0
        if not FIXED <= head_len <= total <= len(rest) or \
                _sum(_HEAD.pack(*fields), rest[FIXED:head_len]) != head_sum:
            raise Corrupt("the head of a sample is damaged", code="bad_sample")
        if _sum(rest[head_len:total]) != fields[9]:
            raise Corrupt("the bytes of a sample are damaged", code="checksum_mismatch")
        try:
            kinds = _kinds(rest[:head_len], rest[:total], fields[4])
        except (ValueError, struct.error) as e:  # its sums are right: it was made so
            raise Corrupt(f"the kinds of a sample are wrong: {e}", code="bad_sample") from None
        yield Sample(kinds, ordinal=fields[3], producer=fields[7], sequence=fields[8])
        rest = rest[total:]
