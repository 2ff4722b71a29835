#include "target/validate.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "io/pool.h"
#include "io/reader.h"
#include "target/object_files.h"
#include "target/object_internal.h"
#include "target/summary.h"

enum { NICE = 10, WALKERS_MAX = 8, NAMES_AT_ONCE = 500, PIECE = 1 << 20, NAMELESS_MAX = 50 };

/* A file that does not say whose it is: the index may. */
struct nameless {
    char *path;
    enum validate_finding what;
    struct error why;
};

/* One mountpath. */
struct walk {
    const struct validate_config *config;
    struct job_stop *stop;
    struct validate_report *report;
    struct mountpath *mp;
    uint64_t bucket_id;
    uint64_t began_ms, read_bytes; /* of checksums, to keep to the rate */
    struct nameless nameless[NAMELESS_MAX];
    size_t nameless_count;
};

static void found(const struct walk *w, enum validate_finding what, const char *name,
                  const char *detail)
{
    if (what != VALIDATE_not_indexed && what != VALIDATE_not_looked_at)
        mountpath_failed(w->mp, E_CORRUPT);
    validate_report_add(w->report, what, w->mp->path, w->bucket_id, name, detail);
}

static bool lives(const struct walk *w)
{
    return w->config->bucket_lives(w->config->ctx, w->bucket_id);
}

/* --- one file, as it is now ------------------------------------------------------------------- */

enum look { LOOK_WELL, LOOK_GONE, LOOK_WRONG };

struct file {
    struct stat st;
    struct attr attr; /* borrows from raw; with LOOK_WELL and what is wrong but for the attribute */
    bool read;        /* the attribute */
    unsigned char raw[ATTR_ENCODED_MAX];
    enum validate_finding what; /* with LOOK_WRONG */
    struct error why;
};

static enum look wrong(struct file *f, enum validate_finding what)
{
    f->what = what;
    return LOOK_WRONG;
}

static enum look read_attribute(const char *path, struct file *f)
{
    ssize_t len = getxattr(path, ATTR_XATTR, f->raw, sizeof f->raw);
    if ((len < 0 || stat(path, &f->st) != 0) && errno == ENOENT)
        return LOOK_GONE;
    if (len < 0) {
        bool lost = errno == ENODATA || errno == ERANGE;
        error_errno(&f->why, errno, "attribute");
        return wrong(f, lost ? VALIDATE_attribute_damaged : VALIDATE_unreadable);
    }
    if (attr_decode(f->raw, (size_t)len, &f->attr, &f->why) != 0)
        return wrong(f, VALIDATE_attribute_damaged);
    f->read = true;
    return LOOK_WELL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* By HRW over the mountpaths as they are now; while those are not settled it may lie anywhere. */
static bool is_elsewhere(const struct walk *w, const char *name)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(object_store_mountpaths(w->config->store));
    struct mountpath *mp;
    return set->settled && mountpath_set_pick(set, w->bucket_id, name, &mp, NULL) == 0 &&
           mp != w->mp;
}

