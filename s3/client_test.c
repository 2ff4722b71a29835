/* Requests that a real client has sent (tests/reference/s3_record.py), through all steps that a
 * server takes: operation, signature, body, checksum, document. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/parse.h"
#include "s3/chunked.h"
#include "s3/uploads/complete_body.h"
#include "s3/cors.h"
#include "s3/delete_body.h"
#include "s3/lifecycle.h"
#include "s3/list.h"
#include "s3/location.h"
#include "s3/op.h"
#include "s3/sum.h"
#include "s3/testing/request_text.h"
#include "s3/testing/vectors.h"

#define SECRET "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

static const char *const domains[] = {"s3.example.com"};
static const struct s3_place place = {.prefix = "", .domains = domains, .domain_count = 1};

struct sent {
    struct arena *arena;
    struct s3_request request;
    struct s3_call call;
    struct s3_credential credential;
    unsigned char key[AUTH_MAC_BYTES];
    const char *raw; /* body */
    size_t raw_len;
    struct buf body; /* decoded */
};

static void find_operation(struct sent *s, json_t *row)
{
    struct s3_failure why = {S3_OK, ""};
    if (s3_op_find(&s->request, &place, s->arena, &s->call, &why) != S3_OK)
        fail_msg("%s: %s", vectors_text(row, "operation"), why.message);
    const struct s3_op *op = s3_op(s->call.op);
    assert_string_equal(op->name, vectors_text(row, "operation"));
    assert_string_equal(s->call.key, vectors_text(row, "key"));
    assert_string_equal(s->call.bucket, op->level == S3_LEVEL_SERVICE ? "" : "bucket");
    assert_int_equal(op->answer, S3_OK);
}

static void verify(struct sent *s)
{
    struct s3_credential *c = &s->credential;
    struct s3_failure why = {S3_OK, ""};
    long long now_s = 0;
    enum s3_error e = s3_verify_read(&s->request, &s->call.query, s->arena, c, &why);
    if (e == S3_OK) {
        assert_int_not_equal(c->signing, S3_SIGNED_NOT);
        assert_true(sigv4_parse_time(c->time, &now_s));
        sigv4_signing_key(SECRET, c->time, c->region, c->service, s->key);
        e = s3_verify_scope(c, "us-east-1", now_s, &why);
    }
    if (e == S3_OK)
        e = s3_verify_signature(&s->request, &s->call.query, c, s->key, s->arena, &why);
    if (e != S3_OK)
        fail_msg("%s: %s", s3_op(s->call.op)->name, why.message);
}

static void decode_chunks(struct sent *s, struct s3_sum_asked *asked)
{
    struct s3_chunked_spec spec = {.credential = &s->credential,
                                   .trailers = s3_header(&s->request, "x-amz-trailer")};
    _cleanup_(s3_chunked_freep)
    struct s3_chunked *c = NULL;
    const char *length = s3_header(&s->request, "x-amz-decoded-content-length"), *piece;
    size_t piece_len;
    assert_int_equal(parse_u64(length, &spec.decoded_length, NULL), 0);
    assert_int_equal(s3_chunked_new(&spec, &c, NULL), S3_OK);
    while (s->raw_len > 0) {
        assert_int_equal(s3_chunked_decode(c, &s->raw, &s->raw_len, &piece, &piece_len, NULL),
                         S3_OK);
        if (piece_len > 0)
            buf_append(&s->body, piece, piece_len);
    }
    assert_int_equal(s3_chunked_end(c, NULL), S3_OK);
    assert_true(asked->is_asked && asked->is_in_trailer);
    const char *sum = s3_chunked_trailer(c, s3_sum_header(asked->value.type));
    assert_true(s3_sum_parse(asked->value.type, sum, &asked->value));
}

static void check_sum(struct sent *s, const struct s3_sum_asked *asked)
{
    _cleanup_(s3_sum_freep)
    struct s3_sum *sum = s3_sum_new(asked->value.type);
    struct s3_sum_value value;
    s3_sum_update(sum, buf_str(&s->body), s->body.len);
    s3_sum_final(sum, &value);
    assert_true(s3_sum_equal(&value, &asked->value));
}

static void read_body(struct sent *s)
{
    struct s3_sum_asked asked;
    char hex[AUTH_HEX_MAX];
    assert_int_equal(s3_sum_asked(&s->request, &asked, NULL), S3_OK);
    if (s->credential.payload == S3_PAYLOAD_CHUNKS_TRAILER) {
        decode_chunks(s, &asked);
    } else {
        buf_append(&s->body, s->raw, s->raw_len);
        auth_digest(buf_str(&s->body), s->body.len, hex);
        if (s->credential.payload == S3_PAYLOAD_DIGEST)
            assert_string_equal(hex, s->credential.payload_text);
    }
    if (asked.is_asked)
        check_sum(s, &asked);
}

/* What of the request is a document, or a list. */
static enum s3_error read_document(struct sent *s)
{
    const char *body = buf_str(&s->body);
    union {
        struct s3_delete keys;
        struct s3_complete parts;
        struct s3_tags tags;
        struct s3_cors cors;
        struct s3_lifecycle lifecycle;
        struct s3_list_asked list;
    } out;
    switch (s->call.op) {
    case S3_OP_CreateBucket:
        return s3_location_check(body, s->body.len, "us-east-1", NULL);
    case S3_OP_DeleteObjects:
        return s3_delete_parse(body, s->body.len, s->arena, &out.keys, NULL);
    case S3_OP_CompleteMultipartUpload:
        return s3_complete_parse(body, s->body.len, s->arena, &out.parts, NULL);
    case S3_OP_PutObjectTagging:
        return s3_tags_parse(body, s->body.len, S3_OBJECT_TAGS_MAX, s->arena, &out.tags, NULL);
    case S3_OP_PutBucketCors:
        return s3_cors_parse(body, s->body.len, s->arena, &out.cors, NULL);
    case S3_OP_PutBucketLifecycleConfiguration:
        return s3_lifecycle_parse(body, s->body.len, s->arena, &out.lifecycle, NULL);
    case S3_OP_ListObjects:
    case S3_OP_ListObjectsV2:
        return s3_list_ask(&s->call.query,
                           s->call.op == S3_OP_ListObjectsV2 ? S3_LIST_V2 : S3_LIST_V1, &out.list,
                           NULL);
    default:
        return S3_OK;
    }
}

static void requests_of_botocore(void **state)
{
    size_t i;
    json_t *row;
    json_array_foreach(vectors_section(state, "requests"), i, row)
    {
        _cleanup_arena_ struct arena *a = arena_new(4096);
        const char *text = vectors_text(row, "request");
        struct sent s = {.arena = a, .request = request_text(a, text, strlen(text))};
        s.raw = vectors_bytes(row, "body", a, &s.raw_len);
        find_operation(&s, row);
        verify(&s);
        read_body(&s);
        assert_int_equal(read_document(&s), S3_OK);
        buf_done(&s.body);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(requests_of_botocore)};
    if (argc != 2)
        return 2;
    vectors_path = argv[1];
    return cmocka_run_group_tests(tests, vectors_load, vectors_drop);
}
