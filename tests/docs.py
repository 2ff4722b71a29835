#!/usr/bin/env python3
"""What the documents say about the programs is what the programs say.

    docs.py [--write]      compares (or writes) the pages of docs/reference/ that programs print:
                           dfcctl, http-api, parameters, metrics, errors, s3, and the table
                           of bucket properties in buckets.md, and python, which the docstrings
                           of the package say (python_pages.py); looks for dead links and headings,
                           for pages that sources name and that are not there, for parameters
                           of calls there that no call has, for commands that write a key which
                           others can read, and at the form of CHANGELOG.md
"""

import os
import re
import subprocess
import sys

import python_pages

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BUILD = os.environ.get("DFC_BUILD") or os.path.join(ROOT, "build")
REFERENCE = os.path.join(ROOT, "docs", "reference")
CODE = re.compile(r"`([^`]*)`")
ASKED = re.compile(r"[?&]([A-Za-z_-]+)=")
LINK = re.compile(r"\]\(([^)#\s]*)#?([^)\s]*)\)")
LINKED = re.compile(r"\[([^\]]*)\]\([^)]*\)")
FENCED = re.compile(r"^ *```.*?^ *```", re.S | re.M)
SOURCES = (".c", ".h", ".def", ".py", ".sh", ".build", ".in", ".yaml", ".md")
PAGE = re.compile(r"(?<![\w/.-])docs/[\w/-]+\.md\b")
HEADING = re.compile(r"^#+ (.+)$", re.M)

GENERATED = "<!-- Written by tests/docs.py from the tables of the programs; change those. -->"

API = f"""# HTTP calls

{GENERATED}

Every call of this release. [http.md](http.md) has the conventions that all calls share, and
[errors.md](errors.md) every error code, [buckets.md](buckets.md)
the properties of buckets, [jobs.md](jobs.md) the background jobs. The errors that any call can give are not repeated here.
A query parameter that a call does not list is refused.
`Right` is the right that a user needs for a public call once access control is on. It is on with `public_auth`.

## Proxies

{{proxy}}
## Targets

{{target}}
## Members of a cache group

Mounts and members make these calls, signed with the key of the group.

{{cached}}"""

PARAMETERS = f"""# Parameters

{GENERATED}

A daemon takes each parameter from these sources. A later source wins:

1. the default below
2. on a target, the cluster's setting of that name: `dfcctl config set sort_memory 512MiB`
3. a JSON file, `--config FILE`, with the parameters by name
4. the environment: `DFC_CONNECTIONS_MAX=2000`
5. the command line: `--connections-max=2000`
6. a change while the daemon runs: `dfcctl config set --node NODE`

Sizes take units (`64MiB`), durations too (`500ms`, `10s`, `2h`). An unknown name or a value out of
bounds stops the start. `dfcctl config show --node NODE` shows the values in force, their sources, and
which of them can change while the daemon runs. A change with `--node` lasts until the daemon ends. To keep a
value for one node, write it into its configuration file: SIGHUP takes it, a start does, too.

The last rows of the cluster-wide table below are parameters of targets. Their settings last, and hold for
targets that join later. A target that cannot reach the primary starts with the last settings that it knows.

The other parameters are read once, at the start:

- names, addresses, ports, keys and directories: other nodes and open files depend on them
- numbers of threads and connections, sizes of buffers and indexes: memory is taken by them
- access control and what must be the same on every node: a change takes a restart of each node
- intervals of background work: their timers are set

## Parameters of dfc-proxyd

{{proxy}}
## Parameters of dfc-targetd

{{target}}
## Parameters of dfc-cached

{{cached}}"""

METRICS = f"""# Metrics

{GENERATED}

Every node serves its metrics at `GET /metrics`, in the text format of Prometheus. Proxies and
targets share one table; a metric without a value on a node is described there and not shown.
Durations are in seconds, sizes in bytes. A histogram has `_bucket`, `_sum` and `_count`.

{{metrics}}"""

ERRORS = f"""# Errors

{GENERATED}

A reply with an error is JSON: `{{{{"status", "code", "message", "node", "request_id"}}}}`. Programs
should match on `code`, which never changes. The message is for people and may change. Replies with
503 carry `Retry-After` in seconds.

{{errors}}"""

S3 = f"""# Operations of S3

{GENERATED}

Every node does these operations for clients of S3. [The guide](../guide/s3.md) shows how to set clients
up, and [the design](../design/s3.md) says how an operation works and what differs from AWS.

- `Right` is the right that a user needs once access control is on.
- `Outcome` is `done`, or the code of the error that is always the reply. Where AWS has an error for a feature that is
  off, the reply is that error.
- A request that no row fits gets `MethodNotAllowed`.
- A request with an option that is not done gets an error: encryption, a storage class other than `STANDARD`, an
  object lock.

{{operations}}"""


def output_of(program, *arguments):
    done = subprocess.run([os.path.join(BUILD, program), *arguments], capture_output=True,
                          text=True, check=True)
    return done.stdout.strip() + "\n"


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def with_bucket_properties(text):
    """docs/reference/buckets.md with the table of cluster/props/bucket_props.def."""
    part = re.compile(r"(<!-- bucket properties -->\n).*?(<!-- end -->\n)", re.S)
    table = output_of("dfc-proxyd", "--bucket-props-markdown")
    if not part.search(text):
        sys.exit("docs/reference/buckets.md: no place for the properties of buckets")
    return part.sub(lambda m: m.group(1) + table + m.group(2), text, count=1)


