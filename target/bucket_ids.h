/* A set of bucket ids, small and seldom changed; any thread may ask and change it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bucket_ids;

struct bucket_ids *bucket_ids_new(void);
void bucket_ids_free(struct bucket_ids *s);
bool bucket_ids_has(struct bucket_ids *s, uint64_t id);
void bucket_ids_add(struct bucket_ids *s, uint64_t id);    /* twice is once */
void bucket_ids_remove(struct bucket_ids *s, uint64_t id); /* absent is fine */
