/* The new files of a plan, for whoever stores their contents elsewhere. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "vdisc/iso_path.h"
#include "vdisc/plan_parts.h"

static int by_path(const void *a, const void *b)
{
    const struct plan_file *fa = a, *fb = b;
    int order = iso_path_compare(fa->path, fb->path);
    return order != 0 ? order : (fa->number > fb->number) - (fa->number < fb->number);
}

static int add(struct plan *p, uint32_t number, const struct plan_options *o, struct error *err)
{
    const struct named *f = &p->files[number];
    const struct iso_entry *e = &p->entries[f->entry];
    struct plan_file *to = &p->fresh[p->fresh_count];
    *to = (struct plan_file){.size = e->size,
                             .checksum = f->checksum,
                             .line = f->line,
                             .part = f->part,
                             .number = number};
    if (f->older)
        return 0;
    p->fresh_count++;
    return iso_path_clean(e->path, o->names, p->texts, &to->path, err);
}

int plan_files(struct plan *p, const struct plan_options *o, struct plan_file **files,
               size_t *count, struct error *err)
{
    int rc = plan_put_in_order(p, o, err);
    if (rc != 0)
        return rc;
    plan_take_known(p);
    free(p->fresh);
    p->fresh = xcalloc(p->file_count + 1, sizeof *p->fresh);
    p->fresh_count = 0;
    for (uint32_t i = 0; rc == 0 && i < p->file_count; i++)
        rc = add(p, i, o, err);
    if (rc != 0)
        return rc;
    qsort(p->fresh, p->fresh_count, sizeof *p->fresh, by_path);
    *files = p->fresh;
    *count = p->fresh_count;
    return 0;
}

int plan_move(struct plan *p, struct error *err)
{
    for (size_t i = 0; i < p->fresh_count; i++) {
        const struct plan_file *from = &p->fresh[i];
        struct named *f = &p->files[from->number];
        f->part = from->part;
        f->part.bucket = arena_strdup(p->texts, from->part.bucket);
        f->part.key = arena_strdup(p->texts, from->part.key);
        if (from->part.etag != NULL)
            f->part.etag = arena_strdup(p->texts, from->part.etag);
        f->checksum = from->checksum;
    }
    return plan_sort_files(p, err);
}
