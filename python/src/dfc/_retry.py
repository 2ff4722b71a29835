"""Whether a call that failed is made again, and after which pause: pure.

The rules of libdfc (api/retry.h); only the number of tries is greater.  Time is in seconds.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Optional


class Outcome(enum.Enum):
    NEVER = "the answer is final"
    UNSENT = "no connection: the other side saw nothing"
    REFUSED = "the other side did nothing, and says so"
    BROKEN = "it may have been done"


@dataclass(frozen=True)
class Policy:
    #: Tries in all: their pauses take 30 s at least, so that a training outlives a killed target.
    attempts: int = 18
    budget: float = 60.0  #: no try begins later than this after the last progress
    base: float = 0.1  #: the first pause is up to this; each further one up to twice as long
    cap: float = 5.0


@dataclass(frozen=True)
class Question:
    outcome: Outcome
    now: float
    chance: float  #: random, from 0 to 1
    twice_is_harmless: bool = False
    other_endpoint: bool = False  #: one that was not tried in this round
    retry_after: float = 0.0  #: what the server asked for, at least; 0: nothing


def outcome_of(status: int, code: str) -> Outcome:
    """What a reply that is no success means for the next try."""
    if status == 503 and code == "in_doubt":
        return Outcome.BROKEN
    if status in (429, 503) or code == "stale_map":
        return Outcome.REFUSED
    if status in (408, 502, 504):
        return Outcome.BROKEN
    return Outcome.NEVER


class Retry:
    """Counts the failures of one call."""

    def __init__(self, policy: Policy, now: float) -> None:
        self._policy = policy
        self._failures = 0
        self._since = now

    def progress(self, now: float) -> None:
        """Bytes moved since the last failure: the counting begins anew."""
        self._failures = 0
        self._since = now

    def next(self, q: Question) -> Optional[float]:
        """The pause before the next try; None: there is none."""
        if q.outcome is Outcome.NEVER:
            return None
        if q.outcome is Outcome.BROKEN and not q.twice_is_harmless:
            return None
        if q.outcome is Outcome.UNSENT and q.other_endpoint:
            return 0.0  # a round over all endpoints counts as one try
        self._failures += 1
        if self._failures >= self._policy.attempts:
            return None
        wait = self._pause(q)
        return wait if q.now - self._since + wait <= self._policy.budget else None

    def _pause(self, q: Question) -> float:
        most = min(self._policy.cap, self._policy.base * 2.0 ** min(self._failures - 1, 60))
        own = most * (0.5 + q.chance / 2)  # clients that failed together come back apart
        return max(own, q.retry_after * (1 + q.chance / 4))
