#include "sort/index/wids.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/jsonx.h"

static int append(struct blob *text, const char *more, struct error *err)
{
    return blob_append(text, more, strlen(more), err);
}

/* `name` as seen from the directory of `index`. */
static void put_url(const char *index, const char *name, struct buf *out)
{
    size_t common = 0; /* directories of both */
    for (size_t i = 0; index[i] != '\0' && index[i] == name[i]; i++) {
        if (index[i] == '/')
            common = i + 1;
    }
    for (const char *at = index + common; (at = strchr(at, '/')) != NULL; at++)
        buf_puts(out, "../");
    buf_puts(out, name + common);
}

int wids_begin(struct blob *text, struct error *err)
{
    return append(text,
                  "{\"__kind__\": \"wids-shard-index-v1\", \"wids_version\": 1, "
                  "\"shardlist\": [\n",
                  err);
}

int wids_add(struct blob *text, const char *index, const struct wids_shard *s, bool first,
             struct error *err)
{
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    _cleanup_(buf_done)
    struct buf line = BUF_INIT;
    put_url(index, s->name, &url);
    _cleanup_json_ json_t *value = json_string(buf_str(&url));
    _cleanup_free_ char *quoted = json_text(value);
    buf_printf(&line, "%s{\"url\": %s, \"nsamples\": %llu", first ? "" : ",\n", quoted,
               (unsigned long long)s->samples);
    if (s->bytes != SORT_SIZE_UNKNOWN)
        buf_printf(&line, ", \"filesize\": %llu", (unsigned long long)s->bytes);
    buf_puts(&line, "}");
    return append(text, buf_str(&line), err);
}

int wids_end(struct blob *text, struct error *err)
{
    return append(text, "\n]}\n", err);
}
