/* The records of a sort that no memory holds: all that is known of record k follows from k.
 *
 * k is also the record's place in the order.  By names that is its number in them; in a shuffle it
 * is in the key, and the names are in another order.  A hash of k says in which input shard the
 * record is.  Shard i belongs to target i % targets. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "sort/rows/dict.h"
#include "sort/rows/orders.h"
#include "sort/rows/rows.h"

#define RULE_NAME 16                         /* bytes */
#define RULE_RECORDS_MAX (UINT64_C(1) << 33) /* their numbers fit into names */
#define RULE_SHARD_RECORDS 10000             /* of an input shard, about */
#define RULE_SHARD "train/shard-%08u.tar"    /* by its number */

struct rule {
    uint64_t records;
    unsigned targets;
    uint32_t shards_each; /* input shards of a target */
    bool shuffled;
};

struct rule_record {
    unsigned target;
    uint32_t local; /* the shard's number at that target */
    uint32_t position;
    uint64_t size;
};

struct rule_record rule_record(const struct rule *r, uint64_t k);
/* Without a shard's number.  `name` has RULE_NAME bytes. */
void rule_row(const struct rule *r, uint64_t k, const struct rule_record *record, char *name,
              struct sort_row *row);

/* The sorted table of some targets. */
struct rule_table {
    const struct rule *rule;
    const bool *has; /* by target; borrowed */
    struct dict *dict;
    uint32_t *numbers; /* in the dictionary, by shard */
    uint64_t next;
    char name[RULE_NAME];
};

struct rule_table *rule_table_new(const struct rule *r, const bool *has);
void rule_table_free(struct rule_table *t);
DEFINE_CLEANUP(struct rule_table, rule_table_free);
struct row_source rule_table_rows(struct rule_table *t);

/* What orders hold: sums, so that the order in which output shards are seen does not matter. */
struct rule_sums {
    uint64_t shards;
    uint64_t records;
    uint64_t bytes;
    uint64_t hash; /* of each shard's records in their order, and of its number */
};

void rule_sums_add(struct rule_sums *to, const struct rule_sums *from);
/* Of an order that begins here: names of output shards are "o-" and the shard's number. */
int rule_sums_read(struct rule_sums *s, struct decoder *d, unsigned targets, struct error *err);

/* One walk over all records: how many each target has, of how many bytes, and the sums of the
 * orders for output shards that end with the record that reaches `limit`. */
struct rule_counts {
    uint64_t *records; /* by target; the caller's */
    uint64_t *bytes;
    struct rule_sums sums;
};
void rule_count(const struct rule *r, uint64_t limit, struct rule_counts *out);
