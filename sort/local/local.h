/* A whole sort in one process, over files: what `dfcctl sort local` does.
 *
 * It is the same task as a target's, the only one of its job; so the same request over the same
 * shards makes the same bytes as a cluster.  What the request calls buckets are two directories
 * (dirs.h). Output names appear when everything is done; a sort that fails or is stopped leaves
 * none.
 *
 * The input's files must stay as they are meanwhile: there is nothing here that could hold them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "sort/spec/spec.h"

struct sort_local;

struct sort_local_config {
    const struct sort_spec *spec; /* outlives the sort */
    const char *in, *out;         /* directories */
    const char *key_map;          /* file of the external key map, or NULL: see dirs.h */
    uint64_t memory_bytes;        /* of the tables, unless the request says more or less */
    uint64_t key_map_bytes;
    unsigned threads; /* of each phase, unless the request says more or less; 0: one for each CPU,
                         two that create */
};

/* E_OBJECT_EXISTS where the output's directory has a file that the output template could name. */
int sort_local_new(const struct sort_local_config *config, struct sort_local **out,
                   struct error *err);
/* Once.  It runs in threads of its own, which signals do not reach, until end() has returned. */
int sort_local_start(struct sort_local *s, struct error *err);
bool sort_local_wait(struct sort_local *s, unsigned ms); /* false: it goes on */
void sort_local_stop(struct sort_local *s);              /* it ends soon, with E_ABORTED */
int sort_local_end(struct sort_local *s, struct error *err);
json_t *sort_local_status(const struct sort_local *s); /* that of its task; any thread */
void sort_local_free(struct sort_local *s);
DEFINE_CLEANUP(struct sort_local, sort_local_free);
