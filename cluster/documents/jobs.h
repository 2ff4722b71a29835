/* The jobs that the cluster remembers: lookup, JSON form, and the one way in which they change. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/documents/job.h"
#include "common/error.h"

struct document; /* cluster/documents/document.h */

struct jobs {
    uint64_t version;
    size_t count;
    struct job **jobs; /* in order of creation; each reference-counted and immutable */
    struct document *memory;
};

const struct job *jobs_find(const struct jobs *j, const char *id); /* or NULL */

struct jobs_change {
    const struct job *const *put; /* none twice */
    size_t put_count;
    const char *const *drop; /* sorted ids */
    size_t drop_count;
};

/* For commands: a new document that differs from `old` in one item.  x_with() puts an item in
 * (replacing the one of its name), x_without() leaves one out; both set `next` to a document with
 * version + 1, which the caller owns.  A job that is known keeps its place; a new one goes to the
 * end, and so does one that is dropped and put. */
/* The same for many items.  False: `old` lacks one that is to be dropped. */
bool jobs_changed(const struct jobs *old, const struct jobs_change *c, struct jobs *next);
void jobs_with(const struct jobs *old, const struct job *j, struct jobs *next);
void jobs_without(const struct jobs *old, const char *id, struct jobs *next);
json_t *jobs_to_json(const struct jobs *j);
int jobs_from_json(json_t *doc, struct jobs *out, struct error *err);
