#include "plog/size.h"

#include <string.h>

#include "plog/merge.h"
#include "plog/session.h"

enum { TRIES = 32 }; /* of what another client can overtake */

/* By the names of all segments.  False: one has a cut, or a name is unknown. */
static bool add_up(const struct plog_names *segments, struct plog_size *out)
{
    struct plog_segment_name s;
    out->size = out->bytes = 0;
    for (size_t i = 0; i < segments->count; i++) {
        if (!plog_name_parse_segment(segments->items[i], &s) || s.cuts)
            return false;
        out->size = s.end > out->size ? s.end : out->size;
        out->bytes += s.bytes;
    }
    return true;
}

static int by_look(const struct plog_store *st, const char *object, struct plog_size *out,
                   struct error *err)
{
    _cleanup_plog_look_ struct plog_look l = {.map = NULL};
    const int code = plog_look(st, object, &l, err);
    if (code != 0)
        return code;
    *out = (struct plog_size){.head = l.head,
                              .size = plog_map_size(l.map),
                              .bytes = plog_map_bytes(l.map),
                              .records = l.records};
    memcpy(out->etag, l.etag, sizeof out->etag);
    return 0;
}

/* The head is read last, as by plog_look().  E_NOT_FOUND: another plog has the name now. */
static int size_once(const struct plog_store *st, const char *object, struct plog_size *out,
                     bool *is_known, struct error *err)
{
    _cleanup_plog_names_ struct plog_names records = {.count = 0}, segments = {.count = 0};
    char prefix[PLOG_NAME_MAX], id[PLOG_ID_CHARS + 1];
    memcpy(id, out->head.id, sizeof id);
    plog_name(prefix, id, "o/");
    int code = st->list(st->ctx, prefix, NULL, &records, err);
    plog_name(prefix, id, "s/");
    if (code == 0 && records.count > 0)
        code = st->list(st->ctx, prefix, NULL, &segments, err);
    if (code == 0)
        code = plog_head_read(st, object, &out->head, out->etag, err);
    if (code != 0)
        return code;
    if (strcmp(out->head.id, id) != 0)
        return error_set(err, E_NOT_FOUND, "'%s' was replaced", object);
    out->records = records.count;
    *is_known = records.count == 0 || add_up(&segments, out);
    if (records.count == 0) {
        out->size = out->head.size;
        out->bytes = out->head.bytes;
    }
    return 0;
}

int plog_size(const struct plog_store *st, const char *object, struct plog_size *out,
              struct error *err)
{
    bool is_known = false;
    int code = 0;
    *out = (struct plog_size){.size = 0};
    for (int i = 0; i < TRIES; i++) {
        code = plog_head_read(st, object, &out->head, out->etag, err);
        if (code != 0)
            return code;
        code = size_once(st, object, out, &is_known, err);
        if (code != E_NOT_FOUND)
            break;
    }
    return code == 0 && !is_known ? by_look(st, object, out, err) : code;
}
