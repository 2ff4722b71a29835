"""One side of python.py, in a process of its own: reads, and prints JSON.

    python_reads.py get  SIDE URL BUCKET COUNT NAME…     GETs of the names in turn, in one thread
    python_reads.py epoch SIDE URL PLACE COUNT SHARD…    COUNT epochs over shards

SIDE is dfc, requests or aistore; for epochs dfc or disk, where PLACE is a directory."""

import itertools
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[0] = os.path.join(HERE, "..", "..", "python", "src")


def measured(act, count):
    """Seconds and CPU seconds of this process, for so many acts."""
    act(max(1, count // 50))  # connections, imports, caches
    wall, processor = time.monotonic(), time.process_time()
    size = act(count)
    return {"seconds": time.monotonic() - wall, "cpu_seconds": time.process_time() - processor,
            "count": count, "bytes": size}


def getter(side, url, bucket):
    """→ a function from a name to its bytes."""
    if side == "dfc":
        import dfc
        return dfc.Client(url, profile="").bucket(bucket).get
    if side == "requests":
        import requests
        session = requests.Session()
        return lambda name: session.get(f"{url}/v1/objects/{bucket}/{name}").content
    import aistore
    place = aistore.Client(url).bucket(bucket)
    return lambda name: place.object(name).get_reader().read_all()


def gets(side, url, bucket, names):
    get = getter(side, url, bucket)
    return lambda count: sum(len(get(name))
                             for name in itertools.islice(itertools.cycle(names), count))


class Directory:
    """Shards of a local disk, for the same reader."""

    def __init__(self, path):
        self._path = path

    def open(self, name):
        return open(os.path.join(self._path, name), "rb", buffering=1 << 20)  # as ours


def epochs(side, url, place, names):
    import dfc.shards
    bucket = Directory(place) if side == "disk" else dfc.Client(url, profile="").bucket(place)
    reader = dfc.shards.ShardReader(bucket, names)

    def act(count):
        size = 0
        for epoch in range(count):
            reader.set_epoch(epoch)
            size += sum(len(sample["bin"]) for sample in reader)
        return size

    return act


if __name__ == "__main__":
    kind, which, at, where, times, *rest = sys.argv[1:]
    print(json.dumps(measured({"get": gets, "epoch": epochs}[kind](which, at, where, rest),
                              int(times))))
