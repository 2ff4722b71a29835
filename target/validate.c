#include "target/validate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/meter.h"
#include "io/pool.h"
#include "io/reader.h"
#include "target/object_files.h"
#include "target/object_internal.h"
#include "target/quarantine.h"
#include "target/scrub_cursor.h"
#include "target/summary.h"

enum {
    NICE = 10,
    WALKERS_MAX = 8,
    NAMES_AT_ONCE = 500,
    PIECE = 1 << 20,
    FILE_COSTS = 4096, /* a file without its bytes, as bytes */
    PAUSE_MS = 500,    /* at once */
    YIELD_MS = 10,
    YIELD_MAX_MS = 100
};

/* One mountpath. */
struct walk {
    const struct validate_config *config;
    const struct validate_scrub *scrub; /* the config's */
    struct job_stop *stop;
    const struct mountpath_set *set;
    struct mountpath *mp;
    struct validate_part *part;
    uint64_t bucket_id;
    uint64_t due_us;      /* by the rate, of the next piece */
    uint64_t since_yield; /* bytes */
    uint64_t saved_ms;
    struct scrub_cursor at;
};

/* A scrub lets the set go when another one is in force: it goes on under that. */
static bool shall_end(const struct walk *w)
{
    return w->stop->wanted || (w->scrub != NULL && !mountpath_set_is_current(w->set));
}

