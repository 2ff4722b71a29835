#!/usr/bin/env python3
"""What the documents say about the programs is what the programs say.

    docs.py [--write]      compares (or writes) docs/API.md, docs/dfcctl.md, and the tables of
                           parameters in docs/operations.md; looks for dead links, and
                           for parameters in docs/http.md that no call has
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BUILD = os.environ.get("DFC_BUILD") or os.path.join(ROOT, "build")
DOCS = os.path.join(ROOT, "docs")
CODE = re.compile(r"`([^`]*)`")
ASKED = re.compile(r"[?&]([A-Za-z_-]+)=")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")

API = """# API

<!-- Written by tests/docs.py from the route tables of the programs; change those. -->

Every call of this release. [http.md](http.md) says how they hang together; errors that any call can give (`invalid_argument`,
`overloaded`, …) are not repeated for each. What a call's query does not name is refused.

## Proxies

{proxy}
## Targets

{target}"""


def output_of(program, *arguments):
    done = subprocess.run([os.path.join(BUILD, program), *arguments], capture_output=True,
                          text=True, check=True)
    return done.stdout.strip() + "\n"


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def with_parameters(text):
    """docs/operations.md with the tables as the programs print them."""
    for program in ("dfc-proxyd", "dfc-targetd"):
        part = re.compile(rf"(<!-- {program} -->\n).*?(<!-- end -->\n)", re.S)
        if not part.search(text):
            sys.exit(f"docs/operations.md: no place for the parameters of {program}")
        table = output_of(program, "--params-markdown")
        text = part.sub(lambda m, t=table: m.group(1) + t + m.group(2), text, count=1)
    return text


def generated():
    """{path: what it must hold}"""
    operations = os.path.join(DOCS, "operations.md")
    return {
        operations: with_parameters(read(operations)),
        os.path.join(DOCS, "dfcctl.md"): output_of("dfcctl", "help", "--markdown"),
        os.path.join(DOCS, "API.md"): API.format(proxy=output_of("dfc-proxyd", "--api-markdown"),
                                                 target=output_of("dfc-targetd", "--api-markdown")),
    }


def markdown_files():
    for at, directories, files in os.walk(ROOT):
        directories[:] = [d for d in directories if not d.startswith((".", "build"))]
        yield from (os.path.join(at, name) for name in files if name.endswith(".md"))


def dead_links():
    for path in markdown_files():
        for target in LINK.findall(read(path)):
            if "://" not in target and not os.path.exists(
                    os.path.join(os.path.dirname(path), target)):
                yield f"{os.path.relpath(path, ROOT)}: there is no {target}"


def unknown_parameters(api):
    """What docs/http.md has clients ask, and no call takes."""
    known = set(re.findall(r"`([a-z_]+)`=", api))
    for code in CODE.findall(read(os.path.join(DOCS, "http.md"))):
        if "://" not in code:
            yield from (f"docs/http.md: no call has the parameter of `{code}`"
                        for name in ASKED.findall(code) if name not in known)


def main(args):
    pages = generated()
    if args == ["--write"]:
        for path, text in pages.items():
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        return 0
    wrong = [f"{os.path.relpath(path, ROOT)} is not what the programs say; tests/docs.py --write"
             for path, text in pages.items() if not os.path.exists(path) or read(path) != text]
    wrong += dead_links()
    wrong += unknown_parameters(pages[os.path.join(DOCS, "API.md")])
    print("\n".join(wrong) or "the documents are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
