#!/usr/bin/env python3
"""The clusters of deploy/container and deploy/kubernetes: locked from the first start, open to root's
key, and the same when their containers are made anew.  Of the second: a rolling update with new
addresses, a lost machine, a pod that mounts.

Neither Docker nor Kubernetes is there: a container is a process with the environment, the user and
the mounts that the files give it, in a root of its own.  Volumes and secrets are directories that
outlive it.  image.py runs the first cluster in Docker."""

import functools
import json
import os
import re
import secrets
import shlex
import sys
import tempfile

import namespaces
from containers import Container, Lab, directory
from lib import BUILD, ROOT, check, end_on_signals, equal, run_one, skip, wait_for
from pods import Kubernetes, Load

try:
    import yaml
except ImportError:
    skip("there is no Python package yaml")

COMPOSE = ("compose.yaml",)
COMPOSE_ETCD = COMPOSE + ("compose.etcd.yaml",)


# --- Compose -------------------------------------------------------------------------------------

def of_compose(files):
    """Their services, with the defaults of variables: a later file adds to those of one before."""
    services = {}
    for name in files:
        with open(os.path.join(ROOT, "deploy", "container", name), encoding="utf-8") as f:
            text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", f.read())
        for service, added in yaml.safe_load(text)["services"].items():
            known = services.setdefault(service, {})
            environment = {**known.get("environment", {}), **added.get("environment", {})}
            known.update({**added, "environment": environment})
    return services


class Compose(Lab):
    def __init__(self, files):
        super().__init__()
        self.services = of_compose(files)

    def container(self, name):
        service = self.services[name]
        mounts = {}
        for volume in service["volumes"]:
            source, at = volume.split(":")[:2]
            mounts[at] = directory(self.dir, "volumes", source)
        environment = {k: "" if v is None else v
                       for k, v in service["environment"].items()}
        environment.setdefault("DFC_DIR", "/var/lib/dfc")  # the image's
        if not any(at.startswith("/var/lib/dfc") for at in mounts):
            mounts["/var/lib/dfc"] = directory(tempfile.mkdtemp(dir=self.dir))
        return Container(self, name, environment, mounts, "127.0.0.1 localhost\n")

    def up(self):
        """Containers are new; volumes are kept."""
        self.container("keys").execute(*shlex.split(self.services["keys"]["command"]))
        for name in sorted(self.services.keys() - {"keys"}):
            self.start(name)
        self.wait_healthy()

    def start(self, name):
        self.containers[name] = self.container(name)
        self.containers[name].start(shlex.split(self.services[name]["command"]))

    def wait_healthy(self):
        """The services that have a check: members of etcd have none."""
        wait_for(lambda: all(c.is_healthy() for name, c in self.containers.items()
                             if "healthcheck" in self.services[name]), "healthy containers")

    def volume(self, *path):
        return os.path.join(self.dir, "volumes", *path)


def contents(path):
    with open(path, encoding="ascii") as f:
        return f.read()


def refuse_all(lab, proxy, target):
    """Whoever has no key."""
    for url in (proxy, target):
        for method, path in (("GET", "/v1/buckets"), ("GET", "/v1/objects/b/o"),
                             ("PUT", "/v1/objects/b/o"), ("GET", "/v1/cluster")):
            if url == proxy or path.startswith("/v1/objects/"):
                body = b"x" if method == "PUT" else None
                lab.http.request(method, url + path, body, follow=False).expect(401, "unauthorized")


def serve_root(container, *login):
    """Root logs in, as README.md has it, and makes an object."""
    container.execute("sh", "-c", *login)
    container.execute("dfcctl", "bucket", "create", "b", "--copies", "2")
    container.execute("dfcctl", "put", "-", "b/o", input="bytes")
    equal(container.execute("dfcctl", "cat", "b/o").stdout, "bytes", "the object")


def read_again(container):
    """By the login of before: root's key is the same, and so is the cluster."""
    wait_for(lambda: container.execute("dfcctl", "cat", "b/o", ok=False).stdout == "bytes",
             "the object after all containers were made anew")