static void found(const struct walk *w, enum validate_finding what, const char *name,
                  const char *detail)
{
    if (what != VALIDATE_not_indexed && what != VALIDATE_not_looked_at)
        mountpath_failed(w->mp, E_CORRUPT);
    validate_part_add(w->part, what, w->bucket_id, name, detail);
    if (w->scrub != NULL) {
        _cleanup_free_ char *labels = xprintf("what=\"%s\"", validate_finding_name(what));
        metric_add(metric_get(M_scrub_found_total, labels), 1);
    }
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
    bool elsewhere;   /* with VALIDATE_misplaced: its name belongs to another mountpath */
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
    int there = stat(path, &f->st);
    ssize_t len = there == 0 ? getxattr(path, ATTR_XATTR, f->raw, sizeof f->raw) : -1;
    if (len < 0 && errno == ENOENT)
        return LOOK_GONE;
    if (len < 0) {
        bool lost = errno == ENODATA || errno == ERANGE;
        error_errno(&f->why, errno, "attribute");
        return wrong(f, lost ? VALIDATE_attribute_damaged : VALIDATE_unreadable);
    }
    int code = attr_decode(f->raw, (size_t)len, &f->attr, &f->why);
    if (code != 0)
        return wrong(f, code == E_CORRUPT ? VALIDATE_attribute_damaged : VALIDATE_unknown_format);
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
    else if ((f->elsewhere = is_elsewhere(w, f->attr.name)))
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
    return a->size == b->size && a->tombstone == b->tombstone && a->pending == b->pending &&
           a->modified_ms == b->modified_ms &&
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

static bool is_stub(const char *path)
{
    char job[ATTR_JOB_MAX + 1];
    return quarantine_look(path, job) == QUARANTINE_STUB;
}

/* A stub is no damage that anything more could be done about: the walk of the names tells of it. */
static enum look look_at(const struct walk *w, const char *path, struct file *f)
{
    f->why = ERROR_INIT;
    f->read = f->elsewhere = false;
    enum look look = read_attribute(path, f);
    if (look == LOOK_WELL)
        look = check_place(w, path, f);
    if (look == LOOK_WELL)
        look = check_size(f);
    if (look == LOOK_WELL)
        look = check_index(w, f);
    return look == LOOK_WRONG && is_stub(path) ? LOOK_GONE : look;
}

/* --- what a scrub does ------------------------------------------------------------------------ */

/* What a newer release wrote is not ours to judge. */
enum mend { MEND_NOTHING, MEND_QUARANTINE, MEND_INDEX, MEND_REPAIR };

static const enum mend mends[VALIDATE_FINDINGS_COUNT] = {
    [VALIDATE_file_missing] = MEND_REPAIR,         [VALIDATE_not_indexed] = MEND_INDEX,
    [VALIDATE_index_differs] = MEND_INDEX,         [VALIDATE_attribute_damaged] = MEND_QUARANTINE,
    [VALIDATE_size_differs] = MEND_QUARANTINE,     [VALIDATE_misplaced] = MEND_QUARANTINE,
    [VALIDATE_checksum_differs] = MEND_QUARANTINE, [VALIDATE_quarantined] = MEND_REPAIR,
    [VALIDATE_unreadable] = MEND_REPAIR,
};

/* A file to be dealt with. */
struct sick {
    const char *path;
    const char *name; /* of the object whose place it is; "": not known */
    uint64_t inode;
    const struct attr *attr; /* of that object, or NULL */
    enum validate_finding what;
    const char *why;
};

static void want_repair(const struct walk *w, const char *name)
{
    if (*name == '\0')
        return;
    w->scrub->repair_wanted(w->config->ctx, w->bucket_id, name);
    validate_part_mended(w->part, VALIDATE_MEND_repairs_wanted);
}

static void move_aside(const struct walk *w, const struct sick *s)
{
    bool taken;
    struct error err = ERROR_INIT;
    const struct quarantine q = {.mp = w->mp,
                                 .path = s->path,
                                 .inode = s->inode,
                                 .attr = s->attr,
                                 .job_id = w->scrub->job_id,
                                 .bucket_id = w->bucket_id,
                                 .name = s->name,
                                 .what = validate_finding_name(s->what),
                                 .detail = s->why};
    if (quarantine_take(&q, &taken, &err) != 0) {
        log_error("damaged file not moved aside", lstr("path", s->path), lerr(&err));
        validate_part_mended(w->part, VALIDATE_MEND_failed);
    } else if (taken) {
        metric_add(metric_get(M_quarantined_total, NULL), 1);
        validate_part_mended(w->part, VALIDATE_MEND_quarantined);
    }
}

static void mend_index(const struct walk *w, const char *name)
{
    _cleanup_place_ struct object_place p = {0};
    /* Where HRW would put it does not matter: it lies here. */
    (void)object_place_set(&p, w->config->store, w->bucket_id, name, NULL);
    p.mp = w->mp;
    object_restore_index(&p);
    bool well = index_check(w->mp->index, NULL) == 0;
    validate_part_mended(w->part, well ? VALIDATE_MEND_indexed : VALIDATE_MEND_failed);
}

/* Under the name's lock, where there is a name. */
static void mend(const struct walk *w, const struct sick *s)
{
    if (w->scrub == NULL)
        return;
    if (mends[s->what] == MEND_QUARANTINE)
        move_aside(w, s);
    if (mends[s->what] == MEND_INDEX)
        mend_index(w, s->name);
    else if (mends[s->what] == MEND_REPAIR || s->attr != NULL)
        want_repair(w, s->name); /* of the others the walk of the names says whose place it is */
}

static void report(const struct walk *w, const char *path, const struct file *f)
{
    const bool misplaced = f->what == VALIDATE_misplaced;
    /* Whose place it lies in, the walk of the names will see. */
    const struct sick s = {.path = path,
                           .name = misplaced ? "" : f->attr.name,
                           .inode = f->st.st_ino,
                           .attr = misplaced ? NULL : &f->attr,
                           .what = f->what,
                           .why = f->why.message};
    found(w, f->what, f->attr.name, f->why.message);
    if (!f->elsewhere) /* nobody is given what lies there */
        mend(w, &s);
}

/* --- once more, and nobody changes it meanwhile ----------------------------------------------- */

/* The lock of this name. */
static int take_lock(const struct walk *w, struct object_place *p, const char *name,
                     struct error *err)
{
    int code = object_place_set(p, w->config->store, w->bucket_id, name, err);
    if (code != 0 && code != E_MOUNTPATH_DISABLED) /* the lock is the name's, whatever its place */
        return code;
    object_lock(p);
    return 0;
}

/* What is wrong, and has a name, is reported and dealt with here. */
static enum look look_again(const struct walk *w, const char *path, struct file *f)
{
    _cleanup_place_ struct object_place p = {0};
    if (!f->read) /* nothing changes an attribute but with its name */
        return look_at(w, path, f);
    _cleanup_free_ char *name = xstrdup(f->attr.name);
    if (take_lock(w, &p, name, &f->why) != 0)
        return LOOK_GONE;
    enum look look = look_at(w, path, f);
    if (look == LOOK_WRONG && f->read && lives(w))
        report(w, path, f);
    object_unlock(&p);
    return look;
}

/* --- pace ------------------------------------------------------------------------------------- */

static void pause_for(const struct walk *w, uint64_t ms)
{
    while (ms > 0 && !shall_end(w)) {
        uint64_t now_ms = ms < PAUSE_MS ? ms : PAUSE_MS;
        (void)job_stop_pause(w->stop, now_ms);
        ms -= now_ms;
    }
}

/* Not faster than the rate; time that was lost is not made up for. */
static void keep_to_rate(struct walk *w, size_t bytes)
{
    uint64_t rate = w->config->rate_bytes_s != NULL ? w->config->rate_bytes_s(w->config->ctx) : 0;
    uint64_t now_us = clock_us();
    validate_part_read(w->part, bytes);
    if (w->scrub != NULL)
        metric_add(metric_get(M_scrub_bytes_total, NULL), bytes);
    if (rate == 0)
        return;
    w->due_us += (uint64_t)((double)bytes * 1e6 / (double)rate);
    if (w->due_us < now_us)
        w->due_us = now_us;
    pause_for(w, (w->due_us - now_us) / 1000);
}

/* A scrub lets others go first, but is not kept from its work for ever. */
static void yield_to_others(struct walk *w, size_t bytes)
{
    w->since_yield += bytes;
    if (w->scrub == NULL || w->since_yield < PIECE)
        return;
    w->since_yield = 0;
    for (int ms = 0; ms < YIELD_MAX_MS && meter_queue(w->mp->meter) > 0; ms += YIELD_MS)
        pause_for(w, YIELD_MS);
}

/* --- checksums -------------------------------------------------------------------------------- */

/* What was not in memory does not stay there: clients' objects do. */
static int sum_file(struct walk *w, int fd, const struct attr *a, struct checksum_value *sum,
                    struct error *err)
{
    _cleanup_free_ char *piece = xmalloc(PIECE);
    struct checksum *running = checksum_new(a->checksum.type);
    int code = 0;
    for (uint64_t at = 0; at < a->size && code == 0 && !shall_end(w);) {
        size_t len = a->size - at < PIECE ? (size_t)(a->size - at) : PIECE;
        yield_to_others(w, len);
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

static void report_bytes(const struct walk *w, const char *path, struct file *f)
{
    _cleanup_place_ struct object_place p = {0};
    if (take_lock(w, &p, f->attr.name, NULL) != 0)
        return;
    if (is_still(path, &f->st) && lives(w))
        report(w, path, f);
    object_unlock(&p);
}

/* False: the work ended before the file did. */
static bool check_bytes(struct walk *w, const char *path, struct file *f)
{
    const struct attr *a = &f->attr;
    struct checksum_value sum;
    struct stat st;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_ino != f->st.st_ino)
        return true; /* it has changed: whoever looks next time sees it */
    f->why = ERROR_INIT;
    int code = sum_file(w, fd, a, &sum, &f->why);
    if (shall_end(w))
        return false;
    if (code == 0 && checksum_equal(&sum, &a->checksum))
        return true;
    f->what = code != 0 ? VALIDATE_unreadable : VALIDATE_checksum_differs;
    if (code != 0) {
        mountpath_failed(w->mp, code);
    } else {
        char wants[2 * CHECKSUM_MAX + 1], has[2 * CHECKSUM_MAX + 1];
        checksum_hex(&a->checksum, wants);
        checksum_hex(&sum, has);
        error_set(&f->why, E_CORRUPT, "%s is %s, not %s", checksum_name(sum.type), has, wants);
        metric_add(metric_get(M_checksum_errors_total, NULL), 1);
    }
    report_bytes(w, path, f);
    return true;
}

/* --- files without a name --------------------------------------------------------------------- */

static void nameless_report(struct walk *w, const struct scrub_nameless *n, const char *name)
{
    struct error why;
    const struct sick s = {
        .path = n->path, .name = name, .inode = n->inode, .what = n->what, .why = n->why};
    error_set(&why, E_CORRUPT, "%s: %s", n->path, n->why);
    found(w, n->what, name, why.message);
    mend(w, &s);
}

static void nameless_add(struct walk *w, const char *path, const struct file *f)
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
    bool locked = *name != '\0' && take_lock(w, &p, name, NULL) == 0;
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
        if (ends_with(w->at.nameless[i].path, place->text))
            nameless_take(w, i, name);
    }
}

