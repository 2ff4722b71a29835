"""What a cluster consists of: names, directories, ports, arguments, and the last known processes.

    DIR/cluster.json     this document
    DIR/cluster.key      what its nodes prove to one another that they belong together; mode 0600
    DIR/tls/             certificates (certificates.py)
    DIR/lock             held while a command changes something
    DIR/logs/NODE.log    what the daemons print
    DIR/NODE/            a daemon's own directory; of a target also its mountpaths mp1, mp2, ...;
                         with access control, the first primary's has root's keys: root.json

Node i listens on the three ports base + 3i (public), + 1 (intra-control) and + 2 (intra-data).
Where the cluster has S3 listeners, a proxy or target listens on base + 3i + 1000, too.
They stay the node's own: who knows a node's URL still knows it after a restart.

Where the metastore is etcd its members are nodes, too: e1, e2, e3.  Their clients' port is the
first one of theirs, that for one another the second.
"""

import contextlib
import ipaddress
import json
import os
import random
import secrets
import shutil
import socket
from dataclasses import dataclass, field

from . import ClusterError, certificates
from .process import Process

DEFAULT_BASE_PORT = 8080
PORTS_PER_NODE = 3
S3_PORTS = 1000  # above the public ones
ETCD_MEMBERS = 3
LOOPBACK = "127.0.0.0/8,::1/128"  # where backends on this machine are
FORMAT = 1


@dataclass
class Node:
    name: str
    role: str  # "proxy", "target" or "etcd"
    port: int
    args: list = field(default_factory=list)  # this node's own, after those of its role
    process: Process = None
    wanted: bool = False  # started by us and not stopped since

    @property
    def control_port(self):
        return self.port + 1

    @property
    def data_port(self):
        return self.port + 2

    @property
    def s3_port(self):
        return self.port + S3_PORTS


