#!/usr/bin/env python3
"""The chart in deploy/helm by helm itself: it lints, deploy/kubernetes is made from it, and what it
makes of several values fits the schemas of Kubernetes and the parameters of the daemons.

DFC_HELM names helm.  The schemas are those of the Python package kubernetes-validate."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "clients"), str(HERE / "blackbox")]

import deployments  # noqa: E402
import yaml  # noqa: E402
from lib import Failed, check, equal, run_one, skip  # noqa: E402
from venv_lib import python_with  # noqa: E402

CHART = ROOT / "deploy/helm/dfc"
HELM = os.environ.get("DFC_HELM") or shutil.which("helm")
SCHEMAS = ("kubernetes-validate==1.31.0",)
OLDEST, LATER = "1.25", "1.31"  # of Kubernetes: as in Chart.yaml, and one with sidecars
NOT_KUBERNETES = "monitoring.coreos.com/v1"  # the schemas do not have it

EVERYTHING = {
    "image": {"repository": "registry.test/dfc", "tag": "t", "pullSecrets": ["registry"]},
    "secrets": {"create": True},
    "proxies": {"replicas": 3, "storageClass": "fast", "settings": {"log_level": "debug"},
                "nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
    "targets": {"disks": 3, "storageClass": "fast", "settings": {"backend-allow": "10.96.0.0/12"},
                "nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
    "etcd": {"enabled": True, "storageClass": "fast"},
    "cached": {"enabled": True},
    "networkPolicy": {"clients": ["train", "eval"]},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
}
BARE = {"networkPolicy": {"enabled": False}, "targets": {"stopWait": "0s", "replicas": 1},
        "secrets": {"clusterKey": "k1", "rootKey": "k2"}}
REFUSED = (  # values, a part of the error
    ({"proxies": {"replicas": 3}}, "several proxies need an etcd"),
    ({"metastore": "etcd://e:2379", "etcd": {"enabled": True}}, "not both"),
    ({"metastore": "e:2379"}, "metastore"),
    ({"targets": {"replica": 3}}, "replica"),
    ({"targets": {"replicas": "three"}}, "replicas"),
    ({"etcd": {"replicas": 2}}, "etcd.replicas"),
    ({"proxies": {"replicas": 3}, "etcd": {"enabled": True, "used": False}}, "several proxies"),
    *(({"targets": {"stopWait": never}}, "stopWait") for never in ("0ms", "0m", "00s")),
    ({"targets": {"stopWait": "111s"}}, "gracePeriodSeconds: a target that waits 111s"),
    ({"targets": {"stopWait": "2m"}}, "gracePeriodSeconds"),
    ({"targets": {"stopWait": "30s", "gracePeriodSeconds": 39}}, "gracePeriodSeconds"),
    ({"targets": {"stopWait": "9999999h", "gracePeriodSeconds": 39}}, "gracePeriodSeconds"),
    ({"proxies": {"stopLinger": "51s"}}, "stopLinger: 51s is too long"),
    ({"proxies": {"stopLinger": "1m"}}, "stopLinger"),
)

LOOKUP = 'lookup "apps/v1" "StatefulSet" .Release.Namespace (printf "%s-proxy" .Release.Name)'
ETCD = {"etcd": {"enabled": True}}
AFTER = (  # values of what runs, values of the upgrade, a part of the error; None: it is accepted
    ({}, {}, None),
    ({}, ETCD, "metastoreMigrated"),
    ({}, {**ETCD, "metastoreMigrated": True}, None),
    ({}, {**ETCD, "metastoreMigrated": True, "proxies": {"replicas": 3}}, "replicas=1 first"),
    ({"etcd": {"enabled": True, "used": False}}, {}, None),
    (ETCD, ETCD, None),
    (ETCD, {}, "the proxies that run keep the documents in etcd"),
    (ETCD, {"etcd": {"enabled": True, "used": False}}, "etcd.used=true"),
    (ETCD, {"metastore": "etcd://e:2379"}, None),
    ({"metastore": "etcd://e:2379"}, {}, "the values of before"),
    (ETCD, {"proxies": {"settings": {"metastore": "etcd://e:2379"}}}, None),
)


def helm(*words):
    return subprocess.run([HELM, *map(str, words)], capture_output=True, text=True, check=False)


def render(values, release="dfc", chart=CHART):
    """`helm template` with these values."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        yaml.safe_dump(values, f)
        f.flush()
        return helm("template", release, chart, "--kube-version", LATER, "--values", f.name)


