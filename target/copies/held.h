/* What a target has of a name, as it tells another (GET /v1/held/{bucket id}/{object}): the
 * question and its answer.  Who asks, and what an answer promises: earlier_owners.h. */
#pragma once

#include <stdbool.h>

#include "cluster/documents/state.h"
#include "net/http/server.h"
#include "target/store/object.h"

struct http_result;

/* Of several who were asked. */
struct earlier_answer {
    struct object_held held; /* the greatest; found false: nobody has anything */
    const char *node;        /* who has it: id … */
    const char *data_url;    /* … and address; both until fn() returns */
};

/* The question to one node, the caller's to free, and its answer.  of_these_owners: who knows later
 * owners says E_STALE_MAP. */
char *held_url(const struct cluster_state *s, const struct node *n, uint64_t bucket_id,
               const char *name, bool of_these_owners);
int held_of(struct http_result *r, const char *url, const char *node, struct object_held *out,
            struct error *err);

/* GET /v1/held/{bucket_id}/{object...} */
extern const struct http_route held_routes[];
