/* Which row of the table takes a call. */
#include "target/node/write_path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "target/node/call.h"

struct row {
    enum put_kind kind;
    bool passes;
    uint32_t copies;
    enum write_policy policy; /* of the backend; WRITE_POLICY_NONE: it has none */
    const struct write_path *path;
};

static const struct row rows[] = {
    {PUT_CLIENT, false, 1, WRITE_POLICY_NONE, &one_path},
    {PUT_JOB, false, 1, WRITE_POLICY_NONE, &one_path},
    {PUT_CLIENT, false, 2, WRITE_POLICY_NONE, &copies_path},
    {PUT_JOB, false, 2, WRITE_POLICY_NONE, &copies_path},
    {PUT_CLIENT, true, 2, WRITE_POLICY_NONE, &passed_path},
    {PUT_STAGE, false, 2, WRITE_POLICY_NONE, &staged_path},
    {PUT_MOVE, false, 1, WRITE_POLICY_NONE, &moved_path},
    {PUT_MOVE, false, 2, WRITE_POLICY_NONE, &moved_path},
    {PUT_HOLLOW, false, 2, WRITE_POLICY_NONE, &moved_path},
    {PUT_CLIENT, false, 1, WRITE_POLICY_THROUGH, &through_path},
    {PUT_CLIENT, false, 1, WRITE_POLICY_BACK, &back_path},
    {PUT_JOB, false, 1, WRITE_POLICY_BACK, &one_path},
    {PUT_MOVE, false, 1, WRITE_POLICY_BACK, &moved_path},
};

static void the_first_row_that_takes_a_call_serves_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        struct bucket b = {.props = {.copies = r->copies, .write_policy = r->policy}};
        if (r->policy != WRITE_POLICY_NONE)
            b.props.backend = "s3://b";
        const struct object_call call = {.bucket = &b,
                                         .put = {.kind = r->kind, .passes = r->passes}};
        assert_string_equal(write_path_of(&call)->name, r->path->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_row_that_takes_a_call_serves_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
