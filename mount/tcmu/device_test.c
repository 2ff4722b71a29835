#include "mount/tcmu/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdlib.h>

#include "common/cleanup.h"

static void a_directory_has_its_own_device(void **state)
{
    struct device a, b, again;
    (void)state;
    device_name(&a, "/mnt/a");
    device_name(&b, "/mnt/b");
    device_name(&again, "/mnt/a");
    assert_string_equal(a.name, again.name);
    assert_string_not_equal(a.name, b.name);
    assert_int_equal(a.naa >> 60, 3);
}

/* A comma ends a parameter of the kernel, which takes 255 bytes. */
static void any_name_is_a_parameter(void **state)
{
    char key[1025] = "a,dev_size=1\n.vdsc";
    (void)state;
    memset(key + strlen(key), 'x', sizeof key - 1 - strlen(key));
    _cleanup_free_ char *image = device_image("b", key, NULL, 4096);
    assert_null(strpbrk(image, ",=\n"));
    assert_true(strlen(image) < 128);
}

static void images_are_told_apart(void **state)
{
    static const uint8_t id[DEVICE_ID] = {1};
    (void)state;
    _cleanup_free_ char *image = device_image("b", "k.vdsc", NULL, 4096);
    _cleanup_free_ char *again = device_image("b", "k.vdsc", NULL, 4096);
    _cleanup_free_ char *bucket = device_image("c", "k.vdsc", NULL, 4096);
    _cleanup_free_ char *size = device_image("b", "k.vdsc", NULL, 8192);
    _cleanup_free_ char *pinned = device_image("b", "k.vdsc", id, 4096);
    _cleanup_free_ char *moved = device_image("c", "l.vdsc", id, 4096);
    assert_string_equal(image, again);
    assert_string_not_equal(image, bucket);
    assert_string_not_equal(image, size);
    assert_string_not_equal(image, pinned);
    assert_string_equal(pinned, moved);
}

/* Else the process that serves it would never end. */
static void a_disk_that_is_gone_is_idle(void **state)
{
    (void)state;
    assert_true(device_is_idle("/dev/dfc-no-such-disk"));
    assert_false(device_is_idle("/dev/null/none")); /* not known: ENOTDIR */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_has_its_own_device),
        cmocka_unit_test(any_name_is_a_parameter),
        cmocka_unit_test(images_are_told_apart),
        cmocka_unit_test(a_disk_that_is_gone_is_idle),
    };
    return cmocka_run_group_tests_name("tcmu_device", tests, NULL, NULL);
}
