#!/usr/bin/env python3
"""A virtual machine whose root file system is a dataset image: Linux boots from it, and reads every
name, size, mode, time, link and byte right, also while a target is killed.

DFC_TEST_KERNEL: a directory with boot/ and lib/modules/ of a kernel of Debian, in place of /.  Where
neither has one, Debian's package is downloaded and unpacked; nothing is installed."""

import atexit
import glob
import hashlib
import os
import random
import shutil
import stat
import subprocess
import tempfile

from lib import check, equal, main, skip, wait_for
from vdisc_nbd import needs_nbd, path_of, served

ROOTS = [os.environ.get("DFC_TEST_KERNEL", "/")]
PACKAGE = "linux-image-cloud-amd64"
BUSYBOX = "/bin/busybox"
# In the order in which they are loaded.
MODULES = ("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
           "virtio_blk", "cdrom", "isofs")
BOOT_SECONDS = 400  # software emulation: KVM within another machine is not reliable
FILES, LARGE = 300, 24 << 20

LOADER = """#!/bin/busybox sh
busybox mkdir -p /proc /root
busybox mount -t proc proc /proc
busybox mount -t devtmpfs dev /dev
for m in MODULES; do busybox insmod /$m.ko; done
busybox mount -t iso9660 -o ro /dev/vda /root || echo dfc: no mount
busybox mount -o move /dev /root/dev
busybox umount /proc
exec busybox switch_root /root /sbin/init
"""
# Of the image; `sh` and all programs are busybox.
INIT = """#!/bin/sh
mount -t proc proc /proc
echo "dfc: begins"
cd /data
find . | sort | cmp - /names && echo "dfc: names"
find . -type f -exec stat -c '%n %a %Y %s' {} \\; | sort | cmp - /stats && echo "dfc: stats"
sha256sum -c /sums > /dev/null && echo "dfc: bytes"
test "$(readlink link)" = ../data/d0 && test -f link/0 && echo "dfc: links"
echo "dfc: ends"
poweroff -f
"""


def kernel(modules=MODULES):
    """Its file, and where each of the modules is; None: there is none."""
    for root in ROOTS:
        for vmlinuz in sorted(glob.glob(os.path.join(root, "boot", "vmlinuz-*")), reverse=True):
            top = os.path.join(root, "lib", "modules", os.path.basename(vmlinuz)[len("vmlinuz-"):])
            found = {m: glob.glob(os.path.join(top, "**", m + ".ko"), recursive=True) for m in modules}
            if all(found.values()):
                return vmlinuz, [found[m][0] for m in modules]
    return None


def download(folder):
    """A kernel of Debian into the folder; False: there is no mirror."""
    depends = subprocess.run(["apt-cache", "depends", PACKAGE], capture_output=True, text=True,
                             check=False).stdout.split()
    names = [word for word in depends if word.startswith("linux-image-")][-1:]
    if not names or subprocess.run(["apt-get", "download", *names], cwd=folder, capture_output=True,
                                   check=False).returncode != 0:
        return False
    subprocess.run(["dpkg-deb", "-x", glob.glob(folder + "/*.deb")[0], folder], check=True)
    return True


def needs_machine(modules=MODULES):
    if shutil.which("qemu-system-x86_64") is None or shutil.which("cpio") is None:
        skip("there is no qemu-system-x86_64, or no cpio")
    if not os.path.exists(BUSYBOX):
        skip(f"there is no {BUSYBOX}: install busybox-static")
    if kernel(modules) is None:
        folder = tempfile.mkdtemp(prefix="dfc-test-kernel-")
        atexit.register(shutil.rmtree, folder)
        os.chmod(folder, 0o755)  # apt downloads as a user of its own
        if download(folder):
            ROOTS.append(folder)
    if kernel(modules) is None:
        skip(f"{ROOTS[0]} has no kernel with the modules {', '.join(modules)}, and {PACKAGE} cannot be "
             "downloaded: set DFC_TEST_KERNEL")


