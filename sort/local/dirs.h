/* Shards as files: what a sort has for buckets where there is no cluster.
 *
 * Input shards are files below one directory, output shards below another; a slash in a name is a
 * directory, and names that would lead out of theirs are refused (E_INVALID).  What is not done yet
 * lies in a hidden directory within the output's: dirs_show() gives the outputs their names, all or
 * none, and dirs_close() removes what has none.  Functions that have the form of one in env.h are
 * for that; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "sort/base/env.h"
#include "sort/spec/spec.h"

struct dirs;

/* The output's directory is made where it is absent; it, and what was made above it, goes again
 * where nothing came into it.
 * key_map: the file of the external key map; NULL: the one beside the shards that is called as the
 * request's object. */
int dirs_open(const char *in, const char *out, const char *key_map, struct dirs **d,
              struct error *err);
void dirs_close(struct dirs *d);
DEFINE_CLEANUP(struct dirs, dirs_close);

/* --- input ------------------------------------------------------------------------------------ */

/* As pin_shards(), of those shards that owns() wants; the files are not held. */
int dirs_list(const struct dirs *d, const struct sort_spec *spec,
              bool (*owns)(void *owner, const char *name), void *owner,
              int (*each)(void *arg, const struct sort_shard_info *info, struct error *err),
              void *arg, struct error *err);
/* Calls each() for every file below a directory, by its path within.  Symbolic links to directories
 * are followed; E_INVALID where one leads to a directory above it. */
int dirs_walk(const char *dir, int (*each)(void *arg, const char *name, struct error *err),
              void *arg, struct error *err);
int dirs_open_shard(void *dirs, const char *name, int *fd, struct error *err);
int dirs_read_key_map(void *dirs, const struct sort_spec *spec,
                      int (*feed)(void *arg, const void *data, size_t len, struct error *err),
                      void *arg, struct error *err);
int dirs_open_work_file(void *dirs, int *fd, struct error *err);

/* --- output ----------------------------------------------------------------------------------- */

int dirs_output_check(void *dirs, const char *name, struct error *err);
int dirs_output_begin(void *dirs, const char *name, uint64_t size, struct sort_output **out,
                      struct error *err);
int dirs_output_write(void *dirs, struct sort_output *out, const void *data, size_t len,
                      struct error *err);
int dirs_output_finish(void *dirs, struct sort_output *out, struct error *err);
void dirs_output_discard(void *dirs, struct sort_output *out);
int dirs_outputs_prune(void *dirs, bool (*wanted)(void *arg, const char *name), void *arg,
                       struct error *err);
/* E_OBJECT_EXISTS where a name is taken.  Outputs and their names are durable when it returns. */
int dirs_show(struct dirs *d, struct error *err);
