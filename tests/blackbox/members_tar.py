#!/usr/bin/env python3
"""Members of an archive that match, as a tar in the archive's order."""

import bz2
import fnmatch
import http.client
import io
import os
import re
import tarfile
import threading
import urllib.parse

from lib import check, equal, main
from members import BUCKETS, member

NAMES = [f"set-{i % 6}/{i:03}.{extension}" for i in range(60)
         for extension in ("jpg", "seg.png", "cls")]
EXPRESSION = r"^set-[0-2]/.*[05]\.(jpg|cls)$"
LONG = "a-long-name/" * 30 + "end"


def body(name, turn):
    return f"{turn} {name} ".encode() * (turn * 37 % 4000)


def made(names, mode="w"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=tarfile.PAX_FORMAT) as tar:
        for i, name in enumerate(names):
            member(tar, name, body(name, i))
        member(tar, "link", b"", type=tarfile.SYMTYPE, linkname="x")
    return out.getvalue()


def chosen(c, bucket, name, mode, text, **options):
    query = urllib.parse.urlencode({"members": "tar", "mode": mode, "match": text},
                                   quote_via=urllib.parse.quote)
    return c.object("GET", bucket, name, query=query, **options)


def files_of(data):
    """[(name, bytes)] in the order of the tar."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [(m.name, tar.extractfile(m).read()) for m in tar.getmembers()]


TEXTS = {"prefix": "set-1/", "suffix": ".cls", "substr": "03", "wdskey": "set-1/007",
         "regexp": EXPRESSION}
WANTED = {
    "prefix": lambda name: name.startswith("set-1/"),
    "suffix": lambda name: name.endswith(".cls"),
    "substr": lambda name: "03" in name,
    "wdskey": lambda name: fnmatch.fnmatchcase(name, "set-1/007.*"),
    "regexp": lambda name: re.match(EXPRESSION, name),
}


def test_all_modes(c):
    """Of plain tars and packed ones, wherever their bytes are."""
    for bucket, props in BUCKETS.items():
        c.create(bucket, **props)
        for key, how in (("s.tar", "w"), ("s.tgz", "w:gz"), ("s.tar.xz", "w:xz")):
            c.put(bucket, key, made(NAMES, how))
            for mode, wanted in WANTED.items():
                reply = chosen(c, bucket, key, mode, TEXTS[mode]).expect(200)
                equal(reply.headers["Content-Type"], "application/x-tar", "the type")
                equal(files_of(reply.body),
                      [(n, body(n, i)) for i, n in enumerate(NAMES) if wanted(n)],
                      f"{bucket}/{key}, {mode}")


def test_odd_names(c):
    names = ["sp ace", "per%cent+&", "\u00fc\u20ac", "../up", LONG, "twice", "twice"]
    for key, how in (("odd.tar", "w"), ("odd.tgz", "w:gz")):
        c.put("plain", key, made(names, how))
        got = files_of(chosen(c, "plain", key, "regexp", ".").expect(200).body)
        equal(got, [(n, body(n, i)) for i, n in enumerate(names) if i != 5], key)
        for name in names[:5]:
            equal(files_of(chosen(c, "plain", key, "prefix", name).expect(200).body),
                  [(name, body(name, names.index(name)))], name)


def test_nothing_matches(c):
    for key in ("s.tar", "s.tgz"):
        chosen(c, "plain", key, "prefix", "none").expect(404, "member_not_found", "plain/" + key)
        chosen(c, "plain", key, "prefix", "link").expect(404, "member_not_found")
    chosen(c, "plain", "nothing.tar", "prefix", "a").expect(404, "object_not_found")
    c.put("plain", "bytes.tar", b"no archive" * 200)
    chosen(c, "plain", "bytes.tar", "prefix", "a").expect(415, "not_an_archive")


def test_what_is_asked_wrongly(c):
    chosen(c, "plain", "s.tar", "glob", "*").expect(400, "invalid_argument", "mode")
    chosen(c, "plain", "s.tar", "prefix", "").expect(400, "invalid_argument", "match")
    chosen(c, "plain", "s.tar", "regexp", "a(").expect(400, "invalid_argument", "byte 2")
    chosen(c, "plain", "s.tar", "prefix", "a" * 1025).expect(400, "invalid_argument", "1024")
    whole = "members=tar&mode=prefix&match=a"
    for query in ("members=tar", "members=tar&match=a", "members=list&match=a",
                  "member=a&mode=prefix", whole + "&limit=3", whole + "&member=b"):
        c.object("GET", "plain", "s.tar", query=query).expect(400, "invalid_argument")
    equal(c.object("HEAD", "plain", "s.tar", query=whole).status, 400, "HEAD")


def test_an_expression_that_takes_for_ever(c):
    c.put("plain", "slow.tar", made(["a" * 90 + "!"] * 3))
    chosen(c, "plain", "slow.tar", "regexp", "^(a+)+$").expect(400, "invalid_argument", "sought")


def test_a_damaged_archive(c):
    """An error, or a reply that is cut: never a tar that looks whole."""
    data = bytearray(made(NAMES, "w:gz"))
    data[len(data) // 2] ^= 0xff
    c.put("plain", "bad.tgz", bytes(data))
    chosen(c, "plain", "bad.tgz", "substr", "set").expect(422, "archive_damaged")
    head = tarfile.TarInfo("zeros")
    head.size = 100 << 20
    c.put("plain", "bomb.tar.bz2", bz2.compress(head.tobuf() + bytes(head.size)))
    chosen(c, "plain", "bomb.tar.bz2", "substr", "zero").expect(422, "archive_damaged")


def test_readers_beside_a_writer(c):
    """Each reply is of one version."""
    versions = [made([f"v{v}/{i}" for i in range(40)]) for v in range(2)]
    c.put("two", "moves.tar", versions[0])
    over = threading.Event()

    def write():
        turn = 0
        while not over.is_set():
            turn += 1
            c.put("two", "moves.tar", versions[turn % 2])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(60):
            got = files_of(chosen(c, "two", "moves.tar", "substr", "v").expect(200).body)
            check(got in [[(f"v{v}/{i}", body(f"v{v}/{i}", i)) for i in range(40)] for v in range(2)],
                  f"{len(got)} members of several versions")
    finally:
        over.set()
        writer.join()


def test_a_large_archive(c):
    """More than pipes hold; clients that leave early hold up nobody."""
    names = [f"{i:05}" for i in range(300)]
    data = io.BytesIO()
    blocks = {n: os.urandom(200_000) for n in names}
    with tarfile.open(fileobj=data, mode="w") as tar:
        for n in names:
            member(tar, n, blocks[n])
    c.put("sliced", "large.tar", data.getvalue())
    c.put("plain", "large.tar", data.getvalue())
    for bucket in ("plain", "sliced"):
        for _ in range(8):
            leave_early(c, bucket)
        got = files_of(chosen(c, bucket, "large.tar", "prefix", "00").expect(200).body)
        check(got == list(blocks.items()), f"{bucket}: {len(got)} members")


def leave_early(c, bucket):
    reply = chosen(c, bucket, "large.tar", "prefix", "00", follow=False).expect(307)
    at = urllib.parse.urlsplit(reply.headers["Location"])
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=60)
    connection.request("GET", f"{at.path}?{at.query}")
    equal(len(connection.getresponse().read(1000)), 1000, "the first bytes")
    connection.close()


if __name__ == "__main__":
    main(targets=3)
