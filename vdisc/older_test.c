/* Older images that are crafted: directories that share their records have 2^n entries. */
#include "vdisc/older.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "common/buf.h"
#include "vdisc/iso_layout.h"
#include "vdisc/iso_write.h"

enum { LEVELS = 20, NAME_MAX_BYTES = 80, PATH_BYTES = LEVELS * (NAME_MAX_BYTES + 1) };

struct image {
    struct buf header;
    struct vdisc_extent extent;
    struct vdisc_table table;
    struct iso_reader reader;
    unsigned checks;
};

static int keep(void *context, const void *bytes, size_t len, struct error *err)
{
    (void)err;
    buf_append(context, bytes, len);
    return 0;
}

static int read_header(void *context, uint64_t offset, void *to, size_t len, struct error *err)
{
    const struct image *im = context;
    if (offset + len > im->header.len)
        return error_set(err, E_IMAGE_DAMAGED, "behind the header");
    memcpy(to, im->header.data + offset, len);
    return 0;
}

static int no_object(void *ctx, uint32_t extent, char **bucket, char **key, struct error *err)
{
    (void)ctx, (void)bucket, (void)key;
    return error_set(err, E_IMAGE_DAMAGED, "extent %u", extent);
}

/* The table claims as many blocks as it can: nothing of it bounds the work. */
static void make(struct image *im, const struct iso_entry *entries, size_t count)
{
    static const struct iso_tree_options options = {.date_s = ISO_NO_TIME};
    static const struct iso_volume volume = {0};
    struct error err = ERROR_INIT;
    struct iso_tree *tree = NULL;
    struct iso_layout *layout = NULL;
    *im = (struct image){.header = BUF_INIT};
    if (iso_tree_new(entries, count, &options, &tree, &err) != 0 ||
        iso_layout_new(tree, &(struct iso_stored){0}, false, &layout, &err) != 0 ||
        iso_write(layout, &volume, keep, &im->header, &err) != 0)
        fail_msg("%s", err.message);
    iso_layout_free(layout);
    iso_tree_free(tree);
    im->extent =
        (struct vdisc_extent){.address = "h", .blocks = UINT32_MAX, .etag = "", .checksum = ""};
    im->table = (struct vdisc_table){.extents = &im->extent, .count = 1};
    const struct iso_source source = {
        .read = read_header, .context = im, .size = vdisc_table_size(&im->table)};
    if (iso_reader_open(&im->reader, &source, &err) != 0)
        fail_msg("%s", err.message);
}

/* The second directory's record points at the records of the first. */
static void share(struct image *im, const char *first, const char *second)
{
    struct iso_found one, two;
    struct error err = ERROR_INIT;
    if (iso_reader_find(&im->reader, first, &one, &err) != 0 ||
        iso_reader_find(&im->reader, second, &two, &err) != 0)
        fail_msg("%s", err.message);
    memcpy(im->header.data + two.record + 2, im->header.data + one.record + 2, 16);
}

/* LEVELS directories deep, each with two names for one directory. */
static void make_doubled(struct image *im, size_t name_bytes)
{
    static char paths[2 * LEVELS][PATH_BYTES + 1];
    struct iso_entry entries[2 * LEVELS];
    for (size_t i = 0; i < 2 * LEVELS; i++) {
        const size_t len = (i / 2 + 1) * (name_bytes + 1) - 1;
        memset(paths[i], 'a', len);
        for (size_t at = name_bytes; at < len; at += name_bytes + 1)
            paths[i][at] = '/';
        paths[i][len - 1] = i % 2 == 0 ? 'a' : 'b';
        paths[i][len] = '\0';
        entries[i] = (struct iso_entry){
            .path = paths[i], .kind = ISO_DIRECTORY, .mtime_s = ISO_NO_TIME, .mode = ISO_NO_MODE};
    }
    make(im, entries, 2 * LEVELS);
    for (size_t i = 0; i < 2 * LEVELS; i += 2)
        share(im, paths[i], paths[i + 1]);
}

static int stop_at_the_third(void *ctx, struct error *err)
{
    struct image *im = ctx;
    return ++im->checks == 3 ? error_set(err, E_ABORTED, "stopped") : 0;
}

static int load(struct image *im, uint64_t entries_max, struct older **o, struct error *err)
{
    const struct older_image image = {.table = &im->table,
                                      .reader = &im->reader,
                                      .object = no_object,
                                      .entries_max = entries_max};
    return older_load(&image, o, err);
}

static void test_entries_are_bounded(void **state)
{
    (void)state;
    static const uint64_t limits[] = {1, 2, 3, 0};
    static const struct iso_entry entries[] = {
        {.path = "a", .kind = ISO_DIRECTORY, .mtime_s = ISO_NO_TIME, .mode = ISO_NO_MODE},
        {.path = "a/b", .kind = ISO_DIRECTORY, .mtime_s = ISO_NO_TIME, .mode = ISO_NO_MODE},
        {.path = "c", .kind = ISO_DIRECTORY, .mtime_s = ISO_NO_TIME, .mode = ISO_NO_MODE}};
    struct image im;
    make(&im, entries, 3);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct error err = ERROR_INIT;
        _cleanup_(older_freep)
        struct older *o = NULL;
        const int rc = load(&im, limits[i], &o, &err);
        assert_int_equal(rc, i < 2 ? E_IMAGE_TOO_LARGE : 0);
        if (rc == 0)
            assert_int_equal(older_count(o), 3);
        else
            assert_non_null(strstr(err.message, "vdisc_entries_max"));
    }
    buf_done(&im.header);
}

static void test_doubled_directories_end_at_the_limit(void **state)
{
    (void)state;
    static const struct {
        size_t name_bytes;
        uint64_t entries_max;
        const char *message;
    } rows[] = {{1, 1000, "more than 1000 entries"}, {NAME_MAX_BYTES, 5000, "the paths"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct image im;
        struct error err = ERROR_INIT;
        _cleanup_(older_freep)
        struct older *o = NULL;
        make_doubled(&im, rows[i].name_bytes);
        assert_int_equal(load(&im, rows[i].entries_max, &o, &err), E_IMAGE_TOO_LARGE);
        assert_non_null(strstr(err.message, rows[i].message));
        buf_done(&im.header);
    }
}

static void test_the_caller_can_end_it(void **state)
{
    (void)state;
    struct image im;
    struct error err = ERROR_INIT;
    struct older *o = NULL;
    make_doubled(&im, 1);
    const struct older_image image = {.table = &im.table,
                                      .reader = &im.reader,
                                      .object = no_object,
                                      .check = stop_at_the_third,
                                      .ctx = &im};
    assert_int_equal(older_load(&image, &o, &err), E_ABORTED);
    assert_int_equal(im.checks, 3);
    buf_done(&im.header);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_are_bounded),
        cmocka_unit_test(test_doubled_directories_end_at_the_limit),
        cmocka_unit_test(test_the_caller_can_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
