"""Objects of a bucket as samples, each exactly once in an epoch, over ranks and workers, with resume.

    names = dfc.objects.Names(entry.name for entry in bucket.list("images/"))
    reader = dfc.objects.ObjectReader(bucket, names, consumer=rank, consumers=world)
    for name, data in reader:
        ...

**Order.** The names are permuted by (seed, epoch), alike at every consumer; item i of that order
belongs to consumer i mod consumers.  The permutation is computed item by item: it takes no memory
and no time to begin.

**Resume.** state() says how far a consumer is, and restore() goes on with the next item.  Where the
number of consumers changes, merge() of all their states leads to one that every new consumer
restores.  No item is lost then, and none comes again.
"""

from __future__ import annotations

from array import array
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union
from typing import overload

import xxhash

from .bucket import Bucket
from .errors import Invalid

ROUNDS = 6  #: of the permutation; four give no pattern that is seen, six leave room

#: What a reader makes of an object's name and bytes.
Transform = Callable[[str, bytes], Any]


class Names(Sequence[str]):
    """Many names in two blocks of memory: 8 bytes and the name each.  Forked processes share them."""

    def __init__(self, names: Iterable[str]) -> None:
        block, self._ends = bytearray(), array("Q")
        for name in names:
            block += name.encode()
            self._ends.append(len(block))
        self._block = bytes(block)
        self._digest = str(xxhash.xxh3_64_hexdigest(self._block + self._ends.tobytes()))

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> "List[str]": ...

    def __getitem__(self, at: Union[int, slice]) -> "Union[str, List[str]]":
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if at < 0:
            at += len(self)
        if not 0 <= at < len(self):
            raise IndexError(f"name {at} of {len(self)}")
        return self._block[self._ends[at - 1] if at else 0:self._ends[at]].decode()

    def digest(self) -> str:
        """Tells these names from others."""
        return self._digest


