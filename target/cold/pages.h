/* The pages of a backend's list for a job whose targets all go through it: one target, the list's
 * owner (list_owner.h), reads each page once, and keeps it for a while for the others
 * (list_pages.h).
 *
 *   page behind "b"?  ─▶ the owner: GET /v1/list/{bucket id}/backend?job=…  ─▶ kept, or the backend
 *                        it does not answer: the next in rank, and at last this target itself
 *
 * A page is known by where it begins, so that it does not matter who has given the one before.
 * What the owner says of the backend (it refuses, it is not there) is the answer, as if this target
 * had asked itself. */
#pragma once

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct job;
struct target;

enum { COLD_PAGES_LOST_MAX = 3 };

struct cold_pages {
    struct target *target;
    uint64_t bucket_id;
    const char *prefix;
    bool skips_internal;
    const struct job *job;
    const atomic_bool *stop; /* ends it with E_ABORTED */
    /* The list is merged with what is here: what was here alone when the page was read, and has
     * gone to the backend since, must not be missing in both. */
    bool merged;
    char *lost[COLD_PAGES_LOST_MAX]; /* owners that did not answer */
    size_t lost_count;
};

void cold_pages_done(struct cold_pages *p);
/* Blocks: the page behind `after`, as the route backend_list gives it
 * (docs/reference/http-api.md). */
int cold_pages_read(struct cold_pages *p, const char *after, json_t **out, struct error *err);
