#!/usr/bin/env python3
"""Programs of MPI on plogs: ranks write one file, and read it back with another number of ranks.  On
a mounted bucket by MPI-IO, by POSIX calls, and by parallel HDF5; by the calls of PLFS without a mount."""

import os
import shutil
import subprocess

from lib import BUILD, ROOT, check, equal, main, skip
from mount_lib import mounted, needs_fuse, said_by_sanitizers

RUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,tcp", "--mca", "io", "romio321")
SHIM = os.path.join(BUILD, "plog", "plfs")
LAST = 240 * 11750 - 1  # the last cell of plog_hdf5.c
TOOLS = {"mpicc": "libopenmpi-dev", "mpirun": "openmpi-bin", "h5pcc.openmpi": "libhdf5-openmpi-dev",
         "h5diff": "hdf5-tools", "h5dump": "hdf5-tools"}


def run(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=400, check=False, **options)
    equal(done.returncode, 0, f"{' '.join(argv)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def built(c):
    program = os.path.join(c.dir, "ranks")
    if not os.path.exists(program):
        run("mpicc", "-O1", "-Wall", "-I", os.path.join(ROOT, "plog/plfs"), "-o", program,
            os.path.join(ROOT, "tests/blackbox/plog_mpi.c"), "-L", SHIM, f"-Wl,-rpath,{SHIM}", "-lplfs-dfc")
    return program


def write_and_read(c, how, where, **options):
    for pattern in ("strided", "segmented"):
        name = f"{where}/{how}-{pattern}"
        run(*RUN, "-n", "4", built(c), "write", how, pattern, name, **options)
        for ranks in ("1", "3"):
            run(*RUN, "-n", ranks, built(c), "read", how, pattern, name, **options)


def test_ranks(c):
    c.create("mpi")
    with mounted(c, "dfc://mpi", "--segment-size=64KiB", noun="plog") as path:
        for how in ("mpiio", "posix"):
            write_and_read(c, how, path)


def test_the_calls_of_plfs(c):
    c.create("calls")
    write_and_read(c, "plfs", "dfc://calls", env={**os.environ, "DFC_ENDPOINT": c.endpoint})


def test_hdf5(c):
    program = os.path.join(c.dir, "rows")
    run("h5pcc.openmpi", "-O1", "-Wall", "-o", program, os.path.join(ROOT, "tests/blackbox/plog_hdf5.c"), cwd=c.dir)
    c.create("hdf5")
    files = []
    with mounted(c, "dfc://hdf5", "--segment-size=256KiB", noun="plog") as path:
        for how in ("collective", "independent"):
            files.append(f"{path}/{how}.h5")
            run(*RUN, "-n", "4", program, "write", how, files[-1])
            for ranks in ("1", "3"):
                run(*RUN, "-n", ranks, program, "read", how, files[-1])
        run("h5diff", *files)
        shown = run("h5dump", "-d", "/rows", "-s", "239,11749", "-c", "1,1", files[0])
        check(f": {LAST}\n" in shown, f"the last cell is {LAST}: {shown}")


def test_sanitizers_found_nothing(_):
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            skip(f"there is no {tool} (Debian: {package})")
    needs_fuse()
    main()
