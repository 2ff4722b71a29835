/* An array of rows, ordered by the id that each has as its first member, a uint64_t.
 *
 *   size_t at = id_rows_place(rows, count, sizeof *rows, id, &found);
 *   if (!found)
 *       rows = id_rows_insert(rows, &count, sizeof *rows, at, id);
 *
 * The caller has the lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the row is, or would be. */
size_t id_rows_place(const void *rows, size_t count, size_t size, uint64_t id, bool *found);
/* Makes a row at this place, zero but for its id.  Returns the array, which may have moved. */
void *id_rows_insert(void *rows, size_t *count, size_t size, size_t at, uint64_t id);
