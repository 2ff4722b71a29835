#!/usr/bin/env python3
"""Programs that check file systems, on a volume: stress-ng's stressors compare what they read with
what they wrote; fio does so after a kill of the mount."""

import os
import shutil
import subprocess

from lib import check, equal, main, skip
from mount_lib import clean, kill_all, mount, mounted, needs_fuse, said_by_sanitizers
from mount_volume import made

SECONDS = 1
RUN_SECONDS = 1200
STRESSORS = (
    "access", "chdir", "chmod", "chown", "copy-file", "dentry", "dir", "dirdeep", "dirmany", "fallocate",
    "fcntl", "filename", "flock", "fpunch", "fsize", "fstat", "getdent", "hdd", "inotify", "iomix", "link",
    "locka", "lockf", "mknod", "msync", "open", "readahead", "rename", "seek", "sendfile", "symlink",
    "sync-file", "touch", "utime", "xattr")
LIMITS = {"hdd": ["--hdd-bytes", "16m"], "iomix": ["--iomix-bytes", "16m"],
          "seek": ["--seek-size", "16m"], "readahead": ["--readahead-bytes", "16m"]}
JOBS = """
[global]
directory={path}
size=16m
bsrange=1k-200k
verify=crc32c
verify_fatal=1
randseed=7
[sequential]
rw=write
[random]
rw=randwrite
"""


def run(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=RUN_SECONDS, check=False, **options)
    equal(done.returncode, 0, f"{' '.join(argv)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def test_stress_ng_finds_what_it_wrote(c):
    with mounted(c, made(c, "stress"), "--allow-other") as path:
        for name in STRESSORS:
            work = os.path.join(path, name)
            os.mkdir(work)
            said = run("stress-ng", "--" + name, "2", "--timeout", str(SECONDS), "--verify", "--temp-path", work,
                       *LIMITS.get(name, ()))
            check("fail:" not in said, f"{name}: {said}")
            shutil.rmtree(work)


def test_fio_finds_what_it_wrote_before_a_kill(c):
    url, jobs = made(c, "fio"), os.path.join(c.dir, "fio.jobs")
    path = mount(c, url)
    with open(jobs, "w", encoding="utf-8") as f:
        f.write(JOBS.format(path=path))
    run("fio", "--do_verify=0", "--end_fsync=1", jobs, cwd=c.dir)
    kill_all(path)
    clean()
    with mounted(c, url):
        run("fio", "--verify_only", jobs, cwd=c.dir)
        run("fio", "--do_verify=1", jobs, cwd=c.dir)


def test_sanitizers_found_nothing(_):
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    for program in ("stress-ng", "fio"):
        if shutil.which(program) is None:
            skip(f"the program {program} is missing")
    needs_fuse()
    main(targets=1)
