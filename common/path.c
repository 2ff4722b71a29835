#include "common/path.h"

#include <stddef.h>
#include <string.h>

const char *path_flaw(const char *name)
{
    for (const char *part = name;; part++) {
        size_t n = strcspn(part, "/");
        if (n == 0)
            return "an empty part";
        if (n == 1 && part[0] == '.')
            return "the part '.'";
        if (n == 2 && part[0] == '.' && part[1] == '.')
            return "the part '..'";
        part += n;
        if (*part == '\0')
            return NULL;
    }
}

bool path_ends_with(const char *path, const char *end)
{
    size_t len = strlen(path), end_len = strlen(end);
    return len >= end_len && strcmp(path + len - end_len, end) == 0;
}
