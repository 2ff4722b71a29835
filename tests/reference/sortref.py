#!/usr/bin/env python3
"""SortDataset on one machine, plainly: what a distributed sort must come to.

    sortref.py SPEC.json INPUT_DIR OUTPUT_DIR
    sortref.py --verify SPEC.json INPUT_DIR OUTPUT_DIR    compares instead of writing

Written from docs/reference/sort-spec.md and sort-definitions.md, on Python's tarfile; it shares no
line and no idea of data structure with the C code: every record is in one list, sorted by one call
of sorted(), its bytes being where the input file is mapped.

The spec is the body of POST /v1/sort.  Buckets do not matter here: INPUT_DIR holds the shards,
their names being paths below it.  Without output_shard_size and with `seed` absent a shuffle cannot
be repeated, and is refused.
"""

import dataclasses
import hashlib
import io
import itertools
import json
import mmap
import os
import re
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import formats  # noqa: E402
from formats import SortError, padded  # noqa: E402
from sortref_compare import compare_output, files_below  # noqa: E402
from sortref_keymap import read_key_map  # noqa: E402
from sortref_names import output_extension, record_key, template_names, with_extension  # noqa: E402

BLOCK = 512


# --- input ---------------------------------------------------------------------------------------

@dataclasses.dataclass
class Record:
    name: bytes
    shard: str
    place: int     # the shard's, in the request
    position: int  # in the shard
    members: list  # (TarInfo, path, bytes in a tar, contents)
    group: int = 0  # format of the external key map

    @property
    def size(self):
        return sum(len(raw) for _, _, raw, _ in self.members)


def raw_name(text):
    return text.encode("utf-8", "surrogateescape")


def pax_records(payload):
    """[(key, the record's bytes)] of an extended header."""
    records = []
    while payload:
        length, _, _ = payload.partition(b" ")
        record = payload[:int(length)]
        key = record[len(length) + 1:].partition(b"=")[0]
        records.append((key, record))
        payload = payload[int(length):]
    return records


def headers(data):
    """(type, bytes, payload) of each header before a member's own, which comes last."""
    while data:
        info = tarfile.TarInfo.frombuf(bytes(data[:BLOCK]), "utf-8", "surrogateescape")
        if info.type not in (b"x", b"g", b"L", b"K"):
            yield info.type, data, b""
            return
        end = BLOCK + padded(info.size)
        yield info.type, data[:end], bytes(data[BLOCK:BLOCK + info.size])
        data = data[end:]


def update_globals(held, gap):
    """The global records after the headers in `gap`: {key: record}, in the order of their
    setting."""
    for kind, _, payload in headers(gap):
        if kind == b"g":
            for key, record in pax_records(payload):
                held.pop(key, None)
                if record.rstrip(b"\n").partition(b"=")[2]:
                    held[key] = record


def folded(raw, held):
    """The member's bytes with the global records in its own extended header."""
    own = b"".join(payload for kind, _, payload in headers(raw) if kind == b"x")
    set_itself = {key for key, _ in pax_records(own)}
    added = b"".join(record for key, record in held.items() if key not in set_itself)
    if not added:
        return raw
    payload = added + own
    info = tarfile.TarInfo("PaxHeaders/global")
    info.type, info.size, info.mode, info.mtime = b"x", len(payload), 0o644, 0
    block = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    block[329:345] = bytes(16)  # no device numbers
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    rest = b"".join(text for kind, text, _ in headers(raw) if kind != b"x")
    return bytes(block) + payload + bytes(padded(len(payload)) - len(payload)) + rest


def has_contents(info):
    """POSIX: a type that nobody knows is read as a file."""
    return info.isreg() or info.type not in tarfile.SUPPORTED_TYPES


def shard_members(shard, data):
    """(TarInfo, bytes, contents) of each member."""
    if not data:
        return
    held, end = {}, 0
    try:
        with tarfile.open(fileobj=Reader(data), mode="r:", encoding="utf-8",
                          errors="surrogateescape") as tar:
            for info in tar:
                # What stands between two members is global headers.
                update_globals(held, data[end:info.offset])
                length = info.size if has_contents(info) else 0
                end = info.offset_data + padded(length)
                yield (info, folded(data[info.offset:end], held),
                       data[info.offset_data:info.offset_data + length])
    except tarfile.TarError as e:
        raise SortError("shard_corrupt", f"{shard}: {e}") from e


