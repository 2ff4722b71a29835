/* .msgpack: a stream of maps, each a record.
 *
 *     {"__key__": "train/0001", "jpg": <bytes>, "cls": <bytes>, "seg.png": <bytes>}
 *
 * A field is the member whose path is the key, a dot, and the field's name; the field of no name is
 * the member that is the key alone.  Of a member only path and contents go through.  Read: values
 * may be bytes or text, taken as they are, and whole numbers, which become decimal; `__key__` may
 * stand anywhere in its map.  Written: values are bytes. */
#include <string.h>

#include "common/mem.h"
#include "sort/shard/format_parts.h"
#include "sort/shard/inflow.h"
#include "sort/shard/pack.h"
#include "sort/shard/tar.h"

#define FIELDS_MAX (1U << 20) /* of a map */

/* --- reading ---------------------------------------------------------------------------------- */

struct value {
    enum { VALUE_BYTES, VALUE_SIGNED, VALUE_UNSIGNED } kind;
    uint64_t number; /* or how many bytes follow */
};

static int get_big(struct inflow *f, unsigned width, uint64_t *out, struct error *err)
{
    unsigned char bytes[8];
    int rc = inflow_get(f, bytes, width, err);
    *out = 0;
    for (unsigned i = 0; rc == 0 && i < width; i++)
        *out = *out << 8 | bytes[i];
    return rc;
}

static int get_signed(struct inflow *f, unsigned width, struct value *v, struct error *err)
{
    int rc = get_big(f, width, &v->number, err);
    unsigned spare = 64 - 8 * width;
    v->kind = VALUE_SIGNED;
    v->number = (uint64_t)((int64_t)(v->number << spare) >> spare);
    return rc;
}

static int get_value(struct inflow *f, struct value *v, struct error *err)
{
    unsigned char tag;
    int rc = inflow_get(f, &tag, 1, err);
    if (rc != 0)
        return rc;
    *v = (struct value){.kind = VALUE_BYTES};
    if (tag <= 0x7f || tag >= 0xe0) {
        *v = (struct value){.kind = VALUE_SIGNED, .number = (uint64_t)(int64_t)(int8_t)tag};
        return 0;
    }
    if (tag >= 0xa0 && tag <= 0xbf) {
        v->number = tag & 0x1f;
        return 0;
    }
    if (tag >= 0xc4 && tag <= 0xc6) /* bytes */
        return get_big(f, 1U << (tag - 0xc4), &v->number, err);
    if (tag >= 0xd9 && tag <= 0xdb) /* text */
        return get_big(f, 1U << (tag - 0xd9), &v->number, err);
    if (tag >= 0xd0 && tag <= 0xd3)
        return get_signed(f, 1U << (tag - 0xd0), v, err);
    v->kind = VALUE_UNSIGNED;
    if (tag >= 0xcc && tag <= 0xcf)
        return get_big(f, 1U << (tag - 0xcc), &v->number, err);
    return inflow_unsupported(f, "a value that is neither bytes, nor text, nor a whole number",
                              err);
}

static int get_text(struct inflow *f, struct buf *out, struct error *err)
{
    struct value v;
    int rc = get_value(f, &v, err);
    if (rc == 0 && v.kind != VALUE_BYTES)
        rc = inflow_unsupported(f, "a key that is no text", err);
    return rc != 0 ? rc : pack_get_text(f, v.number, out, err);
}

static int map_size(struct inflow *f, uint64_t *count, struct error *err)
{
    unsigned char tag;
    int rc = inflow_get(f, &tag, 1, err);
    if (rc != 0)
        return rc;
    *count = tag & 0x0f;
    if (tag >= 0xde && tag <= 0xdf)
        rc = get_big(f, tag == 0xde ? 2 : 4, count, err);
    else if ((tag & 0xf0) != 0x80)
        rc = inflow_corrupt(f, "this is not the beginning of a map", err);
    if (rc == 0 && *count > FIELDS_MAX)
        rc = inflow_unsupported(f, "a map of more than 1048576 fields", err);
    return rc;
}

static int skip(struct inflow *f, uint64_t n, struct error *err)
{
    if (n > f->in->size - inflow_offset(f))
        return inflow_corrupt(f, "a value reaches past the end of the file", err);
    inflow_seek(f, inflow_offset(f) + n);
    return 0;
}

/* A field other than the key becomes a member; or, with tar NULL, is passed over. */
static int take_field(struct inflow *f, struct pack_member *m, const struct sink *tar,
                      struct error *err)
{
    struct value v;
    int rc = get_value(f, &v, err);
    if (rc != 0)
        return rc;
    if (v.kind == VALUE_BYTES) {
        if (tar == NULL || v.number > f->in->size - inflow_offset(f))
            return skip(f, v.number, err);
        return pack_put_member(m, f, v.number, *tar, err);
    }
    char text[24];
    int len = v.kind == VALUE_SIGNED
                  ? snprintf(text, sizeof text, "%lld", (long long)(int64_t)v.number)
                  : snprintf(text, sizeof text, "%llu", (unsigned long long)v.number);
    return tar != NULL ? pack_put_text(m, f, text, (size_t)len, *tar, err) : 0;
}

