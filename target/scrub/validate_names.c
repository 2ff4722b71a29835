#include "target/scrub/validate_names.h"

#include <sys/xattr.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/path.h"
#include "target/index/walk.h"
#include "target/scrub/validate_mend.h"
#include "target/store/quarantine.h"

/* --- files without a name --------------------------------------------------------------------- */

static void nameless_report(struct walk *w, const struct scrub_nameless *n, const char *name)
{
    struct error why;
    const struct sick s = {
        .path = n->path, .name = name, .inode = n->inode, .what = n->what, .why = n->why};
    error_set(&why, E_CORRUPT, "%s: %s", n->path, n->why);
    walk_found(w, n->what, name, why.message);
    walk_mend(w, &s);
}

void walk_nameless_add(struct walk *w, const char *path, const struct file *f)
{
    const struct scrub_nameless n = {.path = xstrdup(path),
                                     .why = xstrdup(f->why.message),
                                     .bucket_id = w->bucket_id,
                                     .inode = f->st.st_ino,
                                     .what = f->what};
    if (w->at.nameless_count < SCRUB_NAMELESS_MAX) {
        w->at.nameless[w->at.nameless_count++] = n;
        return;
    }
    nameless_report(w, &n, "");
    free(n.path);
    free(n.why);
}

static void nameless_take(struct walk *w, size_t i, const char *name)
{
    struct scrub_nameless n = w->at.nameless[i];
    _cleanup_place_ struct object_place p = {0};
    bool locked = *name != '\0' && walk_lock_name(w, &p, name, NULL) == 0;
    nameless_report(w, &n, name);
    if (locked)
        object_unlock(&p);
    free(n.path);
    free(n.why);
    w->at.nameless[i] = w->at.nameless[--w->at.nameless_count];
}

/* The index has this name, and so says whose the file in its place is. */
static void nameless_match(struct walk *w, const struct object_path *place, const char *name)
{
    for (size_t i = w->at.nameless_count; i-- > 0;) {
        if (path_ends_with(w->at.nameless[i].path, place->text))
            nameless_take(w, i, name);
    }
}

void walk_nameless_rest(struct walk *w)
{
    while (w->at.nameless_count > 0) {
        w->bucket_id = w->at.nameless[w->at.nameless_count - 1].bucket_id;
        nameless_take(w, w->at.nameless_count - 1, "");
    }
}

/* --- the names -------------------------------------------------------------------------------- */

static bool has_attribute(const char *path)
{
    return getxattr(path, ATTR_XATTR, NULL, 0) >= 0;
}

/* A stub that does not say whose place it is gets to say so by the index: then it has a version,
 * and can be moved.  Without bytes it would be whole. */
static void name_stub(const struct walk *w, const char *path, const char *name)
{
    _cleanup_place_ struct object_place p = {0};
    struct index_record rec;
    char job[ATTR_JOB_MAX + 1];
    struct error err = ERROR_INIT;
    if (walk_lock_name(w, &p, name, &err) != 0)
        return;
    int code = 0;
    if (index_find(w->mp->index, w->bucket_id, name, &rec, job, &err) == 1 && rec.size > 0 &&
        rec.job == NULL && !has_attribute(path)) {
        const struct attr a = {.flags = ATTR_DURABLE,
                               .name = name,
                               .size = rec.size,
                               .version = rec.version,
                               .checksum = rec.checksum,
                               .modified_ms = rec.modified_ms};
        code = quarantine_name_stub(w->mp, path, &a, &err);
    }
    object_unlock(&p);
    if (code != 0)
        log_warn("stub not named", lstr("path", path), lerr(&err));
}

/* Of this very scrub it has been told of, but for whose place it is. */
static void tell_of_stub(const struct walk *w, const char *path, const char *name, const char *job)
{
    bool nameless = !has_attribute(path);
    if (strcmp(job, QUARANTINE_NO_ROOM) == 0) { /* no damage, and the repair knows */
        if (w->scrub != NULL)
            walk_want_repair(w, name);
        return;
    }
    if (w->scrub != NULL && nameless)
        name_stub(w, path, name);
    if (w->scrub != NULL && strcmp(job, w->scrub->job_id) == 0) {
        if (nameless)
            walk_want_repair(w, name);
        return;
    }
    const struct sick s = {.path = path, .name = name, .what = VALIDATE_quarantined, .why = job};
    walk_found(w, VALIDATE_quarantined, name, job);
    walk_mend(w, &s);
}

static int tell_of_missing(const struct walk *w, const char *path, const char *name,
                           struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    struct index_record rec;
    char job[ATTR_JOB_MAX + 1];
    int code = walk_lock_name(w, &p, name, err);
    if (code != 0)
        return code;
    int there = index_find(w->mp->index, w->bucket_id, name, &rec, job, err);
    bool missing = there == 1 && quarantine_look(path, job) == QUARANTINE_NO_FILE;
    object_unlock(&p);
    if (!missing || !walk_bucket_lives(w))
        return there < 0 ? there : 0;
    const struct sick s = {
        .path = path, .name = rec.tombstone ? "" : name, .what = VALIDATE_file_missing, .why = ""};
    walk_found(w, VALIDATE_file_missing, name, rec.tombstone ? "a tombstone" : "");
    walk_mend(w, &s);
    return 0;
}

static int walk_name(struct walk *w, const char *name, struct error *err)
{
    struct object_path place;
    char job[ATTR_JOB_MAX + 1];
    object_path_set(&place, w->bucket_id, name);
    _cleanup_free_ char *path = xprintf("%s/.dfc/obj/%s", w->mp->path, place.text);
    nameless_match(w, &place, name);
    enum quarantine_look look = quarantine_look(path, job);
    if (look == QUARANTINE_STUB && walk_bucket_lives(w))
        tell_of_stub(w, path, name, job);
    return look == QUARANTINE_NO_FILE ? tell_of_missing(w, path, name, err) : 0;
}

/* No cursor is open while files are looked at: it would keep old pages of the index alive. */
static int walk_batch(struct walk *w, struct index_batch *b, struct error *err)
{
    int code = index_batch_fill(b, w->mp->index, err);
    for (size_t i = 0; i < b->count && code == 0; i++) {
        walk_yield(w, FILE_COSTS);
        code = walk_shall_end(w) ? error_set(err, E_CANCELLED, "stopping")
                                 : walk_name(w, b->names[i], err);
    }
    return code;
}

/* Those behind w->at.name. */
int walk_names(struct walk *w, struct error *err)
{
    _cleanup_(index_batch_freep)
    struct index_batch *b = index_batch_new(w->bucket_id, NULL, NULL, NULL);
    snprintf(b->walk.last, sizeof b->walk.last, "%s", w->at.name);
    int code = 0;
    while (code == 0 && b->walk.more) {
        code = walk_batch(w, b, err);
        if (code == 0) {
            snprintf(w->at.name, sizeof w->at.name, "%s", b->walk.last);
            walk_save_now_and_then(w);
        }
    }
    return code;
}
