#!/usr/bin/env python3
"""The files of the web console as a table of C (console/console.h).

    embed.py OUT.c NAME=FILE…

Each file is kept as it is and compressed by gzip.  The same files give the same table."""

import gzip
import hashlib
import sys

TYPES = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
         "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
COLUMNS = 18  # bytes a line


def array(name, data):
    lines = [", ".join(str(byte) for byte in data[at:at + COLUMNS])
             for at in range(0, len(data), COLUMNS)]
    return f"static const unsigned char {name}[] = {{\n    " + ",\n    ".join(lines) + ",\n};\n"


def main(args):
    out, *files = args
    text = ['/* Written by console/embed.py. */\n#include "console/console.h"\n\n']
    rows = []
    for number, pair in enumerate(files):
        name, path = pair.split("=", 1)
        with open(path, "rb") as f:
            data = f.read()
        if not data:
            sys.exit(f"embed.py: {path} is empty")
        packed = gzip.compress(data, 9, mtime=0)
        tag = hashlib.sha256(data).hexdigest()[:32]
        text += [array(f"plain_{number}", data), array(f"packed_{number}", packed)]
        rows.append(f'    {{"{name}", "{TYPES[name.rsplit(".", 1)[1]]}", "W/\\"{tag}\\"", '
                    f"plain_{number}, {len(data)}, packed_{number}, {len(packed)}}},\n")
    text += ["\nconst struct console_file console_files[] = {\n", *rows,
             "    {NULL, NULL, NULL, NULL, 0, NULL, 0},\n};\n"]
    with open(out, "w", encoding="ascii") as f:
        f.write("".join(text))


if __name__ == "__main__":
    main(sys.argv[1:])
