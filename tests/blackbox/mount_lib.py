"""Mounted buckets for black-box tests: every mount of a test is gone at its end, and no sanitizer
found anything in the processes that served them."""

import atexit
import contextlib
import ctypes
import glob
import os
import shutil
import signal
import tempfile

from lib import BUILD, Failed, check, equal, skip, wait_for
from namespaces import enter

MOUNTED = []  # directories
REPORTS = []  # the directory for those of sanitizers
LIBC = ctypes.CDLL(None, use_errno=True)
DETACH = 2
AT_FDCWD = -100


def libc(name, *arguments):
    """A call that Python has not."""
    if getattr(LIBC, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), name)


def renameat2(one, two, flags):
    libc("renameat2", AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(two), flags)


def fallocate(fd, mode, at, size):
    libc("fallocate", fd, mode, ctypes.c_int64(at), ctypes.c_int64(size))


def needs_fuse():
    """Begins the script anew in a mount namespace of its own: a copy that another test's namespace
    has of a mount would keep its process."""
    enter()
    if not os.path.exists("/dev/fuse"):
        skip("there is no /dev/fuse")
    if not os.path.exists(os.path.join(BUILD, "dfc-mount")):
        skip("the build has no dfc-mount: libfuse3 was missing")
    REPORTS.append(tempfile.mkdtemp(prefix="dfc-test-mount-"))
    atexit.register(shutil.rmtree, REPORTS[0], ignore_errors=True)
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
        old = os.environ.get(name)
        os.environ[name] = (old + ":" if old else "") + f"log_path={REPORTS[0]}/{name}"


def clean():
    for directory in MOUNTED:
        while mounts(directory):
            if LIBC.umount2(directory.encode(), DETACH) != 0:
                break


def to_be_cleaned(path):
    """Before the cluster's directory is removed, which waits for its mounts."""
    if not MOUNTED:
        atexit.register(clean)
    MOUNTED.append(path)


def mounts(directory):
    """What is mounted there."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line for line in f if line.split()[4] == directory]


def said_by_sanitizers():
    found = []
    for path in glob.glob(REPORTS[0] + "/*SAN_OPTIONS*"):
        with open(path, encoding="utf-8", errors="replace") as f:
            found.append(f.read())
    return found


def directory_of(c, name):
    """Where a mount may be; it is made."""
    path = os.path.realpath(os.path.join(c.dir, "mnt-" + name))
    with contextlib.suppress(FileExistsError):
        os.mkdir(path)
    return path


def mount(c, url, *flags, name="one", status=0, env=None, noun="fs", **options):
    """The directory; status: the exit code."""
    path = directory_of(c, name)
    to_be_cleaned(path)
    done = c.dfcctl(noun, "mount", url, path, *flags, env=env, **options)
    if done.returncode != status:
        raise Failed(f"{noun} mount {url}: {done.returncode}: {done.stderr}")
    equal(len(mounts(path)), 1 if status == 0 else 0, f"mounts after {done.stderr or 'success'}")
    return path


def server(path):
    """The process that serves the mount."""
    return int(os.getxattr(path, "user.dfc.pid"))


def supervisor(path):
    """The process that starts another one when that dies."""
    return int(os.getxattr(path, "user.dfc.supervisor"))


def kill_all(path):
    """The mount ends: nothing takes over."""
    pids = supervisor(path), server(path)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: all(map(has_ended, pids)), "the processes of the mount to end")


def has_ended(pid):
    """Its parent may not have been told yet."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def umount(c, path, status=0):
    pids = supervisor(path), server(path)
    done = c.dfcctl("fs", "umount", path)
    if done.returncode != status:
        raise Failed(f"fs umount: {done.returncode}: {done.stderr}")
    if status == 0:
        equal(mounts(path), [], "mounts after umount")
        for pid in pids:
            check(has_ended(pid), f"the process {pid} is there after umount")
    return done


@contextlib.contextmanager
def mounted(c, url, *flags, **options):
    path = mount(c, url, *flags, **options)
    try:
        yield path
    except BaseException:
        clean()  # for the tests that follow
        raise
    umount(c, path)


def waits_for_fuse(process, call):
    """Until the process waits in this system call (its number)."""
    def waits():
        check(process.poll() is None, f"the process has ended: {process.poll()}")
        with open(f"/proc/{process.pid}/syscall", encoding="ascii") as f:
            return f.read().split()[0] == str(call)

    wait_for(waits, f"process {process.pid} waits for the file system")
