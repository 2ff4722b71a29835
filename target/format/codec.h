/* The bytes of the target's small binary records (attr.h, index/record.h): numbers, varints
 * (LEB128, at most 10 bytes) and texts that end with a NUL.
 *
 * Writers run ahead in a buffer that the record's limits make large enough.  A reader remembers
 * that it failed, so that a record is read in one go and judged at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/checksum.h"
#include "target/format/version.h"

enum { CODEC_VARINT_MAX = 10 };

unsigned char *codec_put_varint(unsigned char *at, uint64_t value);
unsigned char *codec_put_bytes(unsigned char *at, const void *data, size_t len);
unsigned char *codec_put_text(unsigned char *at, const char *text); /* with its NUL */
unsigned char *codec_put_u32(unsigned char *at, uint32_t value);    /* little-endian */
unsigned char *codec_put_version(unsigned char *at, const struct version *v);

struct codec_reader {
    const unsigned char *at;
    const unsigned char *end;
    bool failed;
};

uint8_t codec_get_u8(struct codec_reader *r);
uint64_t codec_get_varint(struct codec_reader *r); /* fails on anything but the shortest form */
int64_t codec_get_time_ms(struct codec_reader *r); /* a varint that fits int64_t */
const char *codec_get_text(struct codec_reader *r, size_t max); /* borrowed; "" after a failure */
struct version codec_get_version(struct codec_reader *r);
/* The digest that a checksum of this type has. */
void codec_get_digest(struct codec_reader *r, unsigned type, struct checksum_value *out);
