/* Images that are written and read back; what other programs say of them is in readers_test.py. */
#include "vdisc/iso_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/rng.h"
#include "vdisc/iso_date.h"
#include "vdisc/iso_layout.h"
#include "vdisc/iso_read.h"

/* --- making one ------------------------------------------------------------------------------- */

struct image {
    struct iso_tree *tree;
    struct iso_layout *layout;
    struct buf header;
};

static int keep(void *context, const void *bytes, size_t len, struct error *err)
{
    (void)err;
    buf_append(context, bytes, len);
    return 0;
}

static int try_make(struct image *im, const struct iso_entry *entries, size_t count,
                    const struct iso_tree_options *options, bool joliet, struct error *err)
{
    const struct iso_volume volume = {0};
    uint32_t contents = 0;
    *im = (struct image){0};
    for (size_t i = 0; i < count; i++)
        contents = entries[i].content >= contents ? entries[i].content + 1 : contents;
    int rc = iso_tree_new(entries, count, options, &im->tree, err);
    if (rc == 0)
        rc = iso_layout_new(im->tree, &(struct iso_stored){.contents = contents}, joliet,
                            &im->layout, err);
    if (rc == 0)
        rc = iso_write(im->layout, &volume, keep, &im->header, err);
    return rc;
}

static const struct iso_tree_options plain = {.date_s = ISO_NO_TIME};

static void make(struct image *im, const struct iso_entry *entries, size_t count)
{
    struct error err = ERROR_INIT;
    if (try_make(im, entries, count, &plain, false, &err) != 0)
        fail_msg("%s", err.message);
}

static void image_done(struct image *im)
{
    iso_layout_free(im->layout);
    iso_tree_free(im->tree);
    buf_done(&im->header);
}

static int read_header(void *context, uint64_t offset, void *to, size_t len, struct error *err)
{
    const struct image *im = context;
    if (offset + len > im->header.len)
        return error_set(err, E_IMAGE_DAMAGED, "behind the header");
    memcpy(to, im->header.data + offset, len);
    return 0;
}

static void open_reader(struct image *im, struct iso_reader *r)
{
    struct error err = ERROR_INIT;
    const struct iso_source s = {
        .read = read_header, .context = im, .size = (uint64_t)im->layout->blocks * ISO_BLOCK};
    if (iso_reader_open(r, &s, &err) != 0)
        fail_msg("%s", err.message);
}

static struct iso_found found(struct image *im, const char *path)
{
    struct iso_reader r;
    struct iso_found f;
    struct error err = ERROR_INIT;
    open_reader(im, &r);
    if (iso_reader_find(&r, path, &f, &err) != 0)
        fail_msg("%s: %s", path, err.message);
    return f;
}

static struct iso_entry file(const char *path, uint64_t size, uint32_t content)
{
    return (struct iso_entry){.path = path,
                              .kind = ISO_FILE,
                              .size = size,
                              .content = content,
                              .mtime_s = ISO_NO_TIME,
                              .mode = ISO_NO_MODE};
}

static struct iso_entry link_to(const char *path, const char *target)
{
    struct iso_entry e = file(path, 0, 0);
    e.kind = ISO_LINK;
    e.target = target;
    return e;
}

/* --- attributes ------------------------------------------------------------------------------- */

