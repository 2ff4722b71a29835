/* One upload of what is pending: back.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct bucket;
struct cluster_state;
struct object_held;
struct target;

/* Blocks.  *memo: back_compare.h's, of this name.  0: there is nothing more to be done here,
 * whatever was; else it is to be tried again, and *of_backend says whether the backend has refused
 * it, which it may do with all names, or what concerns this one alone. */
int back_upload(struct target *t, uint64_t bucket_id, const char *name, uint64_t *memo,
                bool *of_backend, struct error *err);
/* What the owner of a name has of it, waiting: who knows later owners does not say. */
int back_ask_owner(struct target *t, const struct cluster_state *s, const struct bucket *b,
                   const char *name, struct object_held *held, struct error *err);
