#include "target/uploads/part_write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/mem.h"
#include "io/file.h"
#include "io/meter.h"
#include "target/node/target.h"
#include "target/store/file_md5.h"
#include "target/uploads/part_place.h"

enum { FILE_MODE = 0640 };

/* In this order, each where it is wanted. */
enum step { STEP_SYNC_BYTES, STEP_SYNC_DIR, STEP_RECORD, STEP_SYNC_LOG, STEP_REPLACE, STEPS };

struct part_write {
    struct upload *upload;
    struct part part;
    struct part_place place;
    uint64_t size; /* announced, or OBJECT_SIZE_UNKNOWN */
    bool sync, has_expect;
    bool is_recorded; /* whatever fails then, its bytes may count */
    bool is_again;    /* the number had a record … */
    uint64_t log_at;  /* … before this one */
    struct checksum_value expect;
    struct s3_sum *sum;            /* NULL: the upload's parts have none */
    struct s3_sum_text expect_sum; /* known, or nothing */
    struct file_md5 *md5;
    int fd;     /* of the side file; else the upload's */
    int dir_fd; /* of the upload, for its sync; or -1 */
    uint32_t side;
    enum step step;
    struct disk_op op;
    struct error err;
    part_done_fn *done;
    void *arg;
};

static char *side_path(const struct part_write *w, uint32_t side)
{
    char name[32];
    snprintf(name, sizeof name, "side-%u", (unsigned)side);
    return upload_dir_file(w->upload->mp, w->upload->id, name);
}

static void remove_side(const struct part_write *w, uint32_t side)
{
    _cleanup_free_ char *path = side_path(w, side);
    unlink(path); /* what stays goes with the upload */
}

/* --- the place -------------------------------------------------------------------------------- */

static bool has_bit(const unsigned char *bits, unsigned number)
{
    return (bits[number / 8] >> number % 8 & 1) != 0;
}

static void set_bit(unsigned char *bits, unsigned number)
{
    bits[number / 8] |= (unsigned char)(1 << number % 8);
}

static int reserve_locked(struct part_write *w, struct error *err)
{
    struct upload *u = w->upload;
    int code = upload_check_open(u, err);
    if (code != 0)
        return code;
    if (u->log_bytes >= PART_RECORDS_MAX * (uint64_t)upload_record(u))
        return error_set(err, E_TOO_LARGE,
                         "upload '%s' has got %d parts, with those that were sent again, the most "
                         "that it may: complete it, or begin another one",
                         u->id, PART_RECORDS_MAX);
    if (w->size != OBJECT_SIZE_UNKNOWN)
        w->place =
            part_place_choose(&u->unit, has_bit(u->sent, w->part.number), w->part.number, w->size);
    if (w->place.in_body) {
        set_bit(u->sent, w->part.number);
        u->in_body++;
        w->part.unit = u->unit;
    } else {
        w->side = ++u->sides;
        w->part.side = w->side;
    }
    return 0;
}

/* Of a part that did not come: whoever sends it again may have its place in the body. */
static void give_back_place(struct part_write *w)
{
    struct upload *u = w->upload;
    if (!w->place.in_body)
        return;
    pthread_mutex_lock(&u->lock);
    u->in_body--;
    if (w->err.code != 0 && !w->is_recorded)
        u->sent[w->part.number / 8] &= (unsigned char)~(1 << w->part.number % 8);
    pthread_mutex_unlock(&u->lock);
    w->place.in_body = false;
}