def shard_records(shard, place, data, spec):
    """The records of a shard, by first appearance."""
    policy = spec.get("duplicated_records", "abort")
    records, owners = {}, {}
    for info, raw, contents in shard_members(shard, data):
        if info.isdir():
            continue
        path = raw_name(info.name)
        key = record_key(path, spec.get("key_rule", "first_dot"))
        members = records.setdefault(key, {})
        if path in owners and policy == "abort":
            raise SortError("duplicate_record", f"{shard}: {path} comes twice")
        if info.islnk() and raw_name(info.linkname) not in members:
            raise SortError("shard_unsupported", f"{shard}: {path} links to another record")
        members.pop(path, None)  # of duplicates the later one stays, in its own place
        members[path] = (info, path, raw, contents)
        owners[path] = key
    return [Record(key, shard, place, position, list(members.values()))
            for position, (key, members) in enumerate(records.items())]


def map_file(path):
    """The file's bytes, read when they are looked at."""
    with open(path, "rb") as f:
        if os.fstat(f.fileno()).st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ))


class Reader(io.RawIOBase):
    """A file of bytes that are there already, for tarfile."""

    def __init__(self, data):
        super().__init__()
        self.data, self.at = data, 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        self.at = offset + (0, self.at, len(self.data))[whence]
        return self.at

    def readinto(self, buffer):
        piece = self.data[self.at:self.at + len(buffer)]
        buffer[:len(piece)] = piece
        self.at += len(piece)
        return len(piece)


def input_names(spec, directory):
    """[(name, place)] of the shards that there should be."""
    extension = spec.get("input_extension", ".tar")
    given = spec["input_format"]
    if isinstance(given, str):
        given = {"template": given}
    if "objnames" in given:
        return list(with_extension(given["objnames"], extension))
    if "template" in given:
        names = template_names(given["template"])
        if names is not None:
            return list(with_extension(names, extension))
    prefix = given.get("prefix", given.get("template", "")).rstrip("*")
    return sorted((n for n in files_below(directory)
                   if n.startswith(prefix) and n.endswith(extension)), key=raw_name)


def shard_contents(spec, name, place, path):
    """All its records; none where the request puts up with a shard that cannot be read."""
    extension = spec.get("input_extension") or ".tar"
    try:
        tar = map_file(path)
        if extension != ".tar":
            tar = memoryview(formats.to_tar(extension, tar))
        return shard_records(name, place, tar, spec)
    except SortError as e:
        if e.code not in ("shard_corrupt", "shard_unsupported") or \
                spec.get("unreadable_shards", "abort") == "abort":
            raise
        return []


def read_shard(spec, name, place, path, key_map):
    """Those of its records that are sorted."""
    records = shard_contents(spec, name, place, path)
    return with_keys(with_groups(records, key_map, spec), spec)


def shard_codes(spec, name, place, path, key_map):
    """What it may fail with: of several records without a place any may be met first."""
    codes = set()
    try:
        records = shard_contents(spec, name, place, path)
    except SortError as e:
        return {e.code}
    for record in records:
        try:
            with_keys(with_groups([record], key_map, spec), spec)
        except SortError as e:
            codes.add(e.code)
    return codes


def reading_codes(spec, directory):
    """What reading each of the shards by itself may fail with."""
    codes = set()
    try:
        key_map = read_key_map(spec, directory)
    except SortError as e:
        return {e.code}
    for place, name in enumerate(input_names(spec, directory)):
        path = os.path.join(directory, name)
        if os.path.exists(path):
            codes |= shard_codes(spec, name, place, path, key_map)
    return codes


def read_records(spec, directory, key_map=None):
    """Missing shards are known before any is read."""
    shards = [(place, name, os.path.join(directory, name))
              for place, name in enumerate(input_names(spec, directory))]
    missing = [name for _, name, path in shards if not os.path.exists(path)]
    if missing and spec.get("missing_shards", "abort") == "abort":
        raise SortError("shard_missing", missing[0])
    return [record for place, name, path in shards if os.path.exists(path)
            for record in read_shard(spec, name, place, path, key_map)]


