/* How far a scrub has come on one mountpath: <mountpath>/.dfc/scrub.json, saved now and then, so
 * that a target that was restarted, or whose mountpaths have changed, goes on there.  What was
 * found up to there is in it, too; what is read twice is counted once.
 *
 *   files   the files of the buckets, in the order of their ids, the directories of each by number
 *   names   the names of the index, in order
 *   done */
#pragma once

#include "target/format/attr.h"
#include "target/disk/mountpath.h"
#include "target/store/validate_report.h"

enum scrub_phase { SCRUB_FILES, SCRUB_NAMES, SCRUB_DONE };

/* A file that does not say whose it is: the index may. */
struct scrub_nameless {
    char *path;
    char *why;
    uint64_t bucket_id;
    uint64_t inode;
    enum validate_finding what;
};

enum { SCRUB_NAMELESS_MAX = 50 };

struct scrub_cursor {
    enum scrub_phase phase;
    uint64_t bucket_id;           /* what is before it is done; */
    uint64_t fan;                 /* of its files the directories below this one, */
    char name[ATTR_NAME_MAX + 1]; /* of its names those up to this one */
    struct scrub_nameless nameless[SCRUB_NAMELESS_MAX];
    size_t nameless_count;
};

void scrub_cursor_done(struct scrub_cursor *c);

int scrub_cursor_save(const struct scrub_cursor *c, const struct mountpath *mp, const char *job_id,
                      struct validate_part *part, struct error *err);
/* At the beginning, and the part empty, where there is none of this job, or it cannot be read; then
 * err says why, and the code is not 0. */
int scrub_cursor_load(struct scrub_cursor *c, const struct mountpath *mp, const char *job_id,
                      struct validate_part *part, struct error *err);
