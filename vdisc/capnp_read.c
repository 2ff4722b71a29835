#include "vdisc/capnp.h"

#include <string.h>

#define WORD 8u
#define KIND_STRUCT 0u
#define KIND_LIST 1u
#define KIND_FAR 2u
#define SIZE_BYTE 2u
#define SIZE_COMPOSITE 7u

/* A pointer, with its far pointers followed: what it says, and where its content begins. */
struct target {
    uint64_t pointer; /* 0: null */
    uint32_t segment;
    int64_t word;
};

static int damaged(struct error *err, const char *what)
{
    return error_set(err, E_IMAGE_DAMAGED, "the table of the image is damaged: %s", what);
}

static uint64_t get_le(const uint8_t *from, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

int capnp_open(struct capnp_reader *r, const void *message, size_t len, struct error *err)
{
    const uint8_t *m = message;
    *r = (struct capnp_reader){.left = len / WORD};
    uint64_t count = len >= WORD ? get_le(m, 4) + 1 : 0;
    if (count == 0 || count > CAPNP_SEGMENTS_MAX)
        return damaged(err, "it begins as no table does; is this the NAME.vdsc of an image?");
    uint64_t at = (4 + 4 * count + WORD - 1) / WORD * WORD;
    for (uint32_t i = 0; i < count; i++) {
        if (4 + 4 * ((uint64_t)i + 1) > len)
            return damaged(err, "it is cut");
        r->words[i] = (uint32_t)get_le(m + 4 + 4 * (size_t)i, 4);
        r->segments[i] = m + at;
        at += (uint64_t)r->words[i] * WORD;
        if (at > len)
            return damaged(err, "it is cut");
    }
    r->count = (uint32_t)count;
    return at == len ? 0 : damaged(err, "bytes follow it");
}

/* Are these words of the segment? */
static bool inside(const struct capnp_reader *r, uint32_t segment, int64_t word, uint64_t count)
{
    return segment < r->count && word >= 0 && (uint64_t)word <= r->words[segment] &&
           count <= r->words[segment] - (uint64_t)word;
}

static int visit(struct capnp_reader *r, uint64_t words, struct error *err)
{
    if (words > r->left)
        return damaged(err, "its parts overlap");
    r->left -= words;
    return 0;
}

static uint64_t word_at(const struct capnp_reader *r, uint32_t segment, uint64_t word)
{
    return get_le(r->segments[segment] + word * WORD, WORD);
}

static int64_t offset_of(uint64_t pointer)
{
    return (int32_t)(uint32_t)pointer >> 2;
}

/* The landing pad of a far pointer: a pointer, or (double) a far pointer to the content and a tag
 * that says what it is. */
static int follow_far(const struct capnp_reader *r, struct target *t, struct error *err)
{
    const uint64_t far = t->pointer;
    const bool is_double = (far & 4) != 0;
    uint32_t segment = (uint32_t)(far >> 32);
    int64_t pad = (int64_t)((far & UINT32_MAX) >> 3);
    if (!inside(r, segment, pad, is_double ? 2 : 1))
        return damaged(err, "a far pointer leads outside");
    uint64_t first = word_at(r, segment, (uint64_t)pad);
    if (!is_double) {
        *t = (struct target){first, segment, pad + 1 + offset_of(first)};
        return (first & 3) == KIND_FAR ? damaged(err, "a far pointer leads to another") : 0;
    }
    if ((first & 7) != KIND_FAR)
        return damaged(err, "a double far pointer has no landing pad");
    *t = (struct target){word_at(r, segment, (uint64_t)pad + 1), (uint32_t)(first >> 32),
                         (int64_t)((first & UINT32_MAX) >> 3)};
    return 0;
}

static int resolve(const struct capnp_reader *r, const struct capnp_struct *in, uint32_t pointer,
                   struct target *t, struct error *err)
{
    *t = (struct target){0};
    if (pointer >= in->pointers)
        return 0;
    uint64_t word = in->pointer_word + pointer;
    t->pointer = word_at(r, in->segment, word);
    t->segment = in->segment;
    t->word = (int64_t)word + 1 + offset_of(t->pointer);
    return (t->pointer & 3) == KIND_FAR ? follow_far(r, t, err) : 0;
}

static int struct_at(struct capnp_reader *r, const struct target *t, struct capnp_struct *out,
                     struct error *err)
{
    uint32_t data = (uint32_t)(t->pointer >> 32) & 0xffff, pointers = (uint32_t)(t->pointer >> 48);
    *out = (struct capnp_struct){0};
    if (t->pointer == 0)
        return 0;
    if ((t->pointer & 3) != KIND_STRUCT)
        return damaged(err, "a pointer is to no struct where one is expected");
    if (!inside(r, t->segment, t->word, (uint64_t)data + pointers))
        return damaged(err, "a struct is outside");
    *out = (struct capnp_struct){.data = r->segments[t->segment] + t->word * WORD,
                                 .data_bytes = data * WORD,
                                 .segment = t->segment,
                                 .pointer_word = (uint64_t)t->word + data,
                                 .pointers = pointers};
    return visit(r, (uint64_t)data + pointers, err);
}

int capnp_root(struct capnp_reader *r, struct capnp_struct *root, struct error *err)
{
    const struct capnp_struct before = {.pointers = 1};
    if (r->words[0] == 0)
        return damaged(err, "it is empty");
    return capnp_get_struct(r, &before, 0, root, err);
}

uint16_t capnp_u16(const struct capnp_struct *s, unsigned byte)
{
    return byte + 2 <= s->data_bytes ? (uint16_t)get_le(s->data + byte, 2) : 0;
}

uint32_t capnp_u32(const struct capnp_struct *s, unsigned byte)
{
    return byte + 4 <= s->data_bytes ? (uint32_t)get_le(s->data + byte, 4) : 0;
}

int capnp_get_struct(struct capnp_reader *r, const struct capnp_struct *in, uint32_t pointer,
                     struct capnp_struct *out, struct error *err)
{
    struct target t;
    int rc = resolve(r, in, pointer, &t, err);
    return rc != 0 ? rc : struct_at(r, &t, out, err);
}

int capnp_get_list(struct capnp_reader *r, const struct capnp_struct *in, uint32_t pointer,
                   struct capnp_list *out, struct error *err)
{
    struct target t;
    *out = (struct capnp_list){0};
    int rc = resolve(r, in, pointer, &t, err);
    if (rc != 0 || t.pointer == 0)
        return rc;
    uint64_t words = t.pointer >> 35;
    if ((t.pointer & 3) != KIND_LIST || ((t.pointer >> 32) & 7) != SIZE_COMPOSITE)
        return damaged(err, "a pointer is to no list of structs where one is expected");
    if (!inside(r, t.segment, t.word, words + 1))
        return damaged(err, "a list is outside");
    uint64_t tag = word_at(r, t.segment, (uint64_t)t.word);
    uint32_t data = (uint32_t)(tag >> 32) & 0xffff, pointers = (uint32_t)(tag >> 48);
    out->count = (uint32_t)tag >> 2;
    out->step = data + pointers;
    if ((tag & 3) != KIND_STRUCT || (uint64_t)out->count * out->step > words)
        return damaged(err, "a list is longer than its words");
    out->first = (struct capnp_struct){.data = r->segments[t.segment] + (t.word + 1) * WORD,
                                       .data_bytes = data * WORD,
                                       .segment = t.segment,
                                       .pointer_word = (uint64_t)t.word + 1 + data,
                                       .pointers = pointers};
    /* Structs without any word count, too: a list of 2^29 of them is one word. */
    return visit(r, out->step > 0 ? words + 1 : (uint64_t)out->count + 1, err);
}

struct capnp_struct capnp_get_item(const struct capnp_list *list, uint32_t i)
{
    struct capnp_struct item = list->first;
    item.data += (size_t)i * list->step * WORD;
    item.pointer_word += (uint64_t)i * list->step;
    return item;
}

int capnp_get_data(struct capnp_reader *r, const struct capnp_struct *in, uint32_t pointer,
                   const uint8_t **bytes, size_t *len, struct error *err)
{
    struct target t;
    *bytes = (const uint8_t *)"";
    *len = 0;
    int rc = resolve(r, in, pointer, &t, err);
    if (rc != 0 || t.pointer == 0)
        return rc;
    uint64_t count = t.pointer >> 35, words = (count + WORD - 1) / WORD;
    if ((t.pointer & 3) != KIND_LIST || ((t.pointer >> 32) & 7) != SIZE_BYTE)
        return damaged(err, "a pointer is to no text where one is expected");
    if (!inside(r, t.segment, t.word, words))
        return damaged(err, "a text is outside");
    *bytes = r->segments[t.segment] + t.word * WORD;
    *len = count;
    return visit(r, words, err);
}

int capnp_get_text(struct capnp_reader *r, const struct capnp_struct *in, uint32_t pointer,
                   const char **text, size_t *len, struct error *err)
{
    const uint8_t *bytes;
    int rc = capnp_get_data(r, in, pointer, &bytes, len, err);
    *text = (const char *)bytes;
    if (rc != 0 || *len == 0)
        return rc;
    if (bytes[*len - 1] != 0)
        return damaged(err, "a text has no end");
    (*len)--;
    return 0;
}
