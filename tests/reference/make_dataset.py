#!/usr/bin/env python3
"""Random datasets of tar shards, the same for the same seed.

    make_dataset.py SEED DIR      writes the shards, prints their names

What a well-meaning program may write stands in them: empty shards, records of one and of many
members, members of a record apart from each other, names beyond 100 and 256 bytes, unicode and
bytes that are no unicode, contents of no bytes and around the block size, directories, links,
devices, large owners, times with fractions and before 1970, extended attributes, extended headers
that hold for all that follows; as ustar, GNU, PAX and all of them in one file.
"""

import io
import os
import random
import sys
import tarfile

FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
BLOCK = 512
WORDS = ("cat", "dog", "été", "猫", "data set", "a", "b", "0", "00", "10", "9", "Zebra", "zebra",
         "sample", "x-y_z", "~", "#1", "naïve", "🦊")


def word(rng):
    return rng.choice(WORDS) + (str(rng.randrange(1000)) if rng.random() < 0.7 else "")


def record_key(rng):
    """The path of a record's members up to the first dot of the basename."""
    kind = rng.random()
    directories = [word(rng) for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 4)))]
    if kind < 0.05:
        directories = ["d%02d.dir" % i for i in range(rng.randrange(15, 40))]  # > 100 with slashes
    base = word(rng)
    if kind > 0.95:
        base = "long" + "n" * rng.randrange(90, 400)
    elif kind > 0.92:
        base = "byte\udcff\udc80" + str(rng.randrange(100))  # \xff\x80: no UTF-8
    elif kind > 0.90:
        base = ""  # ".hidden": nothing stands before its first dot
    return "/".join(directories + [base])


def suffix(rng, i):
    return rng.choice((".cls", ".jpg", ".json", ".seg.png", ".tar.gz", ".", "..x", ".π")) + \
        (str(i) if i else "")


def contents(rng):
    size = rng.choice((0, 0, 1, 17, 511, 512, 513, 1023, 1024, 1025,
                       rng.randrange(4096), rng.randrange(4096), rng.randrange(40000)))
    return rng.randbytes(size)


def member_type(rng, key, earlier):
    """(type, linkname)"""
    kind = rng.random()
    if kind < 0.04:
        return tarfile.SYMTYPE, rng.choice(("target", "../up/" + word(rng), "l" * 150))
    if kind < 0.06 and earlier:
        return tarfile.LNKTYPE, rng.choice(earlier)
    if kind < 0.08:
        return rng.choice((tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE)), ""
    if kind < 0.12:
        return tarfile.DIRTYPE, ""
    if kind < 0.14:
        return rng.choice((tarfile.CONTTYPE, b"Z")), ""  # as good as files
    return tarfile.REGTYPE, ""


HAVE_CONTENTS = (tarfile.REGTYPE, tarfile.CONTTYPE, b"Z")


def dress(rng, info, fmt):
    """Metadata, within what the format can hold."""
    wide = fmt != tarfile.USTAR_FORMAT
    info.mode = rng.choice((0o644, 0o755, 0o600, 0o4711, 0))
    info.uid = rng.choice((0, 1000, 2097151) + ((2097152, 4294967294) if wide else ()))
    info.gid = rng.choice((0, 100, 2097151) + ((2097152, 3000000000) if wide else ()))
    info.uname = rng.choice(("", "root", "jürgen", "a" * 31))
    info.gname = rng.choice(("", "wheel", "группа"))
    info.mtime = rng.choice((0, 1, 1700000000, 8589934591) + ((8589934592, -1) if wide else ()))
    if info.type in (tarfile.CHRTYPE, tarfile.BLKTYPE):
        info.devmajor, info.devminor = rng.randrange(256), rng.randrange(256)
    if fmt != tarfile.PAX_FORMAT:
        return
    if rng.random() < 0.4:
        info.mtime = rng.choice((0.5, 1700000000.123456, 1699999999.000001, -1.5))
    if rng.random() < 0.3:
        info.pax_headers["SCHILY.xattr.user." + rng.choice("abc")] = \
            rng.choice(("v", "été", "=\n=", "b\udcff\udc00", "x" * 700))
    if rng.random() < 0.1:
        info.pax_headers["DFCTEST.note"] = word(rng)
    if rng.random() < 0.1:
        info.pax_headers["atime"] = "1700000001.25"


