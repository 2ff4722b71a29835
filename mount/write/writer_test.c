#include "mount/write/writer.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/mem.h"

#define PART WRITER_PART_MIN

/* A store of one object, and of one upload's parts. */
struct fake {
    pthread_mutex_t lock;
    char *object; /* NULL: there is none */
    size_t size;
    unsigned version;
    char *parts[8];
    size_t sizes[8];
    unsigned puts, begun, completed, aborted;
    int part_error, put_error;
};

static int condition_check(struct fake *f, const struct write_condition *c)
{
    char etag[16];
    snprintf(etag, sizeof etag, "v%u", f->version);
    if (c->if_match == NULL)
        return f->object == NULL ? 0 : -ESTALE;
    return f->object != NULL && strcmp(etag, c->if_match) == 0 ? 0 : -ESTALE;
}

static char *object_is(struct fake *f, char *data, size_t size)
{
    free(f->object);
    f->object = data;
    f->size = size;
    return xprintf("v%u", ++f->version);
}

static int fake_put(void *context, const char *key, const void *data, size_t size,
                    const struct write_condition *condition, char **etag)
{
    struct fake *f = context;
    assert_string_equal(key, "k");
    f->puts++;
    int rc = f->put_error != 0 ? f->put_error : condition_check(f, condition);
    if (rc != 0)
        return rc;
    char *copy = xmalloc(size + 1);
    if (size > 0)
        memcpy(copy, data, size);
    *etag = object_is(f, copy, size);
    return 0;
}

static int fake_begin(void *context, const char *key, char **upload)
{
    struct fake *f = context;
    f->begun++;
    *upload = xprintf("upload-%s", key);
    return 0;
}

static int fake_part(void *context, const char *key, const char *upload, uint32_t number,
                     const void *data, size_t size, char **tag)
{
    struct fake *f = context;
    assert_string_equal(key, "k");
    assert_string_equal(upload, "upload-k");
    pthread_mutex_lock(&f->lock);
    int rc = f->part_error;
    assert_true(number < 8 && f->parts[number] == NULL);
    if (rc == 0) {
        f->parts[number] = xmalloc(size);
        memcpy(f->parts[number], data, size);
        f->sizes[number] = size;
        *tag = xprintf("t%u", number);
    }
    pthread_mutex_unlock(&f->lock);
    return rc;
}

static int fake_complete(void *context, const char *key, const char *upload, const char *parts,
                         const struct write_condition *condition, char **etag)
{
    struct fake *f = context;
    size_t size = 0;
    assert_string_equal(upload, "upload-k");
    assert_string_equal(key, "k");
    assert_string_equal(
        parts,
        "[{\"part\":1,\"tag\":\"t1\"},{\"part\":2,\"tag\":\"t2\"},{\"part\":3,\"tag\":\"t3\"}]");
    int rc = condition_check(f, condition);
    if (rc != 0)
        return rc;
    char *all = xmalloc(8 * PART);
    for (unsigned i = 1; i < 8; size += f->sizes[i++]) {
        if (f->sizes[i] > 0)
            memcpy(all + size, f->parts[i], f->sizes[i]);
    }
    f->completed++;
    *etag = object_is(f, all, size);
    return 0;
}

static void fake_abort(void *context, const char *key, const char *upload)
{
    struct fake *f = context;
    (void)key;
    (void)upload;
    f->aborted++;
}

static struct writers *make(struct fake *f, uint64_t bytes)
{
    *f = (struct fake){.lock = PTHREAD_MUTEX_INITIALIZER};
    const struct write_store store = {f,         fake_put,      fake_begin,
                                      fake_part, fake_complete, fake_abort};
    const struct writers_options options = {
        .bytes = bytes, .part_bytes = PART, .wait_ms = 0, .senders = 2};
    struct writers *all = writers_new(&options, &store);
    assert_non_null(all);
    return all;
}

static void done(struct fake *f, struct writers *all)
{
    writers_free(all);
    free(f->object);
    for (unsigned i = 0; i < 8; i++)
        free(f->parts[i]);
}

static ssize_t append(struct writer *w, uint64_t offset, const void *data, size_t size)
{
    const struct writer_bytes bytes = {.offset = offset, .data = data, .size = size};
    return writer_append(w, &bytes);
}

static const struct write_condition absent;

static void a_small_file_is_one_put(void **state)
{
    (void)state;
    struct fake f;
    struct writers *all = make(&f, PART);
    struct writer *w = writer_new(all, "k", &absent);
    assert_false(writer_is_saved(w));
    assert_int_equal(append(w, 0, "hello ", 6), 6);
    assert_int_equal(append(w, 6, "world", 5), 5);
    assert_int_equal(writer_size(w), 11);
    assert_null(f.object);
    assert_int_equal(writer_store(w), 0);
    assert_int_equal(writer_store(w), 0);
    assert_true(writer_is_saved(w));
    assert_int_equal(f.puts, 1);
    assert_memory_equal(f.object, "hello world", 11);
    /* It may go on: the next one replaces what this file has stored. */
    assert_int_equal(append(w, 11, "!", 1), 1);
    assert_false(writer_is_saved(w));
    assert_int_equal(writer_store(w), 0);
    assert_int_equal(f.size, 12);
    writer_free(w);
    assert_int_equal(f.begun, 0);
    done(&f, all);
}

static void a_failed_write_fails_the_file(void **state)
{
    (void)state;
    struct fake f;
    struct writers *all = make(&f, PART);
    for (uint64_t offset = 0; offset < 5; offset += 4) { /* before the end, and behind it */
        struct writer *w = writer_new(all, "k", &absent);
        assert_int_equal(append(w, 0, "abc", 3), 3);
        assert_int_equal(append(w, offset, "z", 1), -EOPNOTSUPP);
        assert_int_equal(append(w, 3, "d", 1), -EOPNOTSUPP);
        assert_int_equal(writer_store(w), -EOPNOTSUPP);
        writer_free(w);
    }
    assert_null(f.object);
    assert_int_equal(f.puts, 0);
    done(&f, all);
}

