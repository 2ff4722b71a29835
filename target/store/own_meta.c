#include "target/store/own_meta.h"

#include <string.h>

#include "target/store/object.h"

const struct own_meta own_metas[OWN_METAS_MAX] = {
    {OBJECT_BACKEND_ENCODING, "Content-Encoding", "Content-Encoding", false},
    {ATTR_MD5, "Content-MD5", NULL, false},
    {OBJECT_SUM, OBJECT_SUM_HEADER, OBJECT_SUM_HEADER, false},
    {ATTR_TAGS, OBJECT_TAGS_HEADER, OBJECT_TAGS_HEADER, false},
    {ATTR_PARTS, NULL, OBJECT_PARTS_HEADER, false},
    {ATTR_PART_SUMS, NULL, OBJECT_PART_SUMS_HEADER, false},
    {"entity-cache-control", "Cache-Control", "Cache-Control", true},
    {"entity-content-disposition", "Content-Disposition", "Content-Disposition", true},
    {"entity-content-language", "Content-Language", "Content-Language", true},
    {"entity-expires", "Expires", "Expires", true},
    {.name = NULL},
};

const struct own_meta *own_meta_find(const char *name)
{
    const struct own_meta *row = own_metas;
    while (row->name != NULL && strcmp(row->name, name) != 0)
        row++;
    return row->name != NULL ? row : NULL;
}
