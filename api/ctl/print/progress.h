/* A progress bar on standard error; thread-safe.  Off, it costs a comparison. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "api/ctl/ctl.h"

struct progress;

/* Draws only where standard error is a terminal, without --quiet and -o json. */
struct progress *progress_new(const struct ctl *ctl, const char *title);
void progress_free(struct progress *p); /* wipes the bar */

/* What is to be done in all, as far as it is known by now: bytes, and things. */
void progress_total(struct progress *p, uint64_t bytes, uint64_t things);
void progress_add(struct progress *p, int64_t bytes, uint64_t things);
/* For what knows its own state: the bar at `percent`, and a text. */
void progress_show(struct progress *p, double percent, const char *text);
/* Wipes the bar for a line that someone else prints now; the next progress draws it again. */
void progress_clear(struct progress *p);

/* A dfc_progress for one transfer: context is a struct progress_part. */
struct progress_part {
    struct progress *all;
    bool alone; /* there is no other: its total is that of all */
    uint64_t done;
};
void progress_part_moved(void *part, uint64_t done, uint64_t total);
