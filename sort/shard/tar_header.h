/* One 512-byte header block of a tar: ustar (POSIX.1-1988), GNU, and the Seventh Edition's form.
 * Pure; everything in the block is checked before it is believed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK 512

struct tar_header {
    char type;     /* '0' for the old NUL */
    uint64_t size; /* as the field says */
    size_t name_len;
    char name[257]; /* prefix/name, NUL-terminated */
    size_t link_len;
    char link[101];
};

bool tar_header_is_zero(const unsigned char *block);
/* NULL, or what is wrong, as the end of a sentence: "its checksum is wrong". */
const char *tar_header_parse(const unsigned char *block, struct tar_header *h);
/* What tar_header_parse() leaves aside, of a header that it has found right: permissions, and the
 * time in seconds, which may be before 1970. */
uint32_t tar_header_mode(const unsigned char *block);
int64_t tar_header_mtime(const unsigned char *block);

/* A ustar header, whose owner is 0:0 without names. */
struct tar_fields {
    const char *name; /* at most 100 bytes */
    size_t name_len;
    const char *link; /* at most 100 bytes */
    size_t link_len;
    char type;
    uint32_t mode;
    uint64_t size;  /* eleven octal digits */
    uint64_t mtime; /* the same */
};
void tar_header_make(unsigned char *block, const struct tar_fields *f);
/* The header of an extended header (type 'x') with `size` bytes of records: always the same bytes
 * for the same size (name "PaxHeaders/global", mode 0644, everything else zero). */
void tar_header_make_pax(unsigned char *block, uint64_t size);

/* A file in a tar occupies whole blocks. */
static inline uint64_t tar_padded(uint64_t size)
{
    return (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}
