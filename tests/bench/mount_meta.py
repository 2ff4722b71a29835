#!/usr/bin/env python3
"""Names of a mounted volume: create, stat, rename, readdir and unlink of empty files, by 1 and by 12
processes, each in a directory of its own, on each metadata engine, beside JuiceFS on the same engine;
then one directory with many names.  Calls a second, and the time that the mount and the engine's
server have of the processors for a call."""

import contextlib
import glob
import os
import shutil
import subprocess
import sys
import time

import benchlib
import juicefs
from benchlib import free_port, wait_for_port
from mount_sides import processor_seconds
from peers import Cluster

PROCESSES = (1, 12)
FILES = 1200  # of all processes together
NAMES = 30000  # of the large directory
CALLS = ("create", "stat", "rename", "readdir", "unlink")

# One process: begins each kind of call when it is told, and says when it is done.
WORKER = r"""
import os, sys
directory, count, first, total = sys.argv[1], *map(int, sys.argv[2:])
os.makedirs(directory, exist_ok=True)
names = [f"{directory}/f{first + i}" for i in range(count)]
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
        if (found := len(os.listdir(directory))) != total:
            sys.exit(f"{directory}: {found} names, not {total}")
    else:
        for n in names:
            calls[call](n)
    print("done", flush=True)
"""


class Mount:
    """`serving`: processes that serve the mount; `servers`: those of the engine."""

    def __init__(self, work, name, serving, servers):
        self.path, self.runs = work / name, 0
        self.path.mkdir()
        self.serving, self.servers = serving, servers

    def processors(self):
        """PostgreSQL has a process for each connection.  One that ends here counts with its parent."""
        used = sum(map(processor_seconds, self.serving))
        for child in (child for pid in self.servers for child in children_of(pid)):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                used += processor_seconds(child)
        return used + sum(processor_seconds(pid, True) for pid in self.servers)

    def worker(self, directory, count, first, total):
        process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(directory), *map(str, (count, first, total))], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdout.readline()
        return process

    def workers(self, processes, each, shared):
        """Each in a directory of its own, or all in one."""
        self.runs += 1
        if shared:
            directory, total = self.path / f"{self.runs}", each * processes
            return [self.worker(directory, each, i * each, total) for i in range(processes)]
        return [self.worker(self.path / f"{self.runs}-{i}", each, 0, each) for i in range(processes)]

    def timed(self, workers, call, count):
        """→ calls a second, µs of processors a call."""
        used, began = self.processors(), time.monotonic()
        for w in workers:
            w.stdin.write(call + "\n")
            w.stdin.flush()
        if any(w.stdout.readline() != "done\n" for w in workers):
            raise RuntimeError(f"{call}: a process has failed")
        seconds = time.monotonic() - began
        return count / seconds, (self.processors() - used) * 1e6 / count

    def run(self, processes, files):
        """→ {call: what timed() says}."""
        each = files // processes
        workers = self.workers(processes, each, shared=False)
        results = {call: self.timed(workers, call, each * processes) for call in CALLS}
        for w in workers:
            w.communicate()
        return results

    def large(self, processes, names):
        """One directory, filled by all processes and listed by one."""
        each = names // processes
        workers = self.workers(processes, each, shared=True)
        results = {call: self.timed(some, call, each * processes)
                   for call, some in (("create", workers), ("readdir", workers[:1]))}
        for w in workers:
            w.communicate()
        return results


class Volume(Mount):
    def __init__(self, cluster, work, url, servers):
        engine = url.partition(":")[0]
        super().__init__(work, "dfc-" + engine, [], servers)
        self.cluster = cluster
        self.tool("format", url, "v" + engine, "--bucket", "dfc://v" + engine, "--trash-days=0")
        # Names are asked of the engine each time.
        self.tool("mount", url, str(self.path), "--attr-ttl=0", "--entry-ttl=0")
        self.serving.append(int(os.getxattr(self.path, "user.dfc.pid")))

    def tool(self, *words):
        subprocess.run([str(self.cluster.build / "dfcctl"), "fs", *words], check=True,
                       env={**os.environ, **self.cluster.environment})

    def end(self):
        self.tool("umount", str(self.path))


