/* A target's mountpaths: which there are, which of them is open, and the choice of one for an
 * object.
 *
 * What there is at one moment is a struct mountpath_set: immutable and counted, like the cluster's
 * state.  Whoever touches a mountpath holds a set that has it open; one that was taken out is
 * closed when the last such set is gone.  The roster (roster.h) is what the disks remember of it.
 *
 *   attach ─▶ the roster with the new one is written down on all ─▶ the next set is in force
 *   enable ─▶ opened, index checked ─▶ written down ─▶ in force
 *   disable ─▶ in force at once ─▶ written down on the others
 *   detach ─▶ leaving: written down ─▶ in force ─▶ resilver.h moves all off ─▶ settle: it is no
 *             member, and is emptied when nobody holds it
 *
 * The choice is HRW of (bucket id, name) over the members' ids and weights, so that the loss of a
 * disk moves nothing between the others.  While a set is not settled an object may lie on any of
 * them; then of several copies the greatest version counts.  A name that belongs to a disabled
 * member, or may lie only there, is E_MOUNTPATH_DISABLED, never "not found".
 *
 * Locks: `change` (one change at a time, held while disks are written) before `lock` (pointers and
 * counts); `listing` is taken alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "target/disk/mountpath.h"
#include "target/format/roster.h"

enum { MOUNTPATHS_MAX = ROSTER_MEMBERS_MAX };

struct mountpaths;

struct mountpaths_config {
    const char *target_id;
    const char *list; /* "/d1,/d2": directories, made where they are missing */
    uint64_t index_map_size;
    unsigned disk_depth;  /* operations outstanding at one disk */
    bool plain_io;        /* no io_uring */
    unsigned readers;     /* threads at each disk that read what is not in memory */
    size_t readers_queue; /* reads that may wait for them */
    bool reindex;         /* fill all indexes anew */
    bool moved_ok;
    bool lost_ok;
    uint64_t close_wait_ms; /* that enable waits for who still holds what was disabled */
    bool missing_ok;        /* start with those that are missing disabled */
    /* Of an index that mountpaths_open() builds: so many files more are looked at, so many bytes
     * more compared with a checksum.  In any thread; or NULL. */
    void (*on_progress)(void *ctx, unsigned files, size_t bytes);
    void *progress_ctx;
    bool joined_only; /* refuse, before a disk is touched, if no mountpath has joined a cluster */
};

/* Opens those of the list and those that the roster remembers, checks that they belong together,
 * fills indexes anew that were not closed in order (reindex.h; the mountpaths side by side). */
int mountpaths_open(const struct mountpaths_config *config, struct mountpaths **out,
                    struct error *err);
void mountpaths_close(struct mountpaths *m); /* nobody holds a set */
DEFINE_CLEANUP(struct mountpaths, mountpaths_close);

/* --- what there is ---------------------------------------------------------------------------- */
struct mountpath_set {
    const struct roster *roster;
    bool settled;
    size_t placed;           /* the first of `all` are those that objects are placed on */
    size_t count;            /* the others are leaving */
    struct mountpath **all;  /* the open ones */
    struct mountpath **each; /* by the roster's members; NULL for those that are not open */
};

/* How many members are not open. */
size_t mountpath_set_missing(const struct mountpath_set *set);
/* The set in force; for mountpath_set_unref(). */
const struct mountpath_set *mountpaths_current(const struct mountpaths *m);
const struct mountpath_set *mountpath_set_ref(const struct mountpath_set *set);
void mountpath_set_unref(const struct mountpath_set *set); /* NULL is fine; any thread */
static inline void mountpath_set_unrefp(const struct mountpath_set **set)
{
    mountpath_set_unref(*set);
}
#define _cleanup_mountpath_set_ _cleanup_(mountpath_set_unrefp)

/* Where HRW puts the object.  E_MOUNTPATH_DISABLED. */
int mountpath_set_pick(const struct mountpath_set *set, uint64_t bucket_id, const char *name,
                       struct mountpath **out, struct error *err);
/* None of the open ones has the name: 0 where it does not exist, then, or E_MOUNTPATH_DISABLED
 * where one that is not open may have it. */
int mountpath_set_check_miss(const struct mountpath_set *set, uint64_t bucket_id, const char *name,
                             struct error *err);
/* Is it still the one in force?  Who has found nothing by one that is not must look again. */
bool mountpath_set_is_current(const struct mountpath_set *set);
/* For what must have seen every member (a list): E_MOUNTPATH_DISABLED where one is not open. */
int mountpath_set_check_whole(const struct mountpath_set *set, struct error *err);

/* A name leaves one index only when it stands in another one: then the one that opens cursors on
 * all indexes between begin and end sees it in one of them. */
void mountpaths_listing_begin(struct mountpaths *m);
void mountpaths_listing_end(struct mountpaths *m);
/* index_settled() is for the caller to say, when the file is gone. */
int mountpaths_unlist(struct mountpaths *m, struct mountpath *mp, uint64_t bucket_id,
                      const char *name, struct error *err);

/* The cluster that the mountpaths belong to; "" until the target has joined one. */
const char *mountpaths_cluster(const struct mountpaths *m);
/* Writes it down, durably, on all of them. */
int mountpaths_set_cluster(struct mountpaths *m, const char *cluster_id, struct error *err);
/* Sums over the open ones' file systems, each counted once. */
int mountpaths_capacity(struct mountpaths *m, uint64_t *total_bytes, uint64_t *available_bytes,
                        struct error *err);

/* --- changes (blocking) ----------------------------------------------------------------------- */
/* A member is named by its path or its id.  E_NOT_FOUND where there is none; what is so already is
 * fine. */
int mountpaths_attach(struct mountpaths *m, const char *path, struct error *err);
int mountpaths_enable(struct mountpaths *m, const char *which, struct error *err);
/* Counts what it held, too.  bad: its disk is not to be relied on when it is closed. */
int mountpaths_disable(struct mountpaths *m, const char *which, const char *why, bool bad,
                       struct error *err);
/* lost: it goes at once, with what it holds.  E_NO_SPACE where the others have no room. */
int mountpaths_detach(struct mountpaths *m, const char *which, bool lost, struct error *err);

/* The roster gets another generation, so that a resilver that was aborted is begun again.  Nothing
 * where the set is settled. */
int mountpaths_ask_resilver(struct mountpaths *m, struct error *err);

/* Is any set older than this one still held?  Waits for that to end, or until *stop, for at most so
 * long; false: some is held. */
bool mountpaths_wait_older(struct mountpaths *m, const struct mountpath_set *set,
                           const atomic_bool *stop, uint64_t timeout_ms);
/* Waits until nobody holds a set in which the member is open, for at most so long: it can be opened
 * again.  Not for one that is open in the set in force. */
bool mountpaths_wait_closed(struct mountpaths *m, const char *id, uint64_t timeout_ms);
/* All objects lie where HRW over this set puts them.  E_MOUNTPATH_STATE where another set is in
 * force by now. */
int mountpaths_settle(struct mountpaths *m, const struct mountpath_set *set, struct error *err);
/* Closes what nobody holds any more; is there anything to be closed? */
void mountpaths_reap(struct mountpaths *m);
bool mountpaths_to_reap(struct mountpaths *m);
