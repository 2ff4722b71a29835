/* Small files of sysfs, configfs and procfs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Without the newline at the end; malloc'ed, NULL with errno. */
char *sysfile_read(const char *path);
uint64_t sysfile_number(const char *path); /* 0x… or decimal; 0: it cannot be read */
int sysfile_write(const char *path, const char *text, struct error *err);
/* A directory that may be there already. */
int sysfile_make(const char *path, struct error *err);
/* Directories and links that may be gone already. */
int sysfile_remove(const char *path, struct error *err);
/* The first name in the directory that begins so; malloc'ed, NULL: none. */
char *sysfile_first(const char *directory, const char *prefix);
