#include "cache/files.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fault.h"
#include "common/mem.h"
#include "io/file.h"

#define SIZE (PIECE_PART * 3 + 17)

static const struct cache_entity entity = {
    .name = "b/1\nset/o\n\"e1\"", .set = "b/set", .size = PIECE_BYTES + SIZE};
static char directory[] = "/tmp/dfc-cache-files-XXXXXX";
static unsigned char data[SIZE];

static int setup(void **state)
{
    (void)state;
    memcpy(directory + strlen(directory) - 6, "XXXXXX", 6);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (unsigned char)(i * 31 >> 3);
    return mkdtemp(directory) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    fault_configure(NULL, NULL);
    return file_remove_tree(directory, NULL);
}

static struct files *open_files(void)
{
    struct files *f;
    struct error err = ERROR_INIT;
    if (files_open(directory, &f, &err) != 0)
        fail_msg("%s", err.message);
    return f;
}

static int put(struct files *f, const struct piece *p)
{
    size_t bytes = 0;
    struct files_writer *w = files_begin(f, p);
    int rc = files_write(w, PIECE_PART, data + PIECE_PART, SIZE - PIECE_PART);
    if (rc == 0) {
        assert_false(files_is_whole(w));
        rc = files_write(w, 0, data, PIECE_PART);
    }
    if (rc != 0) {
        files_abandon(w);
        return rc;
    }
    assert_true(files_is_whole(w));
    rc = files_publish(w, &bytes);
    assert_true(rc != 0 || bytes >= SIZE);
    return rc;
}

/* All of it. */
static int get(struct files *f, const struct piece *p)
{
    unsigned char got[SIZE];
    struct files_piece found;
    int rc = files_find(f, p, &found);
    if (rc != 0)
        return rc;
    rc = files_read(&found, p, 0, SIZE, got);
    if (rc == 0)
        assert_memory_equal(got, data, SIZE);
    files_found_close(&found);
    return rc;
}

/* The path of the only piece; malloc'ed. */
static char *path_of(const struct piece *p)
{
    char name[PIECE_NAME];
    piece_name(&p->id, name);
    return xprintf("%s/dfc-cache/pieces/%016llx/%02x/%s", directory, (unsigned long long)p->set,
                   (unsigned)(p->id.entity[1] + p->id.index) & 0xff, name);
}

static unsigned names_in(const char *below)
{
    unsigned count = 0;
    char line[256];
    char *command = xprintf("find %s/dfc-cache/%s -type f", directory, below);
    FILE *out = popen(command, "r");
    while (fgets(line, sizeof line, out) != NULL)
        count++;
    pclose(out);
    free(command);
    return count;
}

static void a_piece_is_read_as_it_was_written(void **state)
{
    (void)state;
    unsigned char part[PIECE_PART];
    struct stat st;
    struct files_piece found;
    struct files *f = open_files();
    const struct piece p = piece_of(&entity, 1);
    assert_int_equal(get(f, &p), -ENOENT);
    assert_int_equal(put(f, &p), 0);
    assert_int_equal(get(f, &p), 0);
    assert_int_equal(files_find(f, &p, &found), 0);
    assert_int_equal(files_read(&found, &p, PIECE_PART, PIECE_PART, part), 0);
    assert_memory_equal(part, data + PIECE_PART, PIECE_PART);
    assert_int_equal(files_read(&found, &p, 3 * PIECE_PART, 17, part), 0);
    assert_memory_equal(part, data + 3 * PIECE_PART, 17);
    files_found_close(&found);
    char *path = path_of(&p);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600); /* others have no right to the bytes */
    free(path);
    assert_int_equal(files_remove(f, &p.id, p.set), 0);
    assert_int_equal(files_remove(f, &p.id, p.set), -ENOENT);
    assert_int_equal(get(f, &p), -ENOENT);
    files_close(f);
    assert_int_equal(names_in("pieces"), 0);
}

