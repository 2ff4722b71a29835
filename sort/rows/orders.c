#include "sort/rows/orders.h"

#include <assert.h>

#include "common/mem.h"
#include "sort/spec/order.h"
#include "sort/spec/spec.h"

#define NAME_MAX_BYTES 1024

static const char magic[8] = "DFCORDR4";

int order_put_record(struct encoder *e, const struct order_record *r, struct error *err)
{
    int rc = encoder_put_varint(e, r->source, err);
    if (rc == 0)
        rc = encoder_put_varint(e, r->shard, err);
    if (rc == 0)
        rc = encoder_put_varint(e, r->position, err);
    if (rc == 0)
        rc = encoder_put_varint(e, r->size / SORT_BLOCK, err);
    return rc;
}

int order_get_record(struct decoder *d, unsigned participants, struct order_record *r,
                     struct error *err)
{
    uint64_t source = 0;
    uint64_t shard = 0;
    uint64_t position = 0;
    uint64_t blocks = 0;
    int rc = decoder_get_bounded(d, participants - 1, "a record's target", &source, err);
    if (rc == 0)
        rc = decoder_get_bounded(d, SORT_SHARDS_MAX - 1, "a shard's number", &shard, err);
    if (rc == 0)
        rc = decoder_get_bounded(d, SORT_POSITION_MAX, "a position", &position, err);
    if (rc == 0)
        rc = decoder_get_bounded(d, UINT64_MAX / SORT_BLOCK, "a record's size", &blocks, err);
    *r = (struct order_record){
        .source = (uint32_t)source,
        .shard = (uint32_t)shard,
        .position = (uint32_t)position,
        .size = blocks * SORT_BLOCK,
    };
    return rc;
}

int order_put_shard(struct encoder *e, const struct order_shard *s, struct error *err)
{
    int rc = encoder_put_varint(e, s->kind, err);
    if (rc == 0)
        rc = encoder_put_varint(e, s->name.len, err);
    if (rc == 0)
        rc = encoder_put(e, s->name.data, s->name.len, err);
    if (rc == 0)
        rc = encoder_put_varint(e, s->bytes, err);
    if (rc == 0)
        rc = encoder_put_varint(e, s->records, err);
    if (rc == 0)
        rc = encoder_put_u64(e, s->digest.low64, err);
    return rc != 0 ? rc : encoder_put_u64(e, s->digest.high64, err);
}

static int get_name(struct decoder *d, struct buf *name, struct error *err)
{
    char text[NAME_MAX_BYTES];
    uint64_t len = 0;
    int rc = decoder_get_bounded(d, NAME_MAX_BYTES, "the length of a name", &len, err);
    if (rc == 0)
        rc = decoder_get(d, text, (size_t)len, err);
    if (rc != 0)
        return rc;
    if (len == 0 || memchr(text, '\0', (size_t)len) != NULL)
        return error_set(err, E_CORRUPT, "an output shard's name is empty or has a NUL in it");
    buf_clear(name);
    buf_append(name, text, (size_t)len);
    return 0;
}

static int get_digest(struct decoder *d, XXH128_hash_t *digest, struct error *err)
{
    uint64_t low = 0;
    uint64_t high = 0;
    int rc = decoder_get_u64(d, &low, err);
    if (rc == 0)
        rc = decoder_get_u64(d, &high, err);
    *digest = (XXH128_hash_t){.low64 = low, .high64 = high};
    return rc;
}

int order_get_shard(struct decoder *d, struct order_shard *s, struct error *err)
{
    uint64_t kind = 0;
    int rc = decoder_get_bounded(d, ORDER_TEXT, "a kind of output", &kind, err);
    if (rc == 0)
        rc = get_name(d, &s->name, err);
    if (rc == 0)
        rc = decoder_get_bounded(d, UINT64_MAX - SORT_TAR_END, "an output's size", &s->bytes, err);
    if (rc == 0)
        rc = decoder_get_varint(d, &s->records, err);
    s->kind = (enum order_kind)kind;
    return rc != 0 ? rc : get_digest(d, &s->digest, err);
}

/* --- the book --------------------------------------------------------------------------------- */

struct book {
    struct blob *blob;
    uint64_t *starts;
    size_t count, cap;
    size_t shards;
    uint64_t bytes;
};

struct book *book_new(const struct sort_env *env, uint64_t memory_limit)
{
    struct book *b = xcalloc(1, sizeof *b);
    b->blob = blob_new(env, memory_limit);
    return b;
}

void book_free(struct book *b)
{
    if (b == NULL)
        return;
    blob_free(b->blob);
    free(b->starts);
    free(b);
}

static int copy_source(struct encoder *e, struct source from, struct error *err)
{
    char chunk[4096];
    ssize_t n;
    while ((n = from.read(from.ctx, chunk, sizeof chunk, err)) > 0) {
        int rc = encoder_put(e, chunk, (size_t)n, err);
        if (rc != 0)
            return rc;
    }
    return (int)n;
}

static int book_begin(struct book *b, const struct order_shard *s, struct error *err)
{
    if (b->count == SORT_SHARDS_MAX)
        return error_set(err, E_SPEC, "a target would build more than %u outputs", SORT_SHARDS_MAX);
    if (b->count == b->cap) {
        b->cap = b->cap == 0 ? 64 : 2 * b->cap;
        b->starts = xrealloc(b->starts, b->cap * sizeof *b->starts);
    }
    b->starts[b->count++] = blob_size(b->blob);
    if (s->kind == ORDER_SHARD) {
        b->shards++;
        b->bytes += s->bytes;
    }
    return 0;
}

