#include "tests/sim/scale_sort_rule.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define POSITIONS 16384 /* of an input shard */
#define BLOCKS 64       /* of the largest record */

/* The finaliser of splitmix64. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

/* --- records ---------------------------------------------------------------------------------- */

static unsigned target_of(const struct rule *r, uint64_t hash)
{
    return (unsigned)(((hash >> 32) * r->targets) >> 32);
}

static uint64_t hash_of(uint64_t k)
{
    return mix(k + 0x9e3779b97f4a7c15U);
}

struct rule_record rule_record(const struct rule *r, uint64_t k)
{
    uint64_t hash = hash_of(k);
    uint64_t other = hash * 0xd6e8feb86659fd93U;
    return (struct rule_record){
        .target = target_of(r, hash),
        .local = (uint32_t)(((hash & UINT32_MAX) * r->shards_each) >> 32),
        .position = (uint32_t)((other >> 40) % POSITIONS),
        .size = (1 + (other >> 58) % BLOCKS) * SORT_BLOCK,
    };
}

void rule_row(const struct rule *r, uint64_t k, const struct rule_record *record, char *name,
              struct sort_row *row)
{
    uint64_t number = r->shuffled ? k * 5700357409U % RULE_RECORDS_MAX : k;
    memcpy(name, "train/", 6);
    for (unsigned i = RULE_NAME; i-- > 6; number /= 10)
        name[i] = (char)('0' + number % 10);
    uint64_t step = UINT64_MAX / r->records;
    *row = (struct sort_row){
        .name = name,
        .name_len = RULE_NAME,
        .position = record->position,
        .size = record->size,
        .key = r->shuffled ? k * step + hash_of(k) % step : 0,
    };
}

/* --- tables ----------------------------------------------------------------------------------- */

struct rule_table *rule_table_new(const struct rule *r, const bool *has)
{
    struct rule_table *t = xcalloc(1, sizeof *t);
    uint32_t shards = r->shards_each * r->targets;
    *t = (struct rule_table){
        .rule = r, .has = has, .dict = dict_new(), .numbers = xcalloc(shards, sizeof *t->numbers)};
    for (uint32_t i = 0; i < shards; i++) {
        if (!has[i % r->targets])
            continue;
        _cleanup_free_ char *name = xprintf(RULE_SHARD, i);
        t->numbers[i] = dict_count(t->dict);
        dict_add(t->dict,
                 &(struct dict_entry){
                     .name = name, .place = i, .owner = i % r->targets, .local = i / r->targets});
    }
    return t;
}

void rule_table_free(struct rule_table *t)
{
    if (t == NULL)
        return;
    dict_free(t->dict);
    free(t->numbers);
    free(t);
}

static int table_next(void *ctx, struct sort_row *row, struct error *err)
{
    (void)err;
    struct rule_table *t = ctx;
    const struct rule *r = t->rule;
    while (t->next < r->records && !t->has[target_of(r, hash_of(t->next))])
        t->next++;
    if (t->next == r->records)
        return 0;
    const struct rule_record record = rule_record(r, t->next);
    rule_row(r, t->next, &record, t->name, row);
    row->shard = t->numbers[record.local * r->targets + record.target];
    t->next++;
    return 1;
}

struct row_source rule_table_rows(struct rule_table *t)
{
    return (struct row_source){.next = table_next, .ctx = t};
}

/* --- sums ------------------------------------------------------------------------------------- */

void rule_sums_add(struct rule_sums *to, const struct rule_sums *from)
{
    to->shards += from->shards;
    to->records += from->records;
    to->bytes += from->bytes;
    to->hash += from->hash;
}

static uint64_t hash_record(uint64_t hash, unsigned source, uint32_t shard, uint32_t position,
                            uint64_t size)
{
    uint64_t first = (uint64_t)source << 32 | shard;
    uint64_t second = (uint64_t)position << 32 | size / SORT_BLOCK;
    return mix(mix(hash ^ first) ^ second);
}

static uint64_t hash_begin(uint64_t shard)
{
    return mix(shard + 1);
}

int rule_sums_read(struct rule_sums *s, struct decoder *d, unsigned targets, struct error *err)
{
    struct order_shard shard = {.name = BUF_INIT};
    int rc = order_get_shard(d, &shard, err);
    uint64_t number = strtoull(buf_str(&shard.name) + strlen("o-"), NULL, 10);
    buf_done(&shard.name);
    if (rc != 0)
        return rc;
    uint64_t hash = hash_begin(number);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < shard.records; i++) {
        struct order_record r;
        rc = order_get_record(d, targets, &r, err);
        if (rc != 0)
            return rc;
        hash = hash_record(hash, r.source, r.shard, r.position, r.size);
        bytes += r.size;
    }
    const struct rule_sums one = {
        .shards = 1, .records = shard.records, .bytes = bytes, .hash = hash};
    rule_sums_add(s, &one);
    return 0;
}

void rule_count(const struct rule *r, uint64_t limit, struct rule_counts *out)
{
    struct rule_sums shard = {.shards = 1, .hash = hash_begin(0)};
    for (uint64_t k = 0; k < r->records; k++) {
        const struct rule_record record = rule_record(r, k);
        out->records[record.target]++;
        out->bytes[record.target] += record.size;
        shard.records++;
        shard.bytes += record.size;
        shard.hash =
            hash_record(shard.hash, record.target, record.local, record.position, record.size);
        if (shard.bytes < limit && k + 1 < r->records)
            continue;
        rule_sums_add(&out->sums, &shard);
        shard = (struct rule_sums){.shards = 1, .hash = hash_begin(out->sums.shards)};
    }
}
