#!/usr/bin/env python3
"""The container image builds, and deploy/container's cluster of such containers keeps objects.

Docker is that of Debian's packages, run for this test alone: files and socket in a directory of its
own, no bridge, no
rules in the machine's firewall, and namespaces that take all of it along when the test ends.  There
need be no registry: the
base image is made by debootstrap, from where this machine's apt has its packages."""

import atexit
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import namespaces
from lib import ROOT, Failed, Ports, check, end_on_signals, equal, run_one, skip, wait_for

RELEASE = "bookworm"
COMPOSE = os.path.join(ROOT, "deploy", "container", "compose.yaml")
COMMIT = "0123456789ab"
NODES = ("p1", "t1", "t2", "t3")


def run(*argv, env=None, **options):
    """Its output; what it says otherwise is shown where it fails."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, env=env, **options)
    if done.returncode != 0:
        raise Failed(f"{' '.join(argv)}: status {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def apt_sources():
    """The lines of this machine's sources that are Debian's, and the first of their mirrors."""
    text = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)",
               "Identifier: Packages", "Label: Debian")
    text += run("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)",
                "Identifier: Packages", "Label: Debian-Security")
    rows = [row.split() for row in text.splitlines() if row.split()[1].startswith(RELEASE)]
    if not rows:
        skip(f"apt has no list of Debian's {RELEASE}")
    return [f"deb {uri} {suite} {component}\n" for uri, suite, component in rows], rows[0][0]


class Docker:
    """A dockerd of our own."""

    def __init__(self, directory):
        self.dir = directory
        socket = os.path.join(directory, "docker.sock")
        self.env = {
            **os.environ, "DOCKER_HOST": f"unix://{socket}", "DOCKER_BUILDKIT": "0",
            "DOCKER_CONFIG": os.path.join(directory,
                                          "config"), "PATH": f"/usr/bin:{os.environ['PATH']}"
        }
        self.log = open(os.path.join(directory, "dockerd.log"), "wb")
        argv = [
            "/usr/sbin/dockerd", "--data-root",
            os.path.join(directory, "data"), "--exec-root",
            os.path.join(directory, "exec"), "--pidfile",
            os.path.join(directory, "pid"), "--host", f"unix://{socket}", "--bridge=none",
            "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"
        ]
        self.daemon = subprocess.Popen(argv, stdout=self.log, stderr=self.log,
                                       start_new_session=True)
        try:
            wait_for(self.answers, "dockerd")
        except Failed:
            with open(self.log.name, encoding="utf-8", errors="replace") as f:
                skip(f"dockerd does not run here: {f.read()[-600:]}")

    def answers(self):
        return subprocess.run(["docker", "version"], env=self.env, capture_output=True,
                              check=False).returncode == 0

    def run(self, *arguments, **options):
        return run("docker", *arguments, env=self.env, **options)

    def compose(self, *arguments, ports, image="dfc-test"):
        return run("docker-compose", "-f", COMPOSE, *arguments,
                   env={**self.env, "DFC_PORTS": ports, "DFC_IMAGE": image})

    def end(self):
        self.daemon.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.daemon.wait(30)
        self.daemon.kill()
        self.daemon.wait()
        self.log.close()


class Lab:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="dfc-image-")
        atexit.register(self.remove)
        self.docker = Docker(self.dir)
        self.held = []
        self.ports = self.pick_ports()
        self.began = False

    def pick_ports(self):
        """What compose.yaml's ports begin with: …80 to …96 are in a block of this test's."""
        while True:
            self.held.append(block := Ports())
            for prefix in range(block.base // 100, block.base // 100 + 2):
                if block.base <= 100 * prefix + 80 and 100 * prefix + 96 < block.base + block.SIZE:
                    return str(prefix)

    def remove(self):
        with contextlib.suppress(Failed, AttributeError):
            if self.began:
                self.docker.compose("down", "-v", "-t", "20", ports=self.ports)
        with contextlib.suppress(AttributeError):
            self.docker.end()
        for line in reversed(open("/proc/mounts", encoding="utf-8").read().splitlines()):
            if line.split()[1].startswith(self.dir):
                subprocess.run(["umount", "--lazy", line.split()[1]], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)

    def url(self, last):
        return f"http://127.0.0.1:{self.ports}{last}"

    def in_container(self, name, *command):
        return self.docker.compose("exec", "-T", name, *command, ports=self.ports)

    def container(self, name):
        """What docker says of it."""
        found = self.docker.compose("ps", "-q", name, ports=self.ports).split()
        return json.loads(self.docker.run("inspect", found[0]))[0]


def test_a_base_without_a_registry(lab):
    lines, mirror = apt_sources()
    rootfs = os.path.join(lab.dir, "rootfs")
    run("debootstrap", "--variant=minbase", RELEASE, rootfs, mirror)
    with open(os.path.join(rootfs, "etc/apt/sources.list"), "w", encoding="ascii") as f:
        f.writelines(lines)
    for name in os.listdir("/etc/apt/apt.conf.d"):  # a proxy, and what a mirror of the past needs
        if not name.startswith("docker"):
            shutil.copy(os.path.join("/etc/apt/apt.conf.d", name),
                        os.path.join(rootfs, "etc/apt/apt.conf.d"))
    tar = subprocess.Popen(["tar", "-C", rootfs, "-c", "."], stdout=subprocess.PIPE)
    lab.docker.run("import", "-", "dfc-test-base", stdin=tar.stdout)
    equal(tar.wait(), 0, "tar")
    shutil.rmtree(rootfs)


def test_the_image_builds(lab):
    lab.docker.run("build", "--network=host", "-f", "deploy/container/Dockerfile", "-t", "dfc-test",
                   "--build-arg", "BASE=dfc-test-base", "--build-arg", f"COMMIT={COMMIT}", ".",
                   cwd=ROOT)
    for program in ("dfc-proxyd", "dfc-targetd", "dfcctl"):
        said = lab.docker.run("run", "--rm", "--network=none", "dfc-test", program, "--version")
        check(f"({COMMIT})" in said, f"{program} --version: {said}")


def test_the_cluster_comes_up_green(lab):
    lab.began = True
    lab.docker.compose("up", "-d", "--no-build", ports=lab.ports)
    wait_for(lambda: all(lab.container(n)["State"]["Health"]["Status"] == "healthy" for n in NODES),
             "healthy containers")

    def green():
        with contextlib.suppress(Failed):
            return "green" in lab.in_container("p1", "dfcctl", "cluster", "health")
        return False

    refused(lab)
    lab.in_container("p1", "sh", "-c",
                     f"dfcctl --endpoint {lab.url(80)} login --stdin </etc/dfc-root/root.key")

    wait_for(green, "a green cluster")


def refused(lab):
    """Without a proof, by proxy and target."""
    for last in (80, 81):
        try:
            urllib.request.urlopen(lab.url(last) + "/v1/objects/b/photo", timeout=60)
            raise Failed(f"{lab.url(last)} serves everybody")
        except urllib.error.HTTPError as error:
            equal(error.code, 401, lab.url(last))


def test_it_keeps_objects_over_a_second_up(lab):
    lab.in_container("p1", "dfcctl", "bucket", "create", "b", "--copies", "2")
    lab.in_container("p1", "dfcctl", "bucket", "grant", "b", "anonymous", "read,write")
    data = os.urandom(3 << 20)
    request = urllib.request.Request(
        lab.url(80) + "/v1/objects/b/photo?redirect=never", data, method="PUT")

    def written():
        """Once all nodes know the grant."""
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status == 200
        return False

    wait_for(written, "PUT")
    lab.docker.compose("down", ports=lab.ports)
    lab.docker.compose("up", "-d", "--no-build", ports=lab.ports)

    def read():
        with contextlib.suppress(OSError), urllib.request.urlopen(
                lab.url(80) + "/v1/objects/b/photo", timeout=60) as reply:
            return reply.read()
        return None

    equal(wait_for(read, "the object after a second up"), data, "its bytes")
    lab.in_container("p1", "dfcctl", "user", "show", "root")


def test_containers_may_do_little(lab):
    for name in NODES:
        host = lab.container(name)["HostConfig"]
        check(host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"], f"{name}: {host}")
        check(any(o.startswith("no-new-privileges") for o in host["SecurityOpt"]),
              f"{name}: {host['SecurityOpt']}")
        equal(host["LogConfig"]["Config"], {"max-size": "20m", "max-file": "5"}, f"{name}: its log")
        check(
            lab.container(name)["Name"].startswith("/dfc_"),
            f"{name}: {lab.container(name)['Name']}")
    said = lab.in_container("t1", "bash", "-c",
                            "stat -c '%a %U' /etc/dfc/cluster.key; wc -c </etc/dfc/cluster.key")
    equal(said.split(), ["600", "dfc", "64"], "the key that the first start made")


def main():
    if os.geteuid() != 0:
        skip("needs root, for Docker")
    for program in ("/usr/sbin/dockerd", "/usr/sbin/debootstrap", "/usr/bin/docker-compose"):
        if not os.path.exists(program):
            skip(f"there is no {program}")
    namespaces.enter("--pid", "--fork", "--kill-child", "--mount-proc")
    end_on_signals()
    for shared in ("/run/containerd", "/run/docker"):  # those of the machine's own Docker
        if os.path.isdir(shared):
            namespaces.run("mount", "-t", "tmpfs", "none", shared)
    lab = Lab()
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_")]
    done = 0
    for name, function in tests:  # each needs what the one before has made
        if not run_one(name, function, lab):
            break
        done += 1
    print(f"{done} passed, {len(tests) - done} failed or not run")
    sys.exit(0 if done == len(tests) else 1)


if __name__ == "__main__":
    main()
