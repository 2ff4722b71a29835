"""The cluster of deploy/kubernetes without Kubernetes: pods are hosts of a network of their own, with
the settings, mounts, probes and hooks of the files."""

import contextlib
import os
import re
import subprocess
import tempfile
import threading

import namespaces
from containers import USER, Container, Lab, directory
from lib import ROOT, equal, skip, wait_for

try:
    import yaml
except ImportError:
    skip("there is no Python package yaml")

KUBERNETES = os.path.join(ROOT, "deploy", "kubernetes")


class Kubernetes(Lab):
    """The test is the controller of the sets."""

    PODS = ("dfc-proxy-0", "dfc-target-0", "dfc-target-1", "dfc-target-2")
    TARGETS = PODS[1:]
    OTHERS = ("dfc-cached", "dfc-mount-example")
    SPARE = 1  # machines without a pod

    def __init__(self):
        super().__init__()
        self.network = namespaces.Hosts(len(self.PODS + self.OTHERS) + self.SPARE)
        self.machines = dict(zip(self.PODS + self.OTHERS, self.network.names))
        self.secrets = {}  # name → text of the field "key", or {field: text}
        self.specs = {}  # name of a set or a pod → the specification of its pods
        for name in ("proxy", "target", "cached", "mount"):
            with open(os.path.join(KUBERNETES, name + ".yaml"), encoding="utf-8") as f:
                for document in yaml.safe_load_all(f):
                    if document["kind"] in ("StatefulSet", "DaemonSet", "Pod"):
                        spec = document["spec"]
                        self.specs[document["metadata"]["name"]] = spec.get(
                            "template", document)["spec"]

    def address(self, pod):
        return self.network.address(self.machines[pod])

    def spare(self):
        return next(h for h in self.network.names if h not in self.machines.values())

    def names(self):
        """What the cluster's DNS would say: of each pod, and of the service for clients."""
        rows = [f"{self.address(pod)} {pod}.{pod[:-2]}" for pod in self.PODS]
        return "\n".join(["127.0.0.1 localhost", *rows, f"{self.address(self.PODS[0])} dfc", ""])

    def move(self, pod, machine):
        self.machines[pod] = machine
        for container in self.containers.values():
            with open(os.path.join(container.root, "etc/hosts"), "w", encoding="ascii") as f:
                f.write(self.names())

    def secret(self, pod, volume):
        """A file of root's, and of the group of the pods (fsGroup)."""
        path = directory(self.dir, "secrets", pod, volume["secretName"], mode=0o755)
        with open(os.path.join(path, "key"), "w", encoding="ascii") as f:
            f.write(self.secrets[volume["secretName"]])
        os.chown(f.name, 0, USER)
        os.chmod(f.name, volume["defaultMode"])
        return path

    def source(self, pod, name):
        """Of a mount: a secret, a volume that is kept, or one that ends with the pod."""
        volume = next((v for v in self.spec(pod)["volumes"] if v["name"] == name), {})
        if "secret" in volume:
            return self.secret(pod, volume["secret"])
        if "emptyDir" in volume:
            return directory(tempfile.mkdtemp(dir=self.dir))
        return directory(self.dir, "volumes", pod, name)

    def environment(self, pod, container):
        values = {"POD_NAME": pod, "POD_NAMESPACE": "dfc", "NODE_NAME": self.machines[pod],
                  "POD_IP": self.address(pod)}
        for one in container.get("envFrom", ()):
            values.update(self.secrets[one["secretRef"]["name"]])
        for one in container["env"]:
            if "value" in one:
                values[one["name"]] = re.sub(r"\$\((\w+)\)", lambda m: values[m.group(1)],
                                             one["value"])
        return {"DFC_DIR": "/var/lib/dfc", **values}  # the image's

    def spec(self, pod):
        return self.specs.get(pod) or self.specs[pod[:-2]]

    def only(self, pod):
        return self.spec(pod)["containers"][0]

    def container(self, pod, container, volumes=None, user=USER):
        """Not started yet.  `volumes`: name → directory, where containers of a pod share some."""
        mounts = {m["mountPath"]: (volumes or {}).get(m["name"]) or self.source(pod, m["name"])
                  for m in container["volumeMounts"]}
        environment = self.environment(pod, container) if "env" in container else {}
        return Container(self, f"{pod}-{container['name']}", environment, mounts, self.names(),
                         self.network.inside(self.machines[pod]), user)

    def start_pod(self, pod):
        self.containers[pod] = self.container(pod, self.only(pod))
        self.containers[pod].start(self.only(pod)["command"])

    def is_ready(self, pod):
        """Its readinessProbe."""
        probe = self.only(pod)["readinessProbe"]["httpGet"]
        port = next(p["containerPort"] for p in self.only(pod)["ports"]
                    if p["name"] == probe["port"])
        with contextlib.suppress(OSError):
            url = f"http://{self.address(pod)}:{port}{probe['path']}"
            return 200 <= self.http.request("GET", url, timeout=2).status < 400
        return False

    def wait_ready(self, pod):
        wait_for(lambda: self.is_ready(pod), f"{pod} is ready")

    def pre_stop(self, pod):
        """Its preStop hook, under way."""
        container = self.containers[pod]
        hook = self.only(pod)["lifecycle"]["preStop"]["exec"]["command"]
        return subprocess.Popen(container.argv(hook), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def delete(self, pod):
        """As a controller deletes it: preStop, then SIGTERM."""
        hook = self.pre_stop(pod)
        said = hook.communicate(timeout=120)[0]
        equal(hook.returncode, 0, f"preStop of {pod}: {said}")
        self.containers[pod].end()

    def roll(self, pod):
        """It is made anew, on another machine."""
        self.delete(pod)
        self.move(pod, self.spare())
        self.start_pod(pod)
        self.wait_ready(pod)

    def lose_machine(self, pod):
        """Without a word: no packet comes from it any more."""
        self.network.cut(self.machines[pod])
        self.containers[pod].process.kill()
        self.containers[pod].process.wait(60)

    def up(self):
        for pod in self.PODS:
            self.start_pod(pod)
        self.wait_healthy()


class Load:
    """Writes and reads without a pause, in the proxy's pod; the first failure ends it."""

    def __init__(self, container):
        self.container, self.done, self.failed = container, 0, None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.is_set() and self.failed is None:
            name, text = f"b/load{self.done % 8}", f"{self.done}"
            put = self.container.execute("dfcctl", "put", "-", name, input=text, ok=False)
            cat = self.container.execute("dfcctl", "cat", name, ok=False)
            if (put.returncode, cat.stdout) != (0, text):
                self.failed = f"{name}: {put.stderr}{cat.stderr}"
            self.done += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
