/* Fills an index with names that have no files, for benchmarks of listing:
 *
 *     dfc-fill-index DIR BUCKET_ID NAMES PART PARTS
 *
 * puts those of the names 0 … NAMES-1 that belong to part PART of PARTS into the index in DIR, in
 * random order, as a rebuild from files does, and closes it in order.  Prints {"names", "seconds",
 * "bytes"}: of the file. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <xxhash.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"
#include "target/index/index.h"

enum { AT_ONCE = 2000, NAME_MAX_BYTES = 64, PER_FOLDER = 10000 };

struct fill {
    struct index *index;
    uint64_t bucket_id, names, part, parts, filled;
    size_t count;
    struct index_item items[AT_ONCE];
    char texts[AT_ONCE][NAME_MAX_BYTES];
};

static void flush(struct fill *f)
{
    struct error err = ERROR_INIT;
    if (index_fill(f->index, f->items, f->count, &err) != 0) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    f->filled += f->count;
    f->count = 0;
}

static void add(struct fill *f, uint64_t i)
{
    char *name = f->texts[f->count];
    uint64_t hash = XXH3_64bits(&i, sizeof i);
    snprintf(name, NAME_MAX_BYTES, "train/part-%05llu/image-%010llu.jpg",
             (unsigned long long)(i / PER_FOLDER), (unsigned long long)i);
    struct index_item *item = &f->items[f->count++];
    *item = (struct index_item){
        .bucket_id = f->bucket_id,
        .name = name,
        .record = {.size = 100000 + hash % 100000,
                   .version = {1, 7, 1},
                   .checksum = {.type = CHECKSUM_XXH3},
                   .modified_ms = 1790000000000 + (int64_t)(hash % 1000000000)}};
    memcpy(item->record.checksum.bytes, &hash, sizeof hash);
    if (f->count == AT_ONCE)
        flush(f);
}

/* Every name once, far from the one before: a stride that has no divisor in common with the number
 * of names. */
static void fill_all(struct fill *f)
{
    enum { STRIDE = 1000003 }; /* prime */
    uint64_t i = 0;
    for (uint64_t n = 0; n < f->names; n++, i = (i + STRIDE) % f->names) {
        if (XXH3_64bits_withSeed(&i, sizeof i, 1) % f->parts == f->part)
            add(f, i);
    }
    flush(f);
}

int main(int argc, char **argv)
{
    struct fill *f = xcalloc(1, sizeof *f);
    const char *fresh;
    struct error err = ERROR_INIT;
    struct stat st;
    if (argc != 6 || parse_u64(argv[2], &f->bucket_id, &err) != 0 ||
        parse_u64(argv[3], &f->names, &err) != 0 || parse_u64(argv[4], &f->part, &err) != 0 ||
        parse_u64(argv[5], &f->parts, &err) != 0 || f->names % 1000003 == 0 || f->parts == 0) {
        fprintf(stderr, "usage: dfc-fill-index DIR BUCKET_ID NAMES PART PARTS %s\n", err.message);
        return 2;
    }
    uint64_t began = clock_us();
    if (index_open(argv[1], 1ULL << 36, true, &f->index, &fresh, &err) != 0) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    fill_all(f);
    index_set_complete(f->index);
    index_close(f->index);
    _cleanup_free_ char *path = xprintf("%s/data.mdb", argv[1]);
    if (stat(path, &st) != 0)
        return 1;
    printf("{\"names\": %llu, \"seconds\": %.3f, \"bytes\": %llu}\n", (unsigned long long)f->filled,
           (double)(clock_us() - began) / 1e6, (unsigned long long)st.st_size);
    free(f);
    return 0;
}
