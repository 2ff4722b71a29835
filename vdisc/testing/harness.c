/* A directory of this machine becomes a flat image, as tests look at it:
 *
 *     vdisc-harness [--joliet] [--reverse] DIRECTORY OUT.iso
 *
 * --reverse gives the entries in the opposite order, which must not show in the image. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "vdisc/iso_layout.h"
#include "vdisc/iso_write.h"

#define OPEN_FILES 16

static struct iso_entry *entries;
static char **files; /* by content number */
static size_t count, room, file_count;
static size_t root_len;

static void die(const char *what, const struct error *err)
{
    fprintf(stderr, "vdisc-harness: %s: %s\n", what, err != NULL ? err->message : strerror(errno));
    exit(1);
}

static char *target_of(const char *path)
{
    char text[ISO_LINK_MAX + 1];
    ssize_t n = readlink(path, text, sizeof text - 1);
    if (n < 0)
        die(path, NULL);
    return xstrndup(text, (size_t)n);
}

static int add(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)at;
    if (count == room) {
        room = room * 2 + 64;
        entries = xrealloc(entries, room * sizeof *entries);
        files = xrealloc(files, room * sizeof *files);
    }
    struct iso_entry *e = &entries[count++];
    *e = (struct iso_entry){.path = xstrdup(path + root_len), .mtime_s = st->st_mtime};
    e->mode = st->st_mode & 07777;
    e->kind = type == FTW_SL ? ISO_LINK : type == FTW_D ? ISO_DIRECTORY : ISO_FILE;
    if (e->kind == ISO_LINK)
        e->target = target_of(path);
    if (e->kind != ISO_FILE)
        return 0;
    e->size = (uint64_t)st->st_size;
    e->content = (uint32_t)file_count;
    files[file_count++] = xstrdup(path);
    return 0;
}

static void reverse(void)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct iso_entry e = entries[i];
        entries[i] = entries[count - 1 - i];
        entries[count - 1 - i] = e;
    }
}

static int put(void *context, const void *bytes, size_t len, struct error *err)
{
    if (write(*(int *)context, bytes, len) == (ssize_t)len)
        return 0;
    return error_errno(err, errno, "write the image");
}

/* Holes stay holes, so that a file of many GiB is quick. */
static void copy_file(const char *path, int to, uint64_t at)
{
    static char piece[1 << 20];
    _cleanup_close_ int from = open(path, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        die(path, NULL);
    for (off_t hole = 0, data; (data = lseek(from, hole, SEEK_DATA)) >= 0;) {
        hole = lseek(from, data, SEEK_HOLE);
        for (off_t p = data; p < hole;) {
            size_t want = (size_t)(hole - p) < sizeof piece ? (size_t)(hole - p) : sizeof piece;
            ssize_t n = pread(from, piece, want, p);
            if (n <= 0 || pwrite(to, piece, (size_t)n, (off_t)at + p) != n)
                die(path, NULL);
            p += n;
        }
    }
}

static void write_image(const struct iso_layout *l, int fd)
{
    const struct iso_volume volume = {0};
    struct error err = ERROR_INIT;
    if (iso_write(l, &volume, put, &fd, &err) != 0)
        die("write", &err);
    if (ftruncate(fd, (off_t)l->blocks * ISO_BLOCK) != 0)
        die("truncate", NULL);
    for (uint32_t i = 0; i < l->extent_count; i++) {
        uint32_t content = l->extent_order[i];
        copy_file(files[content], fd, (uint64_t)l->contents[content].lba * ISO_BLOCK);
    }
}

static void release(void)
{
    for (size_t i = 0; i < count; i++) {
        free((char *)entries[i].path);
        free((char *)entries[i].target);
    }
    for (size_t i = 0; i < file_count; i++)
        free(files[i]);
    free(files);
    free(entries);
}

static void make(bool joliet, const char *out)
{
    struct error err = ERROR_INIT;
    const struct iso_tree_options options = {.date_s = ISO_NO_TIME};
    _cleanup_(iso_tree_freep)
    struct iso_tree *tree = NULL;
    _cleanup_(iso_layout_freep)
    struct iso_layout *layout = NULL;
    const struct iso_stored stored = {.contents = (uint32_t)file_count};
    if (iso_tree_new(entries, count, &options, &tree, &err) != 0)
        die("tree", &err);
    if (iso_layout_new(tree, &stored, joliet, &layout, &err) != 0)
        die("layout", &err);
    _cleanup_close_ int fd = open(out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        die(out, NULL);
    write_image(layout, fd);
}

int main(int argc, char **argv)
{
    bool joliet = false, backwards = false;
    for (; argc > 1 && argv[1][0] == '-'; argc--, argv++) {
        joliet |= strcmp(argv[1], "--joliet") == 0;
        backwards |= strcmp(argv[1], "--reverse") == 0;
    }
    if (argc != 3) {
        fprintf(stderr, "usage: vdisc-harness [--joliet] [--reverse] DIRECTORY OUT.iso\n");
        return 2;
    }
    root_len = strlen(argv[1]);
    if (nftw(argv[1], add, OPEN_FILES, FTW_PHYS) != 0)
        die(argv[1], NULL);
    if (backwards)
        reverse();
    make(joliet, argv[2]);
    release();
    return 0;
}
