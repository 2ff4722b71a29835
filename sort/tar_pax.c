#include "sort/tar_pax.h"

#include "common/cleanup.h"

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

static bool keys_equal(const struct pax_record *a, const struct pax_record *b)
{
    return a->key_len == b->key_len && memcmp(a->key, b->key, a->key_len) == 0;
}

bool pax_key_is(const struct pax_record *r, const char *key)
{
    return r->key_len == strlen(key) && memcmp(r->key, key, r->key_len) == 0;
}

bool pax_has_key(const char *text, size_t len, const struct pax_record *wanted)
{
    struct pax_record r;
    while (pax_next(&text, &len, &r) > 0) {
        if (keys_equal(&r, wanted))
            return true;
    }
    return false;
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

void pax_globals_update(struct buf *globals, const char *text, size_t len)
{
    _cleanup_(buf_done)
    struct buf next = BUF_INIT;
    const char *at = buf_str(globals);
    size_t left = globals->len;
    struct pax_record r;
    while (pax_next(&at, &left, &r) > 0) {
        if (!pax_has_key(text, len, &r))
            buf_append(&next, r.raw, r.raw_len);
    }
    at = text;
    left = len;
    while (pax_next(&at, &left, &r) > 0) {
        /* Within one header the last record of a key counts. */
        if (r.value_len > 0 && !pax_has_key(at, left, &r))
            buf_append(&next, r.raw, r.raw_len);
    }
    struct buf old = *globals;
    *globals = next;
    next = old;
}

void pax_fold(const struct buf *globals, const char *own, size_t own_len, struct buf *out)
{
    const char *at = globals->data;
    size_t left = globals->len;
    struct pax_record r;
    while (pax_next(&at, &left, &r) > 0) {
        if (!pax_has_key(own, own_len, &r))
            buf_append(out, r.raw, r.raw_len);
    }
    buf_append(out, own, own_len);
}
