/* Where each parameter of a running daemon has its value from, and the cluster's settings, which
 * stand in for what nobody has given to this daemon itself:
 *
 *   default < cluster < file < environment < command line < a change while it runs
 *
 * All changes of live parameters go through here, so that none of them undoes another.  Any thread
 * may call, but for new, begin and free.  The rows, values and arguments are the caller's, and
 * outlive it. */
#pragma once

#include <stddef.h>

#include "common/error.h"
#include "common/param.h"

struct daemon_sources;

/* All values are defaults, as in tests. */
struct daemon_sources *daemon_sources_new(const struct param_row *rows, void *values,
                                          const char *const *live);
void daemon_sources_free(struct daemon_sources *s); /* NULL is fine */
/* They were loaded from what main() was given: before there are other threads. */
void daemon_sources_begin(struct daemon_sources *s, int argc, char **argv);

/* params_set_live(); the value then is from this run. */
int daemon_sources_set(struct daemon_sources *s, const char *name, const char *text,
                       struct error *err);
/* The same, of a parameter that the caller has changed. */
void daemon_sources_set_elsewhere(struct daemon_sources *s, const char *name);

/* The sources were read again: params_take(), and then what the cluster says of the others.  A live
 * parameter that no change of this run holds has the value of `now`, even if `last` has it, too. */
void daemon_sources_take(struct daemon_sources *s, const void *last, const void *now,
                         void (*fn)(void *ctx, const struct param_row *row, _Bool taken),
                         void *ctx);

/* What the cluster has set: text_of() gives the text of a live parameter, or NULL where there is
 * none: then the default is in force again. */
void daemon_sources_cluster(struct daemon_sources *s,
                            const char *(*text_of)(const void *ctx, const char *name),
                            const void *ctx);

/* "default", "cluster", "file", "environment", "command line", "run": of the row with that
 * index. */
const char *daemon_sources_name(struct daemon_sources *s, size_t row);
