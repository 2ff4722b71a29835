"""Checkpoints of torch.distributed.checkpoint in a bucket.

    import torch.distributed.checkpoint as dcp
    from dfc.torch.checkpoint import DfcReader, DfcWriter, keep_last, latest

    dcp.save(state, storage_writer=DfcWriter(bucket, f"run1/step-{step}"))
    dcp.load(state, storage_reader=DfcReader(bucket, latest(bucket, "run1")))

A checkpoint is a folder of objects, laid out as torch's FileSystemWriter does.  `.metadata` is stored
last, by the coordinator, and makes the checkpoint complete.  What a save leaves that was killed is no
checkpoint.  `.metadata` is a pickle: load checkpoints only of those whom you would let run code.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import uuid
import warnings
from collections import deque
from concurrent.futures import Future as Running
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Set, Tuple, Union

import torch
from torch.distributed.checkpoint.filesystem import _StoragePrefix
from torch.distributed.checkpoint.metadata import StorageMeta
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter

from .. import _checkpoint
from .._checkpoint import Piece
from ..bucket import Bucket
from ..errors import Conflict, Corrupt, Error, Invalid, NotFound, Precondition
from ..object import compare
from ._loaded import loaded
from ._saved import SavedFile

METADATA = ".metadata"
VERSION = "1.0.0"  #: of the layout, as torch calls it
FILE_SIZE = 1 << 30  #: bytes of a file, unless one tensor is larger


class _Place:
    """The bucket and name of a checkpoint."""

    _scheme = "dfc://"

    def __init__(self, bucket: Bucket, name: str, threads: int) -> None:
        super().__init__()
        if threads < 1:
            raise Invalid("threads has to be at least 1", code="invalid_argument")
        self._bucket, self._name, self._threads = bucket, name.rstrip("/"), threads
        self._id = str(uuid.uuid4())  # of this save or load

    def reset(self, checkpoint_id: "Union[str, os.PathLike[str], None]" = None) -> None:
        """Of torch: the next checkpoint.  `checkpoint_id` is its name, or dfc://BUCKET/NAME."""
        self._id = str(uuid.uuid4())
        if not checkpoint_id:
            return
        name, own = os.fspath(checkpoint_id), f"{self._scheme}{self._bucket.name}/"
        if name.startswith(self._scheme) and not name.startswith(own):
            raise Invalid(f"checkpoint_id '{name}' is not in the bucket '{self._bucket.name}' of this "
                          f"object: make another one for that bucket", code="invalid_argument")
        self._name = name[len(own):].rstrip("/") if name.startswith(own) else name.rstrip("/")

    @property
    def checkpoint_id(self) -> str:
        """dfc://BUCKET/NAME."""
        return f"{self._scheme}{self._bucket.name}/{self._name}"

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: "Union[str, os.PathLike[str]]") -> bool:
        """Of torch: whether it is a name of a checkpoint."""
        return bool(os.fspath(checkpoint_id).strip("/"))

    def _file(self, name: str) -> str:
        if not self._name:
            raise Invalid("the checkpoint has no name: give it here, or as checkpoint_id",
                          code="invalid_argument")
        return f"{self._name}/{name}"


