#include "net/daemon_sources.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"

struct daemon_sources {
    const struct param_row *rows;
    void *values;
    const char *const *live;
    int argc;
    char **argv;
    size_t count;
    pthread_mutex_t lock; /* what follows, and changes of live values */
    enum param_source *of;
    char **cluster; /* what the cluster has set, by row; NULL: nothing */
};

static size_t count_rows(const struct param_row *rows)
{
    size_t n = 0;
    while (rows[n].name != NULL)
        n++;
    return n;
}

struct daemon_sources *daemon_sources_new(const struct param_row *rows, void *values,
                                          const char *const *live)
{
    struct daemon_sources *s = xcalloc(1, sizeof *s);
    *s = (struct daemon_sources){
        .rows = rows, .values = values, .live = live, .count = count_rows(rows)};
    pthread_mutex_init(&s->lock, NULL);
    s->of = xcalloc(s->count + 1, sizeof *s->of);
    s->cluster = xcalloc(s->count + 1, sizeof *s->cluster);
    return s;
}

void daemon_sources_begin(struct daemon_sources *s, int argc, char **argv)
{
    s->argc = argc;
    s->argv = argv;
    params_sources(s->rows, argc, argv, s->of);
}

void daemon_sources_free(struct daemon_sources *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->count; i++)
        free(s->cluster[i]);
    free(s->cluster);
    free(s->of);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static size_t find(const struct daemon_sources *s, const char *name)
{
    size_t i = 0;
    while (i < s->count && strcmp(s->rows[i].name, name) != 0)
        i++;
    return i;
}

static bool is_live(const struct daemon_sources *s, const char *name)
{
    for (const char *const *live = s->live; *live != NULL; live++) {
        if (strcmp(*live, name) == 0)
            return true;
    }
    return false;
}

/* --- of this daemon (the lock is held by who writes) ------------------------------------------ */

static void mark_run(struct daemon_sources *s, const char *name)
{
    size_t i = find(s, name);
    if (i < s->count)
        s->of[i] = PARAM_FROM_RUN;
}

int daemon_sources_set(struct daemon_sources *s, const char *name, const char *text,
                       struct error *err)
{
    pthread_mutex_lock(&s->lock);
    int code = params_set_live(s->rows, s->values, s->live, name, text, err);
    if (code == 0)
        mark_run(s, name);
    pthread_mutex_unlock(&s->lock);
    return code;
}

void daemon_sources_set_elsewhere(struct daemon_sources *s, const char *name)
{
    pthread_mutex_lock(&s->lock);
    mark_run(s, name);
    pthread_mutex_unlock(&s->lock);
}

/* --- of the cluster (the lock is held) -------------------------------------------------------- */

/* A text that this release cannot take, of a newer one, leaves the default in force. */
static void apply_row(struct daemon_sources *s, size_t i)
{
    struct error err = ERROR_INIT;
    const struct param_row *row = &s->rows[i];
    const char *text = s->cluster[i];
    if (s->of[i] > PARAM_FROM_CLUSTER || (text == NULL && s->of[i] == PARAM_FROM_DEFAULT))
        return;
    s->of[i] = PARAM_FROM_CLUSTER;
    if (text != NULL && params_set_live(s->rows, s->values, s->live, row->name, text, &err) == 0)
        return;
    if (text != NULL)
        log_warn("the cluster's setting is not taken", lerr(&err));
    s->of[i] = PARAM_FROM_DEFAULT;
    params_set(s->rows, s->values, row->name, row->default_text, "default", NULL);
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

void daemon_sources_cluster(struct daemon_sources *s,
                            const char *(*text_of)(const void *ctx, const char *name),
                            const void *ctx)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->count; i++) {
        const char *text = is_live(s, s->rows[i].name) ? text_of(ctx, s->rows[i].name) : NULL;
        if (same_text(text, s->cluster[i]))
            continue;
        free(s->cluster[i]);
        s->cluster[i] = text != NULL ? xstrdup(text) : NULL;
        apply_row(s, i);
        log_info("setting of the cluster changed", lstr("name", s->rows[i].name),
                 lstr("value", text != NULL ? text : "(default)"),
                 lbool("in_force", s->of[i] <= PARAM_FROM_CLUSTER));
    }
    pthread_mutex_unlock(&s->lock);
}

/* --- of the sources, once more ---------------------------------------------------------------- */

struct taking {
    struct daemon_sources *sources;
    void (*fn)(void *ctx, const struct param_row *row, _Bool taken);
    void *ctx;
};

/* What has changed in a file is in force in place of a change of this run. */
static void taken_of(void *ctx, const struct param_row *row, _Bool taken)
{
    const struct taking *t = ctx;
    if (taken || strcmp(row->name, "log_level") == 0)
        t->sources->of[row - t->sources->rows] = PARAM_FROM_DEFAULT;
    t->fn(t->ctx, row, taken);
}

/* The row has the value of `now`, unless the cluster's is in force.  `last` does not tell: a file
 * may change while a daemon starts, before `last` is read. */
static void follow(struct daemon_sources *s, size_t i, enum param_source read, const void *now,
                   const struct taking *t)
{
    const struct param_row row[] = {s->rows[i], {.name = NULL}};
    s->of[i] = read;
    if (is_live(s, row->name) && (read > PARAM_FROM_CLUSTER || s->cluster[i] == NULL))
        params_take(row, s->values, s->values, now, s->live, t->fn, t->ctx);
}

void daemon_sources_take(struct daemon_sources *s, const void *last, const void *now,
                         void (*fn)(void *ctx, const struct param_row *row, _Bool taken), void *ctx)
{
    struct taking t = {.sources = s, .fn = fn, .ctx = ctx};
    _cleanup_free_ enum param_source *read = xcalloc(s->count + 1, sizeof *read);
    params_sources(s->rows, s->argc, s->argv, read);
    pthread_mutex_lock(&s->lock);
    params_take(s->rows, s->values, last, now, s->live, taken_of, &t);
    for (size_t i = 0; i < s->count; i++) {
        if (s->of[i] != PARAM_FROM_RUN)
            follow(s, i, read[i], now, &t);
        apply_row(s, i);
    }
    pthread_mutex_unlock(&s->lock);
}

const char *daemon_sources_name(struct daemon_sources *s, size_t row)
{
    static const char *const names[] = {
        [PARAM_FROM_DEFAULT] = "default",
        [PARAM_FROM_CLUSTER] = "cluster",
        [PARAM_FROM_FILE] = "file",
        [PARAM_FROM_ENVIRONMENT] = "environment",
        [PARAM_FROM_COMMAND_LINE] = "command line",
        [PARAM_FROM_RUN] = "run",
    };
    pthread_mutex_lock(&s->lock);
    enum param_source source = s->of[row];
    pthread_mutex_unlock(&s->lock);
    return names[source];
}