@dataclass
class Layout:
    dir: str
    build: str
    address: str
    mountpaths: int
    metastore: str  # "embedded" or "etcd"
    wrapper: list
    proxy_args: list
    target_args: list
    nodes: list
    keyed: bool  # its nodes have a cluster key
    tls: bool  # its public listeners speak TLS
    auth: bool  # its public listeners ask for proof
    s3: bool  # its nodes have S3 listeners

    def node(self, name):
        for node in self.nodes:
            if node.name == name:
                return node
        names = ", ".join(n.name for n in self.nodes)
        raise ClusterError(f"the cluster in {self.dir} has no node '{name}'; it has {names}")

    def of_role(self, role):
        return [node for node in self.nodes if node.role == role]

    def url(self, port, scheme="http"):
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{scheme}://{host}:{port}"

    def public_url(self, node):
        return self.url(node.port, "https" if self.tls and node.role != "etcd" else "http")

    def ca_file(self):
        """Of the authority that clients trust; None where they need none."""
        return certificates.path_of(self.dir, "ca.crt") if self.tls else None

    def endpoint(self):
        """All proxies, as dfcctl takes them."""
        return ",".join(map(self.public_url, self.of_role("proxy")))

    def s3_endpoint(self):
        """The first proxy, for S3 clients, which take one URL."""
        return self.url(self.of_role("proxy")[0].s3_port, "https" if self.tls else "http")

    def ports(self, node):
        ports = [node.port, node.control_port, node.data_port]
        return ports + [node.s3_port] if self.s3 and node.role != "etcd" else ports

    def node_dir(self, node):
        return os.path.join(self.dir, node.name)

    def mountpath_dirs(self, node):
        return [os.path.join(self.node_dir(node), f"mp{i + 1}") for i in range(self.mountpaths)]

    def log_path(self, node):
        return os.path.join(self.dir, "logs", node.name + ".log")

    def control_url(self, node):
        return self.url(node.control_port)

    def program(self, node):
        if node.role == "etcd":
            path = shutil.which("etcd")
            if path is None:
                raise ClusterError("there is no program etcd: install it (Debian: etcd-server), or "
                                   "say --metastore embedded: then the first proxy is the primary "
                                   "for ever")
            return path
        path = os.path.join(self.build, "dfc-proxyd" if node.role == "proxy" else "dfc-targetd")
        if not os.access(path, os.X_OK):
            raise ClusterError(f"there is no program {path}: build it (meson setup build && "
                               "ninja -C build), or let DFC_BUILD name the build directory")
        return path

    def command(self, node, extra=()):
        if node.role == "etcd":
            return self.etcd_command(node) + node.args + list(extra)
        argv = [*self.wrapper, self.program(node), "--id", node.name, "--dir", self.node_dir(node),
                "--address", self.address, "--public-port", str(node.port),
                "--control-port", str(node.control_port)]
        if node.role == "target":
            argv += ["--mountpaths=" + ",".join(self.mountpath_dirs(node)),
                     "--data-port", str(node.data_port), "--backend-allow=" + LOOPBACK]
        # Also where there is none: DFC_CLUSTER_KEY_FILE may be that of another cluster.
        argv += ["--cluster-key-file=" + (key_path_of(self.dir) if self.keyed else "")]
        if self.s3:
            argv += ["--s3-port", str(node.s3_port)]
        if self.auth:
            argv.append("--public-auth")
        elif not is_loopback(self.address):
            argv.append("--anonymous=all")
        argv += self.tls_args() + self.where_to_join(node)
        role_args = self.proxy_args if node.role == "proxy" else self.target_args
        return argv + role_args + node.args + list(extra)

    def tls_args(self):
        files = ((f"--tls-{what}", certificates.path_of(self.dir, name))
                 for what, name in (("cert", "node.crt"), ("key", "node.key"), ("ca", "ca.crt")))
        return [f"{option}={path if self.tls else ''}" for option, path in files]

    def metastore_url(self):
        members = (self.public_url(m).removeprefix("http://") for m in self.of_role("etcd"))
        return "etcd://" + ",".join(members)

    def where_to_join(self, node):
        proxies = self.of_role("proxy")
        if self.metastore == "etcd" and node.role == "proxy":
            return ["--metastore=" + self.metastore_url()]
        if self.metastore == "etcd":
            return ["--join=" + ",".join(self.control_url(p) for p in proxies)]
        return ["--join", self.control_url(proxies[0])] if node is not proxies[0] else []

    def etcd_command(self, node):
        """A short election of its own, so that the proxies' leases may be short."""
        members = ",".join(f"{m.name}={self.control_url(m)}" for m in self.of_role("etcd"))
        return [self.program(node), "--name", node.name,
                "--data-dir", os.path.join(self.node_dir(node), "etcd"),
                "--listen-client-urls", self.public_url(node),
                "--advertise-client-urls", self.public_url(node),
                "--listen-peer-urls", self.control_url(node),
                "--initial-advertise-peer-urls", self.control_url(node),
                "--initial-cluster", members, "--initial-cluster-token", self.dir,
                "--heartbeat-interval", "50", "--election-timeout", "500",
                "--auto-compaction-mode", "revision", "--auto-compaction-retention", "1000",
                "--logger", "zap", "--log-outputs", "stderr", "--log-level", "warn"]


def is_loopback(address):
    return ipaddress.ip_address(address).is_loopback


def path_of(directory):
    return os.path.join(directory, "cluster.json")


def key_path_of(directory):
    return os.path.join(directory, "cluster.key")


ROOT_KEY_FILE = "--root-key-file="


def root_keys(layout):
    """(access key, secret key) of root: those that the first primary has made, or of the file that
    proxies start with; None without them."""
    made = [os.path.join(layout.node_dir(node), "root.json") for node in layout.of_role("proxy")]
    given = [arg.removeprefix(ROOT_KEY_FILE) for arg in layout.proxy_args
             if arg.startswith(ROOT_KEY_FILE)]
    for path in made + given:
        with contextlib.suppress(FileNotFoundError):
            with open(path, encoding="utf-8") as f:
                return keys_of(f.read())
    return None


