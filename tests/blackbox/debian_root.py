#!/usr/bin/env python3
"""The packages of Debian build, install in a bare root, run a cluster there, and go again.

The root is made by debootstrap, from where this machine's apt has its packages.  DFC_PACKAGES names a
directory with packages that are built already.

DFC_RELEASE=trixie names another release than this machine's: then the source builds there and passes
its unit suite, and that is all."""

import atexit
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import image
import namespaces
from image import apt_sources, run
from lib import ROOT, Failed, Ports, check, copy_source, end_on_signals, equal, run_one, skip, wait_for

RELEASE = os.environ.get("DFC_RELEASE", image.RELEASE)
ABROAD = RELEASE != image.RELEASE
PACKAGES = ("dfc-server", "dfc-client", "libdfc", "libdfc-dev", "python3-dfc")
PROGRAM = """#include <dfc.h>
#include <stdio.h>
int main(void)
{
    struct dfc_client *client;
    struct dfc_error err;
    if (dfc_client_open(NULL, &client, &err) != DFC_OK)
        return 1;
    dfc_client_close(client);
    puts("linked");
    return 0;
}
"""
AFTER_TEN = """
until [ "$(dfcctl node ls | grep -c ' active ')" = 5 ]; do sleep 0.2; done
dfcctl put /etc/debian_version photos/version
primary=$(dfcctl cluster status | sed -n 's/.*primary //p')
[ -n "$primary" ]
kill -9 $(grep -lzx "$primary" /proc/[0-9]*/cmdline | cut -d/ -f3)
dfcctl cat photos/version | cmp - /etc/debian_version
dfcctl bucket create later --retries 60
[ "$(dfcctl cluster status | sed -n 's/.*primary //p')" != "$primary" ]
"""


class Lab:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="dfc-debian-")
        atexit.register(self.remove)
        self.root = os.path.join(self.dir, "root")
        self.ports = Ports()
        self.daemons = []
        self.files = []

    def path(self, name):
        """Of the root."""
        return os.path.join(self.root, name.lstrip("/"))

    def inside(self, *argv, env=(), **options):
        """A command in the root, with its environment alone."""
        return run("chroot", self.root, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                   "HOME=/root", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", *env, *argv,
                   **options)

    def install(self, *names):
        self.inside("apt-get", "install", "-y", "-q", "--no-install-recommends", *names)

    def write(self, name, text, user="dfc"):
        with open(self.path(name), "w", encoding="ascii") as f:
            f.write(text)
        self.inside("chown", f"{user}:{user}", name)
        os.chmod(self.path(name), 0o600)

    def start(self, program, config):
        log = open(os.path.join(self.dir, f"{config}.log"), "wb")
        self.daemons.append(subprocess.Popen(
            ["chroot", "--userspec=dfc:dfc", self.root, "/usr/bin/env", "-i", f"/usr/bin/{program}",
             "--config", f"/etc/dfc/{config}.json"], stdout=log, stderr=log))
        log.close()

    def say_logs(self):
        for name in sorted(glob.glob(os.path.join(self.dir, "*.log"))):
            with open(name, encoding="utf-8", errors="replace") as f:
                print(f"--- {os.path.basename(name)}: {f.read()[-2000:]}", flush=True)

    def end_daemons(self):
        for daemon in self.daemons:
            daemon.terminate()
        for daemon in self.daemons:
            equal(daemon.wait(60), 0, "the end of a daemon")
        self.daemons = []

    def dfcctl(self, *argv, **options):
        return self.inside("dfcctl", *argv, env=(
            f"DFC_ENDPOINT=http://127.0.0.1:{self.ports.base}",
            f"DFC_CONTROL_ENDPOINT=http://127.0.0.1:{self.ports.base + 1}",
            "DFC_CLUSTER_KEY_FILE=/etc/dfc/cluster.key"), **options)

    def remove(self):
        for daemon in self.daemons:
            daemon.kill()
        for line in reversed(open("/proc/mounts", encoding="utf-8").read().splitlines()):
            if line.split()[1].startswith(self.dir):
                subprocess.run(["umount", "--lazy", line.split()[1]], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)


def sources():
    """The lines of a root's sources, and the mirror."""
    lines, mirror = apt_sources()
    if not ABROAD:
        return lines, mirror
    mirror = mirror.rstrip("/")
    try:
        urllib.request.urlopen(f"{mirror}/dists/{RELEASE}/Release", timeout=60).close()
    except (OSError, urllib.error.HTTPError) as error:
        skip(f"{mirror} has no {RELEASE}: {error}")
    return [f"deb {mirror} {RELEASE} main\n"], mirror


