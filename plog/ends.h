/* The end of a segment, index and footer, as the map needs it.  Pure: the caller reads the last
 * bytes of an object, and reads several segments at once if it likes. */
#pragma once

#include "common/buf.h"
#include "plog/map.h"

struct plog_end {
    struct plog_footer footer;
    struct buf bytes; /* of the object's end: index and footer are the last ones */
};

/* Appends the last `len` bytes of the object to `out`; all of a shorter object. */
typedef int plog_tail_fn(void *ctx, const char *segment, uint64_t len, struct buf *out,
                         struct error *err);

/* Is there memory for what the footer announces (plog_footer_memory())? */
typedef int plog_admit_fn(void *ctx, const struct plog_footer *f, struct error *err);

/* One call of tail(), or two if the index is long; admit(), unless it is NULL, is called before the
 * second.  The messages name the segment.  The caller calls plog_end_done() in any case.  What
 * tail() and admit() say; E_CORRUPT, E_UNSUPPORTED. */
int plog_end_read(plog_tail_fn *tail, plog_admit_fn *admit, void *ctx, const char *segment,
                  struct plog_end *end, struct error *err);
/* E_CORRUPT: the end is another segment's, or damaged. */
int plog_end_add(const struct plog_end *end, const char *segment, struct plog_map *map,
                 struct error *err);
void plog_end_done(struct plog_end *end);
#define _cleanup_plog_end_ _cleanup_(plog_end_done)
