#!/usr/bin/env python3
"""What docs/design/replication.md promises, scene by scene: each makes the events happen against
which one of its steps
stands (a lease's end, marks, comparisons, the order of a commit, fences, lags, tombstones), and
what clients
saw must be what one register would have shown them.  copies_mutants.py leaves the steps out, one by
one, and
says which scene finds it."""

import os

from lib import check, equal, main, wait_for
from scenes import GLANCE_SECONDS, Scene, make

PROXIES = ["p1"]


def test_who_is_passed_over_does_not_answer_from_what_it_had(c):
    """t1 stands still until its lease is over, and learns nothing after that."""
    s = Scene(c, "lease", copies=2)
    s.put("one")
    s.freeze("t1")
    s.cut_off("t1")
    s.lose("t1")
    s.put("two")
    s.thaw("t1")
    s.get("t1")
    s.end()


def test_who_is_passed_over_refuses_nothing_by_what_it_had(c):
    """A condition that does not hold, or a deletion of nothing, is a read: t1 has no lease for
    it."""
    s = Scene(c, "refusals", copies=2)
    s.freeze("t1")
    s.cut_off("t1")
    s.lose("t1")
    two = s.put("two")
    s.thaw("t1")
    s.try_delete("t1")
    s.try_put("three", "t1", over=two)
    s.end()


def test_who_is_passed_over_renames_nothing_that_it_had(c):
    """t1 has one thread for renames: the second waits for the first, which t2 holds up, and t1 is
    passed over meanwhile.  What it had must not come to the new name."""
    s = Scene(c, "renames", copies=2)
    other, (first, second) = s.names("t1", "t2")[1], s.names("t2", "t1")
    s.arm(t2="copies.own=delay:8s@1")
    s.restart("t1", "--arg=--rename-parallel=1")
    s.armed.add("t1")
    s.calm()
    s.put("one")
    c.put(s.bucket, other, b"other")
    holds_up = s.in_background(s.rename, "t1", other, first)
    s.await_staged("t2")
    waits = s.in_background(s.rename, "t1", s.name, second)
    s.get("t1")
    s.freeze("t1")
    s.cut_off("t1", PROXIES)
    s.lose("t1")
    s.put("two")
    has_waited = not holds_up.done()  # or the second may have begun before
    s.thaw("t1")
    waits.result()
    s.heal()
    s.calm()
    if has_waited:
        reply = c.get(s.bucket, second)
        check(not reply.body.startswith(b"one"), "what was written over came to another name")
    s.end()


def test_a_comparison_hears_nobody_who_knows_later_owners(c):
    """t1 compares, but by a map whose owners are t2 and itself; by a later one t3 acts, and t2 has
    not what is written there."""
    s = Scene(c, "later", copies=2)
    s.put("one")
    s.freeze("t1")
    s.cut_off("t1", PROXIES)
    s.lose("t1")
    s.act("startmaintenance", "t2", force=True)
    c.wait_node("t2", "maintenance")
    s.put("two")
    s.thaw("t1")
    s.get("t1")
    s.try_delete("t1")
    s.end()


def test_who_is_back_does_not_answer_from_what_it_had(c):
    """t1 has missed a write, and a client still goes by its redirect of long ago."""
    s = Scene(c, "redirect", copies=2)
    s.put("one")
    s.lose_for_good("t1")
    s.put("two")
    s.repairs(False)
    s.back("t1")
    s.get("t1")
    s.look()
    s.end()


def test_what_is_acknowledged_is_on_all_owners(c):
    s = Scene(c, "others", copies=2)
    s.put("one")
    s.put("two")
    s.lose_for_good("t1")
    s.look()
    s.end()


def test_nobody_sees_what_others_have_not(c):
    """t2 does not commit; t1, which acts, must not show it."""
    s = Scene(c, "order", copies=2)
    s.arm(t2="copies.commit=EIO@2+")
    s.put("one")
    s.try_put("two")
    s.get("t1")
    s.lose_for_good("t1")
    s.look()
    s.end()


