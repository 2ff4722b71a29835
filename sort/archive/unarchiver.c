/* libarchive pulls: it calls read_more() and seek_to() while a header or contents are asked for.
 * Their errors are kept, since libarchive has a sentence of its own for them.
 *
 * Bombs: contents are counted as they come out, and what is passed over in a compressed archive is
 * read and counted, too.  Between two calls of the source stands one buffer of BLOCK bytes and one
 * decompressor. */
#include "sort/archive/unarchiver.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "sort/archive/gunzip.h"

#define BLOCK 65536

struct unarchiver {
    struct unarchiver_source source;
    struct unarchiver_limits limits;
    struct archive *archive;
    uint64_t at; /* the next byte that the source gives */
    uint64_t taken;
    uint64_t made; /* bytes of contents */
    uint64_t members;
    struct unarchiver_member member;
    uint64_t member_made;
    bool in_member; /* its contents have not ended */
    bool at_end;    /* libarchive has no more of them */
    const unsigned char *data;
    size_t data_len;
    uint64_t data_at; /* in the member: where data begins; a hole is before it */
    bool compressed;
    struct gunzip *gunzip; /* what libarchive gets comes out of it; NULL: it gets the source */
    struct error failed;   /* of the source, or of a limit */
    size_t first;          /* bytes in the block that were read to see what they are */
    unsigned char block[BLOCK];
};

/* --- errors ----------------------------------------------------------------------------------- */

static int refuse(struct unarchiver *u, int code, const char *why, struct error *err)
{
    return error_set(err, code, "%s: %s", u->source.what, why);
}

static bool is_no_archive(const char *sentence)
{
    return strstr(sentence, "Unrecognized archive format") != NULL;
}

/* What the source said, else what libarchive says. */
static int failure(struct unarchiver *u, struct error *err)
{
    if (u->failed.code != 0) {
        if (err != NULL)
            *err = u->failed;
        return u->failed.code;
    }
    const char *sentence = archive_error_string(u->archive);
    if (sentence == NULL)
        sentence = "it is damaged or cut short";
    if (is_no_archive(sentence))
        return refuse(u, E_SHARD_UNSUPPORTED, "its content is no archive that can be read here",
                      err);
    return refuse(u, E_SHARD_CORRUPT, sentence, err);
}

/* --- callbacks -------------------------------------------------------------------------------- */

static ssize_t read_source(void *ctx, void *to, size_t max, struct error *err)
{
    struct unarchiver *u = ctx;
    ssize_t n = u->source.read(u->source.ctx, to, max, err);
    if (n > 0) {
        u->at += (uint64_t)n;
        u->taken += (uint64_t)n;
    }
    return n;
}

static ssize_t read_gunzip(struct unarchiver *u, struct error *err)
{
    ssize_t n = gunzip_read(u->gunzip, u->block, BLOCK, err);
    const char *why = gunzip_complaint(u->gunzip);
    return why != NULL ? refuse(u, E_SHARD_CORRUPT, why, err) : n;
}

static la_ssize_t read_more(struct archive *a, void *ctx, const void **data)
{
    struct unarchiver *u = ctx;
    ssize_t n = (ssize_t)u->first;
    u->first = 0;
    if (u->gunzip != NULL)
        n = read_gunzip(u, &u->failed);
    else if (n == 0)
        n = read_source(u, u->block, BLOCK, &u->failed);
    if (n < 0) {
        archive_set_error(a, EIO, "the source failed");
        return -1;
    }
    *data = u->block;
    return n;
}

static la_int64_t seek_to(struct archive *a, void *ctx, la_int64_t offset, int whence)
{
    struct unarchiver *u = ctx;
    uint64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? u->at : u->source.size;
    la_int64_t to = (la_int64_t)base + offset;
    if (to < 0 || (uint64_t)to > u->source.size) {
        archive_set_error(a, EINVAL, "it refers to bytes that it does not have");
        return ARCHIVE_FATAL;
    }
    if (u->source.seek(u->source.ctx, (uint64_t)to, &u->failed) != 0) {
        archive_set_error(a, EIO, "the source failed");
        return ARCHIVE_FATAL;
    }
    u->at = (uint64_t)to;
    return to;
}

/* --- open ------------------------------------------------------------------------------------- */

static const struct {
    unsigned format;
    int (*support)(struct archive *);
} formats[] = {
    {UNARCHIVER_TAR, archive_read_support_format_tar},
    {UNARCHIVER_ZIP, archive_read_support_format_zip},
};

static int (*const filters[])(struct archive *) = {
    archive_read_support_filter_gzip, /* within another one: so that it is refused */
    archive_read_support_filter_bzip2, archive_read_support_filter_xz,
    archive_read_support_filter_zstd,  archive_read_support_filter_lz4,
};

