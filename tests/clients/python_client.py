#!/usr/bin/python3
"""The package of python/ at real daemons: placement, buckets of each kind, targets that die, rights,
and fsspec."""

import io
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import threading

import frame
from access_lib import GuardedCluster, make_user
from lib import check, equal, main, wait_for

SOURCE = os.path.join(frame.ROOT, "python", "src")
sys.path.insert(0, SOURCE)
import dfc.shards  # noqa: E402 pylint: disable=wrong-import-position
import fsspec  # noqa: E402 pylint: disable=wrong-import-position

PYTHON = os.environ.get("DFC_TORCH_PYTHON") or sys.executable  # of the guide's programs
DATA = random.Random(23).randbytes(3_000_001)
SIZES = (0, 1, 1024, 16384, 16385, 1 << 20, len(DATA))
ODD = ("a b", "\u00e9\u2603", "x//y", "a/../b", "q?x=y&z", "h#i", "%41", "dir/", "n" * 1024)


class Locked(GuardedCluster):
    def __init__(self, **shape):
        super().__init__(**shape)
        self.clients = []
        fsspec.register_implementation("dfc", "dfc.fs.DfcFileSystem", clobber=True)

    def options(self, access=None, secret=None):
        return {"endpoint": self.endpoint, "profile": "",
                "access_key": access or self.root.access, "secret_key": secret or self.root.secret,
                **({"ca_file": self.ca_file()} if self.http.context else {})}

    def client(self, **options):
        client = dfc.Client(**{**self.options(), **options})
        self.clients.append(client)
        return client


def test_bytes_come_back(c):
    for direct in (True, False):
        bucket = c.client(direct=direct).bucket("bytes").create(exist_ok=True)
        for size in SIZES:
            info = bucket.put(f"{direct}/{size}", DATA[:size], meta={"k": "v"})
            check(bucket.get(f"{direct}/{size}") == DATA[:size], f"{size} bytes came changed")
            head = bucket.head(f"{direct}/{size}")
            equal((head.size, head.etag, head.checksum, head.meta),
                  (size, info.etag, info.checksum, {"k": "v"}), "HEAD")
        for name in ODD:
            bucket.put(name, name.encode())
            equal(bucket.get(name), name.encode(), name)
        equal(sorted(n for n in (e.name for e in bucket.list()) if n in ODD), sorted(ODD), "list")
        for name in ODD:
            bucket.delete(name)


def test_parts(c):
    bucket = c.client().bucket("bytes")
    bucket.put("o", DATA)
    for offset, length in ((0, 1), (1, 5), (1 << 20, 1 << 20), (len(DATA) - 1, 9), (-5, None)):
        part = DATA[offset:] if length is None else DATA[offset:offset + length]
        check(bucket.get("o", offset=offset, length=length) == part, f"{offset}, {length}")
    into = bytearray(len(DATA))
    equal(bucket.get_into("o", into), len(DATA), "bytes read into a buffer")
    check(into == DATA, "the buffer has other bytes")
    try:
        bucket.get("o", offset=len(DATA))
        check(False, "a part behind the end")
    except dfc.Invalid as e:
        equal((e.status, e.code), (416, "range_not_satisfiable"), "error")


def test_the_target_that_is_computed_is_the_leader(c):
    client = c.client()
    for bucket in (client.bucket("one").create(), client.bucket("two").create(copies=2),
                   client.bucket("slices").create(ec="2+1")):
        for i in range(50):
            bucket.put(f"o{i}", b"x")
            place = client._caller.map.place(bucket.name, f"o{i}")
            node = next(n for n in c.targets() if c.url(n) == str(place.origin))
            c.call("GET", f"/v1/objects/{bucket.name}/o{i}?{place.query}", node=node).expect(200)


def start_again(c, node):
    """With all that it missed: until then another target cannot be away, too."""
    c.start(node)
    wait_for(lambda: c.call("GET", "/v1/health?synced=true", node=node).status == 200,
             f"{node} to have what it missed")


def test_a_target_that_dies(c):
    """Every read of a bucket with two copies has the right bytes; every PUT succeeds."""
    bucket = c.client().bucket("two")
    names = [f"d{i}" for i in range(40)]
    for name in names:
        bucket.put(name, name.encode() * 1000)
    over, wrong = threading.Event(), []

    def use():
        while not over.is_set():
            for name in names:
                if bucket.get(name) != name.encode() * 1000:
                    wrong.append(name)
                bucket.put(name, name.encode() * 1000)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    c.kill("t1")
    c.wait_node("t1", "unreachable")
    start_again(c, "t1")
    over.set()
    for thread in threads:
        thread.join()
    equal(wrong, [], "objects with other bytes")


