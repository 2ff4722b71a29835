#include "mount/meta/meta.h"

#include <endian.h>
#include <string.h>

void meta_close(struct meta *m)
{
    if (m != NULL)
        m->ops->close(m);
}

int64_t meta_field(const struct meta_value *value, size_t offset)
{
    uint64_t little = 0;
    if (value->size < sizeof little || offset > value->size - sizeof little)
        return 0;
    memcpy(&little, value->data + offset, sizeof little);
    return (int64_t)le64toh(little);
}

void meta_field_put(uint8_t *data, size_t offset, int64_t number)
{
    uint64_t little = htole64((uint64_t)number);
    memcpy(data + offset, &little, sizeof little);
}

uint64_t meta_entry_inode(const struct meta_value *value)
{
    return (uint64_t)meta_field(value, META_ENTRY_INODE);
}
