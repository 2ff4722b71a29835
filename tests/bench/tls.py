#!/usr/bin/env python3
"""GET over TLS, one target of ours against nginx with the same certificate and library; and GET
with access control against GET without.  See README.md for what each figure means.

The client is wrk, since both sides must meet the same one and dfc-load speaks no TLS."""

import json
import os
import shutil
import subprocess
import sys
import time

import benchlib
from benchlib import KIB, MIB, log
from peers import Cluster, Nginx, put, request

sys.path.insert(0, str(benchlib.ROOT / "deploy/local"))
from localcluster import probe  # noqa: E402  # pylint: disable=wrong-import-position

# name, size, objects; the goals: of nginx's requests/s, of nginx's bytes a CPU second
TLS = [
    ("GET 1 KiB", KIB, 200, 0.6, None),
    ("GET 1 MiB", MIB, 32, None, 1.0),
    ("GET 16 MiB", 16 * MIB, 4, None, 1.0),
]
AUTH = ("GET 1 KiB with access control", KIB, 200, 0.95, None)

# Each thread walks through the paths from a place of its own.
WRK = """
local paths, headers, i = {%(paths)s}, {%(headers)s}, math.random(%(count)d)
request = function()
  i = i %% #paths + 1
  return wrk.format("GET", paths[i], headers)
end
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\\n{"requests":%%d,"bytes":%%d,"failed":%%d,"p99_us":%%d}\\n', summary.requests,
    summary.bytes, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(99)))
end
"""


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def quoted(texts):
    return ",".join(json.dumps(t) for t in texts)


class Side:
    """A server with objects of one size, and how they are asked for."""

    def __init__(self, server, work, size, count):
        self.server = server
        place = f"get{size}"
        prefix = server.new_place(place)
        proof = getattr(server, "proof", {})
        server.put_first(prefix)
        paths = [f"{prefix}o{i}" for i in range(count)]
        for path in paths:
            put(server.url + path, proof, os.urandom(size))
        status, _, data = request("GET", server.url + paths[0], headers=proof)
        if status != 200 or len(data) != size:
            raise RuntimeError(f"{server.name}: GET of {paths[0]}: {status}, {len(data)} bytes")
        self.script = work / f"{server.url.rpartition(':')[2]}-{place}.lua"
        headers = ",".join(f"[{json.dumps(k)}]={json.dumps(v)}" for k, v in proof.items())
        self.script.write_text(WRK % {"paths": quoted(paths), "headers": headers, "count": count})

    def run(self, connections, seconds):
        """Requests, bytes and the server's CPU of one run."""
        before, began = cpu_seconds(self.server.pids()), time.monotonic()
        out = subprocess.run(["wrk", "-t2", f"-c{connections}", f"-d{seconds}s", "-s",
                              str(self.script), self.server.url], stdout=subprocess.PIPE,
                             check=True, text=True).stdout
        result = json.loads(out.splitlines()[-1])
        if result["failed"] or not result["bytes"]:
            raise RuntimeError(f"{self.server.name}: {out}")
        cpu = cpu_seconds(self.server.pids()) - before
        seconds = time.monotonic() - began
        return {"requests_per_s": result["requests"] / seconds,
                "bytes_per_cpu_s": result["bytes"] / max(cpu, 0.01),
                "cpu_us_per_request": cpu * 1e6 / max(result["requests"], 1),
                "p99_us": result["p99_us"]}


