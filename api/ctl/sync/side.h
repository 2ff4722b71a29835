/* One side of a sync: the files below a directory, or the objects below a prefix, in bytewise order
 * of their names.
 *
 * The names of files are in memory; those of objects are listed page by page. */
#pragma once

#include "api/ctl/names/name.h"
#include "api/ctl/sync/rule.h"
#include "api/dfc.h"

struct side;

struct side_problems {
    void (*problem)(void *context, const char *path, const struct error *err);
    void *context;
};

/* Walks the directory at once.  What is there and cannot be read is a problem.  A directory that
 * does not exist has nothing. */
struct side *side_of_files(const char *directory, const struct side_problems *p);
int side_of_objects(struct dfc_client *client, const struct object_name *prefix, struct side **out,
                    struct dfc_error *err);
/* 1 and the next entry (valid until the next call), 0 at the end, or an enum dfc_result below 0. */
int side_next(struct side *s, const struct sync_entry **entry, struct dfc_error *err);
void side_free(struct side *s);