def with_groups(records, key_map, spec):
    """Those records that the map knows, with their formats."""
    if key_map is None:
        return records
    for record in records:
        record.group = key_map.find(record.name)
    found = [r for r in records if r.group is not None]
    if len(found) < len(records) and spec.get("ekm_missing_key", "abort") == "abort":
        raise SortError("key_missing", records[0].shard)
    return found


# --- order ---------------------------------------------------------------------------------------

def shuffle_key(seed, record):
    text = seed.to_bytes(8, "little") + raw_name(record.shard) + b"\0" + \
        record.position.to_bytes(8, "little")
    return hashlib.sha256(text).digest()[:8]


def natural_key(name):
    """Digits as numbers, other bytes as they are: digits stand where the byte '0' does."""
    return [(48, len(t.lstrip(b"0")), t.lstrip(b"0")) if t.isdigit() else (t[0], 0, b"")
            for t in re.findall(rb"[0-9]+|[^0-9]", name, re.S)]


NUMBERS = {
    "int": (rb"[+-]?[0-9]+", int),
    "float": (rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", float)
}


def content_key(record, algorithm):
    """None where there is none."""
    wanted = record.name + algorithm["extension"].encode()
    for info, path, _, contents in record.members:
        if path != wanted or not (info.isreg() or info.type not in tarfile.SUPPORTED_TYPES):
            continue
        if len(contents) > 8192:
            return None
        text = bytes(contents).strip(b" \t\n\v\f\r")
        if algorithm["content_key_type"] == "string":
            return text if len(text) <= 4096 and b"\0" not in text else None
        form, number = NUMBERS[algorithm["content_key_type"]]
        if not re.fullmatch(form, text):
            return None
        value = number(text)
        return value if isinstance(value, float) or -2**63 <= value < 2**63 else None
    return None


def with_keys(records, spec):
    """Those records that have something to be ordered by."""
    algorithm = spec.get("algorithm", {})
    if algorithm.get("kind") != "content":
        return records
    found = [r for r in records if content_key(r, algorithm) is not None]
    if len(found) < len(records) and spec.get("missing_keys", "abort") == "abort":
        raise SortError("key_missing", records[0].shard)
    return found


def in_order(records, algorithm):
    """Stable: what `decreasing` reverses is the key alone."""
    kind = algorithm.get("kind") or "alphanumeric"
    down = algorithm.get("decreasing", False)
    by_place = sorted(records, key=lambda r: (r.place, r.position))
    if kind == "none":
        return by_place
    if kind == "alphanumeric":
        return sorted(by_place, key=lambda r: r.name, reverse=down)
    by_name = sorted(by_place, key=lambda r: r.name)
    if kind == "md5":
        return sorted(by_name, key=lambda r: hashlib.md5(r.name).digest()[:8], reverse=down)
    if kind == "natural":
        return sorted(by_name, key=lambda r: natural_key(r.name), reverse=down)
    if kind == "content":
        return sorted(by_name, key=lambda r: content_key(r, algorithm), reverse=down)
    seed = int(algorithm["seed"])
    return sorted(by_name, key=lambda r: shuffle_key(seed, r), reverse=down)


# --- output --------------------------------------------------------------------------------------

def parse_size(value):
    m = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", str(value).strip(), re.I)
    return int(float(m[1]) * 1024 ** " KMGT".index(m[2].upper() or " "))


def output_names(spec, text=None):
    names = template_names(text or spec["output_format"])
    return with_extension(names, output_extension(spec))


def shard_limit(spec, total):
    """Records are added until a shard's bytes reach this."""
    size = parse_size(spec.get("output_shard_size") or 0)
    return size or -(-total // sum(1 for _ in output_names(spec)))


def cut(records, limit):
    """The output shards' records: each shard ends with the record that reaches the limit."""
    shard, size = [], 0
    for record in records:
        shard.append(record)
        size += record.size
        if size >= limit:
            yield shard
            shard, size = [], 0
    if shard:
        yield shard


def check_repeats(name, records, policy):
    names = [r.name for r in records]
    if policy == "abort" and len(set(names)) < len(names):
        raise SortError("duplicate_record", f"{name}: a record name comes twice")


def sort_dataset(spec, directory):
    """Yields (name, bytes) of each output; every shard has its name before any is made."""
    shards = list(plan_shards(spec, directory))
    entries = []
    for name, shard in shards:
        records = [(r.name, r.members) for r in shard]
        data = formats.encode(output_extension(spec), records)
        yield name, data
        entries.append(wids_entry(spec, name, shard, data))
        if spec.get("dali_indexes"):
            yield name.removesuffix(".tar") + ".idx", dali_index(name, data)
    if spec.get("wids_index") and entries:
        index = {"__kind__": "wids-shard-index-v1", "wids_version": 1, "shardlist": entries}
        yield spec["wids_index"], json.dumps(index).encode()


def wids_entry(spec, name, shard, data):
    """What wids is told of a shard; its samples are members side by side with one name."""
    paths = [path for record in shard for _, path, _, _ in record.members]
    samples = itertools.groupby(paths, key=lambda path: record_key(path, "first_dot"))
    directory = os.path.dirname(spec.get("wids_index") or "")
    entry = {"url": os.path.relpath(name, directory or "."), "nsamples": sum(1 for _ in samples)}
    return {**entry, "filesize": len(data)} if output_extension(spec) == ".tar" else entry


def dali_index(name, data):
    """What DALI's wds2idx would write of a tar."""
    samples = []
    for base, component in dali_components(name, data):
        if not samples or samples[-1][0] != base:
            samples.append((base, []))
        samples[-1][1].append(component)
    return b"".join([b"v1.2 %d\n" % len(samples)] + [b" ".join(c) + b"\n" for _, c in samples])


def dali_components(name, data):
    """(what names the sample, its text) of each regular file."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", encoding="utf-8",
                      errors="surrogateescape") as tar:
        for info in tar:
            path = raw_name(info.name)
            dot = path.find(b".", path.rfind(b"/") + 1)
            base, extension = (path[:dot], path[dot + 1:]) if dot >= 0 else (path, path)
            if info.type not in (tarfile.REGTYPE,
                                 tarfile.AREGTYPE) or not base or base.endswith(b"/"):
                continue
            if not extension or re.search(rb"\s", path):
                raise SortError("shard_unsupported", f"{name}: an index cannot hold {path}")
            yield base, b"%b %d %d %b" % (extension, info.offset_data, info.size, path)


def plan_shards(spec, directory):
    """Yields (name, records) of each output shard."""
    key_map = read_key_map(spec, directory)
    records = in_order(read_records(spec, directory, key_map), spec.get("algorithm", {}))
    used = set()
    for group, text in enumerate(key_map.formats if key_map else [spec["output_format"]]):
        for name, shard in named([r for r in records if r.group == group], spec, text):
            if name in used:
                raise SortError("invalid_spec", f"{name} is made by two formats")
            used.add(name)
            yield name, shard


def named(records, spec, text):
    """(name, records) of each output shard of one format of names."""
    names = output_names(spec, text)
    limit = shard_limit(spec, sum(r.size for r in records)) if records else 1
    for shard in cut(records, limit):
        name = next(names, None)
        if name is None:
            raise SortError("template_too_small", text)
        check_repeats(name, shard, spec.get("duplicated_output_records", "warn"))
        yield name, shard


def write_output(spec, input_dir, output_dir):
    """Returns how many shards it wrote."""
    count = 0
    for name, data in sort_dataset(spec, input_dir):
        path = os.path.join(output_dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        count += 1
    return count


def main(args):
    verify = args[:1] == ["--verify"]
    if len(args) != 3 + verify:
        print(__doc__, file=sys.stderr)
        return 2
    spec_path, input_dir, output_dir = args[verify:]
    with open(spec_path, encoding="utf-8") as f:
        spec = json.load(f)
    try:
        if verify:
            difference = compare_output(sort_dataset(spec, input_dir), output_dir)
            print(difference or "every shard is as it must be")
            return 1 if difference else 0
        print(f"{write_output(spec, input_dir, output_dir)} shards")
    except SortError as e:
        print(f"sortref: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
