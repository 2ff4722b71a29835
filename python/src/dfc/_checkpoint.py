"""What dfc.torch.checkpoint decides: the items of each file, the bytes that a load reads, and the
order of checkpoints.  Pure: it needs neither torch nor a cluster."""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

BLOCK = 4 << 20  #: bytes of an item that have one checksum
READ = 32 << 20  #: bytes of one GET, at most
GAP = 64 << 10  #: pieces of one file that are closer than this are read by one GET
_DIGITS = re.compile(r"([0-9]+)")
#: A file that a writer of torch or of dfc made: __<rank>_<number>.distcp, or with a mark.
is_data = re.compile(r"__[0-9]+_(?:[0-9a-f]{8}_)?[0-9]+\.distcp").fullmatch


def split(sizes: Sequence[int], threads: int, file_size: int) -> List[List[int]]:
    """The numbers of the items of each file.  There is a file for each thread, and more if they would
    be larger than `file_size`.  The largest item comes first, each to the file with the fewest bytes."""
    count = min(len(sizes), max(threads, -(-sum(sizes) // file_size)))
    files: List[Tuple[int, int, List[int]]] = [(0, i, []) for i in range(count)]
    for item in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        size, number, items = heapq.heappop(files)
        items.append(item)
        heapq.heappush(files, (size + max(sizes[item], 1), number, items))
    return [sorted(items) for _, _, items in sorted(files, key=lambda f: f[1])]


def flat(shape: Sequence[int], offsets: Sequence[int],
         lengths: Sequence[int]) -> Optional[Tuple[int, int]]:
    """The first element of a box within a contiguous tensor, and their number; None if other
    elements are between them."""
    first, count, stride, cut = 0, 1, 1, False
    for size, offset, length in zip(reversed(shape), reversed(offsets), reversed(lengths)):
        if cut and length != 1:
            return None
        cut = cut or length != size
        first += offset * stride
        count *= length
        stride *= size
    return first, count


@dataclass(frozen=True)
class Want:
    """Bytes of an item: `begin` to `end` of its `length`.  The item begins at `offset` of its file."""

    file: str
    offset: int
    length: int
    begin: int
    end: int
    block: int = BLOCK


@dataclass(frozen=True)
class Piece:
    """A part of a want that is read at once: whole blocks of the item, as they have the checksums.
    `begin` and `end` count from the beginning of the item, `at` from that of the file."""

    owner: Any
    file: str
    at: int
    begin: int
    end: int


def pieces(want: Want, owner: Any, read: int = READ) -> List[Piece]:
    """At least one, also of an item without bytes."""
    block = want.block
    begin = want.begin // block * block
    end = min(-(-want.end // block) * block, want.length)
    step = max(read // block, 1) * block
    return [Piece(owner, want.file, want.offset + at, at, min(at + step, end))
            for at in range(begin, end, step)] or [Piece(owner, want.file, want.offset, 0, 0)]


def reads(all_pieces: Iterable[Piece], read: int = READ, gap: int = GAP) -> Iterator[List[Piece]]:
    """Groups of pieces, each for one GET.  The pieces come in the order of files and places."""
    group: List[Piece] = []
    for piece in all_pieces:
        if group:
            last = group[-1]
            end = last.at + last.end - last.begin
            near = last.file == piece.file and 0 <= piece.at - end <= gap
            if not near or piece.at + piece.end - piece.begin - group[0].at > read:
                yield group
                group = []
        group.append(piece)
    if group:
        yield group


def order(name: str) -> "List[Union[str, int]]":
    """A key by which step-900 comes before step-1000: digits count as numbers."""
    return [int(part) if i % 2 else part for i, part in enumerate(_DIGITS.split(name))]
