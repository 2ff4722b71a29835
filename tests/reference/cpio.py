"""cpio archives of the form newc, plainly: each header has thirteen numbers of eight hexadecimal
digits, and everything is padded to four bytes."""

END = b"TRAILER!!!"
HEADER = 110


def padded(data):
    return data.ljust(-(-len(data) // 4) * 4, b"\0")


def member(number, path, contents, mode, mtime):
    fields = (number, mode, 0, 0, 1, mtime, len(contents), 0, 0, 0, 0, len(path) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % f for f in fields)
    return padded(head + path + b"\0") + padded(contents)


def archive(entries):
    """Of [(path, contents, mode, mtime)]."""
    out = b"".join(member(i + 1, *entry) for i, entry in enumerate(entries))
    out += member(0, END, b"", 0, 0)
    return out.ljust(-(-len(out) // 512) * 512, b"\0")


def take(data, at, size):
    """Those bytes and the padding behind them."""
    end = at + -(-size // 4) * 4
    if end > len(data):
        raise ValueError("cut short")
    return data[at:at + size], end


def members(data):
    """Yields (path, contents, mode, mtime); ValueError where the archive is cut short."""
    at = 0
    while True:
        if data[at:at + 6] != b"070701" or len(data) < at + HEADER:
            raise ValueError("not a header of newc")
        fields = [int(data[i:i + 8], 16) for i in range(at + 6, at + HEADER, 8)]
        head, at = take(data, at, HEADER + fields[11])
        path = head[HEADER:-1]
        if path == END:
            return
        contents, at = take(data, at, fields[6])
        yield path, contents, fields[1], fields[5]
