/* The key of a record ordered by content: what one of its members holds.
 *
 * The member is the one whose path is the record's name and the extension.  Its contents, without
 * white space around them, are a whole number of 64 bits, a decimal number, or a text of at most
 * SORT_CONTENT_MAX bytes without NUL.  Contents of other members are not read.
 *
 * Whole and decimal numbers become unsigned ones that compare as they do. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "sort/shard/group.h"
#include "sort/spec/spec.h"

/* Pure: whether the text is a key of the type.  *number for numbers. */
bool content_number(enum sort_content_type type, const char *text, size_t len, uint64_t *number);

struct content_key {
    enum { CONTENT_FOUND, CONTENT_MISSING, CONTENT_MALFORMED } state;
    uint64_t number;
    struct buf text; /* trimmed */
};

/* `fd` has the shard's tar from byte `at` on. */
int content_read(const struct sort_spec *spec, int fd, uint64_t at, const struct group_record *r,
                 struct content_key *out, struct error *err);
