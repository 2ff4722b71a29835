#include "target/store/summary.h"

#include <string.h>

#include "common/mem.h"
#include "target/format/ec_manifest.h"
#include "target/index/index.h"

enum { STEPS_AT_ONCE = 20000 }; /* of one cursor, which keeps old pages alive */

static struct summary_row *row_of(struct summary *s, uint64_t bucket_id)
{
    size_t i = 0;
    while (i < s->count && s->rows[i].bucket_id < bucket_id)
        i++;
    if (i < s->count && s->rows[i].bucket_id == bucket_id)
        return &s->rows[i];
    s->rows = xrealloc(s->rows, (s->count + 1) * sizeof *s->rows);
    memmove(&s->rows[i + 1], &s->rows[i], (s->count - i) * sizeof *s->rows);
    s->rows[i] = (struct summary_row){.bucket_id = bucket_id};
    s->count++;
    return &s->rows[i];
}

/* A walk over the names of one bucket in one index. */
struct walk {
    const struct summary_env *env;
    struct summary_row *row;
    uint64_t bucket_id; /* of slices, it may be */
    char last[ATTR_NAME_MAX + 1];
};

static void count(const struct walk *w, const char *name, const struct index_record *rec)
{
    struct summary_row *row = w->row;
    row->pending += rec->pending;
    if (rec->tombstone)
        return;
    if (ec_is_slices_bucket(w->bucket_id))
        row->slices++;
    else
        row->objects++;
    if (!rec->sliced)
        row->bytes += rec->size;
    else if (w->env != NULL && w->env->acts(w->env->ctx, w->bucket_id, name))
        row->sliced++;
}

/* On from behind `last`; *more: there are names left. */
static int sum_some(struct index *x, struct walk *w, bool *more, struct error *err)
{
    _cleanup_(index_cursor_closep)
    struct index_cursor *c = NULL;
    int found = index_cursor_open(x, &c, err);
    if (found == 0)
        found = index_cursor_seek(c, w->bucket_id, w->last, *w->last != '\0', err);
    for (unsigned steps = 0; found == 1 && steps < STEPS_AT_ONCE; steps++) {
        count(w, index_cursor_name(c), index_cursor_record(c));
        if (steps + 1 == STEPS_AT_ONCE)
            snprintf(w->last, sizeof w->last, "%s", index_cursor_name(c));
        else
            found = index_cursor_next(c, err);
    }
    *more = found == 1;
    return found < 0 ? found : 0;
}

static bool is_wanted(const struct summary_env *env, uint64_t id)
{
    return env == NULL || env->counts == NULL || env->counts(env->ctx, ec_bucket_of_slices(id));
}

static int sum_index(struct summary *s, const struct summary_env *env, struct index *x,
                     struct error *err)
{
    uint64_t id = 0;
    int code = index_check(x, err), found = 0;
    while (code == 0 && (found = index_next_bucket(x, id, &id, err)) == 1) {
        if (!is_wanted(env, id))
            continue;
        struct walk w = {.env = env, .row = row_of(s, ec_bucket_of_slices(id)), .bucket_id = id};
        for (bool more = true; code == 0 && more;)
            code = sum_some(x, &w, &more, err);
    }
    return code == 0 && found < 0 ? found : code;
}

int summary_make(struct mountpaths *m, const struct summary_env *env, struct summary *out,
                 struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    *out = (struct summary){0};
    int code = mountpath_set_check_whole(set, err);
    for (size_t i = 0; i < set->count; i++)
        out->pending_mark += index_pending_mark(set->all[i]->index);
    for (size_t i = 0; i < set->count && code == 0; i++)
        code = sum_index(out, env, set->all[i]->index, err);
    if (code != 0)
        summary_done(out);
    return code;
}

void summary_done(struct summary *s)
{
    free(s->rows);
    *s = (struct summary){0};
}
