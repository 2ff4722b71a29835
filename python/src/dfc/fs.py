"""dfc://BUCKET/OBJECT for everything that speaks fsspec: pandas, pyarrow, Ray, zarr, torch.

    import fsspec
    with fsspec.open("dfc://train/a.csv", endpoint="http://127.0.0.1:8080") as f:
        ...

Directories are prefixes of names.  A bucket can be made and removed by mkdir() and rmdir(); below
it they do nothing, since an object needs no directory.  Nothing is cached: a list shows what is.
"""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from fsspec.compression import compr
from fsspec.core import get_compression
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from ._call import read_json
from ._files import SPOOL, Compressed, Upload, copy_stream, download
from .bucket import Bucket
from .client import Client
from .errors import Conflict, Denied, Invalid, NotFound, Precondition
from .job import JobFailed
from .object import Entry

THREADS = 16  #: of cat_ranges()
GAP = 64 << 10  #: ranges of one object that are closer than this are read as one
JOB_MIN = 100  #: from so many names on, rm() lets the cluster delete them
JOB_NAMES = 10_000  #: names of one such job

#: fsspec ignores what it does not know: the client would ask another cluster, or not log in.
_OF_S3FS = {"endpoint_url": "endpoint", "client_kwargs": "endpoint", "key": "access_key",
            "secret": "secret_key"}


class DfcFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """`endpoint`, `profile`, `token`, `access_key`, `secret_key`, `ca_file` and `direct` are those
    of dfc.Client."""

    protocol = "dfc"
    root_marker = ""

    def __init__(self, endpoint: Optional[str] = None, **options: Any) -> None:
        for name, instead in _OF_S3FS.items():
            if name in options:
                raise Invalid(f"'{name}' is an option of s3fs; here it is '{instead}'",
                              code="invalid_argument")
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

    def open(self, path: str, mode: str = "rb", block_size: Any = None,
             cache_options: Optional[Dict[str, Any]] = None, compression: Optional[str] = None,
             **options: Any) -> Any:
        if compression is None or "r" in mode or "b" not in mode:
            return super().open(path, mode, block_size=block_size, cache_options=cache_options,
                                compression=compression, **options)
        file = super().open(path, mode, **options)
        kind = get_compression(path, compression)
        return file if kind is None else Compressed(file, compr[kind](file, mode="wb"))

    def _open(self, path: str, mode: str = "rb", block_size: Union[int, str, None] = "default",
              autocommit: bool = True, cache_options: Optional[Dict[str, Any]] = None,
              **options: Any) -> Any:
        bucket, name = self._at(path)
        if mode == "xb" and self.exists(path):
            raise FileExistsError(path)  # else at close()
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
            first, last = start or 0, end
            if (first < 0 and last is not None) or (last is not None and last < 0):
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

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        """`mode` "create": FileExistsError if there is such an object."""
        bucket, name = self._at(path)
        with _as_file_errors(path):
            bucket.put(name, value, if_absent=mode == "create")

    def put_file(self, lpath: str, rpath: str, callback: Any = None, mode: str = "overwrite",
                 **_: Any) -> None:
        if os.path.isdir(lpath):
            return
        bucket, name = self._at(rpath)
        with _as_file_errors(rpath):
            info = bucket.put_file(name, lpath, if_absent=mode == "create")
        if callback is not None:
            callback.set_size(info.size)
            callback.absolute_update(info.size)

    def get_file(self, rpath: str, lpath: Any, callback: Any = None, outfile: Any = None,
                 **_: Any) -> None:
        size, moved = ((callback.set_size, callback.relative_update) if callback is not None
                       else (_nothing, _nothing))
        if not self.split(rpath)[1]:
            os.makedirs(lpath, exist_ok=True)
            return
        bucket, name = self._at(rpath)
        try:
            if outfile is None:
                download(bucket, name, os.fspath(lpath), size, moved)
            else:
                with bucket.open(name) as source:
                    copy_stream(source, outfile, moved)
        except NotFound as e:
            if not self.isdir(rpath):
                raise FileNotFoundError(f"{rpath}: {e.message}") from e
            os.makedirs(lpath, exist_ok=True)
        except Denied as e:
            raise PermissionError(f"{rpath}: {e.message}") from e

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
        """A bucket; below it nothing has to be made.  fsspec calls this before it writes, so that a
        misspelled bucket must not be made on the way to an object."""
        bucket, name = self.split(path)
        if name:
            if not self.client.bucket(bucket).exists():
                raise FileNotFoundError(f"{path}: there is no bucket '{bucket}': make it with mkdir()")
            return
        try:
            self.client.bucket(bucket).create(exist_ok=exist_ok)
        except Conflict as e:
            raise FileExistsError(f"there is a bucket '{bucket}'") from e

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        """An empty object; without `truncate`, one that is there stays as it is."""
        bucket, name = self._at(path)
        try:
            with _as_file_errors(path):
                bucket.put(name, b"", if_absent=not truncate)
        except FileExistsError:
            pass

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
        """A directory needs `recursive`; a bucket stays, empty (rmdir)."""
        names: Dict[str, List[str]] = {}
        for one in [path] if isinstance(path, str) else path:
            plain = not any(c in one for c in "*?[")
            if plain and not recursive and self.info(one)["type"] == "directory":
                raise IsADirectoryError(f"'{one}' is a directory: rm(…, recursive=True)")
            if plain and recursive and maxdepth is None:
                rows = self._below(one)
            else:
                rows = [self.split(p) for p in self.expand_path(one, recursive=recursive,
                                                                maxdepth=maxdepth)]
            for bucket, name in rows:
                names.setdefault(bucket, []).append(name)
        for bucket, these in names.items():
            with _as_file_errors(bucket):
                self._delete(self.client.bucket(bucket), [name for name in these if name])

    def _below(self, path: str) -> List[Tuple[str, str]]:
        """All objects of a tree, also those whose names end with '/'."""
        bucket, name = self.split(path)
        rows = [(bucket, e.name) for e in self._list(bucket, name + "/" if name else "")]
        try:
            if name:
                self.client.bucket(bucket).head(name)
                rows.append((bucket, name))
        except NotFound as e:
            if not rows:
                raise FileNotFoundError(f"{bucket}/{name}") from e
        return rows

    @staticmethod
    def _delete(bucket: Bucket, names: List[str]) -> None:
        """Names that are not there are directories of the caller's, or were deleted meanwhile."""
        if len(names) < JOB_MIN:
            for name in names:
                bucket.delete(name, missing_ok=True)
            return
        for at in range(0, len(names), JOB_NAMES):
            try:
                bucket.delete_many(names=names[at:at + JOB_NAMES]).wait()
            except JobFailed as e:
                if e.code != "nothing_matched":
                    raise

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        if not self.split(path1)[1]:
            return
        source, name = self._at(path1)
        to, new = self._at(path2)
        with tempfile.SpooledTemporaryFile(SPOOL) as spool:
            try:
                with source.open(name) as f:
                    info = f.raw.info  # type: ignore[attr-defined]
                    copy_stream(f, spool, _nothing)
            except NotFound as e:
                if self.isdir(path1):
                    return
                raise FileNotFoundError(f"{path1}: {e.message}") from e
            if (source.name, name) == (to.name, new):
                return
            spool.seek(0)
            with _as_file_errors(path2):
                to.put(new, spool, content_type=info.content_type or None, meta=info.meta)

    def mv(self, path1: str, path2: str, recursive: bool = False, maxdepth: Optional[int] = None,
           **options: Any) -> None:
        """Within a bucket, one object is renamed; the rest is a copy, and then a deletion."""
        if isinstance(path1, str) and isinstance(path2, str):
            source, target = self.split(path1), self.split(path2)
            if source == target:
                self.info(path1)
                return
            if recursive and f"{'/'.join(target)}/".startswith(f"{'/'.join(source)}/"):
                raise ValueError(f"'{path1}' cannot be moved into itself")
            if not recursive and source[0] == target[0] and source[1] and target[1] and \
                    not any(c in path1 for c in "*?["):
                self._rename(path1, path2)
                return
        super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **options)

    def _rename(self, path1: str, path2: str) -> None:
        (bucket, name), (_, new) = self.split(path1), self.split(path2)
        if path2.endswith("/") or self.isdir(path2):
            new += "/" + name.rpartition("/")[2]
        with _as_file_errors(path1):
            if new != name:
                self.client.bucket(bucket).rename(name, new)

    def sign(self, path: str, expiration: int = 100, **_: Any) -> str:
        """A URL with which anybody may read the object for `expiration` seconds."""
        bucket, name = self._at(path)
        reply = self.client.send_json("POST", "/v1/auth/url", {
            "method": "GET", "bucket": bucket.name, "object": name, "seconds": expiration})
        return str(read_json(reply)["url"])


class Download(AbstractBufferedFile):  # type: ignore[misc]
    """One version of an object, read in ranges."""

    def __init__(self, fs: DfcFileSystem, path: str, bucket: Bucket, name: str,
                 **options: Any) -> None:
        self._bucket, self._name = bucket, name
        super().__init__(fs, path, "rb", **options)
        if self.details["type"] == "directory":
            raise IsADirectoryError(path)
        self._etag = str(self.details["etag"])

    def _fetch_range(self, start: int, end: int) -> bytes:
        if end <= start:
            return b""
        try:
            return self._bucket.get(self._name, offset=start, length=end - start,
                                    if_match=self._etag)
        except (Precondition, NotFound) as e:
            raise OSError(f"{self.path} changed while it was read") from e


class _as_file_errors:
    """Errors of the store as Python's own of files."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: Any, error: Any, _trace: Any) -> None:
        if isinstance(error, NotFound):
            raise FileNotFoundError(f"{self._path}: {error.message}") from error
        if isinstance(error, Denied):
            raise PermissionError(f"{self._path}: {error.message}") from error
        if isinstance(error, Precondition):
            raise FileExistsError(f"{self._path}: {error.message}") from error


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


def _nothing(_: int) -> None:
    """In place of a callback."""


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
