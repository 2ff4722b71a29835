"""Datasets for PyTorch: samples of shards, objects in an order, and objects by number.

    data = dfc.torch.ShardDataset(bucket, "train-{000000..000999}.tar", window=1000)
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=4)
    for epoch in range(90):
        data.set_epoch(epoch)
        for sample in loader:
            ...

Each sample comes exactly once in an epoch, over all ranks and the workers of each (dfc.shards,
dfc.objects).  The rank is that of torch.distributed, or RANK and WORLD_SIZE of the environment.

**Resume.** `StatefulDataLoader` of torchdata keeps the state of each worker.  Where the number of
ranks or workers changes, merge() makes one state of those of all ranks, and load_state_dict() of
the new dataset takes it, before its loader begins.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import torch
import torch.utils.data

from .. import _frame, objects, shards
from .._arrays import TORCH_DTYPES
from ..bucket import Bucket
from ..errors import Invalid, NotFound
from ..objects import Names, ObjectReader, Share, Transform
from ..ring import Kind, Ring, RingReader, RingShare, Sample
from ..shards import ShardReader
from ..vdisc import Image

State = Dict[str, Any]


def rank_and_world() -> Tuple[int, int]:
    """Of this process: torch.distributed, the environment that torchrun makes, or 0 of 1."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()), int(distributed.get_world_size())
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


class _Epoch:
    """A number that a process and its workers share, forked or spawned."""

    def __init__(self) -> None:
        self._shared = torch.zeros(1, dtype=torch.int64).share_memory_()

    def get(self) -> int:
        return int(self._shared[0])

    def set(self, epoch: int) -> None:
        self._shared[0] = epoch


class _Resumable:
    """What datasets and samplers have in common: an epoch, and a state to begin with."""

    def __init__(self, rank: Optional[int], world: Optional[int]) -> None:
        if (rank is None) != (world is None):
            raise Invalid("rank and world go together", code="invalid_argument")
        self._rank, self._world = rank_and_world() if rank is None or world is None else (rank, world)
        if not 0 <= self._rank < self._world:
            raise Invalid(f"rank {self._rank} of {self._world}: it has to be 0 to "
                          f"{self._world - 1}", code="invalid_argument")
        self._epoch = _Epoch()
        self._resume: Optional[State] = None
        self._reader: Any = None  # of the iteration under way

    def set_epoch(self, epoch: int) -> None:
        """Before each epoch, in the process of the loader.  A state of another epoch is dropped."""
        self._epoch.set(epoch)
        if self._resume is not None and self._resume["epoch"] != epoch:
            self._resume = None

    def load_state_dict(self, state: State) -> None:
        """The next iteration goes on from there, in the epoch of the state."""
        self._resume = state
        self._epoch.set(int(state["epoch"]))

    def state_dict(self) -> State:
        """How far the iteration of this process is, for load_state_dict()."""
        state: State = (self._begin() if self._reader is None else self._reader).state()
        return state

    def _begin(self) -> Any:
        """A reader at the place where an iteration of this process begins."""
        info = torch.utils.data.get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        reader = self._new(self._rank * workers + worker, self._world * workers)
        reader.set_epoch(self._epoch.get())
        if self._resume is not None and self._resume["epoch"] == self._epoch.get():
            reader.restore(self._resume)
        return reader

    def _new(self, consumer: int, consumers: int) -> Any:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        self._reader = self._begin()  # now: a loader asks for the state before the first sample
        self._resume = None
        return iter(self._reader)

    def __getstate__(self) -> State:
        return {**self.__dict__, "_reader": None}


