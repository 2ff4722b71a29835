#include "s3/crc64.h"

#include <pthread.h>
#include <string.h>

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

uint64_t crc64_nvme(uint64_t crc, const void *data, size_t len)
{
    const unsigned char *at = data;
    pthread_once(&tables_once, fill_tables);
    crc = ~crc;
    for (; len >= SLICES; at += SLICES, len -= SLICES) {
        uint64_t word = crc ^ load_le64(at);
        crc = 0;
        for (unsigned i = 0; i < SLICES; i++)
            crc ^= tables[SLICES - 1 - i][(word >> (8 * i)) & 0xff];
    }
    for (; len > 0; at++, len--)
        crc = (crc >> 8) ^ tables[0][(crc ^ *at) & 0xff];
    return ~crc;
}
