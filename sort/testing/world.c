#include "sort/testing/world.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/fault.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "io/file.h"
#include "sort/testing/fixture.h"

int world_count(const char *path)
{
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int n = 0;
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 2; /* . and .. */
}

int world_setup(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    char dir[] = "/dev/shm/dfc-sort-task-XXXXXX"; /* outputs are synced: thousands of times */
    assert_non_null(mkdtemp(dir));
    w->dir = xstrdup(dir);
    w->in = xprintf("%s/in", dir);
    w->out = xprintf("%s/out", dir);
    assert_int_equal(file_mkdirs(w->in, 0755, NULL), 0);
    assert_int_equal(file_mkdirs(w->out, 0755, NULL), 0);
    w->descriptors = world_count("/proc/self/fd");
    *state = w;
    return 0;
}

int world_teardown(void **state)
{
    struct world *w = *state;
    fault_configure(NULL, NULL);
    assert_int_equal(world_count("/proc/self/fd"), w->descriptors);
    assert_int_equal(file_remove_tree(w->dir, NULL), 0);
    free(w->dir);
    free(w->in);
    free(w->out);
    free(w);
    return 0;
}

void world_clear_output(struct world *w)
{
    assert_int_equal(file_remove_tree(w->out, NULL), 0);
    assert_int_equal(file_mkdirs(w->out, 0755, NULL), 0);
}

/* --- datasets --------------------------------------------------------------------------------- */

void world_write(const char *dir, const char *name, const struct buf *text)
{
    _cleanup_free_ char *path = xprintf("%s/%s", dir, name);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, text->data, text->len, NULL), 0);
    close(fd);
}

static void add_member(struct world *w, struct buf *tar, const char *key, const char *extension)
{
    char text[4000];
    size_t len = rng_below(&w->rng, 20) == 0 ? 3999 : (size_t)rng_below(&w->rng, 900);
    memset(text, 'a' + (int)rng_below(&w->rng, 26), len);
    text[len] = '\0';
    _cleanup_free_ char *path = xprintf("%s.%s", key, extension);
    if (strlen(path) > 100) {
        fixture_long(tar, 'L', path);
        path[99] = '\0';
    }
    fixture_file(tar, path, text);
}

static void make_shard(struct world *w, unsigned number, unsigned records)
{
    static const char *const extensions[] = {"jpg", "cls", "json"};
    struct buf tar = BUF_INIT;
    struct buf global = BUF_INIT;
    if (rng_below(&w->rng, 5) == 0) {
        fixture_pax_record(&global, "comment", "of all");
        fixture_pax(&tar, 'g', &global);
    }
    unsigned apart = (unsigned)rng_below(&w->rng, 2); /* members of a record side by side or not */
    unsigned members = 1 + (unsigned)rng_below(&w->rng, 3);
    for (unsigned i = 0; i < records * members; i++) {
        unsigned r = apart ? i % records : i / members;
        /* The same keys in several shards now and then, and long ones. */
        int width = (number + r) % 13 == 0 ? 150 : 6;
        _cleanup_free_ char *key =
            xprintf("d%u/%0*u-%u", r % 3, width, (r * 7919 + number % 4 * 13) % 1000, r);
        add_member(w, &tar, key, extensions[apart ? i / records : i % members]);
    }
    fixture_end(&tar);
    char name[32];
    snprintf(name, sizeof name, "s-%03u.tar", number);
    if (records == 0 && number % 2 == 0)
        buf_clear(&tar);
    world_write(w->in, name, &tar);
    buf_done(&tar);
    buf_done(&global);
}

void world_make_dataset(struct world *w, uint64_t seed)
{
    rng_seed(&w->rng, seed);
    w->shards = 1 + (unsigned)rng_below(&w->rng, 14);
    for (unsigned i = 0; i < w->shards; i++)
        make_shard(w, i, rng_below(&w->rng, 6) == 0 ? 0 : 1 + (unsigned)rng_below(&w->rng, 60));
}

struct sort_spec *world_spec(const char *more)
{
    return world_spec_to("o-%04d", more);
}

struct sort_spec *world_spec_to(const char *output_format, const char *more)
{
    _cleanup_free_ char *text = xprintf("{\"input_bck\": \"b\", \"output_format\": \"%s\", "
                                        "\"duplicated_output_records\": \"ignore\"%s}",
                                        output_format, more);
    _cleanup_json_ json_t *doc = NULL;
    struct sort_spec *s = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(json_parse(text, strlen(text), &doc, &err), 0);
    if (sort_spec_parse(doc, &s, &err) != 0)
        fail_msg("%s: %s", text, err.message);
    return s;
}

struct sim_config world_config(struct world *w, const struct sort_spec *spec, unsigned targets)
{
    return (struct sim_config){
        .targets = targets,
        .spec = spec,
        .in_dir = w->in,
        .out_dir = w->out,
        .memory_bytes = 4 * 1024 * 1024,
        .threads = 2,
        .salt = targets,
        .pipe_bytes = 3000,
        .ask_status = true,
    };
}

int world_run(const struct sim_config *config, struct error *err)
{
    struct sim *s = sim_new(config);
    int rc = sim_run(s, err);
    sim_free(s);
    return rc;
}