static bool prepare(struct unarchiver *u)
{
    bool fine = true;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if ((u->limits.formats & formats[i].format) != 0)
            fine = fine && formats[i].support(u->archive) == ARCHIVE_OK;
    }
    for (size_t i = 0; u->limits.compressed && i < sizeof filters / sizeof *filters; i++)
        fine = fine && filters[i](u->archive) == ARCHIVE_OK;
    fine = fine && archive_read_set_read_callback(u->archive, read_more) == ARCHIVE_OK;
    if (u->source.seek != NULL && u->gunzip == NULL)
        fine = fine && archive_read_set_seek_callback(u->archive, seek_to) == ARCHIVE_OK;
    return fine && archive_read_set_callback_data(u->archive, u) == ARCHIVE_OK;
}

/* The first bytes say whether it is gzip. */
static int look(struct unarchiver *u, struct error *err)
{
    ssize_t n = read_source(u, u->block, BLOCK, err);
    if (n < 0)
        return (int)n;
    u->first = (size_t)n;
    if (!u->limits.compressed || !gunzip_knows(u->block, u->first))
        return 0;
    u->gunzip = gunzip_new(read_source, u, u->block, u->first);
    u->first = 0;
    return 0;
}

static int open_archive(struct unarchiver *u, struct error *err)
{
    int rc = look(u, err);
    if (rc != 0)
        return rc;
    if (!prepare(u))
        return refuse(u, E_INTERNAL, archive_error_string(u->archive), err);
    if (archive_read_open1(u->archive) != ARCHIVE_OK)
        return failure(u, err);
    /* The source itself counts as one. */
    int count = archive_filter_count(u->archive) + (u->gunzip != NULL);
    if (count > 2)
        return refuse(u, E_SHARD_UNSUPPORTED, "it is compressed more than once", err);
    u->compressed = count == 2;
    return 0;
}

/* Names of PAX and zip are UTF-8, whatever the program's locale.  One for all threads, for good. */
static locale_t utf8;
static pthread_once_t utf8_once = PTHREAD_ONCE_INIT;