static void test_attributes_come_back(void **state)
{
    (void)state;
    struct iso_entry entries[] = {file("/a/b.txt", 5000, 0), file("c", 0, 1), link_to("l", "../x")};
    struct image im;
    entries[0].mtime_s = 1700000001;
    entries[0].mode = 0640;
    entries[0].uid = 1000;
    entries[0].gid = 70000;
    make(&im, entries, 3);
    struct iso_found f = found(&im, "/a/b.txt");
    assert_int_equal(f.kind, ISO_FILE);
    assert_int_equal(f.size, 5000);
    assert_int_equal(f.mtime_s, 1700000001);
    assert_int_equal(f.mode, 0640);
    assert_int_equal(f.uid, 1000);
    assert_int_equal(f.gid, 70000);
    assert_int_equal(f.lba, im.layout->header_blocks);
    f = found(&im, "c");
    assert_int_equal(f.size, 0);
    assert_int_equal(f.mode, 0444);
    assert_int_equal(f.mtime_s, 1700000001); /* the newest of all */
    assert_int_equal(f.lba, im.layout->header_blocks + 3);
    f = found(&im, "l");
    assert_int_equal(f.kind, ISO_LINK);
    assert_string_equal(f.target, "../x");
    f = found(&im, "a");
    assert_int_equal(f.kind, ISO_DIRECTORY);
    assert_int_equal(im.layout->blocks, im.layout->header_blocks + 4);
    image_done(&im);
}

static void test_sections_of_a_large_file(void **state)
{
    (void)state;
    const uint64_t sizes[] = {ISO_SECTION_MAX, ISO_SECTION_MAX + 1ull, UINT32_MAX,
                              9ull << 30,      2ull * ISO_SECTION_MAX, 500ull << 30};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct iso_entry entries[] = {file("big", sizes[i], 0), file("z", 1, 1)};
        struct image im;
        make(&im, entries, 2);
        assert_int_equal(found(&im, "big").size, sizes[i]);
        assert_int_equal(found(&im, "z").size, 1);
        assert_int_equal(im.layout->many_sections, i == 5);
        image_done(&im);
    }
}

static void test_equal_contents_share_blocks(void **state)
{
    (void)state;
    const struct iso_entry entries[] = {file("x/2", 3000, 1), file("a/1", 10, 0),
                                        file("b/1", 10, 0)};
    struct image im;
    make(&im, entries, 3);
    assert_int_equal(im.layout->extent_count, 2);
    assert_int_equal(found(&im, "a/1").lba, found(&im, "b/1").lba);
    assert_int_equal(im.layout->extent_order[0], 0); /* in path order */
    assert_int_equal(im.layout->blocks, im.layout->header_blocks + 3);
    image_done(&im);
}

/* --- names ------------------------------------------------------------------------------------ */

static void test_names_of_each_length(void **state)
{
    (void)state;
    char names[ISO_NAME_MAX][ISO_NAME_MAX + 1];
    char targets[ISO_NAME_MAX][ISO_LINK_MAX + 1];
    struct iso_entry entries[ISO_NAME_MAX];
    for (size_t i = 0; i < ISO_NAME_MAX; i++) {
        memset(names[i], 'n', i + 1);
        names[i][i + 1] = '\0';
        memset(targets[i], i % 3 == 0 ? 't' : 'u', i * 16 + 1);
        targets[i][i * 16 + 1] = '\0';
        for (size_t k = 5 + i % 7; k < i * 16; k += 6 + i % 240)
            targets[i][k] = '/';
        entries[i] = i % 2 != 0 ? link_to(names[i], targets[i]) : file(names[i], i, (uint32_t)i);
    }
    struct image im;
    make(&im, entries, ISO_NAME_MAX);
    for (size_t i = 0; i < ISO_NAME_MAX; i++) {
        struct iso_found f = found(&im, names[i]);
        if (i % 2 != 0)
            assert_string_equal(f.target, targets[i]);
        else
            assert_int_equal(f.size, i);
    }
    image_done(&im);
}

