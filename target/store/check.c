/* Is the file of a name what it was stored as?  For who doubts it, and has others to ask for a good
 * copy (read_repair.h). */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"
#include "io/reader.h"
#include "target/store/object_parts.h"
#include "target/store/quarantine.h"
#include "target/store/validate_report.h"

enum { PIECE = 1 << 20 };

#define FOUND_BY "doubt" /* in place of a scrub's id */

/* What is known of a file. */
struct finding {
    struct mountpath *mp;
    char *path;
    uint64_t inode;
    bool lacking; /* there should be a file with its bytes, and there is none */
    bool wrong;   /* this one is damaged: what, why */
    enum validate_finding what;
    struct error why;
    int fd; /* whose bytes are to be read, or -1 */
    struct stored cur;
};

static void finding_done(struct finding *f)
{
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
}

static void wrong(struct finding *f, enum validate_finding what)
{
    f->wrong = true;
    f->what = what;
}

bool stored_is_hollow(const struct object_place *p, const struct stored *cur)
{
    struct stat st;
    if (!cur->exists || cur->damaged || attr_is_tombstone(&cur->attr))
        return false;
    _cleanup_free_ char *path = object_place_text(p, cur->mp);
    return stat(path, &st) == 0 && (uint64_t)st.st_size != cur->attr.size;
}

bool stored_has_no_room(const struct object_place *p, const struct stored *cur)
{
    _cleanup_free_ char *path = object_place_text(p, cur->mp);
    return quarantine_is_no_room(path);
}

/* --- what is there, under the lock ------------------------------------------------------------ */

/* Which file it is that is wrong: another one, which is written meanwhile, is not moved aside. */
static void note_inode(struct finding *f)
{
    struct stat st;
    if (stat(f->path, &st) == 0)
        f->inode = st.st_ino;
}

/* Another name's file lies here: a collision, or it was put here behind the target's back? */
static int look_at_stranger(const struct object_place *p, struct finding *f, int code,
                            struct error *err)
{
    const struct stored none = {.exists = false};
    f->cur = none;
    f->mp = p->mp;
    if (!stored_lost_object(p, &none))
        return code;
    *err = ERROR_INIT;
    note_inode(f);
    error_set(&f->why, E_CORRUPT, "the file belongs to another object");
    wrong(f, VALIDATE_misplaced);
    return 0;
}

/* One that cannot be opened is left to the tests of its disk. */
static int look_at_bytes(struct finding *f, struct error *err)
{
    const struct attr *a = &f->cur.attr;
    struct stat st;
    char job[ATTR_JOB_MAX + 1];
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        return mountpath_failed(f->mp, error_errno(err, errno, "open '%s'", f->path));
    f->inode = st.st_ino;
    f->lacking = quarantine_look(f->path, job) == QUARANTINE_STUB;
    if (f->lacking || (uint64_t)st.st_size == a->size)
        return 0;
    error_set(&f->why, E_CORRUPT, "%llu bytes, not %llu", (unsigned long long)st.st_size,
              (unsigned long long)a->size);
    wrong(f, VALIDATE_size_differs);
    return 0;
}

static int look(const struct object_place *p, struct finding *f, struct error *err)
{
    int code = stored_read(p, &f->cur, err);
    f->mp = code == 0 && f->cur.exists ? f->cur.mp : p->mp;
    f->path = object_place_text(p, f->mp);
    if (code == E_HASH_COLLISION)
        return look_at_stranger(p, f, code, err);
    if (code != 0)
        return code;
    f->lacking = stored_lost_object(p, &f->cur);
    if (!f->cur.exists || stored_hidden(p->store, &f->cur))
        return 0;
    if (f->cur.damaged) {
        note_inode(f);
        error_set(&f->why, E_CORRUPT, "the attribute cannot be read");
        wrong(f, VALIDATE_attribute_damaged);
        return 0;
    }
    return attr_is_tombstone(&f->cur.attr) ? 0 : look_at_bytes(f, err);
}

