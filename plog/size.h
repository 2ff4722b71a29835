/* The size of a plog, without reading an index if no segment has a cut.  Pure.
 *
 * It is what a reader would find: all that was acknowledged before the call. */
#pragma once

#include <stdint.h>

#include "plog/head.h"
#include "plog/store.h"

struct plog_size {
    struct plog_head head;
    char etag[PLOG_ETAG_MAX]; /* of the head; of an object that is no plog, too */
    uint64_t size, bytes;     /* of the file; of data in its segments */
    size_t records;           /* sessions that are open, or not merged yet */
};

/* E_NOT_FOUND, E_INVALID: no plog. */
int plog_size(const struct plog_store *st, const char *object, struct plog_size *out,
              struct error *err);
