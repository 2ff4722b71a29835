#include "sort/testing/relay.h"

#include "common/mem.h"

enum { RELAY_BYTES = 65536 };

static ssize_t relay_read(struct relay *r, void *out, size_t max, struct error *err)
{
    return r->records != NULL ? sort_records_read(r->records, out, max, err)
                              : bpipe_read(r->from, out, max, err);
}

/* How much may still go through, of `n` bytes after `done`. */
static size_t relay_allow(const struct relay *r, uint64_t done, size_t n)
{
    return done + n <= r->cut_at ? n : (size_t)(r->cut_at - done);
}

static int relay_copy(struct relay *r, struct error *err)
{
    _cleanup_free_ char *buffer = xmalloc(RELAY_BYTES);
    uint64_t done = 0;
    for (;;) {
        ssize_t n = relay_read(r, buffer, RELAY_BYTES, err);
        if (n <= 0)
            return (int)n;
        size_t allowed = relay_allow(r, done, (size_t)n);
        int rc = allowed > 0 ? bpipe_write(r->to, buffer, allowed, err) : 0;
        if (rc == 0 && allowed < (size_t)n)
            rc = error_set(err, E_NET, "the stream was cut");
        if (rc != 0)
            return rc;
        done += (uint64_t)n;
        unsigned long long longest = atomic_load(r->longest);
        while (done > longest && !atomic_compare_exchange_weak(r->longest, &longest, done))
            ;
    }
}

void relay_run(struct relay *r)
{
    relay_copy(r, &r->err);
    bpipe_finish(r->to, r->err.code != 0 ? &r->err : NULL);
    bpipe_unref(r->to);
    if (r->from != NULL) {
        if (r->err.code != 0)
            bpipe_cancel(r->from, &r->err);
        bpipe_unref(r->from);
    }
    sort_records_free(r->records);
}
