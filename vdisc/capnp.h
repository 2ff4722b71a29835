/* Cap'n Proto messages: as much of them as the table of an image needs.
 *
 * The writer makes one flat segment.  The reader takes what any encoder makes: several segments,
 * single and double far pointers, structs that are smaller or larger than expected.  It trusts
 * nothing: a pointer that leads outside is E_IMAGE_DAMAGED, and all that is visited together is at
 * most as much as the message has words, so that no message can make work without end.
 *
 * Source: https://capnproto.org/encoding.html (unpacked stream framing). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

/* --- writing ---------------------------------------------------------------------------------- */

struct capnp_writer {
    struct buf words; /* with the framing */
    bool too_large;   /* an offset or a count does not fit: nothing more is written */
};

/* A struct, or a list of structs, that was written; a place in the message, so that it stays right
 * while the message grows. */
struct capnp_place {
    uint64_t word;
    uint16_t data_words, pointers;
};

/* The root: `data` words and so many pointers, all zero. */
struct capnp_place capnp_begin(struct capnp_writer *w, uint16_t data, uint16_t pointers);
struct capnp_place capnp_put_struct(struct capnp_writer *w, const struct capnp_place *in,
                                    uint16_t pointer, uint16_t data, uint16_t pointers);
/* Room for `count` structs; the i-th is capnp_item(list, i). */
struct capnp_place capnp_put_list(struct capnp_writer *w, const struct capnp_place *in,
                                  uint16_t pointer, uint32_t count, uint16_t data,
                                  uint16_t pointers);
struct capnp_place capnp_item(const struct capnp_place *list, uint32_t i);
/* An empty text, too, is no pointer at all, as the reference writes it. */
void capnp_put_text(struct capnp_writer *w, const struct capnp_place *in, uint16_t pointer,
                    const char *text, size_t len);
void capnp_put_data(struct capnp_writer *w, const struct capnp_place *in, uint16_t pointer,
                    const void *bytes, size_t len);
void capnp_put_u16(struct capnp_writer *w, const struct capnp_place *in, unsigned byte,
                   uint16_t value);
void capnp_put_u32(struct capnp_writer *w, const struct capnp_place *in, unsigned byte,
                   uint32_t value);
/* The framing; E_IMAGE_TOO_LARGE. */
int capnp_end(struct capnp_writer *w, struct error *err);
void capnp_writer_done(struct capnp_writer *w);

/* --- reading ---------------------------------------------------------------------------------- */

#define CAPNP_SEGMENTS_MAX 512

struct capnp_reader {
    const uint8_t *segments[CAPNP_SEGMENTS_MAX];
    uint32_t words[CAPNP_SEGMENTS_MAX];
    uint32_t count;
    uint64_t left; /* words that may still be visited */
};

struct capnp_struct {
    const uint8_t *data;
    uint32_t data_bytes;
    uint32_t segment;
    uint64_t pointer_word; /* of the segment */
    uint32_t pointers;
};

struct capnp_list {
    struct capnp_struct first;
    uint32_t count;
    uint32_t step; /* words */
};

/* The message must outlive the reader. */
int capnp_open(struct capnp_reader *r, const void *message, size_t len, struct error *err);
int capnp_root(struct capnp_reader *r, struct capnp_struct *root, struct error *err);
/* 0 where the struct is too small to have it. */
uint16_t capnp_u16(const struct capnp_struct *s, unsigned byte);
uint32_t capnp_u32(const struct capnp_struct *s, unsigned byte);
/* A pointer that is null, or that the struct does not have, gives an empty struct, list, text. */
int capnp_get_struct(struct capnp_reader *r, const struct capnp_struct *in, uint32_t pointer,
                     struct capnp_struct *out, struct error *err);
int capnp_get_list(struct capnp_reader *r, const struct capnp_struct *in, uint32_t pointer,
                   struct capnp_list *out, struct error *err);
struct capnp_struct capnp_get_item(const struct capnp_list *list, uint32_t i);
/* Not copied; a text's last byte, a zero, does not count. */
int capnp_get_text(struct capnp_reader *r, const struct capnp_struct *in, uint32_t pointer,
                   const char **text, size_t *len, struct error *err);
int capnp_get_data(struct capnp_reader *r, const struct capnp_struct *in, uint32_t pointer,
                   const uint8_t **bytes, size_t *len, struct error *err);
