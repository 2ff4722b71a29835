"""Containers without Docker: processes with the environment, the user and the mounts of a container,
in a root of their own.  deployed.py and pods.py make clusters of them."""

import atexit
import contextlib
import os
import shutil
import subprocess
import tempfile

import namespaces
from lib import BUILD, ROOT, Http, check, equal, wait_for

USER = 10001
PROGRAMS = ("dfc-proxyd", "dfc-targetd", "dfcctl", "dfc-cached", "dfc-mount")
SCRIPTS = ("dfc-healthy", "dfc-make-keys")
SHARED = ("usr", "etc/passwd", "etc/group", "etc/ld.so.cache", "dev", "proc")
LINKS = ("bin", "lib", "lib64")


def directory(*parts, mode=0o700, owner=USER):
    path = os.path.join(*parts)
    os.makedirs(path, exist_ok=True)
    os.chown(path, owner, owner)
    os.chmod(path, mode)
    return path


class Container:
    """`mounts`: path in it → directory outside.  `enter`: words before its command (nsenter)."""

    def __init__(self, lab, name, environment, mounts, hosts, enter=(), user=USER):
        self.lab, self.name, self.environment, self.enter = lab, name, environment, enter
        self.user = user
        self.root = tempfile.mkdtemp(prefix=name + "-", dir=lab.dir)
        os.chmod(self.root, 0o755)
        self.process = None
        for name_of_link in LINKS:
            os.symlink("usr/" + name_of_link, os.path.join(self.root, name_of_link))
        for shared in SHARED:
            self.mount("/" + shared, "/" + shared)
        self.mount(lab.programs, "/usr/local/bin")
        directory(self.root, "tmp")
        with open(os.path.join(self.root, "etc/hosts"), "w", encoding="ascii") as f:
            f.write(hosts)
        for at, source in mounts.items():
            self.mount(source, at)

    def mount(self, source, at):
        to = self.root + at
        os.makedirs(to if os.path.isdir(source) else os.path.dirname(to), exist_ok=True)
        if not os.path.isdir(source):
            with open(to, "wb"):
                pass
        namespaces.run("mount", "--rbind", source, to)

    def argv(self, command):
        return [*self.enter, "chroot", f"--userspec={self.user}:{self.user}", "--groups=", self.root, "env",
                "-i", "PATH=/usr/local/bin:/usr/bin", "HOME=/var/lib/dfc",
                *(f"{k}={v}" for k, v in self.environment.items()), *command]

    def start(self, command):
        with open(os.path.join(self.lab.dir, self.name + ".log"), "ab") as log:
            self.process = subprocess.Popen(self.argv(command), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)

    def execute(self, *command, ok=True, **options):
        """A further command in it, as `docker exec` does."""
        done = subprocess.run(self.argv(command), capture_output=True, text=True, check=False,
                              timeout=120, **options)
        if ok:
            equal(done.returncode, 0, f"{self.name}: {command}: {done.stdout}{done.stderr}")
        return done

    def is_healthy(self):
        check(self.process.poll() is None, f"{self.name} ended: {self.lab.log(self.name)}")
        return self.execute("dfc-healthy", ok=False).returncode == 0

    def end(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(60)
        self.process = None


class Lab:
    """What both kinds of cluster have."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="dfc-deployed-")
        os.chmod(self.dir, 0o755)
        atexit.register(self.remove)
        self.programs = directory(self.dir, "programs", mode=0o755)
        for name in PROGRAMS:
            if os.path.exists(os.path.join(BUILD, name)):  # dfc-mount needs libfuse3
                shutil.copy(os.path.join(BUILD, name), self.programs)
        for name in SCRIPTS:
            shutil.copy(os.path.join(ROOT, "deploy/container", name), self.programs)
        self.http = Http()
        self.containers = {}

    def log(self, name):
        with open(os.path.join(self.dir, name + ".log"), encoding="utf-8", errors="replace") as f:
            return f.read()[-3000:]

    def wait_healthy(self):
        wait_for(lambda: all(c.is_healthy() for c in self.containers.values()), "healthy containers")

    def end(self):
        for container in reversed(self.containers.values()):
            container.end()
        self.containers = {}

    def remove(self):
        self.end()
        with contextlib.suppress(OSError), open("/proc/mounts", encoding="utf-8") as f:
            for line in reversed(f.read().splitlines()):
                if line.split()[1].startswith(self.dir):
                    subprocess.run(["umount", "--lazy", line.split()[1]], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)
