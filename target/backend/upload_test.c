/* Sizes of parts, and the entity tag that S3 gives what came in parts. */
#include "target/backend/upload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void parts_are_never_too_many(void **unused)
{
    (void)unused;
    static const struct {
        uint64_t size, wanted, part;
    } rows[] = {
        {1, 5, 5},
        {50000, 5, 5},
        {50001, 5, 6},
        {UINT64_C(10) << 40, 16 << 20, 1099511628},
        {UINT64_C(100) << 30, 16 << 20, 16 << 20},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t part = upload_part_bytes(rows[i].size, rows[i].wanted);
        assert_int_equal(part, rows[i].part);
        assert_true((rows[i].size + part - 1) / part <= UPLOAD_PARTS_MAX);
    }
}

/* md5(md5("a") + md5("b")), by another program. */
static void tags_of_parts(void **unused)
{
    (void)unused;
    struct backend_part parts[2];
    char etag[BACKEND_ETAG_MAX];
    for (int i = 0; i < 2; i++) {
        struct checksum *sum = checksum_new(CHECKSUM_MD5);
        checksum_update(sum, i == 0 ? "a" : "b", 1);
        checksum_final(sum, &parts[i].md5);
        checksum_free(sum);
    }
    upload_parts_etag(parts, 2, etag);
    assert_string_equal(etag, "\"96e024ba2074fe77e8e965ba43a704be-2\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_never_too_many),
        cmocka_unit_test(tags_of_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