def rendered(values, **options):
    done = render(values, **options)
    equal(done.returncode, 0, done.stderr)
    return done.stdout


def objects(text):
    return [d for d in yaml.safe_load_all(text) if d is not None]


def environment(text, role):
    """The variables of the one container with this name."""
    containers = [c for d in objects(text) if "template" in d.get("spec", {})
                  for c in d["spec"]["template"]["spec"]["containers"]]
    return {e["name"]: e.get("value") for c in containers if c["name"] == role for e in c["env"]}


def test_lint():
    for values in ("", "etcd.enabled=true,proxies.replicas=3,cached.enabled=true"):
        done = helm("lint", "--strict", CHART, *(["--set", values] if values else []))
        equal(done.returncode, 0, done.stdout + done.stderr)


def test_the_plain_files_are_made_from_it():
    done = subprocess.run([sys.executable, ROOT / "deploy/helm/render.py", "--check"], text=True,
                          env={**os.environ, "DFC_HELM": HELM}, capture_output=True, check=False)
    equal(done.returncode, 0, done.stdout + done.stderr)


def write_objects(folder, texts):
    """One file each; returns their paths."""
    paths = []
    for document in (d for text in texts for d in objects(text)):
        if document["apiVersion"] != NOT_KUBERNETES:
            paths.append(pathlib.Path(folder, f"{len(paths)}.yaml"))
            paths[-1].write_text(yaml.safe_dump(document))
    return paths


