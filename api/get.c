/* dfc_get_*: read an object or a range of it.
 *
 * A download knows where it is (`next`) and, from the first reply on, where it ends and which
 * version it reads.  A try that breaks off is followed by one that asks for the rest with
 * If-Match; what the sink has stays.  Where the version is gone meanwhile, or the whole does not
 * have its checksum, the download begins anew, if the sink can be rewound. */
#include "api/dfc.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/call.h"
#include "api/failure.h"
#include "api/info.h"
#include "api/uri.h"
#include "common/checksum.h"
#include "common/mem.h"

#define RESTARTS_MAX 3

struct download {
    const struct dfc_get_options *options;
    struct dfc_sink sink;
    bool begun;     /* a first reply came: the fields below hold */
    uint64_t start; /* offsets in the object */
    uint64_t next;
    uint64_t end; /* UINT64_MAX where the reply does not say */
    struct dfc_object_info *info;
    struct checksum *sum; /* where the whole is read and its checksum is known */
    bool resumed;
    bool mismatched; /* it came whole, and wrong */
    uint64_t moved;
};

static void download_reset(struct download *d)
{
    dfc_object_info_free(steal(d->info));
    checksum_free(steal(d->sum));
    d->begun = d->resumed = d->mismatched = false;
    d->start = d->next = d->end = 0;
}

static void download_done(struct download *d)
{
    download_reset(d);
}

/* ---- the request of each try ---- */

static bool range_wanted(const struct dfc_get_options *o)
{
    return o->offset != 0 || o->length != 0;
}

static void range_text(const struct dfc_get_options *o, char *out, size_t room)
{
    unsigned long long first = (unsigned long long)o->offset;
    if (o->offset < 0)
        snprintf(out, room, "bytes=%lld", (long long)o->offset);
    else if (o->length == 0 || o->length - 1 > UINT64_MAX - first)
        snprintf(out, room, "bytes=%llu-", first);
    else
        snprintf(out, room, "bytes=%llu-%llu", first, first + o->length - 1);
}

static int ask_for_rest(struct download *d, struct call *call, struct dfc_error *err)
{
    char range[64];
    if (d->info->etag[0] == '\0' || d->next >= d->end)
        return failure_set(err, DFC_UNREACHABLE, E_NET,
                           "the transfer broke off after %llu bytes and cannot go on",
                           (unsigned long long)(d->next - d->start));
    d->resumed = true;
    if (d->end == UINT64_MAX)
        snprintf(range, sizeof range, "bytes=%llu-", (unsigned long long)d->next);
    else
        snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)d->next,
                 (unsigned long long)(d->end - 1));
    call_header(call, err, "Range", range);
    return call_header(call, err, "If-Match", d->info->etag);
}

static int ask_for_all(struct download *d, struct call *call, struct dfc_error *err)
{
    const struct dfc_get_options *o = d->options;
    char range[64];
    int rc = DFC_OK;
    download_reset(d);
    if (range_wanted(o)) {
        range_text(o, range, sizeof range);
        rc = call_header(call, err, "Range", range);
    }
    if (rc == DFC_OK && o->if_match != NULL)
        rc = call_header(call, err, "If-Match", o->if_match);
    if (rc == DFC_OK && o->if_none_match != NULL)
        rc = call_header(call, err, "If-None-Match", o->if_none_match);
    return rc;
}

static int download_prepare(void *context, struct call *call, struct dfc_error *err)
{
    struct download *d = context;
    call_headers_clear(call);
    if (d->begun && d->next > d->start)
        return ask_for_rest(d, call, err);
    return ask_for_all(d, call, err);
}

/* ---- its replies ---- */

static int say_bad_range(struct dfc_error *err, const struct reply *r)
{
    const char *said = headers_get(&r->headers, "Content-Range");
    return failure_set(err, DFC_FAILED, E_RANGE,
                       "the reply (status %d, Content-Range '%s') is not what was asked for",
                       r->status, said != NULL ? said : "");
}

static int check_rest(struct download *d, const struct reply *r, struct dfc_error *err)
{
    uint64_t first, last, total;
    const char *etag = headers_get(&r->headers, "ETag");
    const char *range = headers_get(&r->headers, "Content-Range");
    if (r->status != 206 || !headers_parse_range(range, &first, &last, &total) ||
        first != d->next || (d->end != UINT64_MAX && last + 1 != d->end))
        return say_bad_range(err, r);
    if (etag != NULL && strcmp(etag, d->info->etag) != 0)
        return failure_set(err, DFC_PRECONDITION, E_PRECONDITION,
                           "the object changed while it was read");
    return DFC_OK;
}

