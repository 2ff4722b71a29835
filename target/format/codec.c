#include "target/format/codec.h"

unsigned char *codec_put_varint(unsigned char *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (unsigned char)(value | 0x80);
    *at++ = (unsigned char)value;
    return at;
}

unsigned char *codec_put_bytes(unsigned char *at, const void *data, size_t len)
{
    memcpy(at, data, len);
    return at + len;
}

unsigned char *codec_put_text(unsigned char *at, const char *text)
{
    return codec_put_bytes(at, text, strlen(text) + 1);
}

unsigned char *codec_put_u32(unsigned char *at, uint32_t value)
{
    for (unsigned shift = 0; shift < 32; shift += 8)
        *at++ = (unsigned char)(value >> shift);
    return at;
}

unsigned char *codec_put_version(unsigned char *at, const struct version *v)
{
    return codec_put_varint(codec_put_varint(codec_put_varint(at, v->term), v->map), v->counter);
}

uint8_t codec_get_u8(struct codec_reader *r)
{
    if (r->at == r->end) {
        r->failed = true;
        return 0;
    }
    return *r->at++;
}

uint64_t codec_get_varint(struct codec_reader *r)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = codec_get_u8(r);
        if (shift == 63 && byte > 1)
            break; /* more than 64 bits */
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            r->failed |= byte == 0 && shift > 0;
            return value;
        }
    }
    r->failed = true;
    return 0;
}

int64_t codec_get_time_ms(struct codec_reader *r)
{
    uint64_t value = codec_get_varint(r);
    r->failed |= value > INT64_MAX;
    return (int64_t)(value & INT64_MAX);
}

const char *codec_get_text(struct codec_reader *r, size_t max)
{
    const char *text = (const char *)r->at;
    const unsigned char *nul = memchr(r->at, '\0', (size_t)(r->end - r->at));
    if (nul == NULL || (size_t)(nul - r->at) > max) {
        r->failed = true;
        return "";
    }
    r->at = nul + 1;
    return text;
}

struct version codec_get_version(struct codec_reader *r)
{
    struct version v;
    v.term = codec_get_varint(r);
    v.map = codec_get_varint(r);
    v.counter = codec_get_varint(r);
    return v;
}

void codec_get_digest(struct codec_reader *r, unsigned type, struct checksum_value *out)
{
    *out = (struct checksum_value){.type = CHECKSUM_NONE};
    if (type >= CHECKSUM_TYPES) {
        r->failed = true;
        return;
    }
    out->type = (enum checksum_type)type;
    for (size_t i = 0; i < checksum_size(out->type); i++)
        out->bytes[i] = codec_get_u8(r);
}
