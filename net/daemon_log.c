#include "net/daemon_log.h"

#include <string.h>

#include "common/buf.h"
#include "common/jsonx.h"
#include "net/log_tail.h"
#include "common/parse.h"

static json_t *lines_json(struct buf *text)
{
    json_t *list = json_array();
    char *rest;
    buf_putc(text, '\0');
    for (char *line = strtok_r(text->data, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        json_array_append_new(list, json_string_escaped(line));
    return list;
}

void daemon_log_begin(struct http_request *req)
{
    const char *given = http_query(req, "after");
    uint64_t after = 0, first;
    struct error err = ERROR_INIT;
    if (given != NULL && parse_u64(given, &after, &err) != 0) {
        error_recode(&err, E_INVALID, "parameter 'after'");
        http_reply_error(req, &err);
        return;
    }
    _cleanup_buf_ struct buf text = BUF_INIT;
    uint64_t next = log_tail_read(after, &text, &first);
    uint64_t missed = after + 1 < first ? first - after - 1 : 0;
    _cleanup_json_ json_t *doc =
        json_pack("{s:o, s:I, s:I, s:s}", "lines", lines_json(&text), "next", (json_int_t)next,
                  "missed", (json_int_t)missed, "boot", log_tail_boot());
    http_reply_json(req, 200, doc);
}
