#!/usr/bin/env python3
"""Does copies_promise.py find anything?  Each row leaves one step of docs/design/replication.md out
of a copy of the source, builds the daemons of it, and says which scene has to find that: what
clients saw there is nothing that one register would have shown.  By hand: it takes minutes.

    tests/blackbox/copies_mutants.py [NAME...]     # all rows, or these
    tests/blackbox/copies_mutants.py --check       # do the rows still fit the source?  Builds
    nothing"""

import dataclasses
import os
import re
import subprocess
import sys
import tempfile

from lib import ROOT, copy_source

DAEMONS = ("dfc-proxyd", "dfc-targetd", "dfcctl")


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    file: str
    here: str  # once in the file …
    instead: str
    scene: str  # of copies_promise.py


ROWS = [
    Row("lease", "target/copies/read.c",
        "clock_boot_ms() < atomic_load(&t->copies->lease_until_ms)", "clock_boot_ms() > 0",
        "who_is_passed_over_does_not_answer_from_what_it_had"),
    Row("lease, refusals", "target/copies/write.c",
        "        if (code == 0 || refusal_stands(w, b))",
        "        if (code == 0 || b != NULL || refusal_stands(w, b))",
        "who_is_passed_over_refuses_nothing_by_what_it_had"),
    Row("lease's length", "target/copies/lifecycle.c", "sent_ms + lease_ms",
        "sent_ms + 100 * lease_ms", "who_is_passed_over_does_not_answer_from_what_it_had"),
    Row("others", "target/copies/commit.c", "if (o->count == 0 || fault_skips",
        "if (o->count < 9 || fault_skips", "what_is_acknowledged_is_on_all_owners"),
    Row("repeated commits", "target/copies/commit.c", "silent || t->repeated;", "silent;",
        "a_commit_whose_answer_was_lost_is_not_written_again"),
    Row(
        "order", "target/copies/write.c", """    if (code == 0)
        code = copies_commit_others(&w->order, &err);
    if (code != 0) {""", """    if (code == 0) {
        write_own(w);
        (void)copies_commit_others(&w->order, &err);
        write_free(w);
        return;
    }
    if (code != 0) {""", "nobody_sees_what_others_have_not"),
    Row(
        "marks", "target/copies/dirty.c",
        "    pthread_mutex_lock(stripe(u, slot));\n    struct mark *m = find(u, "
        "bucket_id, name);\n    if (m == NULL) {", "    if (slot < SLOTS)\n        return;\n"
        "    pthread_mutex_lock(stripe(u, slot));\n    struct mark *m = find(u, bucket_id, name);\n"
        "    if (m == NULL) {", "a_write_in_doubt_is_on_all_owners_before_it_is_seen"),
    Row("marks, read", "target/copies/read.c",
        "return !dirty_has(t->copies->dirty, b->id, name);",
        "return t != NULL && b != NULL && name != NULL;",
        "a_write_in_doubt_is_on_all_owners_before_it_is_seen"),
    Row("sending", "target/copies/compare.c",
        "c->lacks[i] = o == NULL || send_one(c, o, c->nodes[i], &why) != 0;",
        "c->lacks[i] = o == NULL || send_one == NULL;",
        "a_write_in_doubt_that_is_seen_is_brought_to_all"),
    Row("knowing", "target/copies/compare.c",
        "hollow_send(c->target, c->state, c->bucket, c->name, best_of(c), to, &err) == 0;",
        "hollow_send != NULL;", "what_is_seen_is_known_where_there_is_no_room"),
    Row("restarted", "cluster/placement/lag.c", "n->lag = LAG_RESTARTED;", "n->lag = LAG_NONE;",
        "a_restart_forgets_marks"),
    Row("missed", "cluster/placement/lag.c", "    n->lag = LAG_MISSED;\n}", "    n->lag = LAG_NONE;\n}",
        "who_has_missed_a_write_does_not_act"),
    Row("comparison", "target/copies/compare.c", 'if (fault_skips("copies.compare"))',
        "if (b != NULL)", "who_has_missed_a_write_compares_before_it_acts"),
    Row("awaited", "target/copies/acting.c", "if (o->awaited != NULL)",
        "if (o->awaited != NULL && o->count == 0)", "who_may_alone_have_the_newest_is_waited_for"),
    Row("lost disks", "cluster/placement/lag.c", "if (lost && ", "if (lost && known == NULL && ",
        "empty_disks_prove_nothing"),
    Row("tombstones kept", "target/store/sweep.c", "if (!lag_lets_forget(now))", "if (now == NULL)",
        "what_was_deleted_while_somebody_was_away_stays_deleted"),
    Row(
        "tombstones compared", "target/copies/plan.c",
        "if (!a->found || !b->found)\n        return b->found;",
        "if (!a->found || !b->found || !a->visible || !b->visible)\n        return b->found && "
        "b->visible;",
        "what_was_deleted_while_somebody_was_away_stays_deleted"),
    Row("tombstones marked", "target/copies/acting.c",
        "return dirty_has(t->copies->dirty, bucket_id, name);\n}\n\nbool copies_must",
        "return t == NULL && bucket_id == 0 && name == NULL;\n}\n\nbool copies_must",
        "a_deletion_that_an_owner_lacks_is_not_forgotten"),
    Row("lease, renames", "target/copies/path.c", "if (copies_may_answer(call))",
        "if (call->name != NULL || copies_may_answer(call))",
        "who_is_passed_over_renames_nothing_that_it_had"),
    Row("fence", "target/copies/staged_routes.c",
        "if (o->term > term || (o->term == term && o->version >= version))\n",
        "if (o->term > 0 || term == version)\n",
        "a_commit_that_was_decided_by_an_earlier_map_is_refused"),
    Row("own fence", "target/copies/write.c", ".check = check_own, .kept",
        ".check = 0 ? check_own : NULL, .kept", "who_owns_no_more_does_not_commit"),
    Row("seen, stays", "target/copies/write.c", "as.stays = true;", "as.stays = false;",
        "what_was_seen_is_not_taken_back"),
    Row("versions", "target/copies/write.c",
        "if (version_floor_cover(t->mountpaths, v->counter, &err) == 0)",
        "if (version_floor_cover(t->mountpaths, 0, &err) == 0)",
        "a_write_over_one_in_doubt_is_more_than_that"),
    Row("majority", "cluster/placement/quorum.c", "return count / 2 + 1;", "return 1 + count / 100;",
        "who_was_not_waited_for_hears_a_majority_before_it_answers"),
    Row("settling", "target/copies/dirty_worker.c", "        work_off(t);\n", "        (void)work_off;\n",
        "a_write_in_doubt_is_settled_by_itself"),
]


