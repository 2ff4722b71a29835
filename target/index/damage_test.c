/* Bytes of the index's file that are not what was written: whatever they are, a process that runs
 * into them finds them, or ends and leaves an index that the next one begins anew.  So a damaged
 * file never ends the daemon twice. */
#include "target/index/index.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/mem.h"
#include "common/rng.h"
#include "io/file.h"

enum { MAP_SIZE = 1 << 28, BUCKET = 7, NAMES = 3000, SEEDS = 60, BYTES_MAX = 20, SECONDS_MAX = 30 };

/* How a process ended that read all of it and wrote on it; not as a sanitizer ends it. */
enum { READ_WELL = 10, READ_WRONG, READ_ERROR, READ_ANEW, READ_BROKEN };

static char base[64];

static void name_of(unsigned i, char name[static 1100])
{
    if (i % 100 == 0)
        snprintf(name, 1100, "%0600u-%u", i, i); /* of two levels */
    else
        snprintf(name, 1100, "object-%06u.with.a.name", i);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct index_record record_of(void)
{
    return (struct index_record){.size = 5,
                                 .version = {1, 2, 3},
                                 .checksum = {.type = CHECKSUM_XXH3},
                                 .modified_ms = 1700000000000};
}

/* --- the process that reads: of its own, without a test framework, which has handlers --------- */

static int read_all(struct index *x, char *const *names)
{
    struct index_cursor *c;
    if (index_cursor_open(x, &c, NULL) != 0)
        return READ_ERROR;
    int at = index_cursor_seek(c, BUCKET, "", false, NULL), how = READ_WELL;
    for (unsigned i = 0; i < NAMES && how == READ_WELL; i++, at = index_cursor_next(c, NULL)) {
        if (at < 0)
            how = READ_ERROR;
        else if (at == 0 || strcmp(index_cursor_name(c), names[i]) != 0)
            how = READ_WRONG;
    }
    if (how == READ_WELL && at != 0)
        how = at < 0 ? READ_ERROR : READ_WRONG;
    index_cursor_close(c);
    return how;
}

static int write_some(struct index *x, char *const *names)
{
    struct index_record rec = record_of();
    for (unsigned i = 0; i < NAMES; i += 7) {
        struct error err = ERROR_INIT;
        int code = i % 2 ? index_put(x, BUCKET, names[i], &rec, &err)
                         : index_delete(x, BUCKET, names[i], &err);
        if (code != 0) /* the object's PUT would be refused */
            return READ_BROKEN;
        index_settled(x, BUCKET, names[i]);
    }
    return index_check(x, NULL) == 0 ? READ_WELL : READ_ERROR;
}

static int reader_main(const char *dir)
{
    struct index *x;
    const char *fresh;
    static char *names[NAMES];
    alarm(SECONDS_MAX);
    for (unsigned i = 0; i < NAMES; i++) {
        char name[1100];
        name_of(i, name);
        names[i] = xstrdup(name);
    }
    qsort(names, NAMES, sizeof *names, compare_texts);
    if (index_open(dir, MAP_SIZE, false, &x, &fresh, NULL) != 0)
        return READ_BROKEN;
    if (fresh != NULL)
        return READ_ANEW;
    static const atomic_bool never = false;
    bool idle;
    uint64_t changes = index_changes(x, &idle);
    int how = index_verify(x, changes, &never, NULL) != 0 ? READ_ERROR : read_all(x, names);
    /* What was read with an error makes it stale: nobody is shown less than there is. */
    if (how == READ_ERROR && index_check(x, NULL) == 0)
        return READ_BROKEN;
    int wrote = write_some(x, names);
    return how == READ_WELL || wrote == READ_BROKEN ? wrote : how;
}

/* --- the test --------------------------------------------------------------------------------- */

static void make_index(void)
{
    struct index *x;
    const char *fresh;
    char dir[80];
    snprintf(dir, sizeof dir, "%s/whole", base);
    assert_int_equal(index_open(dir, MAP_SIZE, false, &x, &fresh, NULL), 0);
    for (unsigned i = 0; i < NAMES; i++) {
        char name[1100];
        name_of(i, name);
        struct index_item item = {.bucket_id = BUCKET, .name = name, .record = record_of()};
        assert_int_equal(index_fill(x, &item, 1, NULL), 0);
    }
    index_set_complete(x);
    index_close(x);
}

static int run_reader(const char *dir)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nothing, STDERR_FILENO); /* LMDB's assertions, a sanitizer's report */
        execl("/proc/self/exe", "index_damage_test", dir, NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        fail_msg("%s: it did not end", dir);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void damage(const char *dir, struct rng *r)
{
    char path[100];
    struct stat st;
    snprintf(path, sizeof path, "%s/data.mdb", dir);
    _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    uint64_t bytes = 1 + rng_below(r, BYTES_MAX);
    for (uint64_t i = 0; i < bytes; i++) {
        unsigned char byte;
        off_t at = (off_t)rng_below(r, (uint64_t)st.st_size);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= (unsigned char)(1 + rng_below(r, 255));
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
}

static int ends[64];

static void count_end(int how)
{
    ends[how < 0 ? 32 + -how % 32 : how % 32]++;
}

static void one_damage(uint64_t seed)
{
    char dir[80], command[300];
    struct rng r;
    rng_seed(&r, seed);
    snprintf(dir, sizeof dir, "%s/damaged", base);
    snprintf(command, sizeof command, "rm -rf %s && cp -r %s/whole %s", dir, base, dir);
    assert_int_equal(system(command), 0);
    damage(dir, &r);
    int how = run_reader(dir);
    count_end(how);
    if (how == READ_BROKEN)
        fail_msg("seed %llu: damage is not told, or refuses writes", (unsigned long long)seed);
    if (how == READ_WELL || how == READ_WRONG)
        return;
    /* Once is enough. */
    int again = run_reader(dir);
    if (again != READ_ANEW)
        fail_msg("seed %llu: %d, and then %d", (unsigned long long)seed, how, again);
}

static void test_damage_never_ends_two_processes(void **state)
{
    (void)state;
    snprintf(base, sizeof base, "/tmp/dfc-damage-XXXXXX");
    assert_non_null(mkdtemp(base));
    make_index();
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        one_damage(seed);
    print_message("well %d, wrong %d, error %d, anew %d, signals or sanitizer %d\n",
                  ends[READ_WELL], ends[READ_WRONG], ends[READ_ERROR], ends[READ_ANEW],
                  SEEDS - ends[READ_WELL] - ends[READ_WRONG] - ends[READ_ERROR] - ends[READ_ANEW]);
    assert_true(ends[READ_ERROR] > SEEDS / 10);
    assert_int_equal(ends[READ_WRONG], 0);
    assert_int_equal(file_remove_tree(base, NULL), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        _exit(reader_main(argv[1])); /* as it stands: nothing is given back */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damage_never_ends_two_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
