#!/usr/bin/env python3
"""What no file of the web console may have: text of the cluster must never become markup or script,
and a page needs nothing from elsewhere.

    lint.py

Also: a file of console/ that the table of its meson.build does not name, and lines that are too
long."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
CONSOLE = os.path.join(ROOT, "console")
LINE = 130
REFUSED = {
    r"\b(inner|outer)HTML\b": "text becomes a text node: el()",
    r"\binsertAdjacentHTML\b|\bcreateContextualFragment\b|\bDOMParser\b|\bsetHTML": "the same",
    r"\bdocument\.write": "the same",
    r"\beval\s*\(|\bnew\s+Function\b|\bFunction\s*\(": "no text becomes a script",
    r"\bset(Timeout|Interval)\s*\(\s*[\"'`]": "the same",
    r"[\"'\s]on[a-z]+\s*=\s*[\"']": "no inline handler: el(…, {on: {…}})",
    r"javascript:": "no link is a script",
    r"\bstyle\s*=\s*[\"']": "no inline style: a class of style.css",
    r"\bdocument\.cookie\b": "the console has no cookies",
    r"\bpostMessage\b|\bimportScripts\b": "no other page takes part",
    r"(?:src|href|from|import|url)\W{1,3}https?://": "nothing comes from elsewhere",
}


def sources():
    for directory, _, names in os.walk(CONSOLE):
        for name in sorted(names):
            if name.endswith((".js", ".html", ".css", ".svg")):
                yield os.path.relpath(os.path.join(directory, name), CONSOLE)


def check(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, instead in REFUSED.items():
            if re.search(pattern, line):
                yield f"console/{path}:{number}: {line.strip()[:80]}: {instead}"
        if len(line) > LINE:
            yield f"console/{path}:{number}: {len(line)} columns, at most {LINE}: break the line"


def check_itself():
    """Each rule finds what it is for."""
    bad = ['a.innerHTML = x', 'a.insertAdjacentHTML("x", y)', 'document.write(x)', 'eval(x)', 'new Function("x")',
           'setTimeout("x", 1)', '<a onclick="x">', '"javascript:x"', '<p style="x">', 'document.cookie = x',
           'a.postMessage(x)', 'import "https://x/y.js"']
    return [f"no rule refuses: {line}" for line in bad if not list(check("", line))]


def main():
    with open(os.path.join(CONSOLE, "meson.build"), encoding="utf-8") as f:
        table = f.read()
    wrong = check_itself()
    count = 0
    for path in sources():
        count += 1
        with open(os.path.join(CONSOLE, path), encoding="utf-8") as f:
            wrong += check(path, f.read())
        if f"'{path}'" not in table:
            wrong.append(f"console/{path}: console/meson.build does not name it")
    print("\n".join(wrong + [f"{count} files, {len(wrong)} objections"]))
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
