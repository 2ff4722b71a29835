#include "vdisc/client/references.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

static void add(struct references *r, const char *bucket, const char *key, uint64_t size)
{
    if (r->count == r->room) {
        r->room = r->room * 2 + 64;
        r->rows = xrealloc(r->rows, r->room * sizeof *r->rows);
    }
    r->rows[r->count++] =
        (struct references_row){.name = xprintf("%s/%s", bucket, key), .size = size};
}

int references_take(struct references *r, const struct vdisc *v, struct dfc_error *err)
{
    const struct vdisc_table *t = vdisc_table_of(v);
    for (uint32_t i = 0; i < t->count; i++) {
        _cleanup_free_ char *bucket = NULL, *key = NULL;
        int rc = vdisc_object(v, i, &bucket, &key, err);
        if (rc != DFC_OK)
            return rc;
        add(r, bucket, key, vdisc_extent_size(&t->extents[i]));
    }
    return DFC_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct references_row *)a)->name,
                  ((const struct references_row *)b)->name);
}

void references_unite(struct references *r)
{
    size_t to = 0;
    if (r->count > 0)
        qsort(r->rows, r->count, sizeof *r->rows, by_name);
    for (size_t i = 0; i < r->count; i++) {
        if (to > 0 && by_name(&r->rows[to - 1], &r->rows[i]) == 0)
            free(r->rows[i].name);
        else
            r->rows[to++] = r->rows[i];
    }
    r->count = to;
}

bool references_have(const struct references *r, const char *bucket, const char *key)
{
    _cleanup_free_ char *name = xprintf("%s/%s", bucket, key);
    const struct references_row wanted = {.name = name};
    return r->count > 0 && bsearch(&wanted, r->rows, r->count, sizeof wanted, by_name) != NULL;
}

uint64_t references_bytes(const struct references *r)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->count; i++)
        bytes += r->rows[i].size;
    return bytes;
}

void references_done(struct references *r)
{
    for (size_t i = 0; i < r->count; i++)
        free(r->rows[i].name);
    free(r->rows);
    *r = (struct references){0};
}
