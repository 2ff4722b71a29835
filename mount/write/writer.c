#include "mount/write/writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/log.h"
#include "common/mem.h"
#include "mount/write/parts.h"

struct writers {
    struct writers_options options;
    struct write_store store;
    struct budget budget;
    struct parts *parts;
};

/* Two locks: `turn` is held by one call at a time, also while it waits; `lock` guards what senders
 * change, and is taken after `turn`. */
struct writer {
    struct writers *all;
    char *key;
    char *etag; /* of the object that is replaced; NULL: none is there */
    pthread_mutex_t turn;
    uint64_t size;
    char *data; /* the part that fills */
    size_t filled, room;
    uint64_t taken; /* of the budget, for it */
    bool saved;     /* nothing is to be stored */
    bool completed; /* as an upload */
    int error;      /* for good: -errno */
    int refused;    /* the last write found no room; 0: it was taken */
    char *upload;
    char **tags; /* of the parts by number; from 1 on */
    uint32_t count;
    pthread_mutex_t lock;
    pthread_cond_t sent;
    uint32_t on_way;
    int part_error;
};

struct writers *writers_new(const struct writers_options *options, const struct write_store *store)
{
    assert(options->part_bytes >= WRITER_PART_MIN && options->bytes >= options->part_bytes);
    struct writers *all = xcalloc(1, sizeof *all);
    all->options = *options;
    all->store = *store;
    budget_init(&all->budget, options->bytes);
    all->parts = parts_new(store, options->senders);
    if (all->parts != NULL)
        return all;
    writers_free(all);
    return NULL;
}

void writers_free(struct writers *all)
{
    if (all == NULL)
        return;
    parts_free(all->parts);
    budget_done(&all->budget);
    free(all);
}

struct writer *writer_new(struct writers *all, const char *key,
                          const struct write_condition *condition)
{
    struct writer *w = xcalloc(1, sizeof *w);
    w->all = all;
    w->key = xstrdup(key);
    w->etag = condition->if_match != NULL ? xstrdup(condition->if_match) : NULL;
    pthread_mutex_init(&w->turn, NULL);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->sent, NULL);
    return w;
}

/* ---- parts ---- */

static void writer_part_done(struct part *part, int rc)
{
    struct writer *w = part->owner;
    struct writers *all = w->all;
    free(part->data);
    pthread_mutex_lock(&w->lock);
    if (rc != 0 && w->part_error == 0)
        w->part_error = rc;
    w->tags[part->number] = part->tag;
    w->on_way--;
    pthread_cond_broadcast(&w->sent);
    pthread_mutex_unlock(&w->lock);
    budget_give(&all->budget, part->taken);
    free(part);
}

/* Waits for the parts on their way: 0 or what befell one of them. */
static int writer_await(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->on_way > 0)
        pthread_cond_wait(&w->sent, &w->lock);
    int rc = w->part_error;
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static void writer_empty(struct writer *w)
{
    free(steal(w->data));
    w->filled = w->room = 0;
    if (w->taken > 0)
        budget_give(&w->all->budget, w->taken);
    w->taken = 0;
}

/* What fills becomes a part on its way, with its room. */
static int writer_send(struct writer *w)
{
    struct writers *all = w->all;
    if (w->upload == NULL) {
        int rc = all->store.begin(all->store.context, w->key, &w->upload);
        if (rc != 0)
            return rc;
        w->tags = xcalloc(WRITER_PARTS_MAX + 1, sizeof *w->tags);
    }
    if (w->count == WRITER_PARTS_MAX) {
        log_warn("a file is too large: mount with larger parts", lstr("object", w->key),
                 lu64("bytes", w->size), lu64("part_size", all->options.part_bytes));
        return -EFBIG;
    }
    struct part *part = xcalloc(1, sizeof *part);
    *part = (struct part){
        .key = w->key,
        .upload = w->upload,
        .number = ++w->count,
        .data = steal(w->data),
        .size = w->filled,
        .taken = w->taken,
        .done = writer_part_done,
        .owner = w,
    };
    pthread_mutex_lock(&w->lock);
    w->on_way++;
    pthread_mutex_unlock(&w->lock);
    w->filled = w->room = 0;
    w->taken = 0;
    parts_push(all->parts, part);
    return 0;
}

/* ---- writes ---- */

static int writer_take_room(struct writer *w, const struct writer_bytes *bytes)
{
    struct writers *all = w->all;
    const struct budget_wait wait = {
        .wait_ms = all->options.wait_ms,
        .interrupted = bytes->interrupted,
        .context = bytes->context,
    };
    int rc = budget_take(&all->budget, all->options.part_bytes, &wait);
    if (rc == 0)
        w->taken = all->options.part_bytes;
    if (rc == -ENOBUFS)
        log_warn("no room for parts of files: mount with a larger write buffer",
                 lstr("object", w->key), lu64("write_buffer", all->options.bytes));
    return rc;
}

/* Room for more bytes behind those that are there, as many as fit into the part. */
static int writer_grow(struct writer *w, const struct writer_bytes *bytes, size_t wanted)
{
    const uint64_t most = w->all->options.part_bytes;
    size_t room = w->room > 0 ? w->room : 4096;
    if (w->filled + wanted > WRITER_SMALL && w->taken == 0) {
        int rc = writer_take_room(w, bytes);
        if (rc != 0)
            return rc;
    }
    while (room < most && room < w->filled + wanted)
        room *= 2;
    if (room > most)
        room = most;
    if (room > w->room) {
        w->data = xrealloc(w->data, room);
        w->room = room;
    }
    return 0;
}

