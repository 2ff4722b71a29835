#include "mount/meta/redis_slot.h"

#include <string.h>

enum { TAG = sizeof REDIS_TAG - 1, HEAD = TAG + 1, KIND = 1, ID = 8 };

/* How many bytes of an encoded key name the hash. */
static size_t hash_bytes(enum meta_kind kind)
{
    switch (meta_kind_shape(kind)) {
    case META_POINT:
        return KIND + ID - 1;
    case META_QUEUE:
        return KIND;
    case META_NUMBERS:
    case META_NAMES:
        return KIND + ID;
    }
    return 0;
}

static char shape_of(enum meta_kind kind)
{
    enum meta_shape shape = meta_kind_shape(kind);
    if (shape == META_POINT)
        return 'p';
    return shape == META_QUEUE || kind == META_ENTRY ? 'i' : 'n';
}

static size_t put_hash(char *out, char type, const uint8_t *encoded, size_t size)
{
    memcpy(out, REDIS_TAG, TAG);
    out[TAG] = type;
    memcpy(out + HEAD, encoded, size);
    return HEAD + size;
}

void redis_slot_of(const struct meta_key *key, struct redis_slot *out)
{
    uint8_t encoded[META_KEY_MAX];
    const size_t size = meta_key_encode(key, encoded), head = hash_bytes(key->kind);
    out->shape = shape_of(key->kind);
    out->hash_size = put_hash(out->hash, 'h', encoded, head);
    out->field_size = size - head;
    memcpy(out->field, encoded + head, size - head);
}

/* ---- pages ---- */

static size_t bound(char *out, char sign, const void *bytes, size_t size)
{
    out[0] = sign;
    if (size > 0)
        memcpy(out + 1, bytes, size);
    return 1 + size;
}

void redis_range_of(const struct meta_item *item, struct redis_range *out)
{
    const enum meta_kind kind = item->key.kind;
    const bool queue = meta_kind_shape(kind) == META_QUEUE;
    uint8_t encoded[META_KEY_MAX], next[META_KEY_MAX];
    size_t size = item->after ? meta_key_encode(&item->key, encoded)
                              : meta_key_children(kind, item->key.id, encoded);
    *out = (struct redis_range){.shape = shape_of(kind)};
    if (out->shape == 'p') {
        out->hash_size = put_hash(out->hash, 'i', encoded, KIND);
        out->low_size = item->after ? ID : 0;
        memcpy(out->low, encoded + KIND, out->low_size);
        return;
    }
    const size_t head = hash_bytes(kind);
    out->hash_size = put_hash(out->hash, 'h', encoded, head);
    if (out->shape == 'n') {
        out->low_size = size - head;
        memcpy(out->low, encoded + head, size - head);
        return;
    }
    const bool all = !item->after && !queue;
    out->low_size = bound(out->low,
                          all           ? '-'
                          : item->after ? '('
                                        : '[',
                          encoded + head, all ? 0 : size - head);
    const bool last = !queue || item->key.id == UINT64_MAX;
    if (!last)
        meta_key_children(kind, item->key.id + 1, next);
    out->high_size = bound(out->high, last ? '+' : '(', next + KIND, last ? 0 : ID);
}

void redis_range_until(enum meta_kind kind, uint64_t until, struct redis_range *out)
{
    uint8_t encoded[META_KEY_MAX], next[META_KEY_MAX];
    const bool last = until == UINT64_MAX;
    meta_key_kind(kind, encoded);
    if (!last)
        meta_key_children(kind, until + 1, next);
    *out = (struct redis_range){.shape = 'i', .low = "-", .low_size = 1};
    out->hash_size = put_hash(out->hash, 'h', encoded, KIND);
    out->high_size = bound(out->high, last ? '+' : '(', next + KIND, last ? 0 : ID);
}

bool redis_range_key(const struct redis_range *range, const char *field, size_t size,
                     uint8_t bytes[static META_KEY_MAX], struct meta_key *out)
{
    const size_t head = range->hash_size - HEAD;
    if (size > META_KEY_MAX - head)
        return false;
    memcpy(bytes, range->hash + HEAD, head);
    memcpy(bytes + head, field, size);
    return meta_key_decode(bytes, head + size, out);
}
