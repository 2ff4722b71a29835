#!/usr/bin/env python3
"""A dataset image as a disk of the kernel (TCMU), in a virtual machine that reaches the cluster: every
byte is right, no read fails and none waits for long while the server is killed again and again, another
supervisor takes the disk over, and nothing stays behind.

DFC_TEST_KERNEL: as of vdisc_qemu.py.  DFC_KILLS: how often the server is killed.  DFC_SHOW: what the
machine says is printed."""

import os
import random
import re
import shutil
import subprocess

import vdisc_qemu
from lib import BUILD, check, equal, main, skip, wait_for
from vdisc_nbd import path_of
from vdisc_qemu import BUSYBOX, write, write_data, write_lists

KILLS = int(os.environ.get("DFC_KILLS", "8"))
READERS = 4
PAUSE_SECONDS = 2  # of the disk, while its server is replaced
SILENT_SECONDS = 45  # without a server: the kernel's own timeouts are 30 s
SECONDS = 1100  # software emulation
MODULES = ("virtio_pci", "virtio_net", "configfs", "target_core_user", "tcm_loop", "sd_mod", "isofs")
# Of the modules, with those that they need; busybox is the shell and every program but dfc's.
BEGIN = """#!/bin/busybox sh
busybox mkdir -p /proc /sys /tmp /mnt /other /run
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs dev /dev
busybox --install -s /bin
export PATH=/bin DFC_ENDPOINT=ENDPOINT HOME=/tmp
say() { echo "dfc: $*"; }
load() { for m in $(cat /modules/needed.$1); do insmod /modules/$m.ko || say "module $m is not loaded"; done; }

# Addresses of the cluster are the host's loopback: without one here, QEMU's router has them.
load virtio_pci
load virtio_net
echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet
connect() {
    ifconfig eth0 10.0.2.15 netmask 255.255.255.0 up
    ip route add default via 10.0.2.2
}
connect
supervisor() { cut -d' ' -f1 /sys/kernel/config/target/core/user_*/dfc-*/alias; }
server() { tr -d ' ' < /proc/$1/task/$1/children; }
"""
INIT = BEGIN + """
tcmu_at() { at=$1; shift; dfcctl vdisc mount IMAGE $at --mode tcmu --buffer-size 8MiB --log-file /tmp/log "$@"; }
tcmu() { tcmu_at /mnt "$@"; }

# What is missing is named.
for m in configfs target_core_user tcm_loop; do
    tcmu > /tmp/said 2>&1 && say "mounted without $m"
    grep -q "modprobe $m" /tmp/said && say "without $m: named" || cat /tmp/said
    load $m
done
tcmu > /tmp/said 2>&1
grep -q "mount -t configfs" /tmp/said && say "without a mount of configfs: named" || cat /tmp/said
mount -t configfs none /sys/kernel/config
load sd_mod
load isofs

now() { cut -d' ' -f1 /proc/uptime; }
# Reads that the disk has replied to: there is no other while it has no server.
replies() { read -r replied rest < /sys/block/sda/stat; }
# The disk itself, past the page cache.
probe() { dd if=/dev/sda of=/dev/null bs=4096 count=1 skip=$((RANDOM % 4096)) iflag=direct 2> /dev/null; }
nothing_left() {
    ls /sys/kernel/config/target/core | grep -q user && return 1
    test ! -e /sys/kernel/config/target/loopback && test ! -e /dev/uio0 && ! ls /dev/sd* 2> /dev/null &&
        ! grep -q iso9660 /proc/mounts && ! ps | grep -v grep | grep -q dfc-mount
}

tcmu --restarts 100 && say mounted
grep " /mnt iso9660 ro" /proc/mounts > /dev/null && say "mounted read-only"
cat /sys/block/sda/ro /sys/block/sda/size /sys/block/sda/device/timeout | tr '\\n' ' ' | sed 's/^/dfc: disk /'
echo
tcmu > /tmp/said 2>&1
grep -q "is mounted already" /tmp/said && say "mounted once" || cat /tmp/said
cd /mnt
find . | sort | cmp - /names && say names
find . -type f -exec stat -c '%n %a %Y %s' {} \\; | sort | cmp - /stats && say stats
sha256sum -c /sums > /tmp/said 2>&1 && say bytes || tail -3 /tmp/said
dd if=/dev/zero of=/dev/sda bs=4096 count=1 2> /dev/null && say "written" || say "not writable"

# Kills under load.
for i in READERS; do
    while test ! -e /tmp/stop; do
        sha256sum -c /sums > /tmp/reader.$i 2>&1 || { say "reader $i failed"; grep -v OK /tmp/reader.$i; }
        echo >> /tmp/rounds
    done &
done
while test ! -e /tmp/stop; do echo 3 > /proc/sys/vm/drop_caches; usleep 300000; done &
sup=$(supervisor)
for k in KILLS; do
    sleep 2
    old=$(server $sup)
    began=$(now)
    kill -9 $old
    replies
    last=$replied
    while test $replied = $last; do usleep 10000; replies; done
    say "pause $began $(now)"
    probe || say "probe failed"
    test "$(server $sup)" != "$old" || say "not killed"
done

# No server for longer than timeouts of SCSI and of target_core_user are by themselves.
kill -STOP $(server $sup)
sleep SILENT
kill -CONT $(server $sup)
sleep 2
touch /tmp/stop
wait $(jobs -p)
say "rounds $(wc -l < /tmp/rounds)"
echo 3 > /proc/sys/vm/drop_caches
sha256sum -c /sums > /tmp/said 2>&1 && say "bytes after kills" || tail -3 /tmp/said

# In use: not unmounted, and it goes on.
dfcctl vdisc umount /mnt > /tmp/said 2>&1
grep -q "is in use" /tmp/said && say "in use" || cat /tmp/said

# Both processes are killed while there are reads: another mount takes over.
echo 3 > /proc/sys/vm/drop_caches
sha256sum -c /sums > /tmp/reader 2>&1 &
reader=$!
kill -9 $sup $(server $sup)
tcmu && say "taken over"
wait $reader && say "bytes after the take-over" || tail -3 /tmp/reader
cd /
dfcctl vdisc umount /mnt && say unmounted
nothing_left && say "nothing is left"

# umount removes what dead processes have left; plain umount, and a signal, end a mount, too.
tcmu && sup=$(supervisor) && kill -9 $sup $(server $sup)
dfcctl vdisc umount /mnt && nothing_left && say "a dead one is unmounted"
tcmu && umount /mnt && sleep 4
nothing_left && say "umount is enough"
tcmu && kill $(supervisor) && sleep 4
nothing_left && say "a signal is enough"

# Two mounts at once: one of them has the directory, and keeps it.
all_right() {
    echo 3 > /proc/sys/vm/drop_caches
    (cd /mnt; sha256sum -c /sums > /tmp/said 2>&1) || { tail -3 /tmp/said; false; }
}
tcmu > /tmp/said.1 2>&1 & first=$!
tcmu > /tmp/said.2 2>&1 & second=$!
won=0
wait $first && won=$((won + 1))
wait $second && won=$((won + 1))
cat /tmp/said.1 /tmp/said.2 | grep -q "already" && test $won = 1 && all_right && say "one of two"

# Its supervisor alone has died: neither a mount nor a stranger's umount takes the disk from the server.
kill -9 $(supervisor)
tcmu > /tmp/said 2>&1 && say "mounted beside a server"
grep -q "another process serves" /tmp/said && say "a server without a supervisor: named" || cat /tmp/said
unshare -m sh -c "umount /mnt; dfcctl vdisc umount /mnt" > /tmp/said 2>&1 && say "removed under a server"
all_right && say "bytes of a server without a supervisor"
dfcctl vdisc umount /mnt && nothing_left && say "a server without a supervisor is unmounted"

# What is mounted at the directory later is not ours.
tcmu && tcmu_at /other && other=$(grep " /other " /proc/mounts | cut -d' ' -f1)
umount /mnt && mount -t iso9660 -o ro $other /mnt
sleep 4
grep -q "^$other /mnt " /proc/mounts && say "another disk stays"
umount /mnt
dfcctl vdisc umount /other && nothing_left && say "two directories"

tcmu && echo 1 > /sys/block/sda/device/delete
umount /mnt
sleep 4
nothing_left && say "a disk that was taken away"

# All are killed while the kernel reads the disk for the mount: nothing of them keeps the ring.
dmesg | grep -iE "error|broken|timed out|abort|reset|BUG|WARN|hung" | sed 's/^/kernel: /'
say "reads will fail"
for i in 0 1 2 3 4; do # the mount may be faster
    tcmu > /tmp/said 2>&1 &
    while test ! -e /sys/kernel/config/target/core/user_3073; do usleep 1000; done
    ifconfig eth0 down
    sleep 1
    waits=$(ps -o stat,comm | grep -c "^D.*dfc-mount")
    killall -9 dfc-mount
    wait
    connect
    left=something
    dfcctl vdisc umount /mnt && nothing_left && left=nothing
    test $left = nothing && test $waits = 0 || break
done
test $waits != 0 && say "the mount waits for a read"
test $left = nothing && say "nothing is left of a mount that was killed"
cat /tmp/log
say ends
poweroff -f
"""
SAID = ["without configfs: named", "without target_core_user: named", "without tcm_loop: named",
        "without a mount of configfs: named", "mounted", "mounted read-only", "mounted once", "names",
        "stats", "bytes", "not writable", "bytes after kills", "in use", "taken over",
        "bytes after the take-over", "unmounted", "nothing is left", "a dead one is unmounted",
        "umount is enough", "a signal is enough", "one of two",
        "a server without a supervisor: named", "bytes of a server without a supervisor",
        "a server without a supervisor is unmounted", "another disk stays", "two directories",
        "a disk that was taken away", "the mount waits for a read",
        "nothing is left of a mount that was killed", "ends"]


