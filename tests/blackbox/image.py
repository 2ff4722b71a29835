#!/usr/bin/env python3
"""The container images build, and deploy/container's clusters of such containers keep objects.

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
COMPOSE = ("compose.yaml",)
COMPOSE_ETCD = COMPOSE + ("compose.etcd.yaml",)
COMMIT = "0123456789ab"
NODES = ("p1", "t1", "t2", "t3")
PROXIES = ("p1", "p2", "p3")


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

    def compose(self, files, *arguments, ports):
        files = [w for name in files for w in ("-f", os.path.join(ROOT, "deploy/container", name))]
        return run("docker-compose", *files, *arguments, env={
            **self.env, "DFC_PORTS": ports, "DFC_IMAGE": "dfc-test", "DFC_ETCD_IMAGE": "dfc-test-etcd"})

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
        self.files = None  # of the cluster that is up

    def pick_ports(self):
        """What the files' ports begin with: …71 to …98 are in a block of this test's."""
        while True:
            self.held.append(block := Ports())
            for prefix in range(block.base // 100, block.base // 100 + 2):
                if block.base <= 100 * prefix + 71 and 100 * prefix + 98 < block.base + block.SIZE:
                    return str(prefix)

    def compose(self, *arguments):
        return self.docker.compose(self.files, *arguments, ports=self.ports)

    def up(self, files):
        self.files = files
        self.compose("up", "-d", "--no-build")

    def remove(self):
        with contextlib.suppress(Failed, AttributeError):
            if self.files:
                self.compose("down", "-v", "-t", "20")
        with contextlib.suppress(AttributeError):
            self.docker.end()
        for line in reversed(open("/proc/mounts", encoding="utf-8").read().splitlines()):
            if line.split()[1].startswith(self.dir):
                subprocess.run(["umount", "--lazy", line.split()[1]], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)

    def url(self, last):
        return f"http://127.0.0.1:{self.ports}{last}"

    def in_container(self, name, *command):
        return self.compose("exec", "-T", name, *command)

    def container(self, name):
        """What docker says of it."""
        found = self.compose("ps", "-q", name).split()
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


def build_image(lab, file, name, *arguments):
    lab.docker.run("build", "--network=host", "-f", f"deploy/container/{file}", "-t", name,
                   "--build-arg", "BASE=dfc-test-base", *arguments, ".", cwd=ROOT)


def test_the_images_build(lab):
    build_image(lab, "Dockerfile", "dfc-test", "--build-arg", f"COMMIT={COMMIT}")
    build_image(lab, "Dockerfile.etcd", "dfc-test-etcd")
    for program in ("dfc-proxyd", "dfc-targetd", "dfcctl"):
        said = lab.docker.run("run", "--rm", "--network=none", "dfc-test", program, "--version")
        check(f"({COMMIT})" in said, f"{program} --version: {said}")


def green(lab, name):
    with contextlib.suppress(Failed):
        return "green" in lab.in_container(name, "dfcctl", "cluster", "health")
    return False


def wait_healthy(lab, nodes):
    wait_for(lambda: all(lab.container(n)["State"]["Health"]["Status"] == "healthy" for n in nodes),
             "healthy containers")


def log_in(lab, *ports):
    """At the proxies with these ports."""
    urls = ",".join(lab.url(last) for last in ports)
    lab.in_container("p1", "sh", "-c",
                     f"dfcctl --endpoint {urls} login --stdin </etc/dfc-root/root.key")


def test_the_cluster_comes_up_green(lab):
    lab.up(COMPOSE)
    wait_healthy(lab, NODES)
    refused(lab)
    log_in(lab, 80)
    wait_for(lambda: green(lab, "p1"), "a green cluster")


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
    lab.compose("down")
    lab.up(COMPOSE)

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


def test_three_proxies(lab):
    """The machine loses the primary's container and a member's."""
    lab.compose("down", "-v")
    lab.up(COMPOSE_ETCD)
    wait_healthy(lab, NODES + PROXIES)
    log_in(lab, 80, 84, 85)
    wait_for(lambda: green(lab, "p1"), "a green cluster of three proxies")
    primary = json.loads(lab.in_container("p1", "dfcctl", "cluster", "status", "-o", "json"))["primary"]
    check(primary in PROXIES, f"the primary is {primary}")
    lab.compose("kill", primary, "e2")
    if primary == "p1":  # its login is in its volume
        lab.compose("start", "p1")
        wait_healthy(lab, ("p1",))
    lab.in_container("p1", "dfcctl", "bucket", "create", "later", "--retries", "20")
    lab.compose("start", primary, "e2")
    wait_healthy(lab, NODES + PROXIES)
    wait_for(lambda: green(lab, "p1"), "a green cluster again")


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
