/* Rows that a thread of their own reads ahead of the thread that takes them: reading the tables of
 * a merge, merging them, and what follows are then three threads' work.
 *
 * Rows and names are copied into a few batches, below 1 MiB in all.  The rows, their order, the end
 * and an error are the source's.  The source belongs to the thread until ahead_free(). */
#pragma once

#include "common/cleanup.h"
#include "sort/rows/rows.h"

struct ahead;

/* `thread`: its name.  E_OVERLOAD where there is no thread to be had. */
int ahead_new(const char *thread, struct row_source source, struct ahead **out, struct error *err);
/* Waits for the source's next row: one that may wait for a peer must be ended first
 * (links_stop()). */
void ahead_free(struct ahead *a);
DEFINE_CLEANUP(struct ahead, ahead_free);
/* To be taken by one thread. */
struct row_source ahead_rows(struct ahead *a);
