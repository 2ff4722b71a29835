#include "api/ctl/cmd/ring_read.h"

#include <string.h>

#include "api/ctl/interrupt.h"
#include "api/dfc_ring.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { READ_BYTES = 32 << 20 }; /* at once, but at least a sample */

int ring_fail(const struct ctl *ctl, const struct dfc_error *err, const char *verb,
              const char *ring)
{
    _cleanup_free_ char *what = xprintf("%s ring '%s'", verb, ring);
    return ctl_fail(ctl, err, what);
}

int ring_ask(struct ctl *ctl, const char *ring, json_t **doc, struct ring_head *head)
{
    struct dfc_error err;
    struct error e = ERROR_INIT;
    _cleanup_free_ char *text = NULL, *inner = NULL;
    if (dfc_ring_status(ctl->client, ring, &text, &err) != DFC_OK)
        return ring_fail(ctl, &err, "ask for", ring);
    int code = ctl_parse(ctl, text, doc);
    if (code != EXIT_OK)
        return code;
    inner = json_text(json_object_get(*doc, "head"));
    if (inner != NULL && ring_head_parse(inner, strlen(inner), head, &e) == 0)
        return EXIT_OK;
    return ctl_fail_common(ctl, &e, EXIT_FAILED);
}

/* One reply: samples one behind the other.  *count: how many there were. */
static int take_frames(const struct ring_walk *w, uint64_t index, const char *bytes, size_t size,
                       uint64_t *count)
{
    int code = EXIT_OK;
    *count = 0;
    for (size_t at = 0; at < size && code == EXIT_OK; ++*count) {
        struct frame f;
        struct error e = ERROR_INIT;
        uint64_t one;
        if (size - at < FRAME_FIXED || frame_peek(bytes + at, &f, &e) != 0 || f.total > size - at) {
            error_set(&e, E_FRAME, "the reply of ring '%s' has bytes that are no sample", w->ring);
            return ctl_fail_common(w->ctl, &e, EXIT_FAILED);
        }
        if (frame_check_push(bytes + at, f.total, &one, &e) == 0)
            code = w->sample(w->ctx, index + *count, bytes + at, &f);
        else
            code = w->lost(w->ctx, index + *count, 1, e.message);
        at += f.total;
    }
    return code;
}

static int walk_cut(const struct ring_walk *w, const struct ring_cut *c, uint64_t index)
{
    uint64_t at = c->from, many = 1;
    int code = EXIT_OK;
    while (at < c->to && code == EXIT_OK) {
        struct dfc_error err;
        _cleanup_free_ void *bytes = NULL;
        size_t size = 0;
        uint64_t count = 0, lost = 0;
        const uint64_t wanted = c->to - at < many ? c->to - at : many;
        if (interrupted())
            return EXIT_INTERRUPTED;
        if (dfc_ring_read_kept(w->ctl->client, w->ring, c->lane, at, wanted, &bytes, &size, &lost,
                               &err) != DFC_OK)
            return ring_fail(w->ctl, &err, "read", w->ring);
        count = lost < c->to - at ? lost : c->to - at;
        if (lost > 0)
            code = w->lost(w->ctx, index + at - c->from, count, "lost with a disk or target");
        else
            code = take_frames(w, index + at - c->from, bytes, size, &count);
        if (code == EXIT_OK && count == 0)
            return ctl_fail_common(
                w->ctl, &(struct error){.code = E_FRAME, .message = "a reply has no sample"},
                EXIT_FAILED);
        at += count;
        if (lost == 0 && size / count > 0)
            many = READ_BYTES / (size / count) > 0 ? READ_BYTES / (size / count) : 1;
    }
    return code;
}

int ring_walk(const struct ring_walk *w, const struct ring_generation *g)
{
    uint64_t index = 0;
    int code = EXIT_OK;
    for (size_t i = 0; i < g->count && code == EXIT_OK; i++) {
        code = walk_cut(w, &g->cuts[i], index);
        index += g->cuts[i].to - g->cuts[i].from;
    }
    return code;
}
