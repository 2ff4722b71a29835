"""What can befall a cluster: the rows of FAULTS, each how it begins and what ends it (nemesis.py
does them).

`what` is one of

    kills     a process ends, and is started again; in the middle of a commit, with the primary, or
    after long
    freezes   a process stands still
    cuts      links are cut (wires.py), in both directions or in one
    moves     objects change owners: targets join, are in maintenance, come back
    disks     a target's mountpath is taken from it, and given back
    wipes     a target comes back without what one or all of its disks had: only where another copy
    is
    full      a target's disks take no more bytes, from its start or a while later, and then do
    again

`victims` is of how many targets a row may take away what only they have, or the time to take part:
a plan
with wipes has fewer than there are copies."""

import dataclasses
import os
import shutil
import signal

MANY = 9  # victims


@dataclasses.dataclass(frozen=True)
class Fault:
    what: str
    begin: object  # (nemesis, step): does it, returns what ends it
    weight: int = 1
    victims: int = 1
    longer: float = 0.0  # seconds that it lasts beyond what was drawn


def pick(items, draw):
    items = sorted(items)
    return items[int(draw * len(items))]


# --- processes -----------------------------------------------------------------------------------

def kill(n, step, nodes=None):
    victim = pick(nodes or n.c.targets(), step.draws[0])
    n.say(step, f"kill -9 {victim}")
    process = n.end_process(victim, signal.SIGKILL)
    return lambda: n.start(victim, process)


def kill_proxy(n, step):
    return kill(n, step, n.proxies())


def kill_two(n, step):
    first = kill(n, step)
    left = [t for t in n.c.targets() if n.process(t) is not None]
    second = kill(n, dataclasses.replace(step, draws=step.draws[1:]),
                  left) if left else lambda: None
    return lambda: (first(), second())


def kill_with_primary(n, step):
    """Whoever has just learnt something, and whoever else knows of it."""
    primary, target = kill(n, step, [n.primary()]), kill(n, step)
    return lambda: (primary(), target())


# Of a commit: between the other owners' and the acting one's own, and around it.
COMMIT_POINTS = ("copies.own", "copies.own", "copies.answer", "copies.decided", "copies.committed",
                 "copies.commit")


def kill_in_commit(n, step):
    """A target that is started again ends by itself in one of its next commits."""
    victim, point = n.acting(step.draws[0]), pick(COMMIT_POINTS, step.draws[1])
    faults = f"{point}=kill@{1 + int(step.draws[2] * 8)}"
    n.say(step, f"start {victim} anew with {faults}")
    n.start_now(victim, n.end_process(victim, signal.SIGKILL), f"--arg=--faults={faults}")
    return lambda: n.start(victim, n.end_process(victim, signal.SIGKILL))


def stay_away(n, step):
    """Until the map says so, and others have gone on without it: it comes back with what it had."""
    victim = n.acting(step.draws[0])
    n.say(step, f"kill -9 {victim}, and let it be away")
    process = n.end_process(victim, signal.SIGKILL)

    def end():
        n.await_state(victim, "unreachable")
        n.start(victim, process)

    return end


def stop(n, step):
    victim = pick(n.c.targets() + n.proxies(), step.draws[0])
    n.say(step, f"stop {victim}")
    process = n.end_process(victim, signal.SIGTERM)
    return lambda: n.start(victim, process)


def stand_still(n, step, victim):
    n.say(step, f"freeze {victim}")
    n.send(victim, signal.SIGSTOP)
    return lambda: n.send(victim, signal.SIGCONT)


def freeze(n, step):
    return stand_still(n, step, pick(n.c.targets() + n.c.targets() + n.proxies(), step.draws[0]))


def freeze_acting(n, step):
    """An acting owner, until the map has passed it over: then it goes on, as if nothing had
    been."""
    victim = n.acting(step.draws[0])
    go_on = stand_still(n, step, victim)
    return lambda: (n.await_state(victim, "unreachable"), go_on())


# --- disks ---------------------------------------------------------------------------------------

def mountpaths(n, target):
    top = n.c.node_dir(target)
    return sorted(os.path.join(top, name) for name in os.listdir(top) if name.startswith("mp"))


def come_back_without(n, step, victim, paths):
    n.say(step, f"kill -9 {victim} and empty {len(paths)} of its disks")
    with n.lock:  # nobody starts it meanwhile
        process = n.end_process(victim, signal.SIGKILL)
        for path in paths:
            shutil.rmtree(path)
        n.starts_with[victim] = ["--arg=--mountpath-lost-ok=true"]
    return lambda: n.start(victim, process)


def wipe(n, step):
    victim = pick(n.c.targets(), step.draws[0])
    return come_back_without(n, step, victim, mountpaths(n, victim))


def wipe_acting(n, step):
    victim = n.acting(step.draws[0])
    return come_back_without(n, step, victim, mountpaths(n, victim))


def lose_a_disk(n, step):
    victim = pick(n.c.targets(), step.draws[0])
    return come_back_without(n, step, victim, [pick(mountpaths(n, victim), step.draws[1])])


def take_mountpath(n, step, away, back):
    victim = pick(n.c.targets(), step.draws[0])
    path = pick(mountpaths(n, victim), step.draws[1])
    n.say(step, f"{away} {path} of {victim}")
    n.ask_node(victim, "/v1/daemon/mountpaths", {"action": away, "value": path})
    return lambda: n.insist(victim, "/v1/daemon/mountpaths", {"action": back, "value": path})


