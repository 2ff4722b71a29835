#include "api/ctl/upload/upload_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/ctl/workers.h"
#include "common/checksum.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

uint64_t upload_part_size(uint64_t size, uint64_t wanted)
{
    uint64_t least = size / UPLOAD_PARTS_MAX + (size % UPLOAD_PARTS_MAX != 0);
    return wanted > least ? wanted : least;
}

void upload_parts_init(struct upload_parts *all, const struct upload_order *order, int fd,
                       uint64_t size, uint64_t part_size)
{
    *all = (struct upload_parts){.order = order, .fd = fd, .size = size, .part_size = part_size};
    all->count = (uint32_t)((size + part_size - 1) / part_size);
    all->parts = xcalloc(all->count, sizeof *all->parts);
    for (uint32_t i = 0; i < all->count; i++)
        all->parts[i] = (struct upload_part){.all = all, .number = i + 1};
    pthread_mutex_init(&all->lock, NULL);
}

void upload_parts_forget(struct upload_parts *all)
{
    all->failure = (struct dfc_error){0};
    all->resumed = 0;
    for (uint32_t i = 0; i < all->count; i++)
        free(steal(all->parts[i].tag));
}

void upload_parts_done(struct upload_parts *all)
{
    upload_parts_forget(all);
    free(all->parts);
    pthread_mutex_destroy(&all->lock);
}

/* ---- bytes of the file ---- */

static uint64_t part_start(const struct upload_part *p)
{
    return (p->number - 1) * p->all->part_size;
}

static uint64_t part_length(const struct upload_part *p)
{
    uint64_t left = p->all->size - part_start(p);
    return left < p->all->part_size ? left : p->all->part_size;
}

struct reading {
    int fd;
    uint64_t start, at, length;
};

static ptrdiff_t reading_read(void *context, void *to, size_t room)
{
    struct reading *r = context;
    uint64_t left = r->length - r->at;
    ssize_t n;
    do {
        n = pread(r->fd, to, room < left ? room : (size_t)left, (off_t)(r->start + r->at));
    } while (n < 0 && errno == EINTR);
    if (n > 0)
        r->at += (uint64_t)n;
    return n;
}

static int reading_rewind(void *context)
{
    struct reading *r = context;
    r->at = 0;
    return 0;
}

/* False: the file is shorter now, or cannot be read. */
static bool part_md5(const struct upload_part *p, char *hex)
{
    enum { BLOCK = 256 << 10 };
    struct checksum_value value;
    struct reading r = {.fd = p->all->fd, .start = part_start(p), .length = part_length(p)};
    _cleanup_free_ char *block = xcalloc(1, BLOCK);
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(CHECKSUM_MD5);
    ptrdiff_t n;
    while ((n = reading_read(&r, block, BLOCK)) > 0)
        checksum_update(sum, block, (size_t)n);
    checksum_final(sum, &value);
    checksum_hex(&value, hex);
    return n == 0 && r.at == r.length;
}

/* ---- in threads ---- */

static bool part_is_there(const struct upload_part *p)
{
    char hex[2 * CHECKSUM_MAX + 1];
    return p->tag != NULL && part_md5(p, hex) && strcmp(hex, p->tag) == 0;
}

static int part_send(struct upload_part *p, struct dfc_error *err)
{
    const struct upload_parts *all = p->all;
    const struct upload_order *o = all->order;
    struct reading r = {.fd = all->fd, .start = part_start(p), .length = part_length(p)};
    const struct dfc_source source = {.read = reading_read,
                                      .rewind = reading_rewind,
                                      .context = &r,
                                      .size = (int64_t)part_length(p)};
    struct progress_part moved = {.all = o->progress->all};
    const struct dfc_put_options options = {.no_checksum = o->options->no_checksum,
                                            .progress = progress_part_moved,
                                            .progress_context = &moved};
    free(steal(p->tag));
    return dfc_upload_part(o->client, o->bucket, o->key, all->upload, p->number, &source, &options,
                           &p->tag, err);
}

