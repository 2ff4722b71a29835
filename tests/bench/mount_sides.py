"""Ways to have a bucket as a directory: ours, s3fs, rclone, JuiceFS, and the disk below them all.

    with side.mounted("large", cache=DIR) as path: …

Each mount is fresh: the kernel has no page of it.  `cache`: a directory that outlives the mount;
None: no disk cache."""

import abc
import contextlib
import os
import shutil
import subprocess
import time

from benchlib import memory_of, MIB

PATIENCE_S = 60


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def await_that(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {PATIENCE_S} s: {what}")
        time.sleep(0.02)


class Side(abc.ABC):
    """pid: the process that serves the mount; None: the kernel does."""

    name = None

    def __init__(self, bench):
        self.bench, self.pid = bench, None
        self.path = bench.work / f"mnt-{self.name}"
        self.path.mkdir()

    @contextlib.contextmanager
    def mounted(self, bucket, cache=None, writable=False):
        self.begin(bucket, cache, writable)
        try:
            yield self.place(bucket)
        finally:
            self.end()

    def place(self, _):
        """Where the files of the bucket are while it is mounted."""
        return self.path

    @abc.abstractmethod
    def begin(self, bucket, cache, writable):
        pass

    @abc.abstractmethod
    def end(self):
        pass

    def warm(self, bucket, cache):
        """All of the bucket is in the disk cache."""
        with self.mounted(bucket, cache) as path:
            self.bench.work_on("read", path, 4)

    def use(self):
        """→ seconds of processors, peak of memory in MiB; None: no process of its own."""
        if self.pid is None:
            return None
        return processor_seconds(self.pid), memory_of(self.pid)[1] / MIB


class Raw(Side):
    """The directory of the same files on the disk."""

    name = "raw"

    def place(self, bucket):
        return self.bench.files(bucket)

    def begin(self, bucket, cache, writable):
        pass

    def end(self):
        pass

    def warm(self, bucket, cache):
        self.bench.work_on("read", self.place(bucket), 4)


class Bucket(Side):
    name = "dfc"

    def begin(self, bucket, cache, writable):
        flags = [f"--cache-dir={cache}", "--cache-free=0"] if cache else []
        flags += ["--writable"] if writable else []
        self.bench.ctl("fs", "mount", f"dfc://{bucket}", self.path, *flags)
        self.pid = int(os.getxattr(self.path, "user.dfc.pid"))

    def end(self):
        self.bench.ctl("fs", "umount", self.path)

    def warm(self, bucket, cache):
        with self.mounted(bucket, cache) as path:
            self.bench.ctl("fs", "warmup", path)


class Filled(Side):
    """A file system with metadata of its own: files are copied into it once."""

    def __init__(self, bench):
        super().__init__(bench)
        self.has = set()

    def place(self, bucket):
        place = self.path / bucket
        if bucket not in self.has:
            self.has.add(bucket)
            source = self.bench.files(bucket)
            if source.exists():
                shutil.copytree(source, place)
            else:
                place.mkdir()
        return place


class Volume(Filled):
    name = "volume"

    def __init__(self, bench):
        super().__init__(bench)
        self.url = f"sqlite3://{bench.work}/volume.db"
        bench.ctl("fs", "format", self.url, "volume", "--bucket=dfc://volume", "--trash-days=0")

    def begin(self, bucket, cache, writable):
        flags = [f"--cache-dir={cache}", "--cache-free=0"] if cache else []
        self.bench.ctl("fs", "mount", self.url, self.path, *flags)
        self.pid = int(os.getxattr(self.path, "user.dfc.pid"))

    def end(self):
        self.bench.ctl("fs", "umount", self.path)


class Foreground(Side):
    """A program that serves its mount until that is unmounted."""

    def start(self, *command):
        log = self.bench.work / f"{self.name}.log"
        with open(log, "ab") as f:
            self.process = subprocess.Popen([str(c) for c in command], env=self.bench.s3_env,
                                            stdout=f, stderr=f)
        self.pid = self.process.pid

        def ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"{command[0]} has ended: {log.read_text()[-2000:]}")
            return os.path.ismount(self.path)

        try:
            await_that(ready, f"{command[0]} to mount")
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def end(self):
        """A program may still look at what it served."""
        if self.process.poll() is None:
            await_that(lambda: subprocess.run(["umount", str(self.path)], check=False,
                                              stderr=subprocess.DEVNULL).returncode == 0,
                       f"umount of {self.path}")
        self.process.wait(PATIENCE_S)


class S3fs(Foreground):
    name = "s3fs"

    def begin(self, bucket, cache, writable):
        options = [f"url={self.bench.s3_url}", "use_path_request_style", "endpoint=us-east-1"]
        if cache:
            options.append(f"use_cache={cache}")
        self.start("s3fs", bucket, self.path, "-f", *(f"-o{o}" for o in options))


class Rclone(Foreground):
    """Without its cache a file is uploaded before it is closed; with it, later."""

    name = "rclone"

    def begin(self, bucket, cache, writable):
        flags = ["--vfs-cache-mode=full", f"--cache-dir={cache}"] if cache else []
        self.start("rclone", "mount", f"bench:{bucket}", self.path, *flags)


class JuiceFs(Filled):
    """Blocks are files of the same disk, so it has no network: an advantage."""

    name = "juicefs"

    def __init__(self, bench):
        super().__init__(bench)
        self.meta = f"sqlite3://{bench.work}/juicefs.db"
        self.run("format", "--storage=file", f"--bucket={bench.work}/juicefs-store/", self.meta,
                 "bench")

    def run(self, *words):
        subprocess.run(["juicefs", *map(str, words)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def begin(self, bucket, cache, writable):
        flags = [f"--cache-dir={cache}"] if cache else ["--cache-size=0"]
        self.run("mount", "-d", "--no-usage-report", *flags, self.meta, self.path)

    def end(self):
        self.run("umount", self.path)


def there():
    """The sides that this machine has programs for."""
    programs = {"s3fs": S3fs, "rclone": Rclone, "juicefs": JuiceFs}
    return [Raw, Bucket, Volume, *(kind for name, kind in programs.items() if shutil.which(name))]
