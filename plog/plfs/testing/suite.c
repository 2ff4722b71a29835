/* The calls of plfs.h against a cluster, as a program that was written for PLFS uses them:
 *
 *     plfs-suite DIRECTORY           every test, below this directory (which exists)
 *     plfs-suite DIRECTORY NAME      one of them
 *
 * Prints the name of each test; the first expectation that fails ends the program with 1. */
#include "plog/plfs/plfs.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_MAX_BYTES = 1024 };

static const char *top;

/* DIRECTORY/name; of the last eight calls. */
static const char *path(const char *name)
{
    static char paths[8][PATH_MAX_BYTES];
    static unsigned at;
    char *out = paths[at++ % 8];
    snprintf(out, PATH_MAX_BYTES, "%s/%s", top, name);
    return out;
}

static void expect(plfs_error_t got, plfs_error_t wanted, const char *what, int line)
{
    if (got == wanted)
        return;
    printf("line %d: %s: %s, not %s: %s\n", line, what, strplfserr(got), strplfserr(wanted),
           plfs_dfc_error());
    exit(1);
}
#define EXPECT(call, wanted) expect(call, wanted, #call, __LINE__)
#define OK(call) EXPECT(call, PLFS_SUCCESS)
#define CHECK(truth)                                           \
    do {                                                       \
        if (!(truth)) {                                        \
            printf("line %d: not so: %s\n", __LINE__, #truth); \
            exit(1);                                           \
        }                                                      \
    } while (0)

static void write_at(Plfs_fd *fd, const char *text, off_t offset)
{
    ssize_t n;
    OK(plfs_write(fd, text, strlen(text), offset, getpid(), &n));
    CHECK(n == (ssize_t)strlen(text));
}

static Plfs_fd *open_file(const char *name, int flags)
{
    Plfs_fd *fd = NULL;
    OK(plfs_open(&fd, path(name), flags, getpid(), 0644, NULL));
    return fd;
}

static void close_file(Plfs_fd *fd)
{
    int left = -1;
    OK(plfs_close(fd, getpid(), getuid(), 0, NULL, &left));
    CHECK(left == 0);
}

static off_t size_of(const char *name)
{
    struct stat st;
    OK(plfs_getattr(NULL, path(name), &st, 1));
    return st.st_size;
}

static void need_bytes(Plfs_fd *fd, const char *bytes, size_t len)
{
    char got[256];
    ssize_t n;
    OK(plfs_read(fd, got, sizeof got, 0, &n));
    if (n != (ssize_t)len || memcmp(got, bytes, len) != 0) {
        printf("read '%.*s', not '%.*s'\n", (int)n, got, (int)len, bytes);
        exit(1);
    }
}

/* Size and bytes, as a new reader finds them. */
static void need_file(const char *name, const char *bytes, size_t len)
{
    Plfs_fd *fd = open_file(name, O_RDONLY);
    need_bytes(fd, bytes, len);
    close_file(fd);
    CHECK(size_of(name) == (off_t)len);
}

static void make(const char *name, const char *text)
{
    Plfs_fd *fd = open_file(name, O_CREAT | O_WRONLY | O_TRUNC);
    write_at(fd, text, 0);
    close_file(fd);
}

/* --- files ------------------------------------------------------------------------------------ */

static void test_create(void)
{
    OK(plfs_create(path("create"), 0666, 0, getpid()));
    OK(plfs_create(path("create"), 0666, 0, getpid()));
    EXPECT(plfs_create(path("create"), 0666, O_EXCL, getpid()), PLFS_EEXIST);
    OK(plfs_access(path("create"), F_OK));
    CHECK(plfs_get_filetype(path("create")) == CONTAINER);
    OK(plfs_unlink(path("create")));
    EXPECT(plfs_access(path("create"), F_OK), PLFS_ENOENT);
    EXPECT(plfs_unlink(path("create")), PLFS_ENOENT);
    CHECK(plfs_get_filetype(path("create")) == PFT_UNKNOWN);
    CHECK(is_plfs_path(path("create")) == 1 && is_plfs_path("/etc/passwd") == 0);
}

static void test_open_close(void)
{
    Plfs_fd *fd = NULL;
    size_t writers, readers, bytes;
    int left;
    EXPECT(plfs_open(&fd, path("absent"), O_RDONLY, 1, 0666, NULL), PLFS_ENOENT);
    CHECK(fd == NULL);
    EXPECT(plfs_open(&fd, "/etc/passwd", O_RDONLY, 1, 0666, NULL), PLFS_EINVAL);
    OK(plfs_create(path("open"), 0666, 0, 1));
    OK(plfs_open(&fd, path("open"), O_RDWR, 1, 0666, NULL));
    OK(plfs_open(&fd, path("open"), O_RDWR, 2, 0666, NULL));
    EXPECT(plfs_open(&fd, path("open"), O_RDONLY, 2, 0666, NULL), PLFS_EINVAL);
    EXPECT(plfs_open(&fd, path("other"), O_RDWR, 2, 0666, NULL), PLFS_EINVAL);
    write_at(fd, "bytes", 0);
    OK(plfs_query(fd, &writers, &readers, &bytes, NULL));
    CHECK(writers == 2 && readers == 2 && bytes == 5);
    OK(plfs_close(fd, 1, 0, 0, NULL, &left));
    CHECK(left == 1);
    need_bytes(fd, "bytes", 5);
    OK(plfs_close(fd, 2, 0, 0, NULL, &left));
    CHECK(left == 0);
    fd = open_file("open", O_CREAT | O_RDONLY);
    OK(plfs_unlink(path("open")));
    close_file(fd);
    EXPECT(plfs_access(path("open"), F_OK), PLFS_ENOENT);
}

static void test_read_write(void)
{
    static const char text[] = "HELLO WORLD.";
    char got[sizeof text];
    ssize_t n;
    Plfs_fd *fd = open_file("rw", O_CREAT | O_RDWR);
    for (int i = 0; i < 20; i++) {
        const off_t offset = (off_t)i * 100000007 % 2147483629;
        OK(plfs_write(fd, text, sizeof text, offset, i, &n));
        CHECK(n == sizeof text);
        OK(plfs_sync(fd));
        OK(plfs_read(fd, got, sizeof got, offset, &n));
        CHECK(n == sizeof text && strcmp(got, text) == 0);
    }
    EXPECT(plfs_write(fd, text, 1, -1, 0, &n), PLFS_EINVAL);
    EXPECT(plfs_read(fd, got, 1, -1, &n), PLFS_EINVAL);
    OK(plfs_read(fd, got, 1, (off_t)1 << 40, &n));
    CHECK(n == 0);
    close_file(fd);
    fd = open_file("rw", O_RDONLY);
    EXPECT(plfs_write(fd, text, 1, 0, 0, &n), PLFS_EBADF);
    close_file(fd);
    fd = open_file("rw", O_WRONLY);
    EXPECT(plfs_read(fd, got, 1, 0, &n), PLFS_EBADF);
    close_file(fd);
    OK(plfs_unlink(path("rw")));
}

static void test_truncate(void)
{
    struct stat st;
    Plfs_fd *fd = open_file("trunc", O_CREAT | O_RDWR);
    write_at(fd, "SIMPLE_TRUNCATE_TEST.", 0);
    OK(plfs_trunc(fd, path("trunc"), 15, 1));
    OK(plfs_getattr(fd, path("trunc"), &st, 1));
    CHECK(st.st_size == 15);
    close_file(fd);
    OK(plfs_trunc(NULL, path("trunc"), 5, 0));
    need_file("trunc", "SIMPL", 5);
    OK(plfs_trunc(NULL, path("trunc"), 7, 0));
    need_file("trunc", "SIMPL\0\0", 7);
    EXPECT(plfs_trunc(NULL, path("trunc"), -1, 0), PLFS_EINVAL);
    EXPECT(plfs_trunc(NULL, path("absent"), 0, 0), PLFS_ENOENT);
    make("trunc", "a"); /* O_TRUNC */
    need_file("trunc", "a", 1);
    OK(plfs_unlink(path("trunc")));
}

static void test_attributes(void)
{
    struct stat st;
    struct utimbuf times = {.modtime = 1000000};
    /* The last one is 384 ms where a product wraps. */
    const time_t beyond[] = {(time_t)1 << 40, INT64_MAX / 100, (time_t)(UINT64_MAX / 1000 + 1)};
    mode_t mode;
    make("attr", "x");
    for (mode_t m = 0; m < 01000; m += 0111) {
        OK(plfs_chmod(path("attr"), m));
        OK(plfs_mode(path("attr"), &mode));
        CHECK(mode == (S_IFREG | m));
    }
    OK(plfs_chown(path("attr"), 12, 34));
    OK(plfs_chown(path("attr"), (uid_t)-1, 56));
    OK(plfs_utime(path("attr"), &times));
    OK(plfs_getattr(NULL, path("attr"), &st, 0));
    CHECK(st.st_uid == 12 && st.st_gid == 56 && st.st_mtime == 1000000 && st.st_size == 1);
    OK(plfs_utime(path("attr"), NULL));
    OK(plfs_getattr(NULL, path("attr"), &st, 0));
    CHECK(st.st_mtime > 1000000);
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        times.modtime = beyond[i];
        EXPECT(plfs_utime(path("attr"), &times), PLFS_EINVAL);
    }
    EXPECT(plfs_chmod(path("absent"), 0644), PLFS_ENOENT);
    need_file("attr", "x", 1);
    OK(plfs_unlink(path("attr")));
}