int book_add(struct book *b, const struct order_shard *s, struct source records, struct error *err)
{
    int rc = book_begin(b, s, err);
    if (rc != 0)
        return rc;
    struct encoder e;
    encoder_init(&e, sink_blob(b->blob));
    rc = order_put_shard(&e, s, err);
    if (rc == 0)
        rc = copy_source(&e, records, err);
    if (rc == 0)
        rc = encoder_flush(&e, err);
    encoder_done(&e);
    return rc;
}

size_t book_count(const struct book *b)
{
    return b->count;
}

size_t book_shards(const struct book *b)
{
    return b->shards;
}

uint64_t book_bytes(const struct book *b)
{
    return b->bytes;
}

struct blob_range book_range(const struct book *b, size_t i)
{
    assert(i < b->count);
    uint64_t end = i + 1 < b->count ? b->starts[i + 1] : blob_size(b->blob);
    return (struct blob_range){.blob = b->blob, .at = b->starts[i], .end = end};
}

/* --- the stream ------------------------------------------------------------------------------- */

int orders_begin(struct encoder *e, uint64_t job, struct error *err)
{
    int rc = encoder_put(e, magic, sizeof magic, err);
    return rc != 0 ? rc : encoder_put_u64(e, job, err);
}

int orders_add(struct encoder *e, const struct order_shard *s, struct source records,
               struct error *err)
{
    int rc = encoder_put_varint(e, 1, err);
    if (rc == 0)
        rc = order_put_shard(e, s, err);
    return rc != 0 ? rc : copy_source(e, records, err);
}

int orders_end(struct encoder *e, uint64_t shards, struct error *err)
{
    int rc = encoder_put_varint(e, 0, err);
    if (rc == 0)
        rc = encoder_put_varint(e, shards, err);
    return rc != 0 ? rc : encoder_put_checksum(e, err);
}

/* What comes off the stream, checked, and encoded again. */
struct incoming {
    struct decoder decoder;
    struct encoder encoder; /* into the book's blob */
    struct order_shard shard;
    struct book *book;
    unsigned participants;
};

static int incoming_head(struct incoming *in, uint64_t job, struct error *err)
{
    char found[sizeof magic] = {0};
    uint64_t number = 0;
    int rc = decoder_get(&in->decoder, found, sizeof found, err);
    if (rc == 0)
        rc = decoder_get_u64(&in->decoder, &number, err);
    if (rc == 0 && (memcmp(found, magic, sizeof magic) != 0 || number != job))
        return error_set(err, E_CORRUPT, "the stream does not hold this job's orders");
    return rc;
}

static int incoming_records(struct incoming *in, struct error *err)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < in->shard.records; i++) {
        struct order_record r;
        int rc = order_get_record(&in->decoder, in->participants, &r, err);
        if (rc == 0 && (r.size == 0 || r.size > in->shard.bytes - bytes))
            return error_set(err, E_CORRUPT, "a record's size does not fit into its shard");
        if (rc == 0)
            rc = order_put_record(&in->encoder, &r, err);
        if (rc != 0)
            return rc;
        bytes += r.size;
    }
    if (bytes != in->shard.bytes)
        return error_set(err, E_CORRUPT, "a shard of %llu bytes has records of %llu",
                         (unsigned long long)in->shard.bytes, (unsigned long long)bytes);
    return 0;
}

static int incoming_text(struct incoming *in, struct error *err)
{
    char chunk[4096];
    int rc = 0;
    for (uint64_t left = in->shard.bytes; rc == 0 && left > 0;) {
        size_t n = left < sizeof chunk ? (size_t)left : sizeof chunk;
        rc = decoder_get(&in->decoder, chunk, n, err);
        if (rc == 0)
            rc = encoder_put(&in->encoder, chunk, n, err);
        left -= n;
    }
    return rc;
}

static int incoming_shard(struct incoming *in, struct error *err)
{
    int rc = order_get_shard(&in->decoder, &in->shard, err);
    if (rc == 0)
        rc = encoder_flush(&in->encoder, err); /* the blob ends where the shard begins */
    if (rc == 0)
        rc = book_begin(in->book, &in->shard, err);
    if (rc == 0)
        rc = order_put_shard(&in->encoder, &in->shard, err);
    if (rc != 0)
        return rc;
    return in->shard.kind == ORDER_TEXT ? incoming_text(in, err) : incoming_records(in, err);
}

static int incoming_end(struct incoming *in, struct error *err)
{
    uint64_t shards = 0;
    int rc = decoder_get_varint(&in->decoder, &shards, err);
    if (rc == 0 && shards != in->book->count)
        return error_set(err, E_CORRUPT, "orders for %llu shards hold %zu",
                         (unsigned long long)shards, in->book->count);
    if (rc == 0)
        rc = decoder_get_checksum(&in->decoder, err);
    if (rc == 0)
        rc = decoder_expect_end(&in->decoder, err);
    return rc != 0 ? rc : encoder_flush(&in->encoder, err);
}

static int incoming_all(struct incoming *in, uint64_t job, struct error *err)
{
    int rc = incoming_head(in, job, err);
    while (rc == 0) {
        uint64_t more = 0;
        rc = decoder_get_bounded(&in->decoder, 1, "a mark", &more, err);
        if (rc == 0 && more == 0)
            return incoming_end(in, err);
        if (rc == 0)
            rc = incoming_shard(in, err);
    }
    return rc;
}

int orders_receive(struct source source, uint64_t job, unsigned participants, struct book *b,
                   struct error *err)
{
    struct incoming in = {.book = b, .participants = participants};
    decoder_init(&in.decoder, source);
    encoder_init(&in.encoder, sink_blob(b->blob));
    int rc = incoming_all(&in, job, err);
    buf_done(&in.shard.name);
    encoder_done(&in.encoder);
    decoder_done(&in.decoder);
    return rc;
}
