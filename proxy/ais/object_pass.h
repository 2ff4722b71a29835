/* An object is read and written again through this proxy: native calls both, with a pipe between
 * them.  So buckets of every kind can be source and destination; quotas and names are those of a
 * read and of a PUT.
 *
 *   source's target ── GET ──▶ [pipe] ──▶ PUT ── destination's target
 *                        │                 │
 *                        └ its head: type, metadata, tags, checksum ─▶ the head of the PUT
 *
 * With `props` the object gets other user metadata and keeps its bytes: the PUT is on condition
 * that nobody has written the object since, else both begin again.  That costs as much as a
 * read and a write of the bytes, and gives the object a new version.
 *
 * A pass counts as a relay (relay.h).  Memory is one pipe. */
#pragma once

#include <jansson.h>

#include "net/http/handler.h"

struct pass_spec {
    const char *bucket, *object;
    const char *to_bucket, *to_object;
    json_t *props; /* {name: text}, as custom_props_check() takes them; NULL: the source's alone */
    bool replaces; /* props take the place of all that the source has */
};

/* Replies 200 or the error, later.  Rights have been asked for; the body is over.  Texts of `spec`
 * are copied. */
void object_pass(struct http_request *req, const struct pass_spec *spec);
