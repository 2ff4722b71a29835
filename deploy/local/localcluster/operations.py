"""What can be done with a cluster.  Each returns when what it says is so, or raises ClusterError.

`ready_seconds` bounds every wait for a daemon to begin, `stop_seconds` for one to end.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess

from . import ClusterError, certificates, layout as layouts, probe
from .process import end_of_log, spawn, wait_until


def no_cluster(directory):
    return ClusterError(f"there is no cluster in {directory}; `cluster up --dir {directory}` "
                        "makes one")


@contextlib.contextmanager
def locked(directory):
    """One command at a time changes a cluster."""
    if not os.path.isdir(directory):
        raise no_cluster(directory)
    with open(os.path.join(directory, "lock"), "w", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def load(directory):
    layout = layouts.load(directory)
    if layout is None:
        raise no_cluster(directory)
    return layout


# --- starting ------------------------------------------------------------------------------------

def launch(layout, node, extra=()):
    """Starts the daemon and returns its Popen; ready it is later."""
    for port in layout.ports(node):
        if not layouts.port_is_free(layout.address, port):
            raise ClusterError(
                f"port {port} of {node.name} is taken by another program: end that program, or "
                "make the cluster anew on other ports (`cluster down --purge` removes it with its "
                "data, then `cluster up --base-port N`)")
    for path in layout.mountpath_dirs(node) if node.role == "target" else []:
        os.makedirs(path, exist_ok=True)
    os.makedirs(layout.node_dir(node), exist_ok=True)
    os.makedirs(os.path.dirname(layout.log_path(node)), exist_ok=True)
    probe.remove_ready(layout.node_dir(node))
    child, process = spawn(layout.command(node, extra), layout.log_path(node))
    node.process, node.wanted = process, True
    layouts.save(layout)
    return child


def is_ready(layout, node, child):
    if node.role == "etcd":  # clients are let in when a majority has met, which may be later
        return not layouts.port_is_free(layout.address, node.control_port)
    return probe.read_ready(layout.node_dir(node), child.pid) is not None


def await_ready(layout, node, child, ready_seconds):
    def over():
        return is_ready(layout, node, child) or child.poll() is not None

    wait_until(over, ready_seconds)
    if child.poll() is not None:
        how = (f"was ended by signal {-child.returncode}" if child.returncode < 0
               else f"ended with status {child.returncode}")
        raise ClusterError(f"{node.name} {how} while starting; its log "
                           f"{layout.log_path(node)} ends:\n{end_of_log(layout.log_path(node))}")
    if not is_ready(layout, node, child):
        raise ClusterError(f"{node.name} is not ready after {ready_seconds} s; its log "
                           f"{layout.log_path(node)} ends:\n{end_of_log(layout.log_path(node))}")


def running(layout, role=None):
    return [n for n in layout.nodes
            if n.process and n.process.alive() and role in (None, n.role)]


def known_nodes(layout):
    """{id: node} of the cluster map; None where no proxy answers."""
    keys = layouts.root_keys(layout) if layout.auth else None
    return probe.cluster_nodes((layout.public_url(p) for p in running(layout, "proxy")),
                               layout.ca_file(), keys)


def inactive(layout, nodes):
    """Names of the nodes that the map does not call active (or what an operator has decided of
    them); all where no proxy answers."""
    known = known_nodes(layout) or {}
    return [n.name for n in nodes if known.get(n.name, {}).get("state") not in
            ("active", "maintenance", "decommissioning")]


def await_active(layout, nodes, ready_seconds):
    nodes = [n for n in nodes if n.role != "etcd"]
    if not running(layout, "proxy") or not nodes:
        return
    late = []

    def are_active():
        late[:] = inactive(layout, nodes)
        return not late

    if not wait_until(are_active, ready_seconds):
        raise ClusterError(f"after {ready_seconds} s the cluster map does not have "
                           f"{', '.join(late)} as active; see the logs in {layout.dir}/logs")


def start_groups(layout, nodes):
    """Who must be there before the others can join: etcd, and a primary."""
    first = layout.of_role("proxy")[0]
    if layout.metastore == "etcd":
        return [[n for n in nodes if n.role == role] for role in ("etcd", "proxy", "target")]
    return [[n for n in nodes if n is first], [n for n in nodes if n is not first]]


def start_nodes(layout, nodes, ready_seconds, extra=()):
    for group in start_groups(layout, nodes):
        children = [(node, launch(layout, node, extra)) for node in group]
        for node, child in children:
            await_ready(layout, node, child, ready_seconds)
    await_active(layout, nodes, ready_seconds)


def make_layout(options):
    members = layouts.ETCD_MEMBERS if options.metastore == "etcd" else 0
    count = options.proxies + options.targets + members
    base = options.base_port or layouts.pick_base_port(options.address, count, options.s3)
    last = base + layouts.PORTS_PER_NODE * count - 1 + (layouts.S3_PORTS if options.s3 else 0)
    if not (0 < base and last < 65536):
        raise ClusterError(f"--base-port {base}: the nodes' ports {base} to {last} are no ports")
    nodes = layouts.new_nodes(options.proxies, options.targets, options.metastore, base)
    layout = layouts.Layout(options.dir, options.build, options.address, options.mountpaths,
                            options.metastore, options.wrapper, options.proxy_arg,
                            options.target_arg, nodes, not options.without_key, options.tls,
                            options.auth, options.s3)
    for name, arg in options.node_arg:
        layout.node(name).args.append(arg)
    return layout


def check_same_shape(layout, options):
    """`up` over an existing cluster starts it again; it does not make another one of it."""
    for what, wanted, have in (
            ("proxies", options.proxies, len(layout.of_role("proxy"))),
            ("targets", options.targets, len(layout.of_role("target"))),
            ("mountpaths per target", options.mountpaths, layout.mountpaths),
            ("as metastore", options.metastore, layout.metastore)):
        if wanted is not None and wanted != have:
            raise ClusterError(f"the cluster in {layout.dir} has {have} {what}, not {wanted}; "
                               "`cluster down --purge` removes it with its data")


def check_starting(option, nodes):
    if nodes:
        names = ", ".join(n.name for n in nodes)
        raise ClusterError(f"--{option} is for nodes that start, and these are running: {names}; "
                           "`cluster down` ends them and keeps their data")


def replace_args(layout, options):
    """The arguments of this `up` are those of all nodes of a role from now on."""
    for role, args in (("proxy", options.proxy_arg), ("target", options.target_arg)):
        if args:
            check_starting(f"{role}-arg", running(layout, role))
    layout.proxy_args = options.proxy_arg or layout.proxy_args
    layout.target_args = options.target_arg or layout.target_args


def switch_on(layout, options):
    """What this `up` asks for, all nodes have from now on.  Nodes with and without it do not
    serve together."""
    for name in ("tls", "auth", "s3"):
        if getattr(options, name) and not getattr(layout, name):
            check_starting(name, running(layout))
            setattr(layout, name, True)


def make_secrets(layout):
    """Once in the life of a cluster: what its nodes need to be keyed, and to speak TLS."""
    if layout.keyed:
        layouts.make_key(layout.dir)
    if layout.tls and not certificates.exist(layout.dir):
        certificates.make_authority(layout.dir)
        certificates.make_certificate(layout.dir, layout.address)


def up(options):
    """Makes a cluster, or starts what is not running of the one in options.dir."""
    os.makedirs(options.dir, exist_ok=True)
    with locked(options.dir):
        layout = layouts.load(options.dir)
        if layout is None:
            layout = make_layout(options.with_defaults())
            for node in layout.nodes:
                layout.program(node)
        else:
            check_same_shape(layout, options)
            replace_args(layout, options)
            switch_on(layout, options)
            layout.build = options.build
        make_secrets(layout)
        layouts.save(layout)
        alive = running(layout)
        try:
            start_nodes(layout, [n for n in layout.nodes if n not in alive], options.ready_seconds)
        except ClusterError:
            # A cluster that did not come up does not linger.
            if not alive:
                stop_all(layout, options.stop_seconds)
            raise
        await_active(layout, layout.nodes, options.ready_seconds)
        return layout


def start(directory, build, name, extra, ready_seconds):
    with locked(directory):
        layout = load(directory)
        layout.build = build
        node = layout.node(name)
        if node.process and node.process.alive():
            raise ClusterError(f"{name} is running already, as process {node.process.pid}")
        start_nodes(layout, [node], ready_seconds, extra)


# --- growing -------------------------------------------------------------------------------------

def add_nodes(layout, role, names):
    """Nodes of these names that are not there yet, on the ports behind those that are taken."""
    known = {n.name for n in layout.nodes}
    for name in names:
        if name not in known:
            port = max(n.port for n in layout.nodes) + layouts.PORTS_PER_NODE
            layout.nodes.append(layouts.Node(name, role, port))


def migrate(layout):
    """The primary's documents go to etcd; the same again is harmless."""
    key = ["--cluster-key-file", layouts.key_path_of(layout.dir)] if layout.keyed else []
    trust = ["--ca-file", layout.ca_file()] if layout.tls else []
    done = subprocess.run(
        [os.path.join(layout.build, "dfcctl"), "cluster", "migrate-metastore", "--yes", "--quiet",
         "--to", layout.metastore_url(), "--endpoint", layout.endpoint(), *key, *trust],
        capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ClusterError(f"the documents were not moved: {done.stderr.strip()}")


def grow(directory, build, proxies, ready_seconds, stop_seconds):
    """From one proxy with an embedded metastore to several with etcd.  Targets go on running.  What
    was cut short goes on with the same call."""
    with locked(directory):
        layout = load(directory)
        layout.build = build
        if layout.metastore != "embedded":
            raise ClusterError(f"the cluster in {directory} has its documents in etcd already")
        primary = layout.of_role("proxy")[0]
        require_running(primary)
        add_nodes(layout, "etcd", [f"e{i + 1}" for i in range(layouts.ETCD_MEMBERS)])
        layouts.save(layout)
        members = layout.of_role("etcd")
        alive = running(layout, "etcd")
        for node, child in [(m, launch(layout, m)) for m in members if m not in alive]:
            await_ready(layout, node, child, ready_seconds)
        migrate(layout)
        old = running(layout, "proxy")
        add_nodes(layout, "proxy", [f"p{i + 1}" for i in range(proxies)])
        layout.metastore = "etcd"
        layouts.save(layout)
        for node in old:
            node.process.signal(signal.SIGTERM)
            if not node.process.wait(stop_seconds):
                raise ClusterError(f"{node.name} has not ended {stop_seconds} s after SIGTERM")
        start_nodes(layout, [primary], ready_seconds)
        start_nodes(layout, [n for n in layout.of_role("proxy") if n is not primary], ready_seconds)
        await_active(layout, layout.nodes, ready_seconds)
        return layout


def add_target(directory, build, args, ready_seconds):
    """Another target joins the cluster; returns its name."""
    with locked(directory):
        layout = load(directory)
        layout.build = build
        number = 1 + max((int(n.name[1:]) for n in layout.of_role("target")), default=0)
        add_nodes(layout, "target", [f"t{number}"])
        node = layout.nodes[-1]
        node.args = list(args)
        start_nodes(layout, [node], ready_seconds)
        return node.name


# --- ending --------------------------------------------------------------------------------------

def require_running(node):
    if node.process is None or not node.process.alive():
        raise ClusterError(f"{node.name} is not running")
    return node.process


def kill(directory, name, number, stop_seconds):
    """Sends a signal; with one that ends the process, returns when it has ended."""
    with locked(directory):
        node = load(directory).node(name)
        process = require_running(node)
        process.signal(number)
        if number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGQUIT,
                      signal.SIGABRT) and not process.wait(stop_seconds):
            raise ClusterError(f"{name} (process {process.pid}) still runs {stop_seconds} s after "
                               f"{signal.Signals(number).name}")


