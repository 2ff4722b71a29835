#include "sort/shard/tar_pax.h"

#include <stdlib.h>
#include <xxhash.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/rng.h"

/* The decimal number and the space before the key. */
static int pax_length(const char *at, size_t left, size_t *len, size_t *digits)
{
    size_t v = 0;
    size_t i = 0;
    for (; i < left && at[i] >= '0' && at[i] <= '9'; i++) {
        v = v * 10 + (size_t)(at[i] - '0');
        if (v > left)
            return -1;
    }
    if (i == 0 || i == left || at[i] != ' ')
        return -1;
    *len = v;
    *digits = i + 1;
    return 0;
}

int pax_next(const char **at, size_t *left, struct pax_record *r)
{
    if (*left == 0)
        return 0;
    size_t len;
    size_t start;
    if (pax_length(*at, *left, &len, &start) != 0 || len < start + 2 || (*at)[len - 1] != '\n')
        return -1;
    const char *key = *at + start;
    const char *equals = memchr(key, '=', len - start - 1);
    if (equals == NULL || equals == key)
        return -1;
    *r = (struct pax_record){
        .key = key,
        .key_len = (size_t)(equals - key),
        .value = equals + 1,
        .value_len = (size_t)(*at + len - 1 - (equals + 1)),
        .raw = *at,
        .raw_len = len,
    };
    *at += len;
    *left -= len;
    return 1;
}

bool pax_key_is(const struct pax_record *r, const char *key)
{
    return r->key_len == strlen(key) && memcmp(r->key, key, r->key_len) == 0;
}

int pax_number(const struct pax_record *r, uint64_t *out)
{
    uint64_t v = 0;
    if (r->value_len == 0 || r->value_len > 18)
        return -1;
    for (size_t i = 0; i < r->value_len; i++) {
        if (r->value[i] < '0' || r->value[i] > '9')
            return -1;
        v = v * 10 + (uint64_t)(r->value[i] - '0');
    }
    *out = v;
    return 0;
}

/* --- the keys of a text ----------------------------------------------------------------------- */

/* A hash table of the records of one text by their keys; of several with one key, the last.  Its
 * seed is random, so that a hostile archive cannot choose keys that collide. */
struct pax_keys {
    struct pax_slot {
        struct pax_record record; /* raw == NULL: empty */
        bool overruled;           /* of no meaning in an empty slot */
    } * slots;
    size_t mask;
    uint64_t seed;
};

static void pax_keys_done(struct pax_keys *k)
{
    free(k->slots);
}

/* The slot that has the key, or the empty one where it belongs. */
static struct pax_slot *pax_keys_find(const struct pax_keys *k, const struct pax_record *r)
{
    for (size_t i = XXH3_64bits_withSeed(r->key, r->key_len, k->seed);; i++) {
        struct pax_slot *slot = &k->slots[i & k->mask];
        if (slot->record.raw == NULL || (slot->record.key_len == r->key_len &&
                                         memcmp(slot->record.key, r->key, r->key_len) == 0))
            return slot;
    }
}

static void pax_keys_init(struct pax_keys *k, const char *text, size_t len)
{
    struct pax_record r;
    size_t count = 0;
    const char *at = text;
    size_t left = len;
    while (pax_next(&at, &left, &r) > 0)
        count++;
    k->mask = 1;
    while (k->mask < 2 * count)
        k->mask = 2 * k->mask + 1;
    k->slots = xcalloc(k->mask + 1, sizeof k->slots[0]);
    random_bytes(&k->seed, sizeof k->seed);
    while (pax_next(&text, &len, &r) > 0)
        pax_keys_find(k, &r)->record = r;
}

static bool pax_keys_has(const struct pax_keys *k, const struct pax_record *r)
{
    return pax_keys_find(k, r)->record.raw != NULL;
}

void pax_globals_update(struct buf *globals, const char *text, size_t len)
{
    _cleanup_(pax_keys_done)
    struct pax_keys keys;
    pax_keys_init(&keys, text, len);
    struct buf next = BUF_INIT;
    const char *at = buf_str(globals);
    size_t left = globals->len;
    struct pax_record r;
    while (pax_next(&at, &left, &r) > 0) {
        if (!pax_keys_has(&keys, &r))
            buf_append(&next, r.raw, r.raw_len);
    }
    while (pax_next(&text, &len, &r) > 0) {
        /* Within one header the last record of a key counts. */
        if (r.value_len > 0 && pax_keys_find(&keys, &r)->record.raw == r.raw)
            buf_append(&next, r.raw, r.raw_len);
    }
    buf_done(globals);
    *globals = next;
}

void pax_fold(const struct buf *globals, const char *own, size_t own_len, struct buf *out)
{
    if (globals->len > 0) {
        _cleanup_(pax_keys_done)
        struct pax_keys keys;
        pax_keys_init(&keys, globals->data, globals->len);
        const char *at = own;
        size_t left = own_len;
        struct pax_record r;
        while (pax_next(&at, &left, &r) > 0)
            pax_keys_find(&keys, &r)->overruled = true;
        at = globals->data;
        left = globals->len;
        while (pax_next(&at, &left, &r) > 0) {
            if (!pax_keys_find(&keys, &r)->overruled)
                buf_append(out, r.raw, r.raw_len);
        }
    }
    buf_append(out, own, own_len);
}