static void test_rename(void)
{
    make("a", "first");
    make("b", "second");
    for (int i = 0; i < 5; i++) {
        OK(plfs_rename(path("a"), path("c")));
        OK(plfs_rename(path("c"), path("a")));
    }
    OK(plfs_rename(path("a"), path("a")));
    OK(plfs_rename(path("a"), path("b")));
    need_file("b", "first", 5);
    EXPECT(plfs_access(path("a"), F_OK), PLFS_ENOENT);
    EXPECT(plfs_rename(path("a"), path("b")), PLFS_ENOENT);
    OK(plfs_unlink(path("b")));
}

static void test_directories(void)
{
    char name[64], small[2];
    unsigned seen = 0;
    Plfs_dirp *dir;
    OK(plfs_mkdir(path("dir"), 0755));
    EXPECT(plfs_mkdir(path("dir"), 0755), PLFS_EEXIST);
    OK(plfs_mkdir(path("dir/sub"), 0755));
    make("dir/file", "x");
    EXPECT(plfs_rmdir(path("dir")), PLFS_ENOTEMPTY);
    struct stat st;
    OK(plfs_getattr(NULL, path("dir"), &st, 0));
    CHECK(S_ISDIR(st.st_mode));
    OK(plfs_opendir_c(path("dir"), &dir));
    EXPECT(plfs_readdir_c(dir, small, sizeof small), PLFS_ENAMETOOLONG);
    do {
        OK(plfs_readdir_c(dir, name, sizeof name));
        seen += strcmp(name, "file") == 0  ? 1
                : strcmp(name, "sub") == 0 ? 16
                : name[0] != 0             ? 99
                                           : 0;
    } while (name[0] != '\0');
    CHECK(seen == 17);
    OK(plfs_closedir_c(dir));
    OK(plfs_unlink(path("dir/file")));
    OK(plfs_rmdir(path("dir/sub")));
    OK(plfs_rmdir(path("dir")));
    EXPECT(plfs_rmdir(path("dir")), PLFS_ENOENT);
    EXPECT(plfs_opendir_c(path("dir"), &dir), PLFS_ENOENT);
}