def test_a_bare_root_is_made(lab):
    lines, mirror = sources()
    run("debootstrap", "--variant=minbase", RELEASE, lab.root, mirror)
    with open(lab.path("etc/apt/sources.list"), "w", encoding="ascii") as f:
        f.writelines(lines)
    for name in os.listdir("/etc/apt/apt.conf.d"):  # a proxy, and what a mirror of the past needs
        if not name.startswith("docker"):
            shutil.copy(os.path.join("/etc/apt/apt.conf.d", name), lab.path("etc/apt/apt.conf.d"))
    shutil.copy("/etc/resolv.conf", lab.path("etc/resolv.conf"))
    run("mount", "-t", "proc", "none", lab.path("proc"))
    run("mount", "--rbind", "/dev", lab.path("dev"))
    lab.inside("apt-get", "update", "-q")


def test_the_source_passes_its_unit_suite(lab):
    """Elsewhere than on this machine, where ./test.sh does that."""
    copy_source(lab.path("source"))
    for script in ("require_packages $build_packages $unit_packages",
                   "meson setup build -Dtests=enabled",
                   "ninja -C build",
                   "meson test -C build --no-rebuild --print-errorlogs --suite unit"):
        lab.inside("bash", "-ec", f"cd /source && . deploy/local/packages.sh && {script}")


def test_the_packages_build(lab):
    if "DFC_PACKAGES" in os.environ:
        for name in glob.glob(os.environ["DFC_PACKAGES"] + "/*.deb"):
            shutil.copy(name, lab.dir)
    else:
        build(lab)
    built = {os.path.basename(name).split("_")[0] for name in glob.glob(lab.dir + "/*.deb")}
    equal(built, set(PACKAGES), "packages")


