#include "common/id_rows.h"

#include <string.h>

#include "common/mem.h"

static uint64_t id_at(const void *rows, size_t size, size_t at)
{
    uint64_t id;
    memcpy(&id, (const char *)rows + at * size, sizeof id);
    return id;
}

size_t id_rows_place(const void *rows, size_t count, size_t size, uint64_t id, bool *found)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (id_at(rows, size, middle) < id)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < count && id_at(rows, size, low) == id;
    return low;
}

void *id_rows_insert(void *rows, size_t *count, size_t size, size_t at, uint64_t id)
{
    char *longer = xrealloc(rows, (*count + 1) * size);
    char *row = longer + at * size;
    memmove(row + size, row, (*count - at) * size);
    memset(row, 0, size);
    memcpy(row, &id, sizeof id);
    ++*count;
    return longer;
}
