#!/usr/bin/python3
"""dfc.torch.checkpoint at real daemons, by several ranks of torch.distributed: a checkpoint of 4 ranks
is loaded by 2 and by 8, what is killed in the midst of a save is no checkpoint, targets may die, and
old checkpoints are deleted.

DFC_TORCH_PYTHON names a Python with torch."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

import frame
from lib import WAIT_SECONDS, check, equal, main, skip

sys.path.insert(0, os.path.join(frame.ROOT, "python", "src"))
import dfc  # noqa: E402 pylint: disable=wrong-import-position

try:
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
except ImportError:
    torch = None

ROWS, COLUMNS = 1001, 1500  # 6 MB of floats: rows of a rank begin inside a block


# --- a rank ---


def tensors(seed):
    made = torch.Generator().manual_seed(seed)
    return {"rows": torch.randn(ROWS, COLUMNS, generator=made),
            "columns": torch.randn(30, 1000, generator=made),
            "same": torch.randn(40000, generator=made).to(torch.bfloat16),
            "few": torch.randn(3, generator=made)}


class Rank:
    """What a process of a group does, one word of the command line after the other."""

    def __init__(self, endpoint, rank, world, meeting):
        self.rank, self.world = rank, world
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        torch.set_num_threads(1)
        torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank,
                                             world_size=world)
        self.mesh = init_device_mesh("cpu", (world,))
        self.bucket = dfc.Client(endpoint, profile="").bucket("b")

    def state(self, seed, scale=1):
        rows = {"rows": Shard(0), "columns": Shard(1), "same": Replicate(), "few": Shard(0)}
        made = {name: distribute_tensor(value * scale, self.mesh, [rows[name]])
                for name, value in tensors(seed).items()}
        return {**made, "step": seed * scale, f"of {self.rank % 2}": [self.rank % 2 * scale]}

    def save(self, name, seed):
        from dfc.torch.checkpoint import DfcWriter
        dcp.save(self.state(int(seed)), storage_writer=DfcWriter(self.bucket, name, threads=2,
                                                                 file_size=1 << 20))

    def save_behind(self, name, seed):
        from dfc.torch.checkpoint import DfcWriter
        state = self.state(int(seed))
        saved = dcp.async_save(state, storage_writer=DfcWriter(self.bucket, name))
        for value in state.values():
            if isinstance(value, torch.Tensor):
                value.to_local().zero_()
        saved.result()

    def die(self, name, seed, rank, when):
        """A save in which a rank is killed: behind its first file, or before the commit."""
        from dfc.torch.checkpoint import DfcWriter

        class Dying(DfcWriter):
            def _send(self, file):
                found = super()._send(file)
                end("sent")
                return found

            def _commit(self, data):
                end("commit")
                super()._commit(data)

        def end(now):
            if (self.rank, now) == (int(rank), when):
                os.kill(os.getpid(), signal.SIGKILL)
        dcp.save(self.state(int(seed)), storage_writer=Dying(self.bucket, name, threads=2))

    def load(self, name, seed, reader=None):
        from dfc.torch.checkpoint import DfcReader
        into, wanted = self.state(int(seed), 0), self.state(int(seed))
        dcp.load(into, storage_reader=reader or DfcReader(self.bucket, name))
        for key, value in wanted.items():
            same = torch.equal(into[key].to_local(), value.to_local()) \
                if isinstance(value, torch.Tensor) else into[key] == value
            check(same, f"rank {self.rank} of {self.world}: '{key}' of '{name}' is another")

    def load_files(self, folder, seed):
        self.load(folder, seed, dcp.FileSystemReader(folder))


def act(argv):
    endpoint, rank, world, meeting, script = argv
    one = Rank(endpoint, int(rank), int(world), meeting)
    for method, *words in json.loads(script):
        getattr(one, method)(*words)
        print("done", method, flush=True)
    torch.distributed.destroy_process_group()


# --- the tests ---


class Group:
    """Processes that are the ranks of a group."""

    def __init__(self, cluster, world, *script):
        self._folder = tempfile.TemporaryDirectory(prefix="dfc-ranks-")
        meeting = os.path.join(self._folder.name, "meeting")
        self.ranks = [subprocess.Popen(
            [sys.executable, "-W", "ignore", os.path.abspath(__file__), "rank", cluster.url(),
             str(rank), str(world), meeting, json.dumps(script)], stdout=subprocess.PIPE, text=True,
            stderr=open(os.path.join(self._folder.name, f"{rank}.err"), "w", encoding="utf-8"))
            for rank in range(world)]

    def __enter__(self):
        return self

    def end(self):
        """All of them did what they should."""
        for number, rank in enumerate(self.ranks):
            rank.communicate(timeout=WAIT_SECONDS * 4)
            if rank.returncode != 0:
                with open(os.path.join(self._folder.name, f"{number}.err"), encoding="utf-8") as f:
                    print(f"--- rank {number}: {f.read()[-3000:]}", flush=True)
            equal(rank.returncode, 0, f"rank {number}")

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.kill()
            rank.communicate()
        self._folder.cleanup()


def run(cluster, world, *script):
    with Group(cluster, world, *script) as group:
        group.end()


def bucket(cluster):
    return dfc.Client(cluster.url(), profile="").bucket("b")


def test_four_ranks_save_and_others_load(c):
    c.create("b")
    run(c, 4, ["save", "run/step-9", 9], ["save_behind", "run/step-10", 10], ["load", "run/step-9", 9])
    run(c, 2, ["load", "run/step-9", 9], ["load", "run/step-10", 10])
    run(c, 8, ["load", "run/step-10", 10])
    from dfc.torch.checkpoint import complete, latest
    equal(complete(bucket(c), "run"), ["run/step-9", "run/step-10"], "complete checkpoints")
    equal(latest(bucket(c), "run"), "run/step-10", "the latest")


def test_torchs_reader_loads_a_copy(c):
    with tempfile.TemporaryDirectory(prefix="dfc-copy-") as folder:
        c.dfcctl("get", "-r", "b/run/step-9/", folder)
        names = os.listdir(folder)
        check(".metadata" in names and any(name.startswith("__3_") for name in names), f"files {names}")
        run(c, 2, ["load_files", folder, 9])


def test_what_is_killed_is_no_checkpoint(c):
    from dfc.torch.checkpoint import complete, keep_last, latest
    for rank, when in ((1, "sent"), (0, "commit")):
        with Group(c, 2, ["die", "run/step-11", 11, rank, when]) as group:
            equal(group.ranks[rank].wait(WAIT_SECONDS * 4), -signal.SIGKILL, f"rank {rank}")
        check(list(bucket(c).list("run/step-11/")), "nothing of it was sent")
        equal(latest(bucket(c), "run"), "run/step-10", "the latest")
    left = {entry.name for entry in bucket(c).list("run/step-11/")}
    run(c, 1, ["load", "run/step-10", 10], ["save", "run/step-11", 12], ["load", "run/step-11", 12])
    now = {entry.name for entry in bucket(c).list("run/step-11/")}
    check(any("/__1_" in name for name in left), f"{left}")
    check(not any("/__1_" in name for name in now), f"left: {now}")
    bucket(c).put("run/logs/1.txt", b"a folder that is no checkpoint")
    bucket(c).put("run/step-3/__0_0.distcp", b"of a save that was killed")
    equal(keep_last(bucket(c), 2, "run"), ["run/step-3", "run/step-9"], "deleted")
    equal(complete(bucket(c), "run"), ["run/step-10", "run/step-11"], "complete checkpoints")
    equal([e.name for e in bucket(c).list("run/") if e.name[:10] in ("run/step-3", "run/step-9")], [],
          "objects of checkpoints that are deleted")
    equal(bucket(c).get("run/logs/1.txt")[:8], b"a folder", "another object of the folder")


def test_the_guide(c):
    """Its blocks of Python, one after the other."""
    with open(os.path.join(frame.ROOT, "docs", "guide", "checkpoints.md"), encoding="utf-8") as f:
        blocks = re.findall(r"^```python\n(.*?)^```", f.read(), re.M | re.S)
    check(blocks, "the guide has blocks of Python")
    program = "\n".join([f"import sys; sys.path.insert(0, {sys.path[0]!r})", *blocks])
    with tempfile.TemporaryDirectory(prefix="dfc-guide-") as folder:
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=False,
                              capture_output=True, text=True,
                              env={**os.environ, "DFC_ENDPOINT": c.url(), "XDG_CONFIG_HOME": folder})
    equal(done.returncode, 0, done.stderr)


def test_a_target_that_dies(c):
    """In the midst of saves and loads, again and again: the calls are repeated."""
    over = threading.Event()

    def shake():
        while not over.is_set():
            c.kill("t1")
            c.start("t1")
            over.wait(2.0)  # the length of a cut changes nothing of what is checked
    with Group(c, 2, ["save", "shaken/1", 5], ["load", "shaken/1", 5], ["save", "shaken/2", 6],
               ["load", "shaken/2", 6]) as group:
        check(group.ranks[0].stdout.readline().startswith("done"), "the first save")
        thread = threading.Thread(target=shake)
        thread.start()
        try:
            group.end()
        finally:
            over.set()
            thread.join()


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        act(sys.argv[2:])
        sys.exit(0)
    python = os.environ.get("DFC_TORCH_PYTHON")
    if torch is None and python and python != sys.executable:
        os.execv(python, [python, *sys.argv])
    if torch is None:
        skip("torch is not there; DFC_TORCH_PYTHON names a Python that has it")
    main(targets=3)
