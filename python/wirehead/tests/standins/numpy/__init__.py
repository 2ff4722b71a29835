"""As much of numpy as the example of Wirehead needs: random.rand()."""

import array
import random as _random


class _Dtype:
    str = "<f8"


class Array(array.array):
    """A vector of doubles."""

    dtype = _Dtype()

    @property
    def shape(self):
        return (len(self),)


class random:  # pylint: disable=invalid-name
    @staticmethod
    def rand(count):
        return Array("d", [_random.random() for _ in range(count)])
