/* A target's lease: for so long it need not ask anybody whether the map passes it over, and answers
 * a read from what it has.  The reply to a keepalive grants it.
 *
 *     target   |sent ---------------- lease_ms ---------------->| here it ends
 *     primary        |heard ------------- timeout_ms -------------------->| here it may be given up
 *
 * Why nobody whom a committed map calls unreachable holds one:
 *
 *   - It counts from when the keepalive was sent, by the target's clock since its boot; the
 *     primary's timeout from when it was heard, which is not earlier.  It is a quarter shorter than
 *     the timeout: so far may the rates of two clocks be apart.  A pause of the target only lets it
 *     end.
 *   - A verdict takes time until it is durable.  From the moment at which it is given out until the
 *     map shows it, or it is known that it never will, nothing is granted (membership_lease_ms()).
 *   - Only a primary grants it that is still elected when it answers.  The next one begins later,
 * and gives up nobody for a timeout from then on; the verdicts of the one before it are fenced.
 *   - Who comes back after that takes one only with the state that says so, or a later one: with
 * the state before it would count itself among those that have missed nothing.
 *   - Another run of a target does not have the lease of the one before: memory.
 *
 * Other changes of owners (a join, a weight, maintenance) do not wait for leases: there the acting
 * owner by the new map compares, and so asks those by the old one, who thereby learn of it
 * (cluster/placement/owners.h: owners_asked()).  Who ends a primary's lease in etcd by hand, or
 * starts a second primary from a copy of its directory, ends these promises with it.
 *
 * Pure; one struct for all threads. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lease {
    _Atomic uint64_t until_ms;
};

/* What a primary grants that gives up who is silent for longer than timeout_ms. */
static inline uint64_t lease_for(uint64_t timeout_ms)
{
    return timeout_ms - timeout_ms / 4;
}

/* The reply to the keepalive that was sent at sent_ms.  It never ends one that was granted. */
static inline void lease_grant(struct lease *l, uint64_t sent_ms, uint64_t lease_ms)
{
    uint64_t until = lease_ms > 0 ? sent_ms + lease_ms : 0;
    uint64_t now = atomic_load(&l->until_ms);
    while (until > now && !atomic_compare_exchange_weak(&l->until_ms, &now, until))
        ;
}

static inline bool lease_holds(const struct lease *l, uint64_t now_ms)
{
    return now_ms < atomic_load(&l->until_ms);
}
