/* Filling a mountpath's index anew from its files.  Called while nothing else touches the
 * mountpath.
 *
 * A file whose length is not that of its attribute, and whose bytes were never promised to be on
 * the disk (no ATTR_DURABLE), was lost with power: it is removed and counted.  A durable one with
 * a wrong length, or a file without a readable attribute, is damage: it is left alone, logged and
 * counted, and reading it is an error. */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "target/mountpath.h"

struct reindex_report {
    uint64_t objects; /* tombstones included */
    uint64_t lost;
    uint64_t unreadable;
    uint64_t ms;
};

int reindex(struct mountpath *mp, struct reindex_report *report, struct error *err);
