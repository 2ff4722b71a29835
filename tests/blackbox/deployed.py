#!/usr/bin/env python3
"""The clusters of deploy/container and deploy/kubernetes: locked from the first start, open to root's
key, and the same when their containers are made anew.

Neither Docker nor Kubernetes is there: a container is a process with the environment, the user and
the mounts that the files give it, in a root of its own.  Volumes and secrets are directories that
outlive it.  image.py runs the first cluster in Docker."""

import atexit
import contextlib
import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile

import namespaces
from lib import BUILD, ROOT, Http, check, end_on_signals, equal, run_one, skip, wait_for

try:
    import yaml
except ImportError:
    skip("there is no Python package yaml")

USER = 10001
PROGRAMS = ("dfc-proxyd", "dfc-targetd", "dfcctl")
SCRIPTS = ("dfc-healthy", "dfc-make-keys")
SHARED = ("usr", "etc/passwd", "etc/group", "etc/ld.so.cache", "dev", "proc")
LINKS = ("bin", "lib", "lib64")
COMPOSE = os.path.join(ROOT, "deploy", "container", "compose.yaml")
KUBERNETES = os.path.join(ROOT, "deploy", "kubernetes")


def directory(*parts, mode=0o700, owner=USER):
    path = os.path.join(*parts)
    os.makedirs(path, exist_ok=True)
    os.chown(path, owner, owner)
    os.chmod(path, mode)
    return path


class Container:
    """`mounts`: path in it → directory outside.  `enter`: words before its command (nsenter)."""

    def __init__(self, lab, name, environment, mounts, hosts, enter=()):
        self.lab, self.name, self.environment, self.enter = lab, name, environment, enter
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
        return [*self.enter, "chroot", f"--userspec={USER}:{USER}", "--groups=", self.root, "env",
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


# --- Compose -------------------------------------------------------------------------------------

def of_compose():
    """The file, with the defaults of its variables."""
    with open(COMPOSE, encoding="utf-8") as f:
        text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", f.read())
    return yaml.safe_load(text)


class Compose(Lab):
    def __init__(self):
        super().__init__()
        self.file = of_compose()

    def container(self, name):
        service = self.file["services"][name]
        mounts = {}
        for volume in service["volumes"]:
            source, at = volume.split(":")[:2]
            mounts[at] = directory(self.dir, "volumes", source)
        environment = {k: "" if v is None else v
                       for k, v in service.get("environment", {}).items()}
        environment.setdefault("DFC_DIR", "/var/lib/dfc")  # the image's
        if not any(at.startswith("/var/lib/dfc") for at in mounts):
            mounts["/var/lib/dfc"] = directory(tempfile.mkdtemp(dir=self.dir))
        return Container(self, name, environment, mounts, "127.0.0.1 localhost\n")

    def up(self):
        """Containers are new; volumes are kept."""
        services = self.file["services"]
        self.container("keys").execute(*shlex.split(services["keys"]["command"]))
        for name in ("p1", "t1", "t2", "t3"):
            self.containers[name] = self.container(name)
            self.containers[name].start(shlex.split(services[name]["command"]))
        self.wait_healthy()

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
    namespaces.run("ip", "link", "set", "lo", "up")
    lab = Compose()
    lab.up()
    refuse_all(lab, "http://127.0.0.1:8080", "http://127.0.0.1:8081")
    key = lab.volume("root", "root.key")
    for path in (key, lab.volume("key", "cluster.key")):
        equal(os.stat(path).st_mode & 0o777, 0o600, f"mode of {path}")
    check("root:" not in json.dumps(lab.file["services"]["t1"]["volumes"]),
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


# --- Kubernetes ----------------------------------------------------------------------------------

class Kubernetes(Lab):
    """Pods are hosts of a network of their own."""

    PODS = ("dfc-proxy-0", "dfc-target-0", "dfc-target-1", "dfc-target-2")

    def __init__(self):
        super().__init__()
        self.network = namespaces.Hosts(len(self.PODS))
        self.sets = {}
        for name in ("proxy", "target"):
            with open(os.path.join(KUBERNETES, name + ".yaml"), encoding="utf-8") as f:
                for document in yaml.safe_load_all(f):
                    if document["kind"] == "StatefulSet":
                        self.sets[document["metadata"]["name"]] = document["spec"]
        self.hosts = "".join(f"{self.address(pod)} {pod}.{pod[:-2]}\n" for pod in self.PODS)

    def address(self, pod):
        return self.network.address(self.network.names[self.PODS.index(pod)])

    def make_secret(self, name, text):
        """Root's, and of the group of the pods (fsGroup)."""
        path = os.path.join(directory(self.dir, "secrets", name, mode=0o755), "key")
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        os.chown(path, 0, USER)

    def source(self, pod, template, name):
        """Of a mount: a secret, a volume that is kept, or one that ends with the pod."""
        volume = next((v for v in template["spec"]["volumes"] if v["name"] == name), None)
        if volume is None:
            return directory(self.dir, "claims", pod, name)
        if "secret" in volume:
            path = os.path.join(self.dir, "secrets", volume["secret"]["secretName"])
            os.chmod(os.path.join(path, "key"), volume["secret"]["defaultMode"])
            return path
        return directory(tempfile.mkdtemp(dir=self.dir))

    @staticmethod
    def environment(pod, container):
        values = {"POD_NAME": pod, "POD_NAMESPACE": "dfc"}
        for one in container["env"]:
            if "value" in one:
                values[one["name"]] = re.sub(r"\$\((\w+)\)", lambda m: values[m.group(1)],
                                             one["value"])
        return {"DFC_DIR": "/var/lib/dfc", **values}  # the image's

    def start_pod(self, pod):
        template = self.sets[pod[:-2]]["template"]
        container = template["spec"]["containers"][0]
        mounts = {m["mountPath"]: self.source(pod, template, m["name"])
                  for m in container["volumeMounts"]}
        host = self.network.names[self.PODS.index(pod)]
        self.containers[pod] = Container(self, pod, self.environment(pod, container), mounts,
                                         "127.0.0.1 localhost\n" + self.hosts,
                                         self.network.inside(host))
        self.containers[pod].start(container["command"])

    def up(self):
        for pod in self.PODS:
            self.start_pod(pod)
        self.wait_healthy()


def test_kubernetes():
    lab = Kubernetes()
    keys = secrets.token_hex(10).upper() + "\n" + secrets.token_hex(20) + "\n"
    lab.make_secret("dfc-cluster-key", secrets.token_hex(32))
    lab.make_secret("dfc-root-key", keys)
    lab.up()
    proxy = f"http://{lab.address('dfc-proxy-0')}:8080"
    target = f"http://{lab.address('dfc-target-0')}:8081"
    refuse_all(lab, proxy, target)
    serve_root(lab.containers["dfc-proxy-0"],
               f"printf '%s' '{keys}' | dfcctl login --stdin")
    lab.end()
    lab.up()
    read_again(lab.containers["dfc-proxy-0"])
    refuse_all(lab, proxy, target)
    lab.containers["dfc-proxy-0"].execute("dfcctl", "--control", "http://127.0.0.1:9080", "cluster",
                                          "status")
    check(not os.path.exists(os.path.join(lab.dir, "claims/dfc-proxy-0/documents/root.json")),
          "root's key was not that of the secret")
    lab.remove()


def main():
    namespaces.enter("--net")
    end_on_signals()
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_")]
    failed = [name for name, function in tests if not run_one(name, function)]
    print(f"{len(tests) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
