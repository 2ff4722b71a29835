/* A page of a backend's list as text: what the route backend_list answers with, and what a job of
 * this target reads for itself and others (cold/pages.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

struct target;

struct cold_list_ask {
    uint64_t bucket_id;
    const char *backend;                                 /* the bucket's, its URL */
    const char *prefix, *delimiter, *start_after, *from; /* "" for none */
    bool skips_internal;                                 /* names are left out that … */
    size_t limit;
    const char *job;  /* NULL, or one whose targets all ask for the same pages (list_pages.h) … */
    uint64_t attempt; /* … and which of its attempts */
    uint64_t max_age_ms; /* an earlier answer does no longer; 0: it does */
};

/* Blocks.  Of a job: where another one reads the page, or has, that is it. */
int cold_list_text(struct target *t, const struct cold_list_ask *ask, struct buf *out,
                   struct error *err);