static void test_targets_of_links(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"/", "/"},         {"/usr/bin", "/usr/bin"}, {".", "."},
        {"../..", "../.."}, {"a//b/", "a/b"},         {"./x", "./x"},
        {"...", "..."},     {"..a/.b", "..a/.b"},     {"//x/./y", "/x/./y"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct iso_entry e = link_to("l", rows[i][0]);
        struct image im;
        make(&im, &e, 1);
        assert_string_equal(found(&im, "l").target, rows[i][1]);
        image_done(&im);
    }
    char longest[ISO_LINK_MAX + 1];
    for (size_t i = 0; i < ISO_LINK_MAX; i++)
        longest[i] = i % 2 == 0 ? 'a' : '/';
    longest[ISO_LINK_MAX] = '\0';
    const struct iso_entry e = link_to("l", longest);
    struct image im;
    make(&im, &e, 1);
    assert_string_equal(found(&im, "l").target, longest);
    image_done(&im);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    const struct iso_entry rows[][2] = {
        {file("a/../b", 1, 0), file("c", 1, 1)}, {file("a", 1, 0), file("/a/", 1, 1)},
        {file("a", 1, 0), file("a/b", 1, 1)},    {file("a/b/c", 1, 0), file("a/b", 1, 1)},
        {file("a\xff", 1, 0), file("c", 1, 1)},  {file("/", 1, 0), file("c", 1, 1)},
        {link_to("a", ""), file("c", 1, 1)},     {file("a/./x", 1, 0), file("a//x", 1, 1)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = ERROR_INIT;
        struct image im;
        assert_int_equal(try_make(&im, rows[i], 2, &plain, false, &err), E_IMAGE_NAME);
        assert_true(err.message[0] != '\0');
        image_done(&im);
    }
    char name[ISO_NAME_MAX + 2];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    struct error err = ERROR_INIT;
    struct image im;
    const struct iso_entry e = file(name, 1, 0);
    assert_int_equal(try_make(&im, &e, 1, &plain, false, &err), E_IMAGE_NAME);
    image_done(&im);
}

static void test_policies_of_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum iso_names names;
        bool allowed;
    } rows[] = {{"a b", ISO_NAMES_ANY, true},
                {"a b", ISO_NAMES_EXTENDED, false},
                {"a+b\xc3\xa9", ISO_NAMES_EXTENDED, true},
                {"a+b", ISO_NAMES_PORTABLE, false},
                {"A-z_9.x", ISO_NAMES_PORTABLE, true},
                {"a:b", ISO_NAMES_EXTENDED, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct iso_tree_options options = {.names = rows[i].names, .date_s = ISO_NO_TIME};
        const struct iso_entry e = file(rows[i].name, 1, 0);
        struct error err = ERROR_INIT;
        struct image im;
        int rc = try_make(&im, &e, 1, &options, false, &err);
        assert_int_equal(rc, rows[i].allowed ? 0 : E_IMAGE_NAME);
        image_done(&im);
    }
}

static void test_joliet_refuses_what_it_cannot_hold(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool allowed;
    } rows[] = {{"a:b", false},
                {"what?", false},
                {"caf\xc3\xa9 1", true},
                {"\xf0\x9f\x98\x80", false}, /* an emoji */
                {"0123456789012345678901234567890123456789012345678901234567890123", true},
                {"01234567890123456789012345678901234567890123456789012345678901234", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct iso_entry e = file(rows[i].name, 1, 0);
        struct error err = ERROR_INIT;
        struct image im;
        int rc = try_make(&im, &e, 1, &plain, true, &err);
        assert_int_equal(rc, rows[i].allowed ? 0 : E_IMAGE_NAME);
        image_done(&im);
    }
}

/* --- limits ----------------------------------------------------------------------------------- */

static void test_an_image_has_no_more_than_8_tib(void **state)
{
    (void)state;
    const uint64_t most = (uint64_t)(UINT32_MAX - 600) * ISO_BLOCK;
    for (int i = 0; i < 2; i++) {
        const struct iso_entry entries[] = {file("a", most, 0), file("b", i * 2048ull * 600, 1)};
        struct error err = ERROR_INIT;
        struct image im;
        int rc = try_make(&im, entries, 2, &plain, false, &err);
        assert_int_equal(rc, i == 0 ? 0 : E_IMAGE_TOO_LARGE);
        image_done(&im);
    }
}

