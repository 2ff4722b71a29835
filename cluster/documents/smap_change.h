/* The map's JSON form, and the one way in which it changes.  A changed map remembers the earlier
 * sets of owners of the old one (cluster/documents/layout.h). */
#pragma once

#include <jansson.h>

#include "cluster/base/document.h"
#include "cluster/documents/smap.h"
#include "common/error.h"

/* For commands: a new document that differs from `old` in one item.  x_with() puts an item in
 * (replacing the one of its name), x_without() leaves one out; both set `next` to a document with
 * version + 1, which the caller owns. */
/* x_changed() does it for many items; it returns a dropped name that `old` lacks, or NULL. */
const char *smap_changed(const struct smap *old, const struct document_change *c,
                         struct smap *next);
void smap_with(const struct smap *old, const struct node *n, struct smap *next);
void smap_without(const struct smap *old, const char *id, struct smap *next);
/* The same nodes, and no earlier owners. */
void smap_settled(const struct smap *old, struct smap *next);

json_t *smap_to_json(const struct smap *m);
int smap_from_json(json_t *doc, struct smap *out, struct error *err);
