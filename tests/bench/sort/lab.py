"""A lab of hosts with a disk and a link of given speeds: h1, h2, … each with one target on its
disk, and one more
host without limits for the proxy.  Namespaces and daemons are those of tests/blackbox; root alone
can have them.

Disks are dfc-slow-disk under a loop device with ext4; links are held by tc at both ends.  Both
limits can be lifted
while nothing is measured."""

import json
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "blackbox"))

from benchlib import forget_files  # noqa: E402
from lib import Cluster, Http, Member, in_parallel, wait_for  # noqa: E402
from namespaces import HostCluster, Hosts, run  # noqa: E402

TBF = ("burst", "64kb", "latency", "50ms")
NEEDED = {
    "mkfs.ext4": "e2fsprogs", "fio": "fio", "iperf3": "iperf3", "tc": "iproute2",
    "fusermount3": "fuse3"
}
SLOW_DISK = "tests/bench/sort/dfc-slow-disk"  # below the build directory


def lacks(build):
    """What a lab needs and this machine has not, as text; "" where nothing is missing."""
    missing = {program: package for program, package in NEEDED.items() if not shutil.which(program)}
    if missing:
        return (f"there is no {', '.join(missing)} (Debian: apt-get install "
                f"{' '.join(missing.values())})")
    if not (build / SLOW_DISK).exists():
        return "dfc-slow-disk was not built (it needs libfuse3-dev)"
    return ""


class Disk:
    """An ext4 file system of `size` bytes at `path`."""

    def __init__(self, program, directory, name, size, speed):
        self.path, image = directory / name, directory / f"{name}.img"
        device = directory / f"{name}.disk"
        self.path.mkdir()
        device.touch()
        with open(image, "wb") as f:
            f.truncate(size)
        self.process = subprocess.Popen([str(program), str(image), str(speed), str(device)])
        wait_for(lambda: os.path.ismount(device), f"{device} is served")
        self.limit(False)
        run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(device))
        run("mount", "-o", "loop,noatime", str(device), str(self.path))
        major_minor = os.stat(self.path).st_dev
        self.stat = f"/sys/dev/block/{os.major(major_minor)}:{os.minor(major_minor)}/stat"
        self.limit(True)

    def limit(self, on):
        self.process.send_signal(signal.SIGUSR2 if on else signal.SIGUSR1)

    def end(self):
        run("umount", str(self.path))
        device = self.process.args[-1]  # which the loop device lets go of a moment later
        wait_for(
            lambda: subprocess.run(["umount", device], capture_output=True, check=False).returncode
            == 0, f"{device} is unmounted")
        self.process.wait()

    def read_and_written(self):
        """Bytes that were read, and bytes that were written, by the block device."""
        fields = pathlib.Path(self.stat).read_text(encoding="ascii").split()
        return int(fields[2]) * 512, int(fields[6]) * 512

    def flush(self):
        run("sync", "-f", str(self.path))

    def forget(self):
        forget_files(self.path)


class Links:
    """The links of some hosts, held to a speed each way while limit() is on."""

    def __init__(self, hosts, names, speed):
        self.hosts, self.names, self.speed = hosts, names, speed

    def limit(self, on):
        for name in self.names:
            for command, device in ((self.hosts.inside(name, "tc"), "eth0"),
                                    (["tc"], "to-" + name)):
                if on:
                    run(*command, "qdisc", "replace", "dev", device, "root", "tbf",
                        "rate", f"{self.speed * 8}bit", *TBF)
                else:
                    run(*command, "qdisc", "replace", "dev", device, "root", "pfifo")


class Traffic:
    """Bytes that came to each host, and from it, since the beginning; the headers are counted."""

    def __init__(self, names):
        self.names = names
        self.before = self.now()

    def now(self):
        """The host's end of its link receives what the switch's end sends."""
        def of(name):
            stats = json.loads(run("ip", "-j", "-s", "link", "show", "dev", "to-" + name))
            return tuple(stats[0]["stats64"][way]["bytes"] for way in ("tx", "rx"))

        return {name: of(name) for name in self.names}

    def most(self):
        """The busiest way of a link."""
        now = self.now()
        return max(now[n][i] - self.before[n][i] for n in self.names for i in (0, 1))