class Permutation:
    """Of 0 to count - 1, by a key: a Feistel network over the next even number of bits; what falls
    behind the end is permuted again until it does not."""

    def __init__(self, count: int, key: str) -> None:
        self._count = count
        self._half = max(1, ((max(count, 2) - 1).bit_length() + 1) // 2)
        self._mask = (1 << self._half) - 1
        self._seeds = [int(xxhash.xxh3_64_intdigest(f"{key}/{i}".encode())) for i in range(ROUNDS)]

    def __getitem__(self, at: int) -> int:
        if not 0 <= at < self._count:
            raise IndexError(f"item {at} of {self._count}")
        while True:
            left, right = at >> self._half, at & self._mask
            for seed in self._seeds:
                mixed = xxhash.xxh3_64_intdigest(right.to_bytes(8, "little"), seed=seed)
                left, right = right, left ^ (mixed & self._mask)
            at = left << self._half | right
            if at < self._count:
                return at


class Share:
    """The items of one consumer, as indices from 0 to count - 1.

    `even`: every consumer has the same number of items; where they do not divide, some come twice.
    """

    def __init__(self, count: int, *, consumer: int = 0, consumers: int = 1, seed: int = 0,
                 shuffle: bool = True, even: bool = False, names: str = "") -> None:
        if not 0 <= consumer < consumers:
            raise Invalid(f"consumer {consumer} of {consumers}: it has to be 0 to "
                          f"{consumers - 1}", code="invalid_argument")
        self._count, self._consumer, self._consumers = count, consumer, consumers
        self._same = {"count": count, "seed": seed, "shuffle": shuffle, "even": even,
                      "names": names}
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """From its beginning; every consumer has to be told."""
        self._epoch = epoch
        self._order = (Permutation(self._count, f"{self._same['seed']}/{epoch}")
                       if self._same["shuffle"] else None)
        self._earlier: List[List[int]] = []  # items that each consumer had, before a merge()
        self._given = 0

    def __len__(self) -> int:
        """Items that are still to come."""
        rest = self._rest()
        if self._same["even"]:
            return (-(-rest // self._consumers) if rest else 0) - self._given
        return max(0, -(-(rest - self._consumer) // self._consumers)) - self._given

    def _rest(self) -> int:
        """Items that no consumer had before the last merge()."""
        return self._count - sum(sum(counts) for counts in self._earlier)

    def _left_over(self) -> "Union[range, List[int]]":
        """Their places in the order."""
        left: "Union[range, List[int]]" = range(self._count)
        for counts in self._earlier:
            left = [place for i, place in enumerate(left)
                    if i // len(counts) >= counts[i % len(counts)]]
        return left

    def __iter__(self) -> Iterator[int]:
        left = self._left_over()
        while len(self) > 0:
            place = left[(self._consumer + self._given * self._consumers) % len(left)]
            self._given += 1
            yield place if self._order is None else self._order[place]

    def back(self, items: int) -> None:
        """So many of the last ones were not used: they come again."""
        self._given -= items

    # --- resume ---

    def state(self) -> Dict[str, Any]:
        """How far this consumer is: JSON."""
        return {**self._same, "epoch": self._epoch, "consumer": self._consumer,
                "consumers": self._consumers, "given": self._given,
                "earlier": [list(counts) for counts in self._earlier]}

    def restore(self, state: Dict[str, Any]) -> None:
        """Of this consumer with the same settings, or of merge()."""
        same = dict(self._same)
        if "consumers" in state:
            same.update({"consumer": self._consumer, "consumers": self._consumers})
        for name, value in same.items():
            if state.get(name) != value:
                cure = ("merge() the states of all consumers" if name.startswith("consumer") else
                        "give the same items and settings")
                raise Invalid(f"the state has {name} {state.get(name)}, this reader {value}: "
                              f"{cure}", code="invalid_argument")
        self.set_epoch(int(state["epoch"]))
        self._earlier = [list(map(int, counts)) for counts in state["earlier"]]
        self._given = int(state.get("given", 0))


_ALIKE = ("epoch", "seed", "count", "shuffle", "even", "names", "consumers", "earlier")


def merge(states: Iterable[Dict[str, Any]]) -> Dict[str, Any]:
    """One state for another number of consumers, out of the states of all."""
    rows = list(states)
    if not rows or sorted(row["consumer"] for row in rows) != list(range(rows[0]["consumers"])) or \
            any(row[name] != rows[0][name] for row in rows for name in _ALIKE):
        raise Invalid("merge() needs one state of each consumer, of one epoch",
                      code="invalid_argument")
    counts = [row["given"] for row in sorted(rows, key=lambda row: int(row["consumer"]))]
    if rows[0]["even"]:  # items behind the end are repetitions
        rest = rows[0]["count"] - sum(map(sum, rows[0]["earlier"]))
        counts = [min(n, max(0, -(-(rest - i) // len(rows)))) for i, n in enumerate(counts)]
    return {**{name: rows[0][name] for name in _ALIKE if name != "consumers"},
            "earlier": [*rows[0]["earlier"], counts]}


class ObjectReader:
    """An iterable of what `transform` makes of (name, bytes); each iteration is the rest of the
    epoch.  `ahead`: objects that `threads` threads read ahead.  One thread at a time."""

    def __init__(self, bucket: Bucket, names: Sequence[str], *, consumer: int = 0,
                 consumers: int = 1, seed: int = 0, shuffle: bool = True, ahead: int = 16,
                 threads: int = 4, transform: Optional[Transform] = None) -> None:
        if ahead < 1 or threads < 1:
            raise Invalid("ahead and threads have to be at least 1", code="invalid_argument")
        self._bucket = bucket
        self._names = names if isinstance(names, Names) else Names(names)
        self._ahead, self._threads, self._transform = ahead, threads, transform
        self._share = Share(len(self._names), consumer=consumer, consumers=consumers, seed=seed,
                            shuffle=shuffle, names=self._names.digest())
        self._read = 0  # items that the threads have and nobody was given

    def __len__(self) -> int:
        """Items that are still to come."""
        return len(self._share) + self._read

    def set_epoch(self, epoch: int) -> None:
        """From its beginning; every consumer has to be told."""
        self._share.set_epoch(epoch)

    def restore(self, state: Dict[str, Any]) -> None:
        """Of this consumer with the same names and settings, or of merge()."""
        self._share.restore(state)

    def state(self) -> Dict[str, Any]:
        """How far this consumer is: JSON."""
        state = self._share.state()
        state["given"] -= self._read
        return state

    def __iter__(self) -> Iterator[Any]:
        pool = ThreadPoolExecutor(min(self._threads, self._ahead), "dfc-objects")
        under_way: "Deque[Future[Tuple[str, bytes]]]" = deque()
        try:
            for index in self._share:
                under_way.append(pool.submit(self._get, self._names[index]))
                self._read = len(under_way)
                if len(under_way) == self._ahead:
                    yield self._next(under_way)
            while under_way:
                yield self._next(under_way)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            self._share.back(self._read)
            self._read = 0

    def _get(self, name: str) -> Tuple[str, bytes]:
        return name, self._bucket.get(name)

    def _next(self, under_way: "Deque[Future[Tuple[str, bytes]]]") -> Any:
        name, data = under_way[0].result()
        item = (name, data) if self._transform is None else self._transform(name, data)
        under_way.popleft()
        self._read = len(under_way)
        return item
