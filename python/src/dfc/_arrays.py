"""Values of a sample as kinds: bytes and arrays of the standard library, numpy or torch.

Neither numpy nor torch is imported here.  An array is pushed with the dtype and the shape that it
has; a copy is made only where its memory is not in C order.
"""

from __future__ import annotations

import array
import ctypes
from typing import Any, Dict, Mapping

from ._frame import BYTES, Kind
from .errors import Invalid

KINDS_MAX = 64
NAME_MAX = 255  #: bytes
DIMENSIONS_MAX = 32
#: The names of torch, and numpy's.  Both are little endian on the machines that torch has.
TORCH_DTYPES = {
    "bool": "|b1", "uint8": "|u1", "int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8",
    "uint16": "<u2", "uint32": "<u4", "uint64": "<u8", "float16": "<f2", "float32": "<f4",
    "float64": "<f8", "complex64": "<c8", "complex128": "<c16"}


def _wrong(name: str, what: str) -> Invalid:
    return Invalid(f"kind '{name}' {what}", code="invalid_argument")


def _of_tensor(name: str, value: Any) -> Kind:
    """The memory of the tensor; without numpy a copy."""
    text = str(value.dtype).rpartition(".")[2]
    if text not in TORCH_DTYPES:
        raise _wrong(name, f"has the dtype {value.dtype}, which numpy does not have: convert it, "
                           "for example by .float()")
    tensor = value.detach().cpu().contiguous()
    size = tensor.numel() * tensor.element_size()
    try:
        data = memoryview(tensor.reshape(-1).numpy()).cast("B") if size else memoryview(b"")
    except (RuntimeError, ValueError):  # torch without numpy; or a dtype that casts to nothing
        data = memoryview(ctypes.string_at(tensor.data_ptr(), size))
    return Kind(TORCH_DTYPES[text], tuple(int(n) for n in tensor.shape), data)


def _of_numpy(name: str, value: Any) -> Kind:
    dtype, shape = str(value.dtype.str), tuple(int(n) for n in value.shape)
    if dtype[1:2] in ("O", "V"):
        raise _wrong(name, f"has the dtype {value.dtype}: push plain arrays, each as a kind")
    try:
        view = memoryview(value)
        data = view.cast("B") if view.c_contiguous and view.nbytes > 0 else None
    except (BufferError, TypeError, ValueError):  # an order of bytes or a dtype that it cannot have
        data = None
    return Kind(dtype, shape, data if data is not None else memoryview(value.tobytes()))


def _of_array(value: "array.array[Any]") -> Kind:
    letter = "u" if value.typecode in "BHILQ" else "f" if value.typecode in "fd" else "i"
    order = "|" if value.itemsize == 1 else "<"
    return Kind(f"{order}{letter}{value.itemsize}", (len(value),), memoryview(value).cast("B"))


def to_kind(name: str, value: Any) -> Kind:
    """Invalid says what is wrong with the value."""
    if isinstance(value, Kind):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        view = memoryview(value)
        if not view.c_contiguous:
            raise _wrong(name, "is not contiguous: push a copy of it")
        return Kind(BYTES, (), view.cast("B") if view.nbytes > 0 else memoryview(b""))
    if isinstance(value, array.array) and value.typecode != "u":
        return _of_array(value)
    if hasattr(value, "data_ptr"):
        return _of_tensor(name, value)
    if hasattr(getattr(value, "dtype", None), "str"):
        return _of_numpy(name, value)
    raise _wrong(name, f"is {type(value).__name__}: push bytes, an array of numpy, a tensor or an "
                       "array.array")


def to_kinds(sample: Mapping[str, Any]) -> Dict[str, Kind]:
    if not 1 <= len(sample) <= KINDS_MAX:
        raise Invalid(f"a sample has 1 to {KINDS_MAX} kinds, not {len(sample)}",
                      code="invalid_argument")
    kinds = {}
    for name, value in sample.items():
        if not isinstance(name, str) or not 1 <= len(name.encode()) <= NAME_MAX:
            raise Invalid(f"{name!r} is no name of a kind: a text of 1 to {NAME_MAX} bytes",
                          code="invalid_argument")
        kinds[name] = to_kind(name, value)
        wrong = kinds[name].contradiction()
        if wrong:
            raise Invalid(f"kind '{name}': {wrong}", code="invalid_argument")
        if len(kinds[name].shape) > DIMENSIONS_MAX:
            raise _wrong(name, f"has more than {DIMENSIONS_MAX} dimensions")
    return kinds
