#include "mount/program/serve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/mem.h"
#include "mount/program/disk_parts.h"
#include "mount/program/options.h"
#include "mount/program/program.h"

/* Its directories when a process has begun to serve; malloc'ed.  The cluster is not reached. */
static char *directories_of(struct mounted *m, const char *directories)
{
    const struct options options = {.endpoint = "nonsense://"};
    m->options = &options;
    m->cache_directories = directories;
    m->ready = -1;
    assert_int_not_equal(serve(m), PROGRAM_OK);
    char *left = m->cache_directories != NULL ? xstrdup(m->cache_directories) : NULL;
    if (m->cache_directories != directories)
        free((char *)m->cache_directories);
    return left;
}

static void a_disk_goes_on_without_a_failed_cache(void **state)
{
    (void)state;
    char root[] = "/tmp/dfc-serve-test-XXXXXX";
    assert_non_null(mkdtemp(root));
    struct disk disk = {0};
    struct mounted m = {.image = true, .disk = &disk};
    _cleanup_free_ char *both = xprintf("%s/none:%s", root, root);
    _cleanup_free_ char *first = directories_of(&m, both);
    assert_string_equal(first, both); /* the start must fail, and say why */
    disk.served = true;
    _cleanup_free_ char *next = directories_of(&m, both);
    assert_string_equal(next, root);
    _cleanup_free_ char *command = xprintf("rm -r %s", root);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_disk_goes_on_without_a_failed_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
