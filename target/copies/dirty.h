/* Names whose last write is not known to be on all their owners: where this target got a write from
 * another one, or is about to make a write seen that others may lack.  In memory; a new run counts
 * as one that has forgotten them (LAG_RESTARTED, cluster/placement/owners.h).
 *
 *   mark(v)     the name has version v here, perhaps here alone
 *   settle(v)   all owners have v, or more
 *
 * While a name is marked its acting owner answers nothing from what it has alone (copies.h), and
 * the marks are worked off (dirty_worker.h).  Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/checksum.h"
#include "common/cleanup.h"
#include "target/format/version.h"

struct dirty;

struct dirty *dirty_new(void);
void dirty_free(struct dirty *u); /* NULL is fine */
DEFINE_CLEANUP(struct dirty, dirty_free);

/* Of several marks of a name the greatest version stays, and the first time. */
void dirty_mark(struct dirty *u, uint64_t bucket_id, const char *name, const struct version *v,
                uint64_t now_ms);
bool dirty_has(struct dirty *u, uint64_t bucket_id, const char *name);
/* Up to which version is it marked?  Unmarked: none (the least), and false. */
bool dirty_upto(struct dirty *u, uint64_t bucket_id, const char *name, struct version *out);
/* Unless it was marked with a greater one since. */
void dirty_clear(struct dirty *u, uint64_t bucket_id, const char *name, const struct version *v);
size_t dirty_count(struct dirty *u);

struct dirty_name {
    uint64_t bucket_id;
    struct version version;
    /* 0, or dirty_ask() asks for this version with at least this rank (attr_rank.h), … */
    uint64_t rank;
    /* … and of this content, or of that which stays (plan.h). */
    bool has_content;
    uint64_t size;
    struct checksum_value checksum;
    char *name; /* the caller's to free */
};
/* At most `most` of those that were marked, or given by this, up to before_ms. */
size_t dirty_due(struct dirty *u, uint64_t before_ms, uint64_t now_ms, struct dirty_name *out,
                 size_t most);
