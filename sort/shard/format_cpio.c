/* .cpio: newc, crc and odc (POSIX.1-1988's portable form).  Read only.
 *
 * Of a member its name, contents, permissions, time, directories and symbolic links become a tar.
 * Refused are devices and pipes; a file of several names without contents, for in newc the last of
 * its names has them; and what follows the end, which may be a second archive.
 *
 * libarchive would read it, too, but makes room for a name of whatever length a header states. */
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "sort/shard/format_parts.h"
#include "sort/shard/inflow.h"
#include "sort/shard/tar.h"
#include "sort/shard/tar_make.h"

#define MAGIC 6
#define HEADER_MAX 110
#define LINK_MAX 4096
#define TRAILER "TRAILER!!!"

struct field {
    uint8_t at, width; /* in the header */
};

/* The forms differ in where numbers are, and in what they are padded to. */
struct form {
    char magic[MAGIC + 1];
    uint8_t header;
    uint8_t bits; /* of a digit */
    uint8_t align;
    bool sums; /* `check` is the sum of the contents' bytes */
    struct field mode, links, mtime, size, name_size, check;
};

#define NEWC                                                                                   \
    .header = 110, .bits = 4, .align = 4, .mode = {14, 8}, .links = {38, 8}, .mtime = {46, 8}, \
    .size = {54, 8}, .name_size = {94, 8}, .check = {102, 8}

static const struct form forms[] = {
    {.magic = "070701", NEWC},
    {.magic = "070702", .sums = true, NEWC},
    {.magic = "070707",
     .header = 76,
     .bits = 3,
     .align = 1,
     .mode = {18, 6},
     .links = {36, 6},
     .mtime = {48, 11},
     .size = {65, 11},
     .name_size = {59, 6}},
};

struct uncpio {
    struct inflow in;
    struct sink tar;
    const struct form *form;
    uint64_t mode, links, mtime, size, name_size, check; /* of the header at hand */
    uint32_t sum;                                        /* of the contents so far */
    struct buf name, headers;
};

/* --- headers ---------------------------------------------------------------------------------- */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

static bool take_number(const char *header, const struct form *form, struct field f, uint64_t *out)
{
    *out = 0;
    for (unsigned i = 0; i < f.width; i++) {
        int digit = digit_of(header[f.at + i]);
        if (digit >= 1 << form->bits)
            return false;
        *out = *out << form->bits | (unsigned)digit;
    }
    return true;
}

static const struct form *form_of(const char *magic)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (memcmp(forms[i].magic, magic, MAGIC) == 0)
            return &forms[i];
    }
    return NULL;
}

static bool take_numbers(struct uncpio *c, const char *header)
{
    const struct form *f = c->form;
    return take_number(header, f, f->mode, &c->mode) &&
           take_number(header, f, f->links, &c->links) &&
           take_number(header, f, f->mtime, &c->mtime) &&
           take_number(header, f, f->size, &c->size) &&
           take_number(header, f, f->name_size, &c->name_size) &&
           take_number(header, f, f->check, &c->check);
}

/* The bytes that fill a part of so many bytes up. */
static int skip_padding(struct uncpio *c, uint64_t size, struct error *err)
{
    char rest[4];
    size_t over = (size_t)(size % c->form->align);
    return over == 0 ? 0 : inflow_get(&c->in, rest, c->form->align - over, err);
}

static int get_name(struct uncpio *c, struct error *err)
{
    if (c->name_size < 2 || c->name_size > TAR_PATH_MAX)
        return inflow_corrupt(&c->in, "a name of no bytes, or too many", err);
    buf_clear(&c->name);
    buf_reserve(&c->name, (size_t)c->name_size);
    int rc = inflow_get(&c->in, c->name.data, (size_t)c->name_size, err);
    if (rc != 0)
        return rc;
    c->name.len = (size_t)c->name_size - 1;
    if (strnlen(c->name.data, (size_t)c->name_size) != c->name.len)
        return inflow_corrupt(&c->in, "a name that does not end where it should", err);
    return skip_padding(c, c->form->header + c->name_size, err);
}

static int get_header(struct uncpio *c, struct error *err)
{
    char header[HEADER_MAX];
    int rc = inflow_get(&c->in, header, MAGIC, err);
    if (rc != 0)
        return rc;
    c->form = form_of(header);
    if (c->form == NULL)
        return inflow_corrupt(&c->in, "the header that begins here is none of a cpio", err);
    rc = inflow_get(&c->in, header + MAGIC, c->form->header - MAGIC, err);
    if (rc != 0)
        return rc;
    if (!take_numbers(c, header))
        return inflow_corrupt(&c->in, "the header that ends here has a wrong number", err);
    return get_name(c, err);
}