static enum look check_place(const struct walk *w, const char *path, struct file *f)
{
    struct object_path place;
    object_path_set(&place, w->bucket_id, f->attr.name);
    if (!ends_with(path, place.text))
        error_set(&f->why, E_CORRUPT, "'%s' is no place for that name", path);
    else if (is_elsewhere(w, f->attr.name))
        error_set(&f->why, E_CORRUPT, "the name belongs to another mountpath");
    else
        return LOOK_WELL;
    return wrong(f, VALIDATE_misplaced);
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool same_record(const struct index_record *a, const struct index_record *b)
{
    return a->size == b->size && a->tombstone == b->tombstone && a->modified_ms == b->modified_ms &&
           version_compare(&a->version, &b->version) == 0 &&
           checksum_equal(&a->checksum, &b->checksum) && same_text(a->job, b->job);
}

/* An index that cannot be asked is told of once, for all of it. */
static enum look check_index(const struct walk *w, struct file *f)
{
    struct index_record has, wants = index_record_of(&f->attr);
    char job[ATTR_JOB_MAX + 1];
    if (index_check(w->mp->index, NULL) != 0)
        return LOOK_WELL;
    int there = index_find(w->mp->index, w->bucket_id, f->attr.name, &has, job, &f->why);
    if (there < 0)
        return LOOK_WELL; /* it is stale by now */
    if (there == 0)
        return wrong(f, VALIDATE_not_indexed);
    if (same_record(&has, &wants))
        return LOOK_WELL;
    char in_index[VERSION_TEXT_MAX], in_file[VERSION_TEXT_MAX];
    error_set(&f->why, E_CORRUPT, "size %llu, version %s%s in the index; %llu, %s%s in the file",
              (unsigned long long)has.size, version_format(&has.version, in_index),
              has.tombstone ? " (deleted)" : "", (unsigned long long)wants.size,
              version_format(&wants.version, in_file), wants.tombstone ? " (deleted)" : "");
    return wrong(f, VALIDATE_index_differs);
}

static enum look check_size(struct file *f)
{
    if ((uint64_t)f->st.st_size == f->attr.size)
        return LOOK_WELL;
    error_set(&f->why, E_CORRUPT, "%llu bytes, not %llu", (unsigned long long)f->st.st_size,
              (unsigned long long)f->attr.size);
    return wrong(f, VALIDATE_size_differs);
}

static enum look look_at(const struct walk *w, const char *path, struct file *f)
{
    f->why = ERROR_INIT;
    f->read = false;
    enum look look = read_attribute(path, f);
    if (look == LOOK_WELL)
        look = check_place(w, path, f);
    if (look == LOOK_WELL)
        look = check_size(f);
    return look == LOOK_WELL ? check_index(w, f) : look;
}

/* --- once more, and nobody changes it meanwhile ------------------------------------------------
 */

/* The lock of this name; NULL: of nobody's, for who has no name. */
static int take_lock(const struct walk *w, struct object_place *p, const char *name,
                     struct error *err)
{
    int code = object_place_set(p, w->config->store, w->bucket_id, name, err);
    if (code != 0 && code != E_MOUNTPATH_DISABLED) /* the lock is the name's, whatever its place */
        return code;
    object_lock(p);
    return 0;
}

static enum look look_again(const struct walk *w, const char *path, struct file *f)
{
    _cleanup_place_ struct object_place p = {0};
    if (!f->read) /* nothing changes an attribute but with its name */
        return look_at(w, path, f);
    _cleanup_free_ char *name = xstrdup(f->attr.name);
    if (take_lock(w, &p, name, &f->why) != 0)
        return LOOK_GONE;
    enum look look = look_at(w, path, f);
    object_unlock(&p);
    return look;
}

/* --- checksums -------------------------------------------------------------------------------- */

/* Not faster than the rate. */
static void keep_to_rate(struct walk *w, size_t bytes)
{
    uint64_t rate = w->config->rate_bytes_s;
    w->read_bytes += bytes;
    validate_report_read(w->report, bytes);
    if (rate == 0)
        return;
    uint64_t due_ms = (uint64_t)((double)w->read_bytes * 1000 / (double)rate);
    uint64_t so_far_ms = clock_ms() - w->began_ms;
    if (due_ms > so_far_ms)
        (void)job_stop_pause(w->stop, due_ms - so_far_ms);
}

/* What was not in memory does not stay there: clients' objects do. */
static int sum_file(struct walk *w, int fd, const struct attr *a, struct checksum_value *sum,
                    struct error *err)
{
    _cleanup_free_ char *piece = xmalloc(PIECE);
    struct checksum *running = checksum_new(a->checksum.type);
    int code = 0;
    for (uint64_t at = 0; at < a->size && code == 0 && !w->stop->wanted;) {
        size_t len = a->size - at < PIECE ? (size_t)(a->size - at) : PIECE;
        bool cold = !reader_has(w->mp->reader, fd, at, len);
        code = reader_pread(w->mp->reader, fd, piece, len, at, err);
        if (cold)
            posix_fadvise(fd, (off_t)at, (off_t)len, POSIX_FADV_DONTNEED);
        if (code == 0)
            checksum_update(running, piece, len);
        at += len;
        keep_to_rate(w, len);
    }
    checksum_final(running, sum);
    checksum_free(running);
    return code;
}

/* Is this the object still?  Another one may have taken its name while it was read. */
static bool is_still(const char *path, const struct stat *st)
{
    struct stat now;
    return stat(path, &now) == 0 && now.st_ino == st->st_ino && now.st_dev == st->st_dev;
}

static void check_bytes(struct walk *w, const char *path, const struct file *f)
{
    const struct attr *a = &f->attr;
    struct checksum_value sum;
    struct error why = ERROR_INIT;
    struct stat st;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_ino != f->st.st_ino)
        return; /* it has changed: whoever looks next time sees it */
    int code = sum_file(w, fd, a, &sum, &why);
    if (w->stop->wanted || (code == 0 && checksum_equal(&sum, &a->checksum)) ||
        !is_still(path, &st) || !lives(w))
        return;
    if (code != 0) {
        mountpath_failed(w->mp, code);
        found(w, VALIDATE_unreadable, a->name, why.message);
        return;
    }
    char wants[2 * CHECKSUM_MAX + 1], has[2 * CHECKSUM_MAX + 1];
    checksum_hex(&a->checksum, wants);
    checksum_hex(&sum, has);
    error_set(&why, E_CORRUPT, "%s is %s, not %s", checksum_name(sum.type), has, wants);
    metric_add(metric_get(M_checksum_errors_total, NULL), 1);
    found(w, VALIDATE_checksum_differs, a->name, why.message);
}

