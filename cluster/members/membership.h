/* Who is alive: registrations and keepalives go in, verdicts come out.  Pure: the time comes in as
 * milliseconds of a monotonic clock, and nothing here does I/O or locks.
 *
 *   - A node is given up (unreachable) when nothing has been heard of it for longer than
 *     timeout_ms, and taken back (active) as soon as it is heard again.  What a verdict means for
 *     the map is the caller's to commit; a verdict that was not committed comes again.
 *   - A node that says that it stops is given up at the next tick, and only another run of it is
 *     taken back.  It has given up its lease before it says so.  Where every active target has said
 *     so the cluster stops as a whole, and none of them is given up for that.
 *   - A target that says that mountpaths are missing is absent.  So is a silent target in
 *     maintenance, or under decommission.  It is present again once it says or is heard otherwise.
 *   - The primary judges nobody for what it did not hear itself.  For one timeout after its own
 *     start nobody is given up.  After a pause of its own (it was stopped, swapped out, or a disk
 *     stalled it) messages wait in its sockets: a tick more than an eighth of the timeout late
 *     gives up only whom nobody heard for two, and after half a timeout every clock starts anew.
 *   - An id belongs to one process at a time.  The same address with another boot id is the node
 *     started again, and is let in at once: two processes cannot listen there.  Another address is
 *     let in when the old process has been silent for a timeout; until then it is refused, for it
 *     may be a second node that was given the same id by mistake.  A boot id that another one has
 *     replaced is refused while that one lives (a late message, or such a second node).
 *   - An address belongs to one node at a time, too: a new node takes a dead one's (a container
 * gets
 *     an old IP) only when the map has given that one up.  So no two active nodes have one address.
 */
#pragma once

#include <stdint.h>

#include "cluster/command/command.h"
#include "cluster/documents/state.h"

struct membership;

struct membership_rules {
    const char *self;    /* the primary's own id: never judged */
    uint64_t timeout_ms; /* silence for longer than this is unreachable */
};

#define ROOM_UNKNOWN UINT64_MAX

enum { KEEPALIVE_TEXT_MAX = 64, KEEPALIVE_PATH_MAX = 256 };

/* What a node says of itself with each keepalive. */
struct keepalive {
    const char *id;
    const char *boot;
    char release[KEEPALIVE_TEXT_MAX]; /* its build; "": not said */
    char commit[KEEPALIVE_TEXT_MAX];
    uint64_t term; /* of the state that it holds */
    uint64_t version;
    uint64_t total_bytes; /* capacity; 0 for a proxy */
    uint64_t available_bytes;
    uint64_t room_bytes; /* that a target takes before it refuses PUT; ROOM_UNKNOWN: not said */
    uint64_t mountpaths_high; /* of its mountpaths, those above space_high … */
    uint64_t mountpaths_out;  /* … and above space_out */
    uint64_t quarantined;     /* damaged files that were moved aside, and are there still */
    uint64_t lost;            /* objects that nobody has whole any more, as far as it knows */
    uint64_t
        mountpaths_missing; /* … and those that are disabled: their objects are not to be had */
    uint64_t
        disks_missing; /* of these, those that a start has missed, and no operator decided about */
    char disk_missing[KEEPALIVE_PATH_MAX]; /* the first of them, cut where it is longer */
    uint64_t uploads_waiting;   /* writes that their buckets' backends do not have yet, … */
    uint64_t uploads_late;      /* … of these: for longer than the target's back_late … */
    uint64_t uploads_oldest_ms; /* … and how long ago the first was made */
    uint64_t backends_failing;  /* buckets whose backends do not answer it now; of the first: … */
    char failing_bucket[KEEPALIVE_TEXT_MAX];
    char failing_endpoint[KEEPALIVE_PATH_MAX];
    bool electable;              /* a proxy that may become the primary */
    uint64_t certificate_left_s; /* until its certificate expires; 0: it has none */
    uint64_t
        resilver; /* generation of the roster of a target whose mountpaths are not settled, or 0 */
};

/* Another state; or, where that `stays`, that the node is absent from now on, or is so no more
 * (struct node). */
struct verdict {
    const char *id; /* the map's text */
    enum node_state state;
    bool stays;
    bool absent;
    bool stopping; /* it says so itself */
    uint64_t silent_ms;
};

struct membership *membership_new(const struct membership_rules *rules, uint64_t now_ms);
void membership_free(struct membership *m);

/* May this process take its id?  0 (and it counts as heard; the caller commits its join), or
 * E_EXISTS with a sentence that says what to do. */
int membership_register(struct membership *m, const struct smap *map, const struct node *spec,
                        uint64_t now_ms, struct error *err);
/* 0, or E_NODE_NOT_FOUND: the map does not have this run of the node, it must register. */
int membership_keepalive(struct membership *m, const struct smap *map, const struct keepalive *k,
                         uint64_t now_ms, struct error *err);
/* This run of the node stops: no lease from here on, and a verdict at the next tick.
 * E_NODE_NOT_FOUND: the map has another run. */
int membership_stop(struct membership *m, const struct smap *map, const char *id, const char *boot,
                    struct error *err);
/* To be called at least ten times within timeout_ms; the longest time from the last sign of life
 * to the verdict is timeout_ms plus the distance of two ticks.  `out` has room for map->count
 * verdicts; returns how many there are. */
size_t membership_tick(struct membership *m, const struct smap *map, uint64_t now_ms,
                       struct verdict *out);
struct command verdict_command(const struct verdict *v, int64_t wall_ms);
/* Does it take something from the node that it may count on (membership_judged())? */
bool verdict_gives_up(const struct verdict *v);
/* For how long, from when it sent the keepalive that has just been taken, the node may count on not
 * being given up (cluster/members/lease.h); 0 where the map passes it over, or a verdict is on its
 * way that does.  Only for a primary that is sure to be one after this was called. */
uint64_t membership_lease_ms(const struct membership *m, const struct smap *map, const char *id);
/* A verdict that a node is unreachable is committed, and the map shows it; or it has failed: then
 * it may be found durable all the same until the map has changed. */
void membership_judged(struct membership *m, const struct smap *map, const char *id, bool failed);
/* The last keepalive of a node; false where none has come.  The texts are NULL. */
bool membership_last(const struct membership *m, const char *id, struct keepalive *out);
/* For how long nothing has been heard of a node that membership_last() knows; 0 of others. */
uint64_t membership_silent_ms(const struct membership *m, const char *id, uint64_t now_ms);
