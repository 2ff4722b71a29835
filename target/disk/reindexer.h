/* One thread for each mountpath that looks after its index while the target runs:
 *
 *   - it rebuilds the index (reindex_online) when it is asked to, and when the index has turned out
 *     to be stale: lists are refused until that is done, and complete again from then on
 *   - when nothing has changed for REINDEXER_IDLE_MS it brings everything to the disk and has the
 *     marker written (index_checkpoint), so that a loss of power then costs no rebuild; and
 *     then, once after the start and once a day, it compares the whole index (index_verify)
 *
 * Any thread may call anything but new and free. */
#pragma once

#include <stdbool.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "target/disk/reindex.h"

/* A day between two looks at everything. */
#define REINDEXER_VERIFY_MS 86400000

enum { REINDEXER_LOOK_MS = 1000, REINDEXER_IDLE_MS = 5000, REINDEXER_RETRY_MS = 60000 };

struct reindexer;

/* The mountpath, with its index, outlives it. */
int reindexer_new(struct mountpath *mp, struct reindexer **out, struct error *err);
void reindexer_free(struct reindexer *r); /* ends soon, whatever it is about; NULL is fine */

/* Rebuild now; returns at once.  E_EXISTS where it is at it, or is about to be. */
int reindexer_ask(struct reindexer *r, struct error *err);

struct reindexer_status {
    bool running;        /* or about to begin */
    uint64_t looked_at;  /* files, of this run or the last one */
    uint64_t runs;       /* that have ended */
    uint64_t ms;         /* of the last one */
    struct error failed; /* the last one's, code 0 where it did not fail */
};
void reindexer_status(struct reindexer *r, struct reindexer_status *out);
