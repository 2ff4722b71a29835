"""dfc://BUCKET/OBJECT for everything that speaks fsspec: pandas, pyarrow, Ray, zarr, torch.

    import fsspec
    with fsspec.open("dfc://train/a.csv", endpoint="http://127.0.0.1:8080") as f:
        ...

Directories are prefixes of names.  A bucket can be made and removed by mkdir() and rmdir(); below
it they do nothing, since an object needs no directory.  Nothing is cached: a list shows what is.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from .bucket import Bucket
from .client import Client
from .errors import Conflict, Invalid, NotFound, Precondition
from .object import Entry

SPOOL = 64 << 20  #: bytes of a file being written that stay in memory; more go to a temporary file
THREADS = 16  #: of cat_ranges()
GAP = 64 << 10  #: ranges of one object that are closer than this are read as one
JOB_MIN = 100  #: from so many names on, rm() lets the cluster delete them


class DfcFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """`endpoint`, `profile`, `token`, `access_key`, `secret_key`, `ca_file` and `direct` are those
    of dfc.Client."""

    protocol = "dfc"
    root_marker = ""

    def __init__(self, endpoint: Optional[str] = None, **options: Any) -> None:
        names = ("profile", "token", "access_key", "secret_key", "ca_file", "direct")
        mine = {name: options.pop(name) for name in names if name in options}
        super().__init__(endpoint=endpoint, **mine, **options)
        self.client = Client(endpoint, **mine)

    # --- names ---

    def split(self, path: str) -> Tuple[str, str]:
        """Bucket and object; '' where there is none."""
        bucket, _, name = self._strip_protocol(path).partition("/")
        return bucket, name

    def _at(self, path: str) -> Tuple[Bucket, str]:
        bucket, name = self.split(path)
        if not bucket or not name:
            raise IsADirectoryError(f"'{path}' names no object: it has to be dfc://BUCKET/OBJECT")
        return self.client.bucket(bucket), name

    # --- what is there ---

    def ls(self, path: str, detail: bool = True, **_: Any) -> List[Any]:
        bucket, name = self.split(path)
        if not bucket:
            rows = [_directory(str(b["name"])) for b in self.client.buckets()]
        else:
            prefix = name + "/" if name else ""
            rows = [_row(bucket, e) for e in self._list(bucket, prefix, "/") if e.name != prefix]
            if name and not rows:
                rows = [self.info(path)]
        return rows if detail else [row["name"] for row in rows]

    def _list(self, bucket: str, prefix: str, delimiter: str = "") -> Iterator[Entry]:
        try:
            yield from self.client.bucket(bucket).list(prefix, delimiter=delimiter)
        except NotFound as e:
            raise FileNotFoundError(f"{bucket}/{prefix}: {e.message}") from e

    def info(self, path: str, **_: Any) -> Dict[str, Any]:
        bucket, name = self.split(path)
        if not name:
            if bucket and not self.client.bucket(bucket).exists():
                raise FileNotFoundError(f"there is no bucket '{bucket}'")
            return _directory(bucket)
        try:
            info = self.client.bucket(bucket).head(name)
        except NotFound as e:
            below = self.client.bucket(bucket).list(name + "/", page_size=1)
            try:
                if next(below, None) is not None:
                    return _directory(f"{bucket}/{name}")
            except NotFound:
                pass
            raise FileNotFoundError(f"{bucket}/{name}") from e
        return {"name": f"{bucket}/{name}", "size": info.size, "type": "file", "etag": info.etag,
                "modified": info.modified, "content_type": info.content_type}

    def find(self, path: str, maxdepth: Optional[int] = None, withdirs: bool = False,
             detail: bool = False, **options: Any) -> Any:
        bucket, name = self.split(path)
        if maxdepth is not None or withdirs or not bucket:
            return super().find(path, maxdepth=maxdepth, withdirs=withdirs, detail=detail,
                                **options)
        rows = [_row(bucket, e) for e in self._list(bucket, name + "/" if name else "")]
        if name and not rows and self.isfile(path):
            rows = [self.info(path)]
        names = {row["name"]: row for row in rows}
        return names if detail else list(names)

    def exists(self, path: str, **_: Any) -> bool:
        try:
            self.info(path)
            return True
        except FileNotFoundError:
            return False

    def checksum(self, path: str) -> str:
        return str(self.info(path)["etag"])

    def modified(self, path: str) -> datetime:
        return datetime.fromtimestamp(self.info(path)["modified"], timezone.utc)

    created = modified

    # --- bytes ---

    def _open(self, path: str, mode: str = "rb", block_size: Union[int, str, None] = "default",
              autocommit: bool = True, cache_options: Optional[Dict[str, Any]] = None,
              **options: Any) -> Any:
        bucket, name = self._at(path)
        if mode in ("wb", "xb"):
            return Upload(bucket, name, mode == "xb", autocommit)
        if mode != "rb":
            raise ValueError(f"mode '{mode}': an object is read ('rb') or written whole ('wb')")
        return Download(self, path, bucket, name, block_size=block_size or "default",
                        cache_options=cache_options, **options)

    def cat_file(self, path: str, start: Optional[int] = None, end: Optional[int] = None,
                 **_: Any) -> bytes:
        bucket, name = self._at(path)
        with _as_file_errors(path):
            if start is None and end is None:
                return bucket.get(name)
            if (start or 0) < 0 and end is None:
                return bucket.get(name, offset=start or 0)
            first, last = start or 0, end
            if first < 0 or (last is not None and last < 0):
                size = bucket.head(name).size
                first = max(0, size + first) if first < 0 else first
                last = size + last if last is not None and last < 0 else last
            return _part(bucket, name, first, last)

    def cat_ranges(self, paths: List[str], starts: Any, ends: Any,
                   max_gap: Optional[int] = None, on_error: str = "return",
                   **_: Any) -> List[Any]:
        """Ranges of one object that are near one another are read as one."""
        count = len(paths)
        begins = list(starts) if isinstance(starts, Iterable) else [starts] * count
        finishes = list(ends) if isinstance(ends, Iterable) else [ends] * count
        if not len(begins) == len(finishes) == count:
            raise ValueError("paths, starts and ends differ in number")
        out: List[Any] = [None] * count
        runs = _runs(list(zip(paths, begins, finishes)), GAP if max_gap is None else max_gap)

        def read(run: List[int]) -> None:
            first, last = run[0], max(run, key=lambda i: finishes[i] or 0)
            try:
                data = self.cat_file(paths[first], begins[first], finishes[last])
                for i in run:
                    base = 0 if len(run) == 1 else begins[i] - begins[first]
                    out[i] = data if len(run) == 1 else data[base:base + finishes[i] - begins[i]]
            except Exception as e:  # pylint: disable=broad-except
                if on_error == "raise":
                    raise
                for i in run:
                    out[i] = e

        with ThreadPoolExecutor(THREADS) as pool:
            for done in pool.map(read, runs):
                assert done is None
        return out

    def pipe_file(self, path: str, value: bytes, **_: Any) -> None:
        bucket, name = self._at(path)
        with _as_file_errors(path):
            bucket.put(name, value)

    def put_file(self, lpath: str, rpath: str, callback: Any = None, **_: Any) -> None:
        if os.path.isdir(lpath):
            return
        bucket, name = self._at(rpath)
        with open(lpath, "rb") as f, _as_file_errors(rpath):
            info = bucket.put(name, f)
        if callback is not None:
            callback.set_size(info.size)
            callback.absolute_update(info.size)

    def get_file(self, rpath: str, lpath: Any, callback: Any = None, outfile: Any = None,
                 **_: Any) -> None:
        if self.isdir(rpath):
            os.makedirs(lpath, exist_ok=True)
            return
        bucket, name = self._at(rpath)
        with _as_file_errors(rpath), bucket.open(name) as source:
            if outfile is not None:
                shutil.copyfileobj(source, outfile, 1 << 20)
                return
            part = f"{os.fspath(lpath)}.part"
            os.makedirs(os.path.dirname(os.path.abspath(part)), exist_ok=True)
            with open(part, "wb") as f:
                shutil.copyfileobj(source, f, 1 << 20)
            os.replace(part, lpath)

    # --- changes ---

    def mkdir(self, path: str, create_parents: bool = True, **props: Any) -> None:
        bucket, name = self.split(path)
        if name:
            return
        try:
            self.client.bucket(bucket).create(**props)
        except Conflict as e:
            raise FileExistsError(f"there is a bucket '{bucket}'") from e

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        bucket, name = self.split(path)
        self.client.bucket(bucket).create(exist_ok=exist_ok or bool(name))

    def rmdir(self, path: str) -> None:
        """A bucket that is empty."""
        bucket, name = self.split(path)
        if name:
            return
        if next(self._list(bucket, ""), None) is not None:
            raise OSError(f"the bucket '{bucket}' is not empty")
        self.client.bucket(bucket).destroy()

    def rm_file(self, path: str) -> None:
        bucket, name = self._at(path)
        with _as_file_errors(path):
            bucket.delete(name)

    _rm = rm_file

    def rm(self, path: Any, recursive: bool = False, maxdepth: Optional[int] = None) -> None:
        names: Dict[str, List[str]] = {}
        for one in self.expand_path(path, recursive=recursive, maxdepth=maxdepth):
            bucket, name = self.split(one)
            names.setdefault(bucket, [])
            if name and self.isfile(one):
                names[bucket].append(name)
        for bucket, these in names.items():
            if len(these) >= JOB_MIN:
                self.client.bucket(bucket).delete_many(names=these).wait()
            else:
                for name in these:
                    self.client.bucket(bucket).delete(name, missing_ok=True)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        if self.isdir(path1):
            return
        source, name = self._at(path1)
        to, new = self._at(path2)
        with _as_file_errors(path1), tempfile.SpooledTemporaryFile(SPOOL) as spool:
            with source.open(name) as f:
                shutil.copyfileobj(f, spool, 1 << 20)
            spool.seek(0)
            to.put(new, spool)

    def mv(self, path1: str, path2: str, recursive: bool = False, maxdepth: Optional[int] = None,
           **options: Any) -> None:
        source, target = self.split(path1), self.split(path2)
        if not recursive and source[0] == target[0] and source[1] and target[1]:
            with _as_file_errors(path1):
                self.client.bucket(source[0]).rename(source[1], target[1])
            return
        super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **options)

    def sign(self, path: str, expiration: int = 100, **_: Any) -> str:
        """A URL with which anybody may read the object for `expiration` seconds."""
        bucket, name = self._at(path)
        reply = self.client.send_json("POST", "/v1/auth/url", {
            "method": "GET", "bucket": bucket.name, "object": name, "seconds": expiration})
        from ._call import read_json
        return str(read_json(reply)["url"])


class Download(AbstractBufferedFile):  # type: ignore[misc]
    """One version of an object, read in ranges."""

    def __init__(self, fs: DfcFileSystem, path: str, bucket: Bucket, name: str,
                 **options: Any) -> None:
        self._bucket, self._name = bucket, name
        super().__init__(fs, path, "rb", **options)
        self._etag = str(self.details["etag"])

    def _fetch_range(self, start: int, end: int) -> bytes:
        if end <= start:
            return b""
        try:
            return self._bucket.get(self._name, offset=start, length=end - start,
                                    if_match=self._etag)
        except (Precondition, NotFound) as e:
            raise OSError(f"{self.path} changed while it was read") from e


class Upload(io.RawIOBase):
    """An object being written: visible whole at close().  `with` stores nothing after an exception;
    wrappers, as those of text, close it then, too, and so store what was written."""

    _spool: Any = None

    def __init__(self, bucket: Bucket, name: str, exclusive: bool, autocommit: bool) -> None:
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


class _as_file_errors:
    """NotFound and Precondition of the store as Python's own of files."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: Any, error: Any, _trace: Any) -> None:
        if isinstance(error, NotFound):
            raise FileNotFoundError(f"{self._path}: {error.message}") from error