static void nameless_rest(struct walk *w)
{
    while (w->at.nameless_count > 0) {
        w->bucket_id = w->at.nameless[w->at.nameless_count - 1].bucket_id;
        nameless_take(w, w->at.nameless_count - 1, "");
    }
}

/* --- where it is ------------------------------------------------------------------------------ */

static void save(struct walk *w)
{
    struct error err = ERROR_INIT;
    if (w->scrub == NULL)
        return;
    w->saved_ms = clock_ms();
    if (scrub_cursor_save(&w->at, w->mp, w->scrub->job_id, w->part, &err) != 0)
        log_warn("where a scrub is was not saved", lstr("mountpath", w->mp->path), lerr(&err));
}

static void save_now_and_then(struct walk *w)
{
    if (w->scrub != NULL && clock_ms() - w->saved_ms >= w->scrub->save_ms)
        save(w);
}

static void enter(struct walk *w, enum scrub_phase phase)
{
    w->at.phase = phase;
    w->at.bucket_id = w->at.fan = 0;
    w->at.name[0] = '\0';
    w->bucket_id = 0;
    save(w);
}

static void go_on(struct walk *w)
{
    struct error err = ERROR_INIT;
    if (w->scrub != NULL && scrub_cursor_load(&w->at, w->mp, w->scrub->job_id, w->part, &err) != 0)
        log_warn("a scrub begins anew", lstr("mountpath", w->mp->path), lerr(&err));
    w->due_us = clock_us();
    w->saved_ms = clock_ms();
}

