/* Any bytes either are refused with a sentence, or are a log: its parts ascend, are within the
 * limits, and read the same when they are written anew.  The bytes are also tried as records whose
 * checks are right. */
#include "target/uploads/part_log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/checksum.h"
#include "common/cleanup.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const struct part_table *table, size_t record)
{
    _cleanup_free_ unsigned char *log = xcalloc(table->count + 1, PART_RECORD_SUM);
    struct part_table again;
    for (size_t i = 0; i < table->count; i++)
        part_record_put(&table->parts[i], record, log + i * record);
    int code = part_log_read(log, table->count * record, record, &again, NULL);
    assert(code == 0 && again.count == table->count);
    for (size_t i = 0; i < again.count; i++)
        assert(memcmp(again.parts[i].md5, table->parts[i].md5, PART_MD5) == 0 &&
               again.parts[i].has_sum == (record == PART_RECORD_SUM) &&
               s3_sum_equal(&again.parts[i].sum, &table->parts[i].sum));
    part_table_clear(&again);
}

static void check_log(const void *log, size_t len, size_t record)
{
    struct part_table table;
    struct error err = ERROR_INIT;
    if (part_log_read(log, len, record, &table, &err) != 0) {
        assert(err.code == E_CORRUPT && err.message[0] != '\0' && table.parts == NULL);
        return;
    }
    assert(table.log_bytes <= len && table.log_bytes % record == 0);
    for (size_t i = 0; i < table.count; i++) {
        const struct part *p = &table.parts[i];
        assert(p->number >= 1 && p->number <= PARTS_MAX && p->size <= PART_SIZE_MAX);
        assert(i == 0 || p->number > p[-1].number);
        assert(part_table_find(&table, p->number) == p);
        assert(part_log_side(log, table.log_bytes, record, p->number) == p->side);
    }
    check_round_trip(&table, record);
    part_table_clear(&table);
}

static void set_check(unsigned char *at, size_t record)
{
    enum { CHECK = 8 };
    _cleanup_(checksum_freep)
    struct checksum *c = checksum_new(CHECKSUM_XXH3);
    struct checksum_value check;
    checksum_update(c, at, record - CHECK);
    checksum_final(c, &check);
    memcpy(at + record - CHECK, check.bytes, CHECK);
}

static void check_both(const uint8_t *data, size_t size, size_t record)
{
    _cleanup_free_ unsigned char *log = xcalloc(size + 1, 1);
    check_log(data, size, record);
    if (size > 0)
        memcpy(log, data, size);
    for (size_t at = 0; at + record <= size; at += record)
        set_check(log + at, record);
    check_log(log, size, record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_both(data, size, PART_RECORD);
    check_both(data, size, PART_RECORD_SUM);
    return 0;
}