def build(lab):
    source = os.path.join(lab.dir, "source")
    copy_source(source)
    run("dpkg-buildpackage", "-b", "-us", "-uc", cwd=source,
        env={**os.environ, "DEB_BUILD_OPTIONS": "parallel=2 noautodbgsym",
             "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})  # with Debian's own Python
    shutil.rmtree(source)


def test_they_install_in_a_bare_root(lab):
    for name in glob.glob(lab.dir + "/*.deb"):
        shutil.copy(name, lab.path("root"))
    lab.install(*(f"/root/{os.path.basename(name)}" for name in glob.glob(lab.path("root/*.deb"))))
    check("nologin" in lab.inside("getent", "passwd", "dfc"), "the user of the daemons")
    check(os.path.isdir(lab.path("etc/dfc")), "/etc/dfc")
    check(not os.path.exists(lab.path("etc/systemd/system/multi-user.target.wants/dfc-proxyd.service")),
          "a daemon without parameters does not start")
    for name in ("man1/dfcctl.1.gz", "man8/dfc-targetd.8.gz"):
        check(os.path.exists(lab.path("usr/share/man/" + name)), name)
    lab.files = [name for package in PACKAGES
                 for name in lab.inside("dpkg", "-L", package).splitlines()
                 if os.path.lexists(lab.path(name)) and not os.path.isdir(lab.path(name))]
    check(len(lab.files) > 50, f"{len(lab.files)} files")


def test_a_cluster_runs(lab):
    base = lab.ports.base
    lab.write("/etc/dfc/cluster.key", os.urandom(32).hex() + "\n")
    common = {"address": "127.0.0.1", "cluster_key_file": "/etc/dfc/cluster.key"}
    lab.inside("install", "-d", "-o", "dfc", "-g", "dfc", "/disk1", "/disk2", "/run/t1", "/run/t2",
               "/var/lib/dfc-proxy")
    lab.write("/etc/dfc/proxy.json", json.dumps(
        {**common, "id": "p1", "dir": "/var/lib/dfc-proxy", "public_port": base,
         "control_port": base + 1}))
    lab.start("dfc-proxyd", "proxy")
    for n in (1, 2):
        lab.write(f"/etc/dfc/t{n}.json", json.dumps(
            {**common, "id": f"t{n}", "dir": f"/run/t{n}", "mountpaths": f"/disk{n}/dfc",
             "public_port": base + 3 * n, "control_port": base + 3 * n + 1,
             "data_port": base + 3 * n + 2, "join": f"http://127.0.0.1:{base + 1}"}))
        lab.start("dfc-targetd", f"t{n}")

    seen = []

    def active():
        try:
            nodes = json.loads(lab.dfcctl("node", "ls", "-o", "json"))["nodes"]
        except (Failed, ValueError) as error:
            seen[:] = [error]
            return False
        seen[:] = [n["state"] for n in nodes]
        return seen == ["active"] * 3

    try:
        wait_for(active, "three active nodes")
    except Failed:
        print(f"--- dfcctl: {seen}", flush=True)
        lab.say_logs()
        raise
    lab.dfcctl("bucket", "create", "b", "--copies", "2")
    lab.dfcctl("put", "/etc/debian_version", "b/version")
    with open(lab.path("etc/debian_version"), encoding="ascii") as f:
        version = f.read()
    equal(lab.dfcctl("cat", "b/version"), version, "the object")
    script = ("import dfc\n"
              f"c = dfc.Client('http://127.0.0.1:{base}')\n"
              "print(c.bucket('b').get('version').decode(), end='')")
    equal(lab.inside("python3", "-c", script), version, "the object, read by Python")


def ten_commands():
    """Those of the guide; a line that is indented goes on with the one before."""
    with open(os.path.join(ROOT, "docs", "guide", "install.md"), encoding="utf-8") as f:
        section = f.read().partition("### Three proxies in ten commands\n")[2]
    block = section.partition("```sh\n")[2].partition("```")[0]
    lines = block.splitlines(keepends=True)
    begun = [line for line in lines if line[0] != " " and line != "done\n"]
    equal(len(begun), 10, "commands of the guide")
    return lines[0], "".join(lines[1:])


def test_ten_commands_make_three_proxies(lab):
    """Then the primary is killed."""
    install, others = ten_commands()
    lab.inside("bash", "-ec", f"cd /root && {install}")
    with open(lab.path("etc/hosts"), "w", encoding="ascii") as f:  # as every machine has; debootstrap makes none
        f.write("127.0.0.1 localhost\n")
    with open(lab.path("root/ten.sh"), "w", encoding="ascii") as f:
        f.write(f"set -e\ntrap 'kill $(jobs -p)' EXIT\n{others}{AFTER_TEN}")
    said = run("timeout", "180", "unshare", "--net", "sh", "-ec", 'ip link set lo up && exec "$@"', "-",
               "chroot", lab.root, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
               "bash", "/root/ten.sh")
    check("created later" in said, said[-2000:])


def test_a_program_links_with_the_library(lab):
    lab.install("gcc", "libc6-dev", "pkgconf")
    with open(lab.path("root/program.c"), "w", encoding="ascii") as f:
        f.write(PROGRAM)
    lab.inside("sh", "-c", "cc -o /root/program /root/program.c $(pkg-config --cflags --libs libdfc)")
    equal(lab.inside("/root/program"), "linked\n", "a program")


def test_they_go_again(lab):
    lab.end_daemons()
    lab.inside("apt-get", "purge", "-y", "-q", *PACKAGES)
    left = [name for name in lab.files if os.path.lexists(lab.path(name))]
    equal(left, [], "files that are left")
    check(os.path.exists(lab.path("disk1/dfc")) and os.path.exists(lab.path("var/lib/dfc-proxy")),
          "objects and documents stay")


HERE = (test_a_bare_root_is_made, test_the_packages_build, test_they_install_in_a_bare_root,
        test_a_cluster_runs, test_ten_commands_make_three_proxies,
        test_a_program_links_with_the_library, test_they_go_again)
ELSEWHERE = (test_a_bare_root_is_made, test_the_source_passes_its_unit_suite)


def main():
    if os.geteuid() != 0:
        skip("needs root, for a root of its own")
    for program in ("/usr/sbin/debootstrap", "/usr/bin/dpkg-buildpackage", "/usr/bin/dh",
                    "/usr/bin/pybuild"):
        if not os.path.exists(program):
            skip(f"there is no {program}")
    namespaces.enter("--pid", "--fork", "--kill-child", "--mount-proc")
    end_on_signals()
    lab = Lab()
    tests = ELSEWHERE if ABROAD else HERE
    done = 0
    for function in tests:  # each needs what the one before has made
        if not run_one(function.__name__, function, lab):
            break
        done += 1
    print(f"{done} passed, {len(tests) - done} failed or not run")
    sys.exit(0 if done == len(tests) else 1)


if __name__ == "__main__":
    main()
