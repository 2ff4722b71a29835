"""As much of torch as dfc.torch and Wirehead's datasets need for vectors of doubles."""

import struct

from . import distributed, utils  # noqa: F401

_NAMES = {"float64": "d", "float32": "f", "uint8": "B", "int64": "q"}
float64, float32, uint8, int64 = _NAMES


class Tensor:
    def __init__(self, values, dtype):
        self.values, self.dtype = values, dtype
        self.shape = (len(values),)

    def reshape(self, shape):
        assert tuple(shape) == self.shape
        return self

    def float(self):
        return Tensor([struct.unpack("f", struct.pack("f", v))[0] for v in self.values], float32)

    def tolist(self):
        return list(self.values)


def frombuffer(data, dtype):
    letter = _NAMES[dtype]
    return Tensor(struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data), dtype)
