/* The inside of files.h, for its sources. */
#pragma once

#include <sys/stat.h>

#include "cache/files.h"

struct files {
    char *path; /* DIR/dfc-cache */
    int lock;
    uint64_t written; /* numbers of files in new/ */
};

char *files_piece_path(const struct files *f, const struct piece_id *id, uint64_t set);
size_t files_bytes_of(const struct stat *st); /* on the disk */
