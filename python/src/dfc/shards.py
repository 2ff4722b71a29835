"""Samples out of tar shards, each exactly once in an epoch, over ranks and workers, with resume.

    shards = dfc.shards.expand("train-{000000..000999}.tar")
    data = dfc.shards.ShardReader(bucket, shards, consumer=rank, consumers=world, window=1000)
    for sample in data:
        sample["__key__"], sample["jpg"]

A sample has the form of WebDataset: the members of one shard whose names are alike up to the first
dot of their last part; `__key__` is that name, and each extension leads to the member's bytes.

**Order.** The shards are permuted by (seed, epoch), alike at every consumer; shard i of that order
belongs to consumer i mod consumers.  A consumer's samples follow their shards; with `window` > 1
each run of so many samples is permuted again.

**Resume.** state() says how far a consumer is, and restore() goes on with the next sample.  Where
the number of consumers changes, merge() of all their states leads to one that every new consumer
restores: it has the shards that are done, and those that were begun come again.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from typing import Any, BinaryIO, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Union

import xxhash

from . import _tar
from ._ahead import ahead as read_ahead
from .bucket import Bucket
from .errors import Corrupt, Invalid

Sample = Dict[str, Any]  #: "__key__" and "__shard__" are texts, the others bytes

_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")


def expand(template: str) -> List[str]:
    """"a-{00..11}.tar": the names that it stands for; without braces, itself."""
    found = _RANGE.search(template)
    if found is None:
        return [template]
    first, last = found.groups()
    if int(last) < int(first):
        raise Invalid(f"'{template}': {last} is less than {first}", code="invalid_argument")
    width = len(first) if len(first) == len(last) or first.startswith("0") else 0
    head, rest = template[:found.start()], expand(template[found.end():])
    return [f"{head}{number:0{width}}{tail}" for number in range(int(first), int(last) + 1)
            for tail in rest]


@dataclass(frozen=True)
class Index:
    """What the index of a set of shards says: `names` of the bucket, and how many samples each has."""

    names: List[str]
    samples: List[int]

    def __len__(self) -> int:
        """Samples of all shards."""
        return sum(self.samples)


def read_index(bucket: Bucket, name: str) -> Index:
    """Of an index in the form of wids, as a sort writes it (`wids_index`)."""
    names, counts = [], []
    try:
        for row in json.loads(bucket.get(name))["shardlist"]:
            names.append(_resolved(bucket.name, name, str(row["url"])))
            counts.append(int(row["nsamples"]))
    except (ValueError, KeyError, TypeError) as e:
        raise Invalid(f"'{bucket.name}/{name}' is no index of shards: {e!r}",
                      code="invalid_argument") from e
    return Index(names, counts)


def _resolved(bucket: str, index: str, url: str) -> str:
    """The name that a URL has, which is relative to the index or has the bucket."""
    folder, own = index.rpartition("/")[0], f"dfc://{bucket}/"
    if url.startswith(own):
        return url[len(own):]
    if "://" in url or url.startswith("/"):
        raise Invalid(f"the shard '{url}' is not in the bucket '{bucket}'", code="invalid_argument")
    while url.startswith("../"):
        folder, url = folder.rpartition("/")[0], url[3:]
    return f"{folder}/{url}" if folder else url


def samples(stream: BinaryIO, shard: str = "") -> Iterator[Sample]:
    """Of one shard, as it streams: plain, or compressed by gzip, bzip2, xz, zstd or lz4."""
    sample: Sample = {}
    for name, data in _members(stream, shard):
        folder, _, base = name.rpartition("/")
        stem, dot, extension = base.partition(".")
        if not dot or not stem:
            continue
        key = f"{folder}/{stem}" if folder else stem
        if sample.get("__key__") != key or extension in sample:
            if sample:
                yield sample
            sample = {"__key__": key, "__shard__": shard}
        sample[extension] = data
    if sample:
        yield sample


def _members(stream: BinaryIO, shard: str) -> Iterator["tuple[str, bytes]"]:
    """Name and bytes of each file.  An archive without its end mark was cut: samples are lost."""
    try:
        tar = _tar.unpacked(stream)
        yield from _tar.files(tar)
        for source in (tar, stream):  # to its end, where checksums are compared
            while source.read(1 << 16):
                pass
    except _tar.Damaged as e:
        raise Corrupt(f"the shard '{shard}' cannot be read: {e}", code="shard_corrupt") from e
    except Invalid as e:
        if e.code != "not_supported":
            raise
        raise Invalid(f"the shard '{shard}' cannot be read: {e}", code="not_supported") from e


@dataclass
class Place:
    """Where a window of samples begins: so many shards of this consumer are behind it, and so many
    samples of the next one."""

    shards: int = 0
    samples: int = 0


class ShardReader:
    """An iterable of samples; each iteration is the rest of the epoch.  set_epoch() begins another.

    `consumer` of `consumers`: for example rank * workers + worker of world * workers.  `window`:
    samples that are permuted with one another, 1 for none.  `ahead`: samples that a thread reads
    ahead.  `transform` is called for each sample.  One thread at a time.
    """

    def __init__(self, bucket: Bucket, shards: Union[str, Sequence[str]], *, consumer: int = 0,
                 consumers: int = 1, seed: int = 0, shuffle: bool = True, window: int = 1,
                 ahead: int = 16, transform: Optional[Callable[[Sample], Any]] = None) -> None:
        if not 0 <= consumer < consumers:
            raise Invalid(f"consumer {consumer} of {consumers}: it has to be 0 to "
                          f"{consumers - 1}", code="invalid_argument")
        if window < 1 or ahead < 1:
            raise Invalid("window and ahead have to be at least 1 sample", code="invalid_argument")
        self._bucket = bucket
        self._names = expand(shards) if isinstance(shards, str) else list(shards)
        if len(set(self._names)) < len(self._names):
            twice = next(n for i, n in enumerate(self._names) if n in self._names[:i])
            raise Invalid(f"the shard '{twice}' is named twice", code="invalid_argument")
        self._digest = xxhash.xxh3_64_hexdigest("\n".join(self._names).encode())
        self._consumer, self._consumers = consumer, consumers
        self._seed, self._shuffle, self._window, self._ahead = seed, shuffle, window, ahead
        self._transform = transform
        self._epoch = 0
        self._begin(set())

    def _begin(self, done: "set[str]") -> None:
        order = [name for name in self._names if name not in done]
        if self._shuffle:
            random.Random(f"{self._seed}/{self._epoch}").shuffle(order)
        self._done = done  # before this consumer began
        self._mine = order[self._consumer::self._consumers]
        self._place = Place()
        self._given = 0  # samples of the window

    def set_epoch(self, epoch: int) -> None:
        """From its beginning; every consumer has to be told."""
        self._epoch = epoch
        self._begin(set())

    # --- resume ---

    def state(self) -> Dict[str, Any]:
        """How far this consumer is: JSON."""
        return {"epoch": self._epoch, "seed": self._seed, "consumer": self._consumer,
                "consumers": self._consumers, "window": self._window, "shuffle": self._shuffle,
                "names": self._digest, "done": sorted(self._done), "shards": self._place.shards, "samples": self._place.samples,
                "given": self._given, "mine": self._mine[:self._place.shards]}

    def restore(self, state: Dict[str, Any]) -> None:
        """Of this consumer with the same settings, or of merge()."""
        merged = "consumers" not in state
        same = {"seed": self._seed, "shuffle": self._shuffle, "names": self._digest}
        if not merged:
            same.update({"consumer": self._consumer, "consumers": self._consumers,
                         "window": self._window})
        for name, value in same.items():
            if state.get(name) != value:
                cure = "give the shards that it was made with" if name == "names" else (
                    "merge() the states of all consumers" if name.startswith("consumer") else
                    "give the same settings")
                raise Invalid(f"the state has {name} {state.get(name)}, this reader {value}: "
                              f"{cure}", code="invalid_argument")
        self._epoch = int(state["epoch"])
        self._begin(set(state["done"]))
        if not merged:
            self._place = Place(int(state["shards"]), int(state["samples"]))
            self._given = int(state["given"])

    # --- samples ---

    def __iter__(self) -> Iterator[Any]:
        for window, after in self._windows():
            order = list(range(len(window)))
            if self._window > 1:
                place = f"{self._place.shards}/{self._place.samples}"
                random.Random(f"{self._seed}/{self._epoch}/{self._consumer}/{place}").shuffle(order)
            for i in order[self._given:]:
                # First, so that a sample whose transform fails comes again.
                item = window[i] if self._transform is None else self._transform(window[i])
                self._given += 1
                if self._given == len(window):
                    self._place, self._given = after, 0
                yield item

    def _windows(self) -> Iterator["tuple[List[Sample], Place]"]:
        """Each window with the place behind it."""
        window: List[Sample] = []
        place = Place(self._place.shards, self._place.samples)
        for sample in read_ahead(self._stream(place), self._ahead):
            if sample is None:  # the end of a shard, which belongs to the window before it
                place = Place(place.shards + 1, 0)
                continue
            if len(window) == self._window:
                yield window, place
                window = []
            place = Place(place.shards, place.samples + 1)
            window.append(sample)
        if window:
            yield window, place

    def _stream(self, place: Place) -> Iterator[Optional[Sample]]:
        """The samples from a place on; None behind each shard."""
        skip = place.samples
        for name in self._mine[place.shards:]:
            with self._bucket.open(name) as stream:
                for sample in samples(stream, name):
                    if skip > 0:
                        skip -= 1
                        continue
                    yield sample
            if skip > 0:
                raise Corrupt(f"the shard '{name}' has lost {skip} samples since the state was "
                              "taken", code="shard_corrupt")
            yield None


_ALIKE = ("epoch", "seed", "shuffle", "names", "consumers")  # in the states of all consumers


def merge(states: Iterable[Dict[str, Any]]) -> Dict[str, Any]:
    """One state for another number of consumers, out of the states of all.  Shards that were begun
    and not ended come again from their beginning."""
    rows = list(states)
    if not rows or {row["consumer"] for row in rows} != set(range(rows[0]["consumers"])) or \
            len(rows) != rows[0]["consumers"] or \
            len({tuple(row[name] for name in _ALIKE) for row in rows}) != 1:
        raise Invalid("merge() needs one state of each consumer, of one epoch",
                      code="invalid_argument")
    done = {name for row in rows for name in [*row["done"], *row["mine"]]}
    return {**{name: rows[0][name] for name in _ALIKE if name != "consumers"},
            "done": sorted(done)}