static void test_what_is_not_there(void)
{
    char text[8];
    int n;
    EXPECT(plfs_link(path("a"), path("b")), PLFS_ENOSYS);
    EXPECT(plfs_symlink(path("a"), path("b")), PLFS_ENOSYS);
    EXPECT(plfs_readlink(path("a"), text, sizeof text, &n), PLFS_ENOSYS);
    EXPECT(plfs_open(&(Plfs_fd *){NULL}, "dfc://bucket", O_RDONLY, 0, 0, NULL), PLFS_EISDIR);
    CHECK(errno_to_plfs_error(plfs_error_to_errno(PLFS_ENOTEMPTY)) == PLFS_ENOTEMPTY);
    CHECK(strlen(plfs_version()) > 0 && plfs_wtime() > 1e9);
}

/* "flat" is an object with the text "bytes": the caller has stored it. */
static void test_flat_object(void)
{
    Plfs_fd *fd = NULL;
    char got[8];
    ssize_t n;
    CHECK(plfs_get_filetype(path("flat")) == FLAT_FILE);
    need_file("flat", "bytes", 5);
    EXPECT(plfs_open(&fd, path("flat"), O_RDWR, 0, 0644, NULL), PLFS_ENOTSUP);
    EXPECT(plfs_trunc(NULL, path("flat"), 0, 0), PLFS_ENOTSUP);
    fd = open_file("flat", O_RDONLY);
    OK(plfs_read(fd, got, sizeof got, 3, &n));
    CHECK(n == 2 && memcmp(got, "es", 2) == 0);
    OK(plfs_read(fd, got, sizeof got, 5, &n));
    CHECK(n == 0);
    OK(plfs_sync(fd));
    close_file(fd);
}