static void utf8_make(void)
{
    utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

int unarchiver_open(const struct unarchiver_source *source, const struct unarchiver_limits *limits,
                    struct unarchiver **out, struct error *err)
{
    _cleanup_(unarchiver_freep)
    struct unarchiver *u = xcalloc(1, sizeof *u);
    u->source = *source;
    u->limits = *limits;
    pthread_once(&utf8_once, utf8_make);
    u->archive = archive_read_new();
    if (u->archive == NULL || utf8 == (locale_t)0)
        return refuse(u, E_NOMEM, "no memory to read archives with", err);
    locale_t before = uselocale(utf8);
    int rc = open_archive(u, err);
    uselocale(before);
    if (rc == 0)
        *out = steal(u);
    return rc;
}

void unarchiver_free(struct unarchiver *u)
{
    if (u == NULL)
        return;
    if (u->archive != NULL)
        archive_read_free(u->archive);
    gunzip_free(u->gunzip);
    free(u);
}

/* --- members ---------------------------------------------------------------------------------- */

static char type_of(struct archive_entry *e)
{
    if (archive_entry_hardlink(e) != NULL)
        return '1';
    switch (archive_entry_filetype(e)) {
    case AE_IFREG:
        return '0';
    case AE_IFLNK:
        return '2';
    case AE_IFDIR:
        return '5';
    default:
        return '?';
    }
}

static const char *link_of(struct archive_entry *e, char type)
{
    const char *link = type == '1'   ? archive_entry_hardlink(e)
                       : type == '2' ? archive_entry_symlink(e)
                                     : "";
    return link != NULL ? link : "";
}

static int take_member(struct unarchiver *u, struct archive_entry *e, struct error *err)
{
    struct unarchiver_member *m = &u->member;
    const char *path = archive_entry_pathname(e);
    la_int64_t size = archive_entry_size(e);
    if (path == NULL || path[0] == '\0')
        return refuse(u, E_SHARD_CORRUPT, "a member has no name", err);
    if (size < 0)
        return refuse(u, E_SHARD_CORRUPT, "a member has a negative size", err);
    *m = (struct unarchiver_member){
        .path = path,
        .type = type_of(e),
        .mode = (uint32_t)archive_entry_perm(e),
        .mtime = archive_entry_mtime_is_set(e) ? (int64_t)archive_entry_mtime(e) : 0,
        .size = (uint64_t)size,
        .size_known = archive_entry_size_is_set(e) != 0,
        .encrypted = archive_entry_is_encrypted(e) != 0,
    };
    m->link = link_of(e, m->type);
    u->member_made = u->data_at = u->data_len = 0;
    u->in_member = true;
    u->at_end = false;
    return 0;
}

/* What was made may not be out of proportion to what was taken. */
static int check_made(struct unarchiver *u, struct error *err)
{
    uint64_t ratio = u->limits.expand_ratio;
    uint64_t most = u->taken < UINT64_MAX / ratio ? u->taken * ratio : UINT64_MAX;
    if (most < u->limits.expand_free)
        most = u->limits.expand_free;
    if (u->made > most)
        return error_set(err, E_SHARD_CORRUPT,
                         "%s: its contents exceed %llu bytes, which its size does not warrant",
                         u->source.what, (unsigned long long)most);
    if (u->member_made > u->limits.member_size)
        return error_set(err, E_SHARD_CORRUPT, "%s: member '%s' is larger than %llu bytes",
                         u->source.what, u->member.path, (unsigned long long)u->limits.member_size);
    return 0;
}

/* What a compressed archive has before the next header is decompressed here, so that it counts. */
static int pass_over(struct unarchiver *u, struct error *err)
{
    const void *data;
    size_t len = 0;
    la_int64_t offset = 0;
    while (u->compressed && u->in_member) {
        int state = archive_read_data_block(u->archive, &data, &len, &offset);
        if (state == ARCHIVE_EOF)
            break;
        if (state != ARCHIVE_OK)
            return failure(u, err);
        u->made += len;
        u->member_made = 0; /* its limit is for members that are read */
        int rc = check_made(u, err);
        if (rc != 0)
            return rc;
    }
    u->in_member = false;
    return 0;
}

/* Behind the last member stand the checksum, and what no member has. */
static int drain(struct unarchiver *u, struct error *err)
{
    ssize_t n = 0;
    while (u->gunzip != NULL && (n = read_gunzip(u, err)) > 0) {
        u->made += (uint64_t)n;
        int rc = check_made(u, err);
        if (rc != 0)
            return rc;
    }
    return (int)n;
}

static int next_member(struct unarchiver *u, struct error *err)
{
    struct archive_entry *e = NULL;
    int rc = u->members > 0 ? pass_over(u, err) : 0;
    if (rc != 0)
        return rc;
    int state = archive_read_next_header(u->archive, &e);
    if (state == ARCHIVE_EOF)
        return drain(u, err);
    if (state != ARCHIVE_OK)
        return failure(u, err);
    if (u->members == u->limits.members)
        return error_set(err, E_SHARD_CORRUPT, "%s: it has more than %llu members", u->source.what,
                         (unsigned long long)u->limits.members);
    u->members++;
    rc = take_member(u, e, err);
    return rc != 0 ? rc : 1;
}

int unarchiver_next(struct unarchiver *u, struct unarchiver_member *m, struct error *err)
{
    locale_t before = uselocale(utf8);
    int rc = next_member(u, err);
    uselocale(before);
    if (rc > 0)
        *m = u->member;
    return rc;
}

/* A sparse member of a tar may end with a hole, of which libarchive says nothing.  A tar that is
 * cut short is an error before. */
static uint64_t end_of_contents(const struct unarchiver *u)
{
    bool tar = (archive_format(u->archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
    return tar && u->member.type == '0' ? u->member.size : u->member_made;
}

static int next_block(struct unarchiver *u, struct error *err)
{
    const void *data = NULL;
    size_t len = 0;
    la_int64_t offset = 0;
    int state = archive_read_data_block(u->archive, &data, &len, &offset);
    if (state != ARCHIVE_OK && state != ARCHIVE_EOF)
        return failure(u, err);
    u->at_end = state == ARCHIVE_EOF;
    u->data = data;
    u->data_len = u->at_end ? 0 : len;
    u->data_at = u->at_end ? end_of_contents(u) : (uint64_t)offset;
    return u->data_at < u->member_made
               ? refuse(u, E_SHARD_CORRUPT, "a member's contents are not in order", err)
               : 0;
}

/* The next bytes, holes as zeros; 0 at the end. */
static size_t take_bytes(struct unarchiver *u, void *to, size_t max)
{
    uint64_t hole = u->data_at - u->member_made;
    size_t n = 0;
    if (hole > 0) {
        n = hole < max ? (size_t)hole : max;
        memset(to, 0, n);
    } else if (u->data_len > 0) {
        n = u->data_len < max ? u->data_len : max;
        memcpy(to, u->data, n);
        u->data += n;
        u->data_len -= n;
        u->data_at += n;
    }
    u->made += n;
    u->member_made += n;
    return n;
}

static int contents_end(struct unarchiver *u, struct error *err)
{
    u->in_member = false;
    if (u->member.size_known && u->member.type != '2' && u->member_made != u->member.size)
        return error_set(err, E_SHARD_CORRUPT, "%s: member '%s' has not the size that it states",
                         u->source.what, u->member.path);
    return 0;
}

ssize_t unarchiver_read(struct unarchiver *u, void *to, size_t max, struct error *err)
{
    if (!u->in_member)
        return 0;
    if (u->member.encrypted)
        return error_set(err, E_SHARD_UNSUPPORTED, "%s: member '%s' is encrypted", u->source.what,
                         u->member.path);
    for (;;) {
        size_t n = take_bytes(u, to, max);
        if (n == 0 && u->at_end)
            return contents_end(u, err);
        int rc = n > 0 ? check_made(u, err) : next_block(u, err);
        if (rc != 0)
            return rc;
        if (n > 0)
            return (ssize_t)n;
    }
}

const char *unarchiver_format_name(const struct unarchiver *u)
{
    const char *name = archive_format_name(u->archive);
    return name != NULL ? name : "";
}
