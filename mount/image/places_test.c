/* The index of directories against a plain search, with a limit that leaves room for one. */
#include "mount/image/places.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/buf.h"
#include "common/mem.h"
#include "vdisc/iso_layout.h"
#include "vdisc/iso_write.h"

#define DIRECTORIES 6u
#define NAMES 300u
#define THREADS 8
#define ROUNDS 400u

struct made {
    struct buf bytes;
    struct iso_reader reader;
};

static int put(void *context, const void *bytes, size_t len, struct error *err)
{
    (void)err;
    buf_append(context, bytes, len);
    return 0;
}

static int get(void *context, uint64_t offset, void *to, size_t len, struct error *err)
{
    const struct buf *b = context;
    if (offset + len > b->len)
        return error_set(err, E_IMAGE_DAMAGED, "behind the end");
    memcpy(to, b->data + offset, len);
    return 0;
}

static void path_of(unsigned directory, unsigned name, char out[static 64])
{
    /* Every third name is long: it continues behind the directory. */
    snprintf(out, 64, "d%u/%s%04u", directory, name % 3 == 0 ? "aaaaaaaaaaaaaaaaaaaaaaaaaaa" : "n",
             name);
}

static void make(struct made *m)
{
    static struct iso_entry entries[DIRECTORIES * NAMES];
    static char paths[DIRECTORIES * NAMES][64];
    const struct iso_volume volume = {0};
    const struct iso_tree_options options = {.date_s = ISO_NO_TIME};
    struct iso_tree *tree = NULL;
    struct iso_layout *layout = NULL;
    struct error err = ERROR_INIT;
    for (unsigned i = 0; i < DIRECTORIES * NAMES; i++) {
        path_of(i / NAMES, i % NAMES, paths[i]);
        entries[i] = (struct iso_entry){.path = paths[i], .size = i, .content = i, .mtime_s = 7};
    }
    assert_int_equal(iso_tree_new(entries, DIRECTORIES * NAMES, &options, &tree, &err), 0);
    const struct iso_stored stored = {.contents = DIRECTORIES * NAMES};
    assert_int_equal(iso_layout_new(tree, &stored, false, &layout, &err), 0);
    m->bytes = (struct buf)BUF_INIT;
    assert_int_equal(iso_write(layout, &volume, put, &m->bytes, &err), 0);
    iso_layout_free(layout);
    iso_tree_free(tree);
    const struct iso_source source = {.read = get, .context = &m->bytes, .size = m->bytes.len};
    assert_int_equal(iso_reader_open(&m->reader, &source, &err), 0);
}

static bool find(struct places *p, unsigned directory, unsigned name)
{
    char path[64], folder[16];
    struct iso_found at, wanted, found;
    struct error err = ERROR_INIT;
    path_of(directory, name, path);
    snprintf(folder, sizeof folder, "d%u", directory);
    if (iso_reader_find(p->reader, folder, &at, &err) != 0 ||
        iso_reader_find(p->reader, path, &wanted, &err) != 0 ||
        places_find(p, &at, wanted.name, &found, &err) != 0)
        return false;
    return found.record == wanted.record && found.size == wanted.size &&
           strcmp(found.name, wanted.name) == 0 &&
           places_find(p, &at, "none", &found, &err) == E_NOT_FOUND;
}

static void test_names_are_found(void **state)
{
    (void)state;
    struct made m;
    struct places p;
    make(&m);
    places_init(&p, &m.reader, NAMES + 1);
    for (unsigned i = 0; i < DIRECTORIES * NAMES; i += 7) {
        if (!find(&p, i % DIRECTORIES, i / DIRECTORIES))
            fail_msg("name %u is not found", i);
        assert_in_range(p.used, 1, NAMES + 1);
    }
    places_done(&p);
    buf_done(&m.bytes);
}

static void *search(void *arg)
{
    unsigned seed = 1;
    for (unsigned i = 0; i < ROUNDS; i++) {
        seed = seed * 1103515245u + 12345u;
        if (!find(arg, seed / 65536 % DIRECTORIES, i % NAMES))
            return arg;
    }
    return NULL;
}

static void test_threads_share_an_index(void **state)
{
    (void)state;
    struct made m;
    struct places p;
    pthread_t threads[THREADS];
    void *failed;
    make(&m);
    places_init(&p, &m.reader, 2 * NAMES);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, search, &p), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_in_range(p.used, 1, 2 * NAMES);
    places_done(&p);
    buf_done(&m.bytes);
}

static void test_an_image_that_cannot_be_read(void **state)
{
    (void)state;
    struct made m;
    struct places p;
    struct iso_found at, found;
    struct error err = ERROR_INIT;
    make(&m);
    places_init(&p, &m.reader, NAMES);
    assert_int_equal(iso_reader_find(&m.reader, "d1", &at, &err), 0);
    const size_t len = m.bytes.len;
    m.bytes.len = 0;
    assert_int_equal(places_find(&p, &at, "n0001", &found, &err), E_IMAGE_DAMAGED);
    m.bytes.len = len;
    assert_int_equal(places_find(&p, &at, "n0001", &found, &err), 0);
    places_done(&p);
    buf_done(&m.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_found),
        cmocka_unit_test(test_threads_share_an_index),
        cmocka_unit_test(test_an_image_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
