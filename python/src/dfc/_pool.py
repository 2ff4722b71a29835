"""Kept connections of one client, by node.

Nothing is shared over fork: a child begins with none, and leaves those of its parent alone.
"""

from __future__ import annotations

import os
import ssl
import weakref
from typing import Dict, List, Optional

from ._config import Origin
from ._wire import Connection

KEPT_MAX = 32  #: idle connections to one node


class Pool:
    """Threads: any.  Lists of CPython append and pop in one step."""

    def __init__(self, tls: Optional[ssl.SSLContext], connect: float, silence: float) -> None:
        self._tls = tls
        self._connect = connect
        self._silence = silence
        self._idle: Dict[Origin, List[Connection]] = {}
        _pools.add(self)

    def take(self, origin: Origin, fresh: bool = False) -> Connection:
        """A kept one, or one that is new.  Raises _wire.Broken."""
        if not fresh:
            try:
                return self.idle(origin).pop()
            except IndexError:
                pass
        return Connection((origin.host, origin.port), self._tls if origin.tls else None,
                          self._connect, self._silence)

    def idle(self, origin: Origin) -> List[Connection]:
        """The kept ones to a node: the same list as long as the pool lives."""
        return self._idle.setdefault(origin, [])

    def give(self, origin: Origin, connection: Connection) -> None:
        idle = self.idle(origin)
        if connection.reusable and len(idle) < KEPT_MAX:
            idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        for connections in list(self._idle.values()):
            while connections:
                connections.pop().close()


_pools: "weakref.WeakSet[Pool]" = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_pools):
        pool.close()  # the child's descriptors; the connections are the parent's


os.register_at_fork(after_in_child=_forget_all)
