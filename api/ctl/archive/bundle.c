/* The library asks for bytes; what one step makes is handed out before the next.  A step opens a
 * file and puts its header, puts a piece of it, or ends the archive. */
#include "api/ctl/archive/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/ctl/interrupt.h"
#include "common/mem.h"
#include "sort/shard/member_writer.h"

#define PIECE 65536

struct bundle {
    const struct shard_format_ops *format;
    const struct shard_file *files;
    size_t count;
    size_t next; /* the file that is opened next */
    int fd;      /* of the one before, or -1 */
    uint64_t left;
    bool ended;
    struct member_writer *writer;
    struct buf made; /* from `handed` on still to be handed out */
    size_t handed;
    struct error failed;
    unsigned char piece[PIECE];
};

struct bundle *bundle_new(const struct shard_format_ops *format, const struct shard_file *files,
                          size_t count)
{
    struct bundle *b = xcalloc(1, sizeof *b);
    b->format = format;
    b->files = files;
    b->count = count;
    b->fd = -1;
    return b;
}

void bundle_free(struct bundle *b)
{
    cleanup_close_(&b->fd);
    member_writer_free(b->writer);
    buf_done(&b->made);
    free(b);
}

void bundle_failure(const struct bundle *b, struct dfc_error *err)
{
    if (b->failed.code == 0 || err->result != DFC_LOCAL)
        return;
    snprintf(err->code, sizeof err->code, "%s", error_name(b->failed.code));
    snprintf(err->message, sizeof err->message, "%s", b->failed.message);
}

static int changed(struct bundle *b, const struct shard_file *f)
{
    return error_set(&b->failed, E_CORRUPT, "'%s' changes while it is read: try again", f->path);
}

static int check_same(struct bundle *b, const struct shard_file *f)
{
    struct stat st;
    if (fstat(b->fd, &st) != 0)
        return error_errno(&b->failed, errno, "read '%s'", f->path);
    bool same = (uint64_t)st.st_size == f->size && st.st_mtim.tv_sec == f->mtime;
    return same ? 0 : changed(b, f);
}

static int open_next(struct bundle *b)
{
    const struct shard_file *f = &b->files[b->next++];
    const struct tar_made m = {.path = f->member,
                               .path_len = strlen(f->member),
                               .type = '0',
                               .size = f->size,
                               .mode = f->mode,
                               .mtime = f->mtime};
    b->fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (b->fd < 0)
        return error_errno(&b->failed, errno, "open '%s'", f->path);
    int rc = check_same(b, f);
    b->left = f->size;
    return rc != 0 ? rc : member_writer_begin(b->writer, &m, &b->failed);
}

static int put_piece(struct bundle *b)
{
    const struct shard_file *f = &b->files[b->next - 1];
    if (b->left == 0) {
        int rc = check_same(b, f);
        close(steal_fd(&b->fd));
        return rc;
    }
    ssize_t n = read(b->fd, b->piece, b->left < PIECE ? (size_t)b->left : PIECE);
    if (n < 0)
        return errno == EINTR ? 0 : error_errno(&b->failed, errno, "read '%s'", f->path);
    if (n == 0)
        return changed(b, f);
    b->left -= (uint64_t)n;
    return member_writer_data(b->writer, b->piece, (size_t)n, &b->failed);
}

static int step(struct bundle *b)
{
    if (b->writer == NULL)
        return member_writer_new(b->format, sink_buf(&b->made), &b->writer, &b->failed);
    if (b->fd >= 0)
        return put_piece(b);
    if (b->next < b->count)
        return open_next(b);
    b->ended = true;
    return member_writer_finish(b->writer, &b->failed);
}

static ptrdiff_t bundle_read(void *context, void *to, size_t room)
{
    struct bundle *b = context;
    while (b->handed == b->made.len && !b->ended) {
        buf_clear(&b->made);
        b->handed = 0;
        if (interrupted() || step(b) != 0)
            return -1;
    }
    size_t left = b->made.len - b->handed;
    size_t n = left < room ? left : room;
    if (n > 0)
        memcpy(to, b->made.data + b->handed, n);
    b->handed += n;
    return (ptrdiff_t)n;
}

static int bundle_rewind(void *context)
{
    struct bundle *b = context;
    cleanup_close_(&b->fd);
    member_writer_free(b->writer);
    b->fd = -1;
    b->writer = NULL;
    b->next = b->handed = 0;
    b->ended = false;
    buf_clear(&b->made);
    return b->failed.code == 0 ? 0 : -1;
}

struct dfc_source bundle_source(struct bundle *b)
{
    return (struct dfc_source){
        .read = bundle_read, .rewind = bundle_rewind, .context = b, .size = -1};
}
