"""Local files: a download that appears whole, and an object that is written like a file."""

from __future__ import annotations

import io
import os
import tempfile
from typing import Any, Callable, Optional

from .bucket import Bucket
from .errors import Precondition

SPOOL = 64 << 20  #: bytes of a file being written that stay in memory; more go to a temporary file
STEP = 1 << 20


def copy_stream(source: Any, to: Any, moved: Callable[[int], Any]) -> None:
    while block := source.read(STEP):
        to.write(block)
        moved(len(block))


def download(bucket: Bucket, name: str, path: str,
             size: Callable[[int], Any] = lambda _: None,
             moved: Callable[[int], Any] = lambda _: None) -> None:
    """The file has its name when it is whole; several downloads of one file do not meet."""
    with bucket.open(name) as source:
        size(source.raw.size)  # type: ignore[attr-defined]
        part = f"{path}.{os.urandom(6).hex()}.part"
        os.makedirs(os.path.dirname(os.path.abspath(part)), exist_ok=True)
        try:
            with open(part, "xb") as f:
                copy_stream(source, f, moved)
            os.replace(part, path)
        except BaseException:
            os.unlink(part)
            raise


class Upload(io.RawIOBase):
    """An object being written: visible whole at close().  `with` stores nothing after an exception;
    wrappers, as those of text, close it then, too, and so store what was written."""

    _spool: Any = None

    def __init__(self, bucket: Bucket, name: str, exclusive: bool = False,
                 autocommit: bool = True) -> None:
        super().__init__()
        self._bucket, self._name, self._exclusive = bucket, name, exclusive
        self._autocommit = autocommit
        self._spool = tempfile.SpooledTemporaryFile(SPOOL)  # pylint: disable=R1732

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.closed:  # pylint: disable=using-constant-test
            raise ValueError("the file is closed")
        return int(self._spool.write(data))

    def tell(self) -> int:
        return int(self._spool.tell())

    def commit(self) -> None:
        """Of a transaction: stores what was written."""
        spool, self._spool = self._spool, None
        if spool is None:
            return
        with spool:
            spool.seek(0)
            try:
                self._bucket.put(self._name, spool, if_absent=self._exclusive)
            except Precondition as e:
                raise FileExistsError(f"{self._bucket.name}/{self._name}") from e

    def discard_at_close(self) -> None:
        """For a wrapper that still writes when it is closed."""
        self._autocommit = False

    def discard(self) -> None:
        """Nothing is stored."""
        spool, self._spool = self._spool, None
        if spool is not None:
            spool.close()

    def close(self) -> None:
        if not self.closed:
            super().close()
            if self._autocommit:
                self.commit()

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is not None:
            self.discard()
        self.close()

    def __del__(self) -> None:
        """A file that nobody closed is not stored: an exception may have passed by it."""
        self.discard()


class Compressed(io.RawIOBase):
    """An upload through a file that compresses, whose own close() does not close the upload."""

    def __init__(self, upload: Upload, compressing: Any) -> None:
        super().__init__()
        self._upload, self._compressing = upload, compressing

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._compressing.write(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._compressing.close()
            self._upload.close()

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is not None:
            self._upload.discard_at_close()
        self.close()

    def __del__(self) -> None:
        """As Upload's: the wrappers below are dropped with it."""


def opened(bucket: Bucket, name: str, mode: str, buffering: Optional[int] = None) -> Any:
    """Reads ('rb') or writes whole ('wb')."""
    if mode in ("w", "wb"):
        return Upload(bucket, name)
    if mode in ("r", "rb"):
        return bucket.open(name) if buffering is None else bucket.open(name, buffering=buffering)
    raise ValueError(f"mode '{mode}': an object is read ('rb') or written whole ('wb')")
