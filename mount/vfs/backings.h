/* Files that the kernel reads itself, without this process: what it is told. */
#pragma once

struct backings {
    void *context;
    int (*open)(void *context, int fd); /* the kernel's number of the file, above 0; or -errno */
    void (*close)(void *context, int backing);
};
