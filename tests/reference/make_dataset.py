#!/usr/bin/env python3
"""Random datasets, the same for the same seed.

    make_dataset.py SEED DIR [EXTENSION]      writes the shards (.tar), prints their names

What a well-meaning program may write stands in them: empty shards, records of one and of many
members, members of a record apart from each other, names beyond 100 and 256 bytes, unicode and
bytes that are no unicode, contents of no bytes and around the block size, directories, links,
devices, large owners, times with fractions and before 1970, extended attributes, extended headers
that hold for all that follows; as ustar, GNU, PAX and all of them in one file.  Other formats hold
what they can: zips with times, permissions and links, stored, deflated and streamed, with ZIP64
forms; maps and Examples whose values are bytes, texts and numbers, with the key anywhere or
(TFRecord) absent. Some shards are cut short.
"""

import gzip
import io
import os
import random
import stat
import struct
import sys
import tarfile
import time
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import cpio  # noqa: E402
import formats  # noqa: E402

FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
BLOCK = 512
WORDS = ("cat", "dog", "été", "猫", "data set", "a", "b", "0", "00", "10", "9", "Zebra", "zebra",
         "sample", "x-y_z", "~", "#1", "naïve", "🦊")


def indexable(rng):
    """Are all names to be such as an index for DALI can hold?"""
    return getattr(rng, "indexable", False)


def word(rng):
    text = rng.choice(WORDS) + (str(rng.randrange(1000)) if rng.random() < 0.7 else "")
    return text if not indexable(rng) else text.replace(" ", "-")


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
    end = rng.choice((".cls", ".jpg", ".json", ".seg.png", ".tar.gz", ".", "..x", ".π"))
    return (".e" if end == "." and indexable(rng) else end) + (str(i) if i else "")


def contents(rng):
    size = rng.choice((0, 0, 1, 17, 511, 512, 513, 1023, 1024, 1025,
                       rng.randrange(4096), rng.randrange(4096), rng.randrange(40000)))
    return rng.randbytes(size)


def key_contents(rng):
    """What can be ordered by, in many forms; some are none."""
    return rng.choice((b"7", b"7\n", b" -12 ", b"+0", b"-0.0", b"10", b"9", b"3.5e2", b".5",
                       b"1e400", b"9223372036854775807", b"9223372036854775808", b"abc", b"ab", b"",
                       b"a\0b", "é".encode(), b"nan", b"0x10", b"x" * 4096, b"x" * 4097,
                       b"%d" % rng.randrange(-1000, 1000), b"%d" % rng.randrange(-1000, 1000)))


def member_type(rng, plain, earlier):
    """(type, linkname)"""
    kind = rng.random()
    if plain:
        return tarfile.REGTYPE, ""
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


def make_members(rng, key, fmts, names, plain):
    """The members of one record: (TarInfo, data, format)."""
    count = rng.choice((1, 1, 2, 2, 3, 3, 5, 8)) if rng.random() > 0.02 else 120
    earlier, members = [], []
    for i in range(count):
        fmt = rng.choice(fmts)
        name = key + ("" if count == 1 and rng.random() < 0.2 and key[-1:] not in ("", "/")
                      else suffix(rng, i))
        info = tarfile.TarInfo(name)
        info.type, info.linkname = member_type(rng, plain, earlier)
        makes = key_contents if name.endswith(".cls") else contents
        data = makes(rng) if info.type in HAVE_CONTENTS else b""
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


def make_shard(rng, keys, plain):
    """Bytes of one tar; `keys` are records of other shards, which may come again here."""
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
        records.append(make_members(rng, key, fmts, names, plain))
    keys.extend(sorted(own))
    mixed = rng.random() < 0.2
    members = list(interleave(rng, records)) if mixed else [m for r in records for m in r]
    return tar_bytes(rng, members, globals_too=rng.random() < 0.2)


# --- other formats -------------------------------------------------------------------------------

