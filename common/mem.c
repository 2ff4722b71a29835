#include "common/mem.h"

#include <stdarg.h>
#include <unistd.h>

static _Noreturn void mem_out(void)
{
    static const char line[] = "out of memory\n";
    /* Nothing can be done about a stderr that does not take the line either. */
    ssize_t ignored = write(STDERR_FILENO, line, sizeof line - 1);
    (void)ignored;
    abort();
}

void *xmalloc(size_t size)
{
    void *p = malloc(size != 0 ? size : 1);
    if (p == NULL)
        mem_out();
    return p;
}

void *xcalloc(size_t count, size_t size)
{
    void *p = calloc(count != 0 ? count : 1, size != 0 ? size : 1);
    if (p == NULL)
        mem_out();
    return p;
}

void *xaligned(size_t alignment, size_t size)
{
    void *p = aligned_alloc(alignment, size);
    if (p == NULL)
        mem_out();
    return p;
}

void *xrealloc(void *old, size_t size)
{
    void *p = realloc(old, size != 0 ? size : 1);
    if (p == NULL)
        mem_out();
    return p;
}

char *xstrdup(const char *text)
{
    return text != NULL ? xstrndup(text, strlen(text)) : NULL;
}

char *xstrndup(const char *text, size_t len)
{
    size_t used = strnlen(text, len);
    char *copy = xmalloc(used + 1);
    memcpy(copy, text, used);
    copy[used] = '\0';
    return copy;
}

char *xprintf(const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int len = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (len < 0)
        mem_out();
    return text;
}
