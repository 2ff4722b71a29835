#include "proxy/http/upload_merge.h"

#include <string.h>

#include "cluster/placement/upload_id.h"
#include "common/jsonx.h"
#include "common/mem.h"

struct row {
    json_t *doc; /* a reference, which has the texts */
    const char *object;
    const char *id;
    uint64_t time_ms;
};

struct rows {
    struct row *rows;
    size_t count;
};

struct upload_merge {
    size_t limit;
    struct rows found;
    bool more; /* then there is a row, and behind the last one nothing is known */
};

static void rows_done(struct rows *r)
{
    for (size_t i = 0; i < r->count; i++)
        json_decref(r->rows[i].doc);
    free(r->rows);
    *r = (struct rows){0};
}

static void rows_cut(struct rows *r, size_t count)
{
    while (r->count > count)
        json_decref(r->rows[--r->count].doc);
}

static int compare(const struct row *a, const struct row *b)
{
    int order = strcmp(a->object, b->object);
    if (order == 0 && a->time_ms != b->time_ms)
        order = a->time_ms < b->time_ms ? -1 : 1;
    return order != 0 ? order : strcmp(a->id, b->id);
}

struct upload_merge *upload_merge_new(size_t limit)
{
    struct upload_merge *m = xcalloc(1, sizeof *m);
    m->limit = limit;
    return m;
}

void upload_merge_free(struct upload_merge *m)
{
    if (m == NULL)
        return;
    rows_done(&m->found);
    free(m);
}

/* --- a page ----------------------------------------------------------------------------------- */

static int read_row(json_t *doc, struct row *out, struct error *err)
{
    struct upload_id id;
    int code;
    *out = (struct row){0};
    if ((code = json_need_str(doc, "uploads", "object", &out->object, err)) != 0 ||
        (code = json_need_str(doc, "uploads", "upload", &out->id, err)) != 0 ||
        (code = json_need_u64(doc, "uploads", "time", &out->time_ms, err)) != 0)
        return code;
    code = upload_id_parse(out->id, &id, err);
    if (code == 0)
        out->doc = json_incref(doc);
    return code;
}

static int read_rows(json_t *list, struct rows *out, struct error *err)
{
    size_t i;
    json_t *doc;
    out->rows = xcalloc(json_array_size(list) + 1, sizeof out->rows[0]);
    json_array_foreach(list, i, doc)
    {
        struct row *row = &out->rows[i];
        int code = read_row(doc, row, err);
        if (code != 0)
            return code;
        out->count++;
        if (i > 0 && compare(&out->rows[i - 1], row) >= 0)
            return error_set(err, E_CORRUPT, "upload '%s' is out of order", row->id);
    }
    return 0;
}

static int read_page(const char *text, size_t len, struct rows *out, bool *more, struct error *err)
{
    _cleanup_json_ json_t *page = NULL;
    json_t *list = NULL;
    int code;
    *more = false;
    if ((code = json_parse(text, len, &page, err)) != 0 ||
        (code = json_get_array(page, "", "uploads", &list, err)) != 0 ||
        (code = json_get_bool(page, "", "more", more, err)) != 0)
        return code;
    if (list == NULL)
        return error_set(err, E_CORRUPT, "field 'uploads' is missing");
    code = read_rows(list, out, err);
    if (code == 0 && *more && out->count == 0)
        return error_set(err, E_CORRUPT, "it leads nowhere");
    return code;
}

/* --- the merge -------------------------------------------------------------------------------- */

/* How many rows are not behind this one. */
static size_t count_until(const struct rows *r, const struct row *last)
{
    size_t count = r->count;
    while (count > 0 && compare(&r->rows[count - 1], last) > 0)
        count--;
    return count;
}

static void cut(struct upload_merge *m, struct rows *r, size_t count)
{
    m->more = m->more || r->count > count;
    rows_cut(r, count);
}

/* Takes the rows of both. */
static void join(struct rows *a, struct rows *b)
{
    struct rows all = {.rows = xcalloc(a->count + b->count + 1, sizeof all.rows[0])};
    size_t i = 0, k = 0;
    while (i < a->count || k < b->count) {
        bool first = k == b->count || (i < a->count && compare(&a->rows[i], &b->rows[k]) < 0);
        all.rows[all.count++] = first ? a->rows[i++] : b->rows[k++];
    }
    free(a->rows);
    free(b->rows);
    *a = all;
    *b = (struct rows){0};
}

int upload_merge_feed(struct upload_merge *m, const char *text, size_t len, struct error *err)
{
    struct rows page = {0};
    bool more;
    if (read_page(text, len, &page, &more, err) != 0) {
        rows_done(&page);
        return error_recode(err, E_CORRUPT, "the page of uploads");
    }
    size_t known = m->more ? count_until(&page, &m->found.rows[m->found.count - 1]) : page.count;
    if (more && known == page.count)
        cut(m, &m->found, count_until(&m->found, &page.rows[page.count - 1]));
    rows_cut(&page, known);
    m->more = m->more || more;
    join(&m->found, &page);
    cut(m, &m->found, m->limit);
    return 0;
}

void upload_merge_page(const struct upload_merge *m, struct buf *out)
{
    json_t *list = json_array();
    for (size_t i = 0; i < m->found.count; i++)
        json_array_append(list, m->found.rows[i].doc);
    _cleanup_json_ json_t *page = json_pack("{s:o, s:b}", "uploads", list, "more", (int)m->more);
    _cleanup_free_ char *text = json_text(page);
    buf_puts(out, text);
}
