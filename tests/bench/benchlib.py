"""What the benchmarks share: the load generator, interleaved rounds, the machine's description,
tables and result files.  Python's standard library only."""

import argparse
import datetime
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = pathlib.Path(__file__).resolve().parent / "results"

MARK = "DFC_BENCH_NAMESPACE"
KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


def log(text):
    print(text, file=sys.stderr, flush=True)


def absolute_path(text):
    return pathlib.Path(text).absolute()


def arguments(description):
    """The options that every benchmark has.  SIGTERM ends it as an exception does: with servers
    stopped and files removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--build", type=absolute_path, default=ROOT / "build",
                   help="the meson build directory (default: build)")
    p.add_argument("--dir", type=absolute_path, default=pathlib.Path(tempfile.gettempdir()),
                   help="where both sides keep their files: chooses the file system")
    p.add_argument("--rounds", type=int, default=5, help="rounds of each comparison")
    p.add_argument("--quick", action="store_true",
                   help="tiny sizes, one round: shows that the benchmark works, measures nothing")
    p.add_argument("--save", metavar="NAME",
                   help="also write the document to tests/bench/results/NAME.json")
    p.add_argument("--only", metavar="TEXT", default="", help="only the rows whose name has TEXT")
    return p


def own_mounts():
    """Begins anew in a mount namespace of its own: a copy that another one has of a mount would keep
    the mount's process."""
    if MARK not in os.environ:
        os.execvpe("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable,
                               *sys.argv], {**os.environ, MARK: "1"})


class WorkDir:
    """A directory under --dir that is gone at the end, whatever happens."""

    def __init__(self, parent):
        self.parent = parent

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="dfc-bench-", dir=self.parent))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port, process, seconds=10):
    """Until something listens there; fails when the process that should is gone."""
    deadline = time.monotonic() + seconds
    while True:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            raise RuntimeError(f"{process.args[0]} ended with status {process.returncode}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"nothing listens on port {port}")
        time.sleep(0.02)


def load(build, url, **options):
    """One run of dfc-load.  Lists repeat an option; True is an option without a value."""
    command = [str(build / "tests/bench/dfc-load"), f"--url={url}"]
    for name, value in options.items():
        for v in value if isinstance(value, list) else [value]:
            flag = "--" + name.replace("_", "-")
            command.append(flag if v is True else f"{flag}={v}")
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def failures(run):
    return sum(run["errors"].values()) + run["non_2xx"]


def interleave(sides, rounds, warm_up=True):
    """Runs every side once per round, the order turning from round to round, so that drift of the
    machine meets all sides alike.  `sides` is {name: callable}; → {name: [result, …]}."""
    names = list(sides)
    results = {name: [] for name in names}
    for i in range(-1 if warm_up else 0, rounds):
        for name in names if i % 2 == 0 else reversed(names):
            result = sides[name]()
            if i >= 0:
                results[name].append(result)
    return results


def median(values):
    return statistics.median(values) if values else None


def paired_ratio(of, to):
    """The median, least and greatest of the rounds' ratios."""
    ratios = sorted(a / b for a, b in zip(of, to) if b)
    if not ratios:
        return None
    return {"median": round(median(ratios), 3), "min": round(ratios[0], 3),
            "max": round(ratios[-1], 3)}


def table(head, rows):
    cells = [head] + [["" if c is None else str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for i, row in enumerate(cells):
        log("  ".join(c.rjust(w) if j else c.ljust(w)
                      for j, (c, w) in enumerate(zip(row, widths))))
        if i == 0:
            log("  ".join("-" * w for w in widths))


def first_line(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.splitlines()[0] if done.stdout else None


def cpu_model():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def file_system(path):
    done = subprocess.run(["stat", "-f", "-c", "%T", str(path)], stdout=subprocess.PIPE,
                          text=True, check=True)
    return done.stdout.strip()


def meson_options(build):
    info = build / "meson-info/intro-buildoptions.json"
    if not info.exists():
        return None
    wanted = {"buildtype", "b_sanitize", "b_lto", "optimization"}
    return {o["name"]: o["value"] for o in json.loads(info.read_text()) if o["name"] in wanted}


def machine(args):
    with open("/proc/meminfo", encoding="ascii") as f:
        memory_kib = int(f.readline().split()[1])
    return {
        "cpu": cpu_model(),
        "cpus": os.cpu_count(),
        "memory_gib": round(memory_kib / KIB / KIB, 1),
        "kernel": platform.release(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME"),
        "file_system": file_system(args.dir),
        "load_average_at_start": os.getloadavg()[0],
        "build": meson_options(args.build),
        "commit": first_line(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ"),
    }


def begin(args):
    """→ the machine's description; says so when the machine is not quiet."""
    doc = machine(args)
    if doc["load_average_at_start"] > 0.5 and not args.quick:
        log(f"note: the load average is {doc['load_average_at_start']:.1f}; "
            "ratios hold better than absolute figures")
    sanitize = (doc["build"] or {}).get("b_sanitize", "none")
    if sanitize not in ("none", []):
        log(f"note: {args.build} is built with {sanitize}: the figures mean nothing")
    return doc


def finish(args, name, document):
    document["load_average_at_end"] = os.getloadavg()[0]
    text = json.dumps({"benchmark": name, **document}, indent=2)
    print(text)
    if args.save:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{args.save}.json").write_text(text + "\n")


def flush_disk(path):
    """Writes out what earlier runs left dirty, so that the next does not pay for it."""
    subprocess.run(["sync", "-f", str(path)], check=True)


def forget_files(root):
    """Everything below is on the disk, and no contents of files are in memory."""
    flush_disk(root)
    for at, _, names in os.walk(root):
        for name in names:
            path = os.path.join(at, name)
            if os.path.isfile(path) and not os.path.islink(path):
                fd = os.open(path, os.O_RDONLY)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(p) for p in f.read().split()]


def memory_of(pid):
    """→ bytes: VmRSS, VmHWM (the peak since the last memory_reset)."""
    fields = {}
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        for line in f:
            name, _, value = line.partition(":")
            if name in ("VmRSS", "VmHWM"):
                fields[name] = int(value.split()[0]) * KIB
    return fields["VmRSS"], fields["VmHWM"]


def memory_reset(pid):
    """The peak starts anew (proc(5), clear_refs)."""
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as f:
        f.write("5")


class PeakMemory(threading.Thread):
    """Resident memory of a process, looked at every 10 ms from outside: `samples`, and `peak` as
    the kernel keeps it (VmHWM).  Not ru_maxrss, which begins with that of the process that
    forked: this one."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid = pid
        self.samples = []
        self.peak = 0
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(0.01):
            try:
                resident, self.peak = memory_of(self.pid)
            except (OSError, KeyError):
                return  # it has ended
            self.samples.append(resident)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()


def size_text(n):
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if n >= unit:
            return f"{n / unit:g} {name}"
    return f"{n} B"