def depends(path):
    """What a module names as needed: modinfo(8) may be missing."""
    with open(path, "rb") as f:
        found = re.search(rb"\0depends=([^\0]*)\0", f.read())
    return [name for name in found.group(1).decode().split(",") if name] if found else []


def load_order(places, name, into):
    for other in depends(places[name]):
        load_order(places, other, into)
    if name not in into:
        into.append(name)


def places_of_modules(modules=MODULES):
    """The kernel, and the file of each of its modules; None: there is none that has these."""
    found = vdisc_qemu.kernel(modules)
    if found is None:
        return None
    top = found[1][0].split("/kernel/")[0]
    return found[0], {f[:-3].replace("-", "_"): os.path.join(at, f)
                      for at, _, files in os.walk(top) for f in files if f.endswith(".ko")}


def needs(modules=MODULES):
    if not os.path.exists(os.path.join(BUILD, "dfc-mount")):
        skip("the build has no dfc-mount: libfuse3 was missing")
    vdisc_qemu.needs_machine(modules)


def libraries(program):
    """The shared libraries of a program, and its loader."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(/\S+) \(0x", said))


def write_modules(top, modules):
    _, places = places_of_modules(modules)
    order = {}
    loaded = []
    for name in modules:
        before = len(loaded)
        load_order(places, name, loaded)
        order[name] = loaded[before:]
    for name in loaded:
        os.makedirs(f"{top}/modules", exist_ok=True)
        shutil.copy(places[name], f"{top}/modules/{name}.ko")
    for name, needed in order.items():
        write(f"{top}/modules/needed.{name}", " ".join(needed))


def fill_machine(c, init, texts, programs=(), modules=MODULES):
    """The folder of an initramfs with dfc's programs and these; words of `init` are replaced by `texts`."""
    top = path_of(c, "machine")
    write_modules(top, modules)
    for name, text in {"ENDPOINT": c.endpoint, **texts}.items():
        init = re.sub(rf"\b{name}\b", text, init)
    write(f"{top}/init", init, 0o755)
    os.makedirs(f"{top}/bin")
    os.makedirs(f"{top}/dev")
    shutil.copy(BUSYBOX, f"{top}/bin/busybox")
    for program in (os.path.join(BUILD, "dfcctl"), os.path.join(BUILD, "dfc-mount"), *programs):
        shutil.copy(program, f"{top}/bin")
        for path in libraries(program):
            os.makedirs(top + os.path.dirname(path), exist_ok=True)
            shutil.copy(path, top + path)
    return top


