"""Rings: samples that makers push while a training reads them (docs/guide/ring.md).

    ring = dfc.ring.Ring(client, "synth").create(cap=100)
    ring.push({"data": image, "label": 3 * b"x"})      # bytes, numpy, torch or array.array

    reader = dfc.ring.RingReader(ring)                 # with replacement, of the newest generation
    samples = reader.batch([0, 7, 99])
    image = samples[0].kinds["data"].numpy()

    for sample in dfc.ring.RingShare(ring, consumer=rank, consumers=world):  # each exactly once
        ...

A ring may be used by any number of threads and by forked processes, and is pickled by its name.
"""

from __future__ import annotations

import bisect
import itertools
import logging
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _ahead, _arrays, _frame, _retry, _wire
from ._body import Body, Bytes, Memory
from ._call import UNANNOUNCED_MAX, Reply, Request, encode_name, read_json
from ._frame import Kind, Sample
from .client import Client
from .errors import Corrupt, Error, Invalid, NotFound, NotModified, Timeout, Unreachable
from .objects import Permutation

__all__ = ["Generation", "Head", "Kind", "Ring", "RingReader", "RingShare", "Sample", "Stored"]

HEAD = "head"
GONE = "generation_gone"
NO_SPACE = "no_space"
NO_ROOM = ("ring_full", NO_SPACE)  #: what a target says, where another one may have room
POLL_SECONDS = 0.05  #: between two looks at the head, while a generation is waited for
PUSH_BYTES = 8 << 20  #: of samples that push_all() sends in one request
THREADS = 8  #: of one ring, that read at the same time
READ_BYTES = 8 << 20  #: a share reads about so many at once
RUN_MAX = 1024  #: samples of it
_chance = random.SystemRandom()
_log = logging.getLogger("dfc.ring")


class Stored:
    """Where a push is: its lane, the ordinal of its first sample, and their number."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.lane = str(document["lane"])
        self.first = int(document["first"])
        self.count = int(document["count"])


class Generation:
    """Samples with the indexes 0 to len - 1.  `cuts`: ranges (lane, from, to) of ordinals."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.number = int(document["generation"])
        self.cuts: Tuple[Tuple[str, int, int], ...] = tuple(
            (str(c["lane"]), int(c["from"]), int(c["to"])) for c in document["cuts"])
        self._ends = list(itertools.accumulate(to - begin for _, begin, to in self.cuts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __repr__(self) -> str:
        return f"<generation {self.number}, {len(self)} samples>"

    def place(self, index: int) -> Tuple[str, int]:
        """Lane and ordinal of a sample."""
        if not 0 <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)} in generation {self.number}")
        cut = bisect.bisect_right(self._ends, index)
        lane, _, to = self.cuts[cut]
        return lane, to - (self._ends[cut] - index)


