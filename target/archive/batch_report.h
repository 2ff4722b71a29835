/* The report on a batch, in the form that AIStore's SDK reads: a reply of two parts.
 *
 *     Content-Type: multipart/mixed; boundary=B
 *
 *     --B    {"out": [{"objname", "bucket", "provider", "archpath", "opaque", "size", "err_msg"}],
 *             "uuid"}
 *     --B    the archive
 *     --B--
 *
 * B is random: no object that was written before contains it.  Pure, but for that. */
#pragma once

#include <stdint.h>

struct batch_spec;
struct buf;

enum { BATCH_BOUNDARY_MAX = 33 };

/* What an entry is, seen before the reply begins. */
struct batch_seen {
    uint64_t size;
    char *missing; /* why; NULL: it is there */
};

void batch_report_boundary(char out[BATCH_BOUNDARY_MAX]);
/* All that comes before the archive; `seen` has an item for each entry. */
void batch_report_begin(const struct batch_spec *s, const struct batch_seen *seen,
                        const char *request_id, const char *boundary, struct buf *out);
void batch_report_end(const char *boundary, struct buf *out);
