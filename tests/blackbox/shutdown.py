#!/usr/bin/env python3
"""Both daemons under valgrind: some of everything, then SIGTERM; no error, no leak, status 0."""

import re
import shutil

from lib import Cluster, check, end_on_signals, equal, run_one, skip

VALGRIND = ("valgrind --leak-check=full --errors-for-leak-kinds=definite,possible "
            "--error-exitcode=99 --num-callers=30")


def some_of_everything(c):
    c.create("b")
    for i in range(3):
        c.put("b", f"o{i}", bytes(200000))
        equal(len(c.get("b", f"o{i}").expect(200).body), 200000, "size")
    c.get("b", "o1", {"Range": "bytes=5-9", "Dfc-Redirect": "never"}).expect(206)
    c.object("DELETE", "b", "o0").expect(204)
    equal(c.names("b"), ["o1", "o2"], "names")
    c.get("b", "o0").expect(404, "object_not_found")
    c.call("POST", "/v1/buckets/b", b"{").expect(400)
    job = c.sort({"input_bck": {"name": "b"}, "input_format": {"prefix": "none"},
                  "output_format": "x-%d", "output_shard_size": "1K", "allow_empty": True})
    equal(c.wait_job(job)["state"], "finished", "state of a sort of nothing")


def ended_cleanly(c):
    for node in ("t1", "p1"):
        c.stop(node)
        log = c.log(node)
        found = re.search(r"ERROR SUMMARY: (\d+) errors", log)
        check(found, f"{node}: valgrind says nothing:\n{log[-2000:]}")
        check(found.group(1) == "0", f"{node}: valgrind says:\n{log[-6000:]}")


def main():
    end_on_signals()
    if shutil.which("valgrind") is None:
        skip("there is no valgrind")
    # Valgrind 3.19 holds its lock over io_uring_enter(2): every other thread would stand still.
    cluster = Cluster(targets=1, mountpaths=1,
                      args=("--wrapper", VALGRIND, "--ready-seconds", 120,
                            "--target-arg=--io-uring=false"))
    passed = run_one("requests", some_of_everything, cluster)
    passed = run_one("shutdown", ended_cleanly, cluster) and passed
    if not passed:
        cluster.print_logs()
    raise SystemExit(0 if passed else 1)


if __name__ == "__main__":
    main()