/* --- files without a name --------------------------------------------------------------------- */

static void nameless_add(struct walk *w, const char *path, const struct file *f)
{
    if (w->nameless_count == NAMELESS_MAX) {
        found(w, f->what, "", path);
        return;
    }
    struct nameless *n = &w->nameless[w->nameless_count++];
    *n = (struct nameless){.path = xstrdup(path), .what = f->what, .why = f->why};
}

static void nameless_take(struct walk *w, size_t i, const char *name)
{
    struct nameless n = w->nameless[i];
    error_wrap(&n.why, "%s", n.path);
    found(w, n.what, name, n.why.message);
    free(n.path);
    w->nameless[i] = w->nameless[--w->nameless_count];
}

/* The index has this name, and so says whose the file in its place is. */
static void nameless_match(struct walk *w, const struct object_path *place, const char *name)
{
    for (size_t i = w->nameless_count; i-- > 0;) {
        if (ends_with(w->nameless[i].path, place->text))
            nameless_take(w, i, name);
    }
}

/* --- the files -------------------------------------------------------------------------------- */

static int walk_file(void *ctx, const char *path, struct error *err)
{
    struct walk *w = ctx;
    struct file f;
    (void)err;
    enum look look = look_at(w, path, &f);
    if (look == LOOK_WRONG)
        look = look_again(w, path, &f);
    if (look == LOOK_GONE || !lives(w))
        return 0;
    if (look == LOOK_WRONG && !f.read)
        nameless_add(w, path, &f);
    else if (look == LOOK_WRONG)
        found(w, f.what, f.attr.name, f.why.message);
    bool object = f.read && !attr_is_tombstone(&f.attr);
    if (object)
        validate_report_looked_at(w->report);
    if (object && w->config->checksums && f.attr.checksum.type != CHECKSUM_NONE &&
        (uint64_t)f.st.st_size == f.attr.size)
        check_bytes(w, path, &f);
    return 0;
}

/* --- the names -------------------------------------------------------------------------------- */

struct batch {
    struct arena *arena;
    const char *names[NAMES_AT_ONCE];
    size_t count;
    char last[ATTR_NAME_MAX + 1]; /* where the next batch goes on */
    bool more;
};

/* The cursor is closed before files are looked at, so that it keeps no old pages alive. */
static int collect(const struct walk *w, struct batch *b, struct error *err)
{
    _cleanup_(index_cursor_closep)
    struct index_cursor *c = NULL;
    int there = index_cursor_open(w->mp->index, &c, err);
    if (there == 0)
        there = index_cursor_seek(c, w->bucket_id, b->last, *b->last != '\0', err);
    b->count = 0;
    for (; there == 1 && b->count < NAMES_AT_ONCE; there = index_cursor_next(c, err)) {
        snprintf(b->last, sizeof b->last, "%s", index_cursor_name(c));
        b->names[b->count++] = arena_strdup(b->arena, b->last);
    }
    b->more = there == 1;
    return there < 0 ? there : 0;
}

static bool has_file(const struct walk *w, const struct object_path *place)
{
    return faccessat(w->mp->obj_fd, place->text, F_OK, 0) == 0 || errno != ENOENT;
}