def split_gzip(rng, tar):
    """In one member or several, with and without a name in the header."""
    parts = [tar] if rng.random() < 0.6 else [tar[:len(tar) // 3], b"", tar[len(tar) // 3:]]
    out = io.BytesIO()
    for part in parts:
        with gzip.GzipFile(rng.choice(("", "name.tar")), "wb", rng.choice((0, 1, 6, 9)), out,
                           mtime=rng.randrange(2 ** 31)) as z:
            z.write(part)
    return out.getvalue()


def record_keys(rng, keys):
    """Keys of the records of one shard, each once, some of other shards."""
    count = rng.choice((0, 1, rng.randrange(2, 30), rng.randrange(2, 30)))
    own = {rng.choice(keys) if keys and rng.random() < 0.2 else record_key(rng)
           for _ in range(count)}
    keys.extend(sorted(own))
    return rng.sample(sorted(own), len(own))


class Streamed(io.RawIOBase):
    """A file without a way back: zipfile puts sizes behind the contents."""

    def __init__(self):
        super().__init__()
        self.data = bytearray()

    def writable(self):
        return True

    def write(self, data):
        self.data += data
        return len(data)


def zip_info(rng, name):
    info = zipfile.ZipInfo(name, time.gmtime(rng.choice((315532800, 1700000001, 4354819199)))[:6])
    info.compress_type = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    info.create_system = rng.choice((3, 3, 3, 0))
    info.external_attr = rng.choice((0, stat.S_IFREG | 0o755, 0o640, stat.S_IFREG | 0o4711)) << 16
    if rng.random() < 0.4:
        info.extra = struct.pack("<HHBi", 0x5455, 5, 1, rng.choice((0, -1, 1700000001)))
    return info


def zip_shard(rng, keys):
    out = io.BytesIO() if rng.random() < 0.7 else Streamed()
    limit, zipfile.ZIP64_LIMIT = zipfile.ZIP64_LIMIT, rng.choice((zipfile.ZIP64_LIMIT, 1000))
    names = set()
    with zipfile.ZipFile(out, "w") as z:
        z.comment = rng.choice((b"", b"", b"a comment"))
        for key in record_keys(rng, keys):
            if not formats.is_utf8(key.encode("utf-8", "surrogateescape")):
                continue
            for i in range(rng.choice((1, 2, 3))):
                info, data = zip_info(rng, key + suffix(rng, i)), contents(rng)
                if rng.random() < 0.05:
                    info, data = zip_info(rng, key + "/"), b""
                elif rng.random() < 0.03:
                    info.create_system, data = 3, rng.choice((b"target", b"../" + b"l" * 150))
                    info.external_attr = (stat.S_IFLNK | 0o777) << 16
                if info.filename not in names:
                    names.add(info.filename)
                    with z.open(info, "w", force_zip64=len(data) >= 900 or rng.random() < 0.3) as f:
                        f.write(data)
    zipfile.ZIP64_LIMIT = limit
    return out.getvalue() if isinstance(out, io.BytesIO) else bytes(out.data)


def field_names(rng):
    """Of one record, each once."""
    return {rng.choice((b"cls", b"jpg", b"json", b"seg.png", "π".encode(), b"", b"x%d" % i)): None
            for i in range(rng.choice((1, 2, 3, 5, 20)))}


def shuffled_with_key(rng, key, fields):
    """The key first, as a rule; no key where it is None."""
    at = 0 if rng.random() < 0.7 else rng.randrange(len(fields) + 1)
    return fields[:at] + ([(formats.KEY, key)] if key is not None else []) + fields[at:]


def msgpack_shard(rng, keys):
    out = b""
    for text in record_keys(rng, keys):
        key = text.encode("utf-8", "surrogateescape") or b"empty"
        fields = []
        for name in field_names(rng):
            kind = rng.random()
            if kind < 0.7:
                makes = key_contents if name == b"cls" else contents
                value = formats.msgpack_bytes(makes(rng))
            elif kind < 0.85:
                value = formats.msgpack_text(rng.randbytes(rng.choice((0, 5, 31, 32, 300))))
            else:
                value = rng.choice(
                    (b"\x07", b"\xff", b"\xcc\xff", b"\xd1\x80\x00", b"\xcf" + b"\xff" * 8,
                     b"\xd3" + b"\x80" + bytes(7), b"\xd2\xff\xff\xff\xfe"))
            fields.append((name, value))
        out += formats.msgpack_map(shuffled_with_key(rng, formats.msgpack_text(key), fields))
    return out


def example_feature(rng):
    kind = rng.random()
    if kind < 0.6:
        return formats.bytes_feature(contents(rng)[:3000])
    if kind < 0.65:
        return b""
    if kind < 0.8:
        floats = [rng.choice((0.5, -1e30, 3.14159265, 0.1)) for _ in range(rng.randrange(4))]
        packed = struct.pack(f"<{len(floats)}f", *floats)
        return formats.message(2, formats.message(1, packed) if rng.random() < 0.5 else b"".join(
            b"\x0d" + packed[i:i + 4] for i in range(0, len(packed), 4)))
    numbers = [rng.choice((0, 1, -1, 2 ** 63 - 1, -2 ** 63, 300)) for _ in range(rng.randrange(4))]
    return formats.message(3, formats.message(1, b"".join(map(formats.varint, numbers)))
                           if rng.random() < 0.5 else
                           b"".join(b"\x08" + formats.varint(n) for n in numbers))


def tfrecord_shard(rng, keys):
    out, keyed = b"", rng.random() < 0.8
    for text in record_keys(rng, keys):
        key = formats.bytes_feature(text.encode("utf-8", "surrogateescape") or b"empty")
        fields = [(name, example_feature(rng)) for name in field_names(rng)]
        example = formats.example_of(shuffled_with_key(rng, key if keyed else None, fields))
        if rng.random() < 0.2:
            example += b"\x10\x05" + formats.message(3, b"of a later version")
        out += formats.frame(example)
    return out


def cpio_shard(rng, keys):
    members = {}
    for key in record_keys(rng, keys):
        for i in range(rng.choice((1, 2, 3))):
            path = (key + suffix(rng, i)).encode("utf-8", "surrogateescape")
            mode, data = stat.S_IFREG | rng.choice((0o644, 0o4711)), contents(rng)
            if rng.random() < 0.03:
                mode, data = stat.S_IFLNK | 0o777, rng.choice((b"target", b"../" + b"l" * 150))
            members[path] = (data, mode, rng.choice((0, 1700000001, 2 ** 32 - 1)))
    return cpio.archive([(path, *rest) for path, rest in members.items()])


def make_file(rng, extension, keys, plain):
    makers = {".zip": zip_shard, ".msgpack": msgpack_shard, ".tfrecord": tfrecord_shard,
              ".cpio": cpio_shard}
    if extension in makers:
        return makers[extension](rng, keys)
    tar = make_shard(rng, keys, plain)
    if extension in (".tar.gz", ".tgz"):
        return split_gzip(rng, tar)
    return formats.COMPRESS_INPUT[extension](tar)


def make_dataset(seed, directory, extension=".tar"):
    """Writes a dataset's shards into a new directory; returns their names in order."""
    rng = random.Random(f"dataset {seed}")
    rng.indexable = seed % 2 == 1
    os.makedirs(directory)
    keys, names, plain = [], [], rng.random() < 0.5
    for i in range(rng.choice((0, 1, 1, 2, 3, 4, 6, 9, 14))):
        names.append("shard-%03d%s" % (i, extension))
        data = make_file(rng, extension, keys, plain)
        if extension != ".tar" and data and rng.random() < 0.02:
            data = data[:rng.randrange(len(data))]
        with open(os.path.join(directory, names[-1]), "wb") as f:
            f.write(data)
    return names


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    print("\n".join(make_dataset(int(sys.argv[1]), *sys.argv[2:])))