static void an_empty_file_is_stored(void **state)
{
    (void)state;
    struct fake f;
    struct writers *all = make(&f, PART);
    struct writer *w = writer_new(all, "k", &absent);
    assert_int_equal(writer_store(w), 0);
    assert_non_null(f.object);
    assert_int_equal(f.size, 0);
    writer_free(w);
    done(&f, all);
}

static void a_conflict_is_told_and_stays(void **state)
{
    (void)state;
    struct fake f;
    struct writers *all = make(&f, PART);
    struct writer *one = writer_new(all, "k", &absent);
    struct writer *two = writer_new(all, "k", &absent);
    assert_int_equal(append(one, 0, "1", 1), 1);
    assert_int_equal(append(two, 0, "2", 1), 1);
    assert_int_equal(writer_store(one), 0);
    assert_int_equal(writer_store(two), -ESTALE);
    assert_int_equal(writer_store(two), -ESTALE);
    assert_int_equal(append(two, 1, "2", 1), -ESTALE);
    assert_memory_equal(f.object, "1", 1);
    writer_free(one);
    writer_free(two);
    const struct write_condition outdated = {.if_match = "v0"}, present = {.if_match = "v1"};
    one = writer_new(all, "k", &outdated);
    assert_int_equal(writer_store(one), -ESTALE);
    two = writer_new(all, "k", &present);
    assert_int_equal(writer_store(two), 0);
    writer_free(one);
    writer_free(two);
    done(&f, all);
}

static char *pattern(size_t size)
{
    char *data = xmalloc(size);
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 2654435761u >> 11);
    return data;
}

static void append_all(struct writer *w, const char *data, size_t size)
{
    const size_t step = 700001;
    for (size_t at = 0; at < size; at += step) {
        size_t n = size - at < step ? size - at : step;
        assert_int_equal(append(w, at, data + at, n), n);
    }
}

static void a_large_file_is_an_upload(void **state)
{
    (void)state;
    struct fake f;
    const size_t size = 2 * PART + 12345;
    char *data = pattern(size);
    struct writers *all = make(&f, 3 * PART);
    struct writer *w = writer_new(all, "k", &absent);
    append_all(w, data, size);
    assert_null(f.object);
    assert_int_equal(f.begun, 1);
    assert_int_equal(writer_store(w), 0);
    assert_int_equal(f.size, size);
    assert_memory_equal(f.object, data, size);
    assert_int_equal(writer_store(w), 0);
    assert_int_equal(append(w, size, "x", 1), -EOPNOTSUPP);
    assert_int_equal(writer_store(w), -EOPNOTSUPP);
    assert_int_equal(f.completed, 1);
    writer_free(w);
    assert_int_equal(f.aborted + f.puts, 0);
    free(data);
    done(&f, all);
}

static void what_is_not_stored_is_aborted(void **state)
{
    (void)state;
    struct fake f;
    char *data = pattern(PART + 1);
    struct writers *all = make(&f, 3 * PART);
    struct writer *w = writer_new(all, "k", &absent);
    append_all(w, data, PART + 1);
    writer_drop(w);
    assert_true(writer_is_saved(w));
    assert_int_equal(writer_store(w), -EIO);
    writer_free(w);
    assert_int_equal(f.aborted, 1);
    assert_null(f.object);
    free(data);
    done(&f, all);
}

static void a_part_that_fails_fails_the_file(void **state)
{
    (void)state;
    struct fake f;
    char *data = pattern(PART + 1);
    struct writers *all = make(&f, 3 * PART);
    struct writer *w = writer_new(all, "k", &absent);
    f.part_error = -ENOSPC;
    append_all(w, data, PART + 1);
    assert_int_equal(writer_store(w), -ENOSPC);
    assert_int_equal(append(w, PART + 1, "x", 1), -ENOSPC);
    writer_free(w);
    assert_int_equal(f.aborted, 1);
    assert_null(f.object);
    free(data);
    done(&f, all);
}

static void parts_in_memory_are_bounded(void **state)
{
    (void)state;
    struct fake f;
    char *data = pattern(PART);
    struct writers *all = make(&f, PART);
    struct writer *one = writer_new(all, "k", &absent);
    struct writer *two = writer_new(all, "other", &absent);
    append_all(one, data, WRITER_SMALL + 1);
    append_all(two, data, WRITER_SMALL);
    assert_int_equal(append(two, WRITER_SMALL, data, 1), -ENOBUFS);
    writer_free(one);
    assert_int_equal(append(two, WRITER_SMALL, data, 1), 1); /* the same bytes again */
    struct writer *three = writer_new(all, "k", &absent);
    append_all(three, data, WRITER_SMALL);
    assert_int_equal(append(three, WRITER_SMALL, data, 1), -ENOBUFS);
    writer_free(two);
    assert_int_equal(writer_store(three), -ENOBUFS);
    assert_int_equal(f.puts, 0);
    writer_free(three);
    free(data);
    done(&f, all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_file_is_one_put),
        cmocka_unit_test(a_failed_write_fails_the_file),
        cmocka_unit_test(an_empty_file_is_stored),
        cmocka_unit_test(a_conflict_is_told_and_stays),
        cmocka_unit_test(a_large_file_is_an_upload),
        cmocka_unit_test(what_is_not_stored_is_aborted),
        cmocka_unit_test(a_part_that_fails_fails_the_file),
        cmocka_unit_test(parts_in_memory_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
