#include "s3/crc64.h"

#include <pthread.h>

#include "s3/crc64_fold.h"

/* Eight bytes a step: tables[i] has what a byte becomes that stands i bytes before the end of the
 * eight ("slicing by 8", Kounavis and Berry 2005). */
enum { SLICES = 8 };
#define REFLECTED 0x9a6c9329ac4bc9b5ULL

static uint64_t tables[SLICES][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void fill_tables(void)
{
    for (unsigned i = 0; i < 256; i++) {
        uint64_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? REFLECTED : 0);
        tables[0][i] = crc;
    }
    for (unsigned slice = 1; slice < SLICES; slice++) {
        for (unsigned i = 0; i < 256; i++) {
            uint64_t before = tables[slice - 1][i];
            tables[slice][i] = (before >> 8) ^ tables[0][before & 0xff];
        }
    }
}

static uint64_t load_le64(const unsigned char *at)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 8; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

/* The register behind these bytes. */
static uint64_t step(uint64_t crc, const unsigned char *at, size_t len)
{
    for (; len >= SLICES; at += SLICES, len -= SLICES) {
        uint64_t word = crc ^ load_le64(at);
        crc = 0;
        for (unsigned i = 0; i < SLICES; i++)
            crc ^= tables[SLICES - 1 - i][(word >> (8 * i)) & 0xff];
    }
    for (; len > 0; at++, len--)
        crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xff];
    return crc;
}

uint64_t crc64_nvme_by_table(uint64_t crc, const void *data, size_t len)
{
    pthread_once(&tables_once, fill_tables);
    return ~step(~crc, data, len);
}

uint64_t crc64_nvme(uint64_t crc, const void *data, size_t len)
{
    size_t blocks = len / CRC64_FOLD_BLOCK;
    if (blocks == 0 || !crc64_fold_can())
        return crc64_nvme_by_table(crc, data, len);
    unsigned char left[CRC64_FOLD_LEFT];
    const unsigned char *rest = (const unsigned char *)data + blocks * CRC64_FOLD_BLOCK;
    pthread_once(&tables_once, fill_tables);
    crc64_fold(~crc, data, blocks, left);
    return ~step(step(0, left, sizeof left), rest, len % CRC64_FOLD_BLOCK);
}
