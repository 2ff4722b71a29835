/* What the parts of a validation share.  One mountpath is walked by one thread, in this order:
 *
 *   validate.c        where it is; first all files, then all names of the index
 *   validate_file.c   is this file what its attribute, its place and the index say?
 *   validate_bytes.c  are its bytes?  At which pace?
 *   validate_names.c  has each name a file?  Whose are the files that do not say?
 *   validate_mend.c   what a scrub does about what is found */
#pragma once

#include <sys/stat.h>

#include "target/store/object_parts.h"
#include "target/scrub/scrub_cursor.h"
#include "target/scrub/validate.h"
#include "xaction/pace.h"

/* One mountpath. */
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
void walk_save_now_and_then(struct walk *w);

/* --- one file --------------------------------------------------------------------------------- */

enum look { LOOK_WELL, LOOK_GONE, LOOK_WRONG };

struct file {
    struct stat st;
    struct attr attr; /* borrows from raw; with LOOK_WELL and what is wrong but for the attribute */
    bool read;        /* the attribute */
    bool elsewhere;   /* with VALIDATE_misplaced: its name belongs to another mountpath */
    unsigned char raw[ATTR_ENCODED_MAX];
    enum validate_finding what; /* with LOOK_WRONG */
    struct error why;
};

/* Without a lock: what looks wrong may be in the middle of a change. */
enum look walk_look(const struct walk *w, const char *path, struct file *f);
/* Under the name's lock.  What is wrong, and has a name, is reported and dealt with here. */
enum look walk_look_again(const struct walk *w, const char *path, struct file *f);
/* The lock of this name; object_unlock() gives it back. */
int walk_lock_name(const struct walk *w, struct object_place *p, const char *name,
                   struct error *err);

/* --- its bytes -------------------------------------------------------------------------------- */

enum { FILE_COSTS = 4096 }; /* a file without its bytes, as bytes */

/* A scrub lets others go first, but is not kept from its work for ever. */
void walk_yield(struct walk *w, size_t bytes);
/* False: the work ended before the file did. */
bool walk_check_bytes(struct walk *w, const char *path, struct file *f);

/* --- names ------------------------------------------------------------------------------------ */

/* Those behind w->at.name. */
int walk_names(struct walk *w, struct error *err);
/* A file whose attribute does not say whose it is; until the index says it (or, in the end, does
 * not: walk_nameless_rest). */
void walk_nameless_add(struct walk *w, const char *path, const struct file *f);
void walk_nameless_rest(struct walk *w);
bool walk_ends_with(const char *text, const char *end);

/* --- what is done about it -------------------------------------------------------------------- */

/* A file to be dealt with. */
struct sick {
    const char *path;
    const char *name; /* of the object whose place it is; "": not known */
    uint64_t inode;
    const struct attr *attr; /* of that object, or NULL */
    enum validate_finding what;
    const char *why;
};

/* Nothing, but for a scrub.  Under the name's lock, where there is a name. */
void walk_mend(const struct walk *w, const struct sick *s);
/* Found, and mended. */
void walk_report(const struct walk *w, const char *path, const struct file *f);
void walk_want_repair(const struct walk *w, const char *name);
bool walk_mends_index(enum validate_finding what); /* and the file is sound */
