/* What the files of the object store (object.h) share, and the walks of scrub/ that look at files
 * themselves. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "common/metrics.h"
#include "target/store/object.h"
#include "target/format/object_path.h"

enum { OBJECT_STRIPES = 1024 };

struct object_store {
    struct object_store_config config;
    pthread_mutex_t stripes[OBJECT_STRIPES];
    struct pin_sets *pins;    /* what jobs read */
    atomic_ullong put_memory; /* bytes of buffers handed out */
    metric_t *puts, *put_bytes, *deletes;
};

/* A name, and where HRW puts it.  It holds the set of mountpaths that it comes from. */
struct object_place {
    struct object_store *store;
    const struct mountpath_set *set;
    struct mountpath *mp;
    uint64_t bucket_id;
    const char *name;
    struct object_path path;
};

/* E_MOUNTPATH_DISABLED.  object_place_done() in any case. */
int object_place_set(struct object_place *p, struct object_store *s, uint64_t bucket_id,
                     const char *name, struct error *err);
void object_place_done(struct object_place *p);
#define _cleanup_place_ _cleanup_(object_place_done)
/* "/d1/.dfc/obj/7/3f/3f09…"; the caller's to free. */
char *object_place_text(const struct object_place *p, const struct mountpath *mp);
void object_lock(const struct object_place *p);
void object_unlock(const struct object_place *p);

/* What a name has on disk: of several copies (mountpaths not settled) the greatest. */
struct stored {
    bool exists;
    bool damaged;         /* exists, but its attribute cannot be read: attr is empty */
    bool unknown;         /* a copy is damaged: its version may have been the greatest */
    struct mountpath *mp; /* where; with exists */
    struct attr attr;     /* borrows from raw: do not copy the struct */
    unsigned char raw[ATTR_ENCODED_MAX];
};

/* E_HASH_COLLISION where another name has the file; E_MOUNTPATH_DISABLED where the newest may be on
 * a mountpath that is not open, and where the place's mountpath was taken out since.  By the set in
 * force now, under the name's lock or with the chance of missing what is being moved. */
int stored_read(const struct object_place *p, struct stored *out, struct error *err);
/* The copy on one mountpath. */
int stored_read_at(const struct object_place *p, struct mountpath *mp, struct stored *out,
                   struct error *err);
/* Exists, is no tombstone, and no job hides it. */
bool stored_visible(const struct object_store *s, const struct stored *cur);
/* Is it there, but hidden by a job that has not committed? */
bool stored_hidden(const struct object_store *s, const struct stored *cur);
/* There is no file: does the index have a version that was given all the same?  And is it an
 * object's?  Its file was removed behind our back.  Under the lock. */
bool stored_lost(const struct object_place *p, const struct stored *cur, struct version *version);
bool stored_lost_object(const struct object_place *p, const struct stored *cur);
/* Is there an object whose file has not its length: a stub (quarantine.h), or cut? */
bool stored_is_hollow(const struct object_place *p, const struct stored *cur);
/* Is it a stub whose bytes never came, for lack of room? */
bool stored_has_no_room(const struct object_place *p, const struct stored *cur);
void stored_copy(struct stored *to, const struct stored *from);

/* Makes the index say what the file on p->mp says; where that fails, the index is stale. */
void object_restore_index(const struct object_place *p);

/* The file on cur->mp is about to be replaced or removed: what jobs have pinned of it gets a link
 * (disk/pin_set.h).  Under the lock. */
void object_keep_pinned(const struct object_place *p, const struct stored *cur);
/* Removes the file on p->mp and its record; the lock is held.  Fault point: disk.rename. */
int object_remove_locked(const struct object_place *p, struct error *err);

/* Opens the copy on one mountpath and checks it. */
int object_open_at(const struct object_place *p, struct mountpath *mp, struct object *o,
                   struct error *err);

/* E_STALE_MAP where the name is another target's by now. */
int object_check_owned(const struct object_place *p, struct error *err);
/* What the name stands for: what is here, or what an earlier owner has (made up in *scratch),
 * whichever is greater; NULL: no object. */
const struct attr *object_present(const struct object_place *p, const struct stored *cur,
                                  const struct object_held *earlier, struct attr *scratch);

/* The same whatever it is: a tombstone, or hidden. */
int object_open_any(const struct object_place *p, struct mountpath *mp, struct object *o,
                    struct error *err);

int object_not_found(const char *name, struct error *err);
int object_reserved(const struct stored *cur, struct error *err);

/* The attribute of the file on p->mp becomes this one, and the index says so; under the lock.  Not
 * synced.  Fault point: disk.xattr. */
int object_rewrite_attr(const struct object_place *p, const struct attr *a, struct error *err);

/* Has it OBJECT_BACKEND_SENT? */
bool object_was_sent(const struct attr *a);
