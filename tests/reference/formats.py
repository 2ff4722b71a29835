"""Shard formats, plainly: files to tars, records to files, and what is to be compared of files.

Written from docs/reference/sort-definitions.md on Python's standard library.  Zstandard and LZ4, which it does
not have, are called in the libraries that the engine uses, too: what is compared there is what stands around
them, not their codecs.
"""

import bz2
import calendar
import ctypes
import ctypes.util
import gzip
import io
import lzma
import stat
import struct
import time
import zipfile
import zlib

import cpio

BLOCK = 512
END_MARK = bytes(2 * BLOCK)
KEY = b"__key__"
EXTENSIONS = (".tar", ".tar.gz", ".tgz", ".zip", ".tar.zst", ".tar.lz4", ".msgpack", ".tfrecord")
INPUTS = EXTENSIONS + (".tar.xz", ".tar.bz2", ".cpio")


class SortError(Exception):
    """What the job must fail with."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


def corrupt(why):
    return SortError("shard_corrupt", str(why))


def unsupported(why):
    return SortError("shard_unsupported", str(why))


def padded(size):
    return -(-size // BLOCK) * BLOCK


# --- members that are made -----------------------------------------------------------------------

def header(name, kind, size, mode, mtime, link=b""):
    block = bytearray(BLOCK)
    for at, text in ((0, name[:100]), (100, b"%07o" % mode), (108, b"%07o" % 0), (116, b"%07o" % 0),
                     (124, b"%011o" % size), (136, b"%011o" % mtime), (148, b" " * 8),
                     (156, kind), (157, link[:100]), (257, b"ustar\x0000")):
        block[at:at + len(text)] = text
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def pax_record(key, value):
    rest = len(key) + len(value) + 3
    length = next(n for n in range(rest + 1, rest + 9) if n == rest + len(str(n)))
    return b"%d %s=%s\n" % (length, key, value)


def made_member(path, contents=b"", mode=0o444, mtime=0, kind=b"0", link=b""):
    records = b""
    if len(path) > 100:
        records += pax_record(b"path", path)
    if len(link) > 100:
        records += pax_record(b"linkpath", link)
    octal = 0 <= mtime < 8 ** 11
    if not octal:
        records += pax_record(b"mtime", b"%d" % mtime)
    before = b""
    if records:
        before = header(b"PaxHeaders/global", b"x", len(records), 0o644, 0) + \
            records.ljust(padded(len(records)), b"\0")
    return before + header(path, kind, len(contents), mode, mtime if octal else 0, link) + \
        contents.ljust(padded(len(contents)), b"\0")


def packed_tar(records):
    """Of [(key, [(field, contents)])]."""
    members = []
    for key, fields in records:
        for field, contents in fields:
            path = key + (b"." + field if field else b"")
            if not path or path.endswith(b"/"):
                raise unsupported(path)
            members.append(made_member(path, contents))
    return b"".join(members) + END_MARK


# --- compressed tars -----------------------------------------------------------------------------

def gunzip(data):
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as e:
        raise corrupt(e) from e


def unxz(data):
    try:
        return lzma.decompress(data)
    except lzma.LZMAError as e:
        raise corrupt(e) from e


def unbz2(data):
    try:
        return bz2.decompress(data)
    except (OSError, ValueError) as e:
        raise corrupt(e) from e


def library(name, soname):
    return ctypes.CDLL(ctypes.util.find_library(name) or soname)


class Buffer(ctypes.Structure):
    """ZSTD_inBuffer and ZSTD_outBuffer."""
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t), ("used", ctypes.c_size_t)]


def unzstd(data):
    z = library("zstd", "libzstd.so.1")
    z.ZSTD_createDStream.restype = ctypes.c_void_p
    z.ZSTD_decompressStream.restype = ctypes.c_size_t
    z.ZSTD_decompressStream.argtypes = [ctypes.c_void_p, ctypes.POINTER(Buffer),
                                        ctypes.POINTER(Buffer)]
    z.ZSTD_isError.argtypes = [ctypes.c_size_t]
    z.ZSTD_freeDStream.argtypes = [ctypes.c_void_p]
    stream, source = z.ZSTD_createDStream(), ctypes.create_string_buffer(data, len(data) + 1)
    room = ctypes.create_string_buffer(1 << 20)
    into = Buffer(ctypes.addressof(source), len(data), 0)
    out, wants = [], 0
    try:
        while True:
            to = Buffer(ctypes.addressof(room), len(room), 0)
            if into.used == into.size and not wants:
                return b"".join(out)
            wants = z.ZSTD_decompressStream(stream, ctypes.byref(to), ctypes.byref(into))
            if z.ZSTD_isError(wants) or (wants and into.used == into.size and not to.used):
                raise corrupt("zstd")
            out.append(room.raw[:to.used])
    finally:
        z.ZSTD_freeDStream(stream)


def zstd(data, level=3):
    z = library("zstd", "libzstd.so.1")
    for f in (z.ZSTD_compressBound, z.ZSTD_compress):
        f.restype = ctypes.c_size_t
    z.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    z.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p,
                                ctypes.c_size_t, ctypes.c_int]
    room = ctypes.create_string_buffer(z.ZSTD_compressBound(len(data)))
    made = z.ZSTD_compress(room, len(room), data, len(data), level)
    return room.raw[:made]


def unlz4(data):
    z = library("lz4", "liblz4.so.1")
    z.LZ4F_decompress.restype = ctypes.c_size_t
    context, size = ctypes.c_void_p(), ctypes.c_size_t
    z.LZ4F_createDecompressionContext(ctypes.byref(context), 100)
    source = ctypes.create_string_buffer(data, len(data) + 1)
    room = ctypes.create_string_buffer(1 << 20)
    out, at, wants = [], 0, 0
    try:
        while at < len(data) or wants:
            made, taken = size(len(room)), size(len(data) - at)
            wants = z.LZ4F_decompress(context, room, ctypes.byref(made),
                                      ctypes.byref(source, at), ctypes.byref(taken), None)
            if z.LZ4F_isError(size(wants)) or (wants and not made.value and
                                               at + taken.value == len(data)):
                raise corrupt("lz4")
            at += taken.value
            out.append(room.raw[:made.value])
        return b"".join(out)
    finally:
        z.LZ4F_freeDecompressionContext(context)


def lz4(data):
    z = library("lz4", "liblz4.so.1")
    for f in (z.LZ4F_compressFrameBound, z.LZ4F_compressFrame):
        f.restype = ctypes.c_size_t
    size = ctypes.c_size_t
    room = ctypes.create_string_buffer(z.LZ4F_compressFrameBound(size(len(data)), None))
    made = z.LZ4F_compressFrame(room, size(len(room)), data, size(len(data)), None)
    return room.raw[:made]


# --- zip -----------------------------------------------------------------------------------------

DOS_FIRST, DOS_LAST = 315532800, 4354819198


def extended_time(extra):
    while len(extra) >= 4:
        kind, length = struct.unpack("<HH", extra[:4])
        if kind == 0x5455 and length >= 5 and extra[4] & 1:
            return struct.unpack("<i", extra[5:9])[0]
        extra = extra[4 + length:]
    return None


def utc(date):
    return calendar.timegm((*date, 0, 0, 0))


def zip_name(info):
    return info.orig_filename.encode("utf-8" if info.flag_bits & 0x800 else "cp437")


def zip_members(data):
    """(TarInfo-like facts) of each entry: path, contents, mode, mtime, kind."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as z:
            for info in z.infolist():
                if info.flag_bits & 1 or info.compress_type not in (0, 8):
                    raise unsupported(info.filename)
                mode = info.external_attr >> 16 if info.create_system == 3 else 0
                mtime = extended_time(info.extra)
                kind = stat.S_IFMT(mode)
                if kind not in (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
                    raise unsupported(info.filename)
                yield (zip_name(info), z.read(info), mode & 0o7777 if mode else 0o644,
                       utc(info.date_time) if mtime is None else mtime, kind)
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error) as e:
        raise corrupt(e) from e


