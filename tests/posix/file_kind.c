#include "tests/posix/file_kind.h"

#include <stdio.h>
#include <string.h>

static char message[2048];

const struct file_kind *file_kind_of(const char *name)
{
    static const struct file_kind *const kinds[] = {&file_posix, &file_plfs, &file_plog};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    }
    return NULL;
}

const char *file_error(void)
{
    return message;
}

int file_fail(const char *what, const char *path, const char *why)
{
    snprintf(message, sizeof message, "%s '%s': %s", what, path, why);
    return -1;
}
