"""Wirehead's datasets: samples of the newest generation, by index and as often as one likes.

An index is a number, a slice or a list.  As in Wirehead a list gives a dict by index, or a list of
tuples.  A batch is of one generation, and a swap costs a reader nothing.  A dataset may be used by
forked and by spawned workers.
"""

from __future__ import annotations

import io
import os
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

import dfc
import torch
from dfc.ring import Kind, Ring, RingReader, Sample
from dfc.torch import tensor
from torch.utils.data import Dataset

from . import _config

Index = Union[int, slice, Sequence[int]]

WAIT_SECONDS = 600  #: for the first generation
TELL_SECONDS = 10  #: between two lines that say so
LOOK_SECONDS = 0.2  #: between two looks, while there is no ring


def unit_interval_normalize(img: Any) -> Any:
    """To 0 … 1, by the least and the largest value."""
    return (img - img.min()) / (img.max() - img.min())


def quantile_normalize(img: Any, qmin: float = 0.01, qmax: float = 0.99) -> Any:
    """To 0 … 1, by two quantiles."""
    return (img - img.quantile(qmin)) / (img.quantile(qmax) - img.quantile(qmin))


def binary_to_tensor(tensor_binary: Union[Kind, bytes]) -> Any:
    """Of a kind, or of what torch.save() wrote."""
    if isinstance(tensor_binary, Kind):
        return tensor(tensor_binary)
    return torch.load(io.BytesIO(tensor_binary), weights_only=True)


def identity(img: Any) -> Any:
    return img


class MongoheadDataset(Dataset):  # type: ignore[misc]
    """`collection`: a ring, in place of a config.  A `transform` of the user's gets bytes as
    torch.save() writes them, as in Wirehead.  `timeout`, `id` and `keeptrying` have no meaning."""

    def __init__(self, config_path: str = "", timeout: float = 60, collection: Optional[Ring] = None,
                 sample: Sequence[str] = ("data", "label"),
                 transform: Callable[[Any], Any] = binary_to_tensor,
                 normalize: Callable[[Any], Any] = identity, id: str = "id",  # pylint: disable=redefined-builtin
                 keeptrying: bool = True) -> None:
        self.timeout, self.id, self.keeptrying = timeout, id, keeptrying
        self.transform, self.normalize = transform, normalize
        self.collection, self.sample = collection, tuple(sample)
        if config_path != "" and os.path.exists(config_path):
            self.load_from_yaml(config_path)
        if self.collection is None:
            raise dfc.Invalid(f"there is no file '{config_path}' (config_path), and no ring "
                              "(collection)", code="invalid_argument")
        self._reader = RingReader(self.collection, timeout=WAIT_SECONDS)
        self.indices = self.get_indeces()

    def load_from_yaml(self, config_path: str) -> None:
        print("Dataset: config loaded from " + config_path, flush=True)
        config = _config.Config(config_path)
        self.collection, self.sample = config.ring(), config.sample
        self.wait_for_data(self.collection)

    def wait_for_data(self, db: Ring, timeout: float = WAIT_SECONDS,
                      check_interval: float = TELL_SECONDS) -> None:
        """TimeoutError: there is no generation."""
        until = time.monotonic() + timeout
        while True:
            if has_data(db, 0):
                print("Dataset: Data is ready", flush=True)
                return
            print("Dataset: Database is empty, waiting for data...", flush=True)
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError("Dataset: Waited too long for data to be ready")
            has_data(db, min(check_interval, left))

    def get_indeces(self) -> range:
        """Those of the newest generation, as it is now."""
        return range(len(self._reader))

    def __len__(self) -> int:
        return len(self.indices)

    def _numbers(self, index: Index) -> List[int]:
        """IndexError beyond the end: so a loop over the dataset ends."""
        numbers = list(range(*index.indices(len(self)))) if isinstance(index, slice) else \
            [int(index)] if isinstance(index, int) else [int(i) for i in index]
        return [self.indices[number] for number in numbers]

    def _value(self, sample: Sample, name: str) -> Any:
        if name not in sample.kinds:
            raise dfc.NotFound(f"a sample has no kind '{name}' (SAMPLE), only "
                               f"{', '.join(sample.kinds)}", code="not_found")
        kind = sample.kinds[name]
        if self.transform is binary_to_tensor:
            return tensor(kind)
        buffer = io.BytesIO()
        torch.save(tensor(kind), buffer)
        return self.transform(buffer.getvalue())

    def _values(self, sample: Sample) -> List[Any]:
        values = [self._value(sample, name) for name in self.sample]
        return [self.normalize(values[0].float()), *values[1:]]

    def _names(self) -> List[str]:
        return ["input", "label", *self.sample[2:]]

    def _dict(self, sample: Sample) -> Dict[str, Any]:
        return dict(zip(self._names(), self._values(sample)))

    def __getitem__(self, batch: Index) -> Any:
        found = [self._dict(sample) for sample in self._reader.batch(self._numbers(batch))]
        if isinstance(batch, int):
            return found[0]
        keys = range(len(self))[batch] if isinstance(batch, slice) else batch
        return dict(zip(keys, found))


class MongoTupleheadDataset(MongoheadDataset):
    """Gives tuples in place of dicts."""

    def __getitem__(self, batch: Index) -> Any:
        found = [tuple(self._values(sample))
                 for sample in self._reader.batch(self._numbers(batch))]
        return found[0] if isinstance(batch, int) else found


def has_data(ring: Ring, seconds: float) -> bool:
    """Whether there is a generation, or comes in this time.  A ring that is not there yet has none."""
    until = time.monotonic() + seconds
    while True:
        try:
            ring.wait(timeout=max(0.0, until - time.monotonic()))
            return True
        except dfc.Timeout:
            return False
        except (dfc.NotFound, dfc.Unreachable):
            if time.monotonic() >= until:
                return False
            time.sleep(LOOK_SECONDS)