/* --- its bytes, without it -------------------------------------------------------------------- */

static void read_all(struct finding *f)
{
    const struct attr *a = &f->cur.attr;
    _cleanup_free_ char *piece = xmalloc(PIECE);
    struct checksum *running = checksum_new(a->checksum.type);
    struct checksum_value sum;
    int code = 0;
    for (uint64_t at = 0; at < a->size && code == 0;) {
        size_t len = a->size - at < PIECE ? (size_t)(a->size - at) : PIECE;
        code = reader_pread(f->mp->reader, f->fd, piece, len, at, &f->why);
        if (code == 0)
            checksum_update(running, piece, len);
        at += len;
    }
    checksum_final(running, &sum);
    checksum_free(running);
    if (code != 0) {
        wrong(f, VALIDATE_unreadable);
    } else if (!checksum_equal(&sum, &a->checksum)) {
        error_set(&f->why, E_CORRUPT, "the bytes do not have their checksum any more");
        wrong(f, VALIDATE_checksum_differs);
    }
}

static bool has_bytes_to_read(const struct finding *f)
{
    return f->fd >= 0 && !f->wrong && !f->lacking && f->cur.attr.checksum.type != CHECKSUM_NONE;
}

/* --- what becomes of it ----------------------------------------------------------------------- */

/* What the stub is to say where the file does not: what the index has. */
static bool attr_of_index(const struct object_place *p, const struct finding *f, struct attr *out)
{
    struct index_record rec;
    char job[ATTR_JOB_MAX + 1];
    if (index_check(f->mp->index, NULL) != 0 ||
        index_find(f->mp->index, p->bucket_id, p->name, &rec, job, NULL) != 1 || rec.tombstone ||
        rec.job != NULL || rec.size == 0)
        return false;
    *out = (struct attr){.flags = ATTR_DURABLE,
                         .name = p->name,
                         .size = rec.size,
                         .version = rec.version,
                         .checksum = rec.checksum,
                         .modified_ms = rec.modified_ms};
    return true;
}

static int set_aside(const struct object_place *p, struct finding *f, struct error *err)
{
    struct attr indexed;
    bool taken, own = f->cur.exists && !f->cur.damaged;
    const struct attr *attr = own ? &f->cur.attr : attr_of_index(p, f, &indexed) ? &indexed : NULL;
    mountpath_failed(f->mp, E_CORRUPT);
    const struct quarantine q = {.mp = f->mp,
                                 .path = f->path,
                                 .inode = f->inode,
                                 .attr = attr,
                                 .job_id = FOUND_BY,
                                 .bucket_id = p->bucket_id,
                                 .name = p->name,
                                 .what = validate_finding_name(f->what),
                                 .detail = f->why.message};
    int code = quarantine_take(&q, &taken, err);
    f->lacking = f->lacking || (code == 0 && taken);
    if (code == 0 && taken)
        metric_add(metric_get(M_quarantined_total, NULL), 1);
    return code;
}

/* While it was read it may have been replaced: then nothing is done about it. */
static int judge(const struct object_place *p, struct finding *f, struct error *err)
{
    if (!f->wrong)
        return 0;
    object_lock(p);
    int code = set_aside(p, f, err);
    object_unlock(p);
    return code;
}

int object_check(struct object_store *s, uint64_t bucket_id, const char *name, bool *lacking,
                 struct error *err)
{
    _cleanup_place_ struct object_place p = {0};
    *lacking = false;
    int code = object_place_set(&p, s, bucket_id, name, err);
    if (code != 0)
        return code;
    struct finding *f = xcalloc(1, sizeof *f);
    f->fd = -1;
    object_lock(&p);
    code = look(&p, f, err);
    object_unlock(&p);
    if (code == 0 && has_bytes_to_read(f))
        read_all(f);
    if (code == 0)
        code = judge(&p, f, err);
    *lacking = f->lacking;
    finding_done(f);
    free(f);
    return code;
}
