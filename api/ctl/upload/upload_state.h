/* Which upload in parts an earlier run has begun for a file, so that the next run goes on with it.
 *
 *   $XDG_CACHE_HOME/dfc/uploads/HASH.json, without it ~/.cache/dfc/uploads/HASH.json
 *
 * HASH is of the file's real path, the bucket and the key.  Which parts there are is asked of the
 * cluster.  A state file is locked (flock(2)): a second program that sends the same file, and one
 * that can write no state file, has no state. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct upload_state {
    const char *bucket, *key; /* the caller's */
    /* What must be the same, so that the upload is of this file. */
    uint64_t size, part_size;
    int64_t modified_ns;
    char *about; /* what else decides over the object, as one text: owned */

    char *upload; /* its id; NULL: there is none */
    char *stale;  /* the id of an upload of another version of the file, or NULL */
    char *source; /* the file's real path */
    char *path;   /* of the state file; NULL: there is no state */
    int fd;
};

/* Of the state the caller's fields are set, down to `about`. */
void upload_state_open(struct upload_state *s, const char *source);
/* s->upload is known.  After a failure there is no state. */
void upload_state_keep(struct upload_state *s);
void upload_state_drop(struct upload_state *s); /* removes the file */
void upload_state_done(struct upload_state *s);
