#include "target/reindex.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "target/object_path.h"

enum { BATCH = 1000 }; /* records in one transaction */

struct walk {
    struct mountpath *mp;
    uint64_t bucket_id;
    struct reindex_report *report;
    struct index_item *items;
    size_t count;
    struct arena *texts; /* of the items */
};

static int walk_flush(struct walk *w, struct error *err)
{
    int code = w->count > 0 ? index_put_many(w->mp->index, w->items, w->count, err) : 0;
    w->report->objects += w->count;
    w->count = 0;
    arena_reset(w->texts);
    return code;
}

static int walk_add(struct walk *w, const struct attr *a, struct error *err)
{
    struct index_item *item = &w->items[w->count++];
    *item = (struct index_item){.bucket_id = w->bucket_id,
                                .name = arena_strdup(w->texts, a->name),
                                .record = index_record_of(a)};
    if (a->job != NULL)
        item->record.job = arena_strdup(w->texts, a->job);
    return w->count == BATCH ? walk_flush(w, err) : 0;
}

static void walk_unreadable(struct walk *w, const char *path, const struct error *why)
{
    w->report->unreadable++;
    mountpath_failed(w->mp, E_CORRUPT);
    log_error("object unreadable", lstr("path", path), lerr(why));
}

static int walk_lost(struct walk *w, const char *path, struct error *err)
{
    w->report->lost++;
    log_warn("object lost with power", lstr("path", path));
    return unlink(path) == 0 ? 0 : error_errno(err, errno, "remove '%s'", path);
}

/* Is the file where its name belongs? */
static int walk_check_place(const struct walk *w, const char *path, const struct attr *a,
                            struct error *err)
{
    struct object_path place;
    object_path_set(&place, w->bucket_id, a->name);
    size_t len = strlen(path), place_len = strlen(place.text);
    if (len > place_len && strcmp(path + len - place_len, place.text) == 0)
        return 0;
    return error_set(err, E_CORRUPT, "its name is '%s', which belongs to '%s'", a->name,
                     place.text);
}

static int walk_file(struct walk *w, const char *path, struct error *err)
{
    unsigned char raw[ATTR_ENCODED_MAX];
    struct error why = ERROR_INIT;
    struct attr a;
    struct stat st;
    ssize_t len = getxattr(path, ATTR_XATTR, raw, sizeof raw);
    if (len < 0 || stat(path, &st) != 0) {
        error_errno(&why, errno, "attribute");
        walk_unreadable(w, path, &why);
        return 0;
    }
    if (attr_decode(raw, (size_t)len, &a, &why) != 0 || walk_check_place(w, path, &a, &why) != 0) {
        walk_unreadable(w, path, &why);
        return 0;
    }
    if ((uint64_t)st.st_size == a.size)
        return walk_add(w, &a, err);
    if ((a.flags & ATTR_DURABLE) == 0)
        return walk_lost(w, path, err);
    error_set(&why, E_CORRUPT, "it has %llu bytes, not %llu", (unsigned long long)st.st_size,
              (unsigned long long)a.size);
    walk_unreadable(w, path, &why);
    return walk_add(w, &a, err); /* it exists: listed, and an error to read */
}

/* Calls fn() for every entry of `path` that is not hidden. */
static int walk_dir(struct walk *w, const char *path,
                    int (*fn)(struct walk *w, const char *path, struct error *err),
                    struct error *err)
{
    DIR *dir = opendir(path);
    if (dir == NULL)
        return error_errno(err, errno, "open '%s'", path);
    int code = 0;
    for (struct dirent *e; code == 0 && (errno = 0, e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        _cleanup_free_ char *entry = xprintf("%s/%s", path, e->d_name);
        code = fn(w, entry, err);
    }
    if (code == 0 && errno != 0)
        code = error_errno(err, errno, "read directory '%s'", path);
    closedir(dir);
    return code;
}

static int walk_fan(struct walk *w, const char *path, struct error *err)
{
    return walk_dir(w, path, walk_file, err);
}

static int walk_bucket(struct walk *w, uint64_t bucket_id, struct error *err)
{
    w->bucket_id = bucket_id;
    _cleanup_free_ char *path =
        xprintf("%s/.dfc/obj/%llu", w->mp->path, (unsigned long long)bucket_id);
    int code = walk_dir(w, path, walk_fan, err);
    return code == 0 ? walk_flush(w, err) : code;
}

int reindex(struct mountpath *mp, struct reindex_report *report, struct error *err)
{
    uint64_t began = clock_ms();
    *report = (struct reindex_report){0};
    _cleanup_free_ uint64_t *buckets = NULL;
    size_t count = 0;
    int code = mountpath_buckets(mp, &buckets, &count, err);
    struct walk w = {.mp = mp, .report = report};
    w.items = xcalloc(BATCH, sizeof *w.items);
    w.texts = arena_new(64 * 1024);
    for (size_t i = 0; i < count && code == 0; i++)
        code = walk_bucket(&w, buckets[i], err);
    if (code == 0)
        index_set_complete(mp->index);
    free(w.items);
    arena_free(w.texts);
    report->ms = clock_ms() - began;
    return code == 0 ? 0 : error_recode(err, code, "rebuild the index");
}
