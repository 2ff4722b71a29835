/* A CRC is a remainder of polynomials over GF(2).  That of A and B in a row is the one of A times
 * x^(8 · bytes of B), plus the one of B.  The complements at both ends cancel out.
 *
 * Polynomials are reflected: the highest bit is the coefficient of x^0. */
#include "s3/sum_combine.h"

#include <assert.h>
#include <string.h>

static const struct row {
    unsigned width; /* bits; 0: it is no CRC */
    uint64_t polynomial;
} rows[S3_SUM_TYPES] = {
    [S3_SUM_CRC32] = {32, 0xedb88320},
    [S3_SUM_CRC32C] = {32, 0x82f63b78},
    [S3_SUM_CRC64NVME] = {64, 0x9a6c9329ac4bc9b5},
};

bool s3_sum_combines(enum s3_sum_type type)
{
    return rows[type].width > 0;
}

/* a · b */
static uint64_t multiply(const struct row *row, uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    for (uint64_t bit = 1ULL << (row->width - 1); bit != 0; bit >>= 1) {
        if ((a & bit) != 0)
            product ^= b;
        b = (b >> 1) ^ ((b & 1) != 0 ? row->polynomial : 0);
    }
    return product;
}

/* x^(8 · bytes) */
static uint64_t power(const struct row *row, uint64_t bytes)
{
    uint64_t square = 1ULL << (row->width - 1 - 8); /* x^8 */
    uint64_t result = 1ULL << (row->width - 1);     /* x^0 */
    for (; bytes > 0; bytes >>= 1) {
        if ((bytes & 1) != 0)
            result = multiply(row, result, square);
        square = multiply(row, square, square);
    }
    return result;
}

static uint64_t number_of(const struct s3_sum_value *v, size_t size)
{
    uint64_t number = 0;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | v->bytes[i];
    return number;
}

void s3_sum_combine(struct s3_sum_value *sum, const struct s3_sum_value *next, uint64_t len)
{
    const struct row *row = &rows[sum->type];
    assert(row->width > 0 && sum->type == next->type);
    size_t size = row->width / 8;
    uint64_t crc = multiply(row, power(row, len), number_of(sum, size)) ^ number_of(next, size);
    for (size_t i = 0; i < size; i++)
        sum->bytes[i] = (unsigned char)(crc >> (8 * (size - 1 - i)));
}