def stop(directory, name, stop_seconds):
    """Asks a daemon to end and waits until it has."""
    with locked(directory):
        layout = load(directory)
        node = layout.node(name)
        process = require_running(node)
        process.signal(signal.SIGTERM)
        if not process.wait(stop_seconds):
            raise ClusterError(f"{name} (process {process.pid}) has not ended {stop_seconds} s "
                               "after SIGTERM; `cluster kill -9` would end it")
        node.wanted = False
        layouts.save(layout)


def stop_all(layout, stop_seconds):
    """Ends every process, gently while the time lasts.  Returns the names that had to be killed."""
    for role in ("target", "proxy", "etcd"):
        nodes = running(layout, role)
        for node in nodes:
            # Members of etcd that are asked to end together wait for one another in vain.
            node.process.signal(signal.SIGKILL if role == "etcd" else signal.SIGTERM)
            node.process.signal(signal.SIGCONT)
        for node in nodes:
            node.process.wait(stop_seconds)
    stubborn = running(layout)
    for node in stubborn:
        node.process.signal(signal.SIGKILL)
        node.process.wait(stop_seconds)
    for node in layout.nodes:
        probe.remove_ready(layout.node_dir(node))
        node.process, node.wanted = None, False
    layouts.save(layout)
    return [n.name for n in stubborn]


