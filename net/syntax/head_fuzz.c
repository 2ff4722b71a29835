/* A head in any pieces has the same end; what is parsed keeps to the rules; and a chunked body
 * gives the same bytes however it is cut. */
#include "net/syntax/head.h"

#include <assert.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "net/syntax/chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_fields(const struct head *head)
{
    for (size_t i = 0; i < head->count; i++) {
        assert(head->fields[i].name[0] != '\0' && strpbrk(head->fields[i].name, " :\r\n") == NULL);
        assert(strpbrk(head->fields[i].value, "\r\n") == NULL);
        assert(head_find(head, head->fields[i].name) != NULL);
    }
}

static void check_reply(const char *text, size_t len)
{
    _cleanup_free_ char *copy = xmalloc(len);
    memcpy(copy, text, len);
    struct head head;
    struct error err = ERROR_INIT;
    bool chunked;
    int64_t length;
    int rc = head_parse_reply(copy, len, &head, &err);
    assert(rc == 0 || (rc == err.code && err.message[0] != '\0'));
    if (rc != 0)
        return;
    assert(head.status >= 100 && head.status <= 599 && (head.minor == 0 || head.minor == 1));
    check_fields(&head);
    if (head_length(&head, &length, &chunked, &err) == 0)
        assert(length >= -1 && (length == -1 || !chunked));
}

static void check_head(const char *text, size_t len)
{
    size_t scanned = 0;
    size_t end = head_end(text, len, &scanned);
    size_t again = 0;
    scanned = 0;
    for (size_t n = 0; n <= len && again == 0; n++)
        again = head_end(text, n, &scanned);
    assert(end == again && end <= len);
    if (end == 0)
        return;
    check_reply(text, end);
    _cleanup_free_ char *copy = xmalloc(end);
    memcpy(copy, text, end);
    struct head head;
    struct error err = ERROR_INIT;
    int rc = head_parse(copy, end, &head, &err);
    assert(rc == 0 || (rc == err.code && err.message[0] != '\0'));
    if (rc != 0)
        return;
    assert(head.method[0] != '\0' && head.target[0] != '\0');
    assert(strpbrk(head.target, " \t\r\n") == NULL);
    check_fields(&head);
}

/* Returns where the body ends, 0 when it does not, or an error. */
static ssize_t decode(const char *text, size_t len, size_t step, struct buf *out)
{
    struct chunks c = CHUNKS_INIT;
    size_t at = 0;
    for (size_t have = 0; !chunk_ended(&c);) {
        if (at == have && have == len)
            return 0;
        if (at == have)
            have = len - have < step ? len : have + step;
        const char *data;
        size_t n;
        ssize_t framing = chunk_next(&c, text + at, have - at, &data, &n, NULL);
        if (framing < 0)
            return framing;
        assert((size_t)framing <= have - at && n <= have - at - (size_t)framing);
        at += (size_t)framing;
        if (n == 0)
            continue;
        buf_append(out, data, n);
        chunk_used(&c, n);
        at += n;
    }
    return (ssize_t)at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    check_head(text, size - 1);
    _cleanup_(buf_done)
    struct buf whole = BUF_INIT;
    _cleanup_(buf_done)
    struct buf pieces = BUF_INIT;
    ssize_t a = decode(text, size - 1, size, &whole);
    ssize_t b = decode(text, size - 1, 1 + data[0] % 16, &pieces);
    assert(a == b && whole.len == pieces.len);
    assert(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
    return 0;
}