static void damage_is_found_wherever_it_is(void **state)
{
    (void)state;
    struct stat st;
    struct files *f = open_files();
    const struct piece p = piece_of(&entity, 1);
    assert_int_equal(put(f, &p), 0);
    char *path = path_of(&p);
    int fd = open(path, O_RDWR);
    assert_int_equal(fstat(fd, &st), 0);
    for (off_t at = 0; at < st.st_size; at += at < SIZE ? 1021 : 1) {
        unsigned char byte;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x40;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        assert_int_equal(get(f, &p), -EBADMSG);
        byte ^= 0x40;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    assert_int_equal(get(f, &p), 0);
    assert_int_equal(ftruncate(fd, st.st_size + 1), 0);
    assert_int_equal(get(f, &p), -EBADMSG);
    for (off_t size = st.st_size - 1; size >= 0; size = size > 1000 ? size - 1000 : size - 1) {
        assert_int_equal(ftruncate(fd, size), 0);
        assert_int_equal(get(f, &p), -EBADMSG);
    }
    close(fd);
    free(path);
    files_close(f);
}

/* It is cut between the look at its foot and the read. */
static void a_piece_that_is_cut_while_it_is_read(void **state)
{
    (void)state;
    unsigned char got[SIZE];
    struct files_piece found;
    struct files *f = open_files();
    const struct piece p = piece_of(&entity, 1);
    assert_int_equal(put(f, &p), 0);
    assert_int_equal(files_find(f, &p, &found), 0);
    char *path = path_of(&p);
    assert_int_equal(truncate(path, 5), 0);
    assert_int_equal(files_read(&found, &p, 0, SIZE, got), -EBADMSG);
    files_found_close(&found);
    free(path);
    files_close(f);
}

static void a_directory_has_one_owner(void **state)
{
    (void)state;
    struct files *second;
    struct error err = ERROR_INIT;
    struct files *f = open_files();
    assert_int_equal(files_open(directory, &second, &err), E_EXISTS);
    assert_non_null(strstr(err.message, "uses this directory"));
    files_close(f);
    files_close(open_files());
    assert_int_not_equal(files_open("/no/such/directory", &second, &err), 0);
    assert_non_null(strstr(err.message, "/no/such/directory"));
}

/* files_open() says so. */
static void refused(const char *why)
{
    struct files *f;
    struct error err = ERROR_INIT;
    assert_int_equal(files_open(directory, &f, &err), E_INVALID);
    assert_non_null(strstr(err.message, "/dfc-cache'"));
    assert_non_null(strstr(err.message, why));
}

static void a_directory_of_others_is_refused(void **state)
{
    struct stat st;
    _cleanup_free_ char *path = xprintf("%s/dfc-cache", directory);
    _cleanup_free_ char *theirs = xprintf("%s/theirs", directory);
    _cleanup_free_ char *lock = xprintf("%s/theirs/lock", directory);
    (void)state;
    assert_int_equal(mkdir(theirs, 0700), 0);
    assert_int_equal(symlink(theirs, path), 0);
    refused("is a link");
    assert_int_not_equal(lstat(lock, &st), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0720), 0);
    refused("(mode 0720)");
    assert_int_equal(chmod(path, 0702), 0);
    refused("(mode 0702)");
    assert_int_equal(rmdir(path), 0); /* nothing was made in it */
    if (geteuid() == 0) {
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(chown(path, 12345, 0), 0);
        refused("belongs to user 12345");
        assert_int_equal(rmdir(path), 0);
    }
    files_close(open_files());
}

static void a_failed_write_leaves_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *faults;
        int rc;
    } rows[] = {
        {"cache.write=ENOSPC@1", -ENOSPC},
        {"cache.write=EIO@2", -EIO},
        {"cache.write=ENOSPC@3", -ENOSPC}, /* the foot */
        {"cache.rename=EROFS", -EROFS},
    };
    struct files *f = open_files();
    const struct piece p = piece_of(&entity, 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(fault_configure(rows[i].faults, NULL), 0);
        assert_int_equal(put(f, &p), rows[i].rc);
        assert_int_equal(fault_configure(NULL, NULL), 0);
        assert_int_equal(names_in(""), 1); /* the lock */
    }
    assert_int_equal(put(f, &p), 0);
    assert_int_equal(fault_configure("cache.read=EIO", NULL), 0);
    assert_int_equal(get(f, &p), -EIO);
    files_close(f);
}

