#include "sort/shard/tar_header.h"

struct field {
    size_t offset, len;
};

static const struct field field_name = {0, 100}, field_mode = {100, 8}, field_uid = {108, 8},
                          field_gid = {116, 8}, field_size = {124, 12}, field_mtime = {136, 12},
                          field_checksum = {148, 8}, field_type = {156, 1}, field_link = {157, 100},
                          field_magic = {257, 8}, field_prefix = {345, 155};

enum number { NUMBER_OK, NUMBER_NEGATIVE, NUMBER_BAD };

/* GNU's form for what octal digits cannot hold: 0x80 (or 0xff: negative), then big-endian bytes. */
static enum number number_base256(const unsigned char *at, size_t len, uint64_t *out)
{
    if (at[0] == 0xff)
        return NUMBER_NEGATIVE;
    if (at[0] != 0x80)
        return NUMBER_BAD;
    uint64_t v = 0;
    for (size_t i = 1; i < len; i++) {
        if (v >> 55 != 0)
            return NUMBER_BAD;
        v = v << 8 | at[i];
    }
    *out = v;
    return NUMBER_OK;
}

/* Octal digits, spaces before them, a space or NUL (or the field's end) behind; blank is zero. */
static enum number number_parse(const unsigned char *block, struct field f, uint64_t *out)
{
    const unsigned char *at = block + f.offset;
    if ((at[0] & 0x80) != 0)
        return number_base256(at, f.len, out);
    size_t i = 0;
    while (i < f.len && at[i] == ' ')
        i++;
    uint64_t v = 0;
    for (; i < f.len && at[i] >= '0' && at[i] <= '7'; i++)
        v = v << 3 | (uint64_t)(at[i] - '0');
    if (i < f.len && at[i] != ' ' && at[i] != '\0')
        return NUMBER_BAD;
    *out = v;
    return NUMBER_OK;
}

bool tar_header_is_zero(const unsigned char *block)
{
    static const unsigned char zeros[TAR_BLOCK];
    return memcmp(block, zeros, TAR_BLOCK) == 0;
}

/* The sum of all bytes, the checksum's own counted as spaces.  Some old programs added signed
 * characters; GNU tar takes both, so do we. */
static bool checksum_matches(const unsigned char *block, uint64_t stated)
{
    int32_t sum = 0;
    int32_t high = 0; /* bytes that are negative as signed characters */
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        sum += block[i];
        high += block[i] >> 7;
    }
    for (size_t i = field_checksum.offset; i < field_checksum.offset + field_checksum.len; i++) {
        sum += ' ' - block[i];
        high -= block[i] >> 7;
    }
    int32_t with_sign = sum - 256 * high;
    return stated == (uint64_t)sum || (with_sign >= 0 && stated == (uint64_t)with_sign);
}

static size_t text_copy(const unsigned char *block, struct field f, char *out)
{
    size_t len = strnlen((const char *)block + f.offset, f.len);
    memcpy(out, block + f.offset, len);
    out[len] = '\0';
    return len;
}

static void name_copy(const unsigned char *block, struct tar_header *h)
{
    h->name_len = 0;
    /* Only POSIX has a prefix; GNU keeps other things there, the Seventh Edition nothing. */
    bool posix = memcmp(block + field_magic.offset, "ustar\0", 6) == 0;
    if (posix && block[field_prefix.offset] != '\0') {
        h->name_len = text_copy(block, field_prefix, h->name);
        h->name[h->name_len++] = '/';
    }
    h->name_len += text_copy(block, field_name, h->name + h->name_len);
}

const char *tar_header_parse(const unsigned char *block, struct tar_header *h)
{
    uint64_t number;
    if (number_parse(block, field_checksum, &number) != NUMBER_OK ||
        !checksum_matches(block, number))
        return "its checksum is wrong";
    if (number_parse(block, field_mode, &number) == NUMBER_BAD)
        return "its mode is not a number";
    if (number_parse(block, field_uid, &number) == NUMBER_BAD)
        return "its owner is not a number";
    if (number_parse(block, field_gid, &number) == NUMBER_BAD)
        return "its group is not a number";
    if (number_parse(block, field_mtime, &number) == NUMBER_BAD)
        return "its time is not a number";
    if (number_parse(block, field_size, &h->size) != NUMBER_OK)
        return "its size is not a number";
    h->type = (char)block[field_type.offset];
    if (h->type == '\0')
        h->type = '0';
    name_copy(block, h);
    h->link_len = text_copy(block, field_link, h->link);
    return NULL;
}

static void put_octal(unsigned char *block, struct field f, uint64_t value)
{
    for (size_t i = f.len - 1; i-- > 0; value >>= 3)
        block[f.offset + i] = (unsigned char)('0' + (value & 7));
}

void tar_header_make(unsigned char *block, const struct tar_fields *f)
{
    memset(block, 0, TAR_BLOCK);
    memcpy(block + field_name.offset, f->name, f->name_len);
    if (f->link_len > 0)
        memcpy(block + field_link.offset, f->link, f->link_len);
    put_octal(block, field_mode, f->mode);
    put_octal(block, field_uid, 0);
    put_octal(block, field_gid, 0);
    put_octal(block, field_size, f->size);
    put_octal(block, field_mtime, f->mtime);
    block[field_type.offset] = (unsigned char)f->type;
    memcpy(block + field_magic.offset,
           "ustar\0"
           "00",
           field_magic.len);
    memset(block + field_checksum.offset, ' ', field_checksum.len);
    uint64_t sum = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += block[i];
    /* Six digits, NUL, space: the customary form. */
    put_octal(block, (struct field){field_checksum.offset, 7}, sum);
    block[field_checksum.offset + 6] = '\0';
}

void tar_header_make_pax(unsigned char *block, uint64_t size)
{
    static const char name[] = "PaxHeaders/global";
    const struct tar_fields f = {
        .name = name, .name_len = sizeof name - 1, .type = 'x', .mode = 0644, .size = size};
    tar_header_make(block, &f);
}

uint32_t tar_header_mode(const unsigned char *block)
{
    uint64_t mode = 0;
    return number_parse(block, field_mode, &mode) == NUMBER_OK ? (uint32_t)mode & 07777 : 0;
}

/* Two's complement, of which the low eight bytes are enough. */
int64_t tar_header_mtime(const unsigned char *block)
{
    uint64_t time = 0;
    if (number_parse(block, field_mtime, &time) != NUMBER_NEGATIVE)
        return (int64_t)time;
    for (size_t i = field_mtime.len - 8; i < field_mtime.len; i++)
        time = time << 8 | block[field_mtime.offset + i];
    return (int64_t)time;
}