class DfcWriter(_Place, StorageWriter):  # type: ignore[misc]
    """Saves.  Each rank sends its files in `threads` threads, and the coordinator `.metadata` last.

    A file has at most `file_size` bytes, unless one tensor is larger.  A call that failed is repeated
    by the client, which reads the state once more.  A thread holds one tensor on its way: none that is
    on the CPU is copied, unless it is part of a larger storage.

    An existing checkpoint is refused.  With `overwrite` it stays complete until the new one is: each
    save has names of its own for its files.  What was in the folder before is deleted at the end.
    """

    def __init__(self, bucket: Bucket, name: str = "", *, threads: int = 4,
                 file_size: int = FILE_SIZE, overwrite: bool = False) -> None:
        super().__init__(bucket, name, threads)
        if file_size < 1:
            raise Invalid("file_size has to be at least 1 byte", code="invalid_argument")
        self._file_size, self._overwrite = file_size, overwrite
        self._replaced: Optional[str] = None  # the ETag of the checkpoint that this one replaces
        self._before: Set[str] = set()  # files of earlier saves

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Of torch: all ranks call it first."""
        self._file(METADATA)
        if not kwargs.get("use_collectives", True):  # torch looks for a parameter of that name
            raise Invalid("use_collectives=False makes each rank commit alone, so that a checkpoint "
                          "could be half there: leave it out", code="not_supported")

    def prepare_local_plan(self, plan: Any) -> Any:
        """Of torch: nothing has to be prepared."""
        return plan

    def prepare_global_plan(self, plans: List[Any]) -> List[Any]:
        """Of torch: the coordinator looks whether there is such a checkpoint, and names the files."""
        self._replaced = self._existing()
        folder = self._file("")
        self._before = {entry.name for entry in self._bucket.list(folder)
                        if _checkpoint.is_data(entry.name[len(folder):])}
        return [dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{rank}_{self._id[:8]}_"))
                for rank, plan in enumerate(plans)]

    def _existing(self) -> Optional[str]:
        etag = _etag(self._bucket, self._file(METADATA))
        if etag is not None and not self._overwrite:
            raise Conflict(f"there is a checkpoint '{self.checkpoint_id}' already: choose another "
                           "name, or give overwrite=True", code="object_exists")
        return etag

    def write_data(self, plan: Any, planner: Any) -> Any:
        """Of torch: sends the files of this rank."""
        sizes = [_size(item) for item in plan.items]
        files = [SavedFile(f"{plan.storage_data.prefix}{number}.distcp",
                           [plan.items[i] for i in items], planner)
                 for number, items in enumerate(_checkpoint.split(sizes, self._threads,
                                                                  self._file_size))]
        with ThreadPoolExecutor(self._threads, "dfc-save") as pool:
            running = [pool.submit(self._send, file) for file in files]
            try:
                results = [result for one in running for result in one.result()]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        future: Any = torch.futures.Future()
        future.set_result(results)
        return future

    def _send(self, file: SavedFile) -> List[Any]:
        info = self._bucket.put(self._file(file.name), file)
        if info.checksum_type == "xxh3":
            compare(file.sent, info.checksum)
        return file.results

    def finish(self, metadata: Any, results: List[List[Any]]) -> None:
        """Of torch: the coordinator stores `.metadata`, and deletes what it does not name."""
        metadata.version = VERSION
        metadata.storage_data = {r.index: r.storage_data for rank in results for r in rank}
        metadata.storage_meta = self.storage_meta()
        self._commit(pickle.dumps(metadata))
        self._sweep()

    def storage_meta(self) -> Any:
        """Of torch: the name of the checkpoint, and a number of this save."""
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self._id)

    def _commit(self, data: bytes) -> None:
        """A call under a condition is not repeated where it may have been done: then this looks."""
        name = self._file(METADATA)
        try:
            self._bucket.put(name, data, if_absent=self._replaced is None, if_match=self._replaced)
        except Error as e:
            if self._is_committed(data):
                return
            if isinstance(e, Precondition):
                raise Precondition(f"another save of '{self.checkpoint_id}' was faster: save under "
                                   "another name", status=e.status, code=e.code) from e
            raise

    def _is_committed(self, data: bytes) -> bool:
        try:
            return self._bucket.get(self._file(METADATA)) == data
        except Error:
            return False  # the error before is told

    def _sweep(self) -> None:
        """Files of the checkpoint that was replaced, or of a save that was killed.  What came since may
        be of a save that runs now."""
        try:
            for name in sorted(self._before):
                self._bucket.delete(name, missing_ok=True)
        except Error as e:
            warnings.warn(f"the checkpoint '{self.checkpoint_id}' is complete; files of an earlier "
                          f"save are left beside it: {e}")


def _size(item: Any) -> int:
    """Of what a plan writes, in bytes; 0: not known before it is made."""
    if item.tensor_data is None:
        return 0
    count = 1
    for length in item.tensor_data.chunk.sizes:
        count *= length
    return count * int(item.tensor_data.properties.dtype.itemsize)


class DfcReader(_Place, StorageReader):  # type: ignore[misc]
    """Loads, on any number of ranks.  `threads` GETs at a time read what the plan of the rank wants,
    in ranges of at most 32 MiB.

    What DfcWriter saved is compared with its checksums, in blocks of 4 MiB.  The elements of a tensor
    arrive in the tensor itself if it is on the CPU, else in a copy of the part that is loaded.
    Checkpoints that torch's FileSystemWriter made can be loaded, too: tensor by tensor, unchecked.
    """

    def __init__(self, bucket: Bucket, name: str = "", *, threads: int = 8) -> None:
        super().__init__(bucket, name, threads)
        self._places: Dict[Any, Any] = {}
        self._etags: Dict[str, str] = {}

    def reset(self, checkpoint_id: "Union[str, os.PathLike[str], None]" = None) -> None:
        """Of torch: the next checkpoint.  `checkpoint_id` is its name, or dfc://BUCKET/NAME."""
        super().reset(checkpoint_id)
        self._places, self._etags = {}, {}

    def read_metadata(self) -> Any:
        """Of torch: what the checkpoint has."""
        try:
            data = self._bucket.get(self._file(METADATA))
        except NotFound as e:
            if e.code != "object_not_found":
                raise
            raise NotFound(f"'{self.checkpoint_id}' is no complete checkpoint, as it has no "
                           f"'{METADATA}': dfc.torch.checkpoint.complete() lists those that are",
                           status=e.status, code=e.code) from e
        metadata = pickle.loads(data)
        if getattr(metadata, "storage_meta", None) is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self._id
        return metadata

    def set_up_storage_reader(self, metadata: Any, is_coordinator: bool) -> None:
        """Of torch: all ranks call it before they read."""
        if metadata.storage_data is None:
            raise Corrupt(f"the metadata of '{self.checkpoint_id}' do not say where its items are: "
                          "load another checkpoint", code="checksum_mismatch")
        self._places, self._etags = metadata.storage_data, {}

    def prepare_local_plan(self, plan: Any) -> Any:
        """Of torch: nothing has to be prepared."""
        return plan

    def prepare_global_plan(self, plans: List[Any]) -> List[Any]:
        """Of torch: nothing has to be prepared."""
        return plans

    def read_data(self, plan: Any, planner: Any) -> Any:
        """Of torch: reads what this rank wants."""
        running: Deque[Tuple[List[Piece], Running[None]]] = deque()
        with ThreadPoolExecutor(self._threads, "dfc-load") as pool:
            try:
                for group in _checkpoint.reads(self._pieces(plan, planner)):
                    if len(running) > self._threads:
                        _arrived(*running.popleft())
                    running.append((group, pool.submit(self._read, group)))
                while running:
                    _arrived(*running.popleft())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        future: Any = torch.futures.Future()
        future.set_result(None)
        return future

    def _pieces(self, plan: Any, planner: Any) -> Iterator[Piece]:
        """In the order of the files.  An item gets its room when its first piece is asked for."""
        rows = [(request, self._places[request.storage_index]) for request in plan.items]
        for request, info in sorted(rows, key=lambda row: (row[1].relative_path, row[1].offset)):
            yield from loaded(request, info, planner).begin()

    def _read(self, group: List[Piece]) -> None:
        begin, last = group[0].at, group[-1]
        size = last.at + last.end - last.begin - begin
        if size == 0:
            return
        name = self._file(group[0].file)
        with self._bucket.open(name, offset=begin, length=size, buffering=0) as reader:
            etag = reader.info.etag  # type: ignore[attr-defined]
            if self._etags.setdefault(name, etag) != etag:
                raise Precondition(f"'{name}' was replaced while it was loaded: load again",
                                   code="precondition_failed")
            fill, at = _filler(name, reader), begin
            for piece in group:
                fill(memoryview(bytearray(piece.at - at)))
                piece.owner.fill(piece, fill)
                at = piece.at + piece.end - piece.begin