def fits(info, fmt):
    try:
        info.tobuf(fmt, "utf-8", "surrogateescape")
    except (ValueError, UnicodeEncodeError):
        return False
    return True


def make_members(rng, key, fmts, names):
    """The members of one record: (TarInfo, data, format)."""
    count = rng.choice((1, 1, 2, 2, 3, 3, 5, 8)) if rng.random() > 0.02 else 120
    earlier, members = [], []
    for i in range(count):
        fmt = rng.choice(fmts)
        name = key + ("" if count == 1 and rng.random() < 0.2 and key[-1:] not in ("", "/")
                      else suffix(rng, i))
        info = tarfile.TarInfo(name)
        info.type, info.linkname = member_type(rng, key, earlier)
        data = contents(rng) if info.type in HAVE_CONTENTS else b""
        info.size = len(data)
        dress(rng, info, fmt)
        if name in names or not fits(info, fmt):
            continue
        names.add(name)
        if info.type == tarfile.REGTYPE:
            earlier.append(name)
        members.append((info, data, fmt))
    return members


def interleave(rng, records):
    """Members of several records mixed, each record's own order kept."""
    queues = [list(r) for r in records if r]
    while queues:
        queue = rng.choice(queues)
        yield queue.pop(0)
        queues = [q for q in queues if q]


def global_records(rng):
    choices = {"comment": word(rng), "SCHILY.xattr.user.global": word(rng),
               "DFCTEST.global": "g" * rng.randrange(1, 600), "uname": "everyone",
               "mtime": "1234567890.5"}
    return {k: choices[k] for k in rng.sample(sorted(choices), rng.randrange(1, 3))}


def write_global(tar, rng):
    header = tarfile.TarInfo.create_pax_global_header(global_records(rng))
    tar.fileobj.write(header)
    tar.offset += len(header)


def tar_bytes(rng, members, globals_too):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", encoding="utf-8", errors="surrogateescape") as tar:
        # Without this Python writes a global header of its own, of no records.
        tar.pax_headers = {}
        for info, data, fmt in members:
            if globals_too and rng.random() < 0.1:
                write_global(tar, rng)
            tar.format = fmt
            tar.addfile(info, io.BytesIO(data))
        end = tar.offset
    whole = out.getvalue()
    zeros = rng.choice((1, 2, 3, 20, None))  # the end mark, shorter and longer than usual
    return whole if zeros is None else whole[:end] + bytes(BLOCK * zeros)


def make_shard(rng, keys):
    """Bytes of one shard; `keys` are records of other shards, which may come again here."""
    kind = rng.random()
    if kind < 0.08:
        return b""
    fmts = [rng.choice(FORMATS)] if rng.random() < 0.7 else list(FORMATS)
    count = 0 if kind < 0.16 else 1 if kind < 0.24 else rng.randrange(2, 30)
    names, records, own = set(), [], set()
    for _ in range(count):
        key = rng.choice(keys) if keys and rng.random() < 0.2 else record_key(rng)
        if key in own:
            continue
        own.add(key)
        records.append(make_members(rng, key, fmts, names))
    keys.extend(sorted(own))
    mixed = rng.random() < 0.2
    members = list(interleave(rng, records)) if mixed else [m for r in records for m in r]
    return tar_bytes(rng, members, globals_too=rng.random() < 0.2)


def make_dataset(seed, directory):
    """Writes a dataset's shards into a new directory; returns their names in order."""
    rng = random.Random(f"dataset {seed}")
    os.makedirs(directory)
    keys, names = [], []
    for i in range(rng.choice((0, 1, 1, 2, 3, 4, 6, 9, 14))):
        names.append("shard-%03d.tar" % i)
        with open(os.path.join(directory, names[-1]), "wb") as f:
            f.write(make_shard(rng, keys))
    return names


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    print("\n".join(make_dataset(int(sys.argv[1]), sys.argv[2])))
