#include "target/store/summary.h"

#include <string.h>

#include "common/internal_name.h"
#include "common/mem.h"
#include "target/format/ec_manifest.h"
#include "target/index/walk.h"

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

/* One bucket in one index. */
struct place {
    const struct summary_env *env;
    struct summary_row *row;
    uint64_t bucket_id; /* of slices, it may be */
};

static enum index_answer count(void *ctx, const char *name, const struct index_record *rec)
{
    const struct place *p = ctx;
    struct summary_row *row = p->row;
    row->pending += rec->pending;
    if (rec->tombstone)
        return INDEX_PASS;
    if (ec_is_slices_bucket(p->bucket_id))
        row->slices++;
    else
        row->objects++;
    bool internal = name_is_internal(name);
    row->internal += internal;
    row->internal_bytes += internal && !rec->sliced ? rec->size : 0;
    if (!rec->sliced)
        row->bytes += rec->size;
    else if (p->env != NULL && p->env->acts(p->env->ctx, p->bucket_id, name))
        row->sliced++;
    return INDEX_PASS;
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
        struct place p = {.env = env, .row = row_of(s, ec_bucket_of_slices(id)), .bucket_id = id};
        struct index_walk w = {.bucket_id = id, .more = true};
        while (code == 0 && w.more)
            code = index_walk(x, &w, count, &p, err);
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