static int place_first(struct download *d, const struct reply *r, struct dfc_error *err)
{
    const struct dfc_get_options *o = d->options;
    uint64_t last, total;
    if (r->status == 206) {
        const char *range = headers_get(&r->headers, "Content-Range");
        if (!headers_parse_range(range, &d->start, &last, &total) ||
            (o->offset >= 0 && d->start != (uint64_t)o->offset))
            return say_bad_range(err, r);
        d->end = last + 1;
    } else {
        if (range_wanted(o))
            return say_bad_range(err, r);
        d->end = headers_get_u64(&r->headers, "Content-Length");
    }
    d->next = d->start;
    return DFC_OK;
}

/* The checksum covers the whole object, so that only a whole reading can be compared. */
static void begin_checksum(struct download *d)
{
    enum checksum_type type;
    bool whole = d->start == 0 && (d->end == UINT64_MAX || d->end == d->info->size);
    if (!whole || d->options->no_verify || d->info->checksum[0] == '\0' ||
        checksum_from_name(d->info->checksum_type, &type, NULL) != 0 || type == CHECKSUM_NONE)
        return;
    d->sum = checksum_new(type);
}

static int download_tell(const struct download *d, struct dfc_error *err)
{
    const struct dfc_get_options *o = d->options;
    errno = 0;
    if (o->begin == NULL || o->begin(o->begin_context, d->info) == 0)
        return DFC_OK;
    if (errno != 0)
        return failure_errno(err, errno, "begin to read");
    return failure_set(err, DFC_LOCAL, E_IO, "the read was refused when it began");
}

static int download_begin(void *context, const struct reply *r, struct dfc_error *err)
{
    struct download *d = context;
    if (d->begun)
        return check_rest(d, r, err);
    int rc = place_first(d, r, err);
    if (rc != DFC_OK)
        return rc;
    d->begun = true;
    d->info = info_from_headers(&r->headers);
    begin_checksum(d);
    return download_tell(d, err);
}

static int download_write(void *context, const void *data, size_t size, struct dfc_error *err)
{
    struct download *d = context;
    errno = 0;
    if (d->sink.write(d->sink.context, data, size) != 0) {
        if (errno != 0)
            return failure_errno(err, errno, "write what was read");
        return failure_set(err, DFC_LOCAL, E_IO, "what was read could not be written");
    }
    if (d->sum != NULL)
        checksum_update(d->sum, data, size);
    d->next += size;
    d->moved += size;
    if (d->options->progress != NULL)
        d->options->progress(d->options->progress_context, d->next - d->start,
                             d->end != UINT64_MAX ? d->end - d->start : UINT64_MAX);
    return DFC_OK;
}

static const struct receiver download_receiver = {
    .begin = download_begin,
    .write = download_write,
};

/* ---- the whole ---- */

static int download_verify(struct download *d, struct dfc_error *err)
{
    struct checksum_value have, want;
    char hex[2 * CHECKSUM_MAX + 1];
    if (d->end == UINT64_MAX)
        d->info->size = d->next;
    if (d->sum == NULL)
        return DFC_OK;
    checksum_final(d->sum, &have);
    if (checksum_parse(have.type, d->info->checksum, &want, NULL) == 0 &&
        checksum_equal(&have, &want))
        return DFC_OK;
    d->mismatched = true;
    checksum_hex(&have, hex);
    return failure_set(err, DFC_CORRUPT, E_CHECKSUM, "what was read has the %s %s, not %s",
                       d->info->checksum_type, hex, d->info->checksum);
}

static bool download_restarts(struct download *d, int rc, unsigned restarts)
{
    bool changed = rc == DFC_PRECONDITION && d->resumed;
    return (changed || d->mismatched) && restarts < RESTARTS_MAX && d->sink.rewind != NULL;
}