def detach(n, step):
    return take_mountpath(n, step, "detach", "attach")


def disable(n, step):
    return take_mountpath(n, step, "disable", "enable")


# --- room ----------------------------------------------------------------------------------------

def fill(n, step):
    """It comes back, before the map says that it is away or after, and is full, or soon will be."""
    victim, late = n.acting(step.draws[0]), int(step.draws[2] * 30)
    n.say(step, f"kill -9 {victim}, and no room there after {late} puts")
    process = n.end_process(victim, signal.SIGKILL)
    if step.draws[1] < 0.5:
        n.await_state(victim, "unreachable")
    n.start_now(victim, process, f"--arg=--faults=disk.room=ENOSPC@{1 + late}+")
    n.await_state(victim, "active")
    return lambda: make_room(n, victim)


def make_room(n, victim):
    n.start_now(victim, n.end_process(victim, signal.SIGKILL), "--arg=--faults=")
    n.await_state(victim, "active")


def join_full(n, step):
    if len(n.c.targets()) >= n.targets_max:
        return fill(n, step)
    n.say(step, "a target without room joins")
    new = n.add_target("--arg=--faults=disk.room=ENOSPC@1+")
    n.starts_with[new] = ["--arg=--faults="]
    n.await_state(new, "active")
    return lambda: make_room(n, new)


# --- links ---------------------------------------------------------------------------------------

def both(a, b):
    return [(a, b), (b, a)]


def cut(n, step, links, what):
    n.say(step, what)
    n.cut(links)
    late = step.draws[3] < 0.6
    return lambda: n.heal(links, late)


def cut_pair(n, step):
    a, b = n.two(step)
    return cut(n, step, both(a, b), f"cut {a} -- {b}")


def cut_one_way(n, step):
    a, b = n.two(step)
    return cut(n, step, [(a, b)], f"cut {a} -> {b}")


def cut_off(n, step, victims=None):
    """A node from all others, in both directions, or in one; clients still reach it."""
    victim = pick(victims or n.members(), step.draws[0])
    others = [m for m in n.members() if m != victim]
    way = int(step.draws[1] * 4)
    links = [
        link for o in others
        for link in ([(victim, o)] if way == 0 else [(o, victim)] if way == 1 else both(victim, o))
    ]
    return cut(n, step, links, f"cut off {victim} ({('out', 'in', 'both ways', 'both ways')[way]})")


def cut_off_acting(n, step):
    return cut_off(n, step, [n.acting(step.draws[0])])


def cut_from_primary(n, step):
    """In both directions, or in one."""
    victim, way = pick(n.c.targets(), step.draws[0]), int(step.draws[1] * 4)
    links = [
        x for p in n.proxies()
        for x in ([(victim, p)] if way == 0 else [(p, victim)] if way == 1 else both(victim, p))
    ]
    return cut(n, step, links, f"cut {victim} {('->', '<-', '--', '--')[way]} proxies")


def cut_in_two(n, step):
    side = [m for i, m in enumerate(sorted(n.members())) if int(step.draws[1] * 1024) >> i & 1]
    links = [x for a in side for b in n.members() if b not in side for x in both(a, b)]
    return cut(n, step, links, f"cut {' '.join(side)} from the others")


# --- owners --------------------------------------------------------------------------------------

def join(n, step):
    if len(n.c.targets()) >= n.targets_max:
        return maintenance(n, step)
    n.say(step, "a target joins")
    n.in_background(n.add_target)
    return lambda: None


def maintenance(n, step):
    victim = pick(n.c.targets(), step.draws[0])
    n.say(step, f"maintenance of {victim}")
    n.act("startmaintenance", victim)
    return lambda: n.act("stopmaintenance", victim)


FAULTS = {
    "kill": Fault("kills", kill, 3),
    "kill_two": Fault("kills", kill_two, victims=2),
    "kill_proxy": Fault("kills", kill_proxy, victims=0),
    "kill_with_primary": Fault("kills", kill_with_primary),
    "kill_in_commit": Fault("kills", kill_in_commit, 2),
    "stay_away": Fault("kills", stay_away),
    "stop": Fault("kills", stop),
    "freeze": Fault("freezes", freeze, 2),
    "freeze_acting": Fault("freezes", freeze_acting, 2),
    "wipe": Fault("wipes", wipe),
    "wipe_acting": Fault("wipes", wipe_acting),
    "lose_a_disk": Fault("wipes", lose_a_disk),
    "fill": Fault("full", fill, 3, longer=3.0),
    "join_full": Fault("full", join_full, longer=3.0),
    "detach": Fault("disks", detach, victims=0),
    "disable": Fault("disks", disable),
    "cut_pair": Fault("cuts", cut_pair, 2),
    "cut_one_way": Fault("cuts", cut_one_way, 2),
    "cut_off": Fault("cuts", cut_off, 1, MANY),
    "cut_off_acting": Fault("cuts", cut_off_acting, 2),
    "cut_from_primary": Fault("cuts", cut_from_primary, 2),
    "cut_in_two": Fault("cuts", cut_in_two, 1, MANY),
    "join": Fault("moves", join, victims=0),
    "maintenance": Fault("moves", maintenance, victims=0),
}
