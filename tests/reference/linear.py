"""Is a history of operations on one register linearizable?  An independent judge of what clients
saw.

An operation was begun, and answered, at two instants of one clock; it must seem to have been done
at one
instant between.  What it found then is its `need`, what it left is its `effect`:

    read(7)                 it was 7                      nothing changed
    put(7)                  anything                      it is 7
    put(7, MATCH(3))        it was 3                      it is 7 (If-Match)
    refused(MATCH(3))       it was something else than 3  nothing changed (412)
    delete()                there was something           nothing is there
    read(None), missing()   nothing was there             nothing changed (404)

Every PUT stores a value of its own.  An operation of unknown outcome has no end: it was done at
some instant after its beginning, if its need held then, or never.

The search is Wing and Gong's ("Testing and verifying concurrent objects", 1993) with Lowe's memory
of what was tried ("Testing for linearizability", 2016): choose what may have been first among those
that began before any other ended, and go on; a set of what is done, with the value that it left, is
never tried twice.  Operations of unknown outcome are not steps of that search, for any set of them
could be done at any time.  They are put in where an operation's need does not hold without them:
since they may be late as they like, each that mattered can be moved to right before the first
operation that noticed.

Objects are independent of one another: check one at a time (Herlihy and Wing: linearizability is
local).

    verdict = check(operations)      # verdict.ok is True, False, or None: the limits were reached
    print(verdict.story)             # where not ok: the shortest window that cannot be explained
"""

import dataclasses
import time

NEVER = float("inf")
KEEP = object()  # an effect: none
_OTHER = ("other",)  # the value of whatever nobody has seen


# --- needs: what must be so at the instant -------------------------------------------------------

@dataclasses.dataclass(frozen=True, slots=True)
class Need:
    what: str
    value: object = None

    def holds(self, state):
        if self.what == "any":
            return True
        if self.what == "is":
            return state == self.value
        if self.what == "absent":
            return state is None
        if self.what == "present":
            return state is not None
        if self.what == "not":
            return state != self.value
        return state is not None and state != self.value  # "another"

    def __str__(self):
        return self.what if self.value is None else f"{self.what} {self.value}"


ANY = Need("any")
ABSENT = Need("absent")  # If-None-Match: *
PRESENT = Need("present")


def MATCH(value):  # If-Match; pylint: disable=invalid-name
    return Need("is", value) if value is not None else ABSENT


# --- operations ----------------------------------------------------------------------------------

@dataclasses.dataclass(slots=True)
class Operation:
    need: Need
    effect: object  # KEEP, None (gone), or a value
    begin: float
    end: float = NEVER
    who: str = ""
    note: str = ""

    def __str__(self):
        end = "          ?" if self.end == NEVER else f"{self.end:11.6f}"
        does = f", puts {self.effect}" if self.effect is not None else ", deletes"
        does = "" if self.effect is KEEP else does
        return f"{self.begin:11.6f} … {end}  {self.who:<10} {self.need}{does}  {self.note}".rstrip()


def read(value, begin, end, **more):
    return Operation(MATCH(value), KEEP, begin, end, **more)


def put(value, begin, end=NEVER, need=ANY, **more):
    return Operation(need, value, begin, end, **more)


def delete(begin, end=NEVER, need=PRESENT, **more):
    return Operation(need, None, begin, end, **more)


def missing(begin, end, **more):
    """404, of any method."""
    return Operation(ABSENT, KEEP, begin, end, **more)


def refused(need, begin, end, present=False, **more):
    """412: the condition did not hold.  `present`: there was something all the same (DELETE)."""
    against = {"absent": PRESENT, "is": Need("another" if present else "not", need.value)}
    return Operation(against[need.what], KEEP, begin, end, **more)


# --- the search ----------------------------------------------------------------------------------

class _Limit(Exception):
    """More steps, or more time, than allowed."""


