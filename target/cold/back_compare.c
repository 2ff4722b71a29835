#include "target/cold/back_compare.h"

#include <string.h>

#include "common/mem.h"
#include "hrw/hrw.h"
#include "target/cold/back_after.h"
#include "target/cold/internal.h"

static int read_sum(struct cold *c, struct bpipe *pipe, enum checksum_type type,
                    struct checksum_value *out, struct error *err)
{
    _cleanup_free_ char *piece = xmalloc(COLD_PIECE_BYTES);
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(type);
    ssize_t n = 0;
    while (!cold_is_stopping(c) && (n = bpipe_read(pipe, piece, COLD_PIECE_BYTES, err)) > 0)
        checksum_update(sum, piece, (size_t)n);
    if (n > 0 || cold_is_stopping(c))
        return error_set(err, E_NOT_READY, "the target is stopping");
    if (n < 0)
        return (int)n;
    checksum_final(sum, out);
    return 0;
}

static int read_backend(struct cold *c, const char *backend, const struct back_after *after,
                        const struct backend_facts *facts, bool *same, struct error *err)
{
    struct backend_facts of_these;
    struct bpipe *pipe;
    struct checksum_value sum;
    const struct backend_ask ask = {.method = HTTP_GET,
                                    .name = after->name,
                                    .if_match =
                                        backend_etag_is_strong(facts->etag) ? facts->etag : NULL};
    int code = exchange_begin(&c->env, backend, &ask, COLD_PIPE_BYTES, &of_these, &pipe, err);
    if (code != 0)
        return code;
    code = read_sum(c, pipe, after->sum.type, &sum, err);
    if (code != 0)
        bpipe_cancel(pipe, err);
    bpipe_unref(pipe);
    *same = code == 0 && checksum_equal(&sum, &after->sum);
    return code;
}

static uint64_t memo_of(const struct backend_facts *facts)
{
    return hrw_key((uint64_t)facts->modified_s, facts->etag, strlen(facts->etag));
}

int back_compare(struct cold *c, const char *backend, const struct back_after *after,
                 uint64_t *memo, struct error *err)
{
    bool there = false, same = false;
    struct backend_facts facts;
    int code = cold_ask_head_of(c, backend, after->name, &there, &facts, err);
    if (code != 0)
        return code;
    if (!there)
        return error_set(err, E_NOT_READY,
                         "renamed to '%s', of which neither its target nor the backend has "
                         "anything: the backend keeps the old name",
                         after->name);
    bool may_be = facts.size >= 0 && (uint64_t)facts.size == after->size &&
                  after->sum.type != CHECKSUM_NONE && *memo != memo_of(&facts);
    if (may_be)
        code = read_backend(c, backend, after, &facts, &same, err);
    if (code != 0 || same)
        return code;
    *memo = memo_of(&facts);
    return error_set(err, E_NOT_READY,
                     "renamed to '%s', under which the backend has something else, and its target "
                     "nothing that it sent there: the backend keeps the old name",
                     after->name);
}
