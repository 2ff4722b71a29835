/* The inside of files.h, for its sources. */
#pragma once

#include <sys/stat.h>

#include "cache/files.h"

#define FILES_FOOT ".foot" /* ends the name of a whole's foot */

struct files {
    char *path; /* DIR/dfc-cache */
    int lock;
    uint64_t written; /* numbers of files in new/ */
};

char *files_piece_path(const struct files *f, const struct piece_id *id, uint64_t set);
char *files_foot_path(const char *whole);     /* malloc'ed */
size_t files_bytes_of(const struct stat *st); /* on the disk */

/* Functions that return 0 or -errno. */
int files_pread(int fd, void *to, size_t size, uint64_t offset); /* -EBADMSG: the file is shorter */
int files_pwrite(int fd, const void *data, size_t size, uint64_t offset);
int files_put(const char *path, const void *data, size_t size, uint64_t offset);
int files_rename(const char *from, const char *to); /* with the directories of `to` */
