/* PUT: the bytes on their way into a temporary file, through checksums and a buffer. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/clock.h"
#include "common/mem.h"
#include "io/direct.h"
#include "io/file.h"
#include "io/meter.h"
#include "io/reader.h"
#include "target/disk/claim.h"
#include "target/format/attr_rank.h"
#include "target/store/commit.h"
#include "target/store/file_md5.h"
#include "target/store/known.h"
#include "target/store/put_sums.h"
#include "target/store/tmp_file.h"

enum {
    ARENA_BYTES = 512,
    ASK_FIRST_MIN = 256 * 1024,
    WRITE_THROUGH_MIN = 64 * 1024, /* a piece of this size is written as it is */
    PREALLOCATE_MIN = 1 << 20, /* smaller files get their blocks when they are flushed, together */
};

struct object_put {
    struct commit commit; /* first: see put_of() */
    struct object_condition condition;
    struct arena *texts;
    uint64_t size;    /* announced, or OBJECT_SIZE_UNKNOWN */
    uint64_t written; /* what object_put_write() was given */
    uint64_t claimed; /* so far room was asked for … */
    bool allocated;   /* … and taken, more than may be written */
    uint64_t hollow;  /* how many bytes it has that do not come */
    struct put_sums sums;
    struct file_md5 *md5; /* or NULL */
    char *buffer;
    size_t buffer_size, buffered;
    struct direct direct; /* how they are written */
    bool unread;
    bool finished; /* all bytes have come, and are what they should be */
    bool decided;  /* a write of our own, whose version other owners have */
    bool ranks;    /* of the same version the greater rank stays */
    bool unnamed;  /* it gets no name */
    bool linked;   /* a file had the bytes (struct object_file) */
    bool yields;   /* it takes the place of nothing that is pending */
    object_done_fn *done;
    void *arg;
};

static struct object_put *put_of(struct commit *c)
{
    return (struct object_put *)c;
}

/* Gives back what it holds of the store: its owner may be gone once done() was called. */
static void put_release(struct object_put *p)
{
    if (p->buffer != NULL)
        atomic_fetch_sub(&p->commit.place.store->put_memory, p->buffer_size);
    free(p->buffer);
    p->buffer = NULL;
    if (p->commit.fd >= 0)
        close(p->commit.fd);
    p->commit.fd = -1;
    object_place_done(&p->commit.place);
}

static void put_free(struct object_put *p)
{
    put_release(p);
    put_sums_done(&p->sums);
    file_md5_unref(p->md5);
    arena_free(p->texts);
    free(p);
}

/* --- beginning -------------------------------------------------------------------------------- */

/* A job's output goes only where nothing is; it remembers whether a tombstone was there. */
static int hidden_rule(struct commit *c, const struct stored *cur, struct error *err)
{
    const struct object_store *s = c->place.store;
    if (stored_visible(s, cur))
        return error_set(err, E_OBJECT_EXISTS, "object '%s' exists", c->place.name);
    if (cur->exists && !cur->damaged && attr_is_tombstone(&cur->attr) &&
        attr_is_pending(&cur->attr)) /* taken back, it would have to be deleted there once more */
        return error_set(err, E_OBJECT_EXISTS, "'%s' was deleted, and its backend still has it",
                         c->place.name);
    bool hidden = stored_hidden(s, cur);
    if (hidden && strcmp(cur->attr.job, c->attr.job) != 0)
        return object_reserved(cur, err);
    bool over =
        cur->exists && !cur->damaged &&
        (hidden ? (cur->attr.flags & ATTR_OVER_TOMBSTONE) != 0 : attr_is_tombstone(&cur->attr));
    c->attr.flags &= ~(unsigned)ATTR_OVER_TOMBSTONE;
    c->attr.flags |= over ? ATTR_OVER_TOMBSTONE : 0;
    return 0;
}

/* What is stored of it is known once all bytes have come; until then what was announced. */
static bool is_better(const struct object_put *p, const struct stored *cur)
{
    struct attr a = p->commit.attr;
    if (!p->ranks || attr_is_tombstone(&a) || attr_is_tombstone(&cur->attr))
        return false;
    if (!p->finished) {
        a.size = p->size;
        a.checksum = p->sums.expect;
    }
    int content =
        a.slices != NULL || cur->attr.slices != NULL
            ? 0
            : attr_content_compare(a.size, &a.checksum, cur->attr.size, &cur->attr.checksum);
    return content != 0 ? content > 0 : attr_rank(&a) > attr_rank(&cur->attr);
}

/* A mover never overwrites what is newer, or the same and whole, of the content that stays and of
 * no less rank; nor, without bytes, the same at all. */