class Head:
    """Which generations a ring has.  `number` is that of the last one; 0: there was none."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.number = int(document["generation"])
        self.samples_total = int(document["samples_total"])
        self.generations: List[Generation] = [Generation(g) for g in document["generations"]]
        self._taken = {str(row["lane"]): int(row["taken"]) for row in document["lanes"]}

    def newest(self) -> Optional[Generation]:
        """The last one that is kept; None: there is none."""
        return self.generations[-1] if self.generations else None

    def after(self, number: int) -> Optional[Generation]:
        """The first one that is later and still kept."""
        return next((g for g in self.generations if g.number > number), None)

    def taken(self, lane: str) -> int:
        """The first ordinal of the lane that no generation had."""
        return self._taken.get(lane, 0)


EMPTY = {"generation": 0, "samples_total": 0, "generations": [], "lanes": []}


class _Frames(Body):
    """The pieces of frames: arrays are sent from where they are."""

    repeatable = True

    def __init__(self, pieces: Sequence[Bytes], size: int) -> None:
        self._pieces = pieces
        self.size = size

    def pieces(self) -> Iterator[Bytes]:
        return (piece for piece in self._pieces if len(piece) > 0)


class _Tries(_retry.Retry):
    """Those of one push.  A refusal is given to the caller, as long as no try is in doubt."""

    doubtful = False  #: a try may have been stored: only the same number may be pushed
    given = False

    def next(self, q: _retry.Question) -> Optional[float]:
        # Without a connection, too: a kept one may have broken just before.
        self.doubtful |= q.outcome in (_retry.Outcome.BROKEN, _retry.Outcome.UNSENT)
        self.given = q.outcome is _retry.Outcome.REFUSED and not self.doubtful
        return None if self.given else super().next(q)

    def is_refusal(self, error: Error) -> bool:
        """No try has stored anything."""
        return not self.doubtful and (self.given or error.code == NO_SPACE)

    def refused(self, retry_after: float) -> Optional[float]:
        """The pause after a refusal that was given; None: there were too many."""
        return super().next(_retry.Question(_retry.Outcome.REFUSED, time.monotonic(),
                                            _chance.random(), retry_after=retry_after))


def _pause_of_push(error: Error, tries: _Tries, until: float) -> Optional[float]:
    """None: the error is final."""
    now = time.monotonic()
    if error.code in NO_ROOM:
        wait = (error.retry_after or 1.0) * (1 + _chance.random() / 4)
        return min(wait, until - now) if now < until else None
    return tries.refused(error.retry_after) if tries.given else None


class _Maker(threading.local):
    """The name of one thread of one process, and the number of its next push.  A target remembers
    the last push of a name: so a name has one push at a time."""

    process = 0
    name = ""
    sequence = 0

    def number(self) -> Tuple[str, int]:
        if self.process != os.getpid():
            self.process, self.name, self.sequence = os.getpid(), os.urandom(12).hex(), 0
        self.sequence += 1
        return self.name, self.sequence


class Ring:
    """The ring of this name; nothing is asked before it is used."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client = client
        self._bucket = client.bucket(name)
        self._path = "/v1/rings/" + encode_name(name)
        self._maker = _Maker()
        self._seen: Tuple[str, Head] = ("", Head(EMPTY))  # the ETag of the head, and the head
        self._pool: Tuple[int, Optional[ThreadPoolExecutor]] = (0, None)  # and whose threads it has

    def __repr__(self) -> str:
        return f"dfc.ring.Ring({self.name!r})"

    def __reduce__(self) -> "tuple[object, ...]":
        return (Ring, (self._client, self.name))

    # --- the ring ---

    def create(self, cap: int, keep: int = 1, bytes_max: "Union[int, str, None]" = None,
               exist_ok: bool = False, swap: str = "full", policy: str = "block",
               **props: Any) -> "Ring":
        """`bytes_max`: as 10 << 30 or "10GiB".  `swap="consumed"`: a generation stays until a group
        of readers has acknowledged it.  `policy="drop"`: a push into a full ring drops the oldest
        samples that are in no generation.  `props`: other properties of the bucket."""
        shape = f"cap={cap},keep={keep}" + (f",bytes_max={bytes_max}" if bytes_max else "")
        shape += (f",swap={swap}" if swap != "full" else "")
        shape += (f",policy={policy}" if policy != "block" else "")
        self._bucket.create(exist_ok=exist_ok, ring=shape, **props)
        return self

    def set(self, cap: int) -> None:
        """The size of the next generations."""
        self._bucket.set(ring=f"cap={cap}")

    def exists(self) -> bool:
        """Is there a bucket of this name?"""
        return self._bucket.exists()

    def info(self) -> Dict[str, Any]:
        """The bucket's document."""
        return self._bucket.info()

    def destroy(self, missing_ok: bool = False) -> None:
        """With all samples."""
        self._bucket.destroy(missing_ok)

    def status(self) -> Dict[str, Any]:
        """What the keeper knows: `fill` is how many samples no generation has yet."""
        return self._client.get_json(self._path + "/status")

    def swap(self) -> int:
        """The samples that are in no generation become one: its number.  NotFound: there are
        none.  A sample counts when its target has told the keeper, shortly after the push: `fill`
        of status()."""
        request = Request("PUT", self._path + "/generation", twice_is_harmless=False)
        return int(read_json(self._client.call(request))["generation"])

    def clear(self) -> None:
        """Drops all samples."""
        self._client.call(Request("DELETE", self._path + "/samples")).close()

    def ack(self, group: str, generation: int, lease: str = "") -> bool:
        """The group has consumed this generation: the next may come; 0 joins.  It may be silent for
        `lease`, as "5m".  True: it was not known, and may have missed generations."""
        query = {"group": group, "done": str(generation), **({"lease": lease} if lease else {})}
        reply = self._client.call(Request("PUT", self._path + "/groups", query=query))
        return bool(read_json(reply).get("joined"))

    def leave(self, group: str) -> None:
        """No generation waits for the group any longer."""
        self._client.call(Request("DELETE", self._path + "/groups", query={"group": group})).close()

    # --- push ---

    def push(self, sample: Mapping[str, Any], *, producer: Optional[str] = None,
             sequence: Optional[int] = None, full_timeout: float = 600.0) -> Stored:
        """Stores a sample: names of kinds, and their bytes or arrays.  It is stored once, however
        often it has to be sent.

        While the ring or a target's disks are full, the push waits, up to `full_timeout` seconds;
        then its error has the code ring_full or no_space.  A maker that repeats a push after its
        own restart names itself and numbers its pushes (`producer`, `sequence`); it has one push at
        a time.

        The error of a push that may have been stored has `pushed_as`, a producer and a sequence.
        Another push of this sample with them stores it once.
        """
        return self._push([_frame.make(_arrays.to_kinds(sample))], producer, sequence, full_timeout)

    def push_all(self, samples: Iterable[Mapping[str, Any]], *,
                 full_timeout: float = 600.0) -> Iterator[Stored]:
        """Pushes many samples, several in a request: faster where they are small.  Iterate over
        the result: a request is sent for each of its items."""
        some: List[List[Bytes]] = []
        size = 0
        for sample in samples:
            frame: List[Bytes] = list(_frame.make(_arrays.to_kinds(sample)))
            length = sum(map(len, frame))
            if some and size + length > PUSH_BYTES:
                yield self._push(some, None, None, full_timeout)
                some, size = [], 0
            some.append(frame)
            size += length
        if some:
            yield self._push(some, None, None, full_timeout)

    def _push(self, frames: Sequence[Sequence[Bytes]], producer: Optional[str],
              sequence: Optional[int], full_timeout: float) -> Stored:
        if (producer is None) != (sequence is None):
            raise Invalid("producer and sequence go together", code="invalid_argument")
        pieces = [piece for frame in frames for piece in frame]
        size = sum(map(len, pieces))
        body = Memory(b"".join(pieces)) if size <= UNANNOUNCED_MAX else _Frames(pieces, size)
        name, number = self._maker.number() if producer is None else (producer, int(sequence or 0))
        until = time.monotonic() + full_timeout
        tries = _Tries(self._client.policy, time.monotonic())
        while True:
            try:
                return self._send(body, name, number, tries)
            except Error as e:
                pause = _pause_of_push(e, tries, until)
                if pause is None:
                    if producer is not None or not tries.is_refusal(e):
                        e.pushed_as = (name, number)
                    raise
                if e.code in NO_ROOM:
                    tries.progress(time.monotonic())
                    if producer is None and not tries.doubtful:
                        name, number = self._maker.number()  # perhaps another target has room
            time.sleep(pause)

    def _send(self, body: Body, producer: str, sequence: int, tries: _Tries) -> Stored:
        tries.given = False
        request = Request(
            "POST", self._path + "/samples", body=body,
            query={"producer": producer, "sequence": str(sequence)},
            headers={"Content-Type": "application/octet-stream"},
            owner=(self.name, f"{producer}/{sequence}"))
        try:
            reply = self._client.call(request, tries)
        finally:
            tries.doubtful |= request.resent
        tries.doubtful = True  # it is stored, and its answer may break off
        return Stored(read_json(reply))

    # --- the head ---

    def head(self) -> Head:
        """As it is now."""
        etag, known = self._seen
        request = Request("GET", f"/v1/objects/{encode_name(self.name)}/{HEAD}",
                          headers={"If-None-Match": etag} if etag else {}, owner=(self.name, HEAD))
        try:
            reply = self._client.call(request)
            etag = reply.headers.get("etag", "")
            known = Head(read_json(reply))
        except NotModified:
            return known
        except NotFound as e:
            if e.code == "bucket_not_found":
                raise
            etag, known = "", Head(EMPTY)
        self._seen = (etag, known)
        return known

    def wait(self, after: int = 0, timeout: float = 600.0) -> Generation:
        """The first kept generation whose number is later.  Timeout: there is none in that time."""
        until = time.monotonic() + timeout
        while True:
            found = self.head().after(after)
            if found is not None:
                return found
            if time.monotonic() >= until:
                raise Timeout(f"ring '{self.name}' has no generation after {after} within "
                              f"{timeout:g} s: see 'dfcctl ring status {self.name}'",
                              code="timeout")
            time.sleep(POLL_SECONDS * (0.75 + _chance.random() / 2))

    # --- read ---

    def read(self, generation: Generation, indexes: Sequence[int]) -> List[Sample]:
        """Samples of a generation, in the order of the indexes.  NotFound with the code
        generation_gone: it is no longer kept, or a disk that had some of it is gone."""
        places = [generation.place(index) for index in indexes]
        runs = _runs(places)
        if len(runs) == 1:
            parts = [self._read_run(*runs[0])]
        else:
            parts = list(self._threads().map(lambda run: self._read_run(*run), runs))
        found = {(run[0], s.ordinal): s for run, part in zip(runs, parts) for s in part}
        return [found[place] for place in places]

    def _threads(self) -> ThreadPoolExecutor:
        process, pool = self._pool
        if pool is None or process != os.getpid():
            pool = ThreadPoolExecutor(THREADS, "dfc-ring")
            self._pool = (os.getpid(), pool)
        return pool

    def _read_run(self, lane: str, begin: int, count: int) -> List[Sample]:
        """Of one lane, one behind the other.  A reply may have fewer than were asked for."""
        samples: List[Sample] = []
        while len(samples) < count:
            at = begin + len(samples)
            some = list(_frame.parse(self._fetch(lane, at, count - len(samples))))
            if not some or [s.ordinal for s in some] != list(range(at, at + len(some))):
                raise Corrupt(f"lane '{lane}' gave other samples than those from {at} on",
                              code="bad_sample")
            samples += some
        return samples

    def _fetch(self, lane: str, begin: int, count: int) -> bytearray:
        retry = _retry.Retry(self._client.policy, time.monotonic())
        query = {"lane": lane, "from": str(begin), "count": str(count)}
        while True:
            reply = self._client.call(Request("GET", self._path + "/samples", query=query,
                                              owner=(self.name, lane),
                                              node=lane.rpartition(".")[0]), retry)
            try:
                data = _whole(reply)
                reply.close()
                return data
            except _wire.Broken as e:
                pause = retry.next(_retry.Question(_retry.Outcome.BROKEN, time.monotonic(),
                                                   _chance.random(), twice_is_harmless=True))
                if pause is None:
                    raise Unreachable(f"samples of lane '{lane}' broke off: {e}") from e
                time.sleep(pause)
            finally:
                reply.drop()


