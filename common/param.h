/* Parameters of a daemon: one table of rows, one struct of values, four sources.
 *
 * Rows live in the daemon's own .def and look like
 *
 *     PARAM(size, http_body_memory, "256KiB", "4KiB", "64MiB", "memory for one request's body")
 *
 * type is one of size (uint64_t bytes), duration (uint64_t ms), count (uint64_t), percent
 * (uint64_t, 0 to 100, with or without a %), boolean (bool), text (char *).  default/min/max are
 * texts in the notation of parse.h ("" = no bound). Sources, the later winning: the default, the
 * JSON file (--config FILE), the environment (DFC_HTTP_BODY_MEMORY), the command line
 * (--http-body-memory=512KiB).  An unknown name or a value out of bounds is an error that names the
 * source, the parameter and its bounds.  The struct is zeroed before its first use; params_free
 * ends it. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

enum param_type {
    PARAM_size,
    PARAM_duration,
    PARAM_count,
    PARAM_percent,
    PARAM_boolean,
    PARAM_text
};

struct param_row {
    const char *name; /* NULL ends a table */
    enum param_type type;
    size_t offset; /* of the value in the struct */
    const char *default_text;
    const char *min_text;
    const char *max_text;
    const char *help;
};

/* Where a value is from, the later winning.  CLUSTER and RUN are the daemon's to say. */
enum param_source {
    PARAM_FROM_DEFAULT,
    PARAM_FROM_CLUSTER, /* a setting of the cluster */
    PARAM_FROM_FILE,
    PARAM_FROM_ENVIRONMENT,
    PARAM_FROM_COMMAND_LINE,
    PARAM_FROM_RUN, /* changed while the daemon runs */
};

/* Field types, for building the struct out of the same .def rows. */
typedef uint64_t param_size_t;
typedef uint64_t param_duration_t;
typedef uint64_t param_count_t;
typedef uint64_t param_percent_t;
typedef _Bool param_boolean_t;
typedef char *param_text_t;

int params_defaults(const struct param_row *rows, void *values, struct error *err);
int params_from_json(const struct param_row *rows, void *values, json_t *obj, const char *source,
                     struct error *err);
int params_from_env(const struct param_row *rows, void *values, struct error *err);
/* All four sources.  Takes "--name=value" and "--name value"; `--config FILE` reads the file before
 * the environment.  Sets *help when --help was given, and then leaves the values at their
 * defaults; anything else is E_INVALID. */
int params_load(const struct param_row *rows, void *values, int argc, char **argv, _Bool *help,
                struct error *err);
/* Which of those four each row's value is from, in the order of the rows.  What params_load() would
 * refuse is passed over. */
void params_sources(const struct param_row *rows, int argc, char **argv,
                    enum param_source *sources);
int params_set(const struct param_row *rows, void *values, const char *name, const char *text,
               const char *source, struct error *err);
void params_free(const struct param_row *rows, void *values); /* the texts */
/* A value that params_set_live() may change while others read it. */
#define param_live(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
/* While the daemon runs; `live` (NULL-terminated) names those that can change then: numbers and
 * booleans, which every reader reads with param_live().  E_NOT_FOUND: no such parameter;
 * E_UNSUPPORTED: it needs a restart; E_INVALID: its bounds. */
int params_set_live(const struct param_row *rows, void *values, const char *const *live,
                    const char *name, const char *text, struct error *err);
/* What has changed between two readings of the sources: where `now` is other than `last`, and the
 * row is in `live` and no text, the value in force changes to it; fn() is told of every such row.
 */
void params_take(const struct param_row *rows, void *values, const void *last, const void *now,
                 const char *const *live,
                 void (*fn)(void *ctx, const struct param_row *row, _Bool taken), void *ctx);
/* [{"name", "type", "value", "default", "min", "max", "live", "help"}]; value as in params_json(),
 * the bounds as they stand in the table. */
json_t *params_describe(const struct param_row *rows, const void *values, const char *const *live);
json_t *params_json(const struct param_row *rows, const void *values);
void params_help(const struct param_row *rows, struct buf *out);     /* text for --help */
void params_man(const struct param_row *rows, struct buf *out);      /* items of a manual page */
void params_markdown(const struct param_row *rows, struct buf *out); /* table for docs/ */