def test_compose():
    lab = Compose(COMPOSE)
    lab.up()
    refuse_all(lab, "http://127.0.0.1:8080", "http://127.0.0.1:8081")
    key = lab.volume("root", "root.key")
    for path in (key, lab.volume("key", "cluster.key")):
        equal(os.stat(path).st_mode & 0o777, 0o600, f"mode of {path}")
    check("root:" not in json.dumps(lab.services["t1"]["volumes"]),
          "targets have root's key")
    serve_root(lab.containers["p1"], "dfcctl login --stdin </etc/dfc-root/root.key")
    before = contents(key), contents(lab.volume("key", "cluster.key"))
    lab.end()
    lab.up()
    equal((contents(key), contents(lab.volume("key", "cluster.key"))), before, "the keys")
    read_again(lab.containers["p1"])
    refuse_all(lab, "http://127.0.0.1:8080", "http://127.0.0.1:8081")
    lab.containers["p1"].execute("dfcctl", "--control", "http://127.0.0.1:8090", "cluster", "status")
    lab.remove()


def test_compose_etcd():
    """A proxy and a member of etcd may be away."""
    lab = Compose(COMPOSE_ETCD)
    lab.up()
    refuse_all(lab, "http://127.0.0.1:8084", "http://127.0.0.1:8081")
    proxies = ",".join(f"http://127.0.0.1:{port}" for port in (8080, 8084, 8085))
    p1 = lab.containers["p1"]
    p1.environment["DFC_ENDPOINT"] = proxies
    serve_root(p1, "dfcctl login --stdin </etc/dfc-root/root.key")
    cluster = json.loads(p1.execute("dfcctl", "cluster", "status", "-o", "json").stdout)
    primary = cluster["primary"]
    check(primary in ("p1", "p2", "p3"), f"the primary is {primary}")
    lab.containers.pop(primary).end()
    lab.containers.pop("e2").end()
    p1.execute("dfcctl", "bucket", "create", "later", "--retries", "20")
    for name in (primary, "e2"):
        lab.start(name)
    lab.wait_healthy()
    lab.end()
    lab.up()
    p1 = lab.containers["p1"]
    p1.environment["DFC_ENDPOINT"] = proxies
    read_again(p1)
    check("later" in p1.execute("dfcctl", "bucket", "ls").stdout, "the bucket is gone")
    lab.remove()


# --- Kubernetes ----------------------------------------------------------------------------------

def locked_kubernetes():
    """A cluster of pods, with root's keys in its secret."""
    lab = Kubernetes()
    keys = secrets.token_hex(10).upper() + "\n" + secrets.token_hex(20) + "\n"
    lab.secrets = {"dfc-cluster-key": secrets.token_hex(32), "dfc-root-key": keys}
    lab.up()
    return lab, f"printf '%s' '{keys}' | dfcctl login --stdin"


def test_kubernetes():
    lab, login = locked_kubernetes()
    proxy = f"http://{lab.address('dfc-proxy-0')}:8080"
    target = f"http://{lab.address('dfc-target-0')}:8081"
    refuse_all(lab, proxy, target)
    serve_root(lab.containers["dfc-proxy-0"], login)
    lab.containers["dfc-proxy-0"].execute("dfcctl", "config", "set", "repair_delay", "0")
    lab.end()
    lab.up()
    read_again(lab.containers["dfc-proxy-0"])
    refuse_all(lab, proxy, target)
    lab.containers["dfc-proxy-0"].execute("dfcctl", "--control", "http://127.0.0.1:9080", "cluster",
                                          "status")
    check(not os.path.exists(os.path.join(lab.dir, "volumes/dfc-proxy-0/documents/root.json")),
          "root's key was not that of the secret")
    a_pod_mounts(lab)
    pods_roll(lab)
    a_machine_is_lost(lab)
    lab.remove()


def make_user(lab, secret, *grants):
    """As deploy/kubernetes/README.md has it."""
    dfcctl = functools.partial(lab.containers["dfc-proxy-0"].execute, "dfcctl", "user")
    dfcctl("create", secret)
    for grant in grants:
        dfcctl("grant", secret, grant)
    key = json.loads(dfcctl("key", "add", secret, "-o", "json").stdout)
    lab.secrets[secret] = {"DFC_ACCESS_KEY": key["access_key"],
                           "DFC_SECRET_KEY": key["secret_key"]}


