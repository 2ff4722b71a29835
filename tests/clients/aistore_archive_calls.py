"""What aistore_archives.py has AIStore's SDK do, in the SDK's own Python:
aistore_archive_calls.py URL SET"""

import bz2
import io
import sys
import tarfile
import zipfile

from aistore.sdk import Client, ListObjectFlag
from aistore.sdk.archive_config import ArchiveConfig, ArchiveMode
from aistore.sdk.errors import AISError
from aistore_checks import equal, raises

URL, SET = sys.argv[1:3]
MANY = 100000
NAMES = ["img/1.jpg", "img/1.cls", "img/2.jpg", "with space", "per%cent", "\u00fc\u20ac", "../up", "img/1.jpg"]


def tar_of(names, mode="w"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for i, name in enumerate(names):
            info = tarfile.TarInfo(name)
            data = content(name, i)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zip_of(names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for i, name in enumerate(names):
            archive.writestr(name, content(name, i))
    return out.getvalue()


def content(name, turn):
    return f"{turn} {name}".encode()


def last(names):
    """{name: bytes}: of members with one name the last is read."""
    return {name: content(name, i) for i, name in enumerate(names)}


def put(bucket, objects):
    for name, data in objects.items():
        bucket.object(name).get_writer().put_content(data)


def in_order(names):
    return sorted(set(names), key=str.encode)


def shown(archive, names):
    return [f"{archive}/{name}" for name in in_order(names)]


def names_of(entries):
    return [e.name for e in entries]


# --- lists ---------------------------------------------------------------------------------------

ARCHIVES = {"s.tar": tar_of(NAMES), "s.tgz": tar_of(NAMES, "w:gz"), "s.zip": zip_of(NAMES[:-1]),
            "none.tar": tar_of([]), "bytes.tar": b"no archive" * 100, "s.txt": b"text"}


def lists(c):
    b = c.bucket("sdk-archives").create()
    put(b, ARCHIVES)
    for key in ("s.tar", "s.tgz", "s.zip"):
        members = b.list_archive(key)
        equal(names_of(members), shown(key, NAMES), key)
        equal([e.flags for e in members], [1 << 6 | 1 << 7] * len(members), "flags")
        equal({e.name: e.size for e in members},
              {f"{key}/{n}": len(data) for n, data in last(NAMES[:-1] if key == "s.zip" else NAMES).items()},
              "sizes")
        equal(names_of(b.list_archive(key, include_archive_obj=True)), [key, *shown(key, NAMES)], key)
        equal(names_of(b.list_archive(key, page_size=2, props="name")), shown(key, NAMES), "in pages")
    equal(b.list_archive("none.tar"), [], "an empty archive")
    equal(b.list_archive("bytes.tar"), [], "no archive")
    equal(b.list_archive("s.txt"), [], "no archive by its name")
    everything = [n for key in in_order(ARCHIVES) for n in
                  [key, *(shown(key, NAMES) if key in ("s.tar", "s.tgz", "s.zip") else [])]]
    for size in (0, 1, 5):
        iterator = b.list_objects_iter(page_size=size, flags=[ListObjectFlag.ARCH_DIR])
        equal(names_of(iterator), everything, f"{size} a page")
    bare = b.list_objects(prefix="s.tar", flags=[ListObjectFlag.ARCH_DIR, ListObjectFlag.NAME_ONLY])
    equal([e.size for e in bare.entries], [0] * len(bare.entries), "names alone")
    b.delete()


def damaged(c):
    """A list that would lack members says which archive it is."""
    b = c.bucket("sdk-damaged").create()
    head = tarfile.TarInfo("zeros")
    head.size = 100 << 20
    put(b, {"cut.tgz": ARCHIVES["s.tgz"][:-20], "fine.tar": ARCHIVES["s.tar"],
            "bomb.tar.bz2": bz2.compress(head.tobuf() + bytes(head.size))})
    for key in ("cut.tgz", "bomb.tar.bz2"):
        assert key in raises(AISError, (422,), b.list_archive, key)
    equal(names_of(b.list_archive("fine.tar")), shown("fine.tar", NAMES), "the one beside them")
    b.delete()


def many(c):
    b = c.bucket("sdk-many").create()
    wanted = [f"dir-{i % 7}/{i:06}" for i in range(MANY)]
    put(b, {"large.tar": tar_of(wanted)})
    for size in (0, 9999):
        got = names_of(b.list_archive("large.tar", page_size=size))
        assert got == shown("large.tar", wanted), f"{len(got)} names"
    b.delete()


# --- members -------------------------------------------------------------------------------------


def read(bucket, key, **config):
    return bucket.object(key).get_reader(archive_config=ArchiveConfig(**config)).read_all()


def members(c):
    b = c.bucket("sdk-members").create()
    put(b, ARCHIVES)
    for key in ("s.tar", "s.tgz", "s.zip"):
        for name, data in last(NAMES[:-1] if key == "s.zip" else NAMES).items():
            equal(read(b, key, archpath=name), data, f"{key}: {name}")
        text = raises(AISError, (404,), read, b, key, archpath="none")
        assert "member_not_found" in text, text
    raises(AISError, (415,), read, b, "s.txt", archpath="none")
    raises(AISError, (404,), read, b, "nothing", archpath="none")
    reader = b.object("s.tar").get_reader(archive_config=ArchiveConfig(archpath="img/2.jpg"),
                                          byte_range="bytes=2-4")
    equal(reader.read_all(), b"img", "a range of a member")
    b.delete()


TEXTS = {ArchiveMode.PREFIX: "img/", ArchiveMode.SUFFIX: ".jpg", ArchiveMode.SUBSTR: "%",
         ArchiveMode.WDSKEY: "img/1", ArchiveMode.REGEXP: r"^\.\./|^.{2}$"}
WANTED = {
    ArchiveMode.PREFIX: lambda name: name.startswith("img/"),
    ArchiveMode.SUFFIX: lambda name: name.endswith(".jpg"),
    ArchiveMode.SUBSTR: lambda name: "%" in name,
    ArchiveMode.WDSKEY: lambda name: name.startswith("img/1."),
    ArchiveMode.REGEXP: lambda name: name.startswith("../") or len(name) == 2,
}


def untar(data):
    """[(name, bytes)] in the order of the tar."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [(m.name, tar.extractfile(m).read()) for m in tar.getmembers()]


def matching(c):
    """Several members come as a tar, in the order of the archive."""
    b = c.bucket("sdk-matching").create()
    put(b, ARCHIVES)
    for key in ("s.tar", "s.tgz", "s.zip"):
        names = NAMES[:-1] if key == "s.zip" else NAMES
        for mode, wanted in WANTED.items():
            got = untar(read(b, key, regex=TEXTS[mode], mode=mode))
            equal(got, [(n, content(n, i)) for i, n in enumerate(names)
                        if wanted(n) and n not in names[i + 1:]], f"{key}, {mode}")
        raises(AISError, (404,), read, b, key, regex="none", mode=ArchiveMode.PREFIX)
    text = raises(AISError, (400,), read, b, "s.tar", regex="a(b", mode=ArchiveMode.REGEXP)
    assert "byte 3" in text, text
    raises(AISError, (415,), read, b, "s.txt", regex="a", mode=ArchiveMode.PREFIX)
    b.delete()


# --- rights --------------------------------------------------------------------------------------


def prepare(c):
    put(c.bucket("sdk-shared").create(), {"s.tar": ARCHIVES["s.tar"]})


def lister(c):
    b = c.bucket("sdk-shared")
    equal(names_of(b.list_all_objects()), ["s.tar"], "the plain list")
    raises(AISError, (403,), b.list_archive, "s.tar")
    raises(AISError, (403,), read, b, "s.tar", archpath="with space")
    raises(AISError, (403,), read, b, "s.tar", regex="img", mode=ArchiveMode.PREFIX)


def reader(c):
    b = c.bucket("sdk-shared")
    equal(names_of(b.list_archive("s.tar")), shown("s.tar", NAMES), "members")
    equal(read(b, "s.tar", archpath="with space"), content("with space", 3), "a member")
    equal(untar(read(b, "s.tar", regex="with", mode=ArchiveMode.PREFIX)),
          [("with space", content("with space", 3))], "a member that matches")


def anonymous(c):
    b = c.bucket("sdk-shared")
    raises(AISError, (401, 403), b.list_archive, "s.tar")
    raises(AISError, (401, 403), read, b, "s.tar", archpath="with space")
    raises(AISError, (401, 403), read, b, "s.tar", regex="img", mode=ArchiveMode.PREFIX)


SETS = {"all": (lists, damaged, many, members, matching), "prepare": (prepare,), "lister": (lister,),
        "reader": (reader,), "anonymous": (anonymous,)}

if __name__ == "__main__":
    for step in SETS[SET]:
        step(Client(URL, retry_config=None))
