#include "s3/crc64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "common/rng.h"
#include "s3/crc64_fold.h"

static void the_check_value(void **unused)
{
    (void)unused;
    assert_true(crc64_nvme(0, "123456789", 9) == 0xae8b14860a799888ULL);
    assert_true(crc64_nvme(crc64_nvme(0, "1234", 4), "56789", 5) == 0xae8b14860a799888ULL);
    assert_true(crc64_nvme_by_table(0, "123456789", 9) == 0xae8b14860a799888ULL);
}

/* "64b CRC" of the NVM Command Set Specification: examples of 4096 bytes. */
static void the_examples_of_the_specification(void **unused)
{
    (void)unused;
    unsigned char block[4096];
    memset(block, 0, sizeof block);
    assert_true(crc64_nvme(0, block, sizeof block) == 0x6482d367eb22b64eULL);
    memset(block, 0xff, sizeof block);
    assert_true(crc64_nvme(0, block, sizeof block) == 0xc0ddba7302eca3acULL);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (unsigned char)i;
    assert_true(crc64_nvme(0, block, sizeof block) == 0x3e729f5f6750449cULL);
}

/* Every length up to several blocks, at every place in a word, and behind any value. */
static void folding_gives_what_the_table_gives(void **unused)
{
    (void)unused;
    if (!crc64_fold_can())
        skip(); /* crc64_nvme() is crc64_nvme_by_table() here */
    unsigned char data[5 * CRC64_FOLD_BLOCK + 16];
    struct rng rng;
    rng_seed(&rng, 64);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)rng_next(&rng);
    for (size_t at = 0; at < 16; at++) {
        for (size_t len = 0; len <= sizeof data - 16; len++) {
            uint64_t before = rng_next(&rng);
            assert_true(crc64_nvme(before, data + at, len) ==
                        crc64_nvme_by_table(before, data + at, len));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_check_value),
        cmocka_unit_test(the_examples_of_the_specification),
        cmocka_unit_test(folding_gives_what_the_table_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
