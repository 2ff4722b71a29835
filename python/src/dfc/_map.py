"""Which target leads an object, computed here, so that no call passes through a proxy.

Nothing depends on it: a target that does not lead the object redirects, and in doubt there is no
place, and a proxy is asked.  The map is fetched anew when it is a minute old, and when a reply
showed that it is; the old one serves until the new one is there, also while no proxy answers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Callable, Dict, List, Optional, Tuple

from . import _hrw
from ._config import Origin
from ._wire import Connection
from .errors import Error, Timeout, Unreachable

LIFE_SECONDS = 60.0
YOUNG_SECONDS = 1.0  #: a map that is younger is not fetched anew
DENIED_SECONDS = 300.0  #: a client that may not see the map asks proxies for so long
FETCH_SECONDS = 5.0  #: one thread fetches; for so long the others go on with the map they have

Documents = Tuple[Dict[str, object], Dict[str, object]]


class Place:
    """A target, by one map of one bucket: all its objects there have this same place."""

    __slots__ = ("origin", "query", "tail", "kept")

    def __init__(self, origin: Origin, query: str) -> None:
        self.origin = origin
        self.query = query  #: tells the target by which map it was chosen
        # What a caller knows of it, once it called there: it is slow to find anew for each call.
        self.tail = ""  #: of a GET's head, behind the name
        self.kept: List[Connection] = []  #: the pool's list of connections to it


@dataclass(frozen=True)
class _Node:
    place: Place
    good: bool  #: active, and it has all that was acknowledged


class Layout:
    """The targets of one cluster document, for one bucket.  Pure."""

    def __init__(self, cluster: Dict[str, object], bucket: Dict[str, object]) -> None:
        nodes = [n for n in _list(cluster["nodes"])
                 if n["role"] == "target" and n["state"] in ("active", "unreachable")]
        props = bucket["props"]
        query = f"dfcb={bucket['id']}&dfcv={cluster['term']}.{cluster['version']}"
        self._scope = int(str(bucket["id"]))
        copies = int(props.get("copies", 1)) if isinstance(props, dict) else 1
        sliced = isinstance(props, dict) and "ec" in props
        self._count = 1 if sliced else copies  # of the best targets, any of which serves
        self._seeds = [(_hrw.mix(_hrw.seed(str(n["id"]))), int(str(n["weight"]))) for n in nodes]
        self._ids = [str(n["id"]) for n in nodes]
        self._nodes = [_Node(Place(Origin.of(str(n["public_url"])), query), n["state"] == "active"
                             and not n.get("lag") and not n.get("absent")) for n in nodes]
        alike = self._count == 1 and len({weight for _, weight in self._seeds}) == 1 and \
            self._seeds[0][1] > 0
        self._alike = [mixed for mixed, _ in self._seeds] if alike else []

    def node(self, node: str) -> Optional[Place]:
        """The target of this name; None: it is not there, or not active."""
        found = (n.place for n, known in zip(self._nodes, self._ids) if known == node and n.good)
        return next(found, None)

    def place(self, name: str) -> Optional[Place]:
        """None: it is not clear who leads the object."""
        key = _hrw.key(self._scope, name.encode())
        best = [_hrw.first(key, self._alike)] if self._alike else \
            _hrw.rank(key, self._seeds, self._count)
        for at in best:
            if self._nodes[at].good:
                return self._nodes[at].place
        return None


def _list(value: object) -> List[Dict[str, object]]:
    return value if isinstance(value, list) else []


@dataclass(frozen=True)
class _Known:
    layout: Optional[Layout]
    begins: float
    ends: float


class Map:
    """Threads: any.  `fetch` gives the documents of the cluster and a bucket."""

    def __init__(self, fetch: Callable[[str], Documents]) -> None:
        self._fetch = fetch
        self._known: Dict[str, _Known] = {}

    def is_old(self) -> None:
        """A reply showed it."""
        now = time.monotonic()
        self._known = {b: k if k.begins > now - YOUNG_SECONDS else replace(k, ends=min(k.ends, now))
                       for b, k in list(self._known.items())}

    def place(self, bucket: str, name: str) -> Optional[Place]:
        layout = self._layout(bucket)
        return layout.place(name) if layout is not None else None

    def node(self, bucket: str, node: str) -> Optional[Place]:
        layout = self._layout(bucket)
        return layout.node(node) if layout is not None else None

    def _layout(self, bucket: str) -> Optional[Layout]:
        known = self._known.get(bucket)
        if known is None or time.monotonic() >= known.ends:
            known = self._renew(bucket)
        return known.layout

    def _renew(self, bucket: str) -> _Known:
        """Whatever goes wrong is for the call itself to say, at a proxy."""
        life, layout = LIFE_SECONDS, None
        old = self._known.get(bucket)
        if old is not None:
            self._known[bucket] = replace(old, ends=time.monotonic() + FETCH_SECONDS)
        try:
            layout = Layout(*self._fetch(bucket))
        except (Unreachable, Timeout):
            life, layout = YOUNG_SECONDS, old.layout if old is not None else None
        except Error as e:
            life = DENIED_SECONDS if e.status in (401, 403) else YOUNG_SECONDS
        except (KeyError, TypeError, ValueError):
            life = DENIED_SECONDS  # a document of another release
        now = time.monotonic()
        known = self._known[bucket] = _Known(layout, now, now + life)
        return known