def _whole(reply: Reply) -> bytearray:
    """The body, in memory that arrays may write to."""
    data = bytearray(int(reply.headers.get("content-length", "0")))
    view = memoryview(data)
    at = 0
    while at < len(data):
        at += reply.read_into(view[at:])
    return data


def _runs(places: Iterable[Tuple[str, int]]) -> List[Tuple[str, int, int]]:
    """(lane, ordinal, count) of what can be asked for at once."""
    runs: List[Tuple[str, int, int]] = []
    for lane, ordinal in sorted(set(places)):
        if runs and runs[-1][0] == lane and runs[-1][1] + runs[-1][2] == ordinal:
            runs[-1] = (lane, runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((lane, ordinal, 1))
    return runs


class RingReader:
    """Samples of the newest generation by index, as often as one likes.

    A batch is of one generation.  Where that is dropped while it is read, the batch is read anew
    from the newest one.  An index is in order if some generation that was seen has it; in a smaller
    one it counts on from the beginning.
    """

    def __init__(self, ring: Ring, *, timeout: float = 600.0, poll: float = POLL_SECONDS) -> None:
        self.ring = ring
        self._timeout, self._poll = timeout, poll
        self._generation: Optional[Generation] = None
        self._looked = 0.0
        self._largest = 0

    def generation(self) -> Generation:
        """The newest one, as it was at most `poll` seconds ago.  Waits for the first."""
        if self._generation is None or time.monotonic() - self._looked > self._poll:
            self._look()
        assert self._generation is not None
        return self._generation

    def _look(self) -> None:
        self._looked = time.monotonic()
        self._generation = self.ring.head().newest() or self.ring.wait(timeout=self._timeout)
        self._largest = max(self._largest, len(self._generation))

    def __len__(self) -> int:
        return len(self.generation())

    def __getitem__(self, index: int) -> Sample:
        return self.batch([index])[0]

    def batch(self, indexes: Sequence[int]) -> List[Sample]:
        """The samples of these indexes, of the newest generation."""
        return self.batch_of(indexes)[1]

    def batch_of(self, indexes: Sequence[int]) -> Tuple[Generation, List[Sample]]:
        """The samples, and the generation that they are of."""
        while True:
            generation = self.generation()
            wanted = [self._index(i) % len(generation) for i in indexes]
            try:
                return generation, self.ring.read(generation, wanted)
            except NotFound as e:
                if e.code != GONE:
                    raise
                self._look()
                if self._generation is not None and self._generation.number == generation.number:
                    raise  # it is kept, and this sample is lost

    def _index(self, index: int) -> int:
        if not -self._largest <= index < self._largest:
            raise IndexError(f"sample {index} of {self._largest} in ring '{self.ring.name}'")
        return index if index >= 0 else index + self._largest


#: Of a share: the generation, how many of its samples are behind it with this one, and the sample;
#: None: its end.
_Step = Tuple[int, int, Optional[Sample]]


class RingShare:
    """The share of one consumer of each generation, one generation after the other.

    A generation is permuted by (seed, number), alike at every consumer; item i of that order belongs
    to consumer i mod consumers.  So each sample is read once by one of them.

    It begins behind generation `after`; without it, with the newest one that there is.  An iteration
    ends after so many `generations`, and never without it; the next one goes on there.  A consumer
    that is slower than the makers finds generations gone: `skipped` counts them, and `missed` the
    samples of its share that it could not read, as they were gone or damaged.  `on_gone="raise"`
    makes an error of it.
    """

    def __init__(self, ring: Ring, *, consumer: int = 0, consumers: int = 1, seed: int = 0,
                 shuffle: bool = True, after: Optional[int] = None,
                 generations: Optional[int] = None, timeout: float = 600.0, ahead: int = 2,
                 on_gone: str = "skip") -> None:
        if not 0 <= consumer < consumers:
            raise Invalid(f"consumer {consumer} of {consumers}: it has to be 0 to "
                          f"{consumers - 1}", code="invalid_argument")
        if on_gone not in ("skip", "raise") or ahead < 0:
            raise Invalid("on_gone has to be 'skip' or 'raise', ahead 0 or more",
                          code="invalid_argument")
        self.ring = ring
        self.skipped = self.missed = 0
        self._consumer, self._consumers = consumer, consumers
        self._seed, self._shuffle, self._on_gone = seed, shuffle, on_gone
        self._limit, self._timeout, self._ahead = generations, timeout, ahead
        self._after = after  # the last generation that is over; None: not chosen yet
        self._given = 0  # samples of the next one that were given
        self._begun = 0  # its number, if some were given

    def state(self) -> Dict[str, Any]:
        """Where the share is, for `restore`: all of it becomes JSON."""
        return {"after": self._after, "begun": self._begun, "given": self._given, "consumer": self._consumer,
                "consumers": self._consumers, "seed": self._seed, "shuffle": self._shuffle}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The next iteration goes on behind the last sample that was given."""
        mine = self.state()
        for key in ("consumer", "consumers", "seed", "shuffle"):
            if state[key] != mine[key]:
                raise Invalid(f"the state is of {key} {state[key]}, this share has {mine[key]}",
                              code="invalid_argument")
        self._after, self._begun, self._given = state["after"], state["begun"], state["given"]

    def __iter__(self) -> Iterator[Sample]:
        steps = self._steps()
        for number, given, sample in _ahead.ahead(steps, self._ahead) if self._ahead else steps:
            if sample is None:
                self._after, self._begun, self._given = number, 0, 0
            else:
                self._begun, self._given = number, given
                yield sample

    def _steps(self) -> Iterator[_Step]:
        after, begun, given = self._after, self._begun, self._given
        if after is None:
            after = (self.ring.head().newest() or self.ring.wait(timeout=self._timeout)).number - 1
        for _ in itertools.count() if self._limit is None else range(self._limit):
            generation = self.ring.wait(after, self._timeout)
            if after > 0 and generation.number > after + 1:
                self._say(f"{generation.number - after - 1} generations before "
                          f"{generation.number} were dropped before they were read")
                self.skipped += generation.number - after - 1
            yield from self._share(generation, given if generation.number == begun else 0)
            after, begun = generation.number, 0
            yield after, 0, None

    def _share(self, generation: Generation, given: int) -> Iterator[_Step]:
        size, missed = len(generation), self.missed
        order: Sequence[int] = range(size)
        if self._shuffle:
            order = Permutation(size, f"{self._seed}/{generation.number}")  # type: ignore[assignment]
        mine = range(self._consumer, size, self._consumers)
        count = 1
        while given < len(mine):
            wanted = [order[i] for i in mine[given:given + count]]
            found = self._read(generation, wanted)
            for at, sample in found:
                yield generation.number, given + at + 1, sample
            given += len(wanted)
            if not found and not self._is_kept(generation):
                self.missed += len(mine) - given
                break
            count = _count_of([sample for _, sample in found])
        if self.missed > missed:
            self._say(f"{self.missed - missed} samples of generation {generation.number} were gone "
                      "before they were read, or damaged")

    def _read(self, generation: Generation, wanted: List[int]) -> List[Tuple[int, Sample]]:
        """Each with its place in `wanted`; without those that are gone or damaged."""
        try:
            return list(enumerate(self.ring.read(generation, wanted)))
        except (NotFound, Corrupt) as e:
            if self._on_gone == "raise" or isinstance(e, NotFound) and e.code != GONE:
                raise
        if len(wanted) == 1:
            self.missed += 1
            return []
        return [(at, sample) for at, index in enumerate(wanted)
                for _, sample in self._read(generation, [index])]

    def _is_kept(self, generation: Generation) -> bool:
        return any(g.number == generation.number for g in self.ring.head().generations)

    def _say(self, what: str) -> None:
        _log.warning("ring '%s', consumer %d: %s", self.ring.name, self._consumer, what)


def _count_of(samples: Sequence[Sample]) -> int:
    """How many of this size are read at once."""
    size = max((sum(len(k.data) for k in s.kinds.values()) for s in samples),
               default=READ_BYTES)
    return max(1, min(RUN_MAX, READ_BYTES // max(size, 1)))
