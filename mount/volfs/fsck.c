#include "mount/volfs/fsck.h"

#include <stdlib.h>

#include "common/mem.h"
#include "mount/volfs/objects.h"

static int by_block(const void *a, const void *b)
{
    const struct fsck_block *one = a, *two = b;
    if (one->slice != two->slice)
        return one->slice < two->slice ? -1 : 1;
    if (one->block != two->block)
        return one->block < two->block ? -1 : 1;
    return one->bytes < two->bytes ? -1 : one->bytes > two->bytes;
}

static int by_slice(const void *a, const void *b)
{
    const struct check_slice *one = a, *two = b;
    return one->slice < two->slice ? -1 : one->slice > two->slice;
}

/* An object whose bytes are not as many as its name says is no block. */
void fsck_object(struct fsck *f, const char *key, uint64_t bytes)
{
    struct fsck_block b;
    if (!objects_parse(f->format.name, key, &b.slice, &b.block, &b.bytes) || b.bytes != bytes)
        return;
    if (f->count == f->room) {
        f->room = 2 * f->room + 256;
        f->blocks = xrealloc(f->blocks, f->room * sizeof *f->blocks);
    }
    f->blocks[f->count++] = b;
}

static bool is_named(const struct check *c, const struct check_slice *s)
{
    return c->slice_count > 0 && bsearch(s, c->slices, c->slice_count, sizeof *s, by_slice) != NULL;
}

size_t fsck_compare(struct fsck *f, const struct check *names, const struct check *again,
                    void (*told)(void *context, uint64_t ino, const char *key), void *context)
{
    const uint64_t block_bytes = f->format.block_bytes;
    size_t found = 0;
    if (f->count > 0)
        qsort(f->blocks, f->count, sizeof *f->blocks, by_block);
    for (size_t i = 0; i < names->slice_count; i++) {
        const struct check_slice *s = &names->slices[i];
        bool first = i == 0 || names->slices[i - 1].slice != s->slice;
        for (uint64_t block = 0; first && block * block_bytes < s->size; block++) {
            const struct fsck_block b = {s->slice, block,
                                         objects_bytes(s->size, block_bytes, block)};
            bool there =
                f->count > 0 && bsearch(&b, f->blocks, f->count, sizeof b, by_block) != NULL;
            if (there || s->removed || !is_named(again, s))
                continue;
            _cleanup_free_ char *key = objects_key(f->format.name, b.slice, b.block, b.bytes);
            told(context, s->ino, key);
            found++;
        }
    }
    return found;
}

void fsck_done(struct fsck *f)
{
    free(f->blocks);
    f->blocks = NULL;
    f->count = f->room = 0;
}
