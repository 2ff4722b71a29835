/* Whatever the nodes reply, and whatever token a client sends, the page is JSON with a name in each
 * entry, or the reply is refused.  The input: lines; the first is the token, each further one the
 * reply to the next question. */
#include "proxy/list/expand.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 5, QUESTIONS = 20 };

struct lines {
    const char *at;
    size_t left;
};

static size_t next_line(struct lines *l, const char **line)
{
    const char *end = l->left > 0 ? memchr(l->at, '\n', l->left) : NULL;
    const size_t len = end != NULL ? (size_t)(end - l->at) : l->left;
    *line = l->at;
    l->at += len + (end != NULL);
    l->left -= len + (end != NULL);
    return len;
}

static int feed(struct list_expand *e, enum list_expand_step step, struct lines *l)
{
    struct error err = ERROR_INIT;
    const char *line;
    const size_t len = next_line(l, &line);
    if (step == EXPAND_MEMBERS && len == 0) {
        list_expand_no_members(e);
        return 0;
    }
    int code = step == EXPAND_PAGE ? list_expand_page(e, line, len, &err)
                                   : list_expand_members(e, line, len, &err);
    assert(code == 0 || err.message[0] != '\0');
    return code;
}

static void check_page(const struct list_expand *e)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    list_expand_put((struct list_expand *)e, &text);
    _cleanup_json_ json_t *page = json_loadb(text.data, text.len, 0, NULL);
    const json_t *entries = json_object_get(page, "entries");
    assert(page != NULL && json_is_array(entries) && json_is_string(json_object_get(page, "next")));
    for (size_t i = 0; i < json_array_size(entries); i++)
        assert(json_is_string(json_object_get(json_array_get(entries, i), "name")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lines l = {(const char *)data, size};
    struct list_expand_question q;
    enum list_expand_step step;
    const char *token;
    const size_t len = next_line(&l, &token);
    _cleanup_free_ char *first = xstrndup(token, len);
    _cleanup_(list_expand_freep)
    struct list_expand *e = list_expand_new(len > 0 ? first : NULL, LIMIT);
    for (int i = 0; i < QUESTIONS && (step = list_expand_next(e, &q)) != EXPAND_DONE; i++) {
        assert(q.limit > 0 && q.limit <= LIMIT && (step == EXPAND_PAGE || q.archive != NULL));
        if (feed(e, step, &l) != 0)
            return 0;
    }
    check_page(e);
    return 0;
}
