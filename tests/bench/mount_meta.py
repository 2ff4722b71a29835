#!/usr/bin/env python3
"""Names of a mounted volume: create, stat, rename, readdir and unlink of empty files, by 1 and by 12
processes, each in a directory of its own, on each metadata engine.  Calls a second, and the time that
the mount and the engine's server have of the processors for a call."""

import glob
import os
import shutil
import subprocess
import sys
import time

import benchlib
from benchlib import free_port, wait_for_port
from peers import Cluster

PROCESSES = (1, 12)
FILES = 600  # of all processes together
CALLS = ("create", "stat", "rename", "readdir", "unlink")

# One process: begins each kind of call when it is told, and says when it is done.
WORKER = r"""
import os, sys
directory, count = sys.argv[1], int(sys.argv[2])
os.makedirs(directory)
names = [f"{directory}/f{i}" for i in range(count)]
calls = {
    "create": lambda n: os.close(os.open(n, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o644)),
    "stat": os.stat,
    "rename": lambda n: os.rename(n, n + "r"),
    "unlink": lambda n: os.unlink(n + "r"),
}
print("ready", flush=True)
for line in sys.stdin:
    call = line.strip()
    if call == "readdir":
        assert len(os.listdir(directory)) == count
    else:
        for n in names:
            calls[call](n)
    print("done", flush=True)
"""


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Mount:
    def __init__(self, cluster, work, url, pids):
        self.cluster, self.work, self.url = cluster, work, url
        self.path = work / ("mnt-" + url.partition(":")[0])
        self.path.mkdir()
        self.server = pids
        self.name = "v" + url.partition(":")[0]
        self.tool("format", url, self.name, "--bucket", "dfc://" + self.name, "--trash-days=0")
        # Names are asked of the engine each time.
        self.tool("mount", url, str(self.path), "--attr-ttl=0", "--entry-ttl=0")
        self.own = int(os.getxattr(self.path, "user.dfc.pid"))
        self.runs = 0

    def tool(self, *words):
        subprocess.run([str(self.cluster.build / "dfcctl"), "fs", *words], check=True,
                       env={**os.environ, **self.cluster.environment})

    def processors(self):
        """PostgreSQL has a process for each connection."""
        pids = [self.own, *self.server, *(child for pid in self.server for child in children_of(pid))]
        return sum(map(processor_seconds, pids))

    def run(self, processes, files):
        """→ {call: (calls a second, µs of processors a call)}."""
        self.runs += 1
        each = files // processes
        workers = [subprocess.Popen(
            [sys.executable, "-c", WORKER, str(self.path / f"{self.runs}-{i}"), str(each)], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE) for i in range(processes)]
        for w in workers:
            w.stdout.readline()
        results = {}
        for call in CALLS:
            used, began = self.processors(), time.monotonic()
            for w in workers:
                w.stdin.write(call + "\n")
                w.stdin.flush()
            if any(w.stdout.readline() != "done\n" for w in workers):
                raise RuntimeError(f"{call}: a process has failed")
            seconds = time.monotonic() - began
            used = self.processors() - used
            results[call] = (each * processes / seconds, used * 1e6 / (each * processes))
        for w in workers:
            w.communicate()
        return results

    def end(self):
        self.tool("umount", str(self.path))


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def postgres_server(work, programs):
    """→ the process and the URL."""
    port, directory = free_port(), work / "postgres"
    directory.mkdir()
    user = []
    if os.getuid() == 0:  # it does not run as root
        os.chmod(work, 0o711)
        shutil.chown(directory, "postgres")
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    subprocess.run([*user, programs + "/initdb", "-D", str(directory / "data"), "-A", "trust", "-U",
                    "dfc", "--no-locale", "-E", "UTF8"], check=True, stdout=subprocess.DEVNULL)
    process = subprocess.Popen(
        [*user, programs + "/postgres", "-D", str(directory / "data"), "-p", str(port), "-c",
         "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ready = [programs + "/pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
    while subprocess.run(ready, check=False).returncode != 0:
        if process.poll() is not None:
            raise RuntimeError("the PostgreSQL server has ended")
    return process, f"postgres://dfc@127.0.0.1:{port}/postgres"


def redis_server(work):
    """→ the process and the URL."""
    port, directory = free_port(), work / "redis"
    directory.mkdir()
    process = subprocess.Popen(
        [shutil.which("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--dir",
         str(directory), "--save", "", "--appendonly", "yes"], stdout=subprocess.DEVNULL)
    wait_for_port(port, process)
    return process, f"redis://127.0.0.1:{port}/0"


def measure(args, mounts, rows):
    files = 48 if args.quick else FILES
    for processes in PROCESSES:
        sides = {name: lambda m=m: m.run(processes, files) for name, m in mounts.items()}
        rounds = 1 if args.quick else args.rounds
        for name, runs in benchlib.interleave(sides, rounds, warm_up=not args.quick).items():
            for call in CALLS:
                rows.append({"engine": name, "processes": processes, "call": call,
                             "per_second": round(benchlib.median([r[call][0] for r in runs])),
                             "cpu_us": round(benchlib.median([r[call][1] for r in runs]))})


def main():
    args = benchlib.arguments(__doc__).parse_args()
    document = benchlib.begin(args)
    rows, servers = [], []
    if not os.path.exists("/dev/fuse") or not (args.build / "dfc-mount").exists():
        benchlib.log("skipped: there is no /dev/fuse, or no dfc-mount")
        sys.exit(77)
    with benchlib.WorkDir(args.dir) as work, Cluster(work / "dfc", args.build) as cluster:
        mounts = {"sqlite3": Mount(cluster, work, f"sqlite3://{work}/meta.db", [])}
        try:
            if shutil.which("redis-server"):
                server, url = redis_server(work)
                servers.append(server)
                mounts["redis"] = Mount(cluster, work, url, [server.pid])
            postgres = max(glob.glob("/usr/lib/postgresql/*/bin"), default=None)
            if postgres:
                server, url = postgres_server(work, postgres)
                servers.append(server)
                mounts["postgres"] = Mount(cluster, work, url, [server.pid])
            measure(args, mounts, rows)
        finally:
            for m in mounts.values():
                m.end()
            for server in servers:
                server.terminate()
                server.wait()
    benchlib.table(["engine", "processes", "call", "per second", "CPU µs"],
                   [list(r.values()) for r in rows])
    benchlib.finish(args, "mount_meta", {"machine": document, "rows": rows})


if __name__ == "__main__":
    main()
