/* The roster: which mountpaths a target has, how each of them is, and where its objects may lie.
 *
 *   members      id, path, weight (fixed when it was attached), and how it is:
 *                  enabled    objects are placed on it
 *                  leaving    none are placed on it any more; those that it has are moved off
 *                  disabled   taken out at once; its names are refused (503) until it is back
 *                A disabled member keeps its place, so that its names are known.
 *   settled      every object lies where HRW over the placement (all but leaving members) looks
 *   earlier      while it is not: the placements since it last was; an object lies where HRW over
 *                one of them, or over the present one, looks
 *   anywhere     not even that is known: an object may lie on any member
 *   detached     paths that were given up or have left: --mountpaths may still name them
 *   generation   grows with every change; of several on the disks the greatest counts
 *
 * It stands in every mountpath's format.json (format.h).  A change is a function from one roster to
 * the next; mountpaths.h writes that down and puts it in force.  Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

enum {
    ROSTER_MEMBERS_MAX = 256,
    ROSTER_EARLIER_MAX = 16,
    ROSTER_WEIGHT_DEFAULT = 1024, /* of every mountpath that a release without weights made */
};

struct roster_member {
    char *id;
    char *path;
    uint32_t weight;
    bool leaving;
    bool disabled;
    bool missing;     /* of a disabled one: it was not there, or not to be opened, at a start */
    char *why;        /* of a disabled one; or NULL */
    int64_t since_ms; /* wall; of the last change of how it is, 0 unknown */
    bool counted;     /* what it held when it was disabled: */
    uint64_t objects, bytes;
};

struct roster_share {
    char *id;
    uint32_t weight;
};

/* Members that objects were placed on, in the order of the roster. */
struct roster_placement {
    size_t count;
    struct roster_share *shares;
};

struct roster {
    uint64_t generation;
    bool settled;
    bool anywhere;
    size_t count;
    struct roster_member *members;
    size_t earlier_count;
    struct roster_placement *earlier;
    size_t detached_count;
    char **detached;
};

struct roster *roster_new(void); /* empty and settled */
struct roster *roster_copy(const struct roster *r);
void roster_free(struct roster *r);
DEFINE_CLEANUP(struct roster, roster_free);

/* Puts its fields into the object `doc`; takes them out of it. */
void roster_to_json(const struct roster *r, json_t *doc);
int roster_from_json(json_t *doc, struct roster **out, struct error *err);

size_t roster_find_id(const struct roster *r, const char *id);     /* SIZE_MAX: none */
size_t roster_find_path(const struct roster *r, const char *path); /* SIZE_MAX: none */
bool roster_is_detached(const struct roster *r, const char *path);
bool roster_has_place(const struct roster *r); /* a member that is not leaving */
bool roster_has_disabled(const struct roster *r);
const char *roster_state_name(const struct roster_member *m); /* "enabled", "leaving", "disabled" */

/* The weight of a mountpath of `bytes`, beside others of `other_weight` and `other_bytes` in sum;
 * of the first ones (other_bytes 0) the size in units of 64 MiB. */
uint32_t roster_weight(uint64_t bytes, uint64_t other_weight, uint64_t other_bytes);

/* --- changes: each raises the generation ------------------------------------------------------ */
/* Adds a member.  `empty`: no member has an object yet, so that nothing has to be moved. */
int roster_attach(struct roster *r, const char *id, const char *path, uint32_t weight, bool empty,
                  int64_t now_ms, struct error *err);
/* Objects are to be moved off.  E_MOUNTPATH for the last one that objects can be placed on. */
int roster_leave(struct roster *r, size_t i, int64_t now_ms, struct error *err);
/* It stays. */
int roster_stay(struct roster *r, size_t i, int64_t now_ms, struct error *err);
void roster_disable(struct roster *r, size_t i, const char *why, int64_t now_ms);
/* The same, of one that a start has missed. */
void roster_miss(struct roster *r, size_t i, const char *why, int64_t now_ms);
void roster_enable(struct roster *r, size_t i, int64_t now_ms);
/* It is gone with what it held. */
void roster_give_up(struct roster *r, size_t i);
/* Nothing is known of where objects lie. */
void roster_scatter(struct roster *r);
/* Every object lies where it belongs; leaving members that are not disabled have none, and go,
 * unless there is nobody else for names to belong to: then they stay, and the set is not settled.
 */
void roster_settle(struct roster *r);
