#include "target/uploads/part_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MIB = 1 << 20, LOG_MAX = 8 };

struct log {
    unsigned char bytes[(LOG_MAX + 1) * PART_RECORD_SUM];
    size_t len;
};

static void append(struct log *log, struct part part)
{
    part_record_put(&part, PART_RECORD, log->bytes + log->len);
    log->len += PART_RECORD;
}

static struct part in_body(unsigned number, uint64_t size)
{
    return (struct part){.number = number,
                         .size = size,
                         .unit = 8 * MIB,
                         .time_ms = 7,
                         .md5 = {(unsigned char)number}};
}

static struct part in_side(unsigned number, uint32_t side)
{
    return (struct part){.number = number, .side = side, .size = 9, .time_ms = 8};
}

static void a_record_keeps_its_form(void **unused)
{
    (void)unused;
    static const unsigned char example[] = {/* of the disk format */
                                            1,   2, 0, 0, 4, 3, 2, 1, 5, 0, 0, 0, 0, 0, 0, 0,
                                            0,   0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0,
                                            255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 254};
    struct part part = {.number = 513, .side = 0x01020304, .size = 5, .time_ms = 6};
    unsigned char record[PART_RECORD_SUM];
    part.md5[0] = 255;
    part.md5[PART_MD5 - 1] = 254;
    part_record_put(&part, PART_RECORD, record);
    assert_memory_equal(record, example, sizeof example);
}

static void parts_are_in_order_and_the_last_record_counts(void **unused)
{
    (void)unused;
    struct log log = {.len = 0};
    struct part_table table;
    append(&log, in_body(3, 8 * MIB));
    append(&log, in_body(1, 8 * MIB));
    append(&log, in_side(3, 4));
    append(&log, in_side(1, 2));
    assert_int_equal(part_log_read(log.bytes, log.len, PART_RECORD, &table, NULL), 0);
    assert_int_equal(table.count, 2);
    assert_int_equal(table.parts[0].number, 1);
    assert_int_equal(table.parts[0].side, 2);
    assert_int_equal(table.parts[1].number, 3);
    assert_int_equal(table.parts[1].time_ms, 8);
    assert_int_equal(table.unit, 8 * MIB); /* earlier parts' bytes still lie in the body */
    assert_int_equal(table.sides_used, 4);
    assert_int_equal(table.log_bytes, log.len);
    assert_ptr_equal(part_table_find(&table, 3), &table.parts[1]);
    assert_null(part_table_find(&table, 2));
    part_table_clear(&table);
    assert_null(part_table_find(&table, 3));
}

/* A crash at each byte of the last record. */
static void a_torn_end_is_cut(void **unused)
{
    (void)unused;
    struct log log = {.len = 0};
    append(&log, in_body(1, 8 * MIB));
    append(&log, in_body(2, 8 * MIB));
    for (size_t len = PART_RECORD; len < log.len; len++) {
        struct part_table table;
        assert_int_equal(part_log_read(log.bytes, len, PART_RECORD, &table, NULL), 0);
        assert_int_equal(table.count, 1);
        assert_int_equal(table.log_bytes, PART_RECORD);
        part_table_clear(&table);
    }
}

/* A crash may leave the length of records whose bytes never arrived. */
static void zeros_at_the_end_are_cut(void **unused)
{
    (void)unused;
    struct log log = {.len = 0};
    struct part_table table;
    append(&log, in_body(1, 8 * MIB));
    assert_int_equal(part_log_read(log.bytes, sizeof log.bytes, PART_RECORD, &table, NULL), 0);
    assert_int_equal(table.count, 1);
    assert_int_equal(table.log_bytes, PART_RECORD);
    part_table_clear(&table);
}

static void damage_before_a_whole_record_is_an_error(void **unused)
{
    (void)unused;
    for (size_t at = 0; at < PART_RECORD; at++) {
        struct log log = {.len = 0};
        struct part_table table;
        struct error err = ERROR_INIT;
        append(&log, in_body(1, 8 * MIB));
        append(&log, in_body(2, 8 * MIB));
        log.bytes[at] ^= 1;
        assert_int_equal(part_log_read(log.bytes, log.len, PART_RECORD, &table, &err), E_CORRUPT);
        assert_null(table.parts);
        assert_non_null(strstr(err.message, "record 0"));
    }
}

/* Records share a sync: the page of a later one may come to the disk without that of an earlier. */
static void zeros_before_a_whole_record_are_passed_over(void **unused)
{
    (void)unused;
    struct log log = {.len = 0};
    struct part_table table;
    append(&log, in_body(1, 8 * MIB));
    memset(log.bytes + log.len, 0, PART_RECORD);
    log.len += PART_RECORD;
    append(&log, in_side(3, 4));
    assert_int_equal(part_log_read(log.bytes, log.len, PART_RECORD, &table, NULL), 0);
    assert_int_equal(table.count, 2);
    assert_int_equal(table.parts[1].number, 3);
    assert_int_equal(table.log_bytes, log.len);
    part_table_clear(&table);
}

