#include "console/console.h"

#include <string.h>

const struct console_file *console_find(const char *path)
{
    if (path[0] == '\0')
        path = "index.html";
    for (const struct console_file *f = console_files; f->path != NULL; f++) {
        if (strcmp(f->path, path) == 0)
            return f;
    }
    return NULL;
}
