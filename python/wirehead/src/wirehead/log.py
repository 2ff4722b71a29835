"""What Wirehead's logger says, of a ring: its swaps, and how full it is.

    wirehead config.yaml                 the swaps of which the ring knows, one JSON object a line
    wirehead config.yaml --daemon        each swap from now on, as it is made
    wirehead config.yaml --tui           a table that is drawn anew

The cluster makes swaps at once, without a lock.  So `is_swapping` is always false, and
`swap_lock_duration` is 0.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Sequence, TextIO

import dfc
from dfc.ring import Ring

from . import _config

POLL_SECONDS = 2.0  #: between two looks
RECENT = 20  #: swaps that a snapshot has


@dataclasses.dataclass(frozen=True)
class SwapLog:
    """One swap.  Times are Unix times in seconds; `swap_duration` is the time since the one before,
    or None if that is not known."""

    swap_timestamp: float
    prev_swap_timestamp: Optional[float]
    swap_duration: Optional[float]
    swap_count: int  #: the number of the generation
    db_name: str

    def to_jsonl(self) -> str:
        """One line, without its end."""
        return json.dumps(dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True)
class WireheadSnapshot:
    """The ring at one time.  Rates are of the time since the snapshot before; 0 in the first one."""

    samples_started: int
    samples_completed: int
    in_flight: int  #: always 0: a push that has not ended is known to its maker alone
    swap_cap: int
    fill_pct: float
    is_swapping: bool
    swap_lock_duration: float
    swap_count: int
    swap_timestamp: Optional[float]
    swap_duration: Optional[float]
    time_since_last_swap: Optional[float]
    avg_swap_duration: Optional[float]
    samples_per_s: float
    swaps_per_s: float
    write_docs: int  #: samples that are in no generation yet
    read_docs: int  #: samples of the generations that are kept
    db_name: str
    poll_interval: float
    timestamp: float
    recent_swaps: List[SwapLog]

    def to_jsonl(self) -> str:
        """One line, without its end."""
        return json.dumps(dataclasses.asdict(self))


def swaps_of(head: Dict[str, Any], known: Sequence[SwapLog], name: str) -> List[SwapLog]:
    """Those of a head's generations that are later than the `known` ones.  Pure."""
    found: List[SwapLog] = list(known[-1:])
    before = len(found)
    for document in head["generations"]:
        number, at = int(document["generation"]), int(document["sealed_ms"]) / 1000
        last = found[-1] if found else None
        if last is not None and number <= last.swap_count:
            continue
        prev = last.swap_timestamp if last is not None and last.swap_count == number - 1 else None
        found.append(SwapLog(at, prev, None if prev is None else at - prev, number, name))
    return found[before:]


