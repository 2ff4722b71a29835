#include "api/ctl/names/folder_sums.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"

struct open_folder {
    size_t len; /* of its name, with the slash */
    struct folder_sum sum;
};

static void count(struct folder_sum *sum, uint64_t size)
{
    sum->objects++;
    sum->bytes += size;
}

static void close_deepest(struct folder_sums *s)
{
    const struct open_folder *f = &s->open[--s->open_count];
    _cleanup_free_ char *name = xstrndup(s->path.data, f->len);
    s->found(s->context, name, &f->sum);
}

/* Closes the folders that the name is not in. */
static void close_left(struct folder_sums *s, const char *name)
{
    while (s->open_count > 0 && strncmp(name, s->path.data, s->open[s->open_count - 1].len) != 0)
        close_deepest(s);
}

static void open_next(struct folder_sums *s, const char *name, size_t len)
{
    if (s->open_count == s->open_room) {
        s->open_room = s->open_room * 2 + 8;
        s->open = xrealloc(s->open, s->open_room * sizeof *s->open);
    }
    s->open[s->open_count++] = (struct open_folder){.len = len};
    buf_clear(&s->path);
    buf_append(&s->path, name, len);
}

void folder_sums_add(struct folder_sums *s, const char *name, uint64_t size)
{
    close_left(s, name);
    size_t at = s->open_count > 0 ? s->open[s->open_count - 1].len : s->base;
    for (const char *slash; s->open_count < s->depth && (slash = strchr(name + at, '/')) != NULL;
         at = (size_t)(slash - name) + 1)
        open_next(s, name, (size_t)(slash - name) + 1);
    for (size_t i = 0; i < s->open_count; i++)
        count(&s->open[i].sum, size);
    count(&s->all, size);
}

void folder_sums_end(struct folder_sums *s)
{
    while (s->open_count > 0)
        close_deepest(s);
}

void folder_sums_done(struct folder_sums *s)
{
    buf_done(&s->path);
    free(s->open);
    s->open = NULL;
    s->open_count = s->open_room = 0;
}