def _part(bucket: Bucket, name: str, first: int, last: Optional[int]) -> bytes:
    """Of what is behind the end there are no bytes, as with a file."""
    if last is not None and last <= first:
        return b""
    try:
        return bucket.get(name, offset=first, length=None if last is None else last - first)
    except Invalid as e:
        if e.status != 416:
            raise
        return b""


def _runs(ranges: List[Tuple[str, Any, Any]], gap: int) -> List[List[int]]:
    """Indices of ranges that are read together; those without both ends stand alone."""
    plain = [i for i, (_, a, b) in enumerate(ranges)
             if a is not None and b is not None and 0 <= a < b]
    chosen = set(plain)
    runs = [[i] for i in range(len(ranges)) if i not in chosen]
    plain.sort(key=lambda i: ranges[i])
    reach = 0
    for i in plain:
        path, begin, end = ranges[i]
        if runs and runs[-1][0] in chosen and ranges[runs[-1][0]][0] == path and begin <= reach + gap:
            runs[-1].append(i)
            reach = max(reach, end)
        else:
            runs.append([i])
            reach = end
    return runs


def _directory(name: str) -> Dict[str, Any]:
    return {"name": name, "size": 0, "type": "directory"}


def _row(bucket: str, entry: Entry) -> Dict[str, Any]:
    if entry.is_prefix:
        return _directory(f"{bucket}/{entry.name.rstrip('/')}")
    return {"name": f"{bucket}/{entry.name}", "size": entry.size, "type": "file",
            "modified": entry.modified}