def shard(number):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for i in range(20):
            member = tarfile.TarInfo(f"{number}-{i}.bin")
            member.size = 50_000
            archive.addfile(member, io.BytesIO(DATA[number * 20 + i:][:member.size]))
    return out.getvalue()


def test_a_target_that_dies_in_an_epoch(c):
    """No sample is lost, none comes twice, and none has other bytes."""
    bucket = c.client().bucket("two")
    for number in range(12):
        bucket.put(f"set-{number:02}.tar", shard(number))
    killed, found = threading.Event(), []

    def train(consumer):
        reader = dfc.shards.ShardReader(bucket, "set-{00..11}.tar", consumer=consumer, consumers=3,
                                        ahead=1)
        for count, sample in enumerate(reader):
            if count == 25:
                killed.wait(60)
            number, i = map(int, sample["__key__"].split("-"))
            right = sample["bin"] == DATA[number * 20 + i:][:50_000]
            found.append((sample["__key__"], right))

    threads = [threading.Thread(target=train, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    c.kill("t2")
    killed.set()
    for thread in threads:
        thread.join()
    start_again(c, "t2")
    equal(sorted(found), sorted((f"{n}-{i}", True) for n in range(12) for i in range(20)),
          "samples")


def test_lists_and_jobs(c):
    bucket = c.client().bucket("many").create()
    for i in range(250):
        bucket.put(f"d{i % 10}/{i:03}", b"%d" % i)
    equal([e.name for e in bucket.list(page_size=7)],
          sorted(f"d{i % 10}/{i:03}" for i in range(250)), "names")
    equal([e.name for e in bucket.list(delimiter="/")], [f"d{i}/" for i in range(10)], "prefixes")
    document = bucket.copy_many("many", prepend="copy/", prefix="d1/").wait(timeout=120)
    equal(document["progress"]["objects"]["done"], 25, "objects copied")
    bucket.delete_many(prefix="d").wait(timeout=120)
    equal(len(list(bucket.list())), 25, "objects left")
    try:
        bucket.delete_many(prefix="nothing").wait(timeout=120)
        check(False, "a job over nothing")
    except dfc.Error as e:
        equal(e.code, "nothing_matched", "code")
    bucket.destroy()
    check(not bucket.exists(), "the bucket is there")
    bucket.destroy(missing_ok=True)


def test_rights(c):
    c.client().bucket("mine").create(exist_ok=True).put("o", b"x")
    reader = make_user(c, "reader", [{"rights": ["read"], "bucket": "mine"}])
    bucket = c.client(access_key=reader.access, secret_key=reader.secret).bucket("mine")
    equal(bucket.get("o"), b"x", "a user who may not see the map reads")
    for call in (lambda: bucket.put("o", b"y"), lambda: bucket.delete("o"),
                 lambda: list(bucket.list())):
        try:
            call()
            check(False, "more than its rights")
        except dfc.Denied as e:
            equal(e.code, "access_denied", "code")
    try:
        c.client(secret_key="wrong").buckets()
        check(False, "a wrong secret")
    except dfc.Denied:
        pass


def test_a_certificate_of_another_authority(c):
    if not c.http.context:
        return
    try:
        dfc.Client(**{**c.options(), "ca_file": None}).buckets()
        check(False, "any certificate is taken")
    except dfc.Error as e:
        check("not trusted" in e.message and "ca_file" in e.message, e.message)


def test_fsspec(c):
    fs = fsspec.filesystem("dfc", skip_instance_cache=True, **c.options())
    fs.makedirs("fb", exist_ok=True)
    with fs.open("dfc://fb/d/x.txt", "w") as f:
        f.write("hello\nworld\n")
    with fs.open("fb/d/x.txt") as f:
        equal(f.readlines(), [b"hello\n", b"world\n"], "lines")
    equal((fs.ls("fb", detail=False), fs.find("fb"), fs.isdir("fb/d"), fs.exists("fb/none")),
          (["fb/d"], ["fb/d/x.txt"], True, False), "what is there")
    fs.pipe("fb/a", b"0123456789")
    equal((fs.cat_file("fb/a", 2, 5), fs.cat_file("fb/a", -3), fs.cat_file("fb/a", 20),
           fs.cat_file("fb/a", 1, -1)), (b"234", b"789", b"", b"12345678"), "parts")
    equal(fs.cat_ranges(["fb/a", "fb/a", "fb/d/x.txt"], [0, 4, 1], [2, 6, 3]),
          [b"01", b"45", b"el"], "ranges")
    fs.cp("fb/a", "fb/b")
    fs.mv("fb/b", "fb/c")
    equal(fs.glob("fb/*"), ["fb/a", "fb/c", "fb/d"], "after a copy and a move")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "one"), "wb") as f:
            f.write(DATA)
        fs.put(folder + "/", "fb/up", recursive=True)
        fs.get("fb/up", folder + "/down", recursive=True)
        with open(os.path.join(folder, "down", "one"), "rb") as f:
            check(f.read() == DATA, "a file came back changed")
    with fs.open("fb/up/one") as f:
        f.seek(1_000_000)
        check(f.read(500_000) == DATA[1_000_000:1_500_000], "a part of a file")
    fs.rm("fb", recursive=True)
    equal(fs.find("fb"), [], "after rm")
    fs.rmdir("fb")
    check(not fs.exists("fb"), "the bucket is there")


