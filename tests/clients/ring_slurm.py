#!/usr/bin/python3
"""The files of deploy/slurm as SLURM runs them: a manager, an array of four generators and a training share a
ring.  slurmctld, slurmd and munged run in a temporary directory, on loopback; skipped where they are not
installed."""

import atexit
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import frame
from lib import WAIT_SECONDS, Failed, check, equal, main, skip, wait_for

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "scancel")
FILES = os.path.join(frame.ROOT, "deploy", "slurm")
PYTHON = os.path.join(frame.ROOT, "python")
SOURCES = [os.path.join(PYTHON, "src"), os.path.join(PYTHON, "wirehead", "src")]
STANDINS = os.path.join(PYTHON, "wirehead", "tests", "standins")
TASKS, SAMPLES, STEPS = 4, 30, 20
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")
sys.path.insert(0, SOURCES[0])
import dfc  # noqa: E402 pylint: disable=wrong-import-position
from dfc.ring import Ring  # noqa: E402 pylint: disable=wrong-import-position

CONF = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
MailProg=/bin/true
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket
CredType=cred/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=3600
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=16384 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def has(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], check=False,
                          capture_output=True).returncode == 0


def free_ports(count):
    with contextlib.ExitStack() as stack:
        found = []
        for port in range(20000 + os.getpid() % 8000, 32000):
            s = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                s.bind(("127.0.0.1", port))
                found.append(port)
            if len(found) == count:
                return found
    raise Failed("no free ports")


class Slurm:
    """A controller and one node of eight CPUs, whatever the machine has."""

    def __init__(self):
        if os.geteuid() != 0:
            skip("slurmd starts jobs as their users: that needs root")
        missing = [name for name in PROGRAMS if shutil.which(name) is None]
        if missing:
            skip(f"{missing[0]} is not installed; on Debian: slurmctld, slurmd, slurm-client, munge")
        self.dir = tempfile.mkdtemp(prefix="dfc-slurm-")
        self.daemons = []
        atexit.register(self.remove)
        os.chmod(self.dir, 0o755)
        for name in ("state", "spool", "jobs"):
            os.mkdir(self.path(name))
        with open(self.path("munge.key"), "wb") as f:
            os.fchmod(f.fileno(), 0o600)
            f.write(os.urandom(128))
        with open(self.path("slurm.conf"), "w", encoding="ascii") as f:
            f.write(CONF.format(dir=self.dir, ports=free_ports(2), host=socket.gethostname().split(".")[0]))
        self.env = {**os.environ, "SLURM_CONF": self.path("slurm.conf")}

    def path(self, name):
        return os.path.join(self.dir, name)

    def begin(self):
        self.daemon("munged", "--foreground", "--force", f"--key-file={self.path('munge.key')}",
                    f"--socket={self.path('munge.socket')}", f"--pid-file={self.path('munged.pid')}",
                    f"--log-file={self.path('munged.log')}", f"--seed-file={self.path('munge.seed')}")
        wait_for(lambda: os.path.exists(self.path("munge.socket")), "munged", seconds=WAIT_SECONDS)
        self.daemon("slurmctld", "-D", "-f", self.path("slurm.conf"), "-L", self.path("slurmctld.log"))
        self.daemon("slurmd", "-D", "-N", "n1", "-f", self.path("slurm.conf"), "-L", self.path("slurmd.log"))
        wait_for(self.is_idle, "the node n1")

    def is_idle(self):
        for p in self.daemons:
            with open(self.path(p.args[0] + ".out"), encoding="utf-8", errors="replace") as out:
                equal(p.poll(), None, f"the exit code of {p.args[0]}, which said: {out.read()}")
        return "State=IDLE" in self.ask("scontrol", "show", "node", "n1")

    def daemon(self, *argv):
        with open(self.path(argv[0] + ".out"), "w", encoding="utf-8") as out:
            self.daemons.append(subprocess.Popen(argv, env=self.env, stdout=out, stderr=out))

    def ask(self, *argv):
        """What the program says; "" where it fails."""
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True, check=False,
                              timeout=WAIT_SECONDS)
        return done.stdout if done.returncode == 0 else ""

    def submit(self, name, env):
        """The number of the job."""
        done = subprocess.run(["sbatch", "--parsable", name], cwd=self.path("jobs"), check=False, text=True,
                              env={**self.env, **env}, capture_output=True, timeout=WAIT_SECONDS)
        equal(done.returncode, 0, f"the exit code of sbatch {name}: {done.stderr}")
        return done.stdout.strip()

    def states(self, job):
        """Of each task of an array, or of the job."""
        return re.findall(r"JobState=(\w+)", self.ask("scontrol", "show", "job", job))

    def logs(self, begin):
        folder = self.path("jobs/log")
        found = []
        for name in sorted(os.listdir(folder)):
            if name.startswith(begin):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    found.append(f.read())
        return found

    def remove(self):
        self.ask("scancel", "--user=root")
        with contextlib.suppress(Failed):  # each job has a process of its own, slurmstepd
            wait_for(lambda: self.ask("squeue", "--noheader") == "", "the end of all jobs")
        for p in reversed(self.daemons):  # slurmd before munged, which it asks
            if p.poll() is None:
                p.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(WAIT_SECONDS)
            p.kill()
            p.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def environment(c, folder):
    """That of a user who has installed the packages, and logged in."""
    standins = [] if has("torch") and has("numpy") else [STANDINS]
    return {"DFC_ENDPOINT": c.endpoint, "PYTHONPATH": os.pathsep.join(SOURCES + standins), "HOME": folder,
            "PATH": os.path.dirname(sys.executable) + ":/usr/bin:/bin", "VENV": "",
            "PYTHONDONTWRITEBYTECODE": "1", "no_proxy": "127.0.0.1,localhost",
            "SAMPLES": str(SAMPLES), "STEPS": str(STEPS)}


