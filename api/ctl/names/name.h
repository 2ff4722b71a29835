/* What users call things: pure. */
#pragma once

#include <stdbool.h>

#include "api/dfc.h"
#include "common/buf.h"
#include "common/error.h"

struct object_name {
    char *bucket;
    char *key; /* "" where only a bucket is named */
};

/* "bucket", "bucket/key", "dfc://bucket/key". */
int object_name_parse(const char *text, struct object_name *out, struct error *err);
void object_name_done(struct object_name *n);

/* Where the object does not exist: adds that cat, head and mv take no patterns. */
void name_note_pattern(const char *key, struct dfc_error *err);

/* The text behind the last slash; "" where it ends with one. */
const char *name_base(const char *path);

/* May the key become a path below a directory?  See path_flaw(). */
int name_check_local(const char *key, struct error *err);

/* The key becomes a prefix: empty, or with a slash at its end. */
void object_name_make_prefix(struct object_name *n);
/* Of two prefixes: a name below one is below the other, too. */
bool names_overlap(const struct object_name *a, const struct object_name *b);

/* Append prefix, a slash where the prefix has none at its end, and rest. */
void name_join(struct buf *out, const char *prefix, const char *rest);
