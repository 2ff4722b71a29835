/* The tags of an object, which are the pair ATTR_TAGS of its attribute: "a=1&b=2", escaped like a
 * query.  Pure. */
#pragma once

#include "common/arena.h"
#include "common/error.h"
#include "s3/tags.h"

struct attr;
struct buf;

/* The text of the pair that `text` says, in the one form that is stored; nothing for no tags.
 * E_INVALID: too many tags, or a tag that S3 refuses. */
int attr_tags_normalize(const char *text, struct buf *out, struct error *err);
/* The tags of an object, in the arena: none where it has no pair, or one that cannot be read. */
void attr_tags_read(const struct attr *a, struct arena *arena, struct s3_tags *out);