def write(path, data, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    os.chmod(path, mode)


def write_data(top, rng):
    for i in range(FILES):
        write(f"{top}/d{i % 9}/{i}", rng.randbytes(rng.choice([0, 1, 2047, 2048, 2049, 40000])),
              rng.choice([0o644, 0o600, 0o755, 0o4711]))
        os.utime(f"{top}/d{i % 9}/{i}", (1, rng.randrange(1, 2 ** 31)))
    write(f"{top}/{'n' * 253}", b"a long name")
    write(f"{top}/" + "/".join(f"level{i}" for i in range(20)) + "/deep", b"deep")
    write(f"{top}/large", rng.randbytes(LARGE))
    os.symlink("../data/d0", f"{top}/link")


def write_lists(root):
    """What the guest must find."""
    names, stats, sums = ["."], [], []
    for at, directories, files in os.walk(f"{root}/data"):
        for name in directories + files:
            path = os.path.join(at, name)
            shown = "./" + os.path.relpath(path, f"{root}/data")
            names.append(shown)
            if not stat.S_ISREG(os.lstat(path).st_mode):
                continue
            s = os.stat(path)
            stats.append(f"{shown} {stat.S_IMODE(s.st_mode):o} {int(s.st_mtime)} {s.st_size}")
            with open(path, "rb") as f:
                sums.append(f"{hashlib.sha256(f.read()).hexdigest()}  {shown}")
    for name, lines in (("names", names), ("stats", stats), ("sums", sums)):
        write(f"{root}/{name}", "".join(line + "\n" for line in sorted(lines)))


def write_root(c):
    root = path_of(c, "root")
    write(f"{root}/sbin/init", INIT, 0o755)
    shutil.copy(BUSYBOX, f"{root}/sbin/busybox")
    os.makedirs(f"{root}/bin")
    for name in ("sh", "mount", "find", "sort", "cmp", "stat", "sha256sum", "readlink", "test", "poweroff"):
        os.symlink("../sbin/busybox", f"{root}/bin/{name}")
    for name in ("dev", "proc"):
        os.makedirs(f"{root}/{name}")
    write_data(f"{root}/data", random.Random(11))
    write_lists(root)
    return root


def write_initramfs(c):
    """It loads the modules, and gives way to the image."""
    top = path_of(c, "initramfs")
    write(f"{top}/init", LOADER.replace("MODULES", " ".join(MODULES)), 0o755)
    os.makedirs(f"{top}/bin")
    os.makedirs(f"{top}/dev")
    shutil.copy(BUSYBOX, f"{top}/bin/busybox")
    for path in kernel()[1]:
        shutil.copy(path, top)
    pack(c, top)


def pack(c, top):
    """The file of an initramfs."""
    names = "\n".join(os.path.relpath(os.path.join(at, name), top)
                      for at, directories, files in os.walk(top) for name in directories + files)
    packed = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], input=names.encode(), cwd=top,
                            capture_output=True, check=True).stdout
    write(path_of(c, "initrd"), packed)
    return path_of(c, "initrd")


def burn(c, store):
    image = f"dfc://images/{store}.vdsc"
    done = c.dfcctl("vdisc", "burn", "--tree", path_of(c, "root"), "--store", store, "-o", image)
    equal(done.returncode, 0, done.stderr)
    return image


def boot(c, uri, begun=lambda: None):
    """What the machine has written."""
    out = path_of(c, "console")
    with open(out, "wb") as console:
        machine = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "tcg", "-m", "256", "-nodefaults", "-no-reboot",
             "-display", "none", "-serial", "stdio", "-kernel", kernel()[0],
             "-initrd", path_of(c, "initrd"), "-append", "console=ttyS0 panic=-1 quiet",
             "-drive", f"file={uri},format=raw,if=virtio,readonly=on"],
            stdin=subprocess.DEVNULL, stdout=console, stderr=console)

    def said():
        with open(out, "rb") as f:
            return f.read().decode(errors="replace")

    try:
        wait_for(lambda: "dfc: begins" in said() or machine.poll() is not None, "the boot", BOOT_SECONDS)
        begun()
        machine.wait(BOOT_SECONDS)
    finally:
        if machine.poll() is None:
            machine.kill()
            machine.wait()
    return said()


def reads_all_right(text):
    for what in ("begins", "names", "stats", "bytes", "links", "ends"):
        check(f"dfc: {what}" in text, f"the guest does not say '{what}': {text[-1500:]}")


def test_linux_boots_from_an_image(c):
    c.create("images", copies=2)
    write_root(c)
    write_initramfs(c)
    with served(c, burn(c, "unique")) as (uri, _):
        reads_all_right(boot(c, uri))


def test_a_target_is_killed_under_the_machine(c):
    victim = sorted(c.targets())[0]
    with served(c, burn(c, "pack"), "--buffer-size", "8MiB") as (uri, _):
        reads_all_right(boot(c, uri, lambda: c.kill(victim)))


if __name__ == "__main__":
    needs_nbd()
    needs_machine()
    main(targets=3)