def generated():
    """{path: what it must hold}"""
    def both(page, option):
        return page.format(proxy=output_of("dfc-proxyd", option),
                           target=output_of("dfc-targetd", option),
                           cached=output_of("dfc-cached", option))

    pages = {
        "dfcctl": output_of("dfcctl", "help", "--markdown"),
        "http-api": both(API, "--api-markdown"),
        "parameters": both(PARAMETERS, "--params-markdown"),
        "metrics": METRICS.format(metrics=output_of("dfc-proxyd", "--metrics-markdown")),
        "errors": ERRORS.format(errors=output_of("dfc-proxyd", "--errors-markdown")),
        "s3": S3.format(operations=output_of("dfc-proxyd", "--s3-markdown")),
        "python": python_pages.page(),
        "buckets": with_bucket_properties(read(os.path.join(REFERENCE, "buckets.md"))),
    }
    return {os.path.join(REFERENCE, f"{name}.md"): text for name, text in pages.items()}


def markdown_files():
    for at, directories, files in os.walk(ROOT):
        directories[:] = [d for d in directories if not d.startswith((".", "build"))]
        yield from (os.path.join(at, name) for name in files if name.endswith(".md"))


def anchor(heading):
    """The name under which a heading can be linked to."""
    plain = LINKED.sub(r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def anchors(page):
    return {anchor(found) for found in HEADING.findall(FENCED.sub("", read(page)))}


def dead_links():
    for path in markdown_files():
        for target, place in LINK.findall(read(path)):
            page = os.path.join(os.path.dirname(path), target) if target else path
            if "://" in target:
                continue
            if not os.path.exists(page):
                yield f"{os.path.relpath(path, ROOT)}: there is no {target}"
            elif place and page.endswith(".md") and place not in anchors(page):
                yield f"{os.path.relpath(path, ROOT)}: {target} has no heading '#{place}'"


def lost_pages():
    """Pages that sources and messages name, and that are not there."""
    for at, directories, files in os.walk(ROOT):
        directories[:] = [d for d in directories if not d.startswith((".", "build"))]
        for name in files:
            path = os.path.join(at, name)
            if name.endswith(SOURCES):
                yield from (f"{os.path.relpath(path, ROOT)}: there is no {page}"
                            for page in PAGE.findall(read(path))
                            if not os.path.exists(os.path.join(ROOT, page)))


def readable_keys():
    """Commands that open the file of a new key before the umask counts."""
    for path in markdown_files():
        for line in read(path).splitlines():
            if re.search(r"openssl rand.*> *[\w./]", line) and \
               not re.search(r"\(umask 077; .*> *[\w./]+\)", line):
                yield f"{os.path.relpath(path, ROOT)}: others can read the key: {line.strip()}"


def unknown_parameters(api):
    """What pages of docs/reference/ have clients ask, and no call takes."""
    known = set(re.findall(r"`([a-z_]+)`=", api))
    for page in ("http", "buckets", "jobs", "sort-spec"):
        for code in CODE.findall(read(os.path.join(REFERENCE, f"{page}.md"))):
            if "://" not in code:
                yield from (f"docs/reference/{page}.md: no call has the parameter of `{code}`"
                            for name in ASKED.findall(code) if name not in known)


def unknown_commands(reference):
    """What docs/guide/from-aistore.md has in place of commands of `ais`, and dfcctl does not have."""
    parts = re.split(r"^##+ ", reference, flags=re.M)
    flags = {part.split("\n", 1)[0]: set(re.findall(r"--[a-z-]+", part)) for part in parts}
    for code in CODE.findall(read(os.path.join(ROOT, "docs", "guide", "from-aistore.md"))):
        words = code.split()
        if words[:1] != ["dfcctl"] or len(words) < 2:
            continue
        name = " ".join(w for w in words[1:] if not w.startswith("-"))
        given = {w for w in words if w.startswith("-")}
        if name not in flags:
            yield f"docs/guide/from-aistore.md: there is no command `dfcctl {name}`"
        elif given - flags[name]:
            yield f"docs/guide/from-aistore.md: `dfcctl {name}` has no {' '.join(given - flags[name])}"


def changelog():
    """An entry of CHANGELOG.md is a line below Added, Changed or Fixed."""
    section = ""
    for number, line in enumerate(read(os.path.join(ROOT, "CHANGELOG.md")).splitlines(), 1):
        at = f"CHANGELOG.md:{number}:"
        if line.startswith("##"):
            section = line.lstrip("# ")
            if line.startswith("###") and section not in ("Added", "Changed", "Fixed"):
                yield f"{at} a part is Added, Changed or Fixed"
        elif line.startswith("- ") and section not in ("Added", "Changed", "Fixed"):
            yield f"{at} an entry is below Added, Changed or Fixed"
        elif line and not line.startswith("- ") and section in ("Added", "Changed", "Fixed"):
            yield f"{at} an entry has one line"
        if len(line) > 100:
            yield f"{at} {len(line)} columns, at most 100"


def main(args):
    pages = generated()
    if args == ["--write"]:
        for path, text in pages.items():
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        return 0
    wrong = [f"{os.path.relpath(path, ROOT)} is not what the programs say; tests/docs.py --write"
             for path, text in pages.items() if not os.path.exists(path) or read(path) != text]
    wrong += [*dead_links(), *lost_pages(), *readable_keys()]
    log = list(changelog())
    wrong += log[:5] + (["a rebase may have mixed two versions of CHANGELOG.md: take that of main, "
                         "and add your entry at the end of its list"] if len(log) > 5 else [])
    wrong += unknown_commands(pages[os.path.join(REFERENCE, "dfcctl.md")])
    wrong += unknown_parameters(pages[os.path.join(REFERENCE, "http-api.md")])
    print("\n".join(wrong) or "the documents are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