static int moved_rule(const struct commit *c, const struct stored *cur, struct error *err)
{
    int than =
        !cur->exists || cur->damaged ? -1 : version_compare(&cur->attr.version, &c->attr.version);
    const struct object_put *p = put_of((struct commit *)c);
    bool betters = p->hollow == 0 && (stored_is_hollow(&c->place, cur) || is_better(p, cur));
    if (than > 0 || (than == 0 && !betters))
        return error_set(err, E_NOT_MODIFIED, "object '%s' exists already", c->place.name);
    return 0;
}

/* What an unfinished job makes is not seen before the job commits. */
static int visible_rule(const struct commit *c, struct error *err)
{
    const struct object_place *p = &c->place;
    const struct object_env *env = p->store->config.env;
    int code = env->takes != NULL ? env->takes(env->ctx, p->bucket_id, err) : 0;
    return code != 0 ? code : object_check_owned(p, err);
}

static int put_rule(struct commit *c, const struct stored *cur, struct error *err)
{
    const struct object_put *p = put_of(c);
    const struct object_store *s = c->place.store;
    struct attr scratch;
    int code = c->attr.job != NULL ? hidden_rule(c, cur, err) : visible_rule(c, err);
    if (code != 0)
        return code;
    if (c->attr.job != NULL)
        return p->condition.check != NULL ? p->condition.check(p->condition.ctx, NULL, err) : 0;
    if (stored_hidden(s, cur))
        return object_reserved(cur, err);
    if (c->moved && (code = moved_rule(c, cur, err)) != 0)
        return code;
    if (p->hollow > 0 && c->fd >= 0 && (code = known_mark(&c->place, cur, c->fd, err)) != 0)
        return code;
    if (p->yields && cur->exists && !cur->damaged && attr_is_pending(&cur->attr))
        return error_set(err, E_PRECONDITION, "object '%s' was written here, and is not uploaded",
                         c->place.name);
    if (p->condition.check == NULL)
        return 0;
    return p->condition.check(p->condition.ctx,
                              object_present(&c->place, cur, &c->earlier, &scratch), err);
}

static void put_seen(struct commit *c)
{
    const struct object_put *p = put_of(c);
    if (p->condition.seen != NULL)
        p->condition.seen(p->condition.ctx);
}

static const char *copy_text(struct arena *a, const char *text)
{
    return text != NULL ? arena_strdup(a, text) : NULL;
}

static void put_copy_spec(struct object_put *p, const struct object_put_spec *spec)
{
    struct attr *a = &p->commit.attr;
    p->texts = arena_new(ARENA_BYTES);
    a->name = arena_strdup(p->texts, spec->name);
    a->content_type = copy_text(p->texts, spec->content_type);
    a->job = copy_text(p->texts, spec->job_id);
    a->slices = copy_text(p->texts, spec->slices);
    if (spec->meta_len > 0) {
        char *meta = arena_bytes(p->texts, spec->meta_len);
        memcpy(meta, spec->meta, spec->meta_len);
        a->meta = meta;
        a->meta_len = spec->meta_len;
    }
    a->flags = spec->durability == DURABILITY_SYNC ? ATTR_DURABLE : 0;
    p->commit.sync = spec->durability == DURABILITY_SYNC;
    p->commit.rule = put_rule;
    p->commit.seen = put_seen;
    if (spec->earlier != NULL)
        p->commit.earlier = *spec->earlier;
    if (spec->moved != NULL) {
        p->commit.moved = true;
        p->ranks = spec->moved->ranks;
        a->version = spec->moved->version;
        a->modified_ms = spec->moved->modified_ms;
        a->flags |= spec->moved->tombstone ? ATTR_TOMBSTONE : 0;
        p->hollow = spec->moved->hollow;
    }
    if (spec->pending || (spec->moved != NULL && spec->moved->pending))
        a->flags |= ATTR_PENDING;
    p->yields = spec->yields;
    p->unnamed = spec->unnamed;
    p->unread = spec->unread;
    p->linked = spec->file != NULL;
    p->condition = spec->condition;
    p->size = spec->size;
}

static bool put_is_announced(const struct object_put *p)
{
    return p->size != OBJECT_SIZE_UNKNOWN;
}

/* Before a byte has come: of all that is announced, or of what there may be at first. */
static int put_check_space(const struct object_put *p, struct error *err)
{
    const struct object_store_config *config = &p->commit.place.store->config;
    const struct mountpath *mp = p->commit.place.mp;
    uint64_t size = put_is_announced(p) ? p->size : config->grow.first;
    return claim_admit(&config->space, mp->path, mp->root_fd, size, err);
}

