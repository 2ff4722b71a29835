"""Names of shards and records, for sortref.py: templates, extensions, keys."""

import itertools
import re

import formats


def bash_names(text):
    """'s-{0..100..2}-{a}.tar': ranges count like an odometer."""
    parts = re.split(r"(\{\d+\.\.\d+(?:\.\.\d+)?\})", text)
    choices = []
    for part in parts:
        m = re.fullmatch(r"\{(\d+)\.\.(\d+)(?:\.\.(\d+))?\}", part)
        if not m:
            choices.append([part])
            continue
        width = min(len(m[1]), len(m[2]))
        step = int(m[3] or 1)
        choices.append([str(i).zfill(width) for i in range(int(m[1]), int(m[2]) + 1, step)])
    return map("".join, itertools.product(*choices))


def at_names(text):
    """'s-@0999.tar': from 0 to the number."""
    choices = [[part] if i % 2 == 0
               else [str(n).zfill(len(part)) for n in range(int(part) + 1)]
               for i, part in enumerate(re.split(r"@(\d+)", text))]
    return map("".join, itertools.product(*choices))


def fmt_names(text):
    """'s-%06d.tar': without an end."""
    before, width, after = re.fullmatch(r"(.*?)%(0\d+)?d(.*)", text, re.S).groups()
    return (before + str(i).zfill(int(width or 0)) + after for i in itertools.count())


def template_names(text):
    """An iterator over a template's names; None for a prefix."""
    if "{" in text:
        return bash_names(text)
    if "@" in text:
        return at_names(text)
    if "%" in text:
        return fmt_names(text)
    return None


def with_extension(names, extension):
    return (n if n.endswith(extension) else n + extension for n in names)


def record_key(path, key_rule):
    directory, slash, base = path.rpartition(b"/")
    parts = base.split(b".", 1) if key_rule == "first_dot" else base.rsplit(b".", 1)
    return directory + slash + parts[0]


def output_extension(spec):
    return spec.get("output_extension") or spec.get("input_extension") or ".tar"


def formats_of(name):
    return max((e for e in formats.EXTENSIONS if name.endswith(e)), key=len, default=None)