class _Search:
    """One history: `sure` operations in the order of their beginnings, `loose` ones of unknown
    end."""

    def __init__(self, operations, budget):
        self.budget = budget
        seen = {o.need.value for o in operations if o.need.value is not None}
        self.sure = sorted((o for o in operations if o.end != NEVER), key=lambda o: o.begin)
        self.loose = sorted((o for o in operations if o.end == NEVER and o.effect is not KEEP),
                            key=lambda o: o.begin)
        self.effects = [self.name_of(o.effect, seen) for o in self.loose]
        self.twins = self.alike()
        self.readers = {}  # value: the sure operations that have to find it
        for i, o in enumerate(self.sure):
            if o.need.what == "is":
                self.readers.setdefault(o.need.value, []).append(i)
        self.makers = {o.effect: i for i, o in enumerate(self.sure)}
        self.loose_makers = {effect: i for i, effect in enumerate(self.effects)}

    @staticmethod
    def name_of(effect, seen):
        return effect if effect is None or effect in seen else _OTHER

    def alike(self):
        """For each loose operation the one before it that does the same: that is used first."""
        last, before = {}, []
        for i, o in enumerate(self.loose):
            key = (o.need, self.effects[i])
            before.append(last.get(key))
            last[key] = i
        return before

    def run(self, state):
        """Whether all sure operations can be put in an order that begins with `state`."""
        n = len(self.sure)
        tried = set()
        # What is done: all before `low`, and those of the bits of `done` from there on; loose ones:
        # `used`.
        stack = [self.options(0, 0, state, 0)]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
                continue
            if following[0] == n:
                return True
            if following in tried:
                continue
            tried.add(following)
            self.budget.spend()
            stack.append(self.options(*following))
        return n == 0

    def options(self, low, done, state, used):
        """What may be next, and what it leaves."""
        candidates, horizon = self.candidates(low, done)
        for i in candidates:
            o = self.sure[i]
            if o.effect is KEEP and o.need.holds(state):  # nothing is gained by doing it later
                yield self.step(low, done, i, state, used)
                return
        for i in candidates:
            o = self.sure[i]
            for path, spent in self.reach(o.need, (state,), used, horizon):
                left = path if o.effect is KEEP else (*path, o.effect)
                following = self.step(low, done, i, left[-1], spent)
                if not any(self.is_missed(value, following) for value in left[:-1]):
                    yield following

    def candidates(self, low, done):
        """Those that began before any other ended, and when that was."""
        horizon, found = NEVER, []
        for i in range(low, len(self.sure)):
            if self.sure[i].begin > horizon:
                break
            if not done >> (i - low) & 1:
                found.append(i)
                horizon = min(horizon, self.sure[i].end)
        return [i for i in found if self.sure[i].begin <= horizon], horizon

    @staticmethod
    def step(low, done, i, state, used):
        done |= 1 << (i - low)
        while done & 1:
            done >>= 1
            low += 1
        return low, done, state, used

    def is_missed(self, value, position):
        """The value is gone, will not come back, and has still to be found by somebody."""
        low, done, state, used = position
        if value == state or value is None or value == _OTHER:
            return False

        def open_(i):
            return i >= low and not done >> (i - low) & 1

        if not any(open_(i) for i in self.readers.get(value, ())):
            return False
        maker, loose = self.makers.get(value), self.loose_makers.get(value)
        return not (maker is not None and open_(maker) or
                    loose is not None and not used >> loose & 1)

    def reach(self, need, path, used, horizon, wanted=()):
        """Ways to where the need holds, by way of loose operations begun before `horizon`: the
        values on
        the way, and all that are used then."""
        if need.holds(path[-1]):
            yield path, used
            return
        for i, o in enumerate(self.loose):
            if o.begin > horizon:
                break
            if used >> i & 1 or i in wanted or not need.holds(self.effects[i]):
                continue
            first = self.twins[i]
            if first is not None and not used >> first & 1:
                continue  # it began earlier, and will do
            for way, spent in self.reach(o.need, path, used, horizon, (*wanted, i)):
                yield (*way, self.effects[i]), spent | 1 << i


class Budget:
    """What a check may cost, all its searches together."""

    def __init__(self, steps, seconds):
        self.steps, self.deadline = steps, time.monotonic() + seconds

    def spend(self):
        self.steps -= 1
        if self.steps < 0 or (self.steps & 255) == 0 and time.monotonic() > self.deadline:
            raise _Limit


