/* Memory that ends all at once: many small allocations, one release.  Not thread-safe; an arena
 * has one owner (a request, a table, a parse).  Allocation aborts when memory is out. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"

struct arena;

struct arena *arena_new(size_t first_block_bytes); /* later blocks double, up to 1 MiB */
void arena_free(struct arena *a);
DEFINE_CLEANUP(struct arena, arena_free);
#define _cleanup_arena_ _cleanup_(arena_freep)
void *arena_alloc(struct arena *a, size_t size); /* 16-byte aligned, zeroed */
void *arena_bytes(struct arena *a, size_t size); /* unaligned, not zeroed: for text */
char *arena_strdup(struct arena *a, const char *text);
char *arena_strndup(struct arena *a, const char *text, size_t len); /* adds the NUL */
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void arena_reset(struct arena *a);        /* everything gone; the first block is kept */
size_t arena_used(const struct arena *a); /* bytes of memory held */