static void test_limit_of_entries(void **state)
{
    (void)state;
    const struct iso_tree_options options = {.date_s = ISO_NO_TIME, .entries_max = 4};
    const struct iso_entry entries[] = {file("a/b", 1, 0), file("a/c", 1, 1), file("d", 1, 2)};
    struct error err = ERROR_INIT;
    struct image im;
    assert_int_equal(try_make(&im, entries, 2, &options, false, &err), 0);
    image_done(&im);
    assert_int_equal(try_make(&im, entries, 3, &options, false, &err), E_IMAGE_TOO_LARGE);
    image_done(&im);
}

static void test_times(void **state)
{
    (void)state;
    struct iso_entry e = file("a", 1, 0);
    struct iso_tree_options options = {.date_s = 1600000000};
    struct error err = ERROR_INIT;
    struct image im;
    assert_int_equal(try_make(&im, &e, 1, &options, false, &err), 0);
    assert_int_equal(found(&im, "a").mtime_s, 1600000000);
    assert_memory_equal(im.header.data + 16 * ISO_BLOCK + 813, "2020091312264000\0", 17);
    image_done(&im);
    e.mtime_s = -2208988801; /* the last second of 1899 */
    assert_int_equal(try_make(&im, &e, 1, &options, false, &err), E_INVALID);
    image_done(&im);
}

/* Every day that an image can have, beside the C library. */
static void test_days(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 8);
    for (int64_t day = -25567; day <= 67934; day++) {
        const time_t at = (time_t)(day * 86400 + (int64_t)rng_below(&r, 86400));
        uint8_t date[ISO_DATE_SHORT];
        struct tm tm;
        assert_true(iso_date_fits(at));
        assert_non_null(gmtime_r(&at, &tm));
        const uint8_t wanted[ISO_DATE_SHORT] = {(uint8_t)tm.tm_year, (uint8_t)(tm.tm_mon + 1),
                                                (uint8_t)tm.tm_mday, (uint8_t)tm.tm_hour,
                                                (uint8_t)tm.tm_min,  (uint8_t)tm.tm_sec};
        iso_date_put(date, at);
        assert_memory_equal(date, wanted, sizeof wanted);
        assert_int_equal(iso_date_get(date), at);
    }
}

/* --- any tree --------------------------------------------------------------------------------- */

#define RANDOM_ENTRIES 300

struct random_tree {
    struct iso_entry entries[RANDOM_ENTRIES];
    char *texts[2 * RANDOM_ENTRIES];
    size_t count, text_count;
};

static const char *random_text(struct random_tree *t, struct rng *r, const char *before)
{
    static const char letters[] = "abcABC.x_0-";
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s%zu", before, t->text_count); /* unique */
    for (uint64_t n = rng_below(r, 12) == 0 ? rng_below(r, 200) : rng_below(r, 12); n > 0; n--)
        buf_putc(&b, letters[rng_below(r, sizeof letters - 1)]);
    return t->texts[t->text_count++] = buf_steal(&b);
}

static void random_fill(struct random_tree *t, struct rng *r)
{
    const char *directories[RANDOM_ENTRIES] = {""};
    size_t directory_count = 1;
    *t = (struct random_tree){0};
    while (t->count < RANDOM_ENTRIES) {
        _cleanup_free_ char *before = xprintf("%s/", directories[rng_below(r, directory_count)]);
        if (strlen(before) > 3000)
            continue;
        struct iso_entry e = file(random_text(t, r, before), rng_below(r, 9000), 0);
        e.content = (uint32_t)t->count;
        e.mtime_s = (int64_t)rng_below(r, 2000000000);
        uint64_t kind = rng_below(r, 8);
        if (kind == 0) {
            e.kind = ISO_LINK;
            e.target = random_text(t, r, "to/");
        } else if (kind < 3) {
            e.kind = ISO_DIRECTORY;
            directories[directory_count++] = e.path;
        }
        t->entries[t->count++] = e;
    }
}

static void random_done(struct random_tree *t)
{
    for (size_t i = 0; i < t->text_count; i++)
        free(t->texts[i]);
}

