/* All regular files below a directory, in the order of their names. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct walk_visitor {
    /* path: to open it; below: the part behind the directory walked.  False ends the walk. */
    bool (*file)(void *context, const char *path, const char *below, uint64_t size);
    /* What is there and is no regular file (a symbolic link to one counts as one), or cannot be
     * read.  Nothing is left out silently but empty directories. */
    void (*problem)(void *context, const char *path, const struct error *err);
    void *context;
};

bool walk_is_directory(const char *path); /* links are followed */
void walk_directory(const char *directory, const struct walk_visitor *v);