class ShardDataset(_Resumable, torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Samples of tar shards.  `options` are those of dfc.shards.ShardReader: seed, shuffle, window,
    ahead, transform.  Shards belong to workers whole: have several times as many shards."""

    def __init__(self, bucket: Bucket, names: Union[str, Sequence[str]], *,
                 rank: Optional[int] = None, world: Optional[int] = None, **options: Any) -> None:
        super().__init__(rank, world)
        self._bucket, self._options = bucket, options
        self._names = shards.expand(names) if isinstance(names, str) else list(names)
        self._new(0, 1)  # says what is wrong with the arguments

    def _new(self, consumer: int, consumers: int) -> ShardReader:
        return ShardReader(self._bucket, self._names, consumer=consumer, consumers=consumers,
                           **self._options)


class ObjectDataset(_Resumable, torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Objects as (name, bytes), or as what `transform` makes of them.  `options` are those of
    dfc.objects.ObjectReader: seed, shuffle, ahead, threads, transform."""

    def __init__(self, bucket: Bucket, prefix: str = "", *, names: Optional[Iterable[str]] = None,
                 rank: Optional[int] = None, world: Optional[int] = None, **options: Any) -> None:
        super().__init__(rank, world)
        self._bucket, self._options = bucket, options
        self._names = _names(bucket, prefix, names)
        self._new(0, 1)

    def _new(self, consumer: int, consumers: int) -> ObjectReader:
        return ObjectReader(self._bucket, self._names, consumer=consumer, consumers=consumers,
                            **self._options)


class MapDataset(torch.utils.data.Dataset):  # type: ignore[misc]
    """Objects by number, in the order of their names.  A batch is read by one request, or by
    `threads` threads, which is faster where objects are large and targets many.  The names are
    listed once, here; Sampler splits the numbers over ranks."""

    def __init__(self, bucket: Bucket, prefix: str = "", *, names: Optional[Iterable[str]] = None,
                 threads: Optional[int] = None, transform: Optional[Transform] = None) -> None:
        if threads is not None and threads < 1:
            raise Invalid("threads has to be at least 1", code="invalid_argument")
        self._bucket, self._threads, self._transform = bucket, threads, transform
        self.names = _names(bucket, prefix, names)
        self._pool: Optional[ThreadPoolExecutor] = None
        self._process = 0  # whose threads the pool has

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, at: int) -> Any:
        return self._made(self.names[at], self._bucket.get(self.names[at]))

    def __getitems__(self, numbers: List[int]) -> List[Any]:
        """A batch, as DataLoader asks for it."""
        names = [self.names[at] for at in numbers]
        return [self._made(name, data) for name, data in zip(names, self._read(names))]

    def _read(self, names: List[str]) -> "Iterable[Any]":
        if self._threads is None:
            return (data for _, data in self._bucket.batch(names))
        if self._pool is None or self._process != os.getpid():
            self._pool = ThreadPoolExecutor(self._threads, "dfc-map")
            self._process = os.getpid()
        return self._pool.map(self._bucket.get, names)

    def _made(self, name: str, data: bytes) -> Any:
        return (name, data) if self._transform is None else self._transform(name, data)

    def __getstate__(self) -> State:
        return {**self.__dict__, "_pool": None}


class ImageDataset(torch.utils.data.Dataset):  # type: ignore[misc]
    """Files of a dataset image by number, in the order of their paths: those below `path`.  A batch is
    read by `threads` threads.  Sampler splits the numbers over ranks."""

    def __init__(self, image: Image, path: str = "/", *, threads: int = 8,
                 transform: Optional[Transform] = None) -> None:
        if threads < 1:
            raise Invalid("threads has to be at least 1", code="invalid_argument")
        self._image, self._threads, self._transform = image, threads, transform
        self.files = sorted((name, entry) for name, entry in image.walk(path)
                            if entry.kind == "file")
        self._pool: Optional[ThreadPoolExecutor] = None
        self._process = 0  # whose threads the pool has

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, at: int) -> Any:
        name, entry = self.files[at]
        data = self._image.read_entry(entry)
        return (name, data) if self._transform is None else self._transform(name, data)

    def __getitems__(self, numbers: List[int]) -> List[Any]:
        """A batch, as DataLoader asks for it."""
        if self._pool is None or self._process != os.getpid():
            self._pool = ThreadPoolExecutor(self._threads, "dfc-image")
            self._process = os.getpid()
        return list(self._pool.map(self.__getitem__, numbers))

    def __getstate__(self) -> State:
        return {**self.__dict__, "_pool": None}


class Sampler(_Resumable, torch.utils.data.Sampler):  # type: ignore[misc]
    """The numbers of one rank out of `data`, each exactly once over all ranks.  `even`: all ranks
    have as many; where they do not divide, some come twice."""

    def __init__(self, data: Any, *, rank: Optional[int] = None, world: Optional[int] = None,
                 seed: int = 0, shuffle: bool = True, even: bool = False) -> None:
        _Resumable.__init__(self, rank, world)
        self._count = len(data)
        names = getattr(data, "names", None)
        self._options: Dict[str, Any] = {
            "seed": seed, "shuffle": shuffle, "even": even,
            "names": names.digest() if isinstance(names, Names) else ""}

    def __len__(self) -> int:
        return len(self._new(self._rank, self._world))

    def _new(self, consumer: int, consumers: int) -> Share:
        return Share(self._count, consumer=consumer, consumers=consumers, **self._options)


def tensor(kind: Kind) -> Any:
    """A tensor over the memory of the kind; bytes of what is no array."""
    if kind.dtype == _frame.BYTES:
        return bytes(kind.data)
    dtype = _DTYPES.get(kind.dtype)
    if dtype is None:
        raise Invalid(f"no tensor has the dtype {kind.dtype}: push another one, or give a transform",
                      code="invalid_argument")
    if len(kind.data) == 0:
        return torch.empty(kind.shape, dtype=dtype)
    return torch.frombuffer(kind.data, dtype=dtype).reshape(kind.shape)


_DTYPES = {text: getattr(torch, name) for name, text in TORCH_DTYPES.items() if hasattr(torch, name)}


def tensors(sample: Sample) -> Dict[str, Any]:
    """What ring datasets give without a transform: each kind as a tensor, or as bytes."""
    return {name: tensor(kind) for name, kind in sample.kinds.items()}


