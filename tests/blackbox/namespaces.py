"""Several hosts on one machine: network namespaces on a switch, in a namespace of the test's own
that ends with it.  Root alone can make them; a test that cannot have them is skipped."""

import atexit
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from leaks import leaks
from lib import (BUILD, WAIT_SECONDS, Cluster, Failed, Http, Member, check, sanitizer_found,
                 skip, wait_for)

MARK = "DFC_TEST_NAMESPACES"


def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(argv)}: {done.stderr}")
    return done.stdout


def mount_namespace(process="self"):
    return os.readlink(f"/proc/{process}/ns/mnt")


def enter(*kinds):
    """Begins the script anew in a mount namespace of its own, and of these `kinds` ("--net");
    returns there.  What is mounted then nobody else sees, nor copies when he makes a namespace (a
    copy would keep a file system alive when it is unmounted here), and it ends with the test,
    however that ends."""
    outside = os.environ.pop(MARK, None)
    if outside is not None:
        check(mount_namespace() != outside,
              f"{MARK} is set, and this is no namespace of the test's")
        end_with_the_test()
        return
    if os.geteuid() != 0:
        skip("needs root, for namespaces")
    argv = ["unshare", "--mount", "--propagation", "private", *kinds]
    probe = subprocess.run([*argv, "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        skip(f"no namespaces are to be had: {probe.stderr.strip()}")
    os.execvpe("unshare", [*argv, sys.executable, *sys.argv],
               {**os.environ, MARK: mount_namespace()})


def end_with_the_test():
    """Whoever is left in the namespace when the test is over, killed or not, is killed: daemons
    hold it, and with it the mounts and their loop devices."""
    watched, held = os.pipe()  # `held` is closed by the end of this process, which alone has it
    if os.fork() != 0:
        os.close(watched)
        return
    os.setsid()
    os.close(held)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nowhere, fd)
    os.read(watched, 1)
    while left := others_in_the_namespace():
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    os._exit(0)


def others_in_the_namespace():
    """Processes that live; those that have ended, or are not ours to look at, are not in it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if int(pid) != os.getpid() and mount_namespace(pid) == mount_namespace():
                found.append(int(pid))
    return found


class Hosts:
    """h1, h2, … at 10.77.0.1, 10.77.0.2, …; the test itself is at the switch and reaches all."""

    def __init__(self, count):
        for program in ("ip", "iptables", "nsenter"):
            if shutil.which(program) is None:
                skip(f"there is no program {program}")
        self.names = [f"h{i + 1}" for i in range(count)]
        run("mount", "-t", "tmpfs", "tmpfs", "/run")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "switch", "type", "bridge")
        run("ip", "addr", "add", "10.77.0.254/24", "dev", "switch")
        run("ip", "link", "set", "switch", "up")
        for name in self.names:
            self.add(name)

    def add(self, name):
        run("ip", "netns", "add", name)
        run("ip", "link", "add", "to-" + name, "type", "veth", "peer", "name", "eth0", "netns",
            name)
        run("ip", "link", "set", "to-" + name, "master", "switch", "up")
        for command in (("addr", "add", self.address(name) + "/24", "dev", "eth0"),
                        ("link", "set", "lo", "up"), ("link", "set", "eth0", "up")):
            run(*self.inside(name, "ip", *command))

    def address(self, name):
        return f"10.77.0.{self.names.index(name) + 1}"

    @staticmethod
    def inside(name, *argv):
        return ["nsenter", f"--net=/run/netns/{name}", *argv]

    def drop(self, name, chain, *rule):
        run(*self.inside(name, "iptables", "-A", chain, *rule, "-j", "DROP"))

    def cut(self, name, ways=("in", "out"), more=()):
        """No packet (that fits `more`) comes from the other hosts, or gets to them."""
        for other in self.names:
            if other != name and "in" in ways:
                self.drop(name, "INPUT", "-s", self.address(other), *more)
            if other != name and "out" in ways:
                self.drop(name, "OUTPUT", "-d", self.address(other), *more)

    def heal(self, name):
        run(*self.inside(name, "iptables", "-F"))


class HostCluster(Cluster):
    """On each host a member of etcd, a proxy and a target: e1, p1 and t1 on h1, …"""

    PORTS = {"etcd": 2379, "proxy": 8080, "target": 8090}

    def __init__(self, count=3):
        self.hosts = Hosts(count)
        self.dir = tempfile.mkdtemp(prefix="dfc-test-")
        self.http = Http()
        self.ended_by_test = set()
        self.children = {}
        atexit.register(self.remove)
        os.makedirs(os.path.join(self.dir, "logs"))
        self.key_file = os.path.join(self.dir, "cluster.key")
        with open(os.open(self.key_file, os.O_WRONLY | os.O_CREAT, 0o600), "w",
                  encoding="ascii") as f:
            f.write(secrets.token_hex(32) + "\n")
        self.member = Member(self.http, self.key_file)
        self.nodes = {role[0] + host[1:]: {"role": role, "host": host, "url": self.base(host, role)}
                      for role in ("etcd", "proxy", "target") for host in self.hosts.names}
        self.endpoint = self.nodes["p1"]["url"]
        for role in ("etcd", "proxy", "target"):
            self.start_all([n for n, node in self.nodes.items() if node["role"] == role])
        for target in self.targets():
            self.wait_node(target, "active")

    def base(self, host, role, offset=0):
        return f"http://{self.hosts.address(host)}:{self.PORTS[role] + offset}"

    def host(self, node):
        return self.nodes[node]["host"]

    def all_of(self, role, offset):
        return [(role[0] + h[1:], self.base(h, role, offset)) for h in self.hosts.names]

    def command(self, node):
        role, host = self.nodes[node]["role"], self.host(node)
        if role == "etcd":
            return ["etcd", "--name", node, "--data-dir", self.node_dir(node),
                    "--listen-client-urls", self.base(host, role),
                    "--advertise-client-urls", self.base(host, role),
                    "--listen-peer-urls", self.base(host, role, 1),
                    "--initial-advertise-peer-urls", self.base(host, role, 1), "--initial-cluster",
                    ",".join(f"{n}={url}" for n, url in self.all_of("etcd", 1)),
                    "--heartbeat-interval", "50", "--election-timeout", "500",
                    "--logger", "zap", "--log-outputs", "stderr", "--log-level", "warn"]
        argv = [os.path.join(BUILD, "dfc-proxyd" if role == "proxy" else "dfc-targetd"),
                "--id", node, "--dir", self.node_dir(node), "--address", self.hosts.address(host),
                "--anonymous=all", "--cluster-key-file", self.key_file,
                "--public-port", str(self.PORTS[role]), "--control-port", str(self.PORTS[role] + 1)]
        if role == "proxy":
            members = ",".join(url.removeprefix("http://") for _, url in self.all_of("etcd", 0))
            return [*argv, "--metastore=etcd://" + members]
        return [*argv, "--data-port", str(self.PORTS[role] + 2),
                f"--mountpaths={self.node_dir(node)}/mp1",
                "--join=" + ",".join(url for _, url in self.all_of("proxy", 1))]

    # What lib.Cluster does by its script.

    def launch(self, node):
        os.makedirs(os.path.join(self.node_dir(node), "mp1"), exist_ok=True)
        with open(os.path.join(self.dir, "logs", node + ".log"), "ab") as log:
            self.children[node] = subprocess.Popen(
                self.hosts.inside(self.host(node), *self.command(node)), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True)
        self.ended_by_test.discard(node)

    def is_ready(self, node):
        check(self.children[node].poll() is None, f"{node} ended while starting")
        if self.nodes[node]["role"] == "etcd":
            try:
                return self.call("GET", "/health", node=node, timeout=5).status == 200
            except OSError:
                return False
        return os.path.exists(os.path.join(self.node_dir(node), "ready.json"))

    def start_all(self, nodes):
        for node in nodes:
            self.launch(node)
        for node in nodes:
            wait_for(lambda n=node: self.is_ready(n), f"{node} is ready")

    def start(self, node, *args):
        self.start_all([node])

    def pid(self, node):
        child = self.children[node]
        return child.pid if child.poll() is None else None

    def kill(self, node, *args):
        self.ended_by_test.add(node)
        self.children[node].kill()
        self.children[node].wait(WAIT_SECONDS)

    def end(self):
        """Gently; returns who did not end well."""
        wrong = []
        for role in ("target", "proxy", "etcd"):
            nodes = [n for n in self.children if self.nodes[n]["role"] == role and self.pid(n)]
            for node in nodes:
                self.children[node].send_signal(
                    signal.SIGKILL if role == "etcd" else signal.SIGTERM)
            deadline = time.monotonic() + WAIT_SECONDS
            for node in nodes:
                try:
                    status = self.children[node].wait(max(deadline - time.monotonic(), 0.1))
                    if status != 0 and role != "etcd":
                        wrong.append(f"{node} ended with status {status}")
                except subprocess.TimeoutExpired:
                    self.children[node].kill()
                    wrong.append(f"{node} did not end")
        return wrong

    def verdict(self):
        wrong = [f"{n} died" for n in self.children
                 if self.pid(n) is None and n not in self.ended_by_test]
        wrong += self.end()
        found = (sanitizer_found(n, self.log(n)) for n in self.children)
        return wrong + [said for said in found if said is not None] + leaks(self)

    def remove(self):
        self.http.close()
        self.end()
        shutil.rmtree(self.dir, ignore_errors=True)

    def keep(self):
        self.end()
        atexit.unregister(self.remove)
        print(f"its files stay in {self.dir}")
