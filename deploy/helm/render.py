#!/usr/bin/env python3
"""Writes deploy/kubernetes/ from the chart: its objects with the default values, for those who
have no helm.

    render.py            write the files and SUMS
    render.py --check    say which files differ; exit code 1 if any does

Needs helm (README.md); DFC_HELM names the program.  SUMS has the digests of the chart's files and
of those made from them: a test without helm sees by them that one was changed without the other."""

import argparse
import hashlib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CHART = HERE / "dfc"
PLAIN = HERE.parent / "kubernetes"
RELEASE = "dfc"
VALUES = ("cached.enabled=true",)  # cached.yaml is not in kustomization.yaml
KUBERNETES = "1.31.0"  # helm may have been built for a release that the chart refuses
HEADER = "# Made by deploy/helm/render.py from deploy/helm/dfc/{source}: change it there.\n"
MARK = "# Source: dfc/"


def helm(*words):
    program = os.environ.get("DFC_HELM", "helm")
    try:
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    except OSError as e:
        sys.exit(f"{program}: {e.strerror}: install helm, or name it with DFC_HELM")
    if done.returncode != 0:
        sys.exit(f"{program} {' '.join(words)}: {done.stderr}")
    return done.stdout


def by_source(text):
    """{template: its documents}: helm sorts the documents of all templates by kind."""
    found = {}
    for document in text.split("\n---\n"):
        mark, _, rest = document.removeprefix("---\n").partition("\n")
        found.setdefault(mark.removeprefix(MARK), []).append(rest.strip("\n") + "\n")
    return found


def files():
    """{name: text} of deploy/kubernetes/."""
    text = helm("template", RELEASE, str(CHART), "--kube-version", KUBERNETES, "--set",
                ",".join(VALUES))
    return {pathlib.PurePath(source).name: HEADER.format(source=source) + "---\n".join(documents)
            for source, documents in by_source(text).items()}


def digest(data):
    return hashlib.sha256(data).hexdigest()


def sums(made):
    """As sha256sum prints them, relative to deploy/; `made`: {name: text}."""
    rows = {f"helm/{p.relative_to(HERE)}": p.read_bytes()
            for p in CHART.rglob("*") if p.is_file()}
    rows.update({f"kubernetes/{name}": text.encode() for name, text in made.items()})
    return "".join(f"{digest(data)}  {name}\n" for name, data in sorted(rows.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    made = files()
    made["SUMS"] = sums(made)
    stale = [name for name, text in made.items()
             if not (PLAIN / name).exists() or (PLAIN / name).read_text() != text]
    for name in stale:
        if not check:
            (PLAIN / name).write_text(made[name])
        print(f"deploy/kubernetes/{name}: {'differs from the chart' if check else 'written'}")
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
