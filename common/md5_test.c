/* MD5 of one to eight streams, compared with OpenSSL's. */
#include "common/md5.c" // NOLINT: for the functions of other processors

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "common/checksum.h"
#include "common/rng.h"

enum { BYTES = 6000, ROUNDS = 3000 };

static unsigned char bytes[MD5_LANES][BYTES];

static int set_up(void **unused)
{
    (void)unused;
    struct rng rng;
    rng_seed(&rng, 1);
    for (size_t i = 0; i < MD5_LANES; i++)
        for (size_t k = 0; k < BYTES; k++)
            bytes[i][k] = (unsigned char)rng_next(&rng);
    return 0;
}

static void assert_digest(struct md5 *m, const unsigned char *data, size_t len)
{
    struct checksum *openssl = checksum_new(CHECKSUM_MD5);
    struct checksum_value value;
    unsigned char digest[MD5_BYTES];
    checksum_update(openssl, data, len);
    checksum_final(openssl, &value);
    checksum_free(openssl);
    md5_end(m, digest);
    assert_memory_equal(digest, value.bytes, MD5_BYTES);
}

static void a_stream_of_any_length(void **unused)
{
    (void)unused;
    for (size_t len = 0; len < 5 * MD5_BLOCK; len++) {
        struct md5 m;
        md5_begin(&m);
        md5_update(&(struct md5_piece){&m, bytes[0], len}, 1);
        assert_digest(&m, bytes[0], len);
    }
}

/* Each stream goes on by pieces of its own, some of them empty, and ends at its own time. */
static void streams_that_differ(void **unused)
{
    (void)unused;
    struct rng rng;
    rng_seed(&rng, 2);
    for (size_t round = 0; round < ROUNDS; round++) {
        struct md5 streams[MD5_LANES];
        size_t count = 1 + round % MD5_LANES;
        for (size_t i = 0; i < count; i++)
            md5_begin(&streams[i]);
        for (size_t left = 1 + rng_below(&rng, 6); left > 0; left--) {
            struct md5_piece pieces[MD5_LANES];
            for (size_t i = 0; i < count; i++) {
                size_t at = streams[i].len, most = rng_below(&rng, 3) == 0 ? 70 : BYTES / 6;
                pieces[i] = (struct md5_piece){&streams[i], bytes[i] + at, rng_below(&rng, most)};
            }
            md5_update(pieces, count);
        }
        for (size_t i = 0; i < count; i++)
            assert_digest(&streams[i], bytes[i], streams[i].len);
    }
}

static void assert_lanes(digest_fn *fn)
{
    enum { BLOCKS = BYTES / MD5_BLOCK };
    const unsigned char *data[MD5_LANES];
    lanes s[STATE];
    struct md5 alone[MD5_LANES];
    for (size_t i = 0; i < MD5_LANES; i++) {
        md5_begin(&alone[i]);
        data[i] = bytes[i];
        for (size_t k = 0; k < STATE; k++)
            s[k][i] = alone[i].state[k];
        digest_blocks(alone[i].state, bytes[i], BLOCKS);
    }
    fn(s, data, BLOCKS);
    for (size_t i = 0; i < MD5_LANES; i++)
        for (size_t k = 0; k < STATE; k++)
            assert_int_equal(s[k][i], alone[i].state[k]);
}

static void every_processor_computes_the_same(void **unused)
{
    (void)unused;
    assert_lanes(digest_lanes_plain);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        assert_lanes(digest_lanes_avx2);
    if (__builtin_cpu_supports("avx512vl"))
        assert_lanes(digest_lanes_avx512);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_of_any_length),
        cmocka_unit_test(streams_that_differ),
        cmocka_unit_test(every_processor_computes_the_same),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
