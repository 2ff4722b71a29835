#include "target/disk/object_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/mem.h"

enum { AT_ONCE = 16 << 10 /* files of a directory that are put in order */ };

struct walk {
    const struct mountpath *mp;
    uint64_t bucket_id;
    const atomic_bool *stop;
    int (*fn)(void *ctx, const char *path, struct error *err);
    void *ctx;
};

struct entry {
    ino_t inode;
    char name[2 * 16 + 1]; /* a hash */
};

static int entry_compare(const void *a, const void *b)
{
    ino_t x = ((const struct entry *)a)->inode, y = ((const struct entry *)b)->inode;
    return x < y ? -1 : x > y;
}

/* The next entries of the directory: their number, 0 at its end.  Names that are too long for an
 * object's are nobody's. */
static int read_entries(DIR *dir, const char *path, struct entry *out, size_t *count,
                        struct error *err)
{
    *count = 0;
    for (struct dirent *e; *count < AT_ONCE;) {
        errno = 0;
        e = readdir(dir);
        if (e == NULL)
            return errno == 0 ? 0 : error_errno(err, errno, "read directory '%s'", path);
        if (e->d_name[0] == '.' || strlen(e->d_name) >= sizeof out->name)
            continue;
        struct entry *entry = &out[(*count)++];
        entry->inode = e->d_ino;
        snprintf(entry->name, sizeof entry->name, "%.32s", e->d_name);
    }
    return 0;
}

static int walk_entries(const struct walk *w, const char *path, const struct entry *entries,
                        size_t count, struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        _cleanup_free_ char *file = xprintf("%s/%s", path, entries[i].name);
        code = w->stop != NULL && *w->stop ? error_set(err, E_CANCELLED, "stopping")
                                           : w->fn(w->ctx, file, err);
    }
    return code;
}

/* Nothing was ever put into a directory that does not exist, unless the bucket's is gone, too: that
 * is an error where nobody can have removed it. */
static bool is_empty(const struct walk *w)
{
    _cleanup_free_ char *bucket =
        xprintf("%s/.dfc/obj/%llu", w->mp->path, (unsigned long long)w->bucket_id);
    return w->stop != NULL || access(bucket, F_OK) == 0;
}

static int walk_fan(const struct walk *w, const char *path, struct error *err)
{
    DIR *dir = opendir(path);
    if (dir == NULL && errno == ENOENT && is_empty(w))
        return 0;
    if (dir == NULL)
        return error_errno(err, errno, "open '%s'", path);
    _cleanup_free_ struct entry *entries = xcalloc(AT_ONCE, sizeof *entries);
    size_t count = 0;
    int code;
    do {
        code = read_entries(dir, path, entries, &count, err);
        qsort(entries, count, sizeof *entries, entry_compare);
        if (code == 0)
            code = walk_entries(w, path, entries, count, err);
    } while (code == 0 && count > 0);
    closedir(dir);
    return code;
}

int object_files_each_of(const struct mountpath *mp, uint64_t bucket_id, unsigned fan,
                         const atomic_bool *stop,
                         int (*fn)(void *ctx, const char *path, struct error *err), void *ctx,
                         struct error *err)
{
    const struct walk w = {.mp = mp, .bucket_id = bucket_id, .stop = stop, .fn = fn, .ctx = ctx};
    _cleanup_free_ char *path =
        xprintf("%s/.dfc/obj/%llu/%02x", mp->path, (unsigned long long)bucket_id, fan);
    return walk_fan(&w, path, err);
}

int object_files_each(const struct mountpath *mp, uint64_t bucket_id, const atomic_bool *stop,
                      int (*fn)(void *ctx, const char *path, struct error *err), void *ctx,
                      struct error *err)
{
    int code = 0;
    for (unsigned i = 0; i < OBJECT_FANS && code == 0; i++)
        code = object_files_each_of(mp, bucket_id, i, stop, fn, ctx, err);
    return code;
}
