/* Any head: an operation whose row fits, with names within their limits; or an error with words. */
#include "s3/op.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "common/utf8.h"
#include "s3/testing/request_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_call(const struct s3_request *r, const struct s3_call *c)
{
    const struct s3_op *op = s3_op(c->op);
    assert(strcmp(op->method, r->method) == 0);
    assert((op->level == S3_LEVEL_SERVICE) == (*c->bucket == '\0'));
    assert((op->level == S3_LEVEL_OBJECT) == (*c->key != '\0'));
    assert(strlen(c->bucket) <= S3_BUCKET_MAX && utf8_valid(c->bucket, strlen(c->bucket)));
    assert(strlen(c->key) <= S3_KEY_MAX && utf8_valid(c->key, strlen(c->key)));
}

/* The canonical form of a query is its own canonical form. */
static void check_query(const struct s3_query *q, struct arena *a)
{
    _cleanup_buf_ struct buf once = BUF_INIT, twice = BUF_INIT;
    struct s3_query again;
    s3_query_canonical(q, "", a, &once);
    assert(s3_query_parse(buf_str(&once), a, &again, NULL) == S3_OK);
    s3_query_canonical(&again, "", a, &twice);
    assert(strcmp(buf_str(&once), buf_str(&twice)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const domains[] = {"s3.example.com"};
    static const struct s3_place places[] = {
        {.prefix = "", .domains = domains, .domain_count = 1},
        {.prefix = "/s3"},
    };
    _cleanup_arena_ struct arena *a = arena_new(1024);
    const struct s3_request r = request_text(a, (const char *)data, size);
    for (size_t i = 0; i < 2; i++) {
        struct s3_call call;
        struct s3_failure why = {S3_OK, ""};
        enum s3_error e = s3_op_find(&r, &places[i], a, &call, &why);
        assert(e == why.error && (e == S3_OK) == (why.message[0] == '\0'));
        if (e == S3_OK) {
            check_call(&r, &call);
            check_query(&call.query, a);
        }
    }
    return 0;
}