/* A full disk has no room to make it again. */
static void the_directory_of_new_pieces_stays(void **state)
{
    (void)state;
    struct stat st;
    _cleanup_free_ char *path = xprintf("%s/dfc-cache/new", directory);
    _cleanup_free_ char *left = xprintf("%s/5", path);
    files_close(open_files());
    _cleanup_close_ int new = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_close_ int file = open(left, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(new >= 0 && file >= 0);
    files_close(open_files());
    assert_int_equal(names_in("new"), 0);
    assert_int_equal(fstat(new, &st), 0);
    assert_true(st.st_nlink > 0); /* it has a name */
}

/* Killed at each step: what is there later is whole, and nothing else is. */
static void kill_9_at_each_step(void **state)
{
    (void)state;
    static const char *const faults[] = {"cache.write=kill@1", "cache.write=kill@2",
                                         "cache.write=kill@3", "cache.rename=kill"};
    const struct piece p = piece_of(&entity, 1), q = piece_of(&entity, 0);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            struct files *f;
            if (files_open(directory, &f, NULL) == 0 && fault_configure(faults[i], NULL) == 0)
                put(f, &p);
            _exit(1); /* it was not killed */
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        struct files *f = open_files();
        assert_int_equal(names_in("new"), 0);
        assert_int_equal(get(f, &p), -ENOENT);
        assert_int_equal(get(f, &q), -ENOENT);
        files_close(f);
    }
    struct files *f = open_files();
    assert_int_equal(put(f, &p), 0);
    files_close(f);
    f = open_files();
    assert_int_equal(get(f, &p), 0);
    files_close(f);
}

struct seen {
    unsigned count, errors;
    unsigned most; /* errors: then the scan ends; 0: at once */
    uint64_t bytes;
    int64_t last_ms;
};

static void note(void *context, const struct files_seen *s)
{
    struct seen *seen = context;
    assert_true(s->written_ms >= seen->last_ms);
    assert_true(s->bytes >= SIZE);
    seen->last_ms = s->written_ms;
    seen->bytes += s->bytes;
    seen->count++;
}

static bool goes_on(void *context, int rc)
{
    struct seen *seen = context;
    assert_true(rc == 0 || rc == -EIO);
    seen->errors += rc != 0;
    return seen->errors < seen->most;
}

static struct seen scan(struct files *f, unsigned most, const char *faults)
{
    struct seen seen = {.most = most};
    const struct files_scanner scanner = {&seen, note, goes_on};
    assert_int_equal(fault_configure(faults, NULL), 0);
    files_scan(f, &scanner);
    assert_int_equal(fault_configure(NULL, NULL), 0);
    return seen;
}

/* Of three sets one cannot be listed. */
static void a_directory_that_fails_hides_no_other(void **state)
{
    (void)state;
    struct files *f = open_files();
    for (unsigned i = 0; i < 3; i++) {
        char set[32];
        snprintf(set, sizeof set, "set %u", i);
        const struct cache_entity e = {.name = "e", .set = set, .size = PIECE_BYTES + SIZE};
        const struct piece p = piece_of(&e, 1);
        assert_int_equal(put(f, &p), 0);
    }
    struct seen seen = scan(f, 2, "cache.scan=EIO@2"); /* the first of the sets */
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.errors, 1);
    assert_int_equal(scan(f, 1, "cache.scan=EIO").errors, 1);
    seen = scan(f, 2, "cache.scan=EIO@4+"); /* the first of the sets was read */
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.errors, 2);
    assert_int_equal(scan(f, 2, "cache.scan=EIO@2+").errors, 2);
    assert_int_equal(scan(f, 0, NULL).count, 1); /* it ends at once */
    files_close(f);
}

static void a_scan_finds_pieces_alone(void **state)
{
    (void)state;
    struct files_room room;
    struct files *f = open_files();
    for (unsigned i = 0; i < 20; i++) {
        char name[32], set[32];
        snprintf(name, sizeof name, "entity %u", i);
        snprintf(set, sizeof set, "set %u", i % 3);
        const struct cache_entity e = {.name = name, .set = set, .size = PIECE_BYTES + SIZE};
        const struct piece p = piece_of(&e, 1);
        assert_int_equal(put(f, &p), 0);
    }
    char *command = xprintf("cd %s/dfc-cache/pieces && mkdir other 0000000000000001 && "
                            "touch other/file 0000000000000001/file file && ln -s / link",
                            directory);
    assert_int_equal(system(command), 0);
    free(command);
    struct seen seen = scan(f, 1, NULL);
    assert_int_equal(seen.count, 20);
    assert_int_equal(seen.errors, 0);
    assert_int_equal(files_room(f, &room), 0);
    assert_true(room.total_bytes >= room.free_bytes && room.free_bytes > 0);
    files_close(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_piece_is_read_as_it_was_written),
        TEST(damage_is_found_wherever_it_is),
        TEST(a_piece_that_is_cut_while_it_is_read),
        TEST(a_directory_has_one_owner),
        TEST(a_directory_of_others_is_refused),
        TEST(a_failed_write_leaves_nothing),
        TEST(the_directory_of_new_pieces_stays),
        TEST(kill_9_at_each_step),
        TEST(a_scan_finds_pieces_alone),
        TEST(a_directory_that_fails_hides_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