def unzip(data):
    if not data:
        return b""
    out = []
    for path, contents, mode, mtime, kind in zip_members(data):
        if path.endswith(b"/") or kind == stat.S_IFDIR:
            out.append(made_member(path, b"", mode, mtime, b"5"))
        elif kind == stat.S_IFLNK:
            if not 0 < len(contents) <= 4096:
                raise unsupported(path)
            out.append(made_member(path, b"", mode, mtime, b"2", contents))
        else:
            out.append(made_member(path, contents, mode, mtime))
    return b"".join(out) + END_MARK


def is_utf8(name):
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def zip_archive(entries):
    """Of [(name, contents, attributes, mtime)]."""
    out, directory = bytearray(), b""
    for name, contents, attributes, mtime in entries:
        day = time.gmtime(min(max(mtime, DOS_FIRST), DOS_LAST))
        dos = (day.tm_year - 1980) << 25 | day.tm_mon << 21 | day.tm_mday << 16 | \
            day.tm_hour << 11 | day.tm_min << 5 | day.tm_sec // 2
        squeeze = zlib.compressobj(6, zlib.DEFLATED, -15)
        packed = squeeze.compress(contents) + squeeze.flush() if contents else b""
        extra = struct.pack("<HHBi", 0x5455, 5, 1, mtime) if -2**31 <= mtime < 2**31 else b""
        shared = struct.pack("<HHHIIIIHH", 20, 0x800 if is_utf8(name) else 0, 8 if contents else 0,
                             dos, zlib.crc32(contents), len(packed), len(contents), len(name),
                             len(extra))
        directory += b"PK\1\2" + struct.pack("<H", 3 << 8 | 20) + shared + \
            struct.pack("<HHHII", 0, 0, 0, attributes, len(out)) + name + extra
        out += b"PK\3\4" + shared + name + extra + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(directory), len(out), 0)
    return bytes(out) + directory + b"PK\5\6" + end