static void the_last_side_of_a_number_is_found(void **unused)
{
    (void)unused;
    struct log log = {.len = 0};
    append(&log, in_side(1, 1));
    append(&log, in_side(2, 2));
    append(&log, in_side(1, 3));
    append(&log, in_body(1, 8 * MIB));
    assert_int_equal(part_log_side(log.bytes, 3 * PART_RECORD, PART_RECORD, 1), 3);
    assert_int_equal(part_log_side(log.bytes, 2 * PART_RECORD, PART_RECORD, 1), 1);
    assert_int_equal(part_log_side(log.bytes, log.len, PART_RECORD, 1), 0);
    assert_int_equal(part_log_side(log.bytes, log.len, PART_RECORD, 2), 2);
    assert_int_equal(part_log_side(log.bytes, log.len, PART_RECORD, 9), 0);
}

static void what_no_upload_writes_is_refused(void **unused)
{
    (void)unused;
    const struct part bad[] = {
        in_body(0, 1),
        in_body(PARTS_MAX + 1, 1),
        in_body(1, 8 * MIB + 1), /* larger than its place */
        {.number = 1, .size = 1},
        {.number = 1, .size = 1, .side = 1, .unit = 8 * MIB},
        {.number = 1, .size = PART_SIZE_MAX + 1, .side = 1},
        {.number = 1, .size = 1, .unit = PART_SIZE_MAX + 1},
        {.number = 1, .size = 1, .unit = 9 * MIB}, /* than the part before */
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct log log = {.len = 0};
        struct part_table table;
        append(&log, in_body(2, 1));
        append(&log, bad[i]);
        assert_int_equal(part_log_read(log.bytes, log.len, PART_RECORD, &table, NULL), E_CORRUPT);
        assert_null(table.parts);
    }
}

/* --- records with a checksum ------------------------------------------------------------------ */

static void append_with_sum(struct log *log, struct part part, enum s3_sum_type type)
{
    part.sum.type = type;
    memset(part.sum.bytes, (int)part.number, s3_sum_size(type));
    part_record_put(&part, PART_RECORD_SUM, log->bytes + log->len);
    log->len += PART_RECORD_SUM;
}

static void a_record_with_a_checksum_keeps_its_form(void **unused)
{
    (void)unused;
    static const unsigned char sum[] = {/* of the disk format */
                                        9, 8, 7, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    const struct part part = {
        .number = 1, .side = 2, .has_sum = true, .sum = {S3_SUM_CRC32C, {9, 8, 7, 6}}};
    unsigned char plain[PART_RECORD_SUM], record[PART_RECORD_SUM];
    part_record_put(&part, PART_RECORD, plain);
    part_record_put(&part, PART_RECORD_SUM, record);
    assert_memory_equal(record, plain, 48);
    assert_memory_equal(record + 48, sum, sizeof sum);
    /* The types are part of the format. */
    assert_true(S3_SUM_CRC32 == 0 && S3_SUM_CRC32C == 1 && S3_SUM_CRC64NVME == 2 &&
                S3_SUM_SHA1 == 3 && S3_SUM_SHA256 == 4);
}

static void checksums_are_read_again(void **unused)
{
    (void)unused;
    struct log log = {.len = 0};
    struct part_table table;
    for (enum s3_sum_type type = 0; type < S3_SUM_TYPES; type++)
        append_with_sum(&log, in_side(type + 1, type + 1), type);
    assert_int_equal(part_log_read(log.bytes, log.len, PART_RECORD_SUM, &table, NULL), 0);
    assert_int_equal(table.count, S3_SUM_TYPES);
    for (enum s3_sum_type type = 0; type < S3_SUM_TYPES; type++) {
        struct s3_sum_value want = {.type = type};
        memset(want.bytes, (int)type + 1, s3_sum_size(type));
        assert_true(table.parts[type].has_sum);
        assert_true(s3_sum_equal(&table.parts[type].sum, &want));
        assert_int_equal(part_log_side(log.bytes, log.len, PART_RECORD_SUM, type + 1), type + 1);
    }
    part_table_clear(&table);
    for (size_t len = log.len - PART_RECORD_SUM; len < log.len; len++) {
        assert_int_equal(part_log_read(log.bytes, len, PART_RECORD_SUM, &table, NULL), 0);
        assert_int_equal(table.count, S3_SUM_TYPES - 1);
        part_table_clear(&table);
    }
}

static void records_of_the_other_form_are_refused(void **unused)
{
    (void)unused;
    struct log with = {.len = 0}, without = {.len = 0};
    struct part_table table;
    append_with_sum(&with, in_side(1, 1), S3_SUM_SHA256);
    append(&without, in_side(1, 1));
    assert_int_equal(part_log_read(with.bytes, with.len, PART_RECORD, &table, NULL), 0);
    assert_int_equal(table.count, 0); /* torn, and no part */
    part_table_clear(&table);
    assert_int_equal(part_log_read(without.bytes, without.len, PART_RECORD_SUM, &table, NULL), 0);
    assert_int_equal(table.count, 0);
    part_table_clear(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_keeps_its_form),
        cmocka_unit_test(parts_are_in_order_and_the_last_record_counts),
        cmocka_unit_test(a_torn_end_is_cut),
        cmocka_unit_test(zeros_at_the_end_are_cut),
        cmocka_unit_test(damage_before_a_whole_record_is_an_error),
        cmocka_unit_test(zeros_before_a_whole_record_are_passed_over),
        cmocka_unit_test(the_last_side_of_a_number_is_found),
        cmocka_unit_test(what_no_upload_writes_is_refused),
        cmocka_unit_test(a_record_with_a_checksum_keeps_its_form),
        cmocka_unit_test(checksums_are_read_again),
        cmocka_unit_test(records_of_the_other_form_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