static int walk_name(struct walk *w, const char *name, struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    struct index_record rec;
    char job[ATTR_JOB_MAX + 1];
    struct object_path place;
    object_path_set(&place, w->bucket_id, name);
    nameless_match(w, &place, name);
    if (has_file(w, &place))
        return 0;
    int code = take_lock(w, &p, name, err);
    if (code != 0)
        return code;
    int there = index_find(w->mp->index, w->bucket_id, name, &rec, job, err);
    bool missing = there == 1 && !has_file(w, &place);
    object_unlock(&p);
    if (missing && lives(w))
        found(w, VALIDATE_file_missing, name, rec.tombstone ? "a tombstone" : "");
    return there < 0 ? there : 0;
}

static int walk_names(struct walk *w, struct error *err)
{
    struct batch *b = xcalloc(1, sizeof *b);
    b->arena = arena_new(64 * 1024);
    b->more = true;
    int code = 0;
    while (code == 0 && b->more && !w->stop->wanted) {
        arena_reset(b->arena);
        code = collect(w, b, err);
        for (size_t i = 0; i < b->count && code == 0 && !w->stop->wanted; i++)
            code = walk_name(w, b->names[i], err);
    }
    arena_free(b->arena);
    free(b);
    return code;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* What keeps the index from being read belongs to this mountpath alone. */
static void cannot_look(const struct walk *w, const struct error *why)
{
    if (why->code != E_CANCELLED)
        found(w, VALIDATE_not_looked_at, "", why->message);
}

static int walk_all_files(struct walk *w, struct error *err)
{
    _cleanup_free_ uint64_t *ids = NULL;
    size_t count = 0;
    int code = mountpath_buckets(w->mp, &ids, &count, err);
    for (size_t i = 0; i < count && code == 0; i++) {
        w->bucket_id = ids[i];
        if (lives(w))
            code = object_files_each(w->mp, ids[i], &w->stop->wanted, walk_file, w, err);
    }
    w->bucket_id = 0;
    return code;
}

static int walk_all_names(struct walk *w, struct error *err)
{
    uint64_t id = 0;
    int code = index_check(w->mp->index, err), there = 0;
    while (code == 0 && !w->stop->wanted &&
           (there = index_next_bucket(w->mp->index, id, &id, err)) == 1) {
        w->bucket_id = id;
        if (lives(w))
            code = walk_names(w, err);
    }
    w->bucket_id = 0;
    return code == 0 && there < 0 ? there : code;
}

struct run {
    const struct validate_config *config;
    struct job_stop *stop;
    struct validate_report *report;
    const struct mountpath_set *set;
};

static int walk_mountpath(void *ctx, size_t i, struct error *err)
{
    const struct run *r = ctx;
    struct walk w = {.config = r->config,
                     .stop = r->stop,
                     .report = r->report,
                     .mp = r->set->all[i],
                     .began_ms = clock_ms()};
    (void)err;
    struct error why = ERROR_INIT;
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); /* where it may not, it goes on as it is */
    if (walk_all_files(&w, &why) != 0)
        cannot_look(&w, &why);
    why = ERROR_INIT;
    if (!r->stop->wanted && walk_all_names(&w, &why) != 0)
        cannot_look(&w, &why);
    while (w.nameless_count > 0)
        nameless_take(&w, w.nameless_count - 1, "");
    return 0;
}

static void tell_of_absent(const struct run *r)
{
    for (size_t i = 0; i < r->set->roster->count; i++) {
        const struct roster_member *m = &r->set->roster->members[i];
        if (r->set->each[i] == NULL)
            validate_report_add(r->report, VALIDATE_not_looked_at, m->path, 0, "",
                                m->why != NULL ? m->why : "it is not open");
    }
}

static void expect(const struct run *r)
{
    struct summary sum;
    if (summary_make(object_store_mountpaths(r->config->store), &sum, NULL) != 0)
        return; /* only the progress is not known */
    for (size_t i = 0; i < sum.count; i++)
        validate_report_expect(r->report, sum.rows[i].objects);
    summary_done(&sum);
}

int validate_run(const struct validate_config *config, struct job_stop *stop,
                 struct validate_report *report, struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(object_store_mountpaths(config->store));
    struct run r = {.config = config, .stop = stop, .report = report, .set = set};
    unsigned width = set->count < WALKERS_MAX ? (unsigned)set->count : WALKERS_MAX;
    expect(&r);
    tell_of_absent(&r);
    int code =
        set->count == 0 ? 0 : parallel_for("validate", width, set->count, walk_mountpath, &r, err);
    validate_report_end(report);
    if (code == 0 && stop->wanted)
        return error_set(err, E_ABORTED, "the validation was stopped");
    return code;
}