static void shuffle(struct random_tree *t, struct rng *r)
{
    for (size_t i = t->count - 1; i > 0; i--) {
        size_t k = rng_below(r, i + 1);
        struct iso_entry e = t->entries[i];
        t->entries[i] = t->entries[k];
        t->entries[k] = e;
    }
}

struct walked {
    const struct random_tree *tree;
    size_t seen;
};

static int check_walked(void *context, const char *path, const struct iso_found *f,
                        struct error *err)
{
    struct walked *w = context;
    (void)err;
    for (size_t i = 0; i < w->tree->count; i++) {
        const struct iso_entry *e = &w->tree->entries[i];
        if (strcmp(e->path + 1, path) != 0)
            continue;
        assert_int_equal(e->kind, f->kind);
        assert_int_equal(e->mtime_s, f->mtime_s);
        if (e->kind == ISO_FILE)
            assert_int_equal(e->size, f->size);
        if (e->kind == ISO_LINK)
            assert_string_equal(e->target, f->target);
        w->seen++;
        return 0;
    }
    fail_msg("'%s' was not given", path);
    return E_INTERNAL;
}

static void check_all(struct image *im, const struct random_tree *t)
{
    struct iso_reader r;
    struct iso_found root;
    struct walked w = {.tree = t};
    struct error err = ERROR_INIT;
    open_reader(im, &r);
    iso_reader_root(&r, &root);
    if (iso_reader_walk(&r, &root, check_walked, &w, &err) != 0)
        fail_msg("%s", err.message);
    assert_int_equal(w.seen, t->count);
}

static void test_the_order_of_entries_does_not_show(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng r;
        struct random_tree t;
        struct image a, b;
        rng_seed(&r, seed);
        random_fill(&t, &r);
        make(&a, t.entries, t.count);
        check_all(&a, &t);
        shuffle(&t, &r);
        make(&b, t.entries, t.count);
        if (a.header.len != b.header.len || memcmp(a.header.data, b.header.data, a.header.len) != 0)
            fail_msg("seed %llu: two images differ", (unsigned long long)seed);
        image_done(&a);
        image_done(&b);
        random_done(&t);
    }
}

/* Each sector of a header is damaged in turn: the reader ends, with an error or without. */
static void test_damage_ends(void **state)
{
    (void)state;
    struct rng r;
    struct random_tree t;
    struct image im;
    rng_seed(&r, 7);
    random_fill(&t, &r);
    make(&im, t.entries, t.count);
    for (size_t i = 0; i < 3000; i++) {
        size_t at = 16 * ISO_BLOCK + rng_below(&r, im.header.len - 16 * ISO_BLOCK);
        char was = im.header.data[at];
        im.header.data[at] = (char)rng_next(&r);
        struct iso_reader reader;
        struct iso_found f;
        struct error err = ERROR_INIT;
        const struct iso_source s = {
            .read = read_header, .context = &im, .size = (uint64_t)im.layout->blocks * ISO_BLOCK};
        int rc = iso_reader_open(&reader, &s, &err);
        if (rc == 0)
            rc = iso_reader_find(&reader, "/no/such", &f, &err);
        assert_int_not_equal(rc, 0);
        assert_true(err.message[0] != '\0');
        im.header.data[at] = was;
    }
    image_done(&im);
    random_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attributes_come_back),
        cmocka_unit_test(test_sections_of_a_large_file),
        cmocka_unit_test(test_equal_contents_share_blocks),
        cmocka_unit_test(test_names_of_each_length),
        cmocka_unit_test(test_targets_of_links),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_policies_of_names),
        cmocka_unit_test(test_joliet_refuses_what_it_cannot_hold),
        cmocka_unit_test(test_an_image_has_no_more_than_8_tib),
        cmocka_unit_test(test_limit_of_entries),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_days),
        cmocka_unit_test(test_the_order_of_entries_does_not_show),
        cmocka_unit_test(test_damage_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
