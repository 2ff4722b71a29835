#!/usr/bin/env python3
"""Checkpoints of torch.distributed.checkpoint: a save and a load by 4 ranks, beside PUT and GET of
the same bytes by as many processes and threads.  See README.md for what each figure means."""

import contextlib
import json
import os
import subprocess
import sys

import benchlib
from benchlib import GIB, MIB, log
from peers import Cluster
from python import compared, has, show

HERE = benchlib.ROOT / "tests" / "bench"
RANKS = 4


class Ranks:
    """Processes that do all at once what one line says."""

    def __init__(self, python, folder, url, size, tensors):
        self.all = [subprocess.Popen(
            [python, "-W", "ignore", HERE / "checkpoint_side.py", str(rank), str(RANKS),
             folder / "meeting", url, str(size // RANKS), str(tensors)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for rank in range(RANKS)]

    def __enter__(self):
        return self

    def act(self, act, name):
        for rank in self.all:
            rank.stdin.write(f"{act} {name}\n")
            rank.stdin.flush()
        line = self.all[0].stdout.readline()
        if not line:
            raise RuntimeError(f"a rank ended in the midst of '{act}'")
        return json.loads(line)

    def __exit__(self, kind, *_):
        for rank in self.all:
            if kind is not None:
                rank.kill()
            rank.stdin.close()
            rank.wait()


class Bench:
    def __init__(self, args, ranks):
        self.args, self.ranks = args, ranks
        self.rows, self.number = [], 0
        self.names = {}  # the newest of each act that stores

    def store(self, act):
        """Under a new name.  What the round before stored is deleted first, outside of the time."""
        if act in self.names:
            self.ranks.act("remove", self.names[act])
        self.number += 1
        self.names[act] = f"{act}{self.number}"
        benchlib.flush_disk(self.args.dir)
        return self.ranks.act(act, self.names[act])

    def run(self):
        sides = {"save": lambda: self.store("save"), "PUT": lambda: self.store("put")}
        self.row("save", sides)
        self.row("load", {"load": lambda: self.ranks.act("load", self.names["save"]),
                          "GET": lambda: self.ranks.act("get", self.names["put"])})

    def row(self, name, sides):
        results = benchlib.interleave(sides, self.args.rounds, warm_up=not self.args.quick)
        self.rows.append({"name": name, **compared(results, "bytes")})


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--python", default=os.environ.get("DFC_TORCH_PYTHON") or sys.executable,
                   help="a Python with torch and xxhash (default: DFC_TORCH_PYTHON)")
    p.add_argument("--gib", type=float, default=4, help="size of a checkpoint")
    p.add_argument("--targets", type=int, default=4)
    args = p.parse_args()
    size, tensors = int(args.gib * GIB), 64
    if args.quick:
        args.rounds, size, tensors = 1, 8 * MIB, 4
    if not has(args.python, "torch"):
        log(f"skipped: {args.python} has no package torch; DFC_TORCH_PYTHON names one")
        sys.exit(77)
    document = {"machine": benchlib.begin(args), "bytes": size, "targets": args.targets}
    with benchlib.WorkDir(args.dir) as work, contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(work / "dfc", args.build, targets=args.targets))
        cluster.new_place("bench")
        ranks = stack.enter_context(Ranks(args.python, work, cluster.proxy["url"], size, tensors))
        bench = Bench(args, ranks)
        bench.run()
        document["rows"] = bench.rows
    show(document["rows"])
    benchlib.finish(args, "checkpoint_torch", document)


if __name__ == "__main__":
    main()
