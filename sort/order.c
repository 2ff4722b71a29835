#include "sort/order.h"

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

int order_compare(const struct sort_order *o, const struct sort_row *a, const struct sort_row *b)
{
    if (o->algorithm == SORT_NONE)
        return order_compare_places(a, b);
    int names = order_compare_names(a->name, a->name_len, b->name, b->name_len);
    int c = o->algorithm == SORT_SHUFFLE ? compare_numbers(a->key, b->key) : names;
    if (c != 0)
        return o->decreasing ? -c : c;
    return names != 0 ? names : order_compare_places(a, b);
}

static void put_u64(struct buf *b, uint64_t value)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    buf_append(b, bytes, sizeof bytes);
}

uint64_t order_shuffle_key(uint64_t seed, const char *shard_name, uint64_t position)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    put_u64(&text, seed);
    buf_append(&text, shard_name, strlen(shard_name) + 1);
    put_u64(&text, position);
    unsigned char digest[EVP_MAX_MD_SIZE];
    int ok = EVP_Digest(text.data, text.len, digest, NULL, EVP_sha256(), NULL);
    assert(ok == 1);
    uint64_t key = 0;
    for (unsigned i = 0; i < 8; i++)
        key = key << 8 | digest[i];
    return key;
}
