#include "ring/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/parse.h"

enum { PIECE = 1 << 20, DIGITS = 16 };

void segment_name(uint64_t first, char out[static SEGMENT_NAME_MAX])
{
    snprintf(out, SEGMENT_NAME_MAX, "%016llx.seg", (unsigned long long)first);
}

bool segment_name_parse(const char *name, uint64_t *first)
{
    unsigned char bytes[DIGITS / 2];
    char digits[DIGITS + 1];
    if (strlen(name) != DIGITS + strlen(".seg") || strcmp(name + DIGITS, ".seg") != 0)
        return false;
    snprintf(digits, sizeof digits, "%.*s", DIGITS, name);
    if (parse_hex(digits, bytes, sizeof bytes, NULL) != 0)
        return false;
    *first = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        *first = *first << 8 | bytes[i];
    return true;
}

enum { FRAME_LEAST = 2 * FRAME_ALIGN, CANDIDATES_TIMES = 4 };

struct scanning {
    const struct segment_scan *scan;
    char *piece;     /* of PIECE bytes */
    char *head;      /* of FRAME_HEAD_MAX */
    uint64_t budget; /* bytes of heads that may still be looked at in the search for a frame */
    bool is_broken;  /* the push that is read has lost a frame, or may have */
    struct pending {
        struct frame f;
        uint64_t offset;
        bool is_of_whole;     /* no frame of its push was lost */
    } * pending;              /* frames that count if a whole push follows */
    size_t count, room, push; /* `push`: where the push that is read begins */
};

enum found {
    FOUND_NOTHING,
    FOUND_LENGTH, /* its length may be right; its head is damaged */
    FOUND_HEAD,   /* its head is good; its payload is damaged */
    FOUND_FRAME,
};

static int sum_payload(struct scanning *s, uint64_t at, uint64_t left, uint64_t *sum,
                       struct error *err)
{
    XXH3_state_t *state = XXH3_createState();
    int code = 0;
    XXH3_64bits_reset(state);
    while (left > 0 && code == 0) {
        const size_t len = left < PIECE ? (size_t)left : PIECE;
        code = s->scan->read(s->scan->ctx, s->piece, len, at, err);
        if (code == 0)
            XXH3_64bits_update(state, s->piece, len);
        at += len;
        left -= len;
    }
    *sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return code;
}

/* What begins at `at`. */
static int read_frame(struct scanning *s, uint64_t at, struct frame *f, enum found *found,
                      struct error *err)
{
    const struct segment_scan *scan = s->scan;
    const uint64_t left = scan->size - at;
    uint64_t sum;
    *found = FOUND_NOTHING;
    if (left < FRAME_FIXED)
        return 0;
    int code = scan->read(scan->ctx, s->head, FRAME_FIXED, at, err);
    if (code != 0 || frame_peek(s->head, f, NULL) != 0 || f->total > left)
        return code;
    *found = FOUND_LENGTH;
    code = scan->read(scan->ctx, s->head, f->head_len, at, err);
    if (code != 0 || frame_check_head(s->head, f, NULL) != 0)
        return code;
    *found = FOUND_FRAME;
    if (scan->payloads) {
        code = sum_payload(s, at + f->head_len, f->total - f->head_len, &sum, err);
        *found = code == 0 && sum == f->payload_sum ? FOUND_FRAME : FOUND_HEAD;
    }
    return code;
}

/* --- behind damage ---------------------------------------------------------------------------- */

/* May a frame that begins at `at` follow damage that began at `from`, where `ordinal` should be?
 * The bytes of a sample may look like frames: their ordinals hardly ever fit. */
static bool may_follow(struct scanning *s, uint64_t from, uint64_t ordinal, uint64_t at,
                       const char *bytes)
{
    struct frame f;
    if (frame_peek(bytes, &f, NULL) != 0 || f.total > s->scan->size - at || f.ordinal <= ordinal ||
        f.ordinal - ordinal > (at - from) / FRAME_LEAST || f.head_len > s->budget)
        return false;
    s->budget -= f.head_len;
    return true;
}

/* The first good head of those that begin in s->piece, whose bytes are from `base` on; else
 * *found is less than FOUND_HEAD.  The piece is as it was, until one is found. */
static int look_in_piece(struct scanning *s, uint64_t base, size_t len, uint64_t from,
                         uint64_t ordinal, struct frame *f, uint64_t *at, enum found *found,
                         struct error *err)
{
    int code = 0;
    *found = FOUND_NOTHING;
    for (size_t in = 0; in < len && code == 0 && *found < FOUND_HEAD; in += FRAME_ALIGN) {
        *at = base + in;
        if (may_follow(s, from, ordinal, *at, s->piece + in))
            code = read_frame(s, *at, f, found, err);
    }
    return code;
}