def _arrived(group: List[Piece], read: "Running[None]") -> None:
    read.result()
    for piece in group:
        piece.owner.filled()


def _filler(name: str, reader: Any) -> Callable[[memoryview], None]:
    """Reads as many bytes as a view has."""
    def fill(view: memoryview) -> None:
        while len(view) > 0:
            count = reader.readinto(view)
            if count == 0:
                raise Corrupt(f"'{name}' is shorter than the metadata of the checkpoint say: load "
                              "another checkpoint", code="bad_length")
            view = view[count:]
    return fill


# --- the checkpoints of a run ---


def complete(bucket: Bucket, folder: str = "") -> List[str]:
    """The names of the complete checkpoints in a folder.  step-900 comes before step-1000: digits
    count as numbers."""
    return [name for name in _all(bucket, folder) if _is_complete(bucket, name)]


def latest(bucket: Bucket, folder: str = "") -> Optional[str]:
    """The last of complete(); None if there is none."""
    return next((name for name in reversed(_all(bucket, folder)) if _is_complete(bucket, name)), None)


def keep_last(bucket: Bucket, count: int, folder: str = "") -> List[str]:
    """Deletes all but the last `count` complete checkpoints of a folder, and says which.  What killed
    saves have left before them is deleted, too; later saves may be under way.  Other folders stay.
    One process calls it."""
    if count < 1:
        raise Invalid("count has to be at least 1", code="invalid_argument")
    names = _all(bucket, folder)
    kept = [name for name in names if _is_complete(bucket, name)][-count:]
    older = names[:names.index(kept[0])] if len(kept) == count else []
    gone = [name for name in older if _is_complete(bucket, name) or _is_left(bucket, name)]
    for name in gone:
        bucket.delete(f"{name}/{METADATA}", missing_ok=True)  # first: no half of it is complete
        bucket.delete_many(prefix=name + "/").wait()
    return gone


def _all(bucket: Bucket, folder: str) -> List[str]:
    prefix = folder.rstrip("/") + "/" if folder.strip("/") else ""
    return sorted((entry.name.rstrip("/") for entry in bucket.list(prefix, delimiter="/")
                   if entry.is_prefix), key=_checkpoint.order)


def _is_complete(bucket: Bucket, name: str) -> bool:
    return _etag(bucket, f"{name}/{METADATA}") is not None


def _etag(bucket: Bucket, name: str) -> Optional[str]:
    """None: there is no such object."""
    try:
        return bucket.head(name).etag
    except NotFound:
        return None


def _is_left(bucket: Bucket, name: str) -> bool:
    """Whether all that a folder has are files of a checkpoint."""
    return all(_checkpoint.is_data(entry.name[len(name) + 1:]) for entry in bucket.list(name + "/"))
