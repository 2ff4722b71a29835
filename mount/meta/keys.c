#include "mount/meta/keys.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

static const struct {
    char letter;
    enum meta_shape shape;
    const char *name;
} kinds[META_KINDS] = {
#define KEY(letter_, name_, shape_, meaning_) {letter_, META_##shape_, #name_},
#include "mount/meta/keys.def"
#undef KEY
};

enum meta_shape meta_kind_shape(enum meta_kind kind)
{
    assert(kind < META_KINDS);
    return kinds[kind].shape;
}

const char *meta_kind_name(enum meta_kind kind)
{
    assert(kind < META_KINDS);
    return kinds[kind].name;
}

static size_t put_number(uint8_t *out, uint64_t number)
{
    uint64_t big = htobe64(number);
    memcpy(out, &big, sizeof big);
    return sizeof big;
}

static uint64_t get_number(const uint8_t *bytes)
{
    uint64_t big;
    memcpy(&big, bytes, sizeof big);
    return be64toh(big);
}

size_t meta_key_kind(enum meta_kind kind, uint8_t out[static META_KEY_MAX])
{
    assert(kind < META_KINDS);
    out[0] = (uint8_t)kinds[kind].letter;
    return 1;
}

size_t meta_key_children(enum meta_kind kind, uint64_t id, uint8_t out[static META_KEY_MAX])
{
    size_t size = meta_key_kind(kind, out);
    return size + put_number(out + size, id);
}

size_t meta_key_encode(const struct meta_key *key, uint8_t out[static META_KEY_MAX])
{
    size_t size = meta_key_children(key->kind, key->id, out);
    switch (kinds[key->kind].shape) {
    case META_POINT:
        return size;
    case META_NUMBERS:
    case META_QUEUE:
        return size + put_number(out + size, key->sub);
    case META_NAMES:
        assert(key->name_size > 0 && key->name_size <= META_NAME_MAX);
        memcpy(out + size, key->name, key->name_size);
        return size + key->name_size;
    }
    return 0;
}

bool meta_key_decode(const uint8_t *bytes, size_t size, struct meta_key *out)
{
    unsigned kind = 0;
    while (kind < META_KINDS && (size == 0 || kinds[kind].letter != (char)bytes[0]))
        kind++;
    if (kind == META_KINDS || size < 9)
        return false;
    *out = (struct meta_key){.kind = (enum meta_kind)kind, .id = get_number(bytes + 1)};
    switch (kinds[kind].shape) {
    case META_POINT:
        return size == 9;
    case META_NUMBERS:
    case META_QUEUE:
        if (size != 17)
            return false;
        out->sub = get_number(bytes + 9);
        return true;
    case META_NAMES:
        out->name = (const char *)bytes + 9;
        out->name_size = size - 9;
        return out->name_size > 0 && out->name_size <= META_NAME_MAX;
    }
    return false;
}

bool meta_key_is(const struct meta_key *a, const struct meta_key *b)
{
    return a->kind == b->kind && a->id == b->id && a->sub == b->sub &&
           a->name_size == b->name_size &&
           (a->name_size == 0 || memcmp(a->name, b->name, a->name_size) == 0);
}
