"""Ways to have a bucket as a directory: ours, s3fs, rclone, JuiceFS, and the disk below them all.

    with side.mounted("large", cache=DIR) as path: …

Each mount is fresh: the kernel has no page of it.  `cache`: a directory that outlives the mount;
None: no disk cache."""

import abc
import contextlib
import os
import shutil
import subprocess

import juicefs
from benchlib import memory_of, MIB
from juicefs import PATIENCE_S, await_that


def processor_seconds(pid, with_ended=False):
    """Of a process; if asked, also of its children that have ended."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15 if with_ended else 13])) / os.sysconf("SC_CLK_TCK")


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


def joins(path):
    """Objects that the mount has still to make one file each."""
    text = os.getxattr(path, "user.dfc.stats").decode()
    return sum(float(line.split()[-1]) for line in text.splitlines()
               if line.startswith("dfc_cache_joins"))


class Bucket(Side):
    name = "dfc"
    more = []  # flags, with a cache

    def begin(self, bucket, cache, writable):
        flags = [f"--cache-dir={cache}", "--cache-free=0", *self.more] if cache else []
        flags += ["--writable"] if writable else []
        self.bench.ctl("fs", "mount", f"dfc://{bucket}", self.path, *flags)
        self.pid = int(os.getxattr(self.path, "user.dfc.pid"))

    def end(self):
        self.bench.ctl("fs", "umount", self.path)

    def warm(self, bucket, cache):
        with self.mounted(bucket, cache) as path:
            self.bench.ctl("fs", "warmup", path)
            await_that(lambda: not joins(path), "the files to be what the kernel reads itself")


class Served(Bucket):
    """The mount reads what the kernel could read itself."""

    name = "served"
    more = ["--no-passthrough"]


class Filled(Side):
    """A file system with metadata of its own: files are copied into it once, by a mount of their own."""

    def __init__(self, bench):
        super().__init__(bench)
        self.has = set()

    @contextlib.contextmanager
    def mounted(self, bucket, cache=None, writable=False):
        if bucket not in self.has:
            self.has.add(bucket)
            with super().mounted(bucket, writable=True):
                self.fill(bucket)
        with super().mounted(bucket, cache, writable) as path:
            yield path

    def place(self, bucket):
        return self.path / bucket

    def fill(self, bucket):
        source = self.bench.files(bucket)
        if source.exists():
            shutil.copytree(source, self.place(bucket))
        else:
            self.place(bucket).mkdir()


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


class Memory(Foreground):
    """What a FUSE file system costs that has all bytes in its memory: dfc-memory-files."""

    name = "memory"

    def __init__(self, bench, count, size):
        super().__init__(bench)
        self.shape = count, size

    def begin(self, bucket, cache, writable):
        program = self.bench.args.build / "tests/bench/dfc-memory-files"
        self.start(program, *self.shape, self.path)


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
    """A volume on SQLite, whose blocks are objects of the cluster by S3."""

    name = "juicefs"

    def __init__(self, bench):
        super().__init__(bench)
        self.meta, self.mount = f"sqlite3://{bench.work}/juicefs.db", None
        bench.ctl("bucket", "create", "juicefs")
        juicefs.make(bench.work, self.meta, "--storage=s3", f"--bucket={bench.s3_url}/juicefs")

    def begin(self, bucket, cache, writable):
        flag = f"--cache-dir={cache}" if cache else "--cache-size=0"
        self.mount = juicefs.Mount(self.bench.work, self.meta, self.path, flag)
        self.pid = self.mount.pid

    def end(self):
        self.mount.end()


def there():
    """The sides that this machine has programs for."""
    programs = {"s3fs": S3fs, "rclone": Rclone, "juicefs": JuiceFs}
    return [Raw, Bucket, Volume, *(kind for name, kind in programs.items() if shutil.which(name))]