def a_pod_mounts(lab):
    """A member of the cache group, and a pod whose sidecar mounts for another container."""
    cached, pod = lab.OTHERS
    if not (os.path.exists("/dev/fuse") and os.path.exists(os.path.join(BUILD, "dfc-mount"))):
        print("        no pod mounts: there is no FUSE")
        return
    make_user(lab, "dfc-cache-user", "operate", "list,read:*")
    make_user(lab, "dfc-train-user", "list,read:train")
    lab.secrets["dfc-group-key"] = secrets.token_hex(32)
    proxy = lab.containers["dfc-proxy-0"]
    proxy.execute("dfcctl", "bucket", "create", "train", "--copies", "2")
    proxy.execute("dfcctl", "put", "-", "train/cat", input="cat")
    lab.start_pod(cached)
    lab.wait_ready(cached)
    shared = directory(lab.dir, "mnt", mode=0o755)
    namespaces.run("mount", "--bind", shared, shared)
    namespaces.run("mount", "--make-shared", shared)
    sidecar = lab.spec(pod)["initContainers"][0]
    lab.containers[pod] = lab.container(pod, sidecar, {"mnt": shared}, user=0)
    lab.containers[pod].start(sidecar["command"])
    probe = sidecar["startupProbe"]["exec"]["command"]
    wait_for(lambda: lab.containers[pod].execute(*probe, ok=False).returncode == 0, "the mount")
    program = lab.container(pod, lab.only(pod), {"mnt": shared})
    check("cat" in program.execute(*lab.only(pod)["command"]).stdout, "no file is listed")
    equal(program.execute("cat", "/mnt/train/cat").stdout, "cat", "the file")
    for name in (pod, cached):
        lab.containers.pop(name).end()
    check(not os.path.exists(os.path.join(shared, "train/cat")), "the mount outlives its pod")


def pods_roll(lab):
    """A rolling update, in which each target gets a new address: no read fails, and no write."""
    with Load(lab.containers["dfc-proxy-0"]) as load:
        for pod in reversed(lab.TARGETS):
            lab.wait_ready(pod)
            before = load.done
            lab.roll(pod)
            wait_for(lambda n=before: load.failed or load.done > n + 1, "more writes")
    equal(load.failed, None, f"the load, after {load.done} writes")


def a_machine_is_lost(lab):
    """The pod comes back elsewhere with its volume.  Until it has what it missed, preStop holds
    another pod, which serves on."""
    lost, other = lab.TARGETS[:2]
    proxy = lab.containers["dfc-proxy-0"]
    lab.lose_machine(lost)
    with Load(proxy) as load:
        wait_for(lambda: load.failed or load.done > 1, "writes without the machine")
        hook, before = lab.pre_stop(other), load.done
        wait_for(lambda: load.failed or load.done > before + 2, "writes beside preStop")
        check(hook.poll() is None, "preStop did not wait for the other target")
        lab.move(lost, lab.spare())
        lab.start_pod(lost)
        said = hook.communicate(timeout=120)[0]
        equal(hook.returncode, 0, f"preStop: {said}")
        wait_for(lambda: lab.is_ready(lost), "the pod that came back is ready")
        check(lab.containers[other].process.poll() is None, f"{other} does not serve any more")
        lab.containers[other].end()
    equal(load.failed, None, f"the load, after {load.done} writes")


def main():
    namespaces.enter("--net")
    namespaces.run("ip", "link", "set", "lo", "up")
    end_on_signals()
    known = {n: f for n, f in globals().items() if n.startswith("test_")}
    unknown = set(sys.argv[1:]) - known.keys()
    if unknown:
        sys.exit(f"deployed.py has no {', '.join(sorted(unknown))}; it has {', '.join(known)}")
    tests = [(n, f) for n, f in known.items() if n in (sys.argv[1:] or [n])]
    failed = [name for name, function in tests if not run_one(name, function)]
    print(f"{len(tests) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
