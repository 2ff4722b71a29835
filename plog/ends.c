#include "plog/ends.h"

#include <string.h>

enum { GUESS = 64 << 10 }; /* bytes of an end, most of which need one call */

void plog_end_done(struct plog_end *end)
{
    buf_done(&end->bytes);
}

static int read_tail(plog_tail_fn *tail, void *ctx, const char *segment, uint64_t len,
                     struct plog_end *end, struct error *err)
{
    buf_clear(&end->bytes);
    const int code = tail(ctx, segment, len, &end->bytes, err);
    if (code != 0)
        return code;
    if (end->bytes.len < PLOG_FOOTER)
        return error_set(err, E_CORRUPT, "it is too short for a segment");
    const char *footer = end->bytes.data + end->bytes.len - PLOG_FOOTER;
    return plog_footer_parse((const uint8_t *)footer, &end->footer, err);
}

static uint64_t size_of(const struct plog_end *end)
{
    return (uint64_t)end->footer.index_bytes + PLOG_FOOTER;
}

/* The footer is read anew: a segment never changes, so it must say the same. */
static int read_rest(plog_tail_fn *tail, void *ctx, const char *segment, struct plog_end *end,
                     struct error *err)
{
    const struct plog_footer first = end->footer;
    const int code = read_tail(tail, ctx, segment, size_of(end), end, err);
    if (code != 0)
        return code;
    if (end->footer.index_bytes != first.index_bytes || end->footer.records != first.records)
        return error_set(err, E_CORRUPT, "its footer has changed while it was read");
    return end->bytes.len < size_of(end) ? error_set(err, E_CORRUPT, "its index is cut short") : 0;
}

int plog_end_read(plog_tail_fn *tail, plog_admit_fn *admit, void *ctx, const char *segment,
                  struct plog_end *end, struct error *err)
{
    *end = (struct plog_end){.bytes = BUF_INIT};
    int code = read_tail(tail, ctx, segment, GUESS, end, err);
    if (code == 0 && admit != NULL)
        code = admit(ctx, &end->footer, err);
    if (code == 0 && end->bytes.len < size_of(end))
        code = read_rest(tail, ctx, segment, end, err);
    if (code != 0)
        error_wrap(err, "segment '%s'", segment);
    return code;
}

int plog_end_add(const struct plog_end *end, const char *segment, struct plog_map *map,
                 struct error *err)
{
    const struct plog_segment_name *own = &end->footer.name;
    struct plog_segment_name s;
    if (!plog_name_parse_segment(segment, &s) || s.writer != own->writer || s.epoch != own->epoch ||
        s.n != own->n)
        return error_set(err, E_CORRUPT, "segment '%s' has another one's footer", segment);
    const char *index = end->bytes.data + end->bytes.len - PLOG_FOOTER - end->footer.index_bytes;
    const int code = plog_map_add(map, &end->footer, (const uint8_t *)index, err);
    if (code != 0)
        error_wrap(err, "segment '%s'", segment);
    return code;
}