# --- the verdict ---------------------------------------------------------------------------------

@dataclasses.dataclass
class Verdict:
    ok: object  # True, False, or None where it is not known
    window: list  # of operations, where it is False
    story: str

    def __bool__(self):
        return self.ok is True


def check(operations, initial=None, steps=2_000_000, seconds=30.0):
    """The verdict on one object's history, which began with the value `initial`."""
    budget = Budget(steps, seconds)
    operations = list(operations)
    try:
        if _explained(operations, [initial], budget):
            return Verdict(True, [], "")
    except _Limit:
        return Verdict(None, [], f"not known: {len(operations)} operations were too many to search")
    window, initials = _shorten(operations, initial, Budget(steps, seconds))
    return Verdict(False, window, _tell(window, initials))


def _explained(operations, initials, budget):
    search = _Search(operations, budget)
    return any(search.run(state) for state in initials)


# A history that cannot be explained is cut down, as long as what is left cannot be explained
# either: at
# its end, at its beginning, and between.  Each step only makes it easier to explain, so that the
# window
# that remains is wrong by itself.

def _until(operations, instant):
    """What was known at the instant: what was not answered by then may have been done, or not."""
    for o in operations:
        if o.end <= instant:
            yield o
        elif o.begin <= instant and o.effect is not KEEP:
            yield _loosened(o)


def _since(operations, instant):
    """Without what was answered before: it was done before all that began later, and left any
    value; over
    what was under way with it, it may have been done later than it was answered, or not."""
    late = [o for o in operations if o.end >= instant]
    first = min((o.begin for o in late if o.end != NEVER), default=instant)
    for o in operations:
        if o.end >= instant:
            yield o
        elif o.end >= first and o.effect is not KEEP:
            yield _loosened(o)


def _loosened(o):
    return dataclasses.replace(o, end=NEVER)


def _any_value(operations):
    """What may have been there before, as far as somebody could tell."""
    return [None, _OTHER, *{o.need.value for o in operations if o.need.value is not None}]


def _first(candidates, holds):
    """The first of them for which it holds: it holds for all that follow, and for the last."""
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        if holds(candidates[middle]):
            high = middle
        else:
            low = middle + 1
    return candidates[low]


def _last(candidates, holds):
    """The last of them for which it holds: it holds for all before, and for the first."""
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if holds(candidates[middle]):
            low = middle
        else:
            high = middle - 1
    return candidates[low]


def _ends(operations):
    return sorted({o.end for o in operations if o.end != NEVER})


def _shorten(operations, initial, budget):
    """The window, and the values that it may begin with; as far as the limits allow."""
    window, initials = operations, [initial]

    def wrong_until(instant):
        return not _explained(list(_until(operations, instant)), initials, budget)

    def wrong_since(instant):
        later = list(_since(window, instant))
        return not _explained(later, _any_value(later), budget)

    try:
        window = list(_until(operations, _first(_ends(operations), wrong_until)))
        ends = _ends(window)
        if wrong_since(ends[0]):
            window = list(_since(window, _last(ends, wrong_since)))
            initials = _any_value(window)
        window = _thin(window, initials, budget)
    except _Limit:
        pass
    return sorted(window, key=lambda o: o.begin), initials


def _thin(window, initials, budget):
    """Without what does not matter: reads are forgotten, writes need not be done in time."""
    for o in list(window):
        without = [x for x in window if x is not o]
        if o.effect is not KEEP:
            without.append(_loosened(o))
        if o.end != NEVER and not _explained(without, initials, budget):
            window = without
    needs = {o.need for o in window if o.need is not ANY}
    seen = {need.value for need in needs}
    return [o for o in window if o.end != NEVER or
            any(need.holds(_Search.name_of(o.effect, seen)) for need in needs)]


def _tell(window, initials):
    lines = ["no order explains this:", "      began …       ended  who        found, did"]
    lines += [str(o) for o in window]
    before = "anything" if len(initials) > 1 else "nothing" if initials[0] is None else initials[0]
    return "\n".join([*lines, f"({before} was there before)"])