static int download_run(struct dfc_client *c, struct download *d, const char *bucket,
                        const char *object, struct dfc_error *err)
{
    for (unsigned restarts = 0;; restarts++) {
        _cleanup_(call_done)
        struct call call = {
            .method = "GET",
            .twice_is_harmless = true,
            .receiver = &download_receiver,
            .receiver_context = d,
            .prepare = download_prepare,
            .moved = &d->moved,
        };
        download_reset(d);
        int rc = uri_object(&call.path, bucket, object, err);
        if (rc == DFC_OK)
            rc = call_run(c, &call, err);
        if (rc == DFC_OK)
            rc = download_verify(d, err);
        if (!download_restarts(d, rc, restarts))
            return rc;
        if (d->sink.rewind(d->sink.context) != 0)
            return rc;
    }
}

int dfc_get_sink(struct dfc_client *c, const char *bucket, const char *object,
                 const struct dfc_sink *sink, const struct dfc_get_options *options,
                 struct dfc_object_info **info, struct dfc_error *err)
{
    static const struct dfc_get_options none;
    struct dfc_error own;
    _cleanup_(download_done)
    struct download d = {
        .options = options != NULL ? options : &none,
        .sink = *sink,
    };
    int rc = download_run(c, &d, bucket, object, err != NULL ? err : &own);
    if (rc == DFC_OK && info != NULL)
        *info = steal(d.info);
    return rc;
}

/* ---- to memory ---- */

struct memory_sink {
    char *data;
    size_t size;
    size_t room;
    uint64_t limit;
    bool over;
};

static int memory_write(void *context, const void *data, size_t size)
{
    struct memory_sink *m = context;
    if (size > m->limit - m->size) {
        m->over = true;
        return -1;
    }
    if (size > m->room - m->size) {
        size_t room = m->room < 4096 ? 4096 : m->room;
        while (room - m->size < size)
            room *= 2;
        char *more = realloc(m->data, room);
        if (more == NULL)
            return -1; /* errno is ENOMEM */
        m->data = more;
        m->room = room;
    }
    memcpy(m->data + m->size, data, size);
    m->size += size;
    return 0;
}

static int memory_rewind(void *context)
{
    struct memory_sink *m = context;
    m->size = 0;
    return 0;
}

int dfc_get_memory(struct dfc_client *c, const char *bucket, const char *object,
                   const struct dfc_get_options *options, void **data, size_t *size,
                   struct dfc_object_info **info, struct dfc_error *err)
{
    struct memory_sink m = {.limit = 1u << 30};
    if (options != NULL && options->memory_limit != 0)
        m.limit = options->memory_limit;
    const struct dfc_sink sink = {memory_write, memory_rewind, &m};
    int rc = dfc_get_sink(c, bucket, object, &sink, options, info, err);
    if (rc == DFC_OK) {
        *data = m.data != NULL ? m.data : xcalloc(1, 1); /* an empty object has an address, too */
        *size = m.size;
        return rc;
    }
    free(m.data);
    if (m.over)
        return failure_set(err, DFC_LOCAL, E_TOO_LARGE,
                           "the object is larger than the limit of %llu bytes",
                           (unsigned long long)m.limit);
    return rc;
}

/* ---- to a descriptor ---- */

struct fd_sink {
    int fd;
    off_t start;
};

static int fd_write(void *context, const void *data, size_t size)
{
    const struct fd_sink *f = context;
    const char *at = data;
    while (size > 0) {
        ssize_t n = write(f->fd, at, size);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

static int fd_rewind(void *context)
{
    const struct fd_sink *f = context;
    if (ftruncate(f->fd, f->start) != 0)
        return -1;
    return lseek(f->fd, f->start, SEEK_SET) < 0 ? -1 : 0;
}

/* Appending, another process's writes may stand behind ours: what was written stays. */
static bool fd_can_rewind(int fd, off_t *start)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    int flags = fcntl(fd, F_GETFL);
    *start = lseek(fd, 0, SEEK_CUR);
    return *start >= 0 && flags >= 0 && (flags & O_APPEND) == 0;
}

int dfc_get_fd(struct dfc_client *c, const char *bucket, const char *object, int fd,
               const struct dfc_get_options *options, struct dfc_object_info **info,
               struct dfc_error *err)
{
    struct fd_sink f = {.fd = fd};
    struct dfc_sink sink = {.write = fd_write, .context = &f};
    if (fd_can_rewind(fd, &f.start))
        sink.rewind = fd_rewind;
    return dfc_get_sink(c, bucket, object, &sink, options, info, err);
}
