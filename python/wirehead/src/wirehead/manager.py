"""Watches the ring, and prints what Wirehead's manager prints.  The cluster makes the swaps."""

from __future__ import annotations

import time
from typing import Optional

import dfc

from . import _config

LOOK_SECONDS = 60.0  #: one wait for the next generation
RETRY_SECONDS = 1.0  #: between tries, while the cluster is away


class WireheadManager:
    """It may start before generators, and end at any time: nothing depends on it."""

    def __init__(self, config_path: Optional[str]) -> None:
        config = _config.load(config_path)
        if config is None:
            return
        self.swap_cap = config.swap_cap
        self.ring = config.ring()
        config.make(self.ring)

    def watch_and_swap(self, seen: int, generated: int) -> "tuple[int, int]":
        """Waits for a swap, and prints it.  The last generation, and the samples since the start."""
        try:
            self.ring.wait(seen, LOOK_SECONDS)
            head = self.ring.head()
        except dfc.Timeout:
            return seen, generated
        except dfc.Unreachable as e:
            print(f"Manager error: {e}", flush=True)
            time.sleep(RETRY_SECONDS)
            return seen, generated
        for generation in head.generations:
            if generation.number > seen:
                generated += len(generation)
                print(f"Manager: Time: {time.time()} Generated samples so far {generated}")
                print("Manager: Documents deleted: 0", flush=True)
        return head.number, generated

    def run_manager(self) -> None:
        """Until it is ended."""
        print("Manager: Initialized", flush=True)
        seen, generated = self.ring.head().number, 0
        while True:
            seen, generated = self.watch_and_swap(seen, generated)

    run = run_manager
