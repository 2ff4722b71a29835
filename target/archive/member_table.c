#include "target/archive/member_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"

struct row {
    uint64_t offset, size;
    int64_t mtime_s;
    size_t name; /* where it begins in the names, which grow: also the archive's order */
    uint32_t name_len;
    uint8_t kind;
};

struct member_table {
    struct buf names;
    struct row *rows;
    size_t count, room;
    bool finished, packed;
};

enum member_kind member_kind_of(char type)
{
    switch (type) {
    case '0':
    case '7': /* "contiguous": a file for everybody today */
        return MEMBER_FILE;
    case '1':
        return MEMBER_HARD_LINK;
    case '2':
        return MEMBER_SYMBOLIC_LINK;
    case '5':
        return MEMBER_DIRECTORY;
    default:
        return MEMBER_OTHER;
    }
}

const char *member_kind_name(enum member_kind kind)
{
    static const char *const names[] = {[MEMBER_FILE] = "file",
                                        [MEMBER_SPARSE] = "sparse_file",
                                        [MEMBER_DIRECTORY] = "directory",
                                        [MEMBER_HARD_LINK] = "hard_link",
                                        [MEMBER_OTHER] = "other",
                                        [MEMBER_SYMBOLIC_LINK] = "symbolic_link",
                                        [MEMBER_ENCRYPTED] = "encrypted_file"};
    return names[kind];
}

struct member_table *member_table_new(void)
{
    return xcalloc(1, sizeof(struct member_table));
}

void member_table_free(struct member_table *t)
{
    if (t == NULL)
        return;
    buf_done(&t->names);
    free(t->rows);
    free(t);
}

void member_table_set_packed(struct member_table *t)
{
    t->packed = true;
}

bool member_table_packed(const struct member_table *t)
{
    return t->packed;
}

void member_table_add(struct member_table *t, const struct member_place *place)
{
    assert(!t->finished && place->name_len <= UINT32_MAX);
    if (t->count == t->room) {
        t->room = t->room > 0 ? 2 * t->room : 64;
        t->rows = xrealloc(t->rows, t->room * sizeof *t->rows);
    }
    t->rows[t->count++] = (struct row){.offset = place->offset,
                                       .size = place->size,
                                       .mtime_s = place->mtime_s,
                                       .name = t->names.len,
                                       .name_len = (uint32_t)place->name_len,
                                       .kind = (uint8_t)place->kind};
    buf_append(&t->names, place->name, place->name_len);
}

static int compare_names(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t len = a_len < b_len ? a_len : b_len;
    int c = len > 0 ? memcmp(a, b, len) : 0;
    return c != 0 ? c : (a_len > b_len) - (a_len < b_len);
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct row *x = a, *y = b;
    const char *names = ctx;
    int c = compare_names(names + x->name, x->name_len, names + y->name, y->name_len);
    return c != 0 ? c : (x->name > y->name) - (x->name < y->name);
}

static bool same_name(const char *names, const struct row *a, const struct row *b)
{
    return compare_names(names + a->name, a->name_len, names + b->name, b->name_len) == 0;
}

void member_table_finish(struct member_table *t)
{
    t->finished = true;
    if (t->count == 0)
        return;
    qsort_r(t->rows, t->count, sizeof *t->rows, compare_rows, t->names.data);
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++) {
        bool last = i + 1 == t->count || !same_name(t->names.data, &t->rows[i], &t->rows[i + 1]);
        if (last)
            t->rows[kept++] = t->rows[i];
    }
    t->count = kept;
}

size_t member_table_bytes(const struct member_table *t)
{
    return sizeof *t + t->room * sizeof *t->rows + t->names.cap;
}

size_t member_table_count(const struct member_table *t)
{
    return t->count;
}

void member_table_at(const struct member_table *t, size_t i, struct member_place *out)
{
    assert(t->finished && i < t->count);
    const struct row *r = &t->rows[i];
    *out = (struct member_place){.name = t->names.data + r->name,
                                 .name_len = r->name_len,
                                 .kind = r->kind,
                                 .offset = r->offset,
                                 .size = r->size,
                                 .mtime_s = r->mtime_s};
}

size_t member_table_after(const struct member_table *t, const char *name, size_t len)
{
    size_t from = 0, to = t->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const struct row *r = &t->rows[middle];
        if (compare_names(t->names.data + r->name, r->name_len, name, len) > 0)
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

bool member_table_find(const struct member_table *t, const char *name, size_t len,
                       struct member_place *out)
{
    size_t after = member_table_after(t, name, len);
    if (after == 0)
        return false;
    member_table_at(t, after - 1, out);
    return compare_names(out->name, out->name_len, name, len) == 0;
}