def fit(python, release, texts):
    with tempfile.TemporaryDirectory() as folder:
        paths = write_objects(folder, texts)
        done = subprocess.run(
            [python, "-m", "kubernetes_validate", "--strict", "-k", release, *paths],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        equal(done.returncode, 0, done.stdout)
    return len(paths)


def test_schemas():
    texts = [rendered(v) for v in ({}, EVERYTHING, BARE)]
    example = (ROOT / "deploy/kubernetes/mount.yaml").read_text()
    with python_with("kubernetes_validate", SCHEMAS) as python:
        count = fit(python, OLDEST, texts)
        check(count > 25, f"only {count} objects")
        fit(python, LATER, [*texts, example])
        try:
            fit(python, OLDEST, [example])  # an init container cannot be a sidecar there
        except Failed:
            return
    raise Failed("the schemas find nothing")


def test_settings_are_parameters():
    text = rendered(EVERYTHING)
    for role, program in (("proxy", "dfc-proxyd"), ("target", "dfc-targetd"),
                          ("cached", "dfc-cached")):
        names = {n for n in environment(text, role) if n.startswith("DFC_")}
        check(len(names) > 5, f"{role}: {names}")
        equal(names - deployments.parameters(program), set(), role)


def test_values_arrive():
    text = rendered(EVERYTHING, release="prod")
    proxy, target = environment(text, "proxy"), environment(text, "target")
    equal(proxy["DFC_METASTORE"], "etcd://" + ",".join(f"prod-etcd-{i}.prod-etcd:2379"
                                                       for i in range(3)), "metastore")
    equal(target["DFC_JOIN"], ",".join(f"http://prod-proxy-{i}.prod-proxy:9080"
                                       for i in range(3)), "join")
    equal(target["DFC_MOUNTPATHS"], "/data/mp1,/data2/mp1,/data3/mp1", "mountpaths")
    equal((proxy["DFC_LOG_LEVEL"], target["DFC_BACKEND_ALLOW"]), ("debug", "10.96.0.0/12"),
          "settings")
    equal({d["metadata"]["name"].partition("-")[0] for d in objects(text)}, {"prod"}, "names")
    check("preStop" in text and "preStop" not in rendered(BARE), "stopWait: 0s")
    check("NetworkPolicy" not in rendered(BARE), "a network policy")
    policies = [d["metadata"]["name"] for d in objects(rendered({**BARE, "etcd": {"enabled": True}}))
                if d["kind"] == "NetworkPolicy"]
    equal(policies, ["dfc-etcd"], "etcd's own policy is always there")


def test_etcd_runs_before_it_is_used():
    text = rendered({"etcd": {"enabled": True, "used": False}})
    check("DFC_METASTORE" not in environment(text, "proxy"), "the proxy uses it")
    check(environment(text, "etcd"), "it does not run")
    check("app: dfc-etcd" in yaml.safe_dump([d for d in objects(text) if d["metadata"] ==
                                             {"name": "dfc", "labels": {"app": "dfc"}} and
                                             d["kind"] == "NetworkPolicy"]), "is not reached")


def test_the_longest_waits():
    for values in ({"targets": {"stopWait": "110s"}},
                   {"targets": {"stopWait": "0s", "gracePeriodSeconds": 1}},
                   {"targets": {"stopWait": "1h", "gracePeriodSeconds": 3610}},
                   {"proxies": {"stopLinger": "50s"}}, {"proxies": {"stopLinger": "0s"}}):
        rendered(values)


def test_keys_are_new_and_of_their_form():
    one, two = ({d["metadata"]["name"]: d["data"]["key"] for d in objects(rendered(EVERYTHING))
                 if d["kind"] == "Secret"} for _ in range(2))
    equal(set(one), {"dfc-cluster-key", "dfc-root-key"}, "secrets")
    for name, key in one.items():
        check(two[name] != key, f"{name} is the same twice")


def test_keys_are_no_part_of_a_revision():
    """A rollback would bring a replaced key back; the default policy would delete it."""
    keys = [d["metadata"] for d in objects(rendered(EVERYTHING)) if d["kind"] == "Secret"]
    equal(len(keys), 2, "secrets")
    for key in keys:
        equal(key["annotations"], {"helm.sh/hook": "pre-install,pre-upgrade",
                                   "helm.sh/hook-delete-policy": "hook-failed"}, key["name"])


def test_what_cannot_work_is_refused():
    for values, words in REFUSED:
        done = render(values)
        check(done.returncode != 0, f"{values} is accepted")
        check(words in done.stderr, f"{values}: {done.stderr}")


def proxies_of(values):
    return next(d for d in objects(rendered(values))
                if (d["kind"], d["metadata"]["name"]) == ("StatefulSet", "dfc-proxy"))


def test_an_upgrade_keeps_to_where_the_documents_are():
    """`helm template` sees no cluster: a copy of the chart is given what it would see."""
    with tempfile.TemporaryDirectory() as folder:
        chart = pathlib.Path(shutil.copytree(CHART, f"{folder}/dfc"))
        helpers = chart / "templates/_helpers.tpl"
        text = helpers.read_text()
        equal(text.count(LOOKUP), 1, "lookups")
        helpers.write_text(text.replace(LOOKUP, '.Files.Get "runs.json" | fromJson'))
        for before, values, words in AFTER:
            (chart / "runs.json").write_text(json.dumps(proxies_of(before)))
            done = render(values, chart=chart)
            equal(done.returncode == 0, words is None, f"{before}, {values}: {done.stderr}")
            check(words is None or words in done.stderr, f"{before}, {values}: {done.stderr}")


def main():
    if HELM is None:
        skip("there is no program helm (DFC_HELM names it)")
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_")]
    failed = [name for name, function in tests if not run_one(name, function)]
    print(f"{len(tests) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
