#include "sort/index/dali.h"

#include <string.h>

#include "sort/shard/record.h"

#define LINES_MEMORY (256 * 1024)

void dali_init(struct dali *d, const struct sort_env *env)
{
    *d = (struct dali){.lines = blob_new(env, LINES_MEMORY)};
}

void dali_done(struct dali *d)
{
    blob_free(d->lines);
    buf_done(&d->base);
    buf_done(&d->head);
}

static bool has_space(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r'))
            return true;
    }
    return false;
}

/* What separates this member from the one before: a sample's end, or none. */
static const char *separator(struct dali *d, const char *base, size_t len)
{
    if (d->samples > 0 && d->base.len == len && memcmp(d->base.data, base, len) == 0)
        return " ";
    buf_clear(&d->base);
    buf_append(&d->base, base, len);
    return d->samples++ > 0 ? "\n" : "";
}

/* Why the form cannot hold a path, or NULL. */
static const char *why_not(const char *path, size_t len, size_t extension)
{
    if (extension == len)
        return "its extension is empty";
    return has_space(path, len) ? "white space in its path" : NULL;
}

int dali_add(struct dali *d, const char *path, size_t len, uint64_t offset, uint64_t size,
             struct error *err)
{
    size_t base = record_key_len(path, len, SORT_KEY_FIRST_DOT);
    if (base == 0 || path[base - 1] == '/')
        return 0;
    size_t extension = base < len ? base + 1 : 0;
    const char *why = why_not(path, len, extension);
    if (why != NULL)
        return error_set(err, E_SHARD_UNSUPPORTED,
                         "member '%.*s' cannot be in an index for DALI: %s",
                         (int)(len < 256 ? len : 256), path, why);
    _cleanup_(buf_done)
    struct buf line = BUF_INIT;
    buf_puts(&line, separator(d, path, base));
    buf_append(&line, path + extension, len - extension);
    buf_printf(&line, " %llu %llu ", (unsigned long long)offset, (unsigned long long)size);
    buf_append(&line, path, len);
    return blob_append(d->lines, line.data, line.len, err);
}

int dali_finish(struct dali *d, uint64_t *size, struct error *err)
{
    int rc = d->samples > 0 ? blob_append(d->lines, "\n", 1, err) : 0;
    buf_printf(&d->head, "v1.2 %llu\n", (unsigned long long)d->samples);
    d->head_left = (struct span){.data = (unsigned char *)d->head.data, .len = d->head.len};
    d->lines_left = (struct blob_range){.blob = d->lines, .end = blob_size(d->lines)};
    *size = d->head.len + d->lines_left.end;
    return rc;
}

static ssize_t read_index(void *ctx, void *out, size_t max, struct error *err)
{
    struct dali *d = ctx;
    struct source from =
        d->head_left.len > 0 ? source_span(&d->head_left) : source_blob(&d->lines_left);
    return from.read(from.ctx, out, max, err);
}

struct source dali_source(struct dali *d)
{
    return (struct source){.read = read_index, .ctx = d};
}
