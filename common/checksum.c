#include "common/checksum.h"

#include <assert.h>
#include <isa-l/crc.h>
#include <openssl/evp.h>
#include <xxhash.h>

#include "common/mem.h"
#include "common/parse.h"

struct checksum {
    enum checksum_type type;
    uint32_t crc; /* complemented, as the algorithm keeps it */
    XXH3_state_t *xxh3;
    EVP_MD_CTX *evp;
};

/* Every type is a row: how a computation starts, takes bytes and ends, and what it owns. */
struct checksum_ops {
    const char *name;
    size_t size;
    void (*start)(struct checksum *c);
    void (*update)(struct checksum *c, const void *data, size_t len);
    void (*final)(struct checksum *c, unsigned char *out);
};

static void none_start(struct checksum *c)
{
    (void)c;
}

static void none_update(struct checksum *c, const void *data, size_t len)
{
    (void)c;
    (void)data;
    (void)len;
}

static void none_final(struct checksum *c, unsigned char *out)
{
    (void)c;
    (void)out;
}

static void xxh3_start(struct checksum *c)
{
    c->xxh3 = XXH3_createState();
    assert(c->xxh3 != NULL); /* half a KiB: out of memory, as in xmalloc */
    XXH3_64bits_reset(c->xxh3);
}

static void xxh3_update(struct checksum *c, const void *data, size_t len)
{
    XXH3_64bits_update(c->xxh3, data, len);
}

static void xxh3_final(struct checksum *c, unsigned char *out)
{
    XXH64_canonical_t canonical;
    XXH64_canonicalFromHash(&canonical, XXH3_64bits_digest(c->xxh3));
    memcpy(out, canonical.digest, sizeof canonical.digest);
}

static void crc32c_start(struct checksum *c)
{
    c->crc = UINT32_MAX;
}

/* crc32_iscsi is the bare polynomial division: it complements neither its start value nor its
 * result, takes an int length, and a pointer that it does not write through. */
static void crc32c_update(struct checksum *c, const void *data, size_t len)
{
    enum { STEP = 1 << 30 };
    unsigned char *at = (unsigned char *)(uintptr_t)data;
    while (len > 0) {
        size_t n = len < STEP ? len : STEP;
        c->crc = crc32_iscsi(at, (int)n, c->crc);
        at += n;
        len -= n;
    }
}

static void crc32c_final(struct checksum *c, unsigned char *out)
{
    uint32_t crc = ~c->crc;
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(crc >> (24 - 8 * i));
}

static void evp_start(struct checksum *c, const EVP_MD *md)
{
    c->evp = EVP_MD_CTX_new();
    int ok = c->evp != NULL && EVP_DigestInit_ex(c->evp, md, NULL);
    assert(ok); /* both algorithms are in the default provider */
}

static void md5_start(struct checksum *c)
{
    evp_start(c, EVP_md5());
}

static void sha256_start(struct checksum *c)
{
    evp_start(c, EVP_sha256());
}

static void evp_update(struct checksum *c, const void *data, size_t len)
{
    int ok = EVP_DigestUpdate(c->evp, data, len);
    assert(ok);
}

static void evp_final(struct checksum *c, unsigned char *out)
{
    int ok = EVP_DigestFinal_ex(c->evp, out, NULL);
    assert(ok);
}

static const struct checksum_ops checksum_table[CHECKSUM_TYPES] = {
    [CHECKSUM_NONE] = {"none", 0, none_start, none_update, none_final},
    [CHECKSUM_XXH3] = {"xxh3", 8, xxh3_start, xxh3_update, xxh3_final},
    [CHECKSUM_CRC32C] = {"crc32c", 4, crc32c_start, crc32c_update, crc32c_final},
    [CHECKSUM_MD5] = {"md5", 16, md5_start, evp_update, evp_final},
    [CHECKSUM_SHA256] = {"sha256", 32, sha256_start, evp_update, evp_final},
};

struct checksum *checksum_new(enum checksum_type type)
{
    struct checksum *c = xcalloc(1, sizeof *c);
    c->type = type;
    checksum_table[type].start(c);
    return c;
}

void checksum_update(struct checksum *c, const void *data, size_t len)
{
    if (len != 0)
        checksum_table[c->type].update(c, data, len);
}

void checksum_final(struct checksum *c, struct checksum_value *out)
{
    *out = (struct checksum_value){.type = c->type};
    checksum_table[c->type].final(c, out->bytes);
}

void checksum_free(struct checksum *c)
{
    if (c == NULL)
        return;
    XXH3_freeState(c->xxh3);
    EVP_MD_CTX_free(c->evp);
    free(c);
}

size_t checksum_size(enum checksum_type type)
{
    return checksum_table[type].size;
}

const char *checksum_name(enum checksum_type type)
{
    return checksum_table[type].name;
}

int checksum_from_name(const char *name, enum checksum_type *type, struct error *err)
{
    for (int i = 0; i < CHECKSUM_TYPES; i++) {
        if (strcmp(checksum_table[i].name, name) == 0) {
            *type = (enum checksum_type)i;
            return 0;
        }
    }
    return error_set(err, E_INVALID,
                     "checksum type '%s' is none of xxh3, crc32c, md5, sha256, none", name);
}

void checksum_hex(const struct checksum_value *v, char *out)
{
    format_hex(v->bytes, checksum_size(v->type), out);
}

int checksum_parse(enum checksum_type type, const char *hex, struct checksum_value *v,
                   struct error *err)
{
    *v = (struct checksum_value){.type = type};
    int rc = parse_hex(hex, v->bytes, checksum_size(type), err);
    return rc != 0 ? error_wrap(err, "%s checksum", checksum_name(type)) : 0;
}

bool checksum_parse_base64(enum checksum_type type, const char *base64, struct checksum_value *v)
{
    unsigned char bytes[3 * ((2 * CHECKSUM_MAX) / 4)];
    size_t len = strlen(base64), want = checksum_size(type);
    if (want == 0 || len != (want + 2) / 3 * 4 || len > sizeof bytes / 3 * 4)
        return false;
    size_t padding = (3 - want % 3) % 3;
    for (size_t i = 0; i < padding; i++) {
        if (base64[len - 1 - i] != '=')
            return false;
    }
    if (EVP_DecodeBlock(bytes, (const unsigned char *)base64, (int)len) != (int)(want + padding))
        return false;
    *v = (struct checksum_value){.type = type};
    memcpy(v->bytes, bytes, want);
    return true;
}

bool checksum_equal(const struct checksum_value *a, const struct checksum_value *b)
{
    return a->type == b->type && memcmp(a->bytes, b->bytes, checksum_size(a->type)) == 0;
}