class WireheadLogger:
    """Looks at the ring that config.yaml names.  It changes nothing there."""

    def __init__(self, config_path: Optional[str] = "config.yaml",
                 poll_interval: float = POLL_SECONDS) -> None:
        if poll_interval <= 0:
            raise dfc.Invalid("poll_interval has to be above 0 s", code="invalid_argument")
        config = _config.load(config_path)
        if config is None:
            return
        self.poll_interval = poll_interval
        self.ring: Ring = config.ring()
        self._swaps: Deque[SwapLog] = deque(maxlen=RECENT)
        self._last: Optional[WireheadSnapshot] = None

    def _look(self) -> "tuple[Dict[str, Any], List[SwapLog]]":
        """The status of the ring, and the swaps that are new in it."""
        status = self.ring.status()
        if self._swaps and int(status["head"]["generation"]) < self._swaps[-1].swap_count:
            self._swaps.clear()  # the ring was removed and made anew
            self._last = None
        new = swaps_of(status["head"], list(self._swaps), self.ring.name)
        self._swaps.extend(new)
        return status, new

    def history(self) -> List[SwapLog]:
        """The swaps of the generations that are kept, and those that this object has seen."""
        self._look()
        return list(self._swaps)

    def snapshot(self) -> WireheadSnapshot:
        """The ring as it is now."""
        status, _ = self._look()
        now, head, fill = time.time(), status["head"], int(status["fill"])
        swaps = list(self._swaps)
        completed = int(head["samples_total"]) + fill
        durations = [s.swap_duration for s in swaps if s.swap_duration is not None]
        last, before = (swaps[-1] if swaps else None), self._last
        passed = now - before.timestamp if before is not None else 0.0
        self._last = WireheadSnapshot(
            samples_started=completed, samples_completed=completed, in_flight=0,
            swap_cap=int(status["cap"]), fill_pct=100.0 * fill / int(status["cap"]),
            is_swapping=False, swap_lock_duration=0.0, swap_count=int(head["generation"]),
            swap_timestamp=last.swap_timestamp if last else None,
            swap_duration=last.swap_duration if last else None,
            time_since_last_swap=max(now - last.swap_timestamp, 0.0) if last else None,
            avg_swap_duration=sum(durations) / len(durations) if durations else None,
            samples_per_s=_rate(before.samples_completed if before else 0, completed, passed),
            swaps_per_s=_rate(before.swap_count if before else 0, int(head["generation"]), passed),
            write_docs=fill,
            read_docs=sum(c["to"] - c["from"] for g in head["generations"] for c in g["cuts"]),
            db_name=self.ring.name, poll_interval=self.poll_interval, timestamp=now,
            recent_swaps=swaps)
        return self._last

    def run(self, out: Optional[TextIO] = None) -> None:
        """Prints the history."""
        swaps = self.history()
        for swap in swaps:
            print(swap.to_jsonl(), file=out)
        if not swaps:
            print("No swaps recorded yet.", file=out)

    def run_daemon(self, out: Optional[TextIO] = None) -> None:
        """Prints each swap when it is seen, until it is ended.  A swap whose generation came and went
        between two looks is left out."""
        self._look()
        while True:
            time.sleep(self.poll_interval)
            try:
                new = self._look()[1]
            except (dfc.Unreachable, dfc.Timeout) as e:
                print(f"Logger error: {e}", file=sys.stderr, flush=True)
                continue
            for swap in new:
                print(swap.to_jsonl(), file=out, flush=True)

    def run_tui(self, out: Optional[TextIO] = None) -> None:
        """Draws a table again and again, until it is ended."""
        while True:
            try:
                text = table(self.snapshot())
            except (dfc.Unreachable, dfc.Timeout) as e:
                text = f"Logger error: {e}"
            print("\x1b[H\x1b[J" + text, file=out, flush=True)
            time.sleep(self.poll_interval)


def _rate(before: int, now: int, seconds: float) -> float:
    return max(now - before, 0) / seconds if seconds > 0 else 0.0


def table(s: WireheadSnapshot) -> str:
    """A snapshot as people read it."""
    def seconds(value: Optional[float]) -> str:
        return "-" if value is None else f"{value:.1f} s"
    rows = [("ring", s.db_name), ("fill", f"{s.write_docs} of {s.swap_cap} ({s.fill_pct:.0f} %)"),
            ("swaps", f"{s.swap_count}"), ("last swap", seconds(s.time_since_last_swap) + " ago"
                                           if s.time_since_last_swap is not None else "-"),
            ("between swaps", f"{seconds(s.swap_duration)}, mean {seconds(s.avg_swap_duration)}"),
            ("samples", f"{s.samples_completed}, {s.samples_per_s:.1f}/s"),
            ("readable", f"{s.read_docs}")]
    return "\n".join(f"{name:14} {value}" for name, value in rows)


def main(argv: Optional[Sequence[str]] = None) -> int:
    """The program `wirehead`."""
    p = argparse.ArgumentParser(prog="wirehead", description="Swaps and fill of a ring.")
    p.add_argument("config", help="config.yaml")
    how = p.add_mutually_exclusive_group()
    how.add_argument("--daemon", action="store_true", help="print each swap as it is made")
    how.add_argument("--tui", action="store_true", help="a table that is drawn anew")
    p.add_argument("--poll-interval", type=float, default=POLL_SECONDS, metavar="SECONDS",
                   help=f"between two looks (default: {POLL_SECONDS:g})")
    args = p.parse_args(argv)
    try:
        logger = WireheadLogger(args.config, args.poll_interval)
        if not hasattr(logger, "ring"):
            return 1
        (logger.run_daemon if args.daemon else logger.run_tui if args.tui else logger.run)()
    except KeyboardInterrupt:
        return 130
    except dfc.Error as e:
        print(f"wirehead: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
