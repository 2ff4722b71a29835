/* The slice entries of a chunk beside an array: each byte of the array says which slice it shows,
 * and where in it.  Lists are compared by that. */
#pragma once

#include "mount/volume/slices.h"

struct slice_cell {
    uint64_t slice; /* 0: zero */
    uint32_t offset;
};

/* Lays the entries into `cells`, one after another, byte by byte. */
void slice_model_lay(const struct slice_list *list, struct slice_cell *cells, uint32_t chunk_bytes);
/* Aborts with a sentence if resolving any of the ranges shows something else, or has extents that
 * do not follow each other or could be one. */
void slice_model_check(const struct slice_list *list, uint32_t at, uint32_t length,
                       uint32_t chunk_bytes, struct arena *arena);
/* The same of pruning: what is shown stays, and each entry that is left shows something. */
void slice_model_check_prune(const struct slice_list *list, uint32_t chunk_bytes,
                             struct arena *arena);
