/* Which client cleans, and which one dumps.  Both are right also where two clients do it; the lease
 * spares the work.  A lease is over at its time, or when its session is. */
#include <errno.h>

#include "mount/volume/txn.h"

enum { LEASE_SESSION = 0, LEASE_UNTIL = 8, LEASE_BYTES = 16 };

enum { OF_CLEANING, OF_DUMPS };

struct lease {
    uint64_t id, ms;
    bool held;
};

static int is_taken(struct txn *t, const struct meta_value *value, bool *taken)
{
    const struct meta_key key =
        meta_key_point(META_SESSION, (uint64_t)meta_field(value, LEASE_SESSION));
    struct meta_value session;
    *taken = value->found && key.id != t->v->session &&
             meta_field(value, LEASE_UNTIL) > t->now_ns / 1000000;
    if (!*taken)
        return 0;
    int rc = txn_get(t, &key, &session);
    *taken = session.found;
    return rc;
}

static int decide(struct txn *t, void *op)
{
    struct lease *l = op;
    const struct meta_key key = meta_key_point(META_LEASE, l->id);
    struct meta_value value;
    uint8_t bytes[LEASE_BYTES];
    bool taken = false;
    l->held = false;
    int rc = txn_get(t, &key, &value);
    if (rc == 0)
        rc = is_taken(t, &value, &taken);
    if (rc != 0 || taken)
        return rc;
    txn_expect(t, &key, &value);
    meta_field_put(bytes, LEASE_SESSION, (int64_t)t->v->session);
    meta_field_put(bytes, LEASE_UNTIL, t->now_ns / 1000000 + (int64_t)l->ms);
    txn_put(t, &key, bytes, sizeof bytes);
    l->held = true;
    return 0;
}

static int take(struct volume *v, uint64_t id, uint64_t ms, bool *held)
{
    struct lease l = {.id = id, .ms = ms};
    int rc = txn_run(v, decide, &l);
    *held = rc == 0 && l.held;
    return rc;
}

int volume_lease(struct volume *v, uint64_t ms, bool *held)
{
    return take(v, OF_CLEANING, ms, held);
}

int volume_dump_lease(struct volume *v, uint64_t ms, bool *held)
{
    return take(v, OF_DUMPS, ms, held);
}
