#include "mount/tcmu/scsi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const struct scsi_disk disk = {.sectors = 1000, .read_most = 256, .naa = 0x3123456789abcdef};

static struct scsi_reply ask(const struct scsi_disk *d, const char *hex)
{
    struct scsi_reply r;
    uint8_t cdb[SCSI_CDB] = {0};
    unsigned n = 0, byte;
    for (int used; sscanf(hex, "%2x%n", &byte, &used) == 1; hex += used)
        cdb[n++] = (uint8_t)byte;
    assert_int_equal(n, scsi_cdb_size(cdb[0]));
    scsi_answer(d, cdb, &r);
    return r;
}

/* The bytes of the reply begin so. */
static const struct {
    const char *cdb;
    size_t size;
    const char *bytes;
} replies[] = {
    {"00 00 00 00 00 00", 0, ""},                               /* TEST UNIT READY */
    {"1b 00 00 00 01 00", 0, ""},                               /* START STOP UNIT */
    {"1e 00 00 00 01 00", 0, ""},                               /* PREVENT REMOVAL */
    {"35 00 00 00 00 00 00 00 00 00", 0, ""},                   /* SYNCHRONIZE CACHE */
    {"91 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00", 0, ""}, /* the same, 16 */
    {"03 00 00 00 12 00", 18, "\x70\0\0\0\0\0\0\x0a"},          /* REQUEST SENSE */
    {"12 00 00 00 60 00", 36,
     "\0\0\x06\x02\x1f\0\0\x02"
     "DFC     vdisc   "},                                     /* INQUIRY */
    {"12 00 00 00 05 00", 5, "\0\0\x06\x02\x1f"},             /* less room */
    {"12 01 00 00 ff 00", 9, "\0\0\0\x05\0\x80\x83\xb0\xb1"}, /* its pages */
    {"12 01 80 00 ff 00", 20,
     "\0\x80\0\x10"
     "3123456789abcdef"},
    {"12 01 83 00 ff 00", 16, "\0\x83\0\x0c\x01\x03\0\x08\x31\x23\x45\x67\x89\xab\xcd\xef"},
    {"12 01 b0 00 ff 00", 64, "\0\xb0\0\x3c\0\0\0\x04\0\0\x01\0\0\0\x01\0"},
    {"12 01 b1 00 ff 00", 64, "\0\xb1\0\x3c\0\x01"},
    {"25 00 00 00 00 00 00 00 00 00", 8, "\0\0\x03\xe7\0\0\x02\0"}, /* READ CAPACITY 10 */
    {"9e 10 00 00 00 00 00 00 00 00 00 00 00 20 00 00", 32,
     "\0\0\0\0\0\0\x03\xe7\0\0\x02\0\0\x02"},                          /* READ CAPACITY 16 */
    {"1a 00 3f 00 ff 00", 24, "\x17\0\x80\0\x08\x12\0"},               /* MODE SENSE 6: all */
    {"1a 00 08 00 04 00", 4, "\x17\0\x80\0"},                          /* its header */
    {"5a 00 08 00 00 00 00 00 ff 00", 28, "\0\x1a\0\x80\0\0\0\0\x08"}, /* MODE SENSE 10 */
    {"a0 00 00 00 00 00 00 00 00 10 00 00", 16, "\0\0\0\x08\0\0\0\0\0\0\0\0"}, /* REPORT LUNS */
};

static void replies_are_those_of_the_standards(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        const struct scsi_reply r = ask(&disk, replies[i].cdb);
        assert_int_equal(r.status, SCSI_GOOD);
        assert_int_equal(r.size, 0);
        assert_int_equal(r.data_size, replies[i].size);
        const size_t known = replies[i].size < 16 ? replies[i].size : 6;
        assert_memory_equal(r.data, replies[i].bytes, known);
    }
}

static void texts_are_whole(void **state)
{
    (void)state;
    assert_memory_equal(ask(&disk, "12 00 00 00 60 00").data + 8, "DFC     vdisc           1   ",
                        28);
    assert_memory_equal(ask(&disk, "12 01 80 00 ff 00").data + 4, "3123456789abcdef", 16);
    assert_memory_equal(ask(&disk, "12 01 83 00 ff 00").data + 8,
                        "\x31\x23\x45\x67\x89\xab\xcd\xef", 8);
    assert_memory_equal(ask(&disk, "12 01 b0 00 ff 00").data + 8, "\0\0\x01\0\0\0\x01\0", 8);
}