class Lab:
    def __init__(self, build, directory, count, disk_size, disk_speed, link_speed):
        self.disk_speed, self.link_speed = disk_speed, link_speed
        self.hosts = Hosts(count + 1)
        self.names = self.hosts.names[:count]
        self.links = Links(self.hosts, self.names, link_speed)
        self.disks = {
            name: Disk(build / SLOW_DISK, directory, name, disk_size, disk_speed)
            for name in self.names
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.limit(False)
        for disk in self.disks.values():
            disk.end()

    def limit(self, on):
        for name in self.names:
            self.disks[name].limit(on)
        self.links.limit(on)

    def flush(self):
        in_parallel(lambda disk: disk.flush(), self.disks.values())

    def forget(self):
        in_parallel(lambda disk: disk.forget(), self.disks.values())

    def read_and_written(self):
        return tuple(map(sum, zip(*(disk.read_and_written() for disk in self.disks.values()))))

    # The limits, as fio and iperf3 see them.

    def found_disk(self, kind):
        path = self.disks["h1"].path / "fio"
        done = run("fio", "--name=disk", f"--filename={path}", "--size=16M", "--bs=256k",
                   f"--rw={kind}", "--direct=1", "--ioengine=psync", "--output-format=json")
        os.unlink(path)
        return json.loads(done)["jobs"][0][kind]["bw_bytes"]

    def found_link(self):
        listener = subprocess.Popen(self.hosts.inside("h2", "iperf3", "-s", "-1", "-p", "5999"),
                                    stdout=subprocess.DEVNULL)

        def measured():
            done = subprocess.run(
                self.hosts.inside("h1", "iperf3", "-c", self.hosts.address("h2"), "-p", "5999",
                                  "-t", "3", "-J"), capture_output=True, text=True, check=False)
            report = json.loads(done.stdout)
            return None if "error" in report else report["end"]["sum_received"][
                "bits_per_second"] / 8

        speed = wait_for(measured, "iperf3")
        listener.wait(60)
        return round(speed)

    def limits(self):
        return {
            "disk": self.disk_speed, "link": self.link_speed,
            "fio_read": self.found_disk("read"), "fio_write": self.found_disk("write"),
            "iperf3": self.found_link()
        }


class PlacedCluster(HostCluster):
    """One proxy and some targets, each on a given host: {"p1": "h3", "t1": "h1", …}."""

    proxy_flags = ()

    def __init__(self, hosts, build, places):
        self.hosts, self.build = hosts, build
        self.dir = tempfile.mkdtemp(prefix="dfc-bench-lab-")
        os.makedirs(os.path.join(self.dir, "logs"))
        self.http = Http()
        self.ended_by_test, self.children = set(), {}
        self.key_file = os.path.join(self.dir, "cluster.key")
        with open(os.open(self.key_file, os.O_WRONLY | os.O_CREAT, 0o600), "w",
                  encoding="ascii") as f:
            f.write(secrets.token_hex(32) + "\n")
        self.member = Member(self.http, self.key_file)
        self.nodes = {node: {"role": "proxy" if node[0] == "p" else "target", "host": host}
                      for node, host in places.items()}
        for node in self.nodes.values():
            node["url"] = self.base(node["host"], node["role"])
        self.endpoint = self.nodes["p1"]["url"]

    def __enter__(self):
        self.start_all(["p1"])
        self.join(self.first())
        return self

    def first(self):
        """Targets that run from the beginning."""
        return self.targets()

    def join(self, targets):
        self.start_all(targets)
        for target in targets:
            self.wait_node(target, "active")

    def __exit__(self, *_):
        self.remove()

    def command(self, node):
        role, host = self.nodes[node]["role"], self.host(node)
        argv = [
            str(self.build / ("dfc-proxyd" if role == "proxy" else "dfc-targetd")), "--id", node,
            "--dir",
            self.node_dir(node), "--address",
            self.hosts.address(host), "--anonymous=all", "--cluster-key-file", self.key_file,
            "--public-port", str(self.PORTS[role]), "--control-port",
            str(self.PORTS[role] + 1)
        ]
        if role == "proxy":
            return [*argv, *self.proxy_flags]
        return [
            *argv, "--data-port",
            str(self.PORTS[role] + 2), f"--mountpaths={self.node_dir(node)}/mp1",
            "--join=" + self.base(self.host("p1"), "proxy", 1)
        ]

    def sizes(self, node):
        return sum(os.path.getsize(path) for path in Cluster.object_files(self, node))


class LabCluster(PlacedCluster):
    """A proxy on the host without limits, and targets t1, t2, … on the first hosts of the lab.  The
    last `late` of these do not run before join()."""

    def __init__(self, lab, build, targets, late=0):
        self.lab = lab
        self.late = [f"t{i + 1}" for i in range(targets - late, targets)]
        super().__init__(lab.hosts, build, {
            "p1": lab.hosts.names[-1], **{"t" + name[1:]: name for name in lab.names[:targets]}})

    def first(self):
        return [target for target in self.targets() if target not in self.late]

    def __exit__(self, *_):
        super().__exit__()
        for target in self.targets():
            run("rm", "-rf", self.node_dir(target))

    def disk(self, node):
        return self.lab.disks[self.host(node)]

    def node_dir(self, node):
        return str(self.disk(node).path /
                   "node") if node in self.targets() else super().node_dir(node)