def zip_facts(data):
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        return [(zip_name(i), z.read(i), oct(i.external_attr >> 16), i.create_system, i.date_time,
                 extended_time(i.extra), i.compress_type) for i in z.infolist()]


# --- msgpack -------------------------------------------------------------------------------------

class Taker:
    """Bytes from the front; what is not there is a shard cut short."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if n > len(self.data) - self.at:
            raise corrupt("cut short")
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def __bool__(self):
        return self.at < len(self.data)


def msgpack_value(t):
    tag = t.number("B")
    if tag < 0x80 or tag >= 0xe0:
        return tag - 256 if tag >= 0xe0 else tag
    if 0xa0 <= tag <= 0xbf:
        return t.take(tag & 0x1f)
    forms = {0xc4: ">B", 0xc5: ">H", 0xc6: ">I", 0xd9: ">B", 0xda: ">H", 0xdb: ">I"}
    if tag in forms:
        return t.take(t.number(forms[tag]))
    numbers = {0xcc: ">B", 0xcd: ">H", 0xce: ">I", 0xcf: ">Q", 0xd0: ">b", 0xd1: ">h", 0xd2: ">i",
               0xd3: ">q"}
    if tag not in numbers:
        raise unsupported("a value")
    return t.number(numbers[tag])


def msgpack_maps(data):
    """[[(field, value as it is)]]"""
    t, maps = Taker(data), []
    while t:
        tag = t.number("B")
        if tag & 0xf0 != 0x80 and tag not in (0xde, 0xdf):
            raise corrupt("no map")
        count = {0xde: lambda: t.number(">H"), 0xdf: lambda: t.number(">I")}.get(
            tag, lambda: tag & 15)()
        maps.append([(msgpack_value(t), msgpack_value(t)) for _ in range(count)])
    return maps


def text_of(value):
    return b"%d" % value if isinstance(value, int) else value


def unmsgpack(data):
    records = []
    for fields in msgpack_maps(data):
        keys = [v for k, v in fields if k == KEY]
        if not keys:
            raise unsupported("no key")
        records.append((keys[-1], [(k, text_of(v)) for k, v in fields if k != KEY]))
    return packed_tar(records)


def msgpack_head(small, tags, n):
    """The shortest form; `tags` by width."""
    if n < small[1]:
        return bytes([small[0] | n])
    for tag, form in tags:
        if n <= 256 ** struct.calcsize(form) - 1:
            return bytes([tag]) + struct.pack(form, n)
    raise ValueError(n)


def msgpack_text(text):
    return msgpack_head((0xa0, 32), ((0xd9, ">B"), (0xda, ">H"), (0xdb, ">I")), len(text)) + text


def msgpack_bytes(data):
    return msgpack_head((0, 0), ((0xc4, ">B"), (0xc5, ">H"), (0xc6, ">I")), len(data)) + data


def msgpack_map(fields):
    """Of [(field, encoded value)]."""
    return msgpack_head((0x80, 16), ((0xde, ">H"), (0xdf, ">I")), len(fields)) + \
        b"".join(msgpack_text(k) + v for k, v in fields)


# --- TFRecord ------------------------------------------------------------------------------------

def crc32c_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
        table.append(i)
    return table


TABLE = crc32c_table()


def masked_crc(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def varint(n):
    out = bytearray()
    n &= 2 ** 64 - 1
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def take_varint(t):
    value = 0
    for shift in range(0, 70, 7):
        byte = t.number("B")
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise corrupt("varint")


def message(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields_of(data):
    """[(number, wire type, value)] of a protobuf message."""
    t, fields = Taker(data), []
    while t:
        tag = take_varint(t)
        value = {0: lambda: take_varint(t), 1: lambda: t.take(8),
                 2: lambda: t.take(take_varint(t)), 5: lambda: t.take(4)}[tag & 7]()
        fields.append((tag >> 3, tag & 7, value))
    return fields


def int_texts(data):
    t = Taker(data)
    while t:
        value = take_varint(t)
        yield b"%d" % (value - 2 ** 64 if value >= 2 ** 63 else value)


def list_text(kind, data):
    """What a feature's list is as contents."""
    parts = []
    for number, wire, value in fields_of(data):
        if number != 1:
            continue
        if kind == 1:
            parts.append(value)
        elif kind == 2:
            parts += [b"%.9g" % f for f in struct.unpack(f"<{len(value) // 4}f", value)]
        else:
            parts += int_texts(varint(value) if wire == 0 else value)
    if kind == 1 and len(parts) > 1:
        raise unsupported("several byte strings")
    return b"\n".join(parts)


