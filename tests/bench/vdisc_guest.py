#!/usr/bin/env python3
"""A dataset image as a block device of a virtual machine: by NBD (nbdkit with the plugin, and the kernel's
client) and by TCMU, side by side; and how long a read waits while the server of TCMU is killed.

The machine is emulated by software, and its time is that of its instructions.  So no absolute figure says
anything of a real machine: compare the two sides alone.

Needs QEMU, cpio, busybox-static, nbdkit, nbd-client and a kernel of Debian (DFC_TEST_KERNEL, or it is
downloaded: tests/blackbox/vdisc_qemu.py)."""

import json
import os
import random
import re
import shutil
import subprocess
import sys

import benchlib
from benchlib import KIB, MIB, log
from peers import Cluster

SECONDS = 1800
MODULES = ("virtio_pci", "virtio_net", "configfs", "target_core_user", "tcm_loop", "sd_mod", "isofs", "nbd")
PROGRAMS = ("nbdkit", "nbd-client")
# The device of each side, from its begin to its end; busybox is the shell.
GUEST = """
for m in configfs target_core_user tcm_loop sd_mod isofs nbd; do load $m; done
mount -t configfs none /sys/kernel/config
begin_tcmu() {
    dfcctl vdisc mount IMAGE /mnt --mode tcmu --buffer-size BUFFER --restarts 100 --log-file /tmp/log
    device=/dev/$(ls /sys/block | grep sd)
}
end_tcmu() { dfcctl vdisc umount /mnt; }
begin_nbd() {
    dfcctl vdisc serve IMAGE --socket /tmp/nbd.sock --buffer-size BUFFER &
    nbdkit=$!
    while test ! -S /tmp/nbd.sock; do usleep 10000; done
    nbd-client -unix /tmp/nbd.sock /dev/nbd0 -b 512 > /tmp/said 2>&1 || cat /tmp/said
    device=/dev/nbd0
}
end_nbd() {
    nbd-client -d /dev/nbd0
    kill $nbdkit
    wait $nbdkit
    rm /tmp/nbd.sock
}
for side in SIDES; do
    begin_$side
    say "row $side cold $(dfc-blocks $device LARGE 1 SPAN 0)"
    say "row $side warm $(dfc-blocks $device LARGE 1 SPAN 0)"
    say "row $side small $(dfc-blocks $device SMALL 32 SPAN RUN)"
    end_$side
done
begin_tcmu
for k in KILLS; do
    sup=$(supervisor)
    old=$(server $sup)
    dfc-blocks $device SMALL 32 SPAN 6 > /tmp/out &
    sleep 2
    kill -9 $old
    wait $!
    say "row tcmu restart $(cat /tmp/out)"
    test "$(server $sup)" != "$old" || say "not killed"
done
end_tcmu
say ends
poweroff -f
"""
WHAT = {"cold": "MiB/s, 1 MiB at a time in order, from the cluster", "warm": "MiB/s, the same from memory",
        "small": "reads/s of 4 KiB at depth 32 from memory"}


def guest_of(args):
    """What tests/blackbox has of such machines.  It looks at DFC_BUILD when it is imported, and some of its
    files have names that files here have, too."""
    os.environ["DFC_BUILD"] = str(args.build)
    sys.path.insert(0, str(benchlib.ROOT / "tests/blackbox"))
    import vdisc_tcmu  # pylint: disable=import-outside-toplevel
    return vdisc_tcmu


def run(args, guest, cluster, work):
    """What the machine says of each side: {(side, what): [reads, …]}."""
    span = (2 if args.quick else args.span) * MIB
    rounds = 1 if args.quick else args.rounds
    (work / "tree").mkdir()
    (work / "tree/data").write_bytes(random.Random(1).randbytes(span + MIB))
    cluster.endpoint = cluster.proxy["url"]
    image = "dfc://img/guest.vdsc"
    env = {**os.environ, "DFC_ENDPOINT": cluster.endpoint, "HOME": str(work)}
    subprocess.run([args.build / "dfcctl", "vdisc", "burn", "--tree", work / "tree", "-o", image], env=env,
                   check=True, stdout=subprocess.DEVNULL)
    sides = " ".join("nbd tcmu" if i % 2 == 0 else "tcmu nbd" for i in range(rounds))
    texts = {"IMAGE": image, "BUFFER": str(2 * span + 16 * MIB), "SIDES": sides, "SPAN": str(span),
             "LARGE": str(MIB), "SMALL": str(4 * KIB), "RUN": "1" if args.quick else "5",
             "KILLS": " ".join(map(str, range(1 if args.quick else args.kills)))}
    programs = [args.build / "nbdkit-dfc-vdisc-plugin.so", args.build / "tests/bench/dfc-blocks",
                *(shutil.which(p, path=f"{os.environ['PATH']}:/usr/sbin") for p in PROGRAMS)]
    top = guest.fill_machine(cluster, guest.BEGIN + GUEST, texts, programs, MODULES)
    text = guest.run_machine(cluster, guest.vdisc_qemu.pack(cluster, top), MODULES, SECONDS)
    if "dfc: ends" not in text or "not killed" in text:
        raise RuntimeError(f"the machine did not end as it should: {text[-3000:]}")
    found = {}
    for side, what, figures in re.findall(r"dfc: row (\S+) (\S+) (\{.*\})", text):
        found.setdefault((side, what), []).append(json.loads(figures))
    return found


def rows_of(found):
    rows = []
    for what, name in WHAT.items():
        rates = {side: [r["reads"] / r["seconds"] for r in found[side, what]] for side in ("nbd", "tcmu")}
        for side, of in rates.items():
            rows.append({"row": f"{side}: {name}", "value": round(benchlib.median(of), 1)})
        rows.append({"row": "tcmu against nbd: the same", **{
            "value" if k == "median" else k: v
            for k, v in benchlib.paired_ratio(rates["tcmu"], rates["nbd"]).items()}})
    errors = sum(r["errors"] for of in found.values() for r in of)
    pauses = [r["longest_s"] for r in found["tcmu", "restart"]]
    rows.append({"row": "reads that failed", "value": errors, "goal": "0", "met": errors == 0})
    rows.append({"row": f"tcmu: the longest read of {len(pauses)} restarts, s", "value": max(pauses),
                 "median": benchlib.median(pauses), "goal": "<= 2", "met": max(pauses) <= 2})
    return rows


def main():
    parser = benchlib.arguments(__doc__)
    parser.add_argument("--span", type=int, default=32, help="MiB of the image that are read")
    parser.add_argument("--kills", type=int, default=5, help="kills of the server under load")
    args = parser.parse_args()
    guest = guest_of(args)
    guest.needs(MODULES)
    missing = [p for p in PROGRAMS if shutil.which(p, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing:
        log(f"left out for want of {', '.join(missing)}")
        return 77
    document = {"machine": benchlib.begin(args), "emulated": "by software; the machine's time is that of its instructions"}
    with benchlib.WorkDir(args.dir) as work, Cluster(work / "dfc", args.build, targets=2) as cluster:
        cluster.call("POST", "/v1/buckets/img", {"action": "create", "value": {"durability": "async"}})
        document["rows"] = rows_of(run(args, guest, cluster, work))
    log("emulated by software: absolute figures mean nothing")
    benchlib.table(["row", "figure", "goal"], [[r["row"], r["value"], r.get("goal")] for r in document["rows"]])
    benchlib.finish(args, "vdisc_guest", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