def keys_of(text):
    """Two lines, or a JSON object."""
    if text.lstrip().startswith("{"):
        keys = json.loads(text)
        return keys["access_key"], keys["secret_key"]
    return tuple(text.split()[:2])


def make_key(directory):
    """Once in the life of a cluster."""
    with contextlib.suppress(FileExistsError):
        fd = os.open(key_path_of(directory), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(fd, "w", encoding="ascii") as f:
            f.write(secrets.token_hex(32) + "\n")


def new_nodes(proxies, targets, metastore, base_port):
    names = [(f"p{i + 1}", "proxy") for i in range(proxies)]
    names += [(f"t{i + 1}", "target") for i in range(targets)]
    names += [(f"e{i + 1}", "etcd") for i in range(ETCD_MEMBERS if metastore == "etcd" else 0)]
    return [Node(name, role, base_port + PORTS_PER_NODE * i)
            for i, (name, role) in enumerate(names)]


def save(layout):
    document = {
        "format": FORMAT, "build": layout.build, "address": layout.address,
        "mountpaths": layout.mountpaths, "metastore": layout.metastore, "wrapper": layout.wrapper,
        "keyed": layout.keyed, "tls": layout.tls, "auth": layout.auth, "s3": layout.s3,
        "proxy_args": layout.proxy_args, "target_args": layout.target_args,
        "nodes": [{
            "name": n.name, "role": n.role, "port": n.port, "args": n.args, "wanted": n.wanted,
            "pid": n.process.pid if n.process else None,
            "start_time": n.process.start_time if n.process else None,
        } for n in layout.nodes],
    }
    temporary = path_of(layout.dir) + ".new"
    with open(temporary, "w", encoding="utf-8") as f:
        json.dump(document, f, indent=1)
        f.write("\n")
    os.replace(temporary, path_of(layout.dir))


def load(directory):
    """The layout of the cluster in `directory`; None where there is none."""
    try:
        with open(path_of(directory), encoding="utf-8") as f:
            document = json.load(f)
    except FileNotFoundError:
        return None
    except ValueError as e:
        raise ClusterError(f"{path_of(directory)} is damaged: {e}") from e
    if document.get("format") != FORMAT:
        raise ClusterError(f"{path_of(directory)} is of another release of this script")
    nodes = [Node(n["name"], n["role"], n["port"], n["args"],
                  Process(n["pid"], n["start_time"]) if n["pid"] else None, n["wanted"])
             for n in document["nodes"]]
    return Layout(directory, document["build"], document["address"], document["mountpaths"],
                  document.get("metastore", "embedded"), document["wrapper"],
                  document["proxy_args"], document["target_args"], nodes,
                  document.get("keyed", False), document.get("tls", False),
                  document.get("auth", False), document.get("s3", False))


# --- ports ---------------------------------------------------------------------------------------

def port_is_free(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((address, port))
        except OSError:
            return False
    return True


def block_is_free(address, base, count):
    return all(port_is_free(address, port) for port in range(base, base + count))


def first_ephemeral_port():
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
            return int(f.read().split()[0])
    except (OSError, ValueError):
        return 32768


def blocks_are_free(address, base, count, s3):
    return (block_is_free(address, base, count)
            and (not s3 or block_is_free(address, base + S3_PORTS, count)))


def pick_base_port(address, node_count, s3):
    """A block of free ports: the well-known one, or else a random one.

    Below the ephemeral range, so that no outgoing connection takes the port of a node that is
    down (and none to such a port connects to itself)."""
    count = PORTS_PER_NODE * node_count
    if blocks_are_free(address, DEFAULT_BASE_PORT, count, s3):
        return DEFAULT_BASE_PORT
    last = first_ephemeral_port() - count - (S3_PORTS if s3 else 0)
    for _ in range(200):
        base = random.randrange(10000, max(last, 10001))
        if blocks_are_free(address, base, count, s3):
            return base
    raise ClusterError(f"found no {count} free ports in a row on {address}; name some with "
                       "--base-port")
