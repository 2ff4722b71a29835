/* What the files of a plan share: plan.c, plan_files.c, plan_table.c. */
#pragma once

#include <stdbool.h>

#include "common/arena.h"
#include "vdisc/layers.h"
#include "vdisc/plan.h"

#define PLAN_FIRST_BLOCK 65536

/* A file of the list. */
struct named {
    struct plan_part part;
    uint32_t entry;
    uint64_t line;
    struct checksum_value checksum;
    bool older; /* of PLAN_OLDER */
};

struct plan {
    struct arena *texts;
    struct iso_entry *entries;
    struct layer_entry *layers; /* as many */
    size_t count, room, layer_room;
    size_t removals; /* among them */
    struct named *files;
    size_t file_count, file_room;
    struct iso_tree *tree;
    struct iso_layout *layout;
    uint32_t *first; /* of each content, the file that stands for it */
    uint32_t content_count;
    struct iso_part *parts;      /* of each content */
    struct plan_object *objects; /* in the order of extents */
    uint32_t object_count;
    bool ordered;                /* layers are applied, and files are by object */
    struct plan_object *unknown; /* plan_unknown() */
    uint32_t unknown_count;
    struct plan_file *fresh; /* plan_files() */
    size_t fresh_count;
    uint64_t table_max; /* struct plan_options */
};

/* Layers are applied, and files are by object. */
int plan_put_in_order(struct plan *p, const struct plan_options *o, struct error *err);
/* Files have moved to other objects: their order is made anew. */
int plan_sort_files(struct plan *p, struct error *err);
/* What was learnt of plan_unknown(). */
void plan_take_known(struct plan *p);
/* The file that stands for a content. */
const struct named *plan_stands_for(const struct plan *p, uint32_t content);
/* Is the file all of its object? */
bool plan_is_whole(const struct plan *p, const struct named *f);
