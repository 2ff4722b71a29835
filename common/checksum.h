/* Checksums of object bytes: one streaming interface over several algorithms.
 * xxh3 is XXH3-64 as 16 hex digits (big-endian canonical form); crc32c 8 digits (Castagnoli). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

enum checksum_type {
    CHECKSUM_NONE,
    CHECKSUM_XXH3,
    CHECKSUM_CRC32C,
    CHECKSUM_MD5,
    CHECKSUM_SHA256,
    CHECKSUM_TYPES,
};

#define CHECKSUM_MAX 32 /* bytes of the longest digest */

struct checksum_value {
    enum checksum_type type;
    unsigned char bytes[CHECKSUM_MAX];
};

struct checksum; /* a running computation */

struct checksum *checksum_new(enum checksum_type type);
void checksum_update(struct checksum *c, const void *data, size_t len);
/* Ends the computation, which can then only be freed. */
void checksum_final(struct checksum *c, struct checksum_value *out);
void checksum_free(struct checksum *c);
DEFINE_CLEANUP(struct checksum, checksum_free);

size_t checksum_size(enum checksum_type type);      /* digest bytes; 0 for none */
const char *checksum_name(enum checksum_type type); /* "xxh3" */
int checksum_from_name(const char *name, enum checksum_type *type, struct error *err);
/* Hex text of the digest; out needs 2 * CHECKSUM_MAX + 1 bytes. */
void checksum_hex(const struct checksum_value *v, char *out);
int checksum_parse(enum checksum_type type, const char *hex, struct checksum_value *v,
                   struct error *err);
/* The same in base64, as Content-MD5 and the headers of clouds have it; false: it is none of this
 * type. */
bool checksum_parse_base64(enum checksum_type type, const char *base64, struct checksum_value *v);
bool checksum_equal(const struct checksum_value *a, const struct checksum_value *b);