def write_initramfs(c, image):
    top = fill_machine(c, INIT, {"SILENT": str(SILENT_SECONDS), "IMAGE": image,
                                 "READERS": " ".join(map(str, range(READERS))),
                                 "KILLS": " ".join(map(str, range(KILLS)))})
    for name in ("names", "stats", "sums"):
        shutil.copy(path_of(c, f"root/{name}"), top)
    return vdisc_qemu.pack(c, top)


def run_machine(c, initrd, modules=MODULES, seconds=SECONDS):
    """What it has written."""
    out = path_of(c, "console")
    with open(out, "wb") as console:
        machine = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "tcg", "-m", "768", "-nodefaults", "-no-reboot",
             "-display", "none", "-serial", "stdio", "-kernel", places_of_modules(modules)[0],
             "-initrd", initrd, "-append", "console=ttyS0 panic=-1 quiet",
             # Time of the machine is that of its instructions: other work of the host does not count.
             "-icount", "shift=1,sleep=on",
             "-netdev", "user,id=n", "-device", "virtio-net-pci,netdev=n"],
            stdin=subprocess.DEVNULL, stdout=console, stderr=console)
    try:
        wait_for(lambda: machine.poll() is not None, "the machine's end", seconds)
    finally:
        if machine.poll() is None:
            machine.kill()
            machine.wait()
    with open(out, "rb") as f:
        return f.read().decode(errors="replace").replace("\r", "")