/* --- members ---------------------------------------------------------------------------------- */

static int refuse(const struct uncpio *c, const char *why, struct error *err)
{
    _cleanup_free_ char *sentence = xprintf("member '%.256s' %s", c->name.data, why);
    return inflow_unsupported(&c->in, sentence, err);
}

static int summed_write(void *ctx, const void *data, size_t len, struct error *err)
{
    struct uncpio *c = ctx;
    const unsigned char *at = data;
    for (size_t i = 0; c->form->sums && i < len; i++)
        c->sum += at[i];
    return c->tar.write(c->tar.ctx, data, len, err);
}

static int put_file(struct uncpio *c, struct error *err)
{
    if (c->size == 0 && c->links > 1)
        return refuse(c, "may be a hard link: make the archive without them", err);
    c->sum = 0;
    int rc = c->tar.write(c->tar.ctx, c->headers.data, c->headers.len, err);
    if (rc == 0)
        rc = inflow_copy(&c->in, c->size, (struct sink){.write = summed_write, .ctx = c}, err);
    if (rc == 0 && c->form->sums && c->sum != (uint32_t)c->check)
        rc = inflow_corrupt(&c->in, "the contents that end here have a wrong checksum", err);
    if (rc == 0)
        rc = tar_put_padding(c->tar, c->size, err);
    return rc != 0 ? rc : skip_padding(c, c->size, err);
}

static int put_link(struct uncpio *c, struct tar_made *m, struct error *err)
{
    char link[LINK_MAX];
    if (c->size == 0 || c->size > LINK_MAX)
        return refuse(c, "is a symbolic link of more than 4096 bytes, or of none", err);
    int rc = inflow_get(&c->in, link, (size_t)c->size, err);
    if (rc == 0 && memchr(link, '\0', (size_t)c->size) != NULL)
        rc = inflow_corrupt(&c->in, "a symbolic link with a NUL in it", err);
    if (rc != 0)
        return rc;
    m->link = link;
    m->link_len = (size_t)c->size;
    tar_make_headers(&c->headers, m);
    rc = c->tar.write(c->tar.ctx, c->headers.data, c->headers.len, err);
    return rc != 0 ? rc : skip_padding(c, c->size, err);
}

static int put_member(struct uncpio *c, struct error *err)
{
    struct tar_made m = {.path = c->name.data,
                         .path_len = c->name.len,
                         .mode = (uint32_t)(c->mode & 07777),
                         .mtime = (int64_t)c->mtime};
    buf_clear(&c->headers);
    switch (c->mode & S_IFMT) {
    case S_IFREG:
        m.type = '0';
        m.size = c->size;
        tar_make_headers(&c->headers, &m);
        return put_file(c, err);
    case S_IFLNK:
        m.type = '2';
        return put_link(c, &m, err);
    case S_IFDIR:
        m.type = '5';
        tar_make_headers(&c->headers, &m);
        return c->size > 0 ? inflow_corrupt(&c->in, "a directory with contents", err)
                           : c->tar.write(c->tar.ctx, c->headers.data, c->headers.len, err);
    default:
        return refuse(c, "is no file, directory or symbolic link", err);
    }
}

/* --- the whole -------------------------------------------------------------------------------- */

/* cpio fills its last block with zeros. */
static int check_rest(struct uncpio *c, struct error *err)
{
    for (;;) {
        int rc = inflow_fill(&c->in, err);
        if (rc != 0 || inflow_left(&c->in) == 0)
            return rc;
        if (*inflow_data(&c->in) != 0)
            return inflow_corrupt(&c->in, "something follows the end of the archive", err);
        c->in.at++;
    }
}

static int uncpio_all(struct uncpio *c, struct error *err)
{
    for (;;) {
        int rc = get_header(c, err);
        if (rc == 0 && strcmp(c->name.data, TRAILER) == 0)
            break;
        if (rc == 0)
            rc = put_member(c, err);
        if (rc != 0)
            return rc;
    }
    int rc = check_rest(c, err);
    return rc != 0 ? rc : tar_put_end(c->tar, err);
}

static int cpio_decode(const struct format_input *in, struct sink tar, struct error *err)
{
    struct uncpio c = {.tar = tar};
    inflow_init(&c.in, in);
    int rc = uncpio_all(&c, err);
    inflow_done(&c.in);
    buf_done(&c.name);
    buf_done(&c.headers);
    return rc;
}

const struct shard_format_ops format_cpio = {
    .extensions = {".cpio"},
    .content_type = "application/x-cpio",
    .decode = cpio_decode,
    .read_only = true,
};
