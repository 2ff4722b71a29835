/* A store of two mountpaths, for tests. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/store/list.h"
#include "target/store/object.h"

enum { BUCKET = 7, BUFFER = 4096 };
#define FIXTURE_GROW                       \
    {                                      \
        .first = 1 << 20, .most = 16 << 20 \
    }
#define FIXTURE_ALLOCATE                   \
    {                                      \
        .first = 64 << 20, .most = 1 << 30 \
    }

static struct fixture {
    char dir[64];
    struct mountpaths *mountpaths;
    struct object_store *store;
    uint64_t term, map;
    const char *committed_job;
} fx;

static void fixture_map(void *ctx, uint64_t *term, uint64_t *map_version)
{
    const struct fixture *f = ctx;
    *term = f->term;
    *map_version = f->map;
}

static bool fixture_job_committed(void *ctx, const char *job_id)
{
    const struct fixture *f = ctx;
    return f->committed_job != NULL && strcmp(f->committed_job, job_id) == 0;
}

static const struct object_env fixture_env = {
    .ctx = &fx, .map = fixture_map, .job_committed = fixture_job_committed};

/* The code, and the words in *err, of opening these of the fixture's mountpaths: "1,2". */
static inline int fixture_try_open(const char *which, struct mountpaths_config config,
                                   struct error *err)
{
    char list[300] = "";
    for (const char *at = which; *at != '\0'; at++) {
        size_t used = strlen(list);
        if (*at == ',')
            snprintf(list + used, sizeof list - used, ",");
        else
            snprintf(list + used, sizeof list - used, "%s/mp%c", fx.dir, *at);
    }
    config.list = list;
    if (config.close_wait_ms == 0)
        config.close_wait_ms = 5000;
    if (config.target_id == NULL)
        config.target_id = "t1";
    config.index_map_size = 1 << 30;
    config.disk_depth = 64;
    config.readers = 1;
    config.readers_queue = 64;
    int code = mountpaths_open(&config, &fx.mountpaths, err);
    if (code == 0)
        fx.store = object_store_new(&(struct object_store_config){
            .mountpaths = fx.mountpaths,
            .env = &fixture_env,
            .put_buffer_bytes = BUFFER,
            .put_memory_bytes = 1 << 20,
            .grow = FIXTURE_GROW,
            .allocate = FIXTURE_ALLOCATE,
        });
    return code;
}

static inline void fixture_open_with(const char *which, struct mountpaths_config config)
{
    struct error err = ERROR_INIT;
    if (fixture_try_open(which, config, &err) != 0)
        fail_msg("%s", err.message);
}

static inline void fixture_open(void)
{
    fixture_open_with("1,2", (struct mountpaths_config){0});
}

/* The set in force; it stays valid until the test changes it. */
static inline const struct mountpath_set *fixture_set(void)
{
    const struct mountpath_set *set = mountpaths_current(fx.mountpaths);
    mountpath_set_unref(set);
    return set;
}

static inline struct mountpath *fixture_mp(size_t i)
{
    return fixture_set()->all[i];
}

static inline struct mountpath *fixture_pick(const char *name)
{
    struct mountpath *mp;
    assert_int_equal(mountpath_set_pick(fixture_set(), BUCKET, name, &mp, NULL), 0);
    return mp;
}

static inline void fixture_close(void)
{
    object_store_free(fx.store);
    mountpaths_close(fx.mountpaths);
    fx.store = NULL;
    fx.mountpaths = NULL;
}

/* The next opening finds indexes of which nothing is known, as after a loss of power. */
static inline void fixture_forget_markers(void)
{
    static const char *const names[] = {"complete", "session"};
    for (unsigned i = 0; i < 4; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/mp%u/.dfc/index/%s", fx.dir, 1 + i / 2, names[i % 2]);
        assert_true(unlink(path) == 0 || errno == ENOENT);
    }
}

/* In memory where that keeps user attributes: what the tests ask is not how fast a disk syncs. */
static inline bool fixture_make_dir(const char *below)
{
    snprintf(fx.dir, sizeof fx.dir, "%s/dfc-store-XXXXXX", below);
    if (mkdtemp(fx.dir) == NULL)
        return false;
    if (setxattr(fx.dir, ATTR_XATTR, "x", 1, 0) == 0)
        return true;
    rmdir(fx.dir);
    return false;
}

static inline int fixture_setup_closed(void **state)
{
    (void)state;
    fx = (struct fixture){.term = 1, .map = 1};
    log_set_level(LOG_OFF);
    return fixture_make_dir("/dev/shm") || fixture_make_dir("/tmp") ? 0 : -1;
}

static inline int fixture_setup(void **state)
{
    int rc = fixture_setup_closed(state);
    if (rc == 0)
        fixture_open();
    return rc;
}

static inline int fixture_teardown(void **state)
{
    (void)state;
    fault_configure(NULL, NULL);
    fixture_close();
    return file_remove_tree(fx.dir, NULL);
}

#define store_test(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
#define closed_test(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup_closed, fixture_teardown)

/* --- objects, shortly ------------------------------------------------------------------------- */

static inline struct object_put_spec spec_of(const char *name, enum durability durability)
{
    return (struct object_put_spec){.bucket_id = BUCKET,
                                    .name = name,
                                    .size = OBJECT_SIZE_UNKNOWN,
                                    .durability = durability,
                                    .checksum = CHECKSUM_XXH3};
}