/* *at and *ordinal become those of the next good head; there is none: *at is the size. */
static int find_frame(struct scanning *s, uint64_t *at, uint64_t *ordinal, struct error *err)
{
    const uint64_t from = *at, size = s->scan->size;
    struct frame f;
    enum found found;
    size_t len;
    for (uint64_t base = from + FRAME_ALIGN; base + FRAME_FIXED <= size; base += len) {
        const uint64_t left = size - base;
        len = left < PIECE ? (size_t)(left - left % FRAME_ALIGN) : PIECE;
        int code = s->scan->read(s->scan->ctx, s->piece, len, base, err);
        if (code == 0)
            code = look_in_piece(s, base, len, from, *ordinal, &f, at, &found, err);
        if (code == 0 && found >= FOUND_HEAD)
            *ordinal = f.ordinal;
        if (code != 0 || found >= FOUND_HEAD)
            return code;
    }
    *at = size;
    return 0;
}

/* --- pushes ----------------------------------------------------------------------------------- */

static void keep(struct scanning *s, const struct frame *f, uint64_t offset)
{
    if (s->count == s->room) {
        s->room = s->room > 0 ? 2 * s->room : 64;
        s->pending = xrealloc(s->pending, s->room * sizeof *s->pending);
    }
    s->pending[s->count++] = (struct pending){.f = *f, .offset = offset};
}

static void tell(struct scanning *s)
{
    for (size_t i = 0; i < s->count; i++)
        s->scan->frame(s->scan->ctx, &s->pending[i].f, s->pending[i].offset,
                       s->pending[i].is_of_whole);
    s->count = s->push = 0;
}

/* The last frame of a push.  True: it is whole, and so all before it count. */
static bool end_push(struct scanning *s)
{
    const bool is_whole = !s->is_broken;
    for (size_t i = s->push; i < s->count; i++)
        s->pending[i].is_of_whole = is_whole;
    s->push = s->count;
    s->is_broken = false;
    if (is_whole)
        tell(s);
    return is_whole;
}

/* Damage begins at *at: *at and *ordinal become those of the next good head.  `f`: what the damaged
 * head says, if it is of use.  Where another frame follows at the place that it tells, it is
 * believed to say whether its push ended with it, too. */
static int pass_damage(struct scanning *s, const struct frame *f, uint64_t *at, uint64_t *ordinal,
                       struct error *err)
{
    const uint64_t from = *at, damaged = *ordinal;
    int code = find_frame(s, at, ordinal, err);
    const bool is_believed = f != NULL && f->ordinal == damaged && from + f->total == *at;
    s->is_broken = true;
    if (code == 0 && is_believed && (f->flags & FRAME_ENDS) != 0)
        (void)end_push(s);
    return code;
}

/* One frame, or the damage in its place; *at and *ordinal are behind it. */
static int scan_one(struct scanning *s, uint64_t *at, uint64_t *ordinal, uint64_t *end,
                    struct error *err)
{
    struct frame f;
    enum found found;
    const uint64_t offset = *at;
    int code = read_frame(s, offset, &f, &found, err);
    if (code != 0)
        return code;
    if (found < FOUND_HEAD || f.ordinal != *ordinal)
        return pass_damage(s, found == FOUND_LENGTH ? &f : NULL, at, ordinal, err);
    s->is_broken = s->is_broken || found == FOUND_HEAD;
    if (found == FOUND_FRAME)
        keep(s, &f, offset);
    *at = offset + f.total;
    ++*ordinal;
    if ((f.flags & FRAME_ENDS) != 0 && end_push(s))
        *end = *at;
    return 0;
}

int segment_scan(const struct segment_scan *scan, uint64_t *end, struct error *err)
{
    struct scanning s = {.scan = scan,
                         .piece = xmalloc(PIECE),
                         .head = xmalloc(FRAME_HEAD_MAX),
                         .budget = CANDIDATES_TIMES * scan->size};
    uint64_t ordinal = scan->first;
    int code = 0;
    *end = 0;
    for (uint64_t at = 0; at < scan->size && code == 0;)
        code = scan_one(&s, &at, &ordinal, end, err);
    if (code == 0 && scan->is_followed)
        tell(&s);
    free(s.pending);
    free(s.head);
    free(s.piece);
    return code;
}
