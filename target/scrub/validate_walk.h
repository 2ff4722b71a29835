/* One mountpath that a validation walks, by one thread: where it is, and what it has found.
 *
 *   validate.c        all files, then all names of the index
 *   validate_names.c  has each name a file?  Whose are the files that do not say?
 *   validate_bytes.c  are the bytes of this file what they were?
 *   validate_file.c   is this file what its attribute, its place and the index say?
 *   validate_mend.c   what a scrub does about what is found
 *
 * Each file uses only those below it in this list, and this one. */
#pragma once

#include "target/scrub/scrub_cursor.h"
#include "target/scrub/validate_config.h"
#include "target/store/job_stop.h"
#include "target/store/object_parts.h"
#include "target/store/validate_report.h"
#include "xaction/pace.h"

enum {
    WALK_PIECE = 1 << 20, /* bytes that are read at once */
    FILE_COSTS = 4096,    /* a file without its bytes, as bytes */
};

struct walk {
    const struct validate_config *config;
    const struct validate_scrub *scrub; /* the config's */
    struct job_stop *stop;
    const struct mountpath_set *set;
    struct mountpath *mp;
    struct validate_part *part;
    uint64_t bucket_id;
    struct pace pace;
    uint64_t since_yield; /* bytes */
    uint64_t saved_ms;
    struct scrub_cursor at;
};

bool walk_shall_end(const struct walk *w);
bool walk_bucket_lives(const struct walk *w);
/* Counts and reports it; walk_mend() is what is done about it. */
void walk_found(const struct walk *w, enum validate_finding what, const char *name,
                const char *detail);
/* Saves where a scrub is, for a later life of this target; a validation saves nothing. */
void walk_save(struct walk *w);
void walk_save_now_and_then(struct walk *w);
/* The lock of this name; object_unlock() gives it back. */
int walk_lock_name(const struct walk *w, struct object_place *p, const char *name,
                   struct error *err);
/* A scrub lets others go first, but is not kept from its work for ever. */
void walk_yield(struct walk *w, size_t bytes);
