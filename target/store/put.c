/* PUT: its beginning, the rules that it obeys, and its end; put_bytes.c has the bytes between. */
#include "target/store/put_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/clock.h"
#include "common/mem.h"
#include "io/file.h"
#include "io/reader.h"
#include "target/disk/claim.h"
#include "target/format/attr_rank.h"
#include "target/store/file_md5.h"
#include "target/store/known.h"
#include "target/store/tmp_file.h"

enum {
    ARENA_BYTES = 512,
    ASK_FIRST_MIN = 256 * 1024,
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
    p->frees = spec->frees;
    p->linked = spec->file != NULL;
    p->condition = spec->condition;
    p->size = spec->size;
}

/* Before a byte has come: of all that is announced, or of what there may be at first. */
static int put_check_space(const struct object_put *p, struct error *err)
{
    const struct object_store_config *config = &p->commit.place.store->config;
    const struct mountpath *mp = p->commit.place.mp;
    uint64_t size = put_is_announced(p) ? p->size : config->grow.first;
    return p->frees ? claim_admit_known(&config->space, mp->path, mp->root_fd, size, err)
                    : claim_admit(&config->space, mp->path, mp->root_fd, size, err);
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
    return put_takes_room(p) && p->size > 0 ? object_put_claim(p, 0, err) : 0;
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
