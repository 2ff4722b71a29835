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

struct scanning {
    const struct segment_scan *scan;
    char *piece; /* of PIECE bytes, for payloads */
    char *head;  /* of FRAME_HEAD_MAX */
    struct pending {
        struct frame f;
        uint64_t offset;
    } * pending; /* frames of a push whose end has not come */
    size_t count, room;
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

/* *good: a whole frame with this ordinal begins at `at`. */
static int read_frame(struct scanning *s, uint64_t at, uint64_t ordinal, struct frame *f,
                      bool *good, struct error *err)
{
    const struct segment_scan *scan = s->scan;
    const uint64_t left = scan->size - at;
    uint64_t sum;
    *good = false;
    if (left < FRAME_FIXED)
        return 0;
    int code = scan->read(scan->ctx, s->head, FRAME_FIXED, at, err);
    if (code != 0 || frame_peek(s->head, f, NULL) != 0 || f->total > left)
        return code;
    code = scan->read(scan->ctx, s->head, f->head_len, at, err);
    if (code != 0 || frame_check_head(s->head, f, NULL) != 0 || f->ordinal != ordinal)
        return code;
    *good = true;
    if (scan->payloads) {
        code = sum_payload(s, at + f->head_len, f->total - f->head_len, &sum, err);
        *good = code == 0 && sum == f->payload_sum;
    }
    return code;
}

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
        s->scan->frame(s->scan->ctx, &s->pending[i].f, s->pending[i].offset);
    s->count = 0;
}

int segment_scan(const struct segment_scan *scan, uint64_t *end, struct error *err)
{
    struct scanning s = {.scan = scan, .piece = xmalloc(PIECE), .head = xmalloc(FRAME_HEAD_MAX)};
    struct frame f;
    uint64_t ordinal = scan->first;
    bool good = true;
    int code = 0;
    *end = 0;
    for (uint64_t at = 0; good && code == 0; ordinal++) {
        code = read_frame(&s, at, ordinal, &f, &good, err);
        if (code != 0 || !good)
            break;
        keep(&s, &f, at);
        at += f.total;
        if ((f.flags & FRAME_ENDS) != 0) {
            tell(&s);
            *end = at;
        }
    }
    free(s.pending);
    free(s.head);
    free(s.piece);
    return code;
}
