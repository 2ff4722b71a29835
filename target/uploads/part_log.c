#include "target/uploads/part_log.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/checksum.h"
#include "common/mem.h"

/* Where the fields of a record begin. */
enum { SIDE = 4, SIZE = 8, UNIT = 16, TIME = 24, MD5 = 32, SUM = 48, SUM_TYPE = 80, CHECK = 8 };

_Static_assert((int)MD5 + (int)PART_MD5 + (int)CHECK == (int)PART_RECORD, "the check is the end");
_Static_assert((int)SUM + (int)S3_SUM_MAX == (int)SUM_TYPE, "the type follows the checksum");
_Static_assert((int)SUM_TYPE + 8 + (int)CHECK == (int)PART_RECORD_SUM, "the check is the end");

static void put_u64(unsigned char *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, sizeof value);
}

static uint64_t get_u64(const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

/* A record's bytes, and how many. */
static void check_of(const unsigned char *at, size_t record, struct checksum_value *out)
{
    _cleanup_(checksum_freep)
    struct checksum *c = checksum_new(CHECKSUM_XXH3);
    checksum_update(c, at, record - CHECK);
    checksum_final(c, out);
}

void part_record_put(const struct part *part, size_t record,
                     unsigned char out[static PART_RECORD_SUM])
{
    struct checksum_value check;
    put_u64(out, (uint64_t)part->side << 32 | part->number);
    put_u64(out + SIZE, part->size);
    put_u64(out + UNIT, part->unit);
    put_u64(out + TIME, part->time_ms);
    memcpy(out + MD5, part->md5, PART_MD5);
    if (record == PART_RECORD_SUM) {
        memset(out + SUM, 0, S3_SUM_MAX);
        memcpy(out + SUM, part->sum.bytes, s3_sum_size(part->sum.type));
        put_u64(out + SUM_TYPE, part->sum.type);
    }
    check_of(out, record, &check);
    memcpy(out + record - CHECK, check.bytes, CHECK);
}

static bool is_whole(const unsigned char *at, size_t record)
{
    struct checksum_value check;
    check_of(at, record, &check);
    return memcmp(check.bytes, at + record - CHECK, CHECK) == 0;
}

/* Never written, or not before a loss of power: nobody was told that this part is stored. */
static bool is_zero(const unsigned char *at, size_t record)
{
    static const unsigned char zeros[PART_RECORD_SUM];
    return memcmp(at, zeros, record) == 0;
}

/* How many records there are up to the last whole one.  E_CORRUPT: one before it is damaged. */
static int count_whole(const unsigned char *log, size_t len, size_t record, size_t *out,
                       struct error *err)
{
    size_t whole = len / record;
    while (whole > 0 && !is_whole(log + (whole - 1) * record, record))
        whole--;
    for (size_t i = 0; i < whole; i++) {
        const unsigned char *at = log + i * record;
        if (!is_whole(at, record) && !is_zero(at, record))
            return error_set(err, E_CORRUPT, "record %zu of the log of parts is damaged", i);
    }
    *out = whole;
    return 0;
}

/* False: a checksum that no upload writes. */
static bool take_sum(const unsigned char *at, struct s3_sum_value *out)
{
    static const unsigned char zeros[S3_SUM_MAX];
    uint64_t type = get_u64(at + SUM_TYPE);
    if (type >= S3_SUM_TYPES)
        return false;
    size_t size = s3_sum_size((enum s3_sum_type)type);
    *out = (struct s3_sum_value){.type = (enum s3_sum_type)type};
    memcpy(out->bytes, at + SUM, size);
    return memcmp(at + SUM + size, zeros, S3_SUM_MAX - size) == 0;
}

/* False: a record that no upload writes. */
static bool take(const unsigned char *at, size_t record, struct part_table *table)
{
    struct part p = {.side = (uint32_t)(get_u64(at) >> 32),
                     .number = (unsigned)(get_u64(at) & UINT32_MAX),
                     .size = get_u64(at + SIZE),
                     .unit = get_u64(at + UNIT),
                     .time_ms = get_u64(at + TIME)};
    memcpy(p.md5, at + MD5, PART_MD5);
    bool in_body = p.side == 0;
    p.has_sum = record == PART_RECORD_SUM;
    if (p.has_sum && !take_sum(at, &p.sum))
        return false;
    if (p.number == 0 || p.number > PARTS_MAX || p.size > PART_SIZE_MAX || p.unit > PART_SIZE_MAX ||
        in_body != (p.unit != 0) || (in_body && p.size > p.unit) ||
        (in_body && table->unit != 0 && table->unit != p.unit))
        return false;
    if (in_body)
        table->unit = p.unit;
    if (p.side > table->sides_used)
        table->sides_used = p.side;
    table->parts[p.number - 1] = p;
    return true;
}

/* The table had a place for each number; now it has the parts that there are. */
static void close_gaps(struct part_table *table)
{
    for (size_t i = 0; i < PARTS_MAX; i++)
        if (table->parts[i].number != 0)
            table->parts[table->count++] = table->parts[i];
}

int part_log_read(const void *log, size_t len, size_t record, struct part_table *out,
                  struct error *err)
{
    size_t whole = 0;
    *out = (struct part_table){.parts = NULL};
    int code = count_whole(log, len, record, &whole, err);
    if (code != 0)
        return code;
    out->parts = xcalloc(PARTS_MAX, sizeof *out->parts);
    out->log_bytes = whole * record;
    for (size_t i = 0; i < whole; i++) {
        const unsigned char *at = (const unsigned char *)log + i * record;
        if (!is_zero(at, record) && !take(at, record, out)) {
            part_table_clear(out);
            return error_set(err, E_CORRUPT, "record %zu of the log of parts is out of bounds", i);
        }
    }
    close_gaps(out);
    return 0;
}

uint32_t part_log_side(const void *log, size_t len, size_t record, unsigned number)
{
    for (size_t i = len / record; i > 0; i--) {
        uint64_t first = get_u64((const unsigned char *)log + (i - 1) * record);
        if ((first & UINT32_MAX) == number)
            return (uint32_t)(first >> 32);
    }
    return 0;
}

void part_table_clear(struct part_table *table)
{
    free(table->parts);
    *table = (struct part_table){.parts = NULL};
}

static int by_number(const void *number, const void *part)
{
    unsigned a = *(const unsigned *)number, b = ((const struct part *)part)->number;
    return (a > b) - (a < b);
}

const struct part *part_table_find(const struct part_table *table, unsigned number)
{
    return table->count == 0
               ? NULL
               : bsearch(&number, table->parts, table->count, sizeof *table->parts, by_number);
}
