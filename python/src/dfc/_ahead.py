"""Items of an iterator, read by a thread that is a few of them ahead."""

from __future__ import annotations

import os
import queue
import threading
from typing import Any, Iterator

from .errors import Invalid

JOIN_SECONDS = 1.0  #: for so long the end of an iteration waits for a thread that is in a read

_END = object()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Ahead:
    def __init__(self, source: Iterator[Any], count: int) -> None:
        self._source = source
        # Two queues in C in place of a bounded one in Python: half of the time of a small item.
        self._items: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._room: "queue.SimpleQueue[None]" = queue.SimpleQueue()
        for _ in range(count):
            self._room.put(None)
        self._over = threading.Event()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._read, daemon=True, name="dfc-ahead")
        self._thread.start()

    def _read(self) -> None:
        last: Any = _END
        try:
            for item in self._source:
                if not self._put(item):
                    return
        except BaseException as e:  # pylint: disable=broad-except
            last = _Failure(e)
        finally:
            close = getattr(self._source, "close", None)
            if close is not None:
                close()
        self._put(last)

    def _put(self, item: Any) -> bool:
        while not self._over.is_set():
            try:
                self._room.get(timeout=0.2)
                self._items.put(item)
                return True
            except queue.Empty:
                pass
        return False

    def get(self) -> Any:
        if os.getpid() != self._process:
            raise Invalid("an iteration does not go on in a forked process, which has no threads: "
                          "begin one there", code="invalid_argument")
        item = self._items.get()
        self._room.put(None)
        return item

    def stop(self) -> None:
        """The thread ends by itself when its read does."""
        if os.getpid() == self._process:  # in a child, whoever holds the locks is not there
            self._over.set()
            self._thread.join(JOIN_SECONDS)


def ahead(source: Iterator[Any], count: int) -> Iterator[Any]:
    """The same items; the thread holds up to `count` of them.  An iteration that is dropped ends
    the thread."""
    reader = _Ahead(source, count)
    try:
        while True:
            item = reader.get()
            if item is _END:
                return
            if isinstance(item, _Failure):
                raise item.error
            yield item
    finally:
        reader.stop()
