#include "proxy/state_file.h"

#include <string.h>

#include "common/jsonx.h"
#include "io/file.h"

#define STATE_FILE_MAX ((size_t)1 << 30)

int state_file_write(const char *path, const struct cluster_state *s, struct error *err)
{
    _cleanup_json_ json_t *doc = state_to_json(s);
    _cleanup_free_ char *text = json_text(doc);
    return file_replace(path, text, strlen(text), 0644, err);
}

int state_file_read(const char *path, struct cluster_state **out, struct error *err)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    _cleanup_json_ json_t *doc = NULL;
    int r = file_read_all(path, STATE_FILE_MAX, &text, err);
    if (r != 0)
        return r;
    if ((r = json_parse(buf_str(&text), text.len, &doc, err)) != 0 ||
        (r = state_from_json(doc, out, err)) != 0)
        error_wrap(err, "'%s'", path);
    return r;
}