static inline int put_bytes(const struct object_put_spec *spec, const void *data, size_t len,
                            struct error *err)
{
    struct object_put *p;
    int code = object_put_begin(fx.store, spec, &p, err);
    if (code != 0)
        return code;
    if ((code = object_put_write(p, data, len, err)) != 0) {
        object_put_abort(p);
        return code;
    }
    return object_put_commit_wait(p, err);
}

static inline int put_text_as(const char *name, const char *text, enum durability durability,
                              struct error *err)
{
    struct object_put_spec spec = spec_of(name, durability);
    return put_bytes(&spec, text, strlen(text), err);
}

static inline void put_text(const char *name, const char *text)
{
    struct error err = ERROR_INIT;
    if (put_text_as(name, text, DURABILITY_ASYNC, &err) != 0)
        fail_msg("put '%s': %s", name, err.message);
}

static inline void put_text_hidden(const char *name, const char *text, const char *job_id)
{
    struct object_put_spec spec = spec_of(name, DURABILITY_SYNC);
    struct error err = ERROR_INIT;
    spec.job_id = job_id;
    if (put_bytes(&spec, text, strlen(text), &err) != 0)
        fail_msg("put '%s': %s", name, err.message);
}

struct delete_wait {
    atomic_int code;
    struct error err;
};

static inline void delete_done(void *arg, const struct attr *attr, const struct error *err)
{
    struct delete_wait *w = arg;
    (void)attr;
    w->err = *err;
    atomic_store(&w->code, err->code);
}

/* Deletes and waits; the disk's thread ends a sync one. */
static inline int delete_as(const char *name, enum durability durability, struct error *err)
{
    struct delete_wait w = {.code = 1};
    object_delete(fx.store, BUCKET, name, durability, NULL, NULL, delete_done, &w);
    while (atomic_load(&w.code) == 1)
        usleep(100);
    if (err != NULL)
        *err = w.err;
    return atomic_load(&w.code);
}

static inline int delete_name(const char *name)
{
    return delete_as(name, DURABILITY_ASYNC, NULL);
}

/* The object's bytes, or NULL where there is none. */
static inline char *get_text(const char *name)
{
    struct object o;
    struct error err = ERROR_INIT;
    int code = object_open(fx.store, BUCKET, name, &o, &err);
    if (code == E_OBJECT_NOT_FOUND)
        return NULL;
    if (code != 0)
        fail_msg("get '%s': %s", name, err.message);
    char *text = xmalloc(o.attr.size + 1);
    assert_int_equal(file_pread_full(o.fd, text, o.attr.size, 0, NULL), 0);
    text[o.attr.size] = '\0';
    close(o.fd);
    struct checksum *sum = checksum_new(o.attr.checksum.type);
    struct checksum_value value;
    checksum_update(sum, text, o.attr.size);
    checksum_final(sum, &value);
    checksum_free(sum);
    assert_true(checksum_equal(&value, &o.attr.checksum));
    return text;
}

static inline void assert_text(const char *name, const char *want)
{
    _cleanup_free_ char *got = get_text(name);
    if (want == NULL)
        assert_null(got);
    else if (got == NULL)
        fail_msg("'%s' does not exist", name);
    else
        assert_string_equal(got, want);
}

static inline struct version version_of(const char *name)
{
    struct object o;
    assert_int_equal(object_head(fx.store, BUCKET, name, &o, NULL), 0);
    return o.attr.version;
}

/* The whole list, as "a:1 b:17 " (names and sizes). */
static inline char *list_text(void)
{
    struct list_request req = {
        .bucket_id = BUCKET, .prefix = "", .delimiter = "", .start_after = "", .limit = 1000};
    struct list_page page;
    struct error err = ERROR_INIT;
    if (list_page(fx.store, &req, &page, &err) != 0)
        fail_msg("list: %s", err.message);
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < page.entry_count; i++)
        buf_printf(&out, "%s:%llu ", page.entries[i].name,
                   (unsigned long long)page.entries[i].record.size);
    list_page_done(&page);
    buf_puts(&out, "");
    return buf_steal(&out);
}

static inline void assert_list(const char *want)
{
    _cleanup_free_ char *got = list_text();
    assert_string_equal(got, want);
}

static inline unsigned count_in(const char *mountpath, const char *below)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s/.dfc/%s", fx.dir, mountpath, below);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    unsigned count = 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

/* Nothing unfinished is left behind. */
static inline void assert_no_leftovers_in(const char *mountpath)
{
    assert_int_equal(count_in(mountpath, "tmp"), 0);
}

static inline void assert_no_leftovers(void)
{
    assert_no_leftovers_in("mp1");
    assert_no_leftovers_in("mp2");
}

/* The mountpaths are refused, with these words. */
static inline void fixture_refused(const char *which, struct mountpaths_config config,
                                   const char *words)
{
    struct error err = ERROR_INIT;
    int code = fixture_try_open(which, config, &err);
    if (code == 0)
        fail_msg("'%s' was taken", which);
    if (strstr(err.message, words) == NULL)
        fail_msg("'%s' does not say '%s'", err.message, words);
    assert_null(fx.mountpaths);
}

/* A shell command, in which A and B are paths below the fixture's directory. */
static inline void fixture_run(const char *fmt, const char *a, const char *b)
{
    char command[512];
    size_t used = 0;
    for (const char *at = fmt; *at != '\0'; at++) {
        int n = *at == 'A'   ? snprintf(command + used, sizeof command - used, "%s/%s", fx.dir, a)
                : *at == 'B' ? snprintf(command + used, sizeof command - used, "%s/%s", fx.dir, b)
                             : snprintf(command + used, sizeof command - used, "%c", *at);
        used += (size_t)n;
    }
    assert_int_equal(system(command), 0);
}
