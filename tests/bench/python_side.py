"""One side of a row of python.py, in a process of its own, with one thread; prints JSON.

    python_side.py KIND SIDE URL PLACE SECONDS SIZE NAME…

Acts for so many seconds (`epoch`: one epoch).  Where DFC_BENCH_RELAY is "PORT=PORT,…", connections
to the first port go to the second: a link that is slow.  The table ACTS has what a side does."""

import itertools
import json
import os
import resource
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[0] = os.path.join(HERE, "..", "..", "python", "src")
PICK = 7919  # a prime: the members of a large archive are taken out of order


def bucket_of(url, place):
    import dfc
    return dfc.Client(url, profile="").bucket(place)


def s3_of(url):
    import boto3
    import botocore
    return boto3.client("s3", endpoint_url=url + "/s3", region_name="us-east-1",
                        config=botocore.config.Config(signature_version=botocore.UNSIGNED))


def in_turn(names, act):
    """→ a function that acts on the next name: how many bytes, and how many acts that was."""
    turn = itertools.cycle(names)
    return lambda: (act(next(turn)), 1)


def bare(url, place, names, **_):
    """A socket: the least that a GET can cost a Python program here."""
    at = urlsplit(url)
    s = socket.create_connection((at.hostname, at.port))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    asks = {n: f"GET /v1/objects/{place}/{n} HTTP/1.1\r\nHost: {at.netloc}\r\n\r\n".encode()
            for n in names}

    def get(name):
        s.sendall(asks[name])
        data = s.recv(8192)
        head, _, body = data.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"\r\ncontent-length:")[2].split(b"\r\n")[0])
        rest = bytearray(size - len(body))
        if rest and s.recv_into(rest, len(rest), socket.MSG_WAITALL) != len(rest):
            raise RuntimeError("the reply is too short")
        return size

    return in_turn(names, get)


def get_dfc(url, place, names, **_):
    get = bucket_of(url, place).get
    return in_turn(names, lambda name: len(get(name)))


def get_boto3(url, place, names, **_):
    s3 = s3_of(url)
    return in_turn(names, lambda name: len(s3.get_object(Bucket=place, Key=name)["Body"].read()))


def get_aistore(url, place, names, **_):
    from aistore.sdk import Client
    bucket = Client(url).bucket(place)
    return in_turn(names, lambda name: len(bucket.object(name).get_reader().read_all()))


def put_dfc(url, place, names, size):
    bucket, data = bucket_of(url, place), os.urandom(size)
    return in_turn(names, lambda name: bucket.put("dfc-" + name, data).size)


def put_boto3(url, place, names, size):
    s3, data = s3_of(url), os.urandom(size)
    return in_turn(names, lambda name: s3.put_object(
        Bucket=place, Key="boto3-" + name, Body=data) and size)


def put_aistore(url, place, names, size):
    from aistore.sdk import Client
    bucket, data = Client(url).bucket(place), os.urandom(size)
    return in_turn(names, lambda name: bucket.object("aistore-" + name).get_writer().put_content(
        data) and size)


def batches(url, place, names, **_):
    """All names by one request."""
    bucket = bucket_of(url, place)
    asked = [tuple(n.split("!")) if "!" in n else n for n in names]
    return lambda: (sum(len(data) for _, data in bucket.batch(asked)), len(asked))


def gets(url, place, names, **_):
    """Each name by a request."""
    bucket = bucket_of(url, place)
    return in_turn(names, lambda name: len(
        bucket.member(*name.split("!")) if "!" in name else bucket.get(name)))


def member(url, place, names, size):
    """The members of an archive, of which there are `size`, by their names."""
    bucket, turn = bucket_of(url, place), itertools.count()
    return lambda: (len(bucket.member(names[0], f"{next(turn) * PICK % size:06}.bin")), 1)


def ranged(url, place, names, size):
    """The same bytes, by their offsets."""
    bucket, turn = bucket_of(url, place), itertools.count()
    rows = {m["name"]: m for m in bucket.members(names[0])}

    def act():
        row = rows[f"{next(turn) * PICK % size:06}.bin"]
        return len(bucket.get(names[0], offset=row["offset"], length=row["size"])), 1

    return act


def members(url, place, names, size):
    bucket = bucket_of(url, place)

    def act():
        found = sum(1 for _ in bucket.members(names[0]))
        if found != size:
            raise RuntimeError(f"{found} members")
        return 0, 1

    return act


def tar_t(url, place, names, size):
    """`tar t` of the file of the archive: `place` is its folder."""
    path = os.path.join(place, names[0])

    def act():
        done = subprocess.run(["tar", "tvf", path], stdout=subprocess.PIPE, check=True)
        if done.stdout.count(b"\n") != size:
            raise RuntimeError("tar lists another number of members")
        return 0, 1

    return act


class Directory:
    """Shards of a local disk, for the same reader."""

    def __init__(self, path):
        self._path = path

    def open(self, name):
        return open(os.path.join(self._path, name), "rb", buffering=1 << 20)  # as ours


def epoch_of(bucket, names):
    import dfc.shards
    epochs = itertools.count()
    reader = dfc.shards.ShardReader(bucket, names)

    def act():
        reader.set_epoch(next(epochs))
        return sum(len(sample["bin"]) for sample in reader), 1

    return act


def epoch_dfc(url, place, names, **_):
    return epoch_of(bucket_of(url, place), names)


def epoch_disk(url, place, names, **_):
    return epoch_of(Directory(place), names)


ACTS = {
    ("get", "dfc"): get_dfc, ("get", "socket"): bare, ("get", "boto3"): get_boto3,
    ("get", "aistore"): get_aistore,
    ("put", "dfc"): put_dfc, ("put", "boto3"): put_boto3, ("put", "aistore"): put_aistore,
    ("many", "batch"): batches, ("many", "gets"): gets,
    ("member", "member"): member, ("member", "range"): ranged,
    ("list", "members"): members, ("list", "tar t"): tar_t,
    ("epoch", "dfc"): epoch_dfc, ("epoch", "disk"): epoch_disk,
}


def over_relay(ports):
    """As a link of its own: whoever connects to a node does it by the relay."""
    there = {int(a): int(b) for a, b in (pair.split("=") for pair in ports.split(","))}
    plain = socket.create_connection
    socket.create_connection = lambda address, *args, **options: plain(
        (address[0], there.get(address[1], address[1])), *args, **options)


def cpu_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def measured(act, seconds):
    """Seconds and CPU seconds of this process and its children, for `count` acts."""
    act()  # connections, imports, caches
    size, count = 0, 0
    before = cpu_seconds()
    wall = time.monotonic()
    while count == 0 or time.monotonic() - wall < seconds:
        moved, acts = act()
        size += moved
        count += acts
    return {"seconds": time.monotonic() - wall, "count": count, "bytes": size,
            "cpu_seconds": cpu_seconds() - before}


if __name__ == "__main__":
    if os.environ.get("DFC_BENCH_RELAY"):
        over_relay(os.environ["DFC_BENCH_RELAY"])
    kind, which, at, where, time_, bytes_, *rest = sys.argv[1:]
    print(json.dumps(measured(ACTS[kind, which](url=at, place=where, names=rest,
                                                size=int(bytes_)), float(time_))))
