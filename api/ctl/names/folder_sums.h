/* What folders of names hold: pure.
 *
 * Names come in bytewise order, so that a folder's names follow one another: a folder is handed out
 * as soon as a name beyond it comes, behind the folders within it, as du(1) does.  Memory is
 * bounded by the depth. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

struct folder_sum {
    uint64_t objects;
    uint64_t bytes;
};

/* name ends with a slash. */
typedef void folder_found(void *context, const char *name, const struct folder_sum *sum);

struct folder_sums {
    struct folder_sum all;
    size_t base;    /* bytes of each name that are above the first folder */
    uint64_t depth; /* folders deeper than this count for those above them only */
    folder_found *found;
    void *context;
    struct buf path; /* of the deepest open folder */
    struct open_folder *open;
    size_t open_count;
    size_t open_room;
};

void folder_sums_add(struct folder_sums *s, const char *name, uint64_t size);
void folder_sums_end(struct folder_sums *s); /* hands the open folders out */
void folder_sums_done(struct folder_sums *s);