class RingDataset(torch.utils.data.Dataset):  # type: ignore[misc]
    """Samples of the newest generation of a ring by number, with replacement.  A batch is of one
    generation.  The number of samples is that of the newest generation: see dfc.ring.RingReader."""

    def __init__(self, ring: Ring, *, transform: Callable[[Sample], Any] = tensors,
                 timeout: float = 600.0) -> None:
        self._ring, self._transform, self._timeout = ring, transform, timeout
        self._reader = RingReader(ring, timeout=timeout)

    def __len__(self) -> int:
        return len(self._reader)

    def __getitem__(self, at: int) -> Any:
        return self.__getitems__([at])[0]

    def __getitems__(self, numbers: List[int]) -> List[Any]:
        """A batch, as DataLoader asks for it."""
        return [self._transform(sample) for sample in self._reader.batch(numbers)]


class RingIterableDataset(torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Each sample of each generation once, over all ranks and the workers of each.

    `generations` of them are an epoch: the next one goes on behind, worker by worker.  Without it
    an epoch has no end.  Give all ranks the same `after`.  Samples that a loader has read ahead when
    its loop is left do not come again.  `options` are those of dfc.ring.RingShare: seed, shuffle,
    timeout, ahead, on_gone.
    """

    WORKERS_MAX = 512  #: of one rank

    def __init__(self, ring: Ring, *, rank: Optional[int] = None, world: Optional[int] = None,
                 after: Optional[int] = None, generations: Optional[int] = None,
                 transform: Callable[[Sample], Any] = tensors, **options: Any) -> None:
        if (rank is None) != (world is None):
            raise Invalid("rank and world go together", code="invalid_argument")
        self._rank, self._world = rank_and_world() if rank is None or world is None else (rank, world)
        self._ring, self._transform = ring, transform
        self._options: Dict[str, Any] = {**options, "generations": generations}
        RingShare(ring, consumer=self._rank, consumers=self._world, **self._options)  # says what is wrong
        if after is None:
            after = (ring.head().newest() or ring.wait(timeout=options.get("timeout", 600.0))).number - 1
        self._after = after
        # A row for each worker, forked or spawned: what share.state() says, the number of workers,
        # and what _begin() says.
        self._rows = torch.zeros(self.WORKERS_MAX, 6, dtype=torch.int64).share_memory_()

    def _begin(self, worker: int, workers: int) -> "Tuple[RingShare, int, int]":
        """The share, where this worker goes on; the split, and the generation behind which it
        began.  A split is a time with one number of workers; in the next one, all go on behind what
        any of them has begun."""
        newest = int(self._rows[:, 5].max())
        rows = self._rows[self._rows[:, 5] == newest]
        share = RingShare(self._ring, consumer=self._rank * workers + worker,
                          consumers=self._world * workers, after=self._after, **self._options)
        if newest == 0:
            return share, 1, self._after
        same, base = int(rows[0][3]) == workers, int(rows[0][4])
        over, begun, given, _, _, split = (int(n) for n in self._rows[worker])
        if not same:
            newest, base = newest + 1, int(rows[:, :2].max())
        if not same or split != newest:
            over, begun, given = base, 0, 0
        share.restore({**share.state(), "after": over, "begun": begun, "given": given})
        return share, newest, base

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        if workers > self.WORKERS_MAX:
            raise Invalid(f"a rank has at most {self.WORKERS_MAX} workers", code="invalid_argument")
        share, split, base = self._begin(worker, workers)

        def note() -> None:
            """The split is written last: it says that the rest holds."""
            state = share.state()
            self._rows[worker][:5] = torch.tensor([state["after"], state["begun"], state["given"],
                                                   workers, base])
            self._rows[worker][5] = split

        note()
        for sample in share:
            note()
            yield self._transform(sample)
        note()


def merge(states: Iterable[State]) -> State:
    """One state for another number of ranks or workers, out of the states of all ranks: those of
    datasets and samplers, or of the StatefulDataLoader that holds them."""
    found: List[State] = []
    for state in states:
        _collect(state, found)
    if found and "mine" in found[0]:
        return shards.merge(found)
    return objects.merge(found)


def _collect(value: Any, found: List[State]) -> None:
    if isinstance(value, dict):
        if "consumers" in value and "consumer" in value:
            found.append(value)
        else:
            for part in value.values():
                _collect(part, found)
    elif isinstance(value, (list, tuple)):
        for part in value:
            _collect(part, found)


def _names(bucket: Bucket, prefix: str, names: Optional[Iterable[str]]) -> Names:
    if names is None:
        found = Names(entry.name for entry in bucket.list(prefix))
        if not found:
            raise NotFound(f"no object of the bucket '{bucket.name}' has a name that begins with "
                           f"'{prefix}'", code="nothing_matched")
        return found
    if prefix:
        raise Invalid("give a prefix or names, not both", code="invalid_argument")
    return names if isinstance(names, Names) else Names(names)
