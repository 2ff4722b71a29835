#include "mount/program/program.h"

#include <stdarg.h>
#include <stdio.h>

int program_fail(int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    flockfile(stderr); /* a line of another thread comes before or behind */
    fputs("dfc-mount: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(ap);
    return code;
}
