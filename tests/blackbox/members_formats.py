#!/usr/bin/env python3
"""Members of archives in formats that the parameter archive_formats allows beyond its default: 7zip,
ar, iso9660, rar.  Each is what the program that made the archive was given."""

import io
import os
import random
import shutil
import struct
import subprocess
import tarfile
import tempfile
import zlib

from lib import check, equal, in_parallel, main, skip, wait_for
from members import BUCKETS, get, page

ARGS = ["--target-arg=--archive-formats=tar,zip,cpio,7zip,ar,iso9660,rar"]
SEED = 7

# what makes the archive of the folder `set`, into the file named
MAKERS = {
    "lzma.7z": "7z a -bd -snl {} set",
    "files.7z": "7z a -bd {} set -x!set/link",
    "loose.7z": "7z a -bd -snl -ms=off {} set",
    "stored.7z": "7z a -bd -snl -m0=Copy {} set",
    "bzip2.7z": "7z a -bd -snl -m0=BZip2 {} set",
    "ppmd.7z": "7z a -bd -snl -m0=PPMd {} set",
    "bsd.7z": "bsdtar --format=7zip -cf {} set",
    "rock.iso": "genisoimage -quiet -R -o {} -graft-points set=set",
    "joliet.iso": "genisoimage -quiet -J -joliet-long -R -o {} -graft-points set=set",
    "bsd.iso": "bsdtar --format=iso9660 -cf {} set",
}


def tree(folder):
    """Files of many sizes below `folder`; → {path: bytes}"""
    rng = random.Random(SEED)
    files = {f"set/{i:02}.bin": rng.randbytes(rng.randrange(1, 70000)) for i in range(8)}
    files.update({"set/empty": b"", "set/deep/er/text": b"text\n" * 1000,
                  "set/large": rng.randbytes(1 << 20) * 3})
    for path, data in files.items():
        where = os.path.join(folder, path)
        os.makedirs(os.path.dirname(where), exist_ok=True)
        with open(where, "wb") as f:
            f.write(data)
    os.symlink("empty", os.path.join(folder, "set", "link"))
    return files


def vint(n):
    out = bytearray()
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def rar5(files):
    """RAR 5 with stored files, by its published format: no program of Debian makes one."""
    def block(kind, flags, body, data=b""):
        head = vint(kind) + vint(flags) + (vint(len(data)) if data or flags & 2 else b"") + body
        head = vint(len(head)) + head
        return struct.pack("<I", zlib.crc32(head)) + head + data

    out = b"Rar!\x1a\x07\x01\x00" + block(1, 0, vint(0))
    for name, data in files.items():
        raw = name.encode()
        out += block(2, 2, vint(2 | 4) + vint(len(data)) + vint(0o100644)
                     + struct.pack("<II", 1700000000, zlib.crc32(data)) + vint(0) + vint(1)
                     + vint(len(raw)) + raw, data)
    return out + block(5, 0, vint(0))


def rar4(files):
    """The form before it."""
    def block(kind, flags, body, data=b""):
        head = struct.pack("<BHH", kind, flags, 7 + len(body)) + body
        return struct.pack("<H", zlib.crc32(head) & 0xffff) + head + data

    out = b"Rar!\x1a\x07\x00" + block(0x73, 0, bytes(6))
    for name, data in files.items():
        raw = name.encode()
        out += block(0x74, 0x8000, struct.pack("<IIBIIBBHI", len(data), len(data), 3,
                                               zlib.crc32(data), 0x57000000, 20, 0x30, len(raw),
                                               0o100644) + raw, data)
    return out + block(0x7b, 0x4000, b"")