class JuiceFs(Mount):
    def __init__(self, work, url, servers):
        engine = url.partition(":")[0]
        super().__init__(work, "juicefs-" + engine, [], servers)
        juicefs.make(work, url, "--storage=file", f"--bucket={work}/store-{engine}/")
        self.mount = juicefs.Mount(work, url, self.path, "--attr-cache=0", "--entry-cache=0",
                                   "--dir-entry-cache=0", "--cache-size=0")
        self.serving.append(self.mount.pid)

    def end(self):
        self.mount.end()


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
    return process, f"postgres://dfc@127.0.0.1:{port}"


def redis_server(work):
    """→ the process and the URL."""
    port, directory = free_port(), work / "redis"
    directory.mkdir()
    process = subprocess.Popen(
        [shutil.which("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--dir",
         str(directory), "--save", "", "--appendonly", "yes"], stdout=subprocess.DEVNULL)
    wait_for_port(port, process)
    return process, f"redis://127.0.0.1:{port}"


def measure(args, mounts, rows):
    rounds = 1 if args.quick else args.rounds
    runs = [(f"{n} processes" if n > 1 else "1 process", "run", n, args.files, rounds) for n in PROCESSES]
    runs.append((f"one directory of {args.names}", "large", PROCESSES[-1], args.names, 1))
    for what, method, processes, count, times in runs:
        sides = {name: lambda m=m: getattr(m, method)(processes, count) for name, m in mounts.items()}
        for side, found in benchlib.interleave(sides, times, warm_up=False).items():
            for call in found[0]:
                rows.append({"what": what, "call": call, "side": side, "per_second": round(
                    benchlib.median([r[call][0] for r in found])), "cpu_us": round(
                    benchlib.median([r[call][1] for r in found]))})
        benchlib.log(f"  {what}")


def compare(rows):
    """Each row of ours gets its ratio to JuiceFS on the same engine."""
    rates = {(r["what"], r["call"], r["side"]): r["per_second"] for r in rows}
    for r in rows:
        other = rates.get((r["what"], r["call"], "juicefs " + r["side"].partition(" ")[2]))
        r["of_juicefs"] = round(r["per_second"] / other, 2) if other else None


def start(work, cluster, servers, mounts):
    """The mounts of each engine that is here."""

    def add(engine, ours, theirs, pids):
        mounts["dfc " + engine] = Volume(cluster, work, ours, pids)
        if shutil.which("juicefs"):
            mounts["juicefs " + engine] = JuiceFs(work, theirs, pids)

    add("sqlite3", f"sqlite3://{work}/meta.db", f"sqlite3://{work}/juicefs.db", [])
    if shutil.which("redis-server"):
        server, url = redis_server(work)
        servers.append(server)
        add("redis", url + "/0", url + "/1", [server.pid])
    postgres = max(glob.glob("/usr/lib/postgresql/*/bin"), default=None)
    if postgres:
        server, url = postgres_server(work, postgres)
        servers.append(server)
        subprocess.run([postgres + "/psql", "-q", url + "/postgres", "-c", "create database juicefs"],
                       check=True)
        add("postgres", url + "/postgres", url + "/juicefs?sslmode=disable", [server.pid])


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--files", type=int, default=FILES, help="of all processes together")
    p.add_argument("--names", type=int, default=NAMES, help="of the large directory")
    args = p.parse_args()
    if args.quick:
        args.files, args.names = 48, 120
    rows, servers, mounts = [], [], {}
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse") or \
            not (args.build / "dfc-mount").exists():
        benchlib.log("skipped: needs root, /dev/fuse and dfc-mount")
        sys.exit(77)
    benchlib.own_mounts()
    document = benchlib.begin(args)
    with benchlib.WorkDir(args.dir) as work, Cluster(work / "dfc", args.build) as cluster:
        try:
            start(work, cluster, servers, mounts)
            measure(args, mounts, rows)
        finally:
            for m in mounts.values():
                m.end()
            for server in servers:
                server.terminate()
                server.wait()
    compare(rows)
    benchlib.table(["what", "call", "side", "per second", "CPU µs", "/ juicefs"],
                   [list(r.values()) for r in rows])
    benchlib.finish(args, "mount_meta", {"machine": document, "rows": rows})


if __name__ == "__main__":
    main()