/* --- the files -------------------------------------------------------------------------------- */

static void looked_at(const struct walk *w)
{
    validate_part_looked_at(w->part);
    if (w->scrub != NULL)
        metric_add(metric_get(M_scrub_objects_total, NULL), 1);
}

static int walk_file(void *ctx, const char *path, struct error *err)
{
    struct walk *w = ctx;
    struct file f;
    if (shall_end(w))
        return error_set(err, E_CANCELLED, "stopping");
    yield_to_others(w, FILE_COSTS);
    enum look look = look_at(w, path, &f);
    if (look == LOOK_WRONG)
        look = look_again(w, path, &f);
    if (look == LOOK_GONE || !lives(w))
        return 0;
    if (look == LOOK_WRONG && !f.read)
        nameless_add(w, path, &f);
    if (!f.read || attr_is_tombstone(&f.attr))
        return 0;
    looked_at(w);
    bool sound = look == LOOK_WELL || mends[f.what] == MEND_INDEX || w->scrub == NULL;
    if (!w->config->checksums || f.attr.checksum.type == CHECKSUM_NONE || !sound ||
        (uint64_t)f.st.st_size != f.attr.size)
        return 0;
    return check_bytes(w, path, &f) ? 0 : error_set(err, E_CANCELLED, "stopping");
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
    if (take_lock(w, &p, name, &err) != 0)
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
    if (w->scrub != NULL && nameless)
        name_stub(w, path, name);
    if (w->scrub != NULL && strcmp(job, w->scrub->job_id) == 0) {
        if (nameless)
            want_repair(w, name);
        return;
    }
    const struct sick s = {.path = path, .name = name, .what = VALIDATE_quarantined, .why = job};
    found(w, VALIDATE_quarantined, name, job);
    mend(w, &s);
}

