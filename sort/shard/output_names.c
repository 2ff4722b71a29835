#include "sort/shard/output_names.h"

#include <string.h>

#include "sort/shard/format.h"

#define DALI ".idx"
#define SHARD ".tar" /* of those that have an index */

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name);
    size_t end_len = strlen(end);
    return len > end_len && strcmp(name + len - end_len, end) == 0;
}

static void replace_end(const char *name, const char *old, const char *new, struct buf *out)
{
    buf_append(out, name, strlen(name) - strlen(old));
    buf_puts(out, new);
}

void output_dali_name(const char *shard, struct buf *out)
{
    replace_end(shard, SHARD, DALI, out);
}

bool output_is_named(const struct sort_spec *spec, const char *name)
{
    _cleanup_(buf_done)
    struct buf shard = BUF_INIT;
    if (spec->dali_indexes && ends_with(name, DALI))
        replace_end(name, DALI, SHARD, &shard);
    else
        buf_puts(&shard, name);
    return template_index(spec->output_template, buf_str(&shard)) != UINT64_MAX;
}

const char *output_content_type(const struct sort_spec *spec, const char *name)
{
    if (spec->wids_index != NULL && strcmp(name, spec->wids_index) == 0)
        return "application/json";
    return spec->dali_indexes && ends_with(name, DALI) ? "text/plain"
                                                       : spec->output_shards->content_type;
}
