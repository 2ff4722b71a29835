#include "s3/crc64_fold.h"

#include <assert.h>

#if defined(__x86_64__)

#include <immintrin.h>

#define CLMUL __attribute__((target("pclmul,sse4.1")))

/* A register has 16 bytes: its low half is the earlier one, and so has the higher powers.  Bringing
 * it forward by n bits multiplies the halves by x^(n+64) and x^n, modulo the polynomial.  Constants
 * are reflected, as the CRC is, and have one power less: a product of reflected factors is
 * reflected in 127 bits. */
struct forward {
    uint64_t low, high;
};
static const struct forward by_block = {0x0c32cdb31e18a84a, 0x62242240ace5045a}; /* x^575, x^511 */
static const struct forward by_left = {0xeadc41fd2ba3d420, 0x21e9761e252621ac};  /* x^191, x^127 */

CLMUL static inline __m128i factors_of(const struct forward *f)
{
    return _mm_set_epi64x((long long)f->high, (long long)f->low);
}

CLMUL static inline __m128i load(const unsigned char *at)
{
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

CLMUL static inline __m128i fold(__m128i value, __m128i factors, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(value, factors, 0x00);
    __m128i high = _mm_clmulepi64_si128(value, factors, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

bool crc64_fold_can(void)
{
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

/* Four registers, since a multiplication takes longer than the start of the next. */
CLMUL void crc64_fold(uint64_t crc, const unsigned char *data, size_t blocks,
                      unsigned char left[static CRC64_FOLD_LEFT])
{
    const __m128i block = factors_of(&by_block), sixteen = factors_of(&by_left);
    __m128i a = _mm_xor_si128(load(data), _mm_set_epi64x(0, (long long)crc));
    __m128i b = load(data + 16), c = load(data + 32), d = load(data + 48);
    assert(blocks > 0);
    for (size_t i = 1; i < blocks; i++) {
        data += CRC64_FOLD_BLOCK;
        a = fold(a, block, load(data));
        b = fold(b, block, load(data + 16));
        c = fold(c, block, load(data + 32));
        d = fold(d, block, load(data + 48));
    }
    a = fold(fold(fold(a, sixteen, b), sixteen, c), sixteen, d);
    _mm_storeu_si128((__m128i *)(void *)left, a);
}

#else

bool crc64_fold_can(void)
{
    return false;
}

void crc64_fold(uint64_t crc, const unsigned char *data, size_t blocks,
                unsigned char left[static CRC64_FOLD_LEFT])
{
    (void)crc;
    (void)data;
    (void)blocks;
    (void)left;
    assert(!"crc64_fold_can() is false");
}

#endif