/* --- what PLFS itself got wrong --------------------------------------------------------------- */

static void test_defect_append_after_flatten(void)
{
    make("d", "aaaaaaaaaa");
    OK(plfs_flatten_index(NULL, path("d")));
    Plfs_fd *fd = open_file("d", O_WRONLY);
    write_at(fd, "bbbbbbbbbb", 10);
    close_file(fd);
    need_file("d", "aaaaaaaaaabbbbbbbbbb", 20);
}

static void test_defect_truncate_after_flatten(void)
{
    make("d", "aaaaaaaaaa");
    OK(plfs_flatten_index(NULL, path("d")));
    OK(plfs_trunc(NULL, path("d"), 5, 0));
    need_file("d", "aaaaa", 5);
}

static void test_defect_flatten_of_a_writer(void)
{
    Plfs_fd *fd = open_file("d", O_CREAT | O_RDWR | O_TRUNC);
    write_at(fd, "aaaaaaaaaa", 0);
    EXPECT(plfs_flatten_index(fd, path("d")), PLFS_EBUSY);
    need_file("d", "aaaaaaaaaa", 10); /* it was synced */
    close_file(fd);
    need_file("d", "aaaaaaaaaa", 10);
}

static void test_defect_truncate_leaks_a_byte(void)
{
    Plfs_fd *fd = open_file("d", O_CREAT | O_RDWR | O_TRUNC);
    write_at(fd, "DDDDDDDDDD", 0);
    OK(plfs_trunc(fd, path("d"), 5, 1));
    write_at(fd, "E", 8);
    need_bytes(fd, "DDDDD\0\0\0E", 9);
    close_file(fd);
    need_file("d", "DDDDD\0\0\0E", 9);
}

static void test_defect_contiguous_writes(void)
{
    Plfs_fd *one = open_file("d", O_CREAT | O_RDWR | O_TRUNC), *two = open_file("d", O_RDWR);
    write_at(one, "aaaa", 0);
    OK(plfs_sync(one));
    write_at(two, "XX", 0);
    OK(plfs_sync(two));
    write_at(one, "bbbb", 4);
    close_file(one);
    close_file(two);
    need_file("d", "XXaabbbb", 8);
}

static void test_defect_truncate_after_overwrite(void)
{
    Plfs_fd *fd = open_file("d", O_CREAT | O_RDWR | O_TRUNC);
    write_at(fd, "aaaaaaaaaa", 0);
    write_at(fd, "XX", 4);
    close_file(fd);
    OK(plfs_trunc(NULL, path("d"), 9, 0));
    need_file("d", "aaaaXXaaa", 9);
}

