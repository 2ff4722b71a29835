#!/usr/bin/env python3
"""Members of compressed tars and of zips: each is what the programs that made the archive extract."""

import gzip
import io
import lzma
import os
import random
import shutil
import socket
import subprocess
import tarfile
import tempfile
import threading
import urllib.parse
import zipfile

from lib import SANITIZED, check, equal, in_parallel, main, skip, wait_for
from members import BUCKETS, archive, files_of, get, many, page, query

SEED = 41
THREADS = 2
LARGE = 9 << 20  # more than a pipe, a piece and a socket hold


def tree(folder):
    """Files of many sizes below `folder`; → {path: bytes}"""
    rng = random.Random(SEED)
    files = {f"set/{i:02}.bin": rng.randbytes(rng.randrange(1, 90000)) for i in range(12)}
    files.update({"set/empty": b"", "set/deep/er/text": b"text\n" * 1000,
                  "set/sm\u00f8rrebr\u00f8d": b"\xc3", "set/large": rng.randbytes(1 << 20) * 3})
    for path, data in files.items():
        where = os.path.join(folder, path)
        os.makedirs(os.path.dirname(where), exist_ok=True)
        with open(where, "wb") as f:
            f.write(data)
    os.symlink("empty", os.path.join(folder, "set", "link"))
    return files


# what makes the archive, from within the folder; it prints it
MAKERS = {
    "gnu.tar.gz": "tar --format=gnu -czf - set",
    "pax.tar.xz": "tar --format=pax -cJf - set",
    "ustar.tar.bz2": "tar --format=ustar -cf - set | bzip2",
    "gnu.tar.zst": "tar --format=gnu -cf - set | zstd -q",
    "pax.tar.lz4": "tar --format=pax -cf - set | lz4 -q",
    "bsd.tar.gz": "bsdtar -czf - set",
    "bsd.zip": "bsdtar --format=zip -cf - set",
    "stored.zip": "zip -q -r -0 -y a.zip set && cat a.zip && rm a.zip",
    "deflated.zip": "zip -q -r -9 -y a.zip set && cat a.zip && rm a.zip",
    "stream.zip": "zip -q -r - set -x set/link | cat",
    "newc.cpio": "find set | sort | cpio --quiet -o -H newc",
    "crc.cpio": "find set | sort | cpio --quiet -o -H crc",
    "odc.cpio": "find set | sort | cpio --quiet -o -H odc",
    "bin.cpio": "find set | sort | cpio --quiet -o",
    "bsd.cpio": "bsdtar --format=cpio -cf - set",
    "newc.cpio.zst": "find set | sort | cpio --quiet -o -H newc | zstd -q",
    "odc.cpio.xz": "find set | sort | cpio --quiet -o -H odc | xz",
}


def made(folder):
    """{name: bytes} of each archive."""
    for program in ("bsdtar", "cpio", "zip", "xz", "bzip2", "zstd", "lz4"):
        if shutil.which(program) is None:
            skip(f"there is no {program}")
    found = {}
    for name, command in MAKERS.items():
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, check=True,
                              capture_output=True)
        found[name] = done.stdout
    return found


