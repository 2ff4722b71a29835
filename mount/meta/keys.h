/* Keys of a volume's metadata: a kind, an id, and for children a number or a name.
 *
 * Encoded, keys have the order of their parts: a kind is one range of bytes, and so are the
 * children of an id.  An ordered engine keeps the encoded form; another maps the shapes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum meta_kind {
#define KEY(letter, name, shape, meaning) META_##name,
#include "mount/meta/keys.def"
#undef KEY
    META_KINDS,
};

enum meta_shape { META_POINT, META_NUMBERS, META_NAMES, META_QUEUE };

enum {
    META_NAME_MAX = 255, /* bytes of a name: NAME_MAX and XATTR_NAME_MAX */
    META_KEY_MAX = 1 + 8 + META_NAME_MAX,
};

struct meta_key {
    enum meta_kind kind;
    uint64_t id;
    uint64_t sub;     /* of NUMBERS and QUEUE */
    const char *name; /* of NAMES; no NUL at its end, 1 to META_NAME_MAX bytes */
    size_t name_size;
};

enum meta_shape meta_kind_shape(enum meta_kind kind);
const char *meta_kind_name(enum meta_kind kind); /* "ATTR" */

/* Returns the size. */
size_t meta_key_encode(const struct meta_key *key, uint8_t out[static META_KEY_MAX]);
/* False: no key has these bytes.  The name points into them. */
bool meta_key_decode(const uint8_t *bytes, size_t size, struct meta_key *out);
bool meta_key_is(const struct meta_key *a, const struct meta_key *b);
/* What the children of an id, or all keys of the kind, begin with.  Returns the size. */
size_t meta_key_children(enum meta_kind kind, uint64_t id, uint8_t out[static META_KEY_MAX]);
size_t meta_key_kind(enum meta_kind kind, uint8_t out[static META_KEY_MAX]);

static inline struct meta_key meta_key_point(enum meta_kind kind, uint64_t id)
{
    return (struct meta_key){.kind = kind, .id = id};
}

static inline struct meta_key meta_key_number(enum meta_kind kind, uint64_t id, uint64_t sub)
{
    return (struct meta_key){.kind = kind, .id = id, .sub = sub};
}

static inline struct meta_key meta_key_named(enum meta_kind kind, uint64_t id, const char *name,
                                             size_t name_size)
{
    return (struct meta_key){.kind = kind, .id = id, .name = name, .name_size = name_size};
}
