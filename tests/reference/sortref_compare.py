"""Compares shards with those that sortref.py has made."""

import io
import itertools
import json
import os
import tarfile

import formats
from formats import SortError
from sortref_names import formats_of


def files_below(directory):
    for at, _, files in os.walk(directory):
        for name in files:
            yield os.path.relpath(os.path.join(at, name), directory)


def member_facts(data):
    """Everything that tarfile says of each member of an archive, and its contents."""
    if not data:
        return []
    facts = []
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", encoding="utf-8",
                      errors="surrogateescape") as tar:
        for info in tar:
            fact = info.get_info()
            fact["pax_headers"] = dict(info.pax_headers)
            fact["contents"] = tar.extractfile(info).read() if info.isreg() else None
            facts.append(fact)
    return facts


def compare_file(name, extension, got, wanted):
    """A sentence on the first difference, or None."""
    try:
        got, wanted = formats.facts(extension, got), formats.facts(extension, wanted)
    except SortError as e:
        return f"{name}: cannot be read: {e}"
    if extension in formats.COMPRESS:
        return compare_shard(name, got, wanted)
    if got == wanted:
        return None
    at = next((i for i, (x, y) in enumerate(zip(got, wanted)) if x != y),
              min(len(got), len(wanted)))
    return (f"{name}: number {at} of {len(got)} and {len(wanted)} is {str(got[at:at + 1])[:300]} "
            f"instead of {str(wanted[at:at + 1])[:300]}")


def compare_shard(name, got, wanted):
    """A sentence on the first difference, or None."""
    ours, theirs = member_facts(wanted), member_facts(got)
    for i, (a, b) in enumerate(itertools.zip_longest(ours, theirs)):
        if a is None or b is None:
            return f"{name}: {len(theirs)} members instead of {len(ours)}"
        for field, value in a.items():
            if b.get(field) != value:
                return (f"{name}: member {i} '{a['name']}': {field} is {str(b.get(field))[:200]!r} "
                        f"instead of {str(value)[:200]!r}")
    if got != wanted:
        at = next((i for i, (x, y) in enumerate(zip(got, wanted)) if x != y),
                  min(len(got), len(wanted)))
        return f"{name}: members agree, but byte {at} differs ({len(got)} and {len(wanted)} bytes)"
    return None


def compare_output_file(name, got, wanted):
    """Of a shard, or of an index."""
    if name.endswith(".json"):
        got, wanted = json.loads(got), json.loads(wanted)
    if not name.endswith((".json", ".idx")):
        return compare_file(name, formats_of(name), got, wanted)
    return None if got == wanted else f"{name}: it is {got} instead of {wanted}"[:2000]


def compare_output(wanted, directory):
    """A sentence on the first difference between [(name, bytes)] and a directory, or None."""
    left = set(files_below(directory))
    for name, data in wanted:
        if name not in left:
            return f"shard {name} is missing; there are {sorted(left)[:5]}"
        left.remove(name)
        with open(os.path.join(directory, name), "rb") as f:
            difference = compare_output_file(name, f.read(), data)
        if difference:
            return difference
    return f"shards that should not be: {sorted(left)[:5]}" if left else None