def of_python(files):
    """As made(), by Python's zipfile."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for path, data in files.items():
            z.writestr(path, data)
    return {"python.zip": out.getvalue()}


def test_each_member_is_what_was_packed(c):
    for bucket, props in BUCKETS.items():
        c.create(bucket, **props)
    with tempfile.TemporaryDirectory(prefix="dfc-packed-") as folder:
        files = tree(folder)
        archives = {**made(folder), **of_python(files)}
    for bucket in BUCKETS:
        for name, data in archives.items():
            c.put(bucket, name, data)
            listed = {m["name"]: m for m in page(c, bucket, name, limit=1000).json()["members"]
                      if m["type"] == "file"}
            equal(sorted(listed), sorted(files), f"files of {name}")
            check(not any("offset" in m for m in listed.values()), f"{name} gives places")

            def compare(path, bucket=bucket, name=name, listed=listed):
                reply = get(c, bucket, name, path).expect(200)
                check(reply.body == files[path], f"{bucket}/{name}, {path}: other bytes")
                equal(reply.headers["Content-Length"], str(len(files[path])), "Content-Length")
                equal(reply.headers["Dfc-Archive"], "packed", "the kind of archive")
                equal(listed[path]["size"], len(files[path]), f"size of {path}")

            in_parallel(compare, list(files))


def test_ranges_conditions_and_heads(c):
    data = gzip.compress(archive(seed=2))
    body = files_of(gzip.decompress(data))["dir/07.bin"]
    for bucket in BUCKETS:
        c.put(bucket, "r.tar.gz", data)
        etag = c.object("HEAD", bucket, "r.tar.gz").expect(200).headers["ETag"]
        for text, want in (("5-9", body[5:10]), ("-3", body[-3:]), ("100-", body[100:])):
            reply = get(c, bucket, "r.tar.gz", "dir/07.bin", {"Range": f"bytes={text}"}).expect(206)
            check(reply.body == want, f"range {text} has other bytes")
        equal(reply.headers["Content-Range"], f"bytes 100-{len(body) - 1}/{len(body)}", "range")
        past = get(c, bucket, "r.tar.gz", "dir/07.bin", {"Range": f"bytes={len(body)}-"})
        past.expect(416, "range_not_satisfiable")
        equal(get(c, bucket, "r.tar.gz", "dir/empty").expect(200).body, b"", "no bytes")
        get(c, bucket, "r.tar.gz", "dir/07.bin", {"If-None-Match": etag}).expect(304)
        head = get(c, bucket, "r.tar.gz", "dir/07.bin", method="HEAD").expect(200)
        equal((head.headers["Content-Length"], head.body), (str(len(body)), b""), "HEAD")
        equal(get(c, bucket, "r.tar.gz", "dir/one.txt").expect(200).body, b"the last one\2",
              "of one name the last")


def test_what_is_refused(c):
    c.put("plain", "x.tar.gz", gzip.compress(archive()))
    for path, status, code in (("none", 404, "member_not_found"), ("link", 415, "member_unreadable"),
                               ("dir/", 415, "member_unreadable")):
        get(c, "plain", "x.tar.gz", path).expect(status, code)
    for name, data in (("text.gz", gzip.compress(b"text " * 9999)), ("text", b"no archive" * 1000),
                       ("twice.gz", gzip.compress(gzip.compress(archive())))):
        c.put("plain", name, data)
        get(c, "plain", name, "x").expect(415, "not_an_archive")


def test_damage_is_an_error_or_right_bytes(c):
    """Bytes of archives are changed one at a time, and cut."""
    data = archive(seed=3, size=3000)
    files = files_of(data)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for path, contents in files.items():
            z.writestr(path, contents)
    rng = random.Random(SEED)
    outcomes = set()
    for whole in (gzip.compress(data), out.getvalue()):
        for i in range(40):
            bad = bytearray(whole)
            if i % 4 == 0:
                del bad[rng.randrange(len(bad)):]
            else:
                bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
            c.put("plain", "bad", bytes(bad))
            path = rng.choice(sorted(files))
            reply = get_or_cut(c, "plain", "bad", path)
            outcomes.add(reply and reply.status)
            if reply and reply.status == 200:
                check(reply.body == files[path], f"case {i}, {path}: wrong bytes")
            elif reply:
                check(reply.json()["code"] in ("archive_damaged", "not_an_archive",
                                               "member_not_found"), reply)
    check(422 in outcomes and 200 in outcomes, f"outcomes: {outcomes}")


def get_or_cut(c, bucket, name, path):
    """None where the connection is cut."""
    try:
        return get(c, bucket, name, path)
    except OSError:
        return None


def test_a_bomb_is_an_error(c):
    """A GiB of zeros in some KiB, behind which is another member."""
    info = tarfile.TarInfo("zeros")
    info.size = 1 << 30
    with tempfile.TemporaryFile() as packed:
        with subprocess.Popen(["zstd", "-q", "-c"], stdin=subprocess.PIPE, stdout=packed) as zstd:
            zstd.stdin.write(info.tobuf())
            for _ in range(info.size >> 20):
                zstd.stdin.write(bytes(1 << 20))
            zstd.stdin.write(tarfile.TarInfo("behind").tobuf() + bytes(1024))
        packed.seek(0)
        c.put("plain", "bomb.tar.zst", packed.read())
    for path in ("behind", "zeros"):
        get(c, "plain", "bomb.tar.zst", path).expect(422, "archive_damaged", "does not warrant")


def test_a_size_that_no_reader_gets_is_not_announced(c):
    """A TiB of holes in 127 bytes: the error comes before the first byte, in HEAD, too."""
    with tempfile.TemporaryDirectory(prefix="dfc-holes-") as folder:
        subprocess.run("truncate -s 1T holes; echo small > small; "
                       "tar --sparse -czf holes.tgz holes small", shell=True, cwd=folder, check=True)
        with open(os.path.join(folder, "holes.tgz"), "rb") as f:
            data = f.read()
    c.put("plain", "holes.tgz", data)
    equal(get(c, "plain", "holes.tgz", "small").expect(200).body, b"small\n", "another member")
    reply = get(c, "plain", "holes.tgz", "holes").expect(422, "archive_limit", "are unpacked of")
    check(int(reply.headers["Content-Length"]) < 1000, "the size is announced")
    get(c, "plain", "holes.tgz", "holes", method="HEAD").expect(422)
    c.object("GET", "plain", "holes.tgz", query=query(members="tar", mode="prefix", match="hol")
             ).expect(422, "archive_limit")
    listed = {m["name"]: m["size"] for m in page(c, "plain", "holes.tgz").json()["members"]}
    equal(listed, {"holes": 1 << 40, "small": 6}, "the list")


def test_an_index_that_is_larger_than_its_memory(c):
    """Also where the archive is so small that one read takes it in."""
    data = lzma.compress(many(12000, 160) + bytes(1024))
    check(len(data) < 64 << 10, f"the archive has {len(data)} bytes")
    c.put("plain", "large.tar.xz", data)
    get(c, "plain", "large.tar.xz", "000001").expect(422, "archive_limit", "shard_index_memory")


def test_a_client_that_leaves_ends_the_work(c):
    """Its thread is free for others."""
    rng = random.Random(SEED)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        info = tarfile.TarInfo("large")
        info.size = LARGE
        tar.addfile(info, io.BytesIO(rng.randbytes(LARGE)))
    c.put("plain", "large.tar.gz", out.getvalue())
    equal(len(get(c, "plain", "large.tar.gz", "large").expect(200).body), LARGE, "bytes")
    there = f"{c.url('p1')}/v1/objects/plain/large.tar.gz?{query(member='large')}"
    where = c.http.request("GET", there, None, None, follow=False).expect(307).headers["Location"]
    for _ in range(2 * THREADS):
        leave(urllib.parse.urlsplit(where))
    equal(len(get(c, "plain", "large.tar.gz", "large").expect(200).body), LARGE, "bytes again")


def leave(url):
    """As soon as the reply begins."""
    with socket.create_connection((url.hostname, url.port), timeout=60) as s:
        s.sendall(f"GET {url.path}?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode())
        equal(s.recv(12, socket.MSG_WAITALL), b"HTTP/1.1 200", "the reply")


def resident(c, target):
    """MiB of memory."""
    with open(f"/proc/{c.pid(target)}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def begin_read(c, name, path):
    """→ a socket out of which nothing is read."""
    there = f"{c.url('p1')}/v1/objects/plain/{name}?{query(member=path)}"
    where = c.http.request("GET", there, None, None, follow=False).expect(307).headers["Location"]
    url = urllib.parse.urlsplit(where)
    s = socket.create_connection((url.hostname, url.port), timeout=60)
    s.sendall(f"GET {url.path}?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode())
    return s


def test_slow_readers_hold_no_index(c):
    """Each archive has an index of nearly all of the memory for indexes, 1 MiB."""
    target = c.owner("plain", "large.tar.gz")
    held = [begin_read(c, "large.tar.gz", "large") for _ in range(THREADS)]
    names = [n for n in (f"slow-{i}.tgz" for i in range(400)) if c.owner("plain", n) == target][:50]
    data = gzip.compress(many(6000, 60) + bytes(1024), 1)
    in_parallel(lambda name: c.put("plain", name, data), names)
    before, made = resident(c, target), indexes(c, target)
    for i, name in enumerate(names):
        held.append(begin_read(c, name, "x" * 53 + "/000001"))
        wait_for(lambda i=i: indexes(c, target) > made + i, f"the index of {name}")
    grown = resident(c, target) - before
    for s in held:
        s.close()
    check(SANITIZED or grown < 30, f"{len(names)} readers made the target grow by {grown} MiB")


def indexes(c, target):
    """How many it has made."""
    text = c.call("GET", "/metrics", node=target).expect(200).body.decode()
    return sum(int(float(line.split()[-1])) for line in text.splitlines()
               if "archive_index_total{" in line and 'outcome="made"' in line)


def test_an_archive_that_is_overwritten_under_readers(c):
    """Each reply is of one version, whole."""
    versions = [archive(seed=i, size=3000) for i in range(4)]
    bodies = {files_of(v)["dir/one.txt"] for v in versions}
    for bucket in BUCKETS:
        c.put(bucket, "hot.tgz", gzip.compress(versions[0]))
        done = threading.Event()

        def write(bucket=bucket, done=done):
            for i in range(12):
                c.put(bucket, "hot.tgz", gzip.compress(versions[i % 4]))
            done.set()

        writer = threading.Thread(target=write)
        writer.start()
        while not done.is_set():
            reply = get(c, bucket, "hot.tgz", "dir/one.txt")
            if reply.status != 503:  # overwritten again and again
                check(reply.expect(200).body in bodies, f"{bucket}: bytes of no version")
        writer.join()


def test_in_a_batch(c):
    data = archive(seed=5)
    files = files_of(data)
    c.put("plain", "b.tar.gz", gzip.compress(data))
    names = sorted(files)
    body = {"entries": [{"bucket": "plain", "object": "b.tar.gz", "member": n} for n in names]}
    reply = c.call("POST", "/v1/batch", body, node=c.owner("plain", "b.tar.gz")).expect(200)
    with tarfile.open(fileobj=io.BytesIO(reply.body)) as tar:
        got = [tar.extractfile(m).read() for m in tar.getmembers()]
    check(got == [files[n] for n in names], "the batch has other bytes")


if __name__ == "__main__":
    main(targets=3, mountpaths=2, args=[f"--target-arg=--unpack-threads={THREADS}",
                                        "--target-arg=--shard-index-memory=1MiB"])
