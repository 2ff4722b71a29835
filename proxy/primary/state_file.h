/* A state document in a file: what a follower has seen last, what a new primary may begin from. */
#pragma once

#include "cluster/documents/state.h"

enum { STATE_FILE_MODE = 0600 }; /* backends' URLs and jobs are in it */

int state_file_write(const char *path, const struct cluster_state *s, struct error *err);
/* E_NOT_FOUND where there is none. */
int state_file_read(const char *path, struct cluster_state **out, struct error *err);
/* The same, with a line in the log: a cluster's next life begins from it. */
int state_file_import(const char *path, struct cluster_state **out, struct error *err);
/* E_EXISTS, with what to do instead, where the file is of a cluster: a proxy that has no documents
 * must not begin another one beside it. */
int state_file_refuse(const char *path, struct error *err);
