/* .tfrecord: a stream of frames, each a record, a tf.train.Example.
 *
 *     frame     length (8 bytes, low first), masked CRC-32C of those, the Example, its masked
 * CRC-32C Example   { 1: Features { 1: { 1: name, 2: Feature { 1: BytesList | 2: FloatList | 3:
 * Int64List } } … } }
 *
 * A feature is the member whose path is the key, a dot and the feature's name (sort/shard/pack.h).
 * The key is the feature `__key__`; where there is none, the record's index in its file, in ten
 * digits. Read: a list of one byte string is taken as it is, numbers become text, one a line.
 * Written: lists of one byte string.  Both checksums are verified before anything is believed. */
#include <isa-l/crc.h>
#include <string.h>

#include "common/mem.h"
#include "io/varint.h"
#include "sort/shard/format_parts.h"
#include "sort/shard/inflow.h"
#include "sort/shard/pack.h"
#include "sort/shard/tar.h"

#define LISTS_MAX (1U << 20)  /* bytes of numbers in a feature */
#define EXAMPLE_MAX INT32_MAX /* of a protobuf message */
#define CRC_PIECE (1 << 20)

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };
enum { LIST_BYTES = 1, LIST_FLOAT = 2, LIST_INT64 = 3 };

static uint32_t crc_update(uint32_t crc, const void *data, size_t len)
{
    const unsigned char *at = data;
    while (len > 0) {
        size_t n = len < CRC_PIECE ? len : CRC_PIECE;
        crc = crc32_iscsi((unsigned char *)at, (int)n, crc);
        at += n;
        len -= n;
    }
    return crc;
}

