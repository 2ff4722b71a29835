#include "mount/bucket/errors.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void results_become_errno(void **state)
{
    (void)state;
    static const struct {
        struct dfc_error err;
        int errnum;
    } rows[] = {
        {{.result = DFC_NOT_FOUND, .code = "object_not_found"}, ENOENT},
        {{.result = DFC_NOT_FOUND, .code = "bucket_not_found"}, ESTALE},
        {{.result = DFC_INVALID}, ENOENT},
        {{.result = DFC_FAILED, .code = "no_space"}, ENOSPC},
        {{.result = DFC_DENIED, .code = "quota_exceeded"}, EDQUOT},
        {{.result = DFC_INVALID, .code = "too_large"}, EFBIG},
        {{.result = DFC_DENIED}, EACCES},
        {{.result = DFC_PRECONDITION}, ESTALE},
        {{.result = DFC_CANCELLED}, EINTR},
        {{.result = DFC_TIMED_OUT}, ETIMEDOUT},
        {{.result = DFC_UNREACHABLE}, EIO},
        {{.result = DFC_CORRUPT}, EIO},
        {{.result = DFC_FAILED}, EIO},
        {{.result = DFC_LOCAL}, EIO},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(errors_of(&rows[i].err), -rows[i].errnum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(results_become_errno)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