/* How far room is taken before the byte at `at` is written. */
static uint64_t put_claim_end(const struct object_put *p, uint64_t at)
{
    const struct object_store_config *config = &p->commit.place.store->config;
    if (!put_is_announced(p))
        return space_step_end(&config->grow, at);
    uint64_t end = space_step_end(&config->allocate, at);
    return p->size < PREALLOCATE_MIN || end > p->size ? p->size : end;
}

/* What is small, and the beginning of what may be, is let in by put_check_space() alone. */
static int put_claim(struct object_put *p, uint64_t at, struct error *err)
{
    const struct mountpath *mp = p->commit.place.mp;
    uint64_t from = p->claimed, end = put_claim_end(p, at);
    if (end <= from)
        return 0;
    p->claimed = end;
    if (from == 0 && (!put_is_announced(p) || p->size < PREALLOCATE_MIN))
        return 0;
    p->allocated = true;
    if (from == 0)
        return claim_allocate(mp->path, p->commit.fd, from, end, err);
    return claim_take(&p->commit.place.store->config.space, mp->path, p->commit.fd, from, end, err);
}

/* A text that is too long is refused before the bytes come. */
static int put_check_texts(const struct object_put *p, struct error *err)
{
    unsigned char raw[ATTR_ENCODED_MAX];
    size_t len;
    return attr_encode(&p->commit.attr, raw, &len, err);
}

/* May it be refused for what is there?  Before a small body there is nothing to be saved by asking
 * twice. */
static bool put_is_worth_asking(const struct object_put *p)
{
    return !p->unnamed && (p->condition.check != NULL || p->commit.attr.job != NULL ||
                           p->commit.moved || p->size > ASK_FIRST_MIN);
}

static bool put_is_tombstone(const struct object_put *p)
{
    return (p->commit.attr.flags & ATTR_TOMBSTONE) != 0;
}

/* Other owners have it already, and what it stands for must be known here, too. */
static bool put_is_known(const struct object_put *p)
{
    return p->commit.moved && (p->size == 0 || p->hollow > 0) && !put_is_tombstone(p);
}

/* A tombstone makes room: space_reserve is kept for it.  What moves here without bytes may take a
 * part of that (known.h). */
static bool put_takes_room(const struct object_put *p)
{
    return !put_is_tombstone(p) && !put_is_known(p) && !p->linked;
}

/* Of what comes without bytes. */
static int put_admit_known(const struct object_put *p, struct error *err)
{
    int code = p->hollow > 0 ? known_set_damaged_aside(&p->commit.place, err) : 0;
    return code != 0 ? code : known_admit(&p->commit.place, err);
}

static int put_link(struct object_put *p, const struct object_file *file, struct error *err)
{
    struct commit *c = &p->commit;
    if (c->place.mp != file->mp)
        return error_set(err, E_STALE_MAP, "'%s' is on '%s' by now", c->place.name,
                         c->place.mp->path);
    p->written = file->size;
    c->attr.checksum = file->checksum;
    if (*file->sum != '\0' && object_put_tag(p, OBJECT_SUM, file->sum, err) != 0)
        return err->code;
    return object_tmp_link(c->place.mp, file->path, c->tmp, &c->fd, err);
}

static int put_begin_steps(struct object_put *p, const struct object_file *file, struct error *err)
{
    struct commit *c = &p->commit;
    int code;
    if ((code = put_check_texts(p, err)) != 0 ||
        (put_takes_room(p) && (code = put_check_space(p, err)) != 0) ||
        (put_is_worth_asking(p) && (code = commit_ask(c, err)) != 0) ||
        (put_is_known(p) && (code = put_admit_known(p, err)) != 0) ||
        (code = mountpath_make_dir(c->place.mp, c->place.bucket_id, &c->place.path, err)) != 0 ||
        (code = file != NULL ? put_link(p, file, err)
                             : object_tmp_create(c->place.mp, c->tmp, &c->fd, err)) != 0)
        return code;
    direct_begin(&p->direct, c->fd, p->unread);
    return put_takes_room(p) && p->size > 0 ? put_claim(p, 0, err) : 0;
}

int object_put_begin(struct object_store *s, const struct object_put_spec *spec,
                     struct object_put **out, struct error *err)
{
    struct object_put *p = xcalloc(1, sizeof *p);
    p->commit.fd = -1;
    put_copy_spec(p, spec);
    put_sums_begin(&p->sums, spec);
    int code = object_place_set(&p->commit.place, s, spec->bucket_id, p->commit.attr.name, err);
    if (code == 0)
        code = put_begin_steps(p, spec->file, err);
    if (code == 0 && spec->md5 != NULL)
        code = file_md5_new(spec->md5, p->commit.fd, 0, p->size, &p->md5, err);
    if (code != 0) {
        object_put_abort(p);
        return code;
    }
    *out = p;
    return 0;
}

