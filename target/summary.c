#include "target/summary.h"

#include <string.h>

#include "common/mem.h"
#include "target/index.h"

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

/* On from behind `last`; *more: there are names left. */
static int sum_some(struct index *x, struct summary_row *row, char last[static ATTR_NAME_MAX + 1],
                    bool *more, struct error *err)
{
    _cleanup_(index_cursor_closep)
    struct index_cursor *c = NULL;
    int found = index_cursor_open(x, &c, err);
    if (found == 0)
        found = index_cursor_seek(c, row->bucket_id, last, *last != '\0', err);
    for (unsigned steps = 0; found == 1 && steps < STEPS_AT_ONCE; steps++) {
        const struct index_record *rec = index_cursor_record(c);
        row->objects += !rec->tombstone;
        row->bytes += rec->size;
        if (steps + 1 == STEPS_AT_ONCE)
            snprintf(last, ATTR_NAME_MAX + 1, "%s", index_cursor_name(c));
        else
            found = index_cursor_next(c, err);
    }
    *more = found == 1;
    return found < 0 ? found : 0;
}

static int sum_bucket(struct index *x, struct summary_row *row, struct error *err)
{
    char last[ATTR_NAME_MAX + 1] = "";
    int code = 0;
    for (bool more = true; code == 0 && more;)
        code = sum_some(x, row, last, &more, err);
    return code;
}

static int sum_index(struct summary *s, struct index *x, struct error *err)
{
    uint64_t id = 0;
    int code = index_check(x, err), found = 0;
    while (code == 0 && (found = index_next_bucket(x, id, &id, err)) == 1)
        code = sum_bucket(x, row_of(s, id), err);
    return code == 0 && found < 0 ? found : code;
}

int summary_make(struct mountpaths *m, struct summary *out, struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(m);
    *out = (struct summary){0};
    int code = mountpath_set_check_whole(set, err);
    for (size_t i = 0; i < set->count && code == 0; i++)
        code = sum_index(out, set->all[i]->index, err);
    if (code != 0)
        summary_done(out);
    return code;
}

void summary_done(struct summary *s)
{
    free(s->rows);
    *s = (struct summary){0};
}