/* All fields of a map: the first time its key is looked for, the second time members are made. */
static int walk(struct inflow *f, struct pack_member *m, const struct sink *tar, bool *keyed,
                struct error *err)
{
    uint64_t count = 0;
    int rc = map_size(f, &count, err);
    for (; rc == 0 && count > 0; count--) {
        rc = get_text(f, &m->field, err);
        bool is_key = rc == 0 && strcmp(buf_str(&m->field), PACK_KEY) == 0;
        if (is_key)
            rc = get_text(f, &m->key, err);
        else if (rc == 0)
            rc = take_field(f, m, tar, err);
        *keyed |= is_key;
    }
    return rc;
}

static int take_map(struct inflow *f, struct pack_member *m, struct sink tar, struct error *err)
{
    uint64_t begin = inflow_offset(f);
    bool keyed = false;
    int rc = walk(f, m, NULL, &keyed, err);
    if (rc == 0 && !keyed)
        rc = inflow_unsupported(f, "a map without '" PACK_KEY "' ends here", err);
    if (rc != 0)
        return rc;
    inflow_seek(f, begin);
    return walk(f, m, &tar, &keyed, err);
}

static int msgpack_decode(const struct format_input *in, struct sink tar, struct error *err)
{
    struct inflow f;
    struct pack_member m = {0};
    inflow_init(&f, in);
    int rc = inflow_fill(&f, err);
    while (rc == 0 && inflow_left(&f) > 0) {
        rc = take_map(&f, &m, tar, err);
        if (rc == 0)
            rc = inflow_fill(&f, err);
    }
    pack_member_done(&m);
    inflow_done(&f);
    return rc != 0 ? rc : tar_put_end(tar, err);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* The shortest form of a length: with a tag of one byte, two, four. */
static size_t put_length(unsigned char *out, const unsigned char *tags, uint64_t n)
{
    unsigned form = n > UINT16_MAX ? 2 : n > UINT8_MAX ? 1 : 0;
    unsigned width = 1U << form;
    out[0] = tags[form];
    for (unsigned i = 0; i < width; i++)
        out[1 + i] = (unsigned char)(n >> (8 * (width - 1 - i)));
    return 1 + width;
}

static const unsigned char tags_text[] = {0xd9, 0xda, 0xdb};
static const unsigned char tags_bytes[] = {0xc4, 0xc5, 0xc6};

static void put_text(struct buf *out, const char *text, size_t len)
{
    unsigned char head[5];
    size_t n = 1;
    head[0] = (unsigned char)(0xa0 | len);
    if (len > 31)
        n = put_length(head, tags_text, len);
    buf_append(out, head, n);
    buf_append(out, text, len);
}

static int msgpack_member(struct buf *out, const char *field, size_t len, uint64_t size,
                          struct error *err)
{
    if (size > UINT32_MAX)
        return error_set(err, E_SHARD_UNSUPPORTED, "more than 4 GiB do not fit into a value");
    unsigned char head[5];
    put_text(out, field, len);
    buf_append(out, head, put_length(head, tags_bytes, size));
    return 0;
}

static int msgpack_record(const struct pack_record *r, struct sink out, struct error *err)
{
    static const unsigned char tags_map[] = {0, 0xde, 0xdf};
    unsigned char head[5];
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    uint64_t fields = r->members + 1;
    size_t n = 1;
    head[0] = (unsigned char)(0x80 | fields);
    if (fields > UINT8_MAX)
        n = put_length(head, tags_map, fields);
    else if (fields > 15) {
        head[0] = tags_map[1];
        head[1] = 0;
        head[2] = (unsigned char)fields;
        n = 3;
    }
    buf_append(&text, head, n);
    put_text(&text, PACK_KEY, strlen(PACK_KEY));
    put_text(&text, r->key, r->key_len);
    int rc = out.write(out.ctx, text.data, text.len, err);
    return rc != 0 ? rc : pack_body(r, out, err);
}

static const struct pack_ops msgpack_pack = {
    .name = "a msgpack map", .member = msgpack_member, .record = msgpack_record};

static int msgpack_encoder_new(const struct format_output *out, void **encoder, struct error *err)
{
    (void)err;
    *encoder = pack_new(out, &msgpack_pack);
    return 0;
}

const struct shard_format_ops format_msgpack = {
    .extensions = {".msgpack"},
    .content_type = "application/vnd.msgpack",
    .may_be_empty = true,
    .decode = msgpack_decode,
    .encoder_new = msgpack_encoder_new,
    .record = pack_record,
    .write = pack_write,
    .finish = pack_finish,
    .encoder_free = pack_free,
};
