/* What the files of mountpaths.h share; nobody else includes this. */
#pragma once

#include <pthread.h>

#include "hrw/hrw.h"
#include "target/disk/mountpaths.h"

/* A placement as HRW wants it.  `members` are indices into the roster; SIZE_MAX: no member now. */
struct placement {
    size_t count;
    struct hrw_node *nodes;
    size_t *members;
};

struct set_impl {
    struct mountpath_set set; /* first: see set_impl_of() */
    struct mountpaths *owner;
    struct set_impl *next; /* of the owner's `live` */
    uint64_t serial;
    atomic_uint refs;
    struct roster *roster;
    struct placement now;
    struct placement *earlier;
};

struct mountpaths {
    struct mountpaths_config config;
    char *target_id;
    char *cluster;
    pthread_mutex_t change; /* held by who makes a change */
    pthread_mutex_t lock;   /* of all below */
    pthread_cond_t freed;   /* a set is gone */
    struct set_impl *current;
    struct set_impl *live; /* all sets that are held, the current one too */
    uint64_t next_serial;
    struct mountpath *closing;
    unsigned reaping; /* threads that close some */
    pthread_rwlock_t listing;
};

/* Puts a set of these open mountpaths in force.  Takes the roster. */
void mountpaths_install(struct mountpaths *m, struct roster *r, struct mountpath *const *open,
                        size_t count);
/* Opens the index, filling it anew where needed, and starts the disk's threads. */
int mountpaths_bring_up(const struct mountpaths *m, struct mountpath *mp, struct error *err);
/* Ends the threads of a mountpath, which need not have been brought up, and closes it; NULL is
 * fine. */
void mountpaths_take_down(struct mountpath *mp);
DEFINE_CLEANUP(struct mountpath, mountpaths_take_down);
/* The roster onto these, durably; the first failure. */
int mountpaths_write_down(const struct mountpaths *m, const struct roster *r,
                          struct mountpath *const *open, size_t count, struct error *err);
/* The weight for this one, beside these. */
int mountpaths_weigh(const struct mountpath *mp, const struct roster *r,
                     struct mountpath *const *open, size_t count, uint32_t *weight,
                     struct error *err);
/* Whether moving everything off `leaving` finds room on the others of the set. */
int mountpaths_check_room(const struct mountpath_set *set, size_t leaving, struct error *err);
