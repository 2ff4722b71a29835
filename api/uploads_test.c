/* dfc_upload_* against api/testing/mock_cluster.py. */
#include "api/dfc.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/testing/mock_child.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"

#define PART (5u << 20)

static struct dfc_client *client;
static struct dfc_error err;
static char *upload;

static int setup(void **state)
{
    (void)state;
    mock_steer("DELETE", "/mock", NULL, NULL);
    const struct dfc_client_options options = {.endpoints = mock_endpoint, .attempts = 3};
    return dfc_client_open(&options, &client, &err) == DFC_OK &&
                   dfc_bucket_create(client, "b", NULL, &err) == DFC_OK &&
                   dfc_upload_begin(client, "b", "d/o", NULL, &upload, &err) == DFC_OK
               ? 0
               : -1;
}

static int teardown(void **state)
{
    (void)state;
    dfc_free(upload);
    dfc_client_close(client);
    return 0;
}

/* ---- a part of equal bytes ---- */

struct bytes {
    char byte;
    size_t size, at;
};

static ptrdiff_t bytes_read(void *context, void *to, size_t room)
{
    struct bytes *b = context;
    size_t n = b->size - b->at < room ? b->size - b->at : room;
    memset(to, b->byte, n);
    b->at += n;
    return (ptrdiff_t)n;
}

static int bytes_rewind(void *context)
{
    struct bytes *b = context;
    b->at = 0;
    return 0;
}

static int send_part(uint32_t number, char byte, size_t size, const struct dfc_put_options *o,
                     char **tag)
{
    struct bytes b = {.byte = byte, .size = size};
    const struct dfc_source source = {bytes_read, bytes_rewind, &b, (int64_t)size};
    return dfc_upload_part(client, "b", "d/o", upload, number, &source, o, tag, &err);
}

static void has_bytes(size_t first, size_t last)
{
    void *data;
    size_t size;
    assert_int_equal(dfc_get_memory(client, "b", "d/o", NULL, &data, &size, NULL, &err), DFC_OK);
    assert_int_equal(size, first + last);
    assert_memory_equal(data, "1", 1);
    assert_memory_equal((char *)data + first, "2", 1);
    dfc_free(data);
}

/* ---- the tests ---- */

static void count_progress(void *context, uint64_t done, uint64_t total)
{
    (void)total;
    *(uint64_t *)context = done;
}

static void parts_become_the_object(void **state)
{
    (void)state;
    char *tags[2];
    uint64_t moved = 0;
    struct dfc_object_info *info;
    const struct dfc_put_options counted = {.progress = count_progress, .progress_context = &moved};
    assert_int_equal(send_part(2, '2', 7, &counted, &tags[1]), DFC_OK);
    assert_int_equal(moved, 7);
    assert_int_equal(send_part(1, 'x', 3, NULL, NULL), DFC_OK); /* the next one replaces it */
    assert_int_equal(send_part(1, '1', PART, NULL, &tags[0]), DFC_OK);
    assert_string_equal(tags[1], "79d886010186eb60e3611cd4a5d0bcae"); /* md5 of 2222222 */
    _cleanup_free_ char *parts = xprintf(
        "[{\"part\": 1, \"tag\": \"%s\"}, {\"part\": 2, \"tag\": \"%s\"}]", tags[0], tags[1]);
    assert_int_equal(dfc_upload_complete(client, "b", "d/o", upload, parts, NULL, &info, &err),
                     DFC_OK);
    assert_int_equal(info->size, PART + 7);
    assert_true(info->version[0] != '\0' && info->etag[0] == '"');
    has_bytes(PART, 7);
    struct dfc_object_info *again;
    assert_int_equal(dfc_upload_complete(client, "b", "d/o", upload, parts, NULL, &again, &err),
                     DFC_OK);
    assert_string_equal(again->etag, info->etag);
    dfc_object_info_free(again);
    dfc_object_info_free(info);
    dfc_free(tags[0]);
    dfc_free(tags[1]);
}

static void a_begin_has_the_metadata(void **state)
{
    (void)state;
    char *id;
    const struct dfc_meta meta[] = {{"step", "7"}, {"bad name", "x"}};
    struct dfc_put_options o = {.content_type = "a/b", .meta = meta, .meta_count = 2};
    assert_int_equal(dfc_upload_begin(client, "b", "k", &o, &id, &err), DFC_INVALID);
    o.meta_count = 1;
    assert_int_equal(dfc_upload_begin(client, "b", "k", &o, &id, &err), DFC_OK);
    assert_true(mock_logged("dfc-meta-step") > 0);
    dfc_free(id);
    assert_int_equal(dfc_upload_begin(client, "absent", "k", NULL, &id, &err), DFC_NOT_FOUND);
    assert_string_equal(err.code, "bucket_not_found");
}

