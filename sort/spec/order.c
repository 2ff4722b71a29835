#include "sort/spec/order.h"

#include <assert.h>
#include <openssl/evp.h>

#include "common/buf.h"

int order_compare_names(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int c = memcmp(a, b, a_len < b_len ? a_len : b_len);
    if (c != 0)
        return c;
    return (a_len > b_len) - (a_len < b_len);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int order_compare_places(const struct sort_row *a, const struct sort_row *b)
{
    int c = compare_numbers(a->shard, b->shard);
    return c != 0 ? c : compare_numbers(a->position, b->position);
}

static size_t digits(const char *text, size_t len)
{
    size_t n = 0;
    while (n < len && text[n] >= '0' && text[n] <= '9')
        n++;
    return n;
}

/* Without their zeros the longer of two numbers is the greater. */
static int compare_digits(const char *a, size_t a_len, const char *b, size_t b_len)
{
    for (; a_len > 0 && *a == '0'; a_len--)
        a++;
    for (; b_len > 0 && *b == '0'; b_len--)
        b++;
    if (a_len != b_len)
        return a_len < b_len ? -1 : 1;
    return memcmp(a, b, a_len);
}

int order_compare_natural(const char *a, size_t a_len, const char *b, size_t b_len)
{
    while (a_len > 0 && b_len > 0) {
        size_t m = digits(a, a_len);
        size_t n = digits(b, b_len);
        int c;
        if (m > 0 && n > 0) {
            c = compare_digits(a, m, b, n);
        } else {
            m = n = 1;
            c = (unsigned char)*a - (unsigned char)*b;
        }
        if (c != 0)
            return c;
        a += m;
        a_len -= m;
        b += n;
        b_len -= n;
    }
    return (a_len > 0) - (b_len > 0);
}

const char *order_name(const struct sort_order *o, const struct sort_row *row, size_t *len)
{
    const char *end = o->text_keys ? memchr(row->name, '\0', row->name_len) : NULL;
    const char *name = end != NULL ? end + 1 : row->name;
    *len = row->name_len - (size_t)(name - row->name);
    return name;
}

/* What comes first; names have been compared, unless there are texts before them. */
static int compare_first(const struct sort_order *o, const struct sort_row *a,
                         const struct sort_row *b, int names)
{
    if (order_has_key(o))
        return compare_numbers(a->key, b->key);
    if (o->algorithm == SORT_NATURAL)
        return order_compare_natural(a->name, a->name_len, b->name, b->name_len);
    if (!o->text_keys)
        return names;
    size_t a_name = 0;
    size_t b_name = 0;
    order_name(o, a, &a_name);
    order_name(o, b, &b_name);
    return order_compare_names(a->name, a->name_len - a_name, b->name, b->name_len - b_name);
}

int order_compare(const struct sort_order *o, const struct sort_row *a, const struct sort_row *b)
{
    if (o->grouped && a->group != b->group)
        return compare_numbers(a->group, b->group);
    if (o->algorithm == SORT_NONE)
        return order_compare_places(a, b);
    int names = order_compare_names(a->name, a->name_len, b->name, b->name_len);
    int c = compare_first(o, a, b, names);
    if (c != 0)
        return o->decreasing ? -c : c;
    return names != 0 ? names : order_compare_places(a, b);
}

static void store_u64(void *at, uint64_t value)
{
    unsigned char *bytes = at;
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t hash_key(EVP_MD_CTX *c, const EVP_MD *sha256, const struct buf *text)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    int ok = EVP_DigestInit_ex(c, sha256, NULL) && EVP_DigestUpdate(c, text->data, text->len) &&
             EVP_DigestFinal_ex(c, digest, NULL);
    assert(ok == 1);
    uint64_t key = 0;
    for (unsigned i = 0; i < 8; i++)
        key = key << 8 | digest[i];
    return key;
}

uint64_t order_md5_key(const char *name, size_t len)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    int ok = EVP_Q_digest(NULL, "MD5", NULL, name, len, digest, NULL);
    assert(ok == 1);
    uint64_t key = 0;
    for (unsigned i = 0; i < 8; i++)
        key = key << 8 | digest[i];
    return key;
}

/* Finding the algorithm takes longer than hashing so short a text: once for all of them. */
void order_shuffle_keys(uint64_t seed, const char *shard_name, uint64_t position, uint64_t *keys,
                        size_t count)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    size_t name_len = strlen(shard_name);
    EVP_MD *sha256 = EVP_MD_fetch(NULL, "SHA2-256", NULL);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    assert(sha256 != NULL && c != NULL);
    buf_reserve(&text, 8 + name_len + 1 + 8);
    text.len = 8 + name_len + 1 + 8;
    store_u64(text.data, seed);
    memcpy(text.data + 8, shard_name, name_len + 1);
    for (size_t i = 0; i < count; i++) {
        store_u64(text.data + 8 + name_len + 1, position + i);
        keys[i] = hash_key(c, sha256, &text);
    }
    EVP_MD_CTX_free(c);
    EVP_MD_free(sha256);
}

uint64_t order_shuffle_key(uint64_t seed, const char *shard_name, uint64_t position)
{
    uint64_t key;
    order_shuffle_keys(seed, shard_name, position, &key, 1);
    return key;
}
