/* The cluster-wide settings as the snapshot holds them: names and texts.
 * cluster/documents/settings.h knows what they mean. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/base/document.h"
#include "common/error.h"

struct config_value {
    const char *name;
    const char *text;
};
struct cluster_config {
    uint64_t version;
    size_t count;
    struct config_value *values; /* sorted by name */
    struct document *memory;
};

const char *config_get(const struct cluster_config *c, const char *name); /* or NULL */

/* For commands: a new document that differs from `old` in one item.  x_with() puts an item in
 * (replacing the one of its name), x_without() leaves one out; both set `next` to a document with
 * version + 1, which the caller owns. */
/* x_changed() does it for many items; it returns a dropped name that `old` lacks, or NULL. */
const char *config_changed(const struct cluster_config *old, const struct document_change *c,
                           struct cluster_config *next);
void config_with(const struct cluster_config *old, const char *name, const char *text,
                 struct cluster_config *next);
void config_without(const struct cluster_config *old, const char *name,
                    struct cluster_config *next);
json_t *config_to_json(const struct cluster_config *c);
int config_from_json(json_t *doc, struct cluster_config *out, struct error *err);