def made(folder, files):
    """{name: bytes} of each archive."""
    for program in ("7z", "bsdtar", "genisoimage", "ar"):
        if shutil.which(program) is None:
            skip(f"there is no {program}")
    found = {"5.rar": rar5(files), "4.rar": rar4(files)}
    for name, command in MAKERS.items():
        path = os.path.join(folder, name)
        subprocess.run(command.format(path), shell=True, cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        with open(path, "rb") as f:
            found[name] = f.read()
    return found


def test_each_member_is_what_was_packed(c):
    for bucket, props in BUCKETS.items():
        c.create(bucket, **props)
    with tempfile.TemporaryDirectory(prefix="dfc-formats-") as folder:
        files = tree(folder)
        archives = made(folder, files)
        subprocess.run(["ar", "rcD", "a.ar", "set/00.bin", "set/empty", "set/large"], cwd=folder,
                       check=True)
        with open(os.path.join(folder, "a.ar"), "rb") as f:
            flat = f.read()
    for bucket in BUCKETS:
        for name, data in archives.items():
            c.put(bucket, name, data)
            listed = {m["name"]: m for m in page(c, bucket, name, limit=1000).json()["members"]
                      if m["type"] == "file"}
            equal(sorted(listed), sorted(files), f"files of {name}")

            def compare(path, bucket=bucket, name=name, listed=listed):
                reply = get(c, bucket, name, path).expect(200)
                check(reply.body == files[path], f"{bucket}/{name}, {path}: other bytes")
                equal(listed[path]["size"], len(files[path]), f"size of {path}")

            in_parallel(compare, list(files))
        c.put(bucket, "a.ar", flat)
        for name in ("00.bin", "empty", "large"):
            equal(get(c, bucket, "a.ar", name).expect(200).body, files["set/" + name], "of ar")
    c.put("plain", "twice.7z", archives["lzma.7z"])
    done = c.dfcctl("archive", "ls", "plain/twice.7z")
    check(done.returncode != 0 and "no archive that can be read" in done.stderr, done.stderr)
    done = c.dfcctl("archive", "cat", "plain/twice.7z", "set/deep/er/text", "--formats", "7zip")
    equal((done.returncode, done.stdout), (0, "text\n" * 1000), "dfcctl")
    done = c.dfcctl("archive", "ls", "plain/twice.7z", "--formats", "7zip,lha")
    equal(done.returncode, 2, "an unknown format")
    check("'lha' is no format" in done.stderr, done.stderr)


def test_a_job_makes_objects_of_them(c):
    c.create("out")
    done = c.dfcctl("bucket", "unarchive", "plain", "out", "--prefix", "files.7z", "--wait")
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    names = c.names("out")
    check(any(n.endswith("set/large") for n in names), names)


def small(folder):
    """{name: bytes} of archives that are damaged byte by byte."""
    os.makedirs(os.path.join(folder, "s"))
    for name in ("a", "b"):
        with open(os.path.join(folder, "s", name), "wb") as f:
            f.write(name.encode() * 300)
    for command in ("7z a -bd s.7z s", "7z a -bd -m0=Copy c.7z s", "ar rc s.ar s/a s/b"):
        subprocess.run(command, shell=True, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    found = {"s.rar": rar5({"s/a": b"a" * 300, "s/b": b"b" * 300})}
    for name in ("s.7z", "c.7z", "s.ar"):
        with open(os.path.join(folder, name), "rb") as f:
            found[name] = f.read()
    return found


def test_damage_is_an_error(c):
    """7zip and RAR have checksums of contents: what comes is right, or an error, or a cut reply."""
    with tempfile.TemporaryDirectory(prefix="dfc-formats-") as folder:
        archives = small(folder)
    for name, data in archives.items():
        def try_one(at, name=name, data=data):
            changed = bytearray(data)
            if at < 0:
                del changed[at:]
            else:
                changed[at] ^= 0x55
            c.put("plain", f"d{at}-{name}", bytes(changed))
            reply = None
            try:
                reply = get(c, "plain", f"d{at}-{name}", "s/b" if "ar" != name[-2:] else "b")
            except OSError:
                return
            check(reply.status in (200, 404, 415, 422), f"{name}, {at}: {reply!r}")
            if reply.status == 200 and not name.endswith(".ar"):
                check(reply.body == b"b" * 300, f"{name}, {at}: other bytes")

        in_parallel(try_one, list(range(0, len(data), 7)) + list(range(-len(data) + 1, 0, 23)))


def test_bombs(c):
    with tempfile.TemporaryDirectory(prefix="dfc-formats-") as folder:
        with open(os.path.join(folder, "zeros"), "wb") as f:
            f.truncate(1 << 30)
        subprocess.run("7z a -bd -mx=9 -md=64k bomb.7z zeros", shell=True, cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        with open(os.path.join(folder, "bomb.7z"), "rb") as f:
            bomb = f.read()
    check(len(bomb) < 1 << 20, f"the bomb has {len(bomb)} bytes")
    c.put("plain", "bomb.7z", bomb)
    reply = c.object("GET", "plain", "bomb.7z", query="members=list")
    reply.expect(422, "archive_damaged", "does not warrant")


def make_shards(c, bucket, extension):
    for i in range(4):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as t, \
                tempfile.TemporaryDirectory(prefix="dfc-formats-") as folder:
            for j in range(6):
                name, data = f"{i}{j}.txt", random.Random(10 * i + j).randbytes(500 + 100 * j)
                info = tarfile.TarInfo(name)
                info.size, info.mtime, info.mode = len(data), 1700000000, 0o644
                t.addfile(info, io.BytesIO(data))
                with open(os.path.join(folder, name), "wb") as f:
                    f.write(data)
                os.chmod(f.name, 0o644)
                os.utime(f.name, (1700000000, 1700000000))
            if extension == ".7z":
                subprocess.run("7z a -bd s.7z *.txt", shell=True, cwd=folder, check=True,
                               stdout=subprocess.DEVNULL)
                with open(os.path.join(folder, "s.7z"), "rb") as f:
                    out = io.BytesIO(f.read())
        c.put(bucket, f"in-{i}{extension}", out.getvalue()).expect(200)


def sort(c, bucket, extension, out="out"):
    return c.sort({"input_bck": {"name": bucket}, "input_format": {"template": "in-{0..3}"},
                   "input_extension": extension, "output_format": f"{out}{extension}-%04d",
                   "output_extension": ".tar", "output_shard_size": "4KiB",
                   "algorithm": {"kind": "md5"}})


def test_a_sort_of_7z(c):
    """The same shards as of the plain tars."""
    c.create("sorts")
    results = []
    for extension in (".tar", ".7z"):
        make_shards(c, "sorts", extension)
        done = c.wait_job(sort(c, "sorts", extension), "finished", "failed")
        equal(done["state"], "finished", f"sort of {extension}: {done}")
        names = c.names("sorts", prefix=f"out{extension}-")
        check(len(names) > 2, names)
        results.append([c.get("sorts", n).body for n in names])
    check(results[0] == results[1], "the sorts differ")


def test_what_is_not_allowed(c):
    """Targets with the default formats."""
    for t in c.targets():
        c.stop(t)
        c.start(t, "--arg=--archive-formats=tar,zip,cpio")
    for t in c.targets():
        wait_for(lambda t=t: c.wait_node(t, "active") or True, "the target is back")
    for name in ("lzma.7z", "a.ar", "rock.iso", "5.rar", "4.rar"):
        get(c, "plain", name, "set/empty").expect(415, "not_an_archive")
    done = c.wait_job(sort(c, "sorts", ".7z", "no"), "finished", "failed")
    equal(done["state"], "failed", "the sort")
    check("add 7zip to archive_formats" in str(done["errors"]), done["errors"])


if __name__ == "__main__":
    main(targets=3, args=ARGS)