def test_a_write_in_doubt_is_on_all_owners_before_it_is_seen(c):
    """t3 does not commit, t2 has: t2 acts when t1 is dead, and cannot reach t3; then t2 dies,
    too."""
    s = Scene(c, "marks", copies=3)
    s.arm(t3="copies.commit=EIO@2+")
    s.put("one")
    s.put_no_further_than("t2", "two")
    s.cut(("t2", "t3"))
    s.lose_for_good("t1")
    s.look("t2", GLANCE_SECONDS)
    s.lose_for_good("t2")
    s.look()
    s.end()


def test_a_write_in_doubt_that_is_seen_is_brought_to_all(c):
    """The same, but t2 reaches t3: what it shows is there when it dies."""
    s = Scene(c, "brought", copies=3)
    s.arm(t3="copies.commit=EIO@2+")
    s.put("one")
    s.put_no_further_than("t2", "two")
    s.lose_for_good("t1")
    s.look()
    s.lose_for_good("t2")
    s.look()
    s.end()


def test_what_is_seen_is_known_where_there_is_no_room(c):
    """The same, but t3 has no room for it: it is told what it lacks, and shows nothing older when
    t2 dies."""
    s = Scene(c, "no-room", copies=3)
    s.arm(t3="copies.commit=EIO@2+,disk.room=ENOSPC@3+")
    s.put("one")
    s.put_no_further_than("t2", "two")
    s.lose_for_good("t1")
    s.look()
    s.kill("t2")
    s.lose("t2")
    s.look(seconds=GLANCE_SECONDS)
    s.end()


def test_a_restart_forgets_marks(c):
    """t2 has what t3 has not, is started anew, and may have forgotten that."""
    s = Scene(c, "restarted", copies=3)
    s.arm(t3="copies.commit=EIO@2+")
    s.put("one")
    s.repairs(False)
    s.put_no_further_than("t2", "two")
    s.kill("t1")
    s.cut(("t2", "t3"))
    s.restart("t2")
    s.lose("t1")
    s.look(seconds=GLANCE_SECONDS)
    s.lose_for_good("t2")
    s.look()
    s.end()


def test_who_has_missed_a_write_compares_before_it_acts(c):
    """t1 has missed a write; t2 has missed nothing, but the map does not know: t1 acts."""
    s = Scene(c, "compare", copies=2)
    s.put("one")
    s.lose_for_good("t1")
    s.put("two")
    s.repairs(False)
    s.back("t1")
    s.freeze("t2")
    s.lose("t2")
    s.thaw("t2")
    c.wait_node("t2", "active")
    s.look()
    s.end()


def test_who_has_missed_a_write_does_not_act(c):
    """It is the same run that was away: it has forgotten nothing, and knows of nothing."""
    s = Scene(c, "missed", copies=2)
    s.put("one")
    s.freeze("t1")
    s.lose("t1")
    s.put("two")
    s.repairs(False)
    s.thaw("t1")
    c.wait_node("t1", "active")
    s.look()
    s.end()


def test_who_may_alone_have_the_newest_is_waited_for(c):
    s = Scene(c, "awaited", copies=2)
    s.put("one")
    s.lose_for_good("t1")
    s.put("two")
    s.repairs(False)
    s.back("t1")
    s.lose_for_good("t2")
    s.look("t1", GLANCE_SECONDS)
    s.back("t2")
    s.look()
    s.end()


def test_empty_disks_prove_nothing(c):
    """t1 comes back without its disks, before anybody has missed it; then the other owner is
    away."""
    s = Scene(c, "disks", copies=2)
    s.put("one")
    s.repairs(False)
    s.come_back_empty("t1")
    s.lose_for_good("t2")
    s.look("t1", GLANCE_SECONDS)
    s.back("t2")
    s.look()
    s.end()


def test_what_was_deleted_while_somebody_was_away_stays_deleted(c):
    """Tombstones have outlived their time, and t1 still has the object."""
    s = Scene(c, "tombstones", copies=2)
    s.put("one")
    s.lose_for_good("t1")
    s.delete()
    s.let_tombstones_go("t2")
    s.back("t1")
    s.look()
    s.end()


def test_a_commit_that_was_decided_by_an_earlier_map_is_refused(c):
    """t1 has decided to write, and is passed over before it tells t2, which writes meanwhile: only
    over what it knows."""
    s = Scene(c, "fence", copies=2)
    s.arm(t1="copies.decided=delay:2s@2", t2="copies.own=delay:2s@1")
    one = s.put("one")
    s.in_background(s.try_put, "two", node="t1")
    s.await_staged("t2")
    s.freeze("t1")
    s.cut_off("t1", PROXIES)
    s.lose("t1")
    s.in_background(s.try_put, "three", node="t2", over=one)
    s.await_staged("t2")
    s.thaw("t1")
    s.end()