def fits(row):
    with open(os.path.join(ROOT, row.file), encoding="utf-8") as f:
        return f.read().count(row.here) == 1


def put_in(source, row):
    """Returns what was there."""
    path = os.path.join(source, row.file)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace(row.here, row.instead))
    return path, text


def build(source, directory):
    if not os.path.exists(directory):
        subprocess.run(["meson", "setup", directory, source, "-Dwerror=false"], check=True,
                       capture_output=True)
    subprocess.run(["ninja", "-C", directory, "-j2", *DAEMONS], check=True, capture_output=True)


def found_by(row, directory):
    """What the scene says of it, or None."""
    script = os.path.join(ROOT, "tests", "blackbox", "copies_promise.py")
    done = subprocess.run([sys.executable, script, "test_" + row.scene], capture_output=True,
                          text=True, env=dict(os.environ, DFC_BUILD=directory), check=False)
    if done.returncode == 0:
        return None
    said = re.search(r"not ok  test_\w+: ([^\n]*)", done.stdout)
    return said.group(1) if said else done.stdout[-1000:] + done.stderr[-1000:]


def main():
    unfit = [row.name for row in ROWS if not fits(row)]
    if unfit:
        print(f"no such text, or not once, in the source: {', '.join(unfit)}")
    if unfit or sys.argv[1:] == ["--check"]:
        return 1 if unfit else 0
    missed = 0
    with tempfile.TemporaryDirectory(prefix="dfc-mutants-") as top:
        source, directory = os.path.join(top, "source"), os.path.join(top, "build")
        copy_source(source)
        for row in (r for r in ROWS if not sys.argv[1:] or r.name in sys.argv[1:]):
            path, text = put_in(source, row)
            build(source, directory)
            found = found_by(row, directory)
            missed += found is None
            print(f"{row.name:<20} {row.scene:<60} {found or 'NOT FOUND'}", flush=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
