"""PUT ?members=tar of the mock cluster: members of a tar into a plain tar or a zip."""

import io
import tarfile
import zipfile

from mock_objects import Failure, Object, checksum

RECORD = 20 * 512


def names_of(data):
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as t:
        return [m.name for m in t.getmembers()]


def end_of(data):
    """The first byte behind the last member of a tar, and its names."""
    with tarfile.open(fileobj=io.BytesIO(data + bytes(RECORD)), mode="r:") as t:
        names, end = [m.name for m in t.getmembers()], t.offset
    if any(data[end:]):
        raise tarfile.ReadError("something follows the last member")
    return min(end, len(data)), names


def refuse_names(new, old):
    for name in new:
        if name in old:
            raise Failure(409, "member_exists", "the archive has a member '%s'" % name)


def into_tar(old, body, overwrite):
    try:
        end, names = end_of(old)
    except tarfile.ReadError as e:
        raise Failure(415, "not_an_archive",
                      "neither a plain tar nor a zip: only these can be appended to") from e
    refuse_names(names_of(body), [] if overwrite else names)
    return old[:end] + body


def into_zip(old, body, overwrite):
    out = io.BytesIO(old)
    with tarfile.open(fileobj=io.BytesIO(body), mode="r:") as t, zipfile.ZipFile(out, "a") as z:
        refuse_names(t.getnames(), [] if overwrite else z.namelist())
        for m in t.getmembers():
            z.writestr(m.name, t.extractfile(m).read())
    return out.getvalue()


def appended(o, query, headers, body):
    """The next version of object `o`."""
    sent = headers.get("Dfc-Checksum-Value")
    if sent and headers["Dfc-Checksum-Type"] == checksum(body)["type"] \
            and sent != checksum(body)["value"]:
        raise Failure(422, "checksum_mismatch", "the bytes do not have the checksum")
    into = into_zip if o.data.startswith(b"PK") else into_tar
    data = into(o.data, body, query.get("overwrite") == "true")
    return Object(data, o.content_type, o.meta)