void object_put_abort(struct object_put *p)
{
    if (p == NULL)
        return;
    if (p->commit.fd >= 0)
        unlinkat(p->commit.place.mp->tmp_fd, p->commit.tmp, 0);
    put_free(p);
}

/* --- bytes ------------------------------------------------------------------------------------ */

static int put_write_out(struct object_put *p, const void *data, size_t len, struct error *err)
{
    struct meter *meter = p->commit.place.mp->meter;
    meter_enter(meter);
    uint64_t began_us = clock_us();
    int code = direct_write(&p->direct, data, len, err);
    meter_count(meter, METER_WRITE, began_us, len);
    meter_leave(meter);
    if (code == 0 && p->md5 != NULL)
        file_md5_wrote(p->md5, data, len);
    if (code == 0)
        return 0;
    mountpath_failed(p->commit.place.mp, code);
    return error_recode(err, code, "'%s/.dfc/tmp/%s'", p->commit.place.mp->path, p->commit.tmp);
}

int object_put_flush(struct object_put *p, struct error *err)
{
    size_t len = p->buffered;
    p->buffered = 0;
    return len > 0 ? put_write_out(p, p->buffer, len, err) : 0;
}

/* A buffer, once there is something to gather; none when all buffers together have reached their
 * limit. */
static void put_take_buffer(struct object_put *p)
{
    struct object_store *s = p->commit.place.store;
    size_t size = s->config.put_buffer_bytes;
    if (atomic_fetch_add(&s->put_memory, size) + size > s->config.put_memory_bytes) {
        atomic_fetch_sub(&s->put_memory, size);
        return;
    }
    p->buffer = xmalloc(size);
    p->buffer_size = size;
}

/* Pieces that are large, or all there is, go to the file as they are; small ones are gathered. */
static bool put_writes_through(struct object_put *p, size_t len)
{
    if (p->buffered > 0)
        return false;
    if (len >= WRITE_THROUGH_MIN || p->written == p->size)
        return true;
    if (p->buffer == NULL)
        put_take_buffer(p);
    return len >= p->buffer_size;
}

static int put_store(struct object_put *p, const char *at, size_t len, struct error *err)
{
    int code = 0;
    while (len > 0 && code == 0) {
        if (put_writes_through(p, len))
            return put_write_out(p, at, len, err);
        size_t room = p->buffer_size - p->buffered, n = len < room ? len : room;
        memcpy(p->buffer + p->buffered, at, n);
        p->buffered += n;
        at += n;
        len -= n;
        if (p->buffered == p->buffer_size)
            code = object_put_flush(p, err);
    }
    return code;
}

int object_put_write(struct object_put *p, const void *data, size_t len, struct error *err)
{
    if (p->size != OBJECT_SIZE_UNKNOWN && len > p->size - p->written)
        return error_set(err, E_LENGTH, "more than the announced %llu bytes have come",
                         (unsigned long long)p->size);
    p->written += len;
    int code = put_takes_room(p) && len > 0 ? put_claim(p, p->written - 1, err) : 0;
    if (code != 0)
        return code;
    put_sums_update(&p->sums, data, len);
    return put_store(p, data, len, err);
}

int object_put_tag(struct object_put *p, const char *name, const char *value, struct error *err)
{
    char *meta = arena_bytes(p->texts, ATTR_META_MAX);
    if (attr_meta_extend(&p->commit.attr, name, value, meta))
        return 0;
    return error_set(err, E_INVALID, "metadata has more than %d bytes", ATTR_META_MAX);
}

int object_put_share(struct object_put *p, int *fd, struct reader **reader, struct error *err)
{
    direct_end(&p->direct); /* the two have one set of flags */
    *fd = fcntl(p->commit.fd, F_DUPFD_CLOEXEC, 0);
    if (*fd < 0)
        return error_errno(err, errno, "dup of '%s'", p->commit.tmp);
    *reader = reader_ref(p->commit.place.mp->reader);
    return 0;
}

/* --- the end ---------------------------------------------------------------------------------- */

static int put_check_sum(struct object_put *p, struct error *err)
{
    if (p->hollow > 0) { /* of bytes that others have */
        p->commit.attr.checksum = p->sums.expect;
        return 0;
    }
    if (p->linked)
        return 0;
    char s3[S3_SUM_TEXT_MAX];
    int code = put_sums_end(&p->sums, p->written, &p->commit.attr.checksum, s3, err);
    if (code == 0 && s3[0] != '\0')
        (void)object_put_tag(p, OBJECT_SUM, s3, NULL); /* as put_add_md5() */
    return code;
}

