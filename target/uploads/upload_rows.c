#include "target/uploads/upload_rows.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "target/disk/mountpaths.h"
#include "target/uploads/upload_dir.h"

struct listing {
    const struct mountpath *mp;
    uint64_t bucket_id;
    const char *prefix;
    const struct upload_row *after;
    struct upload_rows *out;
};

static int by_name(const void *a, const void *b)
{
    const struct upload_row *x = a, *y = b;
    int order = strcmp(x->object, y->object);
    if (order == 0)
        order = (x->time_ms > y->time_ms) - (x->time_ms < y->time_ms);
    return order != 0 ? order : strcmp(x->id, y->id);
}

/* Without an id the mark is the end of the object's uploads. */
static bool is_behind(const struct listing *l, const struct upload_row *row)
{
    return *l->after->id != '\0' ? by_name(row, l->after) > 0
                                 : strcmp(row->object, l->after->object) > 0;
}

static void add_row(struct upload_rows *rows, const struct upload_row *row)
{
    if (rows->count == rows->room) {
        rows->room = rows->room > 0 ? 2 * rows->room : 64;
        rows->rows = xrealloc(rows->rows, rows->room * sizeof *rows->rows);
    }
    rows->rows[rows->count++] = *row;
}

/* One that goes meanwhile is not in the list; what cannot be read is the sweep's to say. */
static bool list_one(void *ctx, const char *id)
{
    const struct listing *l = ctx;
    struct upload_id parsed;
    struct upload_about about;
    if (upload_id_parse(id, &parsed, NULL) != 0 || !upload_dir_is_open(l->mp, id) ||
        upload_dir_read(l->mp, id, &about, NULL) != 0)
        return true;
    struct upload_row row = {.object = about.object, .time_ms = parsed.time_ms};
    snprintf(row.id, sizeof row.id, "%s", id);
    bool wanted = about.bucket_id == l->bucket_id &&
                  strncmp(about.object, l->prefix, strlen(l->prefix)) == 0 && is_behind(l, &row);
    if (wanted) {
        upload_about_sums(&about, &row.sums);
        add_row(l->out, &row);
        about.object = NULL;
    }
    upload_about_clear(&about);
    return true;
}

int upload_rows_read(const struct mountpath_set *set, uint64_t bucket_id, const char *prefix,
                     const char *after, const char *after_id, struct upload_rows *out,
                     struct error *err)
{
    struct upload_row mark = {.object = (char *)after};
    struct upload_id parsed;
    int code = 0;
    *out = (struct upload_rows){.rows = NULL};
    if (*after_id != '\0' && (code = upload_id_parse(after_id, &parsed, err)) != 0)
        return code;
    snprintf(mark.id, sizeof mark.id, "%s", after_id);
    mark.time_ms = *after_id != '\0' ? parsed.time_ms : 0;
    code = mountpath_set_check_whole(set, err);
    for (size_t i = 0; i < set->count && code == 0; i++) {
        struct listing l = {.mp = set->all[i],
                            .bucket_id = bucket_id,
                            .prefix = prefix,
                            .after = &mark,
                            .out = out};
        code = upload_dir_each(set->all[i], list_one, &l, err);
    }
    if (out->count > 0)
        qsort(out->rows, out->count, sizeof *out->rows, by_name);
    if (code != 0)
        upload_rows_clear(out);
    return code;
}

void upload_rows_clear(struct upload_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        free(rows->rows[i].object);
    free(rows->rows);
    *rows = (struct upload_rows){.rows = NULL};
}
