/* The sizes of an object's parts in one text, as the object's metadata has them: runs of equal
 * sizes, with a comma between.
 *
 *     "9999x8388608,1x123"     9999 parts of 8 MiB, and one of 123 bytes
 *
 * Parts count from 1, in the order of their bytes.  Pure; fuzzed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PART_SIZES_MAX = 512 }; /* bytes of a text, with the end */

/* False: the text has no room for these sizes, or there are none, or more than S3_PARTS_MAX. */
bool part_sizes_print(const uint64_t *sizes, size_t count, char out[static PART_SIZES_MAX]);

struct part_sizes {
    unsigned count;
    uint64_t total; /* bytes of all parts */
};

/* False: the text is not one that part_sizes_print() writes. */
bool part_sizes_parse(const char *text, struct part_sizes *out);

struct part_span {
    uint64_t offset, size; /* bytes */
};

/* Where a part lies in the object, by a text that can be parsed.  False: no part has the number. */
bool part_sizes_find(const char *text, unsigned number, struct part_span *out);