void object_put_await_md5(struct object_put *p, void (*fn)(void *arg), void *arg)
{
    struct error err = ERROR_INIT;
    if (p->md5 == NULL)
        fn(arg);
    else
        file_md5_end(p->md5, object_put_flush(p, &err) != 0 ? &err : NULL, fn, arg);
}

/* Metadata that leaves no room for it is the client's, and goes first. */
static int put_add_md5(struct object_put *p, struct error *err)
{
    char hex[2 * CHECKSUM_MAX + 1];
    int code = p->md5 != NULL ? file_md5_result(p->md5, hex, err) : 0;
    if (code == 0 && p->md5 != NULL)
        (void)object_put_tag(p, ATTR_MD5, hex, NULL);
    return code;
}

int object_put_finish(struct object_put *p, struct error *err)
{
    if (p->finished)
        return 0;
    if (p->size != OBJECT_SIZE_UNKNOWN && p->written != p->size)
        return error_set(err, E_LENGTH, "%llu of the announced %llu bytes have come",
                         (unsigned long long)p->written, (unsigned long long)p->size);
    int code = put_check_sum(p, err);
    if (code == 0)
        code = object_put_flush(p, err);
    if (code == 0)
        code = put_add_md5(p, err);
    direct_end(&p->direct);
    if (code == 0 && p->allocated && p->claimed > p->written)
        code = claim_end(p->commit.place.mp->path, p->commit.fd, p->written, err);
    if (code == 0 && p->commit.attr.job != NULL)
        disk_write_begin(p->commit.fd); /* all that a job makes is synced before it is seen */
    p->commit.attr.size = p->hollow > 0 ? p->hollow : p->written;
    if (!p->commit.moved)
        p->commit.attr.modified_ms = clock_wall_ms();
    p->finished = code == 0;
    return code;
}

const struct attr *object_put_attr(const struct object_put *p)
{
    return &p->commit.attr;
}

bool object_put_is_current(const struct object_put *p)
{
    return mountpath_set_is_current(p->commit.place.set);
}

int object_put_decide(struct object_put *p, const struct object_condition *condition,
                      const struct object_held *earlier, struct version *version, struct error *err)
{
    int code = object_put_finish(p, err);
    p->condition = *condition;
    if (earlier != NULL)
        p->commit.earlier = *earlier;
    if (code == 0)
        code = commit_decide(&p->commit, err);
    p->decided = code == 0;
    *version = p->commit.attr.version;
    return code;
}

/* Somebody else's from kept() on. */
static void put_is_kept(struct object_put *p)
{
    const struct error err = p->commit.err;
    object_done_fn *done = p->done;
    void *arg = p->arg;
    p->condition.kept(p->condition.ctx, p);
    done(arg, NULL, &err);
}

static void put_committed(struct commit *c)
{
    struct object_put *p = put_of(c);
    if (c->err.code == 0 && (!c->moved || p->decided)) {
        metric_add(c->place.store->puts, 1);
        metric_add(c->place.store->put_bytes, p->written);
    }
    if (commit_is_kept(c)) {
        put_is_kept(p);
        return;
    }
    put_release(p);
    p->done(p->arg, c->err.code == 0 ? &c->attr : NULL, &c->err);
    put_free(p);
}

void object_put_commit(struct object_put *p, object_done_fn *done, void *arg)
{
    struct error err = ERROR_INIT;
    if (object_put_finish(p, &err) != 0) {
        object_put_abort(p);
        done(arg, NULL, &err);
        return;
    }
    p->done = done;
    p->arg = arg;
    p->commit.done = put_committed;
    commit_run(&p->commit);
}

void object_put_commit_over(struct object_put *p, const struct object_condition *condition,
                            const struct object_held *earlier, object_done_fn *done, void *arg)
{
    p->condition = *condition;
    p->commit.earlier = *earlier;
    object_put_commit(p, done, arg);
}

void object_put_commit_as(struct object_put *p, const struct object_moved *as,
                          const struct object_condition *condition, object_done_fn *done, void *arg)
{
    p->commit.moved = true;
    p->commit.stays = as->stays;
    p->commit.attr.version = as->version;
    p->commit.attr.modified_ms = as->modified_ms;
    p->commit.attr.flags |= as->tombstone ? ATTR_TOMBSTONE : 0;
    p->commit.keeps = condition->kept != NULL;
    p->condition = *condition;
    object_put_commit(p, done, arg);
}