def test_jobs_share_a_ring(c):
    slurm = Slurm()
    slurm.begin()
    jobs = slurm.path("jobs")
    shutil.copytree(FILES, jobs, dirs_exist_ok=True)
    os.mkdir(os.path.join(jobs, "log"))
    env = environment(c, jobs)
    training = slurm.submit("training_job.sh", env)
    manager = slurm.submit("manager_job.sh", env)
    wait_for(lambda: any("Manager: Initialized" in log for log in slurm.logs("manager")), "the manager")
    generators = slurm.submit("generator_job.sh", env)
    for job, count in ((generators, TASKS), (training, 1)):
        def ended(job=job, count=count):
            states = slurm.states(job)
            return len(states) == count and all(state in ENDED for state in states)
        wait_for(ended, f"the end of job {job}", seconds=4 * WAIT_SECONDS)
        equal(slurm.states(job), count * ["COMPLETED"], f"the tasks of job {job}: {slurm.logs('')}")
    made = slurm.logs("generator")
    equal([f"generator: {SAMPLES} samples" in log for log in made], TASKS * [True], "the generators' logs")
    read = "".join(slurm.logs("training"))
    check(f"training: {STEPS} steps, {4 * STEPS} samples" in read, read)
    ring = Ring(dfc.Client(c.endpoint, profile=""), "slurm-example")
    wait_for(lambda: ring.head().number == TASKS * SAMPLES // 10, "all samples in generations")
    equal(ring.status()["fill"], 0, "samples that are in no generation")
    wait_for(lambda: "Generated samples so far" in slurm.logs("manager")[0], "a swap that the manager has seen")
    equal(slurm.states(manager), ["RUNNING"], "the manager")
    slurm.ask("scancel", "--name=wirehead_manager")
    wait_for(lambda: slurm.states(manager) == ["CANCELLED"], "the end of the manager")


if __name__ == "__main__":
    main(targets=2, mountpaths=1)
