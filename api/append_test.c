/* dfc_append_source against a mock of a cluster. */
#include "api/dfc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/testing/mock_child.h"

enum { BLOCK = 512, IDLE_MS = 300 };

static struct dfc_client *client;
static struct dfc_error err;

struct tar {
    unsigned char data[3 * BLOCK]; /* an empty file, and the end */
    size_t at;
};

static void make(struct tar *t, const char *name)
{
    unsigned sum = 0;
    *t = (struct tar){.at = 0};
    snprintf((char *)t->data, 100, "%s", name);
    memcpy(t->data + 100, "0000644", 8);
    memcpy(t->data + 124, "00000000000", 12);
    memcpy(t->data + 136, "00000000000", 12);
    memset(t->data + 148, ' ', 8);
    t->data[156] = '0';
    memcpy(t->data + 257, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += t->data[i];
    snprintf((char *)t->data + 148, 7, "%06o", sum);
}

static ptrdiff_t tar_read(void *context, void *to, size_t room)
{
    struct tar *t = context;
    size_t left = sizeof t->data - t->at, n = left < room ? left : room;
    memcpy(to, t->data + t->at, n);
    t->at += n;
    return (ptrdiff_t)n;
}

static int tar_rewind(void *context)
{
    struct tar *t = context;
    t->at = 0;
    return 0;
}

static int append(const char *name, const struct dfc_append_options *options)
{
    struct tar t;
    make(&t, name);
    const struct dfc_source source = {tar_read, tar_rewind, &t, sizeof t.data};
    return dfc_append_source(client, "b", "k.tar", &source, options, NULL, &err);
}

static int setup(void **state)
{
    (void)state;
    const struct dfc_client_options options = {.endpoints = mock_endpoint,
                                               .idle_timeout_ms = IDLE_MS};
    struct tar t;
    mock_steer("DELETE", "/mock", NULL, NULL);
    make(&t, "first");
    assert_int_equal(dfc_client_open(&options, &client, &err), DFC_OK);
    assert_int_equal(dfc_bucket_create(client, "b", NULL, &err), DFC_OK);
    assert_int_equal(dfc_put_memory(client, "b", "k.tar", t.data, sizeof t.data, NULL, NULL, &err),
                     DFC_OK);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dfc_client_close(client);
    return 0;
}

/* The target makes the archive anew before it replies. */
static void a_reply_may_take_long(void **state)
{
    (void)state;
    mock_plan("[{\"at\": \"target\", \"method\": \"PUT\", \"do\": \"stall\", \"seconds\": 1}]");
    assert_int_equal(append("n", NULL), DFC_OK);
    assert_int_equal(mock_logged("members=tar"), 2); /* at the proxy and at the target */
    mock_plan("[{\"at\": \"target\", \"method\": \"HEAD\", \"do\": \"stall\", \"seconds\": 1, "
              "\"times\": 99}]");
    assert_int_equal(dfc_head(client, "b", "k.tar", NULL, &err), DFC_TIMED_OUT);
}

static void conditions_and_names(void **state)
{
    (void)state;
    struct dfc_append_options options = {.if_match = "\"another\""};
    assert_int_equal(append("n", &options), DFC_PRECONDITION);
    assert_int_equal(append("n", NULL), DFC_OK);
    assert_int_equal(append("n", NULL), DFC_CONFLICT);
    assert_string_equal(err.code, "member_exists");
    options = (struct dfc_append_options){.overwrite = true};
    assert_int_equal(append("n", &options), DFC_OK);
    const struct dfc_source once = {tar_read, NULL, NULL, -1};
    assert_int_equal(dfc_append_source(client, "b", "k.tar", &once, NULL, NULL, &err), DFC_INVALID);
}

/* What it has done itself is not told as another client's. */
static void a_try_that_broke_off(void **state)
{
    (void)state;
    const char *const acts = "[{\"at\": \"target\", \"method\": \"PUT\", \"do\": \"act\"}]";
    mock_plan(acts);
    assert_int_equal(append("n", NULL), DFC_FAILED);
    assert_string_equal(err.code, "in_doubt");
    struct dfc_object_info *info;
    assert_int_equal(dfc_head(client, "b", "k.tar", &info, &err), DFC_OK);
    const struct dfc_append_options options = {.if_match = info->etag, .overwrite = true};
    mock_plan(acts);
    assert_int_equal(append("m", &options), DFC_FAILED);
    assert_string_equal(err.code, "in_doubt");
    dfc_object_info_free(info);
    mock_plan(acts);
    const struct dfc_append_options again = {.overwrite = true};
    assert_int_equal(append("m", &again), DFC_UNREACHABLE); /* once */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_reply_may_take_long, setup, teardown),
        cmocka_unit_test_setup_teardown(conditions_and_names, setup, teardown),
        cmocka_unit_test_setup_teardown(a_try_that_broke_off, setup, teardown),
    };
    return cmocka_run_group_tests(tests, mock_start, mock_stop);
}
