#include "target/archive/batch_fetch.h"

#include <pthread.h>
#include <string.h>

#include "cluster/members/location.h"
#include "cluster/placement/owners.h"
#include "common/backoff.h"
#include "common/clock.h"
#include "common/mem.h"
#include "net/client/client.h"
#include "target/archive/batch_spec.h"
#include "target/node/target.h"
#include "target/store/job_stop.h"

enum { PAUSE_FIRST_MS = 20, PAUSE_MAX_MS = 1000, ETAG_MAX = 320, LOOK_MS = 100 };

struct batch_fetch {
    struct target *target;
    const struct batch_entry *entry;
    const char *request_id;
    bool looks;          /* by HEAD */
    unsigned failures;   /* in a row, without a byte … */
    uint64_t until_ms;   /* … and no try begins later */
    uint64_t read, size; /* of the entry's bytes */
    bool known;          /* size and tag are */
    char etag[ETAG_MAX];
    struct checksum_value checksum; /* of the whole object; of type none: not known */
    struct bpipe *pipe;             /* NULL: no call is under way */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* what follows */
    bool has_head, ended;
    int status, code;
    int64_t length, modified_s;
    char head_etag[ETAG_MAX];
    struct checksum_value head_checksum;
    struct error err;
};

/* --- a call ----------------------------------------------------------------------------------- */

static void keep_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text != NULL ? text : "");
}

static void keep_checksum(struct batch_fetch *f, const struct http_head *head)
{
    const char *name = head->header(head, "Dfc-Checksum-Type");
    const char *value = head->header(head, "Dfc-Checksum-Value");
    enum checksum_type type;
    f->head_checksum = (struct checksum_value){.type = CHECKSUM_NONE};
    if (name != NULL && value != NULL && checksum_from_name(name, &type, NULL) == 0 &&
        checksum_parse(type, value, &f->head_checksum, NULL) != 0)
        f->head_checksum.type = CHECKSUM_NONE;
}