static bool has_failed(struct upload_parts *all)
{
    pthread_mutex_lock(&all->lock);
    bool failed = all->failure.result != DFC_OK;
    pthread_mutex_unlock(&all->lock);
    return failed;
}

static void note_end(struct upload_parts *all, uint64_t resumed, const struct dfc_error *err)
{
    pthread_mutex_lock(&all->lock);
    all->resumed += resumed;
    if (err->result != DFC_OK && all->failure.result == DFC_OK)
        all->failure = *err;
    pthread_mutex_unlock(&all->lock);
}

static void part_run(void *context, void *item)
{
    struct upload_parts *all = context;
    struct upload_part *p = item;
    struct dfc_error err = {0};
    uint64_t resumed = 0;
    if (has_failed(all))
        return;
    if (part_is_there(p)) {
        resumed = part_length(p);
        progress_add(all->order->progress->all, (int64_t)resumed, 0);
    } else if (part_send(p, &err) == DFC_OK) {
        err = (struct dfc_error){0};
    }
    note_end(all, resumed, &err);
}

int upload_parts_send(struct upload_parts *all, struct dfc_error *err)
{
    unsigned threads =
        all->order->parallel < all->count ? all->order->parallel : (unsigned)all->count;
    struct workers *workers = workers_start(threads, part_run, all);
    for (uint32_t i = 0; i < all->count; i++)
        workers_give(workers, &all->parts[i]);
    workers_finish(workers);
    if (all->failure.result == DFC_OK)
        return DFC_OK;
    *err = all->failure;
    return err->result;
}

/* ---- the lists ---- */

int upload_fail(struct dfc_error *err, int result, const struct error *e)
{
    *err = (struct dfc_error){.result = result};
    snprintf(err->code, sizeof err->code, "%s", error_name(e->code));
    snprintf(err->message, sizeof err->message, "%s", e->message);
    return result;
}

int upload_parts_read(struct upload_parts *all, struct dfc_error *err)
{
    struct error e = ERROR_INIT;
    for (uint32_t i = 0; i < all->count; i++) {
        char hex[2 * CHECKSUM_MAX + 1];
        if (!part_md5(&all->parts[i], hex)) {
            error_set(&e, E_IO, "'%s' cannot be read, or is shorter now", all->order->path);
            return upload_fail(err, DFC_LOCAL, &e);
        }
        free(all->parts[i].tag);
        all->parts[i].tag = xstrdup(hex);
    }
    return DFC_OK;
}

static void take_page(struct upload_parts *all, json_t *rows, uint32_t *last)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        json_int_t number = json_integer_value(json_object_get(row, "part"));
        const char *tag = json_string_value(json_object_get(row, "tag"));
        if (number < 1 || number > UPLOAD_PARTS_MAX || tag == NULL)
            continue;
        *last = (uint32_t)number;
        if (number > all->count)
            continue;
        free(all->parts[number - 1].tag);
        all->parts[number - 1].tag = xstrdup(tag);
    }
}

int upload_parts_ask(struct upload_parts *all, struct dfc_error *err)
{
    const struct upload_order *o = all->order;
    uint32_t last = 0, before;
    bool more;
    do {
        _cleanup_free_ char *text = NULL;
        _cleanup_json_ json_t *doc = NULL;
        struct error e = ERROR_INIT;
        int rc = dfc_upload_parts(o->client, o->bucket, o->key, all->upload, last, &text, err);
        if (rc != DFC_OK)
            return rc;
        if (json_parse(text, strlen(text), &doc, &e) != 0)
            return upload_fail(err, DFC_FAILED, &e);
        before = last;
        take_page(all, json_object_get(doc, "parts"), &last);
        more = json_is_true(json_object_get(doc, "more"));
    } while (more && last > before);
    return DFC_OK;
}

char *upload_parts_list(const struct upload_parts *all)
{
    _cleanup_json_ json_t *list = json_array();
    for (uint32_t i = 0; i < all->count; i++)
        json_array_append_new(
            list, json_pack("{s:I, s:s}", "part", (json_int_t)i + 1, "tag", all->parts[i].tag));
    return json_text(list);
}
