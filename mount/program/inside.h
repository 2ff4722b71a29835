/* A path in a mounted volume, for what is asked of the process that serves it. */
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include "mount/meta/keys.h"

struct inside {
    int fd; /* of the directory; -1: none */
    dev_t device;
    ino_t directory;
    char name[META_NAME_MAX + 1]; /* in it; it may be absent */
};

/* An exit code; inside_close() is due in any case.  Slashes at the end do not matter. */
int inside_open(const char *path, struct inside *out);
void inside_close(struct inside *at);
/* ioctl(2).  An exit code; `path` is for what is said. */
int inside_ask(int fd, unsigned long command, void *data, const char *path);
int inside_exit_of(int errnum);
