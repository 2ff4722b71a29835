"""The external key map of a sort, for sortref.py."""

import json
import os
import re

from formats import SortError
from sortref_names import formats_of, output_extension, record_key, template_names


class KeyMap:
    """Which format of names each record goes to."""

    def __init__(self, spec, text):
        self.spec = spec
        self.formats = []   # as they first appear
        self.exact = {}     # name: number of a format
        self.patterns = []  # (compiled, number)
        entries = json_entries if text.lstrip(b" \t\r\n").startswith(b"{") else line_entries
        for entry in entries(text, (spec.get("ekm_file_sep") or "\t").encode()):
            if not (entry and self.add(*entry)) and \
                    spec.get("ekm_malformed_line", "abort") == "abort":
                raise SortError("invalid_spec", f"external key map: {entry}")

    def add(self, key, text):
        """False where that is malformed."""
        number = self.format_number(text) if key else None
        kind = self.spec.get("ekm_keys") or "auto"
        if number is None:
            return False
        if kind == "regex" or kind == "auto" and any(c in key for c in b"\\^$*+?()[]{}|"):
            return self.add_pattern(key, number)
        if self.spec.get("key_rule", "first_dot") == "first_dot":
            key = record_key(key, "first_dot")
        return self.exact.setdefault(key, number) == number

    def add_pattern(self, key, number):
        # '$' is the very end here, not before a last line feed.
        text = re.sub(rb"\\.|\$", lambda m: rb"\Z" if m[0] == b"$" else m[0], key, flags=re.S)
        try:
            self.patterns.append((re.compile(text), number))
        except re.error:
            return False
        return True

    def format_number(self, text):
        text = text.decode()
        extension = output_extension(self.spec)
        known = formats_of(text)
        if template_names(text) is None or known not in (None, extension):
            return None
        text = text if known else text + extension
        if text not in self.formats:
            self.formats.append(text)
        return self.formats.index(text)

    def find(self, name):
        """None where there is none."""
        if name in self.exact:
            return self.exact[name]
        found = {number for pattern, number in self.patterns if pattern.search(name)}
        if len(found) > 1:
            raise SortError("invalid_spec", f"external key map: {name} goes to several formats")
        return found.pop() if found else None


def line_entries(text, separator):
    """(key, format) of each line, or None."""
    for line in text.split(b"\n"):
        line = line.removesuffix(b"\r")
        if line.strip(b" \t\r"):
            parts = line.split(separator)
            yield parts if len(parts) == 2 else None


def json_entries(text, _):
    try:
        doc = json.loads(text, object_pairs_hook=list)
    except ValueError as e:
        raise SortError("invalid_spec", f"external key map: {e}") from e
    for form, keys in doc:
        for key in keys:
            yield key.encode(), form.encode()


def read_key_map(spec, directory):
    """None where the request has none.  It is a file beside the shards."""
    if not spec.get("ekm_file"):
        return None
    name = spec["ekm_file"].split("://")[1].partition("/")[2]
    with open(os.path.join(directory, name), "rb") as f:
        return KeyMap(spec, f.read())
