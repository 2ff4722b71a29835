#include "s3/sum_combine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static struct s3_sum_value sum_of(enum s3_sum_type type, const void *data, size_t len)
{
    struct s3_sum_value out;
    _cleanup_(s3_sum_freep)
    struct s3_sum *s = s3_sum_new(type);
    s3_sum_update(s, data, len);
    s3_sum_final(s, &out);
    return out;
}

static void pieces_have_the_crc_of_the_whole(void **unused)
{
    (void)unused;
    unsigned char data[3000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * i + 7 * i / 3);
    static const size_t cuts[] = {0, 1, 2, 3, 8, 255, 1000, 2999, sizeof data};
    for (enum s3_sum_type type = 0; type < S3_SUM_TYPES; type++) {
        if (!s3_sum_combines(type))
            continue;
        const struct s3_sum_value whole = sum_of(type, data, sizeof data);
        for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
            struct s3_sum_value sum = sum_of(type, data, cuts[i]);
            const struct s3_sum_value rest = sum_of(type, data + cuts[i], sizeof data - cuts[i]);
            s3_sum_combine(&sum, &rest, sizeof data - cuts[i]);
            assert_true(s3_sum_equal(&sum, &whole));
        }
    }
}

/* "a", and behind it 5 GiB of zeros, by doubling: a length that has more than 32 bits. */
static void long_pieces(void **unused)
{
    (void)unused;
    const uint64_t length = 5ULL << 30;
    for (enum s3_sum_type type = 0; type < S3_SUM_TYPES; type++) {
        if (!s3_sum_combines(type))
            continue;
        static const unsigned char zeros[1 << 20];
        struct s3_sum_value piece = sum_of(type, zeros, sizeof zeros), at_once, in_turn;
        at_once = in_turn = sum_of(type, "a", 1);
        struct s3_sum_value all = sum_of(type, "", 0);
        for (uint64_t len = 0; len < length; len += sizeof zeros) {
            s3_sum_combine(&all, &piece, sizeof zeros);
            s3_sum_combine(&in_turn, &piece, sizeof zeros);
        }
        s3_sum_combine(&at_once, &all, length);
        assert_true(s3_sum_equal(&at_once, &in_turn));
    }
}

static void only_crcs_combine(void **unused)
{
    (void)unused;
    assert_true(s3_sum_combines(S3_SUM_CRC32) && s3_sum_combines(S3_SUM_CRC32C) &&
                s3_sum_combines(S3_SUM_CRC64NVME));
    assert_false(s3_sum_combines(S3_SUM_SHA1) || s3_sum_combines(S3_SUM_SHA256));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_have_the_crc_of_the_whole),
        cmocka_unit_test(long_pieces),
        cmocka_unit_test(only_crcs_combine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