static int tell_of_missing(const struct walk *w, const char *path, const char *name,
                           struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    struct index_record rec;
    char job[ATTR_JOB_MAX + 1];
    int code = take_lock(w, &p, name, err);
    if (code != 0)
        return code;
    int there = index_find(w->mp->index, w->bucket_id, name, &rec, job, err);
    bool missing = there == 1 && quarantine_look(path, job) == QUARANTINE_NO_FILE;
    object_unlock(&p);
    if (!missing || !lives(w))
        return there < 0 ? there : 0;
    const struct sick s = {
        .path = path, .name = rec.tombstone ? "" : name, .what = VALIDATE_file_missing, .why = ""};
    found(w, VALIDATE_file_missing, name, rec.tombstone ? "a tombstone" : "");
    mend(w, &s);
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
    if (look == QUARANTINE_STUB && lives(w))
        tell_of_stub(w, path, name, job);
    return look == QUARANTINE_NO_FILE ? tell_of_missing(w, path, name, err) : 0;
}

static int walk_batch(struct walk *w, struct batch *b, struct error *err)
{
    arena_reset(b->arena);
    int code = collect(w, b, err);
    for (size_t i = 0; i < b->count && code == 0; i++) {
        yield_to_others(w, FILE_COSTS);
        code =
            shall_end(w) ? error_set(err, E_CANCELLED, "stopping") : walk_name(w, b->names[i], err);
    }
    return code;
}