def features(example):
    """[(name, contents)]"""
    found = []
    for outer in (v for n, w, v in fields_of(example) if n == 1 and w == 2):
        for entry in (v for n, w, v in fields_of(outer) if n == 1 and w == 2):
            parts = {n: v for n, w, v in fields_of(entry) if w == 2}
            lists = [(n, v) for n, w, v in fields_of(parts.get(2, b"")) if w == 2 and n <= 3]
            found.append((parts[1], list_text(*lists[0]) if lists else b""))
    return found


def frames(data):
    t = Taker(data)
    while t:
        length = t.take(8)
        if t.number("<I") != masked_crc(length):
            raise corrupt("length")
        payload = t.take(struct.unpack("<Q", length)[0])
        if t.number("<I") != masked_crc(payload):
            raise corrupt("payload")
        yield payload


def untfrecord(data):
    records = []
    for index, example in enumerate(frames(data)):
        found = features(example)
        keys = [v for k, v in found if k == KEY]
        key = keys[-1] if keys else b"%010d" % index
        records.append((key, [(k, v) for k, v in found if k != KEY]))
    return packed_tar(records)


def frame(payload):
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", masked_crc(length)) + payload + \
        struct.pack("<I", masked_crc(payload))


def bytes_feature(data):
    return message(1, message(1, data))


