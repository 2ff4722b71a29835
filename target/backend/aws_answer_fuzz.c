/* Any bytes: keys that may stand in a header, with an end that is to come, or none; words that may
 * be printed, of a bounded length. */
#include "target/backend/aws_answer.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum { WORDS_MAX = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_key(const char *text, size_t room)
{
    size_t len = strnlen(text, room);
    for (size_t i = 0; i < len; i++) {
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    }
    return len > 0 && len < room;
}

static void check(int code, const struct aws_keys *k, int64_t end_ms)
{
    if (code == 0)
        assert(end_ms > 1000 && is_key(k->access, sizeof k->access) &&
               is_key(k->secret, sizeof k->secret) && is_key(k->token, sizeof k->token));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct aws_keys k;
    int64_t end_ms = 0;
    char session[AWS_SESSION_MAX], role[AWS_ROLE_MAX];
    struct buf words = BUF_INIT;
    check(aws_answer_xml(text, size, 1000, &k, &end_ms, NULL), &k, end_ms);
    check(aws_answer_json(text, size, 1000, &k, &end_ms, NULL), &k, end_ms);
    if (aws_answer_session(text, size, session, NULL) == 0)
        assert(is_key(session, sizeof session));
    if (aws_answer_role(text, size, role, NULL) == 0)
        assert(is_key(role, sizeof role) && strchr(role, '/') == NULL);
    aws_answer_words(text, size, &words);
    assert(words.len < WORDS_MAX);
    for (size_t i = 0; i < words.len; i++)
        assert(words.data[i] >= ' ' && words.data[i] <= '~');
    buf_done(&words);
    return 0;
}
