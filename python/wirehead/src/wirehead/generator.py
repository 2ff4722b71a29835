"""Pushes what a generator makes into the ring.  Swaps are made by the cluster.

A sample is pushed until the ring has it once: none is lost when the cluster is away for a while,
and none is thrown away when a generation is full.  A ring that is full lets the generator wait, and
so do full disks.
"""

from __future__ import annotations

import time
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

import dfc
from dfc.ring import NO_SPACE, Generation

from . import _config

Chunk = Dict[str, Any]

RETRY_SECONDS = 1.0  #: between tries, while the cluster is away
LAST_SWAP_SECONDS = 1.0  #: run() waits for so long that a generation takes its last sample


class WireheadGenerator:
    """`generator` yields tuples of arrays, in the order of SAMPLE."""

    def __init__(self, generator: Iterator[Tuple[Any, ...]], config_path: str = "config.yaml",
                 n_samples: int = int(1e9)) -> None:
        config = _config.load(config_path)
        if config is None:
            return
        self.generator, self.n_samples, self.config_path = generator, n_samples, config_path
        self.sample, self.swap_cap = config.sample, config.swap_cap
        self._cast = config.cast
        self.ring = config.ring()
        if config.make(self.ring):
            print("Generator: Database reinitialized successfully.", flush=True)
        self._seen = self.ring.head().number
        self._mine: Set[Tuple[str, int]] = set()  # lane and ordinal of what no generation has

    def chunkify(self, data: Tuple[Any, ...], index: int) -> List[Chunk]:
        """One for each kind: an array is not cut into pieces."""
        if len(data) < len(self.sample):
            raise TypeError(f"the generator gave {len(data)} arrays, SAMPLE has {len(self.sample)}")
        chunks = []
        for i, kind in enumerate(self.sample):
            if not hasattr(data[i], "dtype") or not hasattr(data[i], "shape"):
                raise TypeError(f"Unsupported type for binobj[{i}]: {type(data[i])}")
            chunks.append({"id": index, "kind": kind, "chunk": self._casted(data[i])})
        return chunks

    def _casted(self, value: Any) -> Any:
        if self._cast == "keep":
            return value
        if hasattr(value, "data_ptr"):
            import torch  # pylint: disable=import-outside-toplevel
            return value.to(torch.uint8)
        return value.astype("uint8")

    def push(self, chunks: List[Chunk]) -> None:
        """Until it is stored, once.  An error that another try does not change is raised."""
        sample = {chunk["kind"]: chunk["chunk"] for chunk in chunks}
        number: Tuple[Optional[str], Optional[int]] = (None, None)
        while True:
            try:
                stored = self.ring.push(sample, producer=number[0], sequence=number[1])
                self._mine.add((stored.lane, stored.first))
                return
            except dfc.Error as e:
                if not isinstance(e, (dfc.Unreachable, dfc.Timeout)) and e.code != NO_SPACE:
                    raise
                print(f"Generator error: {e}", flush=True)
                number = e.pushed_as or (None, None)  # the ring has refused it: any other target
                time.sleep(RETRY_SECONDS)

    def swap(self) -> Optional[int]:
        """Asks for a generation of what there is: its number, or None if there is nothing."""
        try:
            return self.ring.swap()
        except dfc.NotFound:
            return None

    def attempt_swap(self) -> None:
        """Says that there was a swap.  The generator that pushed a certain one of its samples does."""
        try:
            head = self.ring.head()
        except (dfc.Unreachable, dfc.Timeout) as e:
            print(f"Generator error: {e}", flush=True)
            return
        for generation in head.generations:
            if generation.number > self._seen and self._announces(generation):
                print(f"Generator: Time: {time.time()}")
                print("Generator: Documents deleted: 0")
                print("\t====Generator: Swap success!====", flush=True)
        self._seen = head.number
        self._mine = {(lane, ordinal) for lane, ordinal in self._mine if ordinal >= head.taken(lane)}

    def _announces(self, generation: Generation) -> bool:
        lane, _, to = generation.cuts[0]
        return (lane, to - 1) in self._mine

    def cycle(self, verbose: bool = False) -> None:
        data = next(self.generator)
        index = len(self._mine)
        chunks = self.chunkify(data, index)
        if verbose:
            print(f"Pushing index: {index}, with cap: {self.swap_cap}", flush=True)
        self.push(chunks)
        self.attempt_swap()

    def run(self, verbose: bool = False) -> None:
        """Ends after n_samples, or with the generator."""
        print("Generator: Initialized", flush=True)
        try:
            for _ in range(self.n_samples):
                self.cycle(verbose)
        except StopIteration:
            pass
        until = time.monotonic() + LAST_SWAP_SECONDS
        while self._mine and time.monotonic() < until:
            time.sleep(0.02)
            self.attempt_swap()

    def run_generator(self) -> None:
        self.run()
