#!/usr/bin/env python3
"""A program of MPI on a mounted bucket of plogs: ranks write one file by MPI-IO and by POSIX calls,
and read it back with another number of ranks."""

import os
import shutil
import subprocess

from lib import ROOT, equal, main, skip
from mount_lib import mounted, needs_fuse, said_by_sanitizers

RUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,tcp", "--mca", "io", "romio321")


def run(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=400, check=False, **options)
    equal(done.returncode, 0, f"{' '.join(argv)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def test_ranks(c):
    program = os.path.join(c.dir, "ranks")
    run("mpicc", "-O1", "-Wall", "-o", program, os.path.join(ROOT, "tests/blackbox/plog_mpi.c"))
    c.create("mpi")
    with mounted(c, "dfc://mpi", "--segment-size=64KiB", noun="plog") as path:
        for how in ("mpiio", "posix"):
            for pattern in ("strided", "segmented"):
                name = f"{path}/{how}-{pattern}"
                run(*RUN, "-n", "4", program, "write", how, pattern, name)
                for ranks in ("1", "3"):
                    run(*RUN, "-n", ranks, program, "read", how, pattern, name)


def test_sanitizers_found_nothing(_):
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    for tool in ("mpicc", "mpirun"):
        if shutil.which(tool) is None:
            skip(f"there is no {tool} (Debian: libopenmpi-dev, openmpi-bin)")
    needs_fuse()
    main()
