/* Pages of targets' uploads as one page.  An upload is at one target, and each page has the first
 * uploads of its target behind the same place.  So the first `limit` of all are the page:
 *
 *     m = upload_merge_new(limit);
 *     for every target:  upload_merge_feed(m, its page)
 *     upload_merge_page(m)
 *
 * A page that says `more` is known up to its last upload: no upload behind that one is shown.
 * Memory: at most 2 * limit uploads, and the page that is read.  Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"

struct upload_merge;

struct upload_merge *upload_merge_new(size_t limit);
void upload_merge_free(struct upload_merge *m);
DEFINE_CLEANUP(struct upload_merge, upload_merge_free);
/* A target's page, {"uploads": [{"object", "upload", "time", …}], "more"}.  Uploads are by object,
 * then by time, then by id.  E_CORRUPT: it is none. */
int upload_merge_feed(struct upload_merge *m, const char *text, size_t len, struct error *err);
/* The page of all, in the same form. */
void upload_merge_page(const struct upload_merge *m, struct buf *out);