def down(directory, purge, stop_seconds):
    """Ends the cluster.  Its data stays for the next `up`, unless purge."""
    with locked(directory):
        layout = load(directory)
        stubborn = stop_all(layout, stop_seconds)
        if purge:
            for node in layout.nodes:
                shutil.rmtree(layout.node_dir(node), ignore_errors=True)
            for name in ("logs", "tls"):
                shutil.rmtree(os.path.join(directory, name), ignore_errors=True)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(layouts.key_path_of(directory))
            os.unlink(layouts.path_of(directory))
            os.unlink(os.path.join(directory, "lock"))
    if purge:
        with contextlib.suppress(OSError):  # a directory with other files in it stays
            os.rmdir(directory)
    return stubborn


# --- looking -------------------------------------------------------------------------------------

def node_state(layout, node, known):
    """active, joining (alive, not in the map yet), unreachable (alive, does not answer, or so says
    the map), maintenance, stopped (as asked), dead (not as asked)."""
    if node.process is None or not node.process.alive():
        return "dead" if node.wanted else "stopped"
    if node.role == "etcd":  # without a majority it is not healthy
        health = probe.get_json(layout.public_url(node), "/health")
        return "active" if health and health.get("health") == "true" else "unreachable"
    if probe.get_json(layout.public_url(node), "/v1/health?live=true", layout.ca_file()) is None:
        return "unreachable"
    if known is None or node.name not in known:
        return "joining"
    return known[node.name]["state"]


def status(directory):
    layout = load(directory)
    known = known_nodes(layout)
    return [{
        "name": node.name,
        "role": node.role,
        "primary": bool((known or {}).get(node.name, {}).get("primary", False)),
        "pid": node.process.pid if node.process and node.process.alive() else None,
        "url": layout.public_url(node),
        "state": node_state(layout, node, known),
    } for node in layout.nodes]
