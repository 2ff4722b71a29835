"""What no log and no document of a daemon may have when a test is over: the cluster key, root's
secret, tokens, the proofs of redirects and signed URLs.  Every script asks this of its clusters."""

import contextlib
import json
import os
import re

SECRET_FILES = {"root.json"}
SKIPPED = re.compile(r"mp\d+|etcd")  # bytes of clients; etcd's keys: access_secrets.py
SHAPES = {"a token": re.compile(rb"dfc1\.[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{20,}"),
          "a proof in a URL": re.compile(rb"dfc[au]=[A-Za-z0-9_-]{40,}")}


def secrets_of(key_file, folders):
    """By text: those that the cluster itself has made."""
    found = {}
    with contextlib.suppress(FileNotFoundError), open(key_file, "rb") as f:
        found.update({line.strip(): "the cluster key" for line in f if line.strip()})
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):
            with open(os.path.join(folder, "root.json"), encoding="utf-8") as f:
                found[json.load(f)["secret_key"].encode()] = "root's secret"
    return found


def documents(folder):
    for at, below, names in os.walk(folder):
        below[:] = [name for name in below if not SKIPPED.fullmatch(name)]
        yield from (os.path.join(at, name) for name in names if name not in SECRET_FILES)


def in_file(path, secrets):
    with open(path, "rb") as f:
        data = f.read()
    yield from (what for text, what in secrets.items() if text in data)
    yield from (what for what, shape in SHAPES.items() if shape.search(data))


def leaks(c):
    """A sentence for each secret in a file of the cluster."""
    folders = [c.node_dir(node) for node in c.nodes]
    logs = [os.path.join(c.dir, "logs", node + ".log") for node in c.nodes]
    secrets = secrets_of(c.key_file, folders)
    paths = [path for folder in folders for path in documents(folder)]
    files = (path for path in [*logs, *paths] if os.path.isfile(path))
    return [f"{path} has {what}" for path in files for what in in_file(path, secrets)]
