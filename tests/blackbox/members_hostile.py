#!/usr/bin/env python3
"""Archives that somebody made to do harm, and archives that are damaged, for each reader: the reply
is an error, or right bytes, or is cut; a target's memory stays bounded."""

import io
import os
import random
import struct
import subprocess
import tarfile
import tempfile
import zipfile
import zlib

from lib import SANITIZED, check, equal, in_parallel, main
from members import files_of, get, page, query
from members_packed import MAKERS, made

SEED = 43
CASES = 10  # damaged forms of each archive
ZEROS = 200 << 20  # bytes: more than small archives may unpack to, less than a thousand times 255 KiB
GROWTH = 96  # MiB that a target may need more, for all of this
UNCHECKED = (".cpio",)  # their contents have no checksum
CODES = ("archive_damaged", "not_an_archive", "member_not_found", "member_unreadable", "archive_limit")
# Tests run with this set; it has malloc() write to the 4 GiB that libarchive reserves for the name of
# a cpio and never uses.
os.environ.pop("MALLOC_PERTURB_", None)
PACKERS = {"gz": "gzip -9", "bz2": "bzip2 -1", "xz": "xz -0", "zst": "zstd -q -1"}


def peak(c, target):
    """MiB of memory, at most so far."""
    with open(f"/proc/{c.pid(target)}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) >> 10


class Bounded:
    """Around a test: no target's memory grows by more than GROWTH MiB."""

    def __init__(self, c):
        self._c = c

    def __enter__(self):
        targets = [n["name"] for n in self._c.status() if n["name"].startswith("t")]
        self._before = {t: peak(self._c, t) for t in targets}

    def __exit__(self, kind, *_):
        grown = {t: peak(self._c, t) - mib for t, mib in self._before.items()}
        check(kind or SANITIZED or max(grown.values()) < GROWTH, f"MiB that targets grew by: {grown}")


def ask(c, name, path):
    """None where the reply is cut."""
    try:
        return get(c, "plain", name, path)
    except OSError:
        return None


def tree(folder):
    rng = random.Random(SEED)
    files = {f"set/{i}.bin": rng.randbytes(rng.randrange(1, 3000)) for i in range(8)}
    files["set/text"] = b"text\n" * 700
    os.mkdir(os.path.join(folder, "set"))
    for path, data in files.items():
        with open(os.path.join(folder, path), "wb") as f:
            f.write(data)
    os.symlink("text", os.path.join(folder, "set", "link"))
    return files


def test_damage_for_each_reader(c):
    c.create("plain")
    with tempfile.TemporaryDirectory(prefix="dfc-hostile-") as folder:
        files = tree(folder)
        archives = made(folder)
    equal(sorted(archives), sorted(MAKERS), "readers")
    for name, whole in archives.items():
        c.put("plain", name, whole)
        for path, data in files.items():
            equal(get(c, "plain", name, path).expect(200).body, data, f"{name}, {path}")

    def try_one(case, archives=archives):
        name, number = case
        rng = random.Random(f"{SEED} {name} {number}")
        bad = bytearray(archives[name])
        if number % 3 == 0:
            del bad[rng.randrange(len(bad)):]
        else:
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        c.put("plain", f"{number}-{name}", bytes(bad))
        path = rng.choice(sorted(files))
        reply = ask(c, f"{number}-{name}", path)
        if reply is not None and reply.status == 200:
            right = reply.body == files[path] or name.endswith(UNCHECKED)
            check(right, f"{name}, case {number}: other bytes of {path}")
        elif reply is not None:
            check(reply.json()["code"] in CODES, f"{name}, case {number}: {reply!r}")

    with Bounded(c):
        in_parallel(try_one, [(name, number) for name in archives for number in range(CASES)])


def packed(command, head):
    """`head`, many zeros and a member behind them, through a compressor."""
    with tempfile.TemporaryFile() as out:
        with subprocess.Popen([*command.split(), "-c"], stdin=subprocess.PIPE, stdout=out) as packer:
            packer.stdin.write(head)
            for _ in range(ZEROS >> 20):
                packer.stdin.write(bytes(1 << 20))
            packer.stdin.write(tarfile.TarInfo("behind").tobuf() + bytes(1024))
        equal(packer.returncode, 0, command)
        out.seek(0)
        return out.read()


def header(kind, size):
    info = tarfile.TarInfo("zeros")
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def test_bombs_for_each_reader(c):
    """Contents, names and extended headers of 200 MiB in some KiB."""
    bombs = {f"zeros.tar.{end}": packed(command, header(tarfile.REGTYPE, ZEROS))
             for end, command in PACKERS.items()}
    for what, kind in (("name", tarfile.GNUTYPE_LONGNAME), ("pax", tarfile.XHDTYPE)):
        bombs[f"{what}.tar.zst"] = packed(PACKERS["zst"], header(kind, ZEROS))
    bombs["name.cpio.zst"] = packed(PACKERS["zst"], cpio_header(0xfffffff0))
    bombs["name.cpio"] = cpio_header(0xfffffff0) + bytes(4096)
    bombs["pax.tar"] = header(tarfile.XHDTYPE, 1 << 32) + bytes(4096)
    with Bounded(c):
        for name, data in bombs.items():
            c.put("plain", name, data)
            reply = ask(c, name, "behind")
            check(reply is not None and reply.status in (415, 422), f"{name}: {reply!r}")
            check(reply.json()["code"] in CODES, f"{name}: {reply!r}")
            listed = c.object("GET", "plain", name, query=query(members="list"))
            check(listed.status in (415, 422), f"the list of {name}: {listed!r}")


def cpio_header(name_size):
    """Of the form newc."""
    fields = [1, 0o100644, 0, 0, 1, 0, 0, 0, 0, 0, 0, name_size, 0]
    return b"070701" + b"".join(b"%08x" % f for f in fields)


def overlapping(rows):
    """A zip whose directory names the same bytes so often: 1 MiB of zeros each time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("0000", bytes(1 << 20))
        offset = z.infolist()[0].header_offset
        crc, size, full = z.infolist()[0].CRC, z.infolist()[0].compress_size, 1 << 20
    data = out.getvalue()[:out.getvalue().index(b"PK\1\2")]
    equal(crc, zlib.crc32(bytes(full)), "the checksum of zeros")
    directory = b"".join(
        struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 33, crc, size, full, 4, 0, 0, 0, 0, 0,
                    offset) + b"%04d" % i for i in range(rows))
    return data + directory + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, rows, rows, len(directory),
                                          len(data), 0)


def test_a_zip_of_overlapping_members(c):
    """A GiB in 60 KiB: one member may come, all of them do not."""
    data = overlapping(1000)
    check(len(data) < 64 << 10, f"the zip has {len(data)} bytes")
    c.put("plain", "overlap.zip", data)
    with Bounded(c):
        reply = ask(c, "overlap.zip", "0007")
        if reply is not None and reply.status == 200:
            equal(reply.body, bytes(1 << 20), "a member")
        elif reply is not None:
            check(reply.json()["code"] in CODES, repr(reply))
        chosen = query(members="tar", mode="prefix", match="0")
        try:
            reply = c.object("GET", "plain", "overlap.zip", query=chosen)
        except OSError:
            return  # cut
        if reply.status == 200:
            files = files_of(reply.body)
            check(len(files) < 1000 and set(files.values()) <= {bytes(1 << 20)}, f"{len(files)} members")
        else:
            check(reply.json()["code"] in CODES, repr(reply))


def test_the_targets_still_work(c):
    c.put("plain", "good.tar", tarfile.TarInfo("empty").tobuf() + bytes(1024))
    equal([m["name"] for m in page(c, "plain", "good.tar").json()["members"]], ["empty"], "members")


if __name__ == "__main__":
    main(targets=2, mountpaths=1, args=["--target-arg=--unpack-threads=2",
                                        "--target-arg=--shard-index-memory=8MiB"])