static const struct {
    const char *cdb;
    uint64_t sector, sectors;
} reads[] = {
    {"08 00 00 05 07 00", 5, 7},
    {"08 00 01 00 00 00", 256, 256}, /* 0 is 256 */
    {"28 00 00 00 03 e7 00 00 01 00", 999, 1},
    {"28 00 00 00 03 e8 00 00 00 00", 1000, 0}, /* nothing, at the end */
    {"a8 00 00 00 00 10 00 00 01 00 00 00", 16, 256},
    {"88 00 00 00 00 00 00 00 00 02 00 00 00 08 00 00", 2, 8},
};

static void reads_name_contents(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        const struct scsi_reply r = ask(&disk, reads[i].cdb);
        assert_int_equal(r.status, SCSI_GOOD);
        assert_int_equal(r.offset, reads[i].sector * SCSI_SECTOR);
        assert_int_equal(r.size, reads[i].sectors * SCSI_SECTOR);
        assert_int_equal(r.data_size, 0);
    }
}

static const struct {
    const char *cdb;
    uint8_t key, code;
} failures[] = {
    {"0a 00 00 05 07 00", 7, 0x27}, /* writes */
    {"2a 00 00 00 00 00 00 00 01 00", 7, 0x27},
    {"aa 00 00 00 00 00 00 00 00 01 00 00", 7, 0x27},
    {"8a 00 00 00 00 00 00 00 00 00 00 00 00 01 00 00", 7, 0x27},
    {"42 00 00 00 00 00 00 00 08 00", 7, 0x27},
    {"93 00 00 00 00 00 00 00 00 00 00 00 00 01 00 00", 7, 0x27},
    {"04 00 00 00 00 00", 7, 0x27},
    {"28 00 00 00 03 e8 00 00 01 00", 5, 0x21}, /* behind the end */
    {"88 00 ff ff ff ff ff ff ff ff 00 00 00 08 00 00", 5, 0x21},
    {"88 00 00 00 00 00 00 00 03 00 ff ff ff ff 00 00", 5, 0x21},
    {"28 00 00 00 00 00 00 01 01 00", 5, 0x24}, /* too much at once */
    {"12 01 c0 00 ff 00", 5, 0x24},             /* no such page */
    {"12 00 80 00 ff 00", 5, 0x24},             /* a page that is not asked for */
    {"1a 00 0a 00 ff 00", 5, 0x24},
    {"1a 00 c8 00 ff 00", 5, 0x24}, /* saved values */
    {"9e 12 00 00 00 00 00 00 00 00 00 00 00 20 00 00", 5, 0x24},
    {"a3 0c 00 00 00 00 00 00 00 10 00 00", 5, 0x20}, /* no such command */
    {"ff 00 00 00 00 00 00 00 00 00", 5, 0x20},
};

static void failures_have_their_sense(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        const struct scsi_reply r = ask(&disk, failures[i].cdb);
        assert_int_equal(r.status, SCSI_CHECK_CONDITION);
        assert_int_equal(r.sense[0], 0x70);
        assert_int_equal(r.sense[2], failures[i].key);
        assert_int_equal(r.sense[12], failures[i].code);
        assert_int_equal(r.size + r.data_size, 0);
    }
}

static void a_large_disk_is_asked_by_16(void **state)
{
    const struct scsi_disk large = {.sectors = 1ull << 34, .read_most = 256};
    (void)state;
    assert_memory_equal(ask(&large, "25 00 00 00 00 00 00 00 00 00").data, "\xff\xff\xff\xff", 4);
    assert_memory_equal(ask(&large, "9e 10 00 00 00 00 00 00 00 00 00 00 00 20 00 00").data,
                        "\0\0\0\x03\xff\xff\xff\xff", 8);
    const struct scsi_reply r = ask(&large, "88 00 00 00 00 03 ff ff ff f8 00 00 00 08 00 00");
    assert_int_equal(r.offset, ((1ull << 34) - 8) * SCSI_SECTOR);
}

static void what_cannot_be_read_is_a_medium_error(void **state)
{
    struct scsi_reply r;
    (void)state;
    scsi_unreadable(&r);
    assert_int_equal(r.status, SCSI_CHECK_CONDITION);
    assert_int_equal(r.sense[2], 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_are_those_of_the_standards),
        cmocka_unit_test(texts_are_whole),
        cmocka_unit_test(reads_name_contents),
        cmocka_unit_test(failures_have_their_sense),
        cmocka_unit_test(a_large_disk_is_asked_by_16),
        cmocka_unit_test(what_cannot_be_read_is_a_medium_error),
    };
    return cmocka_run_group_tests_name("tcmu_scsi", tests, NULL, NULL);
}
