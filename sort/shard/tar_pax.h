/* The records of PAX extended headers (POSIX.1-2001): "27 mtime=1700000000.123456\n".  Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

struct pax_record {
    const char *key;
    size_t key_len;
    const char *value;
    size_t value_len;
    const char *raw; /* the whole record, its length and newline included */
    size_t raw_len;
};

/* Takes the next record off [*at, *at + *left).  1, 0 at the end, -1 where the text is malformed.
 */
int pax_next(const char **at, size_t *left, struct pax_record *r);
bool pax_key_is(const struct pax_record *r, const char *key);
int pax_number(const struct pax_record *r, uint64_t *out); /* decimal; 0 or -1 */

/* Global headers hold until another one says otherwise: `globals` is the records in force, and an
 * empty value takes its key out of them.  Both texts are well-formed. */
void pax_globals_update(struct buf *globals, const char *text, size_t len);
/* What a member's own extended header becomes when the globals are written into it: the globals
 * that it does not set itself, in their order, then its own records. */
void pax_fold(const struct buf *globals, const char *own, size_t own_len, struct buf *out);
