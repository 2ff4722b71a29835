/* A new object that this target makes and owns itself: object_make.h without the way through HTTP.
 * Its bytes go straight into the store.  That is so in buckets that keep one copy of an object, on
 * one target: others have more to do for a PUT.
 *
 *   begin ─▶ write … ─▶ finish       the object appears
 *              └──────▶ discard      nothing of it stays
 *
 * A call may wait for the disk.  One thread at a time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct made_here;
struct target;

/* *out is NULL where the object goes by object_make(): another target owns it, or its bucket asks
 * for more than one copy here.  E_BUCKET_NOT_FOUND, E_NO_SPACE, E_QUOTA_EXCEEDED. */
int made_here_begin(struct target *t, uint64_t bucket_id, const char *name,
                    const char *content_type, struct made_here **out, struct error *err);
int made_here_write(struct made_here *m, const void *data, size_t len, struct error *err);
/* Frees.  E_STALE_MAP: another target owns the name by now. */
int made_here_finish(struct made_here *m, struct error *err);
void made_here_discard(struct made_here *m); /* frees */