def test_a_disk_of_the_kernel(c):
    c.create("images", copies=2)
    write_data(path_of(c, "root/data"), random.Random(12))
    write_lists(path_of(c, "root"))
    image = "dfc://images/tcmu.vdsc"
    done = c.dfcctl("vdisc", "burn", "--tree", path_of(c, "root/data"), "-o", image)
    equal(done.returncode, 0, done.stderr)
    text = run_machine(c, write_initramfs(c, image))
    lines = text.splitlines()
    if os.environ.get("DFC_SHOW"):
        print(text)
    for what in SAID:
        check(f"dfc: {what}" in lines, f"the guest does not say '{what}': {text[-3000:]}")
    check("failed" not in text and "not killed" not in text, f"a read failed: {text[-3000:]}")
    before = text.split("dfc: reads will fail")[0]
    check("I/O error" not in before, f"the kernel has seen a read fail: {before[-3000:]}")
    disk = re.search(r"dfc: disk 1 (\d+) 86400", text)
    check(disk is not None, "the disk is not read-only, or has a short timeout")
    pauses = [float(b) - float(a) for a, b in re.findall(r"dfc: pause (\S+) (\S+)", text)]
    print("pauses of the disk while its server is replaced, in seconds:",
          " ".join(f"{p:.2f}" for p in pauses), re.search("dfc: (rounds .*)", text).group(1))
    equal(len(pauses), KILLS, "kills")
    check(max(pauses) <= PAUSE_SECONDS, f"the disk was silent for {max(pauses):.1f} s")


if __name__ == "__main__":
    needs()
    main(targets=3)