class Bench:
    def __init__(self, args, work):
        self.args, self.work, self.rows = args, work, []

    def row(self, spec, peer, ours):
        name, size, count, least_requests, least_bytes = spec
        sides = {"peer": Side(peer, self.work, size, count),
                 "dfc": Side(ours, self.work, size, count)}
        results = benchlib.interleave(
            {k: (lambda s=s: s.run(self.args.connections, self.args.seconds))
             for k, s in sides.items()}, self.args.rounds, warm_up=not self.args.quick)

        def column(side, field):
            return [r[field] for r in results[side]]

        row = {"name": name, "size": size, "peer": peer.name if peer.name != ours.name else
               "dfc without access control", "goal_requests": least_requests,
               "goal_bytes_per_cpu": least_bytes}
        for field in ("requests_per_s", "bytes_per_cpu_s"):
            row[field + "_ratio"] = benchlib.paired_ratio(column("dfc", field),
                                                          column("peer", field))
        for side in results:
            row[side + "_median"] = {f: round(benchlib.median(column(side, f)), 1)
                                     for f in results[side][0]}
        self.rows.append(row)
        log(f"{name}: {row['requests_per_s_ratio']['median']} of the requests/s, "
            f"{row['bytes_per_cpu_s_ratio']['median']} of the bytes a CPU second")

    def table(self):
        def line(r):
            q, c = r["requests_per_s_ratio"], r["bytes_per_cpu_s_ratio"]
            return [r["name"], r["peer_median"]["requests_per_s"],
                    r["dfc_median"]["requests_per_s"], q["median"], f"{q['min']}-{q['max']}",
                    r["goal_requests"], r["peer_median"]["cpu_us_per_request"],
                    r["dfc_median"]["cpu_us_per_request"], c["median"], f"{c['min']}-{c['max']}",
                    r["goal_bytes_per_cpu"]]

        benchlib.table(["", "peer req/s", "dfc req/s", "ratio", "(rounds)", "goal", "peer us/req",
                        "dfc us/req", "bytes/CPU", "(rounds)", "goal"],
                       [line(r) for r in self.rows])


def cipher_of(url):
    """Protocol and cipher that a client of the system's library agrees on."""
    out = subprocess.run(["openssl", "s_client", "-connect", url.partition("//")[2]],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         check=False).stdout
    return next((line.strip() for line in out.splitlines() if line.startswith("New, TLS")), None)


def over_tls(args, work, bench):
    with Cluster(work / "tls", args.build, more=["--tls"]) as ours:
        pair = [work / "tls" / "tls" / name for name in ("node.crt", "node.key")]
        with Nginx(work / "nginx", pair=pair) as nginx:
            ciphers = {s.name: cipher_of(s.url) for s in (nginx, ours)}
            if len(set(ciphers.values())) != 1:
                raise RuntimeError(f"not the same cipher: {ciphers}")
            for spec in TLS:
                if args.only in spec[0]:
                    bench.row(spec, nginx, ours)
    return ciphers["dfc"]


def with_access_control(args, work, bench):
    if args.only not in AUTH[0]:
        return
    with Cluster(work / "open", args.build) as plain, \
            Cluster(work / "auth", args.build, more=["--auth"]) as guarded:
        keys = [guarded.environment[k] for k in ("DFC_ACCESS_KEY", "DFC_SECRET_KEY")]
        guarded.proof = probe.login(guarded.proxy["url"], keys)
        bench.row(AUTH, plain, guarded)


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--seconds", type=int, default=2, help="of each run")
    p.add_argument("--connections", type=int, default=32)
    args = p.parse_args()
    if args.quick:
        args.rounds, args.seconds = 1, 1
    for program, package in ((Nginx.program(), "nginx-light"), (shutil.which("wrk"), "wrk")):
        if program is None:
            log(f"{package} is not installed (Debian: {package})")
            return 77
    document = {"machine": benchlib.begin(args)}
    with benchlib.WorkDir(args.dir) as work:
        bench = Bench(args, work)
        document["settings"] = {
            "cipher": over_tls(args, work, bench), "connections": args.connections,
            "seconds": args.seconds, "rounds": args.rounds,
            "nginx": benchlib.first_line([Nginx.program(), "-v"])}
        with_access_control(args, work, bench)
        document["rows"] = bench.rows
    bench.table()
    benchlib.finish(args, "tls", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
