/* Bringing a mountpath's index into step with its files.
 *
 *   reindex_intents()   after a crash of the process: the names whose change was under way
 *   reindex()           at a start whose index began anew: every file, before anything is served
 *   reindex_online()    every file, into a second index, while changes and lists go on
 *
 * A file whose bytes were never promised to be on the disk (no ATTR_DURABLE) was lost with power
 * where its length is not that of its attribute, or, when power was lost since (crash_state.h), its
 * checksum is another one, or there is none: it is removed and counted.  A durable one with
 * a wrong length, or a file without a readable attribute, is damage: it is left alone, logged and
 * counted, and reading it is an error.
 *
 * object_files.h says in which order the files are looked at. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "target/disk/mountpath.h"

struct reindex_report {
    atomic_ullong looked_at; /* files; grows while it runs */
    uint64_t objects;        /* in the index; tombstones included */
    uint64_t lost;
    uint64_t unreadable;
    uint64_t ms;
    /* So many files more are looked at, so many bytes more compared with a checksum; or NULL. */
    void (*on_progress)(void *ctx, unsigned files, size_t bytes);
    void *ctx;
};

/* Nothing else touches the mountpath. */
int reindex_intents(struct mountpath *mp, struct reindex_report *report, struct error *err);
int reindex(struct mountpath *mp, struct reindex_report *report, struct error *err);
/* E_CANCELLED when *stop becomes true, E_EXISTS where one is under way, E_IO where the new index
 * missed a change: the old one stays, and it can be tried again. */
int reindex_online(struct mountpath *mp, const atomic_bool *stop, struct reindex_report *report,
                   struct error *err);
