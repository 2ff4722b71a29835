/* dfc-memory-files COUNT SIZE DIRECTORY: mounts COUNT files of SIZE bytes, answered out of memory.
 *
 * The least that a FUSE file system costs.  Requests, read-ahead, threads and the lack of splicing
 * are those of dfc-mount; a read is one copy of memory.  It serves until DIRECTORY is unmounted. */
#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fuse_lowlevel.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"

enum { FIRST = FUSE_ROOT_ID + 1, READAHEAD = 1 << 20, THREADS = 64, NAME_BYTES = 24 };

#define TTL_S 3600.0

static struct {
    uint64_t count, size;
    char *bytes; /* of all files, one after another */
} memory;

static bool is_file(fuse_ino_t node)
{
    return node >= FIRST && node - FIRST < memory.count;
}

static struct stat attributes(fuse_ino_t node)
{
    if (node == FUSE_ROOT_ID)
        return (struct stat){.st_ino = node, .st_mode = S_IFDIR | 0555, .st_nlink = 2};
    return (struct stat){
        .st_ino = node, .st_mode = S_IFREG | 0444, .st_nlink = 1, .st_size = (off_t)memory.size};
}

static void name_of(fuse_ino_t node, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "%05" PRIu64, (uint64_t)(node - FIRST));
}

static void do_init(void *context, struct fuse_conn_info *conn)
{
    (void)context;
    conn->max_readahead = READAHEAD;
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    char own[NAME_BYTES];
    const fuse_ino_t node = FIRST + strtoull(name, NULL, 10);
    name_of(node, own);
    if (parent != FUSE_ROOT_ID || !is_file(node) || strcmp(own, name) != 0) {
        fuse_reply_err(req, ENOENT);
        return;
    }
    const struct fuse_entry_param e = {
        .ino = node, .attr = attributes(node), .attr_timeout = TTL_S, .entry_timeout = TTL_S};
    fuse_reply_entry(req, &e);
}

static void do_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    (void)fi;
    const struct stat st = attributes(node);
    fuse_reply_attr(req, &st, TTL_S);
}

/* The position of an entry is the number of the next one. */
static void do_readdir(fuse_req_t req, fuse_ino_t node, size_t room, off_t at,
                       struct fuse_file_info *fi)
{
    (void)fi;
    if (node != FUSE_ROOT_ID) {
        fuse_reply_err(req, ENOTDIR);
        return;
    }
    char *page = xmalloc(room), name[NAME_BYTES];
    size_t used = 0;
    for (uint64_t i = (uint64_t)at; i < memory.count; i++) {
        const struct stat st = attributes(FIRST + i);
        name_of(FIRST + i, name);
        size_t n = fuse_add_direntry(req, page + used, room - used, name, &st, (off_t)i + 1);
        if (n > room - used)
            break;
        used += n;
    }
    fuse_reply_buf(req, page, used);
    free(page);
}

static void do_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
    if (!is_file(node)) {
        fuse_reply_err(req, EISDIR);
        return;
    }
    fi->keep_cache = 1;
    fuse_reply_open(req, fi);
}

static void do_read(fuse_req_t req, fuse_ino_t node, size_t len, off_t at,
                    struct fuse_file_info *fi)
{
    (void)fi;
    const uint64_t from = (uint64_t)at < memory.size ? (uint64_t)at : memory.size;
    const uint64_t left = memory.size - from;
    fuse_reply_buf(req, memory.bytes + (node - FIRST) * memory.size + from,
                   len < left ? len : left);
}

static const struct fuse_lowlevel_ops operations = {
    .init = do_init,
    .lookup = do_lookup,
    .getattr = do_getattr,
    .readdir = do_readdir,
    .open = do_open,
    .read = do_read,
};

static void fill(void)
{
    const uint64_t total = memory.count * memory.size;
    struct rng rng;
    rng_seed(&rng, 1);
    memory.bytes = xmalloc(total);
    for (uint64_t at = 0; at < total; at += sizeof(uint64_t)) {
        const uint64_t word = rng_next(&rng);
        memcpy(memory.bytes + at, &word, total - at < sizeof word ? total - at : sizeof word);
    }
}

static int serve(char *program, const char *directory)
{
    char options[] = "-odefault_permissions,allow_other";
    char *argv[] = {program, options, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(2, argv);
    struct fuse_session *session = fuse_session_new(&args, &operations, sizeof operations, NULL);
    fuse_opt_free_args(&args);
    if (session == NULL)
        return 1;
    int rc = fuse_session_mount(session, directory);
    if (rc == 0) {
        struct fuse_loop_config *config = fuse_loop_cfg_create();
        fuse_loop_cfg_set_max_threads(config, THREADS);
        rc = fuse_session_loop_mt(session, config);
        fuse_loop_cfg_destroy(config);
        fuse_session_unmount(session);
    }
    fuse_session_destroy(session);
    return rc == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct error err = {.code = 0};
    if (argc != 4 || parse_size(argv[1], &memory.count, &err) != 0 ||
        parse_size(argv[2], &memory.size, &err) != 0 || memory.count == 0 || memory.size == 0) {
        fprintf(stderr, "usage: %s COUNT SIZE DIRECTORY\n", argv[0]);
        return 2;
    }
    fill();
    const int rc = serve(argv[0], argv[3]);
    free(memory.bytes);
    return rc;
}
