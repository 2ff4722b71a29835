#include "target/disk/reindex.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/disk/object_files.h"
#include "target/format/object_path.h"

enum { BATCH = 1000 }; /* records in one transaction */

struct walk {
    struct mountpath *mp;
    const atomic_bool *stop; /* online, or NULL: at the start */
    uint64_t bucket_id;
    struct reindex_report *report;
    metric_t *metric;
    struct index_item *items;
    size_t count;
    struct arena *texts; /* of the items */
};

static void walk_begin(struct walk *w, struct mountpath *mp, const atomic_bool *stop,
                       struct reindex_report *report)
{
    _cleanup_buf_ struct buf labels = BUF_INIT;
    mountpath_labels(mp, &labels);
    *w = (struct walk){.mp = mp,
                       .stop = stop,
                       .report = report,
                       .metric = metric_get(M_index_files_looked_at_total, labels.data),
                       .items = xcalloc(BATCH, sizeof *w->items),
                       .texts = arena_new(64 * 1024)};
}

static void walk_end(struct walk *w)
{
    free(w->items);
    arena_free(w->texts);
}

static int walk_flush(struct walk *w, struct error *err)
{
    int code = w->count > 0 ? index_fill(w->mp->index, w->items, w->count, err) : 0;
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

static void walk_tell(const struct walk *w, unsigned files, size_t bytes)
{
    if (w->report->on_progress != NULL)
        w->report->on_progress(w->report->ctx, files, bytes);
}

static void walk_read(void *walk, size_t bytes)
{
    walk_tell(walk, 0, bytes);
}

/* Its length alone says nothing: a file system may have written that down before the bytes. Without
 * a checksum nobody can tell, and it was not promised.  A file that cannot be read is damaged, not
 * lost. */
static bool walk_is_torn(struct walk *w, const char *path, const struct attr *a)
{
    if ((a->flags & ATTR_DURABLE) != 0 || a->size == 0 ||
        !crash_state_suspects(w->mp->crash_state, a->modified_ms))
        return false;
    struct checksum_value got;
    if (a->checksum.type == CHECKSUM_NONE)
        return true;
    return file_checksum(path, a->checksum.type, walk_read, w, &got, NULL) == 0 &&
           !checksum_equal(&got, &a->checksum);
}

/* What a file is worth. */
enum found { FOUND_OBJECT, FOUND_TORN, FOUND_DAMAGE, FOUND_NONE };

struct file {
    struct attr attr; /* borrows from raw */
    struct error why; /* with FOUND_TORN, FOUND_DAMAGE */
    unsigned char raw[ATTR_ENCODED_MAX];
};

static enum found walk_look(struct walk *w, const char *path, struct file *f)
{
    struct stat st;
    f->why = ERROR_INIT;
    atomic_fetch_add_explicit(&w->report->looked_at, 1, memory_order_relaxed);
    metric_add(w->metric, 1);
    walk_tell(w, 1, 0);
    ssize_t len = getxattr(path, ATTR_XATTR, f->raw, sizeof f->raw);
    if (len < 0 || stat(path, &st) != 0) {
        if (errno == ENOENT) /* removed meanwhile */
            return FOUND_NONE;
        error_errno(&f->why, errno, "attribute");
        return FOUND_DAMAGE;
    }
    if (attr_decode(f->raw, (size_t)len, &f->attr, &f->why) != 0 ||
        walk_check_place(w, path, &f->attr, &f->why) != 0)
        return FOUND_DAMAGE;
    if ((uint64_t)st.st_size == f->attr.size)
        return w->stop == NULL && walk_is_torn(w, path, &f->attr) ? FOUND_TORN : FOUND_OBJECT;
    error_set(&f->why, E_CORRUPT, "it has %llu bytes, not %llu", (unsigned long long)st.st_size,
              (unsigned long long)f->attr.size);
    return FOUND_TORN;
}

static int walk_file(void *ctx, const char *path, struct error *err)
{
    struct walk *w = ctx;
    struct file f;
    enum found found = walk_look(w, path, &f);
    if (found == FOUND_NONE)
        return 0;
    if (found == FOUND_TORN && (f.attr.flags & ATTR_DURABLE) == 0 && w->stop == NULL)
        return walk_lost(w, path, err);
    if (found != FOUND_OBJECT)
        walk_unreadable(w, path, &f.why);
    /* A short one exists: it is listed, and an error to read. */
    return found != FOUND_DAMAGE ? walk_add(w, &f.attr, err) : 0;
}

/* --- all of them ------------------------------------------------------------------------------ */

static int walk_bucket(struct walk *w, uint64_t bucket_id, struct error *err)
{
    w->bucket_id = bucket_id;
    int code = object_files_each(w->mp, bucket_id, w->stop, walk_file, w, err);
    return code == 0 ? walk_flush(w, err) : code;
}

static int walk_all(struct walk *w, struct error *err)
{
    _cleanup_free_ uint64_t *buckets = NULL;
    size_t count = 0;
    int code = mountpath_buckets(w->mp, &buckets, &count, err);
    for (size_t i = 0; i < count && code == 0; i++)
        code = walk_bucket(w, buckets[i], err);
    return code;
}

/* --- the three of them ------------------------------------------------------------------------ */

int reindex(struct mountpath *mp, struct reindex_report *report, struct error *err)
{
    uint64_t began = clock_ms();
    struct walk w;
    walk_begin(&w, mp, NULL, report);
    int code = walk_all(&w, err);
    if (code == 0) {
        index_set_complete(mp->index);
        crash_state_set_checked(mp->crash_state);
    }
    walk_end(&w);
    report->ms = clock_ms() - began;
    return code == 0 ? 0 : error_recode(err, code, "rebuild the index");
}

int reindex_online(struct mountpath *mp, const atomic_bool *stop, struct reindex_report *report,
                   struct error *err)
{
    uint64_t began = clock_ms();
    struct walk w;
    int code = index_rebuild_begin(mp->index, err);
    if (code != 0)
        return code;
    walk_begin(&w, mp, stop, report);
    code = walk_all(&w, err);
    int end = index_rebuild_end(mp->index, code == 0, code == 0 ? err : NULL);
    walk_end(&w);
    report->ms = clock_ms() - began;
    if (code == 0)
        code = end;
    return code == 0 ? 0 : error_recode(err, code, "rebuild the index");
}

/* The index is made to say what the name's file says: the change came that far, or it did not. */
static int settle_intent(void *ctx, uint64_t bucket_id, const char *name, struct error *err)
{
    struct walk *w = ctx;
    struct index *x = w->mp->index;
    struct object_path place;
    struct file f;
    object_path_set(&place, bucket_id, name);
    _cleanup_free_ char *path = xprintf("%s/.dfc/obj/%s", w->mp->path, place.text);
    w->bucket_id = bucket_id;
    enum found found = walk_look(w, path, &f);
    bool there = found != FOUND_NONE && found != FOUND_DAMAGE && strcmp(f.attr.name, name) == 0;
    struct index_record rec;
    int code;
    if (there) {
        rec = index_record_of(&f.attr);
        code = index_put(x, bucket_id, name, &rec, err);
    } else {
        code = index_delete(x, bucket_id, name, err);
    }
    if (code == 0)
        index_settled(x, bucket_id, name);
    w->report->objects++;
    return code;
}

int reindex_intents(struct mountpath *mp, struct reindex_report *report, struct error *err)
{
    uint64_t began = clock_ms();
    struct walk w;
    walk_begin(&w, mp, NULL, report);
    int code = index_each_intent(mp->index, settle_intent, &w, err);
    walk_end(&w);
    report->ms = clock_ms() - began;
    return code == 0 ? 0 : error_recode(err, code, "bring the index into step");
}