static void test_defect_time_after_truncate(void)
{
    struct stat st;
    const double before = plfs_wtime();
    make("d", "aaaaaaaaaa");
    OK(plfs_trunc(NULL, path("d"), 5, 0));
    OK(plfs_getattr(NULL, path("d"), &st, 0));
    const double at = (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec / 1e9;
    CHECK(st.st_mtim.tv_nsec < 1000000000 && at > before - 5 && at < plfs_wtime() + 5);
    OK(plfs_unlink(path("d")));
}

/* What plfs_map showed wrong is left for the caller, who has dfcctl. */
static void test_keep(void)
{
    Plfs_fd *fd = open_file("kept", O_CREAT | O_RDWR | O_TRUNC);
    write_at(fd, "aaaaaaaaaa", 0);
    OK(plfs_sync(fd));
    write_at(fd, "XX", 4);
    write_at(fd, "b", 20);
    close_file(fd);
}

/* --- many processes --------------------------------------------------------------------------- */

enum { RANKS = 6, RECORDS = 40, RECORD = 4701 };

static char byte_of(int rank, int record)
{
    return (char)(1 + (rank * 41 + record * 7) % 250);
}

/* Everything that others do with a process's number is over. */
static void wait_for_all(const pid_t *children, int count)
{
    for (int i = 0; i < count; i++) {
        int status;
        CHECK(waitpid(children[i], &status, 0) == children[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void write_records(int rank)
{
    char data[RECORD];
    ssize_t n;
    Plfs_fd *fd = open_file("strided", O_CREAT | O_WRONLY);
    for (int i = 0; i < RECORDS; i++) {
        memset(data, byte_of(rank, i), sizeof data);
        OK(plfs_write(fd, data, sizeof data, ((off_t)i * RANKS + rank) * RECORD, rank, &n));
        if (i == RECORDS / 2)
            OK(plfs_sync(fd));
    }
    close_file(fd);
}

/* Another number of processes reads than wrote. */
static void read_records(int reader, int readers)
{
    static char data[RECORD];
    ssize_t n;
    Plfs_fd *fd = open_file("strided", O_RDONLY);
    for (int i = reader; i < RECORDS * RANKS; i += readers) {
        OK(plfs_read(fd, data, sizeof data, (off_t)i * RECORD, &n));
        CHECK(n == RECORD);
        for (int k = 0; k < RECORD; k++)
            CHECK(data[k] == byte_of(i % RANKS, i / RANKS));
    }
    close_file(fd);
}

static void test_strided(void)
{
    pid_t children[RANKS];
    CHECK(size_of(".") == 0); /* the parent has a client, which its children do not use */
    for (int phase = 0; phase < 2; phase++) {
        const int count = phase == 0 ? RANKS : RANKS - 1;
        fflush(stdout);
        for (int i = 0; i < count; i++) {
            children[i] = fork();
            if (children[i] != 0)
                continue;
            phase == 0 ? write_records(i) : read_records(i, count);
            exit(0);
        }
        wait_for_all(children, count);
    }
    CHECK(size_of("strided") == (off_t)RANKS * RECORDS * RECORD);
    OK(plfs_flatten_index(NULL, path("strided")));
    read_records(0, 1);
    OK(plfs_unlink(path("strided")));
}

static const struct {
    const char *name;
    void (*run)(void);
    bool by_name_alone;
} tests[] = {
    {"create", test_create, false},
    {"open_close", test_open_close, false},
    {"read_write", test_read_write, false},
    {"truncate", test_truncate, false},
    {"attributes", test_attributes, false},
    {"rename", test_rename, false},
    {"directories", test_directories, false},
    {"what_is_not_there", test_what_is_not_there, false},
    {"defect_append_after_flatten", test_defect_append_after_flatten, false},
    {"defect_truncate_after_flatten", test_defect_truncate_after_flatten, false},
    {"defect_flatten_of_a_writer", test_defect_flatten_of_a_writer, false},
    {"defect_truncate_leaks_a_byte", test_defect_truncate_leaks_a_byte, false},
    {"defect_contiguous_writes", test_defect_contiguous_writes, false},
    {"defect_truncate_after_overwrite", test_defect_truncate_after_overwrite, false},
    {"defect_time_after_truncate", test_defect_time_after_truncate, false},
    {"strided", test_strided, false},
    {"flat_object", test_flat_object, true},
    {"keep", test_keep, true},
};

int main(int argc, char **argv)
{
    int count = 0;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "plfs-suite DIRECTORY [NAME]\n");
        return 2;
    }
    top = argv[1];
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (argc == 3 ? strcmp(argv[2], tests[i].name) != 0 : tests[i].by_name_alone)
            continue;
        printf("%s\n", tests[i].name);
        tests[i].run();
        count++;
    }
    printf("ok %d\n", count);
    return count > 0 ? 0 : 2;
}
