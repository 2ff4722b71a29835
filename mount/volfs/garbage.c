#include "mount/volfs/garbage.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "mount/volfs/objects.h"

enum { AT_ONCE = 100 };

/* All blocks of the slice, or an error. */
static int remove_slice(const struct volume_format *f, const struct volfs_store *store,
                        const struct volume_garbage *g)
{
    int rc = 0;
    for (uint64_t block = 0; rc == 0 && block * f->block_bytes < g->size; block++) {
        uint64_t bytes = objects_bytes(g->size, f->block_bytes, block);
        _cleanup_free_ char *key = objects_key(f->name, g->slice, block, bytes);
        rc = store->remove(store->context, key);
        rc = rc == -ENOENT ? 0 : rc;
    }
    return rc;
}

int garbage_remove(struct volume *v, const struct volfs_store *store, struct garbage_tally *removed)
{
    struct arena *arena = arena_new(4096);
    struct volume_garbage *gone;
    size_t count = 0, done = 0;
    int rc;
    *removed = (struct garbage_tally){0};
    do {
        arena_reset(arena);
        rc = volume_garbage(v, arena, AT_ONCE, &gone, &count);
        for (done = 0; done < count && rc == 0; done += rc == 0) {
            rc = remove_slice(volume_format(v), store, &gone[done]);
            removed->slices += rc == 0;
            removed->bytes += rc == 0 ? gone[done].size : 0;
        }
        int forgotten = volume_forget(v, gone, done);
        rc = rc != 0 ? rc : forgotten;
    } while (rc == 0 && count == AT_ONCE);
    arena_free(arena);
    return rc;
}
