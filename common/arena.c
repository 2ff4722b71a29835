#include "common/arena.h"

#include <stdarg.h>

#include "common/mem.h"

enum { ARENA_ALIGN = 16, ARENA_BLOCK_MAX = 1024 * 1024 };

struct arena_block {
    struct arena_block *older;
    size_t size; /* of the bytes below */
    size_t used;
    _Alignas(ARENA_ALIGN) char bytes[];
};

struct arena {
    struct arena_block *newest; /* the one that is carved; the list ends with the first */
    size_t next_size;
    size_t held;
};

static void arena_grow(struct arena *a, size_t need)
{
    size_t size = need > a->next_size ? need : a->next_size;
    size_t total;
    if (__builtin_add_overflow(sizeof(struct arena_block), size, &total))
        total = SIZE_MAX; /* xmalloc ends the program */
    struct arena_block *block = xmalloc(total);
    block->older = a->newest;
    block->size = size;
    block->used = 0;
    a->newest = block;
    a->held += total;
    if (a->next_size < ARENA_BLOCK_MAX)
        a->next_size *= 2;
}

struct arena *arena_new(size_t first_block_bytes)
{
    struct arena *a = xcalloc(1, sizeof *a);
    a->next_size = first_block_bytes > ARENA_ALIGN ? first_block_bytes : ARENA_ALIGN;
    arena_grow(a, 0);
    return a;
}

static void arena_drop_newest(struct arena *a)
{
    struct arena_block *block = a->newest;
    a->newest = block->older;
    a->held -= sizeof *block + block->size;
    free(block);
}

void arena_free(struct arena *a)
{
    if (a == NULL)
        return;
    while (a->newest != NULL)
        arena_drop_newest(a);
    free(a);
}

void *arena_bytes(struct arena *a, size_t size)
{
    if (size > a->newest->size - a->newest->used)
        arena_grow(a, size);
    char *p = a->newest->bytes + a->newest->used;
    a->newest->used += size;
    return p;
}

void *arena_alloc(struct arena *a, size_t size)
{
    struct arena_block *block = a->newest;
    size_t pad = -block->used & (ARENA_ALIGN - 1);
    size_t room = block->size - block->used;
    if (pad > room || size > room - pad)
        arena_grow(a, size);
    else
        block->used += pad;
    return memset(arena_bytes(a, size), 0, size);
}

char *arena_strdup(struct arena *a, const char *text)
{
    return arena_strndup(a, text, strlen(text));
}

char *arena_strndup(struct arena *a, const char *text, size_t len)
{
    size_t used = strnlen(text, len);
    char *copy = arena_bytes(a, used + 1);
    memcpy(copy, text, used);
    copy[used] = '\0';
    return copy;
}

/* Into the room that is left; what does not fit there is formatted once more. */
char *arena_printf(struct arena *a, const char *fmt, ...)
{
    struct arena_block *block = a->newest;
    size_t room = block->size - block->used;
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(block->bytes + block->used, room, fmt, ap);
    va_end(ap);
    size_t size = len > 0 ? (size_t)len + 1 : 1;
    char *text = arena_bytes(a, size);
    if (len > 0 && size <= room)
        return text;
    text[0] = '\0';
    va_start(ap, fmt);
    vsnprintf(text, size, fmt, ap);
    va_end(ap);
    return text;
}

void arena_reset(struct arena *a)
{
    while (a->newest->older != NULL)
        arena_drop_newest(a);
    a->newest->used = 0;
}

size_t arena_used(const struct arena *a)
{
    return a->held;
}