/* Those behind w->at.name. */
static int walk_names(struct walk *w, struct error *err)
{
    struct batch *b = xcalloc(1, sizeof *b);
    b->arena = arena_new(64 * 1024);
    b->more = true;
    snprintf(b->last, sizeof b->last, "%s", w->at.name);
    int code = 0;
    while (code == 0 && b->more) {
        code = walk_batch(w, b, err);
        if (code == 0) {
            snprintf(w->at.name, sizeof w->at.name, "%s", b->last);
            save_now_and_then(w);
        }
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

static int id_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int walk_bucket_files(struct walk *w, uint64_t id, struct error *err)
{
    int code = 0;
    if (id != w->at.bucket_id)
        w->at.fan = 0;
    w->bucket_id = w->at.bucket_id = id;
    while (w->at.fan < OBJECT_FANS && code == 0 && lives(w)) {
        code = object_files_each_of(w->mp, id, (unsigned)w->at.fan, &w->stop->wanted, walk_file, w,
                                    err);
        if (code == 0) {
            w->at.fan++;
            save_now_and_then(w);
        }
    }
    return code;
}

static int walk_all_files(struct walk *w, struct error *err)
{
    _cleanup_free_ uint64_t *ids = NULL;
    size_t count = 0;
    int code = mountpath_buckets(w->mp, &ids, &count, err);
    if (count > 0)
        qsort(ids, count, sizeof *ids, id_compare);
    for (size_t i = 0; i < count && code == 0; i++) {
        if (ids[i] >= w->at.bucket_id)
            code = walk_bucket_files(w, ids[i], err);
    }
    w->bucket_id = 0;
    return code;
}

static int walk_all_names(struct walk *w, struct error *err)
{
    /* The one that it is in once more. */
    uint64_t id = w->at.bucket_id > 0 ? w->at.bucket_id - 1 : 0;
    int code = index_check(w->mp->index, err), there = 0;
    while (code == 0 && !shall_end(w) &&
           (there = index_next_bucket(w->mp->index, id, &id, err)) == 1) {
        if (id != w->at.bucket_id)
            w->at.name[0] = '\0';
        w->bucket_id = w->at.bucket_id = id;
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

/* Where it may not, it goes on as it is. */
static void lower_priority(const struct walk *w)
{
    enum { WHO_PROCESS = 1, CLASS_IDLE = 3, CLASS_SHIFT = 13 };
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    if (w->scrub != NULL)
        syscall(SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE << CLASS_SHIFT);
}

static void walk_phases(struct walk *w)
{
    struct error why = ERROR_INIT;
    if (w->at.phase == SCRUB_FILES) {
        if (walk_all_files(w, &why) != 0)
            cannot_look(w, &why);
        if (!shall_end(w))
            enter(w, SCRUB_NAMES);
    }
    why = ERROR_INIT;
    if (w->at.phase == SCRUB_NAMES && !shall_end(w)) {
        if (walk_all_names(w, &why) != 0)
            cannot_look(w, &why);
        if (shall_end(w))
            return;
        nameless_rest(w);
        enter(w, SCRUB_DONE);
    }
}

static int walk_mountpath(void *ctx, size_t i, struct error *err)
{
    const struct run *r = ctx;
    struct walk w = {.config = r->config,
                     .scrub = r->config->scrub,
                     .stop = r->stop,
                     .set = r->set,
                     .mp = r->set->all[i],
                     .part = validate_report_part(r->report, r->set->all[i]->path)};
    (void)err;
    lower_priority(&w);
    go_on(&w);
    walk_phases(&w);
    scrub_cursor_done(&w.at);
    return 0;
}

static void tell_of_absent(const struct run *r)
{
    for (size_t i = 0; i < r->set->roster->count; i++) {
        const struct roster_member *m = &r->set->roster->members[i];
        struct validate_part *part = validate_report_part(r->report, m->path);
        if (r->set->each[i] != NULL)
            continue;
        validate_part_reset(part);
        validate_part_add(part, VALIDATE_not_looked_at, 0, "",
                          m->why != NULL ? m->why : "it is not open");
    }
}

static void expect(const struct run *r)
{
    struct summary sum;
    uint64_t objects = 0;
    if (summary_make(object_store_mountpaths(r->config->store), NULL, &sum, NULL) != 0)
        return; /* only the progress is not known */
    for (size_t i = 0; i < sum.count; i++)
        objects += sum.rows[i].objects + sum.rows[i].slices;
    validate_report_expect(r->report, objects);
    summary_done(&sum);
}

/* *again: the mountpaths have changed. */
static int run_once(const struct validate_config *config, struct job_stop *stop,
                    struct validate_report *report, bool *again, struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(object_store_mountpaths(config->store));
    struct run r = {.config = config, .stop = stop, .report = report, .set = set};
    unsigned width = set->count < WALKERS_MAX ? (unsigned)set->count : WALKERS_MAX;
    expect(&r);
    tell_of_absent(&r);
    int code =
        set->count == 0 ? 0 : parallel_for("validate", width, set->count, walk_mountpath, &r, err);
    *again = code == 0 && config->scrub != NULL && !stop->wanted && !mountpath_set_is_current(set);
    return code;
}

int validate_run(const struct validate_config *config, struct job_stop *stop,
                 struct validate_report *report, struct error *err)
{
    bool again = true;
    int code = 0;
    while (again)
        code = run_once(config, stop, report, &again, err);
    validate_report_end(report);
    if (code == 0 && stop->wanted)
        return error_set(err, E_ABORTED, "it was stopped");
    return code;
}