static void parts_and_uploads_are_listed(void **state)
{
    (void)state;
    char *text;
    assert_int_equal(send_part(3, 'c', 4, NULL, NULL), DFC_OK);
    assert_int_equal(send_part(9, 'c', 5, NULL, NULL), DFC_OK);
    assert_int_equal(dfc_upload_parts(client, "b", "d/o", upload, 3, &text, &err), DFC_OK);
    assert_non_null(strstr(text, "\"part\": 9"));
    assert_null(strstr(text, "\"part\": 3"));
    dfc_free(text);
    assert_int_equal(dfc_upload_list(client, "b", NULL, NULL, NULL, &text, &err), DFC_OK);
    assert_non_null(strstr(text, upload));
    dfc_free(text);
    assert_int_equal(dfc_upload_list(client, "b", "d/", "d/o", upload, &text, &err), DFC_OK);
    assert_null(strstr(text, upload));
    dfc_free(text);
}

static void a_completion_has_conditions(void **state)
{
    (void)state;
    char *tag;
    assert_int_equal(send_part(1, '1', 3, NULL, &tag), DFC_OK);
    _cleanup_free_ char *parts = xprintf("[{\"part\": 1, \"tag\": \"%s\"}]", tag);
    dfc_free(tag);
    assert_int_equal(dfc_put_memory(client, "b", "d/o", "old", 3, NULL, NULL, &err), DFC_OK);
    const struct dfc_put_options absent = {.if_absent = true};
    assert_int_equal(dfc_upload_complete(client, "b", "d/o", upload, parts, &absent, NULL, &err),
                     DFC_PRECONDITION);
    assert_int_equal(dfc_upload_complete(client, "b", "d/o", upload, "[]", NULL, NULL, &err),
                     DFC_INVALID);
    assert_int_equal(dfc_upload_complete(client, "b", "d/o", upload, parts, NULL, NULL, &err),
                     DFC_OK);
}

static void what_is_gone_is_not_found(void **state)
{
    (void)state;
    char *text;
    assert_int_equal(dfc_upload_abort(client, "b", "d/o", upload, &err), DFC_OK);
    assert_int_equal(dfc_upload_abort(client, "b", "d/o", upload, &err), DFC_NOT_FOUND);
    assert_string_equal(err.code, "not_found");
    assert_int_equal(send_part(1, '1', 3, NULL, &text), DFC_NOT_FOUND);
    assert_int_equal(dfc_upload_parts(client, "b", "d/o", "", 0, &text, &err), DFC_INVALID);
}

static void a_part_is_sent_again(void **state)
{
    (void)state;
    mock_plan("[{\"at\": \"target\", \"method\": \"PUT\", \"do\": \"drop\", \"times\": 2}]");
    assert_int_equal(send_part(1, '1', PART, NULL, NULL), DFC_OK);
}

static void a_damaged_part_is_seen(void **state)
{
    (void)state;
    const struct dfc_put_options unchecked = {.no_checksum = true};
    const char *damaged = "[{\"at\": \"target\", \"method\": \"PUT\", \"do\": \"damage\"}]";
    mock_plan(damaged);
    assert_int_equal(send_part(1, '1', 100, NULL, NULL), DFC_CORRUPT);
    mock_plan(damaged);
    assert_int_equal(send_part(1, '1', 100, &unchecked, NULL), DFC_OK);
    mock_plan("[{\"at\": \"target\", \"method\": \"PUT\", \"do\": \"garbage\"}]");
    assert_int_equal(send_part(1, '1', 100, NULL, NULL), DFC_FAILED);
}

int main(void)
{
#define EACH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        EACH(parts_become_the_object),      EACH(a_begin_has_the_metadata),
        EACH(parts_and_uploads_are_listed), EACH(a_completion_has_conditions),
        EACH(what_is_gone_is_not_found),    EACH(a_part_is_sent_again),
        EACH(a_damaged_part_is_seen),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("libdfc uploads", tests, mock_start, mock_stop);
}
