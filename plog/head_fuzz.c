/* A text that is a head is printed as a text that is the same head. */
#include "plog/head.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "common/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct plog_head *a, const struct plog_head *b)
{
    return strcmp(a->id, b->id) == 0 && a->mode == b->mode && a->uid == b->uid &&
           a->gid == b->gid && a->created_ms == b->created_ms && a->mtime_ms == b->mtime_ms &&
           a->epoch == b->epoch && a->size == b->size && a->bytes == b->bytes &&
           a->merged == b->merged && a->nonce == b->nonce;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    struct plog_head h, again;
    if (plog_head_parse((const char *)data, size, &h, NULL) != 0)
        return 0;
    plog_head_print(&h, &text);
    assert(plog_head_parse(text.data, text.len, &again, NULL) == 0);
    assert(same(&h, &again));
    return 0;
}
