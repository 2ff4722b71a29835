#include "sort/task/records.h"

#include "common/mem.h"
#include "sort/base/codec.h"
#include "sort/shard/gather.h"
#include "sort/shard/outline.h"
#include "sort/task/context.h"

struct sort_records {
    const struct sort_context *context;
    const struct catalog *catalog;
    enum records_form form;
    struct record_ref *refs;
    size_t count;
    size_t next;
    uint64_t length;        /* of the records */
    struct feed feed;       /* of the record before `next`, or */
    struct outline outline; /* its outline */
    struct gather gather;
};

static void put_varint(struct buf *out, uint64_t value)
{
    unsigned char bytes[VARINT_MAX];
    buf_append(out, bytes, varint_put(bytes, value));
}

void records_request(uint64_t job, enum records_form form, const struct record_ref *refs,
                     size_t count, struct buf *out)
{
    unsigned char head[8];
    for (unsigned i = 0; i < 8; i++)
        head[i] = (unsigned char)(job >> (8 * i));
    buf_append(out, head, sizeof head);
    put_varint(out, form);
    put_varint(out, count);
    for (size_t i = 0; i < count; i++) {
        put_varint(out, refs[i].shard);
        put_varint(out, refs[i].position);
    }
}

static int request_head(struct sort_records *r, struct decoder *d, size_t *count, struct error *err)
{
    uint64_t job = 0;
    uint64_t form = 0;
    uint64_t n = 0;
    int rc = decoder_get_u64(d, &job, err);
    if (rc == 0 && job != r->context->job)
        return error_set(err, E_INVALID, "the request is for another job's records");
    if (rc == 0)
        rc = decoder_get_bounded(d, RECORDS_OUTLINES, "a form of records", &form, err);
    r->form = (enum records_form)form;
    if (rc == 0)
        rc = decoder_get_bounded(d, RECORDS_MAX, "a number of records", &n, err);
    *count = (size_t)n;
    return rc;
}

static int request_ref(struct sort_records *r, struct decoder *d, struct error *err)
{
    uint64_t shard = 0;
    uint64_t position = 0;
    int rc = decoder_get_bounded(d, UINT32_MAX, "a shard's number", &shard, err);
    if (rc == 0)
        rc = decoder_get_bounded(d, UINT32_MAX, "a position", &position, err);
    if (rc != 0)
        return rc;
    struct record_ref ref = {.shard = (uint32_t)shard, .position = (uint32_t)position};
    struct record_place place;
    rc = catalog_find(r->catalog, ref.shard, ref.position, &place, err);
    if (rc != 0)
        return rc;
    r->length += place.size;
    r->refs[r->count++] = ref;
    return 0;
}

static int request_decode(struct sort_records *r, struct decoder *d, struct error *err)
{
    size_t count = 0;
    int rc = request_head(r, d, &count, err);
    if (rc != 0)
        return rc;
    r->refs = xcalloc(count + 1, sizeof *r->refs);
    while (rc == 0 && r->count < count)
        rc = request_ref(r, d, err);
    return rc != 0 ? rc : decoder_expect_end(d, err);
}

int records_open(const struct sort_context *c, const struct catalog *catalog, const void *request,
                 size_t len, struct sort_records **out, struct error *err)
{
    struct sort_records *r = xcalloc(1, sizeof *r);
    r->context = c;
    r->catalog = catalog;
    gather_init(&r->gather, catalog);
    outline_init(&r->outline, &r->gather);
    struct span span = {.data = request, .len = len};
    struct decoder d;
    decoder_init(&d, source_span(&span));
    int rc = request_decode(r, &d, err);
    decoder_done(&d);
    if (rc != 0) {
        sort_records_free(r);
        return error_wrap(err, "a request for records");
    }
    *out = r;
    return 0;
}

int64_t sort_records_length(const struct sort_records *r)
{
    return r->form == RECORDS_WHOLE ? (int64_t)r->length : -1;
}

static int record_begin(struct sort_records *r, const struct record_ref *ref, struct error *err)
{
    return r->form == RECORDS_WHOLE
               ? feed_begin(&r->feed, &r->gather, ref->shard, ref->position, err)
               : outline_begin(&r->outline, ref->shard, ref->position, err);
}

static ssize_t record_read(struct sort_records *r, unsigned char *out, size_t max,
                           struct error *err)
{
    return r->form == RECORDS_WHOLE ? feed_fill(&r->feed, &r->gather, out, max, err)
                                    : outline_read(&r->outline, out, max, err);
}

static int records_fill(struct sort_records *r, unsigned char *out, size_t max, size_t *filled,
                        struct error *err)
{
    *filled = 0;
    while (*filled < max) {
        ssize_t n = record_read(r, out + *filled, max - *filled, err);
        if (n < 0)
            return (int)n;
        *filled += (size_t)n;
        if (n > 0)
            continue;
        if (r->next == r->count)
            return 0;
        int rc = record_begin(r, &r->refs[r->next++], err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

ssize_t sort_records_read(struct sort_records *r, void *out, size_t max, struct error *caller)
{
    struct error own = ERROR_INIT;
    struct error *err = caller != NULL ? caller : &own;
    int rc = links_check(r->context->links, err);
    size_t filled = 0;
    if (rc == 0)
        rc = records_fill(r, out, max, &filled, err);
    if (rc == 0)
        rc = gather_flush(&r->gather, err);
    if (rc == 0)
        return (ssize_t)filled;
    gather_done(&r->gather);
    sort_damage_note(r->context, rc, err);
    return rc;
}

bool sort_records_wanted(const struct sort_records *r)
{
    return links_check(r->context->links, NULL) == 0;
}

void sort_records_free(struct sort_records *r)
{
    if (r == NULL)
        return;
    gather_done(&r->gather);
    outline_done(&r->outline);
    free(r->refs);
    free(r);
}
