#!/usr/bin/env python3
"""README and docs/guide/ are written for a reader in a hurry: short sentences, the words of the
glossary.  So are messages, log lines and help texts: the string literals of C.

    words.py [-v] [FILE…]      these pages, else all but those of NOT_JUDGED, and the sources;
                               -v: the figures of each page

A sentence has at most LONGEST words, and those of a page AVERAGE on average.  A sentence ends with
a full stop, a question mark, an exclamation mark, or its paragraph, list item or cell of a table;
cells do not count for the average.  A piece of `code` and a link are as many words as a reader
sees.  Code blocks are not looked at.
INSTEAD has words that the glossary has others for, SAID those that messages avoid besides."""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
AVERAGE, LONGEST = 20, 35
INSTEAD = {
    "acting owner": "leader",
    "shall": "must, or may",
    "not to be": "cannot, or must not",
    "stranger": "client",
    "that one": "the noun",
    "the other one": "the noun",
    "settle": "the verb for what is done",
}

SAID = {
    "nobody": "no client, owner, target",
    "somebody": "a client, owner, target",
    "whoever": "every client, caller",
    "lies?": "is",
    "stands?": "is, matches, serves",
    "acts? for": "leads",
    "heard": "reached, received",
}

# Generated from tables.
NOT_JUDGED = re.compile(r"docs/reference/(dfcctl|http-api|parameters|metrics|errors)\.md|CHANGELOG\.md")

FENCE = re.compile(r"^ *```")
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) +")
COMMENT = re.compile(r"<!--.*?-->", re.S)
LINK = re.compile(r"!?\[([^]]*)\]\([^)]*\)")
END = re.compile(r"(?<=[.!?])[)\"*_]*(?:\s+|$)")
ROW = re.compile(r"(?<!\\)\|")


def units(text):
    """(number of the line, text, is it a cell) of each paragraph, list item and cell."""
    fenced, paragraph, first = False, [], 0
    lines = COMMENT.sub(lambda m: "\n" * m[0].count("\n"), text).splitlines()
    for number, line in enumerate([*lines, ""], 1):
        fence = FENCE.match(line)
        apart = fence or fenced or not line.strip() or line.startswith(
            ("#", "|", "    ")) or ITEM.match(line)
        if paragraph and apart:
            yield first, " ".join(paragraph), False
            paragraph = []
        if fence:
            fenced = not fenced
        elif fenced or line.startswith(("    ", "#")) and not ITEM.match(line):
            continue
        elif line.startswith("|"):
            yield from ((number, cell.strip(), True) for cell in ROW.split(line)
                        if re.search(r"\w", cell))
        elif line.strip():
            if not paragraph:
                first = number
            paragraph.append(ITEM.sub("", line).strip())


def words_of(sentence):
    return len([w for w in sentence.split() if re.search(r"\w", w)])


def sentences(text):
    """(number of the line, sentence, is it of a cell)"""
    for number, unit, cell in units(text):
        for sentence in END.split(LINK.sub(r"\1", unit)):
            if words_of(sentence):
                yield number, sentence, cell


def findings(text):
    """(sentences about what is wrong, words of a sentence on average)"""
    wrong, lengths = [], []
    for number, sentence, cell in sentences(text):
        count = words_of(sentence)
        if not cell:
            lengths.append(count)
        if count > LONGEST:
            wrong.append(f"{number}: {count} words: {sentence}")
        prose = re.sub(r"`[^`]*`", "", sentence).lower()
        wrong += [f"{number}: '{word}': write {better}" for word, better in INSTEAD.items()
                  if re.search(rf"\b{word}\b", prose)]
    average = sum(lengths) / len(lengths) if lengths else 0
    if average > AVERAGE:
        wrong.append(f"1: {average:.1f} words a sentence, {AVERAGE} at most")
    return wrong, average


# --- messages ------------------------------------------------------------------------------------

TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])+'|"((?:\\.|[^"\\\n])*)"|[^\s]""", re.S)
SOURCES = ("*.c", "*.h", "*.def")
NOT_SAID = re.compile(r"(_test|_fuzz)\.c$|(^|/)(testing|tests)/")


def literals(source):
    """(number of the line, text) of string literals; those side by side are one."""
    parts, first = [], 0
    for token in TOKEN.finditer(source):
        if token[1] is not None:
            if not parts:
                first = source.count("\n", 0, token.start()) + 1
            parts.append(token[1])
        elif parts and not token[0].startswith("/*"):
            yield first, "".join(parts)
            parts = []


def said(source):
    """Sentences about what is wrong.  A literal without a space is a name, and no message."""
    return [f"{number}: '{word}' in \"{text[:60]}\": write {better}"
            for number, text in literals(source) if " " in text
            for word, better in {**INSTEAD, **SAID}.items()
            if re.search(rf"\b{word}\b", text.replace("\\n", " "), re.I)]


def sources():
    for pattern in SOURCES:
        for path in glob.glob(os.path.join(ROOT, "**", pattern), recursive=True):
            name = os.path.relpath(path, ROOT)
            if not name.startswith("build") and not NOT_SAID.search(name):
                yield path


# --- pages ---------------------------------------------------------------------------------------

def pages():
    for path in glob.glob(os.path.join(ROOT, "**", "*.md"), recursive=True):
        name = os.path.relpath(path, ROOT)
        if not name.startswith("build") and not NOT_JUDGED.match(name):
            yield path


def main(args):
    given = [a for a in args if a != "-v"]
    paths = given or sorted(pages())
    failed = False
    for path in paths:
        with open(path, encoding="utf-8") as f:
            wrong, average = findings(f.read())
        name = os.path.relpath(path, ROOT)
        for line in wrong:
            print(f"{name}:{line}")
        if "-v" in args:
            print(f"{name}: {average:.1f} words a sentence")
        failed = failed or bool(wrong)
    for path in [] if given else sorted(sources()):
        with open(path, encoding="utf-8") as f:
            wrong = said(f.read())
        for line in wrong:
            print(f"{os.path.relpath(path, ROOT)}:{line}")
        failed = failed or bool(wrong)
    print("some sentences are too long, or have other words"
          if failed else "the sentences are short enough")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
