#include "cluster/placement/upload_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char example_text[] = "AAABk0dnAAABAgMEBQYHCAkKCwwAAAAAAAAA_w";

static struct upload_id example(void)
{
    return (struct upload_id){
        .time_ms = 0x19347670000, .random = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, .seed = 255};
}

static void ids_come_back(void **unused)
{
    (void)unused;
    struct upload_id id = example(), back;
    char text[UPLOAD_ID_CHARS + 1];
    assert_string_equal(upload_id_text(&id, text), example_text); /* of the disk and the wire */
    assert_int_equal(upload_id_parse(text, &back, NULL), 0);
    assert_true(back.time_ms == id.time_ms && back.seed == id.seed);
    assert_memory_equal(back.random, id.random, UPLOAD_RANDOM);
}

static void other_texts_are_refused(void **unused)
{
    (void)unused;
    static const char *const bad[] = {
        "",
        "AAABk0dnAAABAgMEBQYHCAkKCwwAAAAAAAAA_",
        "AAABk0dnAAABAgMEBQYHCAkKCwwAAAAAAAAA_wA",
        "AAABk0dnAAABAgMEBQYHCAkKCwwAAAAAAAAA_x", /* spare bits */
        "AAABk0dnAAABAgMEBQYHCAkKCwwAAAAAAAAA/w",
        "../../../../../../../../../../../../..",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct upload_id id;
        struct error err = ERROR_INIT;
        assert_int_equal(upload_id_parse(bad[i], &id, &err), E_INVALID);
        assert_true(err.message[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_come_back),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
