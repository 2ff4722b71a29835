/* What the primary fixes when it accepts a job, so that every participant computes the same: the
 * participants with their weights (placement of inputs and outputs), the bucket ids, the salt of
 * the arrangement.  It travels in the job's document as `plan`:
 *
 *   {"salt": "1b8f…16 hex digits", "input_bucket_id": 3, "output_bucket_id": 4,
 *    "ekm_bucket_id": 5 (of an external key map that is an object), "output_props": {…}, "targets":
 * [{"id": "t1", "weight": 1024, "data_url": "http://…"}, …]}
 *
 * The number of a target is its place in `targets`.  `output_props` are the output bucket's
 * properties, which sort/ only carries.  Pure. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "hrw/hrw.h"

struct sort_plan {
    uint64_t salt;
    uint64_t input_bucket_id;
    uint64_t output_bucket_id;
    uint64_t ekm_bucket_id; /* 0: none */
    size_t count;
    json_t *output_props;
    char **ids;
    char **data_urls;
    struct hrw_node *nodes; /* seeds of the ids, weights */
    size_t left_count;
    unsigned
        *left; /* numbers of the targets that the job goes on without, in the order of leaving */
};

json_t *sort_plan_json(const struct sort_plan *p);
/* Keeps nothing of the document, which may be one that other threads read: counting references to
 * it would be a write. */
int sort_plan_parse(json_t *doc, struct sort_plan **out, struct error *err);
void sort_plan_free(struct sort_plan *p);
DEFINE_CLEANUP(struct sort_plan, sort_plan_free);

/* The number of the target that owns an object of a bucket; as smap_owners() at that time, but for
 * those that were left out. */
unsigned sort_plan_owner(const struct sort_plan *p, uint64_t bucket_id, const char *name);
/* Since how many have left it has been that target's: 0: from the beginning; -1: it is not. */
int sort_plan_owned_since(const struct sort_plan *p, uint64_t bucket_id, const char *name,
                          unsigned number);
/* From now on this one owns nothing: what it owned others do, whom HRW names next.  Once is enough.
 */
void sort_plan_leave_out(struct sort_plan *p, unsigned number);
/* The number of target `id`, or -1. */
int sort_plan_number(const struct sort_plan *p, const char *id);