/* What TensorFlow stores, so that a checksum of checksums is none of them. */
static uint32_t crc_masked(uint32_t crc)
{
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

static void put_le(unsigned char *out, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++)
        out[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_le(const unsigned char *in, unsigned width)
{
    uint64_t value = 0;
    for (unsigned i = width; i-- > 0;)
        value = value << 8 | in[i];
    return value;
}

/* --- reading protobuf ------------------------------------------------------------------------- */

struct examples {
    struct inflow in;
    struct sink tar;
    bool making; /* members; else the key is looked for */
    bool keyed;
    struct pack_member m;
    struct buf text; /* of numbers */
};

static int damaged(struct examples *x, struct error *err)
{
    return inflow_corrupt(&x->in, "this is not within a tf.train.Example", err);
}

static int get_varint(struct examples *x, uint64_t end, uint64_t *out, struct error *err)
{
    unsigned char bytes[VARINT_MAX];
    for (size_t n = 0; n < VARINT_MAX && inflow_offset(&x->in) < end;) {
        int rc = inflow_get(&x->in, &bytes[n], 1, err);
        if (rc != 0)
            return rc;
        if (varint_get(bytes, ++n, out) > 0)
            return 0;
    }
    return damaged(x, err);
}

/* A length, and where what it counts ends. */
static int get_end(struct examples *x, uint64_t end, uint64_t *inner, struct error *err)
{
    uint64_t len = 0;
    int rc = get_varint(x, end, &len, err);
    if (rc != 0)
        return rc;
    *inner = inflow_offset(&x->in) + len;
    return len > end - inflow_offset(&x->in) ? damaged(x, err) : 0;
}

static int skip_field(struct examples *x, unsigned wire, uint64_t end, struct error *err)
{
    uint64_t to = inflow_offset(&x->in) + (wire == WIRE_64 ? 8 : 4);
    uint64_t ignored;
    int rc = 0;
    if (wire == WIRE_VARINT)
        return get_varint(x, end, &ignored, err);
    if (wire == WIRE_BYTES)
        rc = get_end(x, end, &to, err);
    else if (wire != WIRE_64 && wire != WIRE_32)
        rc = damaged(x, err);
    if (rc == 0 && to > end)
        rc = damaged(x, err);
    if (rc == 0)
        inflow_seek(&x->in, to);
    return rc;
}

/* Calls fn(x, end) for each field `number` that is a message or bytes; passes over the others. */
static int each_message(struct examples *x, uint64_t end, unsigned number,
                        int (*fn)(struct examples *x, uint64_t end, struct error *err),
                        struct error *err)
{
    int rc = 0;
    while (rc == 0 && inflow_offset(&x->in) < end) {
        uint64_t tag = 0;
        uint64_t inner = 0;
        rc = get_varint(x, end, &tag, err);
        if (rc == 0 && tag != (number << 3 | WIRE_BYTES)) {
            rc = skip_field(x, (unsigned)tag & 7, end, err);
            continue;
        }
        if (rc == 0)
            rc = get_end(x, end, &inner, err);
        if (rc == 0)
            rc = fn(x, inner, err);
        if (rc == 0)
            inflow_seek(&x->in, inner);
    }
    return rc;
}

/* --- features --------------------------------------------------------------------------------- */

/* Where the parts of a message are that are wanted. */
struct range {
    uint64_t begin, end;
    unsigned count; /* how often it came; the last one counts */
};

static int find_fields(struct examples *x, uint64_t end, struct range *ranges, unsigned count,
                       struct error *err)
{
    int rc = 0;
    while (rc == 0 && inflow_offset(&x->in) < end) {
        uint64_t tag = 0;
        rc = get_varint(x, end, &tag, err);
        uint64_t number = tag >> 3;
        if (rc != 0)
            break;
        if ((tag & 7) != WIRE_BYTES || number == 0 || number > count) {
            rc = skip_field(x, (unsigned)tag & 7, end, err);
            continue;
        }
        struct range *r = &ranges[number - 1];
        rc = get_end(x, end, &r->end, err);
        r->begin = inflow_offset(&x->in);
        r->count++;
        if (rc == 0)
            inflow_seek(&x->in, r->end);
    }
    return rc;
}

static int put_line(struct examples *x, unsigned list, uint64_t bits, struct error *err)
{
    if (x->text.len > LISTS_MAX * 8)
        return inflow_unsupported(&x->in, "a feature of more than a million numbers", err);
    const char *newline = x->text.len > 0 ? "\n" : "";
    if (list == LIST_INT64) {
        buf_printf(&x->text, "%s%lld", newline, (long long)bits);
    } else {
        uint32_t low = (uint32_t)bits;
        float value;
        memcpy(&value, &low, sizeof value);
        buf_printf(&x->text, "%s%.9g", newline, (double)value);
    }
    return 0;
}

static int number(struct examples *x, unsigned list, uint64_t end, struct error *err)
{
    uint64_t bits = 0;
    unsigned char bytes[4] = {0};
    int rc;
    if (list == LIST_INT64) {
        rc = get_varint(x, end, &bits, err);
    } else {
        rc = end - inflow_offset(&x->in) < sizeof bytes ? damaged(x, err)
                                                        : inflow_get(&x->in, bytes, 4, err);
        bits = get_le(bytes, 4);
    }
    return rc != 0 ? rc : put_line(x, list, bits, err);
}

static int numbers_until(struct examples *x, unsigned list, uint64_t end, struct error *err)
{
    int rc = 0;
    while (rc == 0 && inflow_offset(&x->in) < end)
        rc = number(x, list, end, err);
    return rc;
}

/* A list of numbers, each by itself or many packed. */
static int numbers(struct examples *x, unsigned list, uint64_t end, struct error *err)
{
    unsigned alone = list == LIST_INT64 ? WIRE_VARINT : WIRE_32;
    int rc = 0;
    buf_clear(&x->text);
    while (rc == 0 && inflow_offset(&x->in) < end) {
        uint64_t tag = 0;
        uint64_t inner = 0;
        rc = get_varint(x, end, &tag, err);
        if (rc == 0 && tag == (1 << 3 | alone)) {
            rc = number(x, list, end, err);
        } else if (rc == 0 && tag == (1 << 3 | WIRE_BYTES)) {
            rc = get_end(x, end, &inner, err);
            if (rc == 0)
                rc = numbers_until(x, list, inner, err);
        } else if (rc == 0) {
            rc = skip_field(x, (unsigned)tag & 7, end, err);
        }
    }
    return rc;
}

static int take_bytes(struct examples *x, const struct range *list, bool is_key, struct error *err)
{
    struct range value = {.begin = list->end, .end = list->end};
    inflow_seek(&x->in, list->begin);
    int rc = find_fields(x, list->end, &value, 1, err);
    if (rc == 0 && value.count > 1)
        rc = inflow_unsupported(&x->in, "the feature that ends here is several byte strings", err);
    if (rc != 0)
        return rc;
    inflow_seek(&x->in, value.begin);
    uint64_t size = value.end - value.begin;
    return is_key ? pack_get_text(&x->in, size, &x->m.key, err)
                  : pack_put_member(&x->m, &x->in, size, x->tar, err);
}

/* A feature of no list is an empty one. */
static int take_feature(struct examples *x, uint64_t end, bool is_key, struct error *err)
{
    struct range lists[3] = {0};
    int rc = find_fields(x, end, lists, 3, err);
    if (rc != 0)
        return rc;
    if (lists[0].count + lists[1].count + lists[2].count > 1)
        return damaged(x, err);
    if (lists[0].count == 1)
        return take_bytes(x, &lists[0], is_key, err);
    if (is_key)
        return inflow_unsupported(&x->in, "'" PACK_KEY "' is not a byte string", err);
    buf_clear(&x->text);
    for (unsigned list = LIST_FLOAT; rc == 0 && list <= LIST_INT64; list++) {
        if (lists[list - 1].count == 0)
            continue;
        inflow_seek(&x->in, lists[list - 1].begin);
        rc = numbers(x, list, lists[list - 1].end, err);
    }
    return rc != 0 ? rc : pack_put_text(&x->m, &x->in, buf_str(&x->text), x->text.len, x->tar, err);
}

/* An entry of the map: a name and a feature.  What is not wanted in this pass is passed over. */
static int take_entry(struct examples *x, uint64_t end, struct error *err)
{
    struct range parts[2] = {0};
    int rc = find_fields(x, end, parts, 2, err);
    if (rc != 0)
        return rc;
    inflow_seek(&x->in, parts[0].begin);
    rc = parts[0].count == 0
             ? damaged(x, err)
             : pack_get_text(&x->in, parts[0].end - parts[0].begin, &x->m.field, err);
    if (rc != 0)
        return rc;
    bool is_key = strcmp(buf_str(&x->m.field), PACK_KEY) == 0;
    x->keyed |= is_key;
    if (is_key == x->making)
        return 0;
    inflow_seek(&x->in, parts[1].count > 0 ? parts[1].begin : end);
    return take_feature(x, parts[1].count > 0 ? parts[1].end : end, is_key, err);
}

static int take_features(struct examples *x, uint64_t end, struct error *err)
{
    return each_message(x, end, 1, take_entry, err);
}

/* The key first, wherever it stands; then the members. */
static int take_example(struct examples *x, uint64_t end, uint64_t index, struct error *err)
{
    uint64_t begin = inflow_offset(&x->in);
    x->keyed = x->making = false;
    int rc = each_message(x, end, 1, take_features, err);
    if (rc != 0)
        return rc;
    if (!x->keyed) {
        buf_clear(&x->m.key);
        buf_printf(&x->m.key, "%010llu", (unsigned long long)index);
    }
    inflow_seek(&x->in, begin);
    x->making = true;
    return each_message(x, end, 1, take_features, err);
}

/* --- frames ----------------------------------------------------------------------------------- */

struct crc_sink {
    uint32_t crc;
    struct sink to; /* write NULL: nowhere */
};

static int crc_write(void *ctx, const void *data, size_t len, struct error *err)
{
    struct crc_sink *s = ctx;
    s->crc = crc_update(s->crc, data, len);
    return s->to.write != NULL ? s->to.write(s->to.ctx, data, len, err) : 0;
}

static int check_crc(struct examples *x, uint32_t crc, const char *why, struct error *err)
{
    unsigned char stated[4];
    int rc = inflow_get(&x->in, stated, sizeof stated, err);
    if (rc == 0 && get_le(stated, 4) != crc_masked(crc))
        rc = inflow_corrupt(&x->in, why, err);
    return rc;
}

static int take_frame(struct examples *x, uint64_t index, struct error *err)
{
    unsigned char length[8];
    int rc = inflow_get(&x->in, length, sizeof length, err);
    if (rc == 0)
        rc = check_crc(x, crc_update(UINT32_MAX, length, sizeof length),
                       "the checksum of a length is wrong", err);
    uint64_t size = get_le(length, 8);
    uint64_t begin = inflow_offset(&x->in);
    if (rc == 0 && size > x->in.in->size - begin)
        rc = inflow_corrupt(&x->in, "the file ends within a record: it is cut short", err);
    struct crc_sink sum = {.crc = UINT32_MAX};
    if (rc == 0)
        rc = inflow_copy(&x->in, size, (struct sink){.write = crc_write, .ctx = &sum}, err);
    if (rc == 0)
        rc = check_crc(x, sum.crc, "the checksum of the record before is wrong", err);
    uint64_t next = inflow_offset(&x->in);
    if (rc != 0)
        return rc;
    inflow_seek(&x->in, begin);
    rc = take_example(x, begin + size, index, err);
    inflow_seek(&x->in, next);
    return rc;
}

static int tfrecord_decode(const struct format_input *in, struct sink tar, struct error *err)
{
    struct examples x = {.tar = tar};
    inflow_init(&x.in, in);
    int rc = inflow_fill(&x.in, err);
    for (uint64_t index = 0; rc == 0 && inflow_left(&x.in) > 0; index++) {
        rc = take_frame(&x, index, err);
        if (rc == 0)
            rc = inflow_fill(&x.in, err);
    }
    pack_member_done(&x.m);
    buf_done(&x.text);
    inflow_done(&x.in);
    return rc != 0 ? rc : tar_put_end(tar, err);
}

/* --- writing ---------------------------------------------------------------------------------- */

static uint64_t varint_len(uint64_t value)
{
    unsigned char bytes[VARINT_MAX];
    return varint_put(bytes, value);
}

static void put_tag(struct buf *out, unsigned number, uint64_t len)
{
    unsigned char bytes[1 + VARINT_MAX] = {(unsigned char)(number << 3 | WIRE_BYTES)};
    buf_append(out, bytes, 1 + varint_put(bytes + 1, len));
}

static uint64_t tagged(uint64_t len)
{
    return 1 + varint_len(len) + len;
}

/* An entry up to its value: from the inside out the lengths, then what has them. */
static int tfrecord_member(struct buf *out, const char *field, size_t len, uint64_t size,
                           struct error *err)
{
    if (size > EXAMPLE_MAX)
        return error_set(err, E_SHARD_UNSUPPORTED, "more than 2 GiB do not fit into a message");
    uint64_t list = tagged(size);
    uint64_t feature = tagged(list);
    put_tag(out, 1, tagged(len) + tagged(feature));
    put_tag(out, 1, len);
    buf_append(out, field, len);
    put_tag(out, 2, feature);
    put_tag(out, 1, list);
    put_tag(out, 1, size);
    return 0;
}

static int put_crc(struct sink out, uint32_t crc, struct error *err)
{
    unsigned char bytes[4];
    put_le(bytes, crc_masked(crc), sizeof bytes);
    return out.write(out.ctx, bytes, sizeof bytes, err);
}

static int tfrecord_record(const struct pack_record *r, struct sink out, struct error *err)
{
    _cleanup_(buf_done)
    struct buf key = BUF_INIT;
    _cleanup_(buf_done)
    struct buf head = BUF_INIT;
    int rc = tfrecord_member(&key, PACK_KEY, strlen(PACK_KEY), r->key_len, err);
    buf_append(&key, r->key, r->key_len);
    uint64_t features = key.len + pack_size(r);
    put_tag(&head, 1, features);
    if (rc == 0 && features > EXAMPLE_MAX - head.len)
        rc = error_set(err, E_SHARD_UNSUPPORTED,
                       "record '%.*s': more than 2 GiB do not fit into a message",
                       (int)(r->key_len < 256 ? r->key_len : 256), r->key);
    unsigned char length[8];
    put_le(length, head.len + features, sizeof length);
    if (rc == 0)
        rc = out.write(out.ctx, length, sizeof length, err);
    if (rc == 0)
        rc = put_crc(out, crc_update(UINT32_MAX, length, sizeof length), err);
    struct crc_sink sum = {.crc = UINT32_MAX, .to = out};
    struct sink data = {.write = crc_write, .ctx = &sum};
    if (rc == 0)
        rc = data.write(data.ctx, head.data, head.len, err);
    if (rc == 0)
        rc = data.write(data.ctx, key.data, key.len, err);
    if (rc == 0)
        rc = pack_body(r, data, err);
    return rc != 0 ? rc : put_crc(out, sum.crc, err);
}

static const struct pack_ops tfrecord_pack = {
    .name = "a tf.train.Example", .member = tfrecord_member, .record = tfrecord_record};

static int tfrecord_encoder_new(const struct format_output *out, void **encoder, struct error *err)
{
    (void)err;
    *encoder = pack_new(out, &tfrecord_pack);
    return 0;
}

const struct shard_format_ops format_tfrecord = {
    .extensions = {".tfrecord"},
    .content_type = "application/octet-stream",
    .may_be_empty = true,
    .decode = tfrecord_decode,
    .encoder_new = tfrecord_encoder_new,
    .record = pack_record,
    .write = pack_write,
    .finish = pack_finish,
    .encoder_free = pack_free,
};