static int open_side(struct part_write *w, struct error *err)
{
    _cleanup_free_ char *path = side_path(w, w->side),
                        *dir = upload_dir_file(w->upload->mp, w->upload->id, ".");
    int errnum = fault_errno("disk.open");
    if (errnum == 0 && (w->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE)) < 0)
        errnum = errno;
    if (errnum == 0 && w->sync && (w->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        errnum = errno;
    return errnum == 0 ? 0 : error_errno(err, errnum, "create '%s'", path);
}

static int file_of(const struct part_write *w)
{
    return w->place.in_body ? w->upload->body_fd : w->fd;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void part_write_free(struct part_write *w)
{
    file_md5_unref(w->md5);
    s3_sum_free(w->sum);
    if (w->fd >= 0)
        close(w->fd);
    if (w->dir_fd >= 0)
        close(w->dir_fd);
    upload_unref(w->upload);
    free(w);
}

static void forget(struct part_write *w)
{
    if (w->side != 0 && !w->is_recorded)
        remove_side(w, w->side);
    give_back_place(w);
}

void part_write_abort(struct part_write *w)
{
    if (w == NULL)
        return;
    error_set(&w->err, E_CANCELLED, "the part did not come");
    forget(w);
    part_write_free(w);
}

static void end(struct part_write *w)
{
    const struct part part = w->part;
    const struct error err = w->err;
    part_done_fn *done = w->done;
    void *arg = w->arg;
    mountpath_failed(w->upload->mp, err.code);
    if (err.code != 0)
        forget(w);
    else
        give_back_place(w);
    part_write_free(w);
    done(arg, err.code == 0 ? &part : NULL, &err);
}

/* --- the record ------------------------------------------------------------------------------- */

static int append_locked(struct part_write *w, struct error *err)
{
    struct upload *u = w->upload;
    unsigned char record[PART_RECORD_SUM];
    size_t len = upload_record(u);
    int code = upload_check_open(u, err);
    if (code != 0)
        return code;
    int errnum = fault_errno("upload.record");
    if (errnum != 0)
        return error_errno(err, errnum, "the log of upload '%s'", u->id);
    part_record_put(&w->part, len, record);
    code = file_pwrite_all(u->log_fd, record, len, u->log_bytes, err);
    w->is_recorded = code == 0;
    if (code != 0)
        return code;
    w->is_again = has_bit(u->stored, w->part.number);
    w->log_at = u->log_bytes;
    set_bit(u->stored, w->part.number);
    u->log_bytes += len;
    return 0;
}

static int append_record(struct part_write *w)
{
    w->part.time_ms = (uint64_t)clock_wall_ms();
    pthread_mutex_lock(&w->upload->lock);
    int code = append_locked(w, &w->err);
    pthread_mutex_unlock(&w->upload->lock);
    return code;
}

static int run_record(struct disk_op *op)
{
    return append_record(op->ctx) == 0 ? 0 : -EIO;
}

/* The bytes that this part takes the place of are read by nobody: a completion reads those of last
 * records.  What cannot be read now goes with the upload. */
static void remove_replaced(const struct part_write *w)
{
    if (!w->is_again)
        return;
    _cleanup_free_ char *log = xmalloc(w->log_at + 1);
    if (file_pread_full(w->upload->log_fd, log, w->log_at, 0, NULL) != 0)
        return;
    uint32_t side = part_log_side(log, w->log_at, upload_record(w->upload), w->part.number);
    if (side != 0)
        remove_side(w, side);
}

static int run_replace(struct disk_op *op)
{
    remove_replaced(op->ctx);
    return 0;
}

/* --- the steps -------------------------------------------------------------------------------- */

static void step_done(struct disk_op *op, int result);

static struct disk_op *next_op(struct part_write *w)
{
    const int fds[STEPS] = {[STEP_SYNC_BYTES] = file_of(w),
                            [STEP_SYNC_DIR] = w->dir_fd,
                            [STEP_RECORD] = -1,
                            [STEP_SYNC_LOG] = w->upload->log_fd,
                            [STEP_REPLACE] = -1};
    static const struct {
        const char *point; /* of a sync */
        int (*call)(struct disk_op *op);
    } steps[STEPS] = {[STEP_SYNC_BYTES] = {"upload.bytes", NULL},
                      [STEP_SYNC_DIR] = {"sync.directory", NULL},
                      [STEP_RECORD] = {NULL, run_record},
                      [STEP_SYNC_LOG] = {"upload.log", NULL},
                      [STEP_REPLACE] = {NULL, run_replace}};
    w->op = (struct disk_op){.kind = steps[w->step].call != NULL ? DISK_CALL : DISK_FSYNC,
                             .fd = fds[w->step],
                             .call = steps[w->step].call,
                             .point = steps[w->step].point,
                             .done = step_done,
                             .ctx = w};
    return &w->op;
}

static bool is_wanted(const struct part_write *w)
{
    return (w->step != STEP_SYNC_DIR || w->dir_fd >= 0) && (w->step != STEP_REPLACE || w->is_again);
}

static void step_done(struct disk_op *op, int result)
{
    struct part_write *w = op->ctx;
    if (result < 0 && w->err.code == 0)
        error_errno(&w->err, -result, "store part %u of upload '%s'", w->part.number,
                    w->upload->id);
    do
        w->step++;
    while (w->step < STEPS && !is_wanted(w));
    if (w->err.code != 0 || w->step == STEPS)
        end(w);
    else
        disk_submit_next(w->upload->mp->disk, next_op(w));
}

static int check_sum(struct part_write *w)
{
    struct s3_sum_text got = {.is_known = true};
    char got_text[S3_SUM_TEXT_MAX], want_text[S3_SUM_TEXT_MAX];
    if (w->sum == NULL)
        return 0;
    s3_sum_final(w->sum, &w->part.sum);
    w->part.has_sum = true;
    got.value = w->part.sum;
    if (!w->expect_sum.is_known || s3_sum_equal(&got.value, &w->expect_sum.value))
        return 0;
    return error_set(&w->err, E_CHECKSUM, "the checksum of the %llu bytes is %s, not %s",
                     (unsigned long long)w->part.size, s3_sum_text_print(&got, got_text),
                     s3_sum_text_print(&w->expect_sum, want_text));
}

static int check_whole(struct part_write *w)
{
    char hex[2 * CHECKSUM_MAX + 1], want[2 * CHECKSUM_MAX + 1];
    struct checksum_value md5;
    if (w->size != OBJECT_SIZE_UNKNOWN && w->part.size != w->size)
        return error_set(&w->err, E_LENGTH, "%llu of the announced %llu bytes have come",
                         (unsigned long long)w->part.size, (unsigned long long)w->size);
    int code = file_md5_result(w->md5, hex, &w->err);
    if (code == 0)
        code = checksum_parse(CHECKSUM_MD5, hex, &md5, &w->err);
    if (code != 0)
        return code;
    memcpy(w->part.md5, md5.bytes, PART_MD5);
    if (!w->has_expect || checksum_equal(&md5, &w->expect))
        return check_sum(w);
    checksum_hex(&w->expect, want);
    return error_set(&w->err, E_CHECKSUM, "the MD5 of the %llu bytes is %s, not %s",
                     (unsigned long long)w->part.size, hex, want);
}

static void md5_is_known(void *arg)
{
    struct part_write *w = arg;
    if (check_whole(w) == 0 && !w->sync && append_record(w) == 0)
        remove_replaced(w);
    if (w->err.code != 0 || !w->sync) {
        end(w);
        return;
    }
    w->step = STEP_SYNC_BYTES;
    disk_submit(w->upload->mp->disk, next_op(w));
}

void part_write_end(struct part_write *w, part_done_fn *done, void *arg)
{
    w->done = done;
    w->arg = arg;
    file_md5_end(w->md5, NULL, md5_is_known, w);
}

/* --- bytes ------------------------------------------------------------------------------------ */

int part_write_more(struct part_write *w, const void *data, size_t len, struct error *err)
{
    if (len > PART_SIZE_MAX - w->part.size)
        return error_set(err, E_TOO_LARGE, "a part has at most %llu bytes", PART_SIZE_MAX);
    if (w->size != OBJECT_SIZE_UNKNOWN && len > w->size - w->part.size)
        return error_set(err, E_LENGTH, "more than the announced %llu bytes have come",
                         (unsigned long long)w->size);
    struct mountpath *mp = w->upload->mp;
    uint64_t began_us = clock_us();
    meter_enter(mp->meter);
    int code = file_pwrite_all(file_of(w), data, len, w->place.offset + w->part.size, err);
    meter_count(mp->meter, METER_WRITE, began_us, len);
    meter_leave(mp->meter);
    if (code != 0)
        return mountpath_failed(mp, error_recode(err, code, "part %u of upload '%s' on '%s'",
                                                 w->part.number, w->upload->id, mp->path));
    file_md5_wrote(w->md5, data, len);
    if (w->sum != NULL)
        s3_sum_update(w->sum, data, len);
    w->part.size += len;
    return 0;
}

/* --- beginning -------------------------------------------------------------------------------- */

static int check_spec(const struct part_spec *spec, struct error *err)
{
    if (spec->number < 1 || spec->number > PARTS_MAX)
        return error_set(err, E_INVALID, "part %u: numbers are 1 to %d", spec->number, PARTS_MAX);
    if (spec->size != OBJECT_SIZE_UNKNOWN && spec->size > PART_SIZE_MAX)
        return error_set(err, E_TOO_LARGE, "a part has at most %llu bytes", PART_SIZE_MAX);
    return 0;
}

/* Parts have checksums of the upload's algorithm, or none. */
static int begin_sum(struct part_write *w, const struct s3_sum_text *asked, struct error *err)
{
    const struct s3_sum_kind *kind = &w->upload->sums;
    if (!kind->is_asked)
        return 0;
    if (asked != NULL && asked->value.type != kind->type)
        return error_set(err, E_INVALID,
                         "a checksum %s of a part of an upload with checksums %s: send none, or "
                         "one of that algorithm",
                         s3_sum_algorithm(asked->value.type), s3_sum_algorithm(kind->type));
    w->sum = s3_sum_new(kind->type);
    if (asked != NULL)
        w->expect_sum = *asked;
    return 0;
}

static int reserve(struct part_write *w, struct error *err)
{
    struct upload *u = w->upload;
    uint64_t size = w->size != OBJECT_SIZE_UNKNOWN ? w->size : 0;
    int code = upload_check_room(u, size, err);
    if (code != 0)
        return code;
    pthread_mutex_lock(&u->lock);
    code = reserve_locked(w, err);
    pthread_mutex_unlock(&u->lock);
    return code;
}

int part_write_begin(struct upload *u, const struct part_spec *spec, struct part_write **out,
                     struct error *err)
{
    int code = check_spec(spec, err);
    if (code != 0)
        return code;
    struct part_write *w = xcalloc(1, sizeof *w);
    *w = (struct part_write){.upload = upload_ref(u),
                             .part = {.number = spec->number},
                             .size = spec->size,
                             .sync = spec->sync,
                             .has_expect = spec->expect != NULL,
                             .fd = -1,
                             .dir_fd = -1};
    if (spec->expect != NULL)
        w->expect = *spec->expect;
    code = begin_sum(w, spec->sum, err);
    if (code == 0)
        code = reserve(w, err);
    if (code == 0 && w->side != 0)
        code = open_side(w, err);
    if (code == 0)
        code = file_md5_new(spec->md5, file_of(w), w->place.offset, w->size, &w->md5, err);
    if (code == 0)
        *out = w;
    else
        part_write_abort(w);
    return code;
}
