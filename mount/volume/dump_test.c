/* A dump of one engine is loaded into another one. */
#include "mount/volume/dump.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "mount/meta/memory.h"
#include "mount/volume/check/check.h"
#include "mount/volume/testing/clients.h"

enum { FILES = 300 };

static char *text;
static size_t text_size;

static int save(struct error *err)
{
    struct dump_tally tally;
    free(text);
    FILE *to = open_memstream(&text, &text_size);
    int rc = dump_save(f.m, to, &tally, err);
    fclose(to);
    return rc;
}

static int load(const char *from, size_t size, uint64_t next_slice, struct meta **m,
                struct error *err)
{
    struct dump_tally tally;
    FILE *in = fmemopen((void *)(uintptr_t)from, size, "r");
    assert_int_equal(meta_memory_ops.open("", true, m, err), 0);
    int rc = dump_load(*m, in, next_slice, &tally, err);
    fclose(in);
    return rc;
}

static void end_sessions(void)
{
    volume_close(f.a);
    volume_close(f.b);
    f.a = f.b = NULL;
}

static void fill(void)
{
    const struct volume_new link = {.mode = S_IFLNK | 0777, .target = "x/\n\"y"};
    struct volume_inode made;
    uint64_t d = make(VOLUME_ROOT, "d\n\xff", S_IFDIR | 0755);
    assert_int_equal(volume_create(f.a, d, "l", &link, &made), 0);
    for (unsigned i = 0; i < FILES; i++) {
        char name[16];
        struct volume_piece p = {.at = CHUNK - 5, .length = 10, .size = 10};
        snprintf(name, sizeof name, "f%u", i);
        uint64_t ino = make(d, name, S_IFREG | 0644);
        assert_int_equal(volume_new_slice(f.a, &p.slice), 0);
        assert_int_equal(volume_write(f.a, ino, &p, 1, 0, NULL), 0);
        assert_int_equal(volume_setxattr(f.a, ino, "user.n", name, strlen(name), 0), 0);
    }
    assert_int_equal(volume_unlink(f.a, d, "f7"), 0);
}

static void what_was_saved_is_loaded(void **state)
{
    struct error err = ERROR_INIT;
    struct meta *m;
    (void)state;
    fill();
    end_sessions();
    assert_int_equal(save(&err), 0);
    if (load(text, text_size, 1, &m, &err) != 0)
        fail_msg("%s", err.message);
    struct check c;
    const struct volume_format format = small_format();
    assert_int_equal(check_run(&c, m, &format, &err), 0);
    assert_int_equal(c.count, 0);
    assert_int_equal(c.inodes, FILES + 3);
    check_done(&c);
    /* The same again, but for stamps. */
    char *first = text;
    size_t first_size = text_size;
    struct meta *before = f.m;
    text = NULL;
    f.m = m;
    assert_int_equal(save(&err), 0);
    assert_int_equal(text_size, first_size);
    assert_memory_equal(text, first, first_size);
    f.m = before;
    free(first);
    meta_close(m);
}

static void next_slices_are_greater_than_those_of_the_bucket(void **state)
{
    struct error err = ERROR_INIT;
    struct volume_env env;
    struct volume *v;
    struct meta *m;
    uint64_t slice;
    (void)state;
    fill();
    end_sessions();
    assert_int_equal(save(&err), 0);
    assert_int_equal(load(text, text_size, 1000000, &m, &err), 0);
    volume_env_init(&env);
    assert_int_equal(volume_open(m, &env, &v, &err), 0);
    assert_int_equal(volume_new_slice(v, &slice), 0);
    assert_int_equal(slice, 1000000);
    volume_close(v);
    meta_close(m);
}

static void a_part_is_no_volume(void **state)
{
    struct error err = ERROR_INIT;
    struct volume_format format;
    struct meta *m;
    (void)state;
    fill();
    end_sessions();
    assert_int_equal(save(&err), 0);
    for (size_t size = 1; size < text_size - 1; size += size < 2000 ? 13 : 7919) {
        assert_int_not_equal(load(text, size, 1, &m, &err), 0);
        assert_int_equal(format_read(m, &format, &err), E_NOT_FOUND);
        meta_close(m);
    }
    text[text_size / 2] ^= 0x40;
    int rc = load(text, text_size, 1, &m, &err);
    text[text_size / 2] ^= 0x40;
    meta_close(m);
    if (rc == 0) /* a digit became another one */
        assert_true(strchr("0123456789abcdef", text[text_size / 2]) != NULL);
}

static void a_volume_in_use_is_saved(void **state)
{
    struct error err = ERROR_INIT;
    struct meta *m;
    struct check c;
    struct dump_tally tally;
    const struct volume_format format = small_format();
    (void)state;
    fill();
    assert_int_equal(save(&err), 0);
    if (load(text, text_size, 1, &m, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(check_run(&c, m, &format, &err), 0);
    assert_int_equal(c.count, 0);
    assert_int_equal(c.inodes, FILES + 3);
    check_done(&c);
    FILE *in = fmemopen(text, text_size, "r");
    assert_int_equal(dump_load(m, in, 1, &tally, &err), E_EXISTS);
    fclose(in);
    meta_close(m);
}

static int end(void **state)
{
    free(text);
    text = NULL;
    return clients_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_saved_is_loaded, clients_setup, end),
        cmocka_unit_test_setup_teardown(next_slices_are_greater_than_those_of_the_bucket,
                                        clients_setup, end),
        cmocka_unit_test_setup_teardown(a_part_is_no_volume, clients_setup, end),
        cmocka_unit_test_setup_teardown(a_volume_in_use_is_saved, clients_setup, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