def test_a_large_file_in_parts(c):
    """Also by a client that cannot reach targets, and over an object that is there."""
    data = random.Random(8).randbytes((11 << 20) + 5)
    with tempfile.NamedTemporaryFile() as f:
        f.write(data)
        f.flush()
        for client, want in ((c.client(), {"k": "v"}), (c.client(direct=False), {})):
            bucket = client.bucket("parts").create(exist_ok=True)
            info = bucket.put_file("large", f.name, meta=want, part_size=5 << 20)
            equal((info.size, info.etag), (len(data), bucket.head("large").etag), "what was stored")
            equal(bucket.head("large").meta, want, "metadata")
            check(bucket.get("large") == data, "other bytes")
        try:
            bucket.put_file("large", f.name, if_absent=True, part_size=5 << 20)
            check(False, "an object that exists was replaced")
        except dfc.Precondition:
            pass
    equal(client.get_json("/v1/uploads/parts")["uploads"], [], "open uploads")


def test_a_file_is_written_whole_or_not_at_all(c):
    fs = fsspec.filesystem("dfc", skip_instance_cache=True, **c.options())
    fs.mkdir("whole")
    try:
        with fs.open("whole/bad", "wb") as f:
            f.write(b"half")
            raise InterruptedError
    except InterruptedError:
        pass
    f = fs.open("whole/left", "wb")
    f.write(b"half")
    del f
    with fs.transaction:
        with fs.open("whole/good", "wb") as f:
            f.write(b"whole")
        check(not fs.exists("whole/good"), "it is there before the transaction ends")
    equal(fs.find("whole"), ["whole/good"], "objects")
    with fs.open("whole/good") as f:
        f.read(1)
        fs.pipe("whole/good", b"other")
        f.cache.cache = b""  # what was read ahead
        f.cache.start = f.cache.end = 0
        try:
            f.read()
            check(False, "two versions in one file")
        except OSError:
            pass


def has_package(name):
    return subprocess.run([PYTHON, "-c", f"import {name}"], check=False,
                          capture_output=True).returncode == 0


def guide_blocks():
    """Those of docs/guide/python.md whose packages are there.  The comment before a block says
    what it needs; DFC_TORCH_PYTHON names a Python that has it all."""
    with open(os.path.join(frame.ROOT, "docs", "guide", "python.md"), encoding="utf-8") as f:
        found = re.findall(r"^(?:<!-- needs: (\w+) -->\n)?```python\n(.*?)^```", f.read(),
                           re.M | re.S)
    blocks = [text for needs, text in found if not needs or has_package(needs)]
    check(len(blocks) > 6, "the guide has blocks of Python")
    return blocks


def test_the_guide(c):
    """The blocks of Python of docs/guide/python.md, one after the other."""
    blocks = guide_blocks()
    o = c.options()
    program = "\n".join([f"import sys; sys.path.insert(0, {SOURCE!r})", "import fsspec",
                         "fsspec.register_implementation('dfc', 'dfc.fs.DfcFileSystem')", *blocks])
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "DFC_ENDPOINT": o["endpoint"], "DFC_ACCESS_KEY": o["access_key"],
               "DFC_SECRET_KEY": o["secret_key"], "DFC_CA_FILE": o.get("ca_file", ""),
               "XDG_CONFIG_HOME": folder}
        done = subprocess.run([PYTHON, "-W", "ignore", "-c", program], cwd=folder, env=env, check=False,
                              capture_output=True, text=True)
    equal((done.returncode, done.stderr), (0, ""), "the end of the guide's program")
    check("a/1.txt 5" in done.stdout and "precondition_failed" in done.stdout, done.stdout)


def test_a_target_that_joins(c):
    """A client with an old map finds objects wherever they are."""
    client = c.client()
    bucket = client.bucket("one")
    name = c.add_target()
    c.wait_node(name, "active")
    for i in range(50):
        equal(bucket.get(f"o{i}"), b"x", f"o{i}")
    wait_for(lambda: client._caller.map._renew("one") and
             any(str(n.place.origin) == c.url(name) for n in client._caller.map._known["one"].layout._nodes),
             "the client knows the target")


if __name__ == "__main__":
    main(Locked, targets=3)
