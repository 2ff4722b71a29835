#include "target/node/quota_ledger.h"

struct quota_amount quota_own(const struct quota_ledger *l)
{
    return quota_plus(quota_plus(l->own, l->open), quota_plus(l->ended_before, l->ended_since));
}

struct quota_amount quota_used(const struct quota_ledger *l)
{
    return quota_plus(quota_own(l), l->others);
}

void quota_open(struct quota_ledger *l, struct quota_amount growth)
{
    l->open = quota_plus(l->open, growth);
}

void quota_end(struct quota_ledger *l, struct quota_amount growth)
{
    l->open = quota_minus(l->open, growth);
    l->ended_since = quota_plus(l->ended_since, growth);
}

void quota_count_begins(struct quota_ledger *l)
{
    l->ended_before = quota_plus(l->ended_before, l->ended_since);
    l->ended_since = (struct quota_amount){0};
}

void quota_count_ends(struct quota_ledger *l, struct quota_amount own)
{
    l->counted = true;
    l->own = own;
    l->ended_before = (struct quota_amount){0};
}

void quota_hear(struct quota_ledger *l, struct quota_amount others, struct quota_amount yours)
{
    l->others = others;
    if (!l->counted)
        l->own = yours;
}
