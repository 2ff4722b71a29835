/* libarchive pulls: it calls read_more() and seek_to() while a header or contents are asked for.
 * Their errors are kept, since libarchive has a sentence of its own for them.
 *
 * Bombs: contents are counted as they come out, and what is passed over in a compressed archive is
 * read and counted, too.  A compressed archive is unpacked before libarchive gets it, so that a
 * header's bytes can be bounded.  Between two calls of the source stands one buffer of BLOCK bytes
 * and one decompressor. */
#include "sort/archive/unarchiver.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "sort/archive/unfilter.h"

#define BLOCK 65536
#define HEADER_MAX (4 << 20) /* of a header that says itself how long it is */

struct unarchiver {
    struct unarchiver_source source;
    struct unarchiver_limits limits;
    struct archive *archive;
    uint64_t at; /* the next byte that the source gives */
    uint64_t taken;
    uint64_t made;     /* bytes of contents */
    uint64_t unpacked; /* bytes that came out of the filter */
    uint64_t members;
    struct unarchiver_member member;
    uint64_t member_made;
    bool in_member; /* its contents have not ended */
    bool at_end;    /* libarchive has no more of them */
    const unsigned char *data;
    size_t data_len;
    uint64_t data_at;          /* in the member: where data begins; a hole is before it */
    struct unfilter *unfilter; /* what libarchive gets comes out of it; NULL: it gets the source */
    struct error failed;       /* of the source, or of a limit */
    size_t first;              /* bytes in the block that were read to see what they are */
    bool in_header;            /* libarchive reads one */
    uint64_t header;           /* bytes that it got for it */
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

/* --- proportions ------------------------------------------------------------------------------ */

/* What is made may not be out of proportion to what was taken. */
static int check_proportion(const struct unarchiver *u, uint64_t made, struct error *err)
{
    uint64_t ratio = u->limits.expand_ratio;
    uint64_t most = u->taken < UINT64_MAX / ratio ? u->taken * ratio : UINT64_MAX;
    if (most < u->limits.expand_free)
        most = u->limits.expand_free;
    return made <= most
               ? 0
               : error_set(err, E_SHARD_CORRUPT,
                           "%s: its contents exceed %llu bytes, which its size does not warrant",
                           u->source.what, (unsigned long long)most);
}

static int check_made(struct unarchiver *u, struct error *err)
{
    if (u->member_made > u->limits.member_size)
        return error_set(err, E_SHARD_CORRUPT, "%s: member '%s' is larger than %llu bytes",
                         u->source.what, u->member.path, (unsigned long long)u->limits.member_size);
    return check_proportion(u, u->made, err);
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

static ssize_t give_block(struct unarchiver *u, struct error *err)
{
    ssize_t n = (ssize_t)u->first;
    u->first = 0;
    if (u->unfilter == NULL)
        return n > 0 ? n : read_source(u, u->block, BLOCK, err);
    n = unfilter_read(u->unfilter, u->block, BLOCK, err);
    u->unpacked += n > 0 ? (uint64_t)n : 0;
    int rc = check_proportion(u, u->unpacked, err);
    return rc != 0 ? rc : n;
}

/* What libarchive gets for one header stays in its memory. */
static int count_header(struct unarchiver *u, ssize_t n, struct error *err)
{
    u->header += u->in_header ? (uint64_t)n : 0;
    if (u->header <= HEADER_MAX || !unarchiver_ways_of(archive_format(u->archive)).long_headers)
        return 0;
    return refuse(u, E_SHARD_CORRUPT, "a header has more than 4 MiB", err);
}

static la_ssize_t read_more(struct archive *a, void *ctx, const void **data)
{
    struct unarchiver *u = ctx;
    ssize_t n = give_block(u, &u->failed);
    if (n < 0 || count_header(u, n, &u->failed) != 0) {
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

/* A compressed archive is unpacked before: what these find is compressed twice. */
static int (*const filters[])(struct archive *) = {
    archive_read_support_filter_gzip, archive_read_support_filter_bzip2,
    archive_read_support_filter_xz,   archive_read_support_filter_zstd,
    archive_read_support_filter_lz4,
};

static bool prepare(struct unarchiver *u)
{
    bool fine = unarchiver_formats_support(u->archive, u->limits.formats);
    for (size_t i = 0; u->limits.compressed && i < sizeof filters / sizeof *filters; i++)
        fine = fine && filters[i](u->archive) == ARCHIVE_OK;
    fine = fine && archive_read_set_read_callback(u->archive, read_more) == ARCHIVE_OK;
    if (u->source.seek != NULL && u->unfilter == NULL)
        fine = fine && archive_read_set_seek_callback(u->archive, seek_to) == ARCHIVE_OK;
    return fine && archive_read_set_callback_data(u->archive, u) == ARCHIVE_OK;
}

static int fill_first(struct unarchiver *u, struct error *err)
{
    ssize_t n = 1;
    while (n > 0 && u->first < BLOCK) {
        n = read_source(u, u->block + u->first, BLOCK - u->first, err);
        u->first += n > 0 ? (size_t)n : 0;
    }
    return n < 0 ? (int)n : 0;
}

/* The zeros that an image begins with would be a tar without members. */
static bool is_foreign_image(const struct unarchiver *u)
{
    return (u->limits.formats & UNARCHIVER_ISO9660) == 0 &&
           unarchiver_is_iso9660(u->block, u->first);
}

/* The first bytes say whether it is compressed. */
static int look(struct unarchiver *u, struct error *err)
{
    int rc = fill_first(u, err);
    if (rc != 0)
        return rc;
    if (is_foreign_image(u))
        return refuse(u, E_SHARD_UNSUPPORTED, "its content is no archive that can be read here",
                      err);
    if (!u->limits.compressed || !unfilter_knows(u->block, u->first))
        return 0;
    u->unfilter = unfilter_new(read_source, u, u->block, u->first, u->source.what);
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
    if (archive_filter_count(u->archive) > 1) /* the source itself counts as one */
        return refuse(u, E_SHARD_UNSUPPORTED, "it is compressed more than once", err);
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
    unfilter_free(u->unfilter);
    free(u);
}

/* --- members ---------------------------------------------------------------------------------- */

/* A cpio has the contents beside each name of a file, or beside the last one alone. */
static bool is_hard_link(const struct unarchiver *u, struct archive_entry *e)
{
    int format = archive_format(u->archive);
    if ((format & ARCHIVE_FORMAT_BASE_MASK) != ARCHIVE_FORMAT_CPIO)
        return archive_entry_hardlink(e) != NULL;
    return archive_entry_size(e) == 0 && archive_entry_filetype(e) == AE_IFREG &&
           archive_entry_nlink(e) > 1 && unarchiver_ways_of(format).late_contents;
}

static char type_of(const struct unarchiver *u, struct archive_entry *e)
{
    if (is_hard_link(u, e))
        return '1';
    switch (archive_entry_filetype(e)) {
    case AE_IFREG:
    case 0: /* an ar may have permissions alone */
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
        .type = type_of(u, e),
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

static bool unpacks_skipped(const struct unarchiver *u)
{
    return u->unfilter != NULL || unarchiver_ways_of(archive_format(u->archive)).unpacks_skipped;
}

/* What is unpacked before the next header is unpacked here, so that it counts. */
static int pass_over(struct unarchiver *u, struct error *err)
{
    const void *data;
    size_t len = 0;
    la_int64_t offset = 0;
    while (u->in_member && unpacks_skipped(u)) {
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
    /* Else it would count as the next header. */
    if (u->in_member && archive_read_data_skip(u->archive) != ARCHIVE_OK)
        return failure(u, err);
    u->in_member = false;
    return 0;
}

/* Behind the last member stand the checksum, and what no member has. */
static int drain(struct unarchiver *u, struct error *err)
{
    ssize_t n = 1;
    while (u->unfilter != NULL && n > 0)
        n = give_block(u, err);
    return n < 0 ? (int)n : 0;
}

static int next_member(struct unarchiver *u, struct error *err)
{
    struct archive_entry *e = NULL;
    int rc = u->members > 0 ? pass_over(u, err) : 0;
    if (rc != 0)
        return rc;
    u->in_header = true;
    u->header = 0;
    int state = archive_read_next_header(u->archive, &e);
    u->in_header = false;
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
    if (u->member.size_known && u->member.type == '0' && u->member_made != u->member.size)
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