static void on_head(void *arg, const struct http_head *head)
{
    struct batch_fetch *f = arg;
    const char *modified = head->header(head, "Last-Modified");
    pthread_mutex_lock(&f->lock);
    f->has_head = true;
    f->status = head->status;
    f->length = head->content_length;
    keep_text(f->head_etag, sizeof f->head_etag, head->header(head, "ETag"));
    keep_checksum(f, head);
    if (modified == NULL || clock_parse_http(modified, &f->modified_s) != 0)
        f->modified_s = 0;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void on_end(void *arg, struct http_result *r)
{
    struct batch_fetch *f = arg;
    pthread_mutex_lock(&f->lock);
    f->ended = true;
    f->code = http_result_error(r, f->entry->object, &f->err);
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

int batch_fetch_url(struct target *t, const char *bucket, const char *object, char **node,
                    struct buf *url, char *separator, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket(&s->bmd, bucket);
    struct owners owners;
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "bucket '%s' does not exist", bucket);
    int code = owners_find_acting(s, b, object, &owners, err);
    if (code != 0)
        return code;
    *node = xstrdup(owners.acting->id);
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    location_put_object(&path, bucket, object);
    buf_printf(url, "%s/v1/read%s", owners.acting->data_url,
               buf_str(&path) + strlen("/v1/objects"));
    location_put_version(url, s, b->id, separator);
    return 0;
}

static int put_url(const struct batch_fetch *f, char **node, struct buf *url, struct error *err)
{
    const struct batch_entry *e = f->entry;
    char separator = '?';
    int code = batch_fetch_url(f->target, e->bucket, e->object, node, url, &separator, err);
    if (code == 0 && e->member != NULL) {
        buf_printf(url, "%cmember=", separator);
        buf_put_url_escaped(url, e->member, strlen(e->member), "");
    }
    return code;
}

/* The part that is wanted still; "" for the whole. */
static void put_range(const struct batch_fetch *f, char *out, size_t size)
{
    const struct batch_entry *e = f->entry;
    unsigned long long from = e->offset + f->read;
    if (!e->ranged && f->read == 0)
        *out = '\0';
    else if (e->length == 0)
        snprintf(out, size, "Range: bytes=%llu-", from);
    else
        snprintf(out, size, "Range: bytes=%llu-%llu", from,
                 (unsigned long long)(e->offset + e->length - 1));
}

static int call(struct batch_fetch *f, struct error *err)
{
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    _cleanup_free_ char *node = NULL;
    char range[80], match[ETAG_MAX + 16];
    const char *lines[3] = {NULL};
    size_t count = 0;
    int code = put_url(f, &node, &url, err);
    if (code != 0)
        return code;
    put_range(f, range, sizeof range);
    if (*range != '\0' && !f->looks)
        lines[count++] = range;
    if (f->known) {
        snprintf(match, sizeof match, "If-Match: %s", f->etag);
        lines[count++] = match;
    }
    f->has_head = f->ended = false;
    f->status = 0;
    f->err = ERROR_INIT;
    f->code = 0;
    f->pipe = bpipe_new(BATCH_PIPE_BYTES);
    const struct http_call read = {.method = f->looks ? HTTP_HEAD : HTTP_GET,
                                   .url = buf_str(&url),
                                   .node = node,
                                   .headers = lines,
                                   .download = f->pipe,
                                   .stall_timeout_ms = f->target->params.stall_timeout,
                                   .on_head = on_head,
                                   .request_id = f->request_id};
    http_call_start(f->target->data_client, &read, on_end, f);
    return 0;
}

/* The call is over, whoever ends it. */
static void hang_up(struct batch_fetch *f)
{
    struct error why;
    if (f->pipe == NULL)
        return;
    error_set(&why, E_CANCELLED, "the batch wants no more of it");
    bpipe_cancel(f->pipe, &why);
    pthread_mutex_lock(&f->lock);
    while (!f->ended)
        pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
    bpipe_unref(f->pipe);
    f->pipe = NULL;
}

/* --- again ------------------------------------------------------------------------------------ */

static bool may_pass(int code)
{
    return code == E_NET || code == E_TIMEOUT || code == E_STALE_MAP || code == E_LENGTH ||
           error_status(code) == 503;
}

/* Before another try.  False: this error stays. */
static bool pause_before(struct batch_fetch *f, int code, struct job_stop *stop)
{
    const struct backoff rule = {.first_ms = PAUSE_FIRST_MS, .max_ms = PAUSE_MAX_MS};
    if (f->failures++ == 0)
        f->until_ms = clock_ms() + f->target->params.call_timeout;
    if (!may_pass(code) || clock_ms() >= f->until_ms)
        return false;
    return job_stop_pause(stop, backoff_ms(&rule, f->failures));
}

/* What the head says, against what is known. */
static int check_head(struct batch_fetch *f, struct error *err)
{
    const bool part = !f->looks && (f->entry->ranged || f->read > 0);
    if (f->status == 307)
        return error_set(err, E_STALE_MAP, "the owner of '%s' has changed", f->entry->object);
    if (f->length < 0 || f->status != (part ? 206 : 200))
        return error_set(err, E_INTERNAL, "the owner of '%s' answers with status %d",
                         f->entry->object, f->status);
    if (f->known && (uint64_t)f->length != f->size - f->read)
        return error_set(err, E_LENGTH, "'%s' has another length by now", f->entry->object);
    if (f->known)
        return 0;
    keep_text(f->etag, sizeof f->etag, f->head_etag);
    f->checksum = f->head_checksum;
    if (f->looks)
        return batch_entry_size(f->entry, (uint64_t)f->length, &f->size, err);
    f->size = (uint64_t)f->length;
    f->known = true;
    return 0;
}

static int wait_for_head(struct batch_fetch *f, struct error *err)
{
    pthread_mutex_lock(&f->lock);
    while (!f->has_head && !f->ended)
        pthread_cond_wait(&f->changed, &f->lock);
    /* An error's message comes with the end. */
    while (!f->ended && f->status >= 300)
        pthread_cond_wait(&f->changed, &f->lock);
    int code = f->status == 307 && f->has_head ? 0 : f->code;
    if (f->ended && code != 0)
        *err = f->err;
    bool has_head = f->has_head;
    pthread_mutex_unlock(&f->lock);
    if (code == 0 || (has_head && f->status < 300))
        return check_head(f, err);
    return code;
}

static int connect_once(struct batch_fetch *f, struct error *err)
{
    *err = ERROR_INIT;
    int code = f->pipe == NULL ? call(f, err) : 0;
    return code != 0 ? code : wait_for_head(f, err);
}

/* Where a HEAD fails, a GET says why. */
static int connect_or_learn(struct batch_fetch *f, struct error *err)
{
    int code = connect_once(f, err);
    if (code == 0 || !f->looks || f->status < 400)
        return code;
    hang_up(f);
    f->looks = false;
    return connect_once(f, err);
}

static int reconnect(struct batch_fetch *f, struct job_stop *stop, struct error *err)
{
    int code;
    while ((code = connect_or_learn(f, err)) != 0) {
        hang_up(f);
        if (!pause_before(f, code, stop))
            return code;
    }
    return 0;
}

/* --- the whole -------------------------------------------------------------------------------- */

struct batch_fetch *batch_fetch_begin(struct target *t, const struct batch_entry *e,
                                      enum batch_look look, const char *request_id)
{
    struct batch_fetch *f = xcalloc(1, sizeof *f);
    struct error err = ERROR_INIT;
    f->target = t;
    f->entry = e;
    f->looks = look == BATCH_LOOK;
    f->request_id = request_id;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    (void)call(f, &err); /* what is wrong is seen when its turn comes: it is tried again then */
    return f;
}

int batch_fetch_head(struct batch_fetch *f, struct job_stop *stop, uint64_t *size,
                     int64_t *modified_s, struct error *err)
{
    f->until_ms = clock_ms() + f->target->params.call_timeout;
    int code = reconnect(f, stop, err);
    *size = f->size;
    *modified_s = f->modified_s;
    return code;
}

void batch_fetch_checksum(const struct batch_fetch *f, struct checksum_value *out)
{
    *out = f->checksum;
    if (f->entry->ranged || f->entry->member != NULL)
        out->type = CHECKSUM_NONE;
}

const char *batch_fetch_etag(const struct batch_fetch *f)
{
    return f->etag;
}

ssize_t batch_fetch_read(struct batch_fetch *f, struct job_stop *stop, void *out, size_t len,
                         struct error *err)
{
    for (;;) {
        ssize_t n = bpipe_read(f->pipe, out, len, err);
        if (n > 0) {
            f->read += (uint64_t)n;
            f->failures = 0;
            return n;
        }
        int code =
            n < 0 ? (int)n : error_set(err, E_LENGTH, "'%s' ends too early", f->entry->object);
        hang_up(f);
        if (!pause_before(f, code, stop))
            return code;
        code = reconnect(f, stop, err);
        if (code != 0)
            return code;
    }
}

void batch_fetch_end(struct batch_fetch *f)
{
    if (f == NULL)
        return;
    hang_up(f);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