def example_of(entries):
    """Of [(name, encoded feature)]."""
    return message(1, b"".join(message(1, message(1, k) + message(2, v)) for k, v in entries))


# --- cpio ----------------------------------------------------------------------------------------

def uncpio(data):
    out = b""
    try:
        for path, contents, mode, mtime in cpio.members(data):
            if stat.S_ISLNK(mode):
                out += made_member(path, b"", mode & 0o7777, mtime, b"2", contents)
            else:
                out += made_member(path, contents, mode & 0o7777, mtime,
                                   b"5" if stat.S_ISDIR(mode) else b"0")
    except ValueError as e:
        raise corrupt(e) from e
    return out + END_MARK


# --- the table -----------------------------------------------------------------------------------

TO_TAR = {".tar": bytes, ".tar.gz": gunzip, ".tgz": gunzip, ".tar.zst": unzstd, ".tar.lz4": unlz4,
          ".zip": unzip, ".msgpack": unmsgpack, ".tfrecord": untfrecord,
          ".tar.xz": unxz, ".tar.bz2": unbz2, ".cpio": uncpio}

COMPRESS = {".tar": bytes, ".tar.gz": lambda d: gzip.compress(d, mtime=0),
            ".tgz": lambda d: gzip.compress(d, mtime=0), ".tar.zst": zstd, ".tar.lz4": lz4}
COMPRESS_INPUT = {**COMPRESS, ".tar.xz": lzma.compress, ".tar.bz2": bz2.compress}


def to_tar(extension, data):
    """A shard as a tar."""
    return TO_TAR[extension](bytes(data))


def end_mark_size(extension):
    return len(END_MARK) if extension in COMPRESS else 0


def zip_entry(info, path, contents):
    if info.islnk() or info.ischr() or info.isblk() or info.isfifo() or path.endswith(b"/"):
        raise unsupported(path)
    if info.issym():
        return path, info.linkname.encode("utf-8", "surrogateescape"), \
            (stat.S_IFLNK | info.mode & 0o7777) << 16, int(info.mtime // 1)
    return path, contents, (stat.S_IFREG | info.mode & 0o7777) << 16, int(info.mtime // 1)


def field(info, path, key):
    rest = path[len(key):]
    if info.islnk() or info.issym() or info.ischr() or info.isblk() or info.isfifo():
        raise unsupported(path)
    if rest in (b".", b"." + KEY):
        raise unsupported(path)
    return rest[1:]


def encode(extension, records):
    """A file of [(key, [(TarInfo, path, bytes in a tar, contents)])]."""
    if extension in COMPRESS:
        tar = b"".join(raw for _, members in records for _, _, raw, _ in members) + END_MARK
        return COMPRESS[extension](tar)
    if extension == ".zip":
        return zip_archive([zip_entry(info, path, bytes(contents)) for _, members in records
                            for info, path, _, contents in members])
    packed = [(key, [(field(info, path, key), bytes(contents))
                     for info, path, _, contents in members]) for key, members in records]
    if extension == ".msgpack":
        return b"".join(msgpack_map([(KEY, msgpack_text(key))] +
                                    [(k, msgpack_bytes(v)) for k, v in fields])
                        for key, fields in packed)
    return b"".join(frame(example_of([(KEY, bytes_feature(key))] +
                                     [(k, bytes_feature(v)) for k, v in fields]))
                    for key, fields in packed)


def facts(extension, data):
    """What must agree of two files; of msgpack and TFRecord that is every byte."""
    if extension in COMPRESS:
        return to_tar(extension, data)
    return zip_facts(data) if extension == ".zip" else data
