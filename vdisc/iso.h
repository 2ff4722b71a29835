/* ISO 9660: what its writer and its reader share.  Sources: ECMA-119 (4th edition), SUSP 1.12,
 * RRIP 1.12; Joliet is Microsoft's specification of 1995. */
#pragma once

#include <stdint.h>
#include <string.h>

#define ISO_BLOCK 2048u      /* bytes of a logical block, and of a sector */
#define ISO_SYSTEM_BLOCKS 16 /* before the first volume descriptor (ECMA-119 6.2.1) */
#define ISO_SECTION_MAX (UINT32_MAX - ISO_BLOCK + 1) /* bytes: whole blocks, below 4 GiB */
#define ISO_SECTIONS_LINUX 100                       /* Linux reads a file of no more sections */
#define ISO_RECORD_MAX 254  /* bytes of a directory record: even, and its length is one byte */
#define ISO_RECORD_FIXED 33 /* of them before the identifier (9.1) */
#define ISO_NAME_MAX 253    /* bytes of a name; Linux shows no longer ones */
#define ISO_LINK_MAX 4095   /* bytes of a symbolic link's target */

/* Flags of a directory record (9.1.6). */
#define ISO_FLAG_DIRECTORY 0x02
#define ISO_FLAG_MORE 0x80 /* another section of the same file follows */

enum iso_kind {
    ISO_FILE,
    ISO_DIRECTORY,
    ISO_LINK,
};

/* 7.2 and 7.3: little, big, and both. */
static inline void iso_put16(uint8_t *to, uint16_t value)
{
    to[0] = (uint8_t)value;
    to[1] = (uint8_t)(value >> 8);
}

static inline void iso_put16_big(uint8_t *to, uint16_t value)
{
    to[0] = (uint8_t)(value >> 8);
    to[1] = (uint8_t)value;
}

static inline void iso_put32(uint8_t *to, uint32_t value)
{
    iso_put16(to, (uint16_t)value);
    iso_put16(to + 2, (uint16_t)(value >> 16));
}

static inline void iso_put32_big(uint8_t *to, uint32_t value)
{
    iso_put16_big(to, (uint16_t)(value >> 16));
    iso_put16_big(to + 2, (uint16_t)value);
}

static inline void iso_put16_both(uint8_t *to, uint16_t value)
{
    iso_put16(to, value);
    iso_put16_big(to + 2, value);
}

static inline void iso_put32_both(uint8_t *to, uint32_t value)
{
    iso_put32(to, value);
    iso_put32_big(to + 4, value);
}

static inline uint32_t iso_get32(const uint8_t *from)
{
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}
