#include "mount/group/request.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cache/piece.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/parse.h"

/* A URL's query, decoded. */
struct parameters {
    size_t count;
    struct {
        char name[32], value[128];
    } all[16];
};

static void parameters_of(const char *url, struct parameters *p)
{
    char *save = NULL;
    _cleanup_free_ char *text = xstrdup(strchr(url, '?') + 1);
    p->count = 0;
    for (char *at = strtok_r(text, "&", &save); at != NULL; at = strtok_r(NULL, "&", &save)) {
        char *value = strchr(at, '=');
        *value++ = '\0';
        snprintf(p->all[p->count].name, sizeof p->all[0].name, "%s", at);
        assert_true(parse_url_unescape(value, strlen(value), p->all[p->count].value, NULL) >= 0);
        p->count++;
    }
}

static const char *query(void *context, const char *name)
{
    struct parameters *p = context;
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->all[i].name, name) == 0)
            return p->all[i].value;
    }
    return NULL;
}

static const struct group_request one = {
    .scope = "7/1700000000000",
    .bucket = "b",
    .object = "a b/../%c?&=\xc3\xa9\n",
    .etag = "\"1.2\"",
    .checksum = "xxh3:0123456789abcdef",
    .size = 9u << 20,
    .offset = 5u << 20,
    .length = 1u << 20,
    .how = GROUP_CACHED,
};

static int again(const struct group_request *r, struct group_request *out, struct parameters *p)
{
    _cleanup_free_ char *url = group_request_url("http://h:1", r);
    parameters_of(url, p);
    return group_request_parse(query, p, out, NULL);
}

static void a_request_arrives_as_it_was(void **unused)
{
    (void)unused;
    struct group_request r;
    struct parameters p;
    assert_int_equal(again(&one, &r, &p), 0);
    assert_string_equal(r.scope, one.scope);
    assert_string_equal(r.bucket, one.bucket);
    assert_string_equal(r.object, one.object);
    assert_string_equal(r.etag, one.etag);
    assert_string_equal(r.checksum, one.checksum);
    assert_int_equal(r.size, one.size);
    assert_int_equal(r.offset, one.offset);
    assert_int_equal(r.length, one.length);
    assert_int_equal(r.how, one.how);
}

static void a_missing_parameter_is_told(void **unused)
{
    (void)unused;
    struct parameters p, fewer;
    struct group_request r;
    again(&one, &r, &p);
    for (size_t i = 0; i < p.count; i++) {
        struct error err = ERROR_INIT;
        fewer = p;
        snprintf(fewer.all[i].name, sizeof fewer.all[i].name, "other");
        assert_int_equal(group_request_parse(query, &fewer, &r, &err), E_INVALID);
        assert_non_null(strstr(err.message, p.all[i].name));
    }
}

static void a_range_is_within_one_piece(void **unused)
{
    (void)unused;
    struct group_request r = one, out;
    struct parameters p;
    r.offset = 8u << 20;
    assert_int_equal(again(&r, &out, &p), 0); /* to the last byte */
    r.length++;
    assert_int_equal(again(&r, &out, &p), E_INVALID);
    r.offset = PIECE_BYTES - 1;
    r.length = 1;
    assert_int_equal(again(&r, &out, &p), 0);
    r.length = 2;
    assert_int_equal(again(&r, &out, &p), E_INVALID);
    r.length = 0;
    assert_int_equal(again(&r, &out, &p), E_INVALID);
    r.offset = r.length = UINT64_MAX;
    assert_int_equal(again(&r, &out, &p), E_INVALID);
    r = one;
    r.etag = "W/\"1\"";
    assert_int_equal(again(&r, &out, &p), E_INVALID);
}

static void a_block_needs_no_tag(void **unused)
{
    (void)unused;
    struct group_request r = one, out;
    struct parameters p;
    r.etag = "";
    assert_int_equal(again(&r, &out, &p), E_INVALID);
    r.checksum = "sums:0123456789abcdef";
    assert_int_equal(again(&r, &out, &p), 0);
    const struct piece_id asked = group_request_piece(&r), heard = group_request_piece(&out);
    assert_true(piece_id_equal(&asked, &heard));
    assert_int_equal(asked.index, 1);
    r.checksum = "sums:0123456789abcdee";
    const struct piece_id other = group_request_piece(&r);
    assert_false(piece_id_equal(&asked, &other));
}

static void the_sum_is_of_every_byte_and_of_its_place(void **unused)
{
    (void)unused;
    enum { SIZE = 3 * PIECE_PART + 100 };
    char first[GROUP_SUM_CHARS], other[GROUP_SUM_CHARS];
    _cleanup_free_ char *data = xcalloc(1, SIZE);
    group_sum(0, data, SIZE, first);
    assert_int_equal(strlen(first), GROUP_SUM_CHARS - 1);
    for (size_t at = 0; at < SIZE; at += 9999) {
        data[at] ^= 4;
        group_sum(0, data, SIZE, other);
        assert_string_not_equal(first, other);
        data[at] ^= 4;
    }
    group_sum(0, data, SIZE - 1, other);
    assert_string_not_equal(first, other);
    group_sum(PIECE_BYTES, data, SIZE, other);
    assert_string_equal(first, other);
    /* As a disk cache has the sums of a piece. */
    uint64_t sums[4];
    for (size_t i = 0; i < 4; i++)
        sums[i] = piece_sum(data + i * PIECE_PART, i < 3 ? PIECE_PART : 100);
    snprintf(other, sizeof other, "\"%016" PRIx64 "\"", piece_sum(sums, sizeof sums));
    assert_string_equal(first, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_arrives_as_it_was),
        cmocka_unit_test(a_missing_parameter_is_told),
        cmocka_unit_test(a_range_is_within_one_piece),
        cmocka_unit_test(a_block_needs_no_tag),
        cmocka_unit_test(the_sum_is_of_every_byte_and_of_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
