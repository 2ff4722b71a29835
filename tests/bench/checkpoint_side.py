"""A rank of checkpoint_torch.py: does what its standard input says, and prints how long that took.

    checkpoint_side.py RANK WORLD MEETING URL BYTES TENSORS

A line is ACT NAME; the answer is JSON, by rank 0.  The seconds are those of the slowest rank."""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[0] = os.path.join(HERE, "..", "..", "python", "src")

import torch  # noqa: E402 pylint: disable=wrong-import-position
import torch.distributed as dist  # noqa: E402 pylint: disable=wrong-import-position
import torch.distributed.checkpoint as dcp  # noqa: E402 pylint: disable=wrong-import-position
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402 pylint: disable=C0413
from torch.distributed.tensor import DTensor, Shard  # noqa: E402 pylint: disable=C0413

import dfc  # noqa: E402 pylint: disable=wrong-import-position
from dfc.torch._saved import memory  # noqa: E402 pylint: disable=wrong-import-position
from dfc.torch.checkpoint import DfcReader, DfcWriter  # noqa: E402 pylint: disable=C0413

SENDERS, READERS = 4, 8  # threads of both sides


class Side:
    def __init__(self, rank, world, meeting, url, size, tensors):
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
        mesh = init_device_mesh("cpu", (world,))
        self.rank, self.bucket = rank, dfc.Client(url, profile="").bucket("bench")
        torch.manual_seed(rank)
        rows = max(size // tensors // 4096, 1)
        self.local = [torch.randint(0, 1 << 30, (rows, 1024), dtype=torch.int32) for _ in range(tensors)]
        self.state = {f"t{i}": DTensor.from_local(one, mesh, [Shard(0)])
                      for i, one in enumerate(self.local)}
        self.size = sum(one.nbytes for one in self.local) * world

    def save(self, name):
        dcp.save(self.state, storage_writer=DfcWriter(self.bucket, name, threads=SENDERS))

    def load(self, name):
        dcp.load(self.state, storage_reader=DfcReader(self.bucket, name, threads=READERS))

    def names(self, name):
        return [f"{name}/{self.rank}/{i}" for i in range(len(self.local))]

    def put(self, name):
        with ThreadPoolExecutor(SENDERS) as pool:
            list(pool.map(lambda pair: self.bucket.put(pair[0], memory(pair[1])),
                          zip(self.names(name), self.local)))

    def get(self, name):
        with ThreadPoolExecutor(READERS) as pool:
            list(pool.map(lambda pair: self.bucket.get_into(pair[0], memory(pair[1])),
                          zip(self.names(name), self.local)))

    def remove(self, name):
        if self.rank == 0:
            self.bucket.delete_many(prefix=name + "/").wait()

    def timed(self, act, name):
        dist.barrier()
        begin, cpu = time.monotonic(), time.process_time()
        getattr(self, act)(name)
        dist.barrier()
        used = torch.tensor([time.process_time() - cpu])
        dist.all_reduce(used)
        return {"seconds": time.monotonic() - begin, "bytes": self.size, "count": 1,
                "cpu_seconds": float(used[0])}


def main():
    side = Side(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]),
                int(sys.argv[6]))
    for line in sys.stdin:
        result = side.timed(*line.split())
        if side.rank == 0:
            print(json.dumps(result), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
