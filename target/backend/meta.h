/* User metadata on its way to a backend and back.
 *
 *   Dfc-Meta-Colour: blue ◀─▶ "colour\0blue\0" ◀─▶ x-amz-meta-colour: blue
 *
 * Tags and the sizes of parts have names of their own there: x-amz-meta-dfc-tags, -dfc-parts.
 *
 * A backend's row says by which prefix its headers have it (backend_ops.meta_prefix), and whether
 * it takes it (takes_meta).  What it could not give back as it was is refused before anything is
 * sent.  Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "target/backend/backend.h"

/* Not those of the pairs, which a backend that is a cluster of ours would refuse. */
#define BACKEND_TAGS_NAME "dfc-tags"
#define BACKEND_PARTS_NAME "dfc-parts"

/* The next pair; *pos starts at 0, false at the end.  Those that the target keeps for itself
 * (object.h) are left out. */
bool backend_meta_next(const char *pairs, size_t len, size_t *pos, const char **name,
                       const char **value);
/* What the bytes are an encoding of (OBJECT_BACKEND_ENCODING): "gzip", which backends keep beside
 * the metadata and give again with the bytes; NULL: nothing. */
const char *backend_meta_encoding(const char *pairs, size_t len);
/* The next header that an object keeps, as `name` of a request and its value; as
 * backend_meta_next(). */
bool backend_meta_kept(const char *pairs, size_t len, size_t *pos, const char **name,
                       const char **value);
/* What a reply's head has of both, as pairs: for another object of the same bytes. */
void backend_meta_carry(const struct backend_facts *facts, struct buf *out);
/* E_UNSUPPORTED where the backend of this URL has no place for metadata; E_INVALID with what is
 * wrong with it. */
int backend_meta_check(const char *backend_url, const char *pairs, size_t len, struct error *err);
/* What a reply's head has, into out->meta: all of it, or, where that is more than can be kept,
 * nothing and out->meta_lost. */
void backend_meta_read(const struct backend_ops *ops, const struct http_head *head,
                       struct backend_facts *out);