def test_a_commit_that_was_refused_leaves_nothing_behind(c):
    """The same, and nobody writes meanwhile: t2, which acts, has nothing that it would have to wait
    for."""
    s = Scene(c, "refused", copies=2)
    s.arm(t1="copies.decided=delay:2s@2")
    s.put("one")
    s.repairs(False)
    s.in_background(s.try_put, "two", node="t1")
    s.await_staged("t2")
    s.freeze("t1")
    s.cut_off("t1", PROXIES)
    s.lose("t1")
    s.thaw("t1")
    s.background[-1].result()
    s.heal()
    c.wait_node("t1", "active")
    wait_for(lambda: s.get() is not None, "an answer")
    s.end()


def test_who_owns_no_more_does_not_commit(c):
    """t1 alone has decided to write when the map sends it into maintenance; t3, which acts from
    then on,
    asks it what it has, and writes: only over that."""
    s = Scene(c, "own", copies=2)
    s.arm(t1="copies.own=delay:4s@2")
    one = s.put("one")
    s.lose_for_good("t2")
    s.in_background(s.try_put, "two", node="t1")
    s.await_staged("t1")
    s.cut_off("t1", PROXIES)
    s.act("startmaintenance", "t1", force=True)
    c.wait_node("t1", "maintenance")
    wait_for(lambda: s.try_put("three", over=one) or s.background[-1].done(),
             "a write by the next owner")
    s.end()


def test_a_leader_that_stops_hears_what_became_of_its_write(c):
    """t2 has committed t1's write, and t3 refuses it by a map that passes t1 over: t2, which leads
    by then, brings it to t3.  Nothing is in doubt."""
    for kind in ("put", "delete"):
        s = Scene(c, f"heard-{kind}", copies=3)
        s.arm(t3="copies.commit=delay:500@2")
        s.put("one")
        before = s.held("t2")
        write = (s.try_put, "two", "t1") if kind == "put" else (s.try_delete, "t1")
        done = s.in_background(*write)
        wait_for(lambda was=before: s.held("t2") != was, "t2 has it")
        stop = s.in_background(c.stop, "t1")
        s.lose("t1")
        check(done.result(), f"{kind}: {s.operations[-1].note}")
        stop.result()
        equal(s.held("t3"), s.held("t2"), "what t3 has")
        s.end()


def test_what_was_seen_is_not_taken_back(c):
    """t1 shows a write, and then its disk does not keep the name: t2 has it, and clients have read
    it."""
    s = Scene(c, "taken", copies=2)
    s.arm(t1="disk.sync=delay:200,sync.name=EIO@2")
    s.put("one")
    done = s.in_background(s.try_put, "two", node="t1")
    while not done.done():
        s.get("t1")
    s.get("t1")
    s.end()


def test_a_commit_whose_answer_was_lost_is_not_written_again(c):
    """t1 finds t2's stage gone, by its own commit, and the map is another one by then, by which the
    bytes could be sent on: nothing is written under a second version."""
    s = Scene(c, "once", copies=2)
    c.setting("rebalance_delay", "300ms")
    s.arm(t2="copies.committed=delay:1500@2+")
    s.put("one")
    two = s.write_and_reset(lambda: s.try_put("two", node="t1"))
    equal(s.held("t2"), two, "the version of what t2 had first")
    s.calm()
    gone = s.write_and_reset(lambda: s.try_delete("t1"))
    equal(s.held("t2"), gone, "the version of the deletion that t2 had first")
    s.end()


def test_a_rename_whose_answer_was_lost_is_not_made_again(c):
    """t2 writes the new name, and the connection dies before it can say so: t1, which leads the old
    name, does not write the new one once more."""
    s = Scene(c, "renamed", copies=2)
    old, new = s.names("t1", "t2")[1], s.names("t2", "t1")[1]
    s.arm(t2="copies.own=delay:1500")
    s.put("one")
    c.put(s.bucket, old, b"old").expect(200)
    renames = s.in_background(s.rename, "t1", old, new)
    wait_for(lambda: s.held("t1", new), "the new name at the other owner")
    c.wires.reset([("t1", "t2")])
    written = wait_for(lambda: s.held("t2", new), "the new name")
    renames.result()
    equal(s.held("t2", new), written, "the version of the new name")
    s.end()


