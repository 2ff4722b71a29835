#include "mount/program/mounts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static const char table[] =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "30 22 0:30 / /mnt/a rw,nosuid master:2 - fuse.dfc dfc://photos/train ro,user_id=0\n"
    "31 22 0:31 / /mnt/with\\040space ro - fuse.dfc dfc://a\\040b ro\n"
    "32 30 0:32 / /mnt/a rw - tmpfs none rw\n"
    "33 22 0:33 / /mnt/empty rw -\n"
    "broken\n";

static void expect(const char *path, const char *type, const char *source)
{
    char *found_type, *found_source;
    if (type == NULL) {
        assert_false(mounts_find(table, path, &found_type, &found_source));
        return;
    }
    assert_true(mounts_find(table, path, &found_type, &found_source));
    assert_string_equal(found_type, type);
    assert_string_equal(found_source, source);
    free(found_type);
    free(found_source);
}

static void the_topmost_mount_is_found(void **state)
{
    (void)state;
    expect("/", "ext4", "/dev/sda1");
    expect("/mnt/a", "tmpfs", "none");
    expect("/mnt/with space", "fuse.dfc", "dfc://a b");
    expect("/mnt", NULL, NULL);
    expect("/mnt/empty", NULL, NULL);
}

static void a_path_is_made_absolute(void **state)
{
    (void)state;
    char *path = mounts_path("/./tmp/");
    assert_string_equal(path, "/tmp");
    free(path);
    assert_null(mounts_path("/no/such/directory"));
    assert_false(mounts_has("/"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_topmost_mount_is_found),
        cmocka_unit_test(a_path_is_made_absolute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