static int writer_take(struct writer *w, const struct writer_bytes *bytes, size_t at, size_t *taken)
{
    const uint64_t most = w->all->options.part_bytes;
    size_t n = bytes->size - at;
    if (w->filled == most) {
        int rc = writer_send(w);
        if (rc != 0)
            return rc;
    }
    if (n > most - w->filled)
        n = (size_t)(most - w->filled);
    int rc = writer_grow(w, bytes, n);
    if (rc != 0)
        return rc;
    memcpy(w->data + w->filled, (const char *)bytes->data + at, n);
    w->filled += n;
    w->size += n;
    *taken = n;
    return 0;
}

/* A failure that the next call cannot make good. */
static int writer_fail(struct writer *w, int rc)
{
    w->error = rc;
    w->saved = true;
    return rc;
}

static int writer_part_error(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    int rc = w->part_error;
    pthread_mutex_unlock(&w->lock);
    return rc;
}

static ssize_t writer_append_turn(struct writer *w, const struct writer_bytes *bytes)
{
    size_t done = 0, taken = 0;
    int rc = writer_part_error(w);
    if (w->error != 0)
        return w->error;
    if (bytes->offset != w->size || w->completed)
        return writer_fail(w, -EOPNOTSUPP);
    while (rc == 0 && done < bytes->size) {
        rc = writer_take(w, bytes, done, &taken);
        if (rc == 0)
            done += taken;
    }
    if (done > 0)
        w->saved = false;
    if (rc != 0 && rc != -EINTR && rc != -ENOBUFS)
        return writer_fail(w, rc);
    w->refused = done == 0 && rc == -ENOBUFS ? rc : 0;
    return done > 0 ? (ssize_t)done : rc;
}

ssize_t writer_append(struct writer *w, const struct writer_bytes *bytes)
{
    pthread_mutex_lock(&w->turn);
    ssize_t n = writer_append_turn(w, bytes);
    pthread_mutex_unlock(&w->turn);
    return n;
}

/* ---- the end ---- */

static char *writer_list(const struct writer *w)
{
    struct buf out = BUF_INIT;
    buf_puts(&out, "[");
    for (uint32_t i = 1; i <= w->count; i++)
        buf_printf(&out, "%s{\"part\":%u,\"tag\":\"%s\"}", i > 1 ? "," : "", i, w->tags[i]);
    buf_puts(&out, "]");
    return buf_steal(&out);
}

static int writer_complete(struct writer *w, const struct write_condition *condition, char **etag)
{
    const struct write_store *store = &w->all->store;
    int rc = w->filled > 0 ? writer_send(w) : 0;
    int sent = writer_await(w);
    if (rc != 0 || sent != 0)
        return rc != 0 ? rc : sent;
    _cleanup_free_ char *list = writer_list(w);
    rc = store->complete(store->context, w->key, w->upload, list, condition, etag);
    w->completed = rc == 0;
    return rc;
}

static int writer_store_turn(struct writer *w)
{
    const struct write_store *store = &w->all->store;
    const struct write_condition condition = {.if_match = w->etag};
    char *etag = NULL;
    if (w->error != 0 || w->saved)
        return w->error;
    if (w->refused != 0)
        return writer_fail(w, w->refused);
    int rc = w->upload != NULL
                 ? writer_complete(w, &condition, &etag)
                 : store->put(store->context, w->key, w->data, w->filled, &condition, &etag);
    if (rc != 0)
        return writer_fail(w, rc);
    free(w->etag);
    w->etag = etag;
    w->saved = true;
    return 0;
}

int writer_store(struct writer *w)
{
    pthread_mutex_lock(&w->turn);
    int rc = writer_store_turn(w);
    pthread_mutex_unlock(&w->turn);
    return rc;
}

void writer_drop(struct writer *w)
{
    pthread_mutex_lock(&w->turn);
    if (!w->saved)
        writer_fail(w, -EIO);
    pthread_mutex_unlock(&w->turn);
}

uint64_t writer_size(struct writer *w)
{
    pthread_mutex_lock(&w->turn);
    uint64_t size = w->size;
    pthread_mutex_unlock(&w->turn);
    return size;
}

bool writer_is_saved(struct writer *w)
{
    pthread_mutex_lock(&w->turn);
    bool saved = w->saved;
    pthread_mutex_unlock(&w->turn);
    return saved;
}

void writer_free(struct writer *w)
{
    if (w == NULL)
        return;
    writer_await(w);
    writer_empty(w);
    if (w->upload != NULL && !w->completed)
        w->all->store.abort(w->all->store.context, w->key, w->upload);
    for (uint32_t i = 1; i <= w->count; i++)
        free(w->tags[i]);
    free(w->tags);
    free(w->upload);
    free(w->key);
    free(w->etag);
    pthread_cond_destroy(&w->sent);
    pthread_mutex_destroy(&w->lock);
    pthread_mutex_destroy(&w->turn);
    free(w);
}