def test_an_upload_of_nothing_is_not_streamed_twice(c):
    """p1 does not know its length, and the connection to t1 dies before t1 can say that it is
    written."""
    s = Scene(c, "nothing", copies=2)
    name, streamed = s.names("t1", "t2")[1], {"Dfc-Redirect": "never"}
    s.arm(t1="copies.own=delay:1500")
    s.put("one")
    c.get(s.bucket, s.name, headers=streamed).expect(200)  # p1 keeps a connection to t1
    c.http.close()
    s.in_background(c.http.request, "PUT", s.url("p1", name), iter(()), streamed)
    wait_for(lambda: s.held("t2", name), "the upload at the other owner")
    c.wires.reset([("p1", "t1")])
    written = wait_for(lambda: s.held("t1", name), "the upload")
    s.background[-1].result()
    equal(s.held("t1", name), written, "the version of the upload")
    s.end()


def test_a_write_over_one_in_doubt_is_more_than_that(c):
    """The others have a write that the acting owner has not, and the next one comes at once: two
    writes have never the same version."""
    s = Scene(c, "twice", copies=2)
    s.arm(t1="copies.own=EIO@2")
    s.put("one")
    s.try_put("two")
    s.put("three")
    s.lose_for_good("t1")
    s.look()
    s.end()


def test_who_was_not_waited_for_hears_a_majority_before_it_answers(c):
    """t2 is cut off from the other owners and lacks what they have, of which the map knows nothing:
    it acts
    when t1 is dead."""
    s = Scene(c, "majority", copies=3, write_quorum="majority")
    s.put("one")
    s.repairs(False)
    s.cut(("t2", "t1"), ("t2", "t3"))
    s.put("two")
    s.lose_for_good("t1")
    s.look("t2", GLANCE_SECONDS)
    s.heal()
    s.look()
    s.end()


def test_who_cannot_read_what_it_has_is_not_of_the_majority(c):
    """t3 has the last write, whose attribute is damaged: it says of nothing what it may have, and
    t2, which
    lacks the write, does not answer before t1 is back."""
    s = Scene(c, "unreadable", copies=3, write_quorum="majority")
    s.put("one")
    s.repairs(False)
    s.cut(("t2", "t1"), ("t2", "t3"))
    s.put("two")
    for path in c.object_files("t3"):
        if f"/obj/{s.id}/" in path:
            os.removexattr(path, "user.dfc")
    s.kill("t1")
    s.heal()
    s.look("t2", GLANCE_SECONDS)
    s.end()


def test_what_a_majority_has_comes_to_the_others(c):
    s = Scene(c, "minority", copies=3, write_quorum="majority")
    s.arm(t3="copies.commit=EIO@2+")
    s.put("one")
    s.put("two")
    wait_for(lambda: len({s.held(t) for t in ("t1", "t2", "t3")}) == 1, "the same on all owners")
    s.end()


def test_a_deletion_that_an_owner_lacks_is_not_forgotten(c):
    """t3 answers keepalives, and data on its way to it is lost: it still has the object when the
    tombstones of
    the others have outlived their time."""
    s = Scene(c, "lacking", copies=3, write_quorum="majority")
    s.put("one")
    wait_for(lambda: len({s.held(t) for t in ("t1", "t2", "t3")}) == 1, "the same on all owners")
    s.repairs(False)
    s.cut(("t3", "t1"), ("t3", "t2"))
    s.delete()
    s.let_tombstones_go("t1")
    s.let_tombstones_go("t2")
    s.heal(late=False)
    s.look()
    s.end()


def test_a_write_in_doubt_is_settled_by_itself(c):
    s = Scene(c, "settled", copies=3)
    s.arm(t3="copies.commit=EIO@2+")
    s.put("one")
    s.try_put("two")
    wait_for(lambda: len({s.held(t) for t in ("t1", "t2", "t3")}) == 1, "the same on all owners")
    s.end()


if __name__ == "__main__":
    main(make=make, proxies=1, targets=4)
