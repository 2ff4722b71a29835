/* Archives as tar, bsdtar, zip and Python make them: each member is what went in.  Damage,
 * bombs and foreign bytes are refused. */
#include "sort/archive/unarchiver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/mem.h"
#include "io/file.h"

#define ARCHIVE_MAX (64 << 20)

static char directory[] = "/tmp/dfc-unarchiver-XXXXXX";

/* --- helpers ---------------------------------------------------------------------------------- */

static void run(const char *command)
{
    _cleanup_free_ char *line = xprintf(
        "cd %s && LC_ALL=C.UTF-8 && export LC_ALL && { %s; } >out 2>&1", directory, command);
    if (system(line) != 0)
        fail_msg("%s", command);
}

static char *load(const char *name, size_t *len)
{
    _cleanup_free_ char *path = xprintf("%s/%s", directory, name);
    char *text = NULL;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    text = xmalloc(ARCHIVE_MAX);
    *len = fread(text, 1, ARCHIVE_MAX, f);
    assert_true(*len < ARCHIVE_MAX);
    fclose(f);
    return text;
}

struct bytes {
    const char *data;
    size_t len, at;
    int fail; /* code of the next read */
};

static ssize_t bytes_read(void *ctx, void *to, size_t max, struct error *err)
{
    struct bytes *b = ctx;
    if (b->fail != 0)
        return error_set(err, b->fail, "the source has no more");
    size_t left = b->len - b->at;
    size_t n = left < max ? left : max;
    memcpy(to, b->data + b->at, n);
    b->at += n;
    return (ssize_t)n;
}

static int bytes_seek(void *ctx, uint64_t offset, struct error *err)
{
    (void)err;
    struct bytes *b = ctx;
    assert_true(offset <= b->len);
    b->at = (size_t)offset;
    return 0;
}

static struct unarchiver_source source_of(struct bytes *b, bool seeks)
{
    return (struct unarchiver_source){.read = bytes_read,
                                      .seek = seeks ? bytes_seek : NULL,
                                      .ctx = b,
                                      .size = b->len,
                                      .what = "object 'b/o'"};
}

/* Contents as a sum, which is as long for all. */
static int read_member(struct unarchiver *u, struct buf *out, struct error *err)
{
    char piece[1000];
    uint64_t sum = 0, size = 0;
    ssize_t n;
    while ((n = unarchiver_read(u, piece, sizeof piece, err)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            sum = sum * 31 + (unsigned char)piece[i];
        size += (uint64_t)n;
    }
    buf_printf(out, " %llu %llx\n", (unsigned long long)size, (unsigned long long)sum);
    return (int)n;
}

/* "TYPE PATH LINK SIZE SUM" a line. */
static int list(struct bytes *b, const struct unarchiver_limits *limits, bool seeks, bool reads,
                struct buf *out, struct error *err)
{
    _cleanup_(unarchiver_freep)
    struct unarchiver *u = NULL;
    const struct unarchiver_source source = source_of(b, seeks);
    struct unarchiver_member m;
    int rc = unarchiver_open(&source, limits, &u, err);
    while (rc == 0 && (rc = unarchiver_next(u, &m, err)) > 0) {
        buf_printf(out, "%c %s %s", m.type, m.path, m.link);
        rc = 0;
        if (reads)
            rc = read_member(u, out, err);
        else
            buf_putc(out, '\n');
    }
    return rc;
}

static const struct unarchiver_limits standard = UNARCHIVER_LIMITS;

static int list_file(const char *name, const struct unarchiver_limits *limits, bool reads,
                     struct error *err)
{
    struct bytes b = {0};
    _cleanup_free_ char *data = load(name, &b.len);
    _cleanup_(buf_done)
    struct buf out = BUF_INIT;
    b.data = data;
    return list(&b, limits, true, reads, &out, err);
}

static void expect_file(const char *name, const struct unarchiver_limits *limits, bool reads,
                        int code, const char *why)
{
    struct error err = ERROR_INIT;
    int rc = list_file(name, limits, reads, &err);
    if (rc != code || strstr(err.message, why) == NULL ||
        strstr(err.message, "object 'b/o': ") == NULL)
        fail_msg("%s: %d (%s): %s", name, rc, error_name(rc), err.message);
}

/* --- what tools make -------------------------------------------------------------------------- */

/* Names with spaces, of other scripts, and longer than a header has room for. */
#define LONG                                                                      \
    "deep/0123456789012345678901234567890123456789012345678901234567890123456789" \
    "0123456789012345678901234567890123456789.jpg"
#define NAMES \
    "deep/a.txt deep/empty.cls 'deep/two  words.txt' deep/ünï-日本.txt " LONG " deep/holes.bin"

#define LINES "printf '%s\\n' " NAMES " deep/link | "

static const struct {
    const char *name, *command;
    bool links; /* the archive has the symbolic link, too */
} made[] = {
    {"v7.tar", "tar -cf v7.tar --format=v7 deep/a.txt deep/empty.cls", false},
    {"gnu.tar", "tar -cf gnu.tar --format=gnu " NAMES " deep/link", true},
    {"sparse.tar", "tar -Scf sparse.tar --format=gnu " NAMES " deep/link", true},
    {"pax.tar", "tar -cf pax.tar --format=pax " NAMES " deep/link", true},
    {"sparse_pax.tar", "tar -Scf sparse_pax.tar --format=pax " NAMES " deep/link", true},
    {"bsd.tar", "bsdtar -cf bsd.tar --format=pax " NAMES " deep/link", true},
    {"gz.tar", "tar -czf gz.tar " NAMES " deep/link", true},
    {"bz2.tar", "tar -cjf bz2.tar " NAMES " deep/link", true},
    {"xz.tar", "tar -cJf xz.tar " NAMES " deep/link", true},
    {"zst.tar", "bsdtar -c --zstd -f zst.tar " NAMES " deep/link", true},
    {"lz4.tar", "bsdtar -c --lz4 -f lz4.tar " NAMES " deep/link", true},
    {"info.zip", "zip -q -y info.zip " NAMES " deep/link", true},
    {"stored.zip", "zip -q -0 -y stored.zip " NAMES " deep/link", true},
    {"bsd.zip", "bsdtar -cf bsd.zip --format=zip " NAMES " deep/link", true},
    {"python.tar",
     "python3 -c \"import sys, tarfile; t = tarfile.open('python.tar', 'w:gz'); "
     "[t.add(n) for n in sys.argv[1:]]; t.close()\" " NAMES " deep/link",
     true},
    {"python.zip",
     "python3 -c \"import sys, zipfile; z = zipfile.ZipFile('python.zip', 'w', "
     "zipfile.ZIP_DEFLATED); [z.write(n) for n in sys.argv[1:]]; z.close()\" " NAMES,
     false},
    {"newc.cpio", LINES "cpio --quiet -o -H newc >newc.cpio", true},
    {"crc.cpio", LINES "cpio --quiet -o -H crc >crc.cpio", true},
    {"odc.cpio", LINES "cpio --quiet -o -H odc >odc.cpio", true},
    {"bin.cpio", LINES "cpio --quiet -o -H bin >bin.cpio", true},
    {"bsd.cpio", "bsdtar --format=cpio -cf bsd.cpio " NAMES " deep/link", true},
    {"newc.cpio.xz", LINES "cpio --quiet -o -H newc | xz >newc.cpio.xz", true},
    {"newc.cpio.gz", LINES "cpio --quiet -o -H newc | gzip >newc.cpio.gz", true},
    {"newc.cpio.zst", LINES "cpio --quiet -o -H newc | zstd -q >newc.cpio.zst", true},
};
#define MADE (sizeof made / sizeof *made)

static int make_files(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(directory));
    run("mkdir deep && echo hello >deep/a.txt && : >deep/empty.cls && ln -s a.txt deep/link && "
        "seq 1 60000 >'deep/two  words.txt' && echo x >deep/ünï-日本.txt && "
        "head -c 70000 /dev/zero >" LONG " && truncate -s 1M deep/holes.bin && "
        "echo end >>deep/holes.bin");
    for (size_t i = 0; i < MADE; i++)
        run(made[i].command);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    _cleanup_free_ char *line = xprintf("rm -rf %s", directory);
    return system(line);
}

/* All of them say the same as the tar that GNU tar made. */
static void test_tools(void **state)
{
    (void)state;
    struct buf wanted = BUF_INIT;
    struct bytes b = {0};
    _cleanup_free_ char *data = load("gnu.tar", &b.len);
    b.data = data;
    assert_int_equal(list(&b, &standard, true, true, &wanted, NULL), 0);
    assert_non_null(strstr(buf_str(&wanted), "0 deep/a.txt  6 "));
    assert_non_null(strstr(buf_str(&wanted), "0 " LONG "  70000 0\n"));
    assert_non_null(strstr(buf_str(&wanted), "0 deep/ünï-日本.txt  2 "));
    assert_non_null(strstr(buf_str(&wanted), "0 deep/holes.bin  1048580 "));
    assert_non_null(strstr(buf_str(&wanted), "2 deep/link a.txt 0 0\n"));
    size_t without_link = (size_t)(strstr(buf_str(&wanted), "2 deep/link") - wanted.data);
    size_t two = (size_t)(strstr(buf_str(&wanted), "0 deep/two") - wanted.data);
    for (size_t i = 0; i < MADE; i++) {
        for (int seeks = 0; seeks < 2; seeks++) {
            struct error err = ERROR_INIT;
            struct buf got = BUF_INIT;
            struct bytes c = {0};
            _cleanup_free_ char *bytes = load(made[i].name, &c.len);
            c.data = bytes;
            if (list(&c, &standard, seeks != 0, true, &got, &err) != 0)
                fail_msg("%s: %s", made[i].name, err.message);
            size_t len = i == 0 ? two : made[i].links ? wanted.len : without_link;
            /* Read forward, a zip has its links' modes at its end, after them. */
            bool links_lost = !seeks && strstr(made[i].name, ".zip") != NULL;
            len = links_lost && made[i].links ? without_link : len;
            if (got.len < len || (!links_lost && got.len != len) ||
                memcmp(got.data, wanted.data, len) != 0)
                fail_msg("%s:\n%s\nnot\n%s", made[i].name, buf_str(&got), buf_str(&wanted));
            buf_done(&got);
        }
    }
    buf_done(&wanted);
}

/* --- formats that are read where they are allowed --------------------------------------------- */

static const struct {
    const char *name, *command;
    unsigned format;
} allowed[] = {
    {"lzma.7z", "7z a -bd -snl lzma.7z " NAMES " deep/link", UNARCHIVER_7ZIP},
    {"copy.7z", "7z a -bd -snl -m0=Copy copy.7z " NAMES " deep/link", UNARCHIVER_7ZIP},
    {"bzip2.7z", "7z a -bd -snl -ms=off -m0=BZip2 bzip2.7z " NAMES " deep/link", UNARCHIVER_7ZIP},
    {"bsd.7z", "bsdtar --format=7zip -cf bsd.7z " NAMES " deep/link", UNARCHIVER_7ZIP},
    {"rock.iso", "genisoimage -quiet -R -o rock.iso -graft-points deep=deep", UNARCHIVER_ISO9660},
};

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The lines of files and symbolic links, in order. */
static char *sorted_lines(struct buf *text)
{
    char *lines[64], *rest = NULL;
    size_t count = 0;
    struct buf out = BUF_INIT;
    buf_str(text);
    for (char *line = strtok_r(text->data, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == '0' || line[0] == '2')
            lines[count++] = line;
    }
    qsort(lines, count, sizeof *lines, by_text);
    for (size_t i = 0; i < count; i++)
        buf_printf(&out, "%s\n", lines[i]);
    buf_str(&out);
    return buf_steal(&out);
}

static char *sorted_list(const char *name, unsigned formats)
{
    struct unarchiver_limits limits = UNARCHIVER_LIMITS;
    struct error err = ERROR_INIT;
    struct bytes b = {0};
    _cleanup_buf_ struct buf out = BUF_INIT;
    _cleanup_free_ char *data = load(name, &b.len);
    b.data = data;
    limits.formats = formats;
    if (list(&b, &limits, true, true, &out, &err) != 0)
        fail_msg("%s: %s", name, err.message);
    return sorted_lines(&out);
}

static void test_formats_are_allowed(void **state)
{
    (void)state;
    _cleanup_free_ char *wanted = sorted_list("gnu.tar", UNARCHIVER_FORMATS);
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        run(allowed[i].command);
        expect_file(allowed[i].name, &standard, true, E_SHARD_UNSUPPORTED, "no archive that can");
        _cleanup_free_ char *got = sorted_list(allowed[i].name, allowed[i].format);
        assert_string_equal(got, wanted);
    }
    run("ar rcD two.ar deep/a.txt deep/empty.cls");
    expect_file("two.ar", &standard, true, E_SHARD_UNSUPPORTED, "no archive that can");
    _cleanup_free_ char *two = sorted_list("two.ar", UNARCHIVER_AR);
    assert_memory_equal(two, "0 a.txt  6 ", 11);
    assert_non_null(strstr(two, "0 empty.cls  0 0\n"));
    run("7z a -bd -psecret locked.7z deep/a.txt && 7z a -bd -psecret -mhe dark.7z deep/a.txt");
    struct unarchiver_limits limits = UNARCHIVER_LIMITS;
    limits.formats = UNARCHIVER_7ZIP;
    assert_int_not_equal(list_file("locked.7z", &limits, true, NULL), 0);
    assert_int_not_equal(list_file("dark.7z", &limits, false, NULL), 0);
}

static void test_names_of_formats(void **state)
{
    (void)state;
    unsigned formats = 0;
    struct error err = ERROR_INIT;
    assert_int_equal(unarchiver_formats_parse(UNARCHIVER_FORMATS_TEXT, &formats, NULL), 0);
    assert_int_equal(formats, UNARCHIVER_FORMATS);
    assert_int_equal(unarchiver_formats_parse("7zip,ar,iso9660,rar", &formats, NULL), 0);
    assert_int_equal(formats,
                     UNARCHIVER_7ZIP | UNARCHIVER_AR | UNARCHIVER_ISO9660 | UNARCHIVER_RAR);
    const char *const wrong[] = {"", ",", "tar,", "tar, zip", "TAR", "zi", "zipp", "mtree"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(unarchiver_formats_parse(wrong[i], &formats, &err), E_INVALID);
    assert_non_null(strstr(err.message, "'mtree' is no format"));
}

/* Of a file with two names, newc has the contents beside the last one alone. */
static void test_hard_links_of_cpio(void **state)
{
    (void)state;
    run("echo twice >one && ln one two && printf '%s\\n' one two | cpio --quiet -o -H newc >n.cpio "
        "&& printf '%s\\n' one two | cpio --quiet -o -H odc >o.cpio && rm one two");
    struct bytes b = {0};
    _cleanup_buf_ struct buf newc = BUF_INIT, odc = BUF_INIT;
    _cleanup_free_ char *n = load("n.cpio", &b.len);
    b.data = n;
    assert_int_equal(list(&b, &standard, true, true, &newc, NULL), 0);
    assert_non_null(strstr(buf_str(&newc), "1 one "));
    assert_non_null(strstr(newc.data, "0 two  6 "));
    struct bytes c = {0};
    _cleanup_free_ char *o = load("o.cpio", &c.len);
    c.data = o;
    assert_int_equal(list(&c, &standard, true, true, &odc, NULL), 0);
    assert_non_null(strstr(buf_str(&odc), "0 one  6 "));
    assert_non_null(strstr(odc.data, "0 two  6 "));
}

/* Members that are not read are passed over. */
static void test_passing_over(void **state)
{
    (void)state;
    for (size_t i = 1; i < MADE; i++) {
        struct error err = ERROR_INIT;
        struct buf got = BUF_INIT;
        struct bytes b = {0};
        _cleanup_free_ char *data = load(made[i].name, &b.len);
        b.data = data;
        if (list(&b, &standard, true, false, &got, &err) != 0)
            fail_msg("%s: %s", made[i].name, err.message);
        assert_non_null(strstr(buf_str(&got), "0 deep/holes.bin \n"));
        buf_done(&got);
    }
}

/* --- limits ----------------------------------------------------------------------------------- */

static void test_formats_are_chosen(void **state)
{
    (void)state;
    struct unarchiver_limits limits = UNARCHIVER_LIMITS;
    limits.formats = UNARCHIVER_TAR;
    assert_int_equal(list_file("gnu.tar", &limits, true, NULL), 0);
    expect_file("info.zip", &limits, true, E_SHARD_UNSUPPORTED, "no archive that can be read");
    limits = standard;
    limits.compressed = false;
    expect_file("gz.tar", &limits, true, E_SHARD_UNSUPPORTED, "no archive that can be read");
    expect_file("deep/a.txt", &standard, true, E_SHARD_UNSUPPORTED, "no archive");
    expect_file("deep/empty.cls", &standard, true, E_SHARD_UNSUPPORTED, "no archive");
    run("gzip -c gz.tar >twice.tar");
    expect_file("twice.tar", &standard, true, E_SHARD_UNSUPPORTED, "more than once");
    run("zip -q -P secret locked.zip deep/a.txt");
    expect_file("locked.zip", &standard, true, E_SHARD_UNSUPPORTED,
                "member 'deep/a.txt' is encrypted");
    assert_int_equal(list_file("locked.zip", &standard, false, NULL), 0);
}

static void test_numbers_are_bounded(void **state)
{
    (void)state;
    struct unarchiver_limits limits = UNARCHIVER_LIMITS;
    limits.members = 7;
    assert_int_equal(list_file("gnu.tar", &limits, false, NULL), 0);
    limits.members = 6;
    expect_file("gnu.tar", &limits, false, E_SHARD_CORRUPT, "more than 6 members");
    limits = standard;
    limits.member_size = 1048580;
    assert_int_equal(list_file("gnu.tar", &limits, true, NULL), 0);
    limits.member_size = 1048579;
    expect_file("gnu.tar", &limits, true, E_SHARD_CORRUPT, "'deep/holes.bin' is larger than");
    assert_int_equal(list_file("gz.tar", &limits, false, NULL), 0);
}

/* Whether it is read or passed over. */
static void test_bombs(void **state)
{
    (void)state;
    struct unarchiver_limits limits = UNARCHIVER_LIMITS;
    limits.expand_ratio = 10;
    limits.expand_free = 1 << 20;
    run("truncate -s 30M bomb && tar -czf bomb.tar bomb deep/a.txt && "
        "bsdtar -c --no-read-sparse --zstd -f bomb.zst bomb deep/a.txt && zip -q bomb.zip bomb "
        "deep/a.txt && "
        "truncate -s 1T vast && tar -Scf vast.tar vast && truncate -s 3M vast && "
        "tar -Scf hole.tar vast && rm bomb vast");
    expect_file("bomb.tar", &limits, true, E_SHARD_CORRUPT, "does not warrant");
    expect_file("bomb.tar", &limits, false, E_SHARD_CORRUPT, "does not warrant");
    expect_file("bomb.zst", &limits, false, E_SHARD_CORRUPT, "does not warrant");
    expect_file("bomb.zip", &limits, true, E_SHARD_CORRUPT, "does not warrant");
    assert_int_equal(list_file("bomb.zip", &limits, false, NULL), 0);
    assert_int_equal(list_file("hole.tar", &standard, true, NULL), 0);
    expect_file("vast.tar", &limits, true, E_SHARD_CORRUPT, "does not warrant");
    assert_int_equal(list_file("vast.tar", &limits, false, NULL), 0);
    run("truncate -s 30M bomb && 7z a -bd bomb.7z bomb && rm bomb");
    limits.formats = UNARCHIVER_7ZIP;
    expect_file("bomb.7z", &limits, true, E_SHARD_CORRUPT, "does not warrant");
    expect_file("bomb.7z", &limits, false, E_SHARD_CORRUPT, "does not warrant");
}

/* libarchive would make room for a name as long as the header states. */
static void test_long_headers(void **state)
{
    (void)state;
    run("{ printf '070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x' 1 33188 0 0 1 0 4 "
        "0 0 0 0 1610612736 0; head -c 40M /dev/zero; } >name.cpio && zstd -q -k name.cpio && "
        "printf '!<arch>\\n%-16s%-12s%-6s%-6s%-8s%-10s`\\n' // 0 0 0 0 999999990 >name.ar && "
        "head -c 40M /dev/zero >>name.ar");
    expect_file("name.cpio", &standard, true, E_SHARD_CORRUPT, "a header has more than 4 MiB");
    expect_file("name.cpio.zst", &standard, true, E_SHARD_CORRUPT, "a header has more than 4 MiB");
    struct unarchiver_limits limits = UNARCHIVER_LIMITS;
    limits.formats = UNARCHIVER_AR;
    expect_file("name.ar", &limits, true, E_SHARD_CORRUPT, "");
    run("head -c 10M /dev/zero >large && for i in 1 2 3; do cp large large$i; done && "
        "printf '%s\\n' large1 large2 large3 | cpio --quiet -o -H newc >large.cpio && "
        "zstd -q -k large.cpio && rm large*[0-9e]");
    assert_int_equal(list_file("large.cpio", &standard, false, NULL), 0);
    assert_int_equal(list_file("large.cpio.zst", &standard, false, NULL), 0);
}

/* --- damage ----------------------------------------------------------------------------------- */

/* `right`: what an undamaged one lists; NULL: the format cannot tell. */
static void expect_sense(struct bytes *b, const char *name, const struct buf *right)
{
    struct buf out = BUF_INIT;
    struct error err = ERROR_INIT;
    b->at = 0;
    int rc = list(b, &standard, true, true, &out, &err);
    if (rc != 0 && rc != E_SHARD_CORRUPT && rc != E_SHARD_UNSUPPORTED)
        fail_msg("%s, %zu bytes: %s", name, b->len, err.message);
    if (rc == 0 && right != NULL)
        assert_string_equal(out.data, right->data);
    buf_done(&out);
}

static void test_damage(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool sums; /* of all its bytes */
    } files[] = {{"s.tar", false}, {"s.tgz", true},  {"s.xz", true},
                 {"s.zst", false}, {"s.zip", false}, {"s.cpio", false}};
    run("tar -cf s.tar deep/a.txt deep/link && gzip -c s.tar >s.tgz && xz -c s.tar >s.xz && "
        "bsdtar -c --zstd -f s.zst deep/a.txt && zip -q -y s.zip deep/a.txt deep/link && "
        "printf '%s\\n' deep/a.txt deep/link | cpio --quiet -o -H newc >s.cpio");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t whole = 0;
        _cleanup_free_ char *data = load(files[i].name, &whole);
        struct bytes b = {.data = data, .len = whole};
        _cleanup_buf_ struct buf right = BUF_INIT;
        assert_int_equal(list(&b, &standard, true, true, &right, NULL), 0);
        size_t step = whole > 2000 ? 17 : 1;
        for (b.len = 0; b.len < whole; b.len += step)
            expect_sense(&b, files[i].name, NULL);
        b.len = whole;
        for (size_t at = 0; at < whole; at += step) {
            data[at] = (char)(data[at] ^ 0x55);
            expect_sense(&b, files[i].name, files[i].sums ? &right : NULL);
            data[at] = (char)(data[at] ^ 0x55);
        }
    }
}

static void test_damage_has_a_sentence(void **state)
{
    (void)state;
    run("head -c 3000 gnu.tar >cut.tar && "
        "head -c 9000 info.zip >cut.zip && head -c 5000 gz.tar >cut.tgz");
    expect_file("cut.tar", &standard, true, E_SHARD_CORRUPT, "runcated");
    expect_file("cut.zip", &standard, true, E_SHARD_CORRUPT, "");
    expect_file("cut.tgz", &standard, true, E_SHARD_CORRUPT, "runcated");
    run("cp stored.zip sum.zip && printf J | dd of=sum.zip bs=1 seek=70 conv=notrunc");
    expect_file("sum.zip", &standard, true, E_SHARD_CORRUPT, "CRC");
}

/* The error is the source's own. */
static void test_a_source_that_fails(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct buf out = BUF_INIT;
    struct bytes b = {0};
    _cleanup_free_ char *data = load("gnu.tar", &b.len);
    b.data = data;
    b.fail = E_ABORTED;
    assert_int_equal(list(&b, &standard, true, true, &out, &err), E_ABORTED);
    assert_string_equal(err.message, "the source has no more");
    b.fail = 0;
    const struct unarchiver_source source = source_of(&b, false);
    struct unarchiver *u = NULL;
    struct unarchiver_member m;
    assert_int_equal(unarchiver_open(&source, &standard, &u, NULL), 0);
    assert_int_equal(unarchiver_next(u, &m, NULL), 1);
    assert_string_equal(unarchiver_format_name(u), "GNU tar format");
    b.fail = E_IO;
    int rc = 1;
    while (rc > 0)
        rc = unarchiver_next(u, &m, NULL);
    assert_int_equal(rc, E_IO);
    unarchiver_free(u);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools),
        cmocka_unit_test(test_formats_are_allowed),
        cmocka_unit_test(test_names_of_formats),
        cmocka_unit_test(test_hard_links_of_cpio),
        cmocka_unit_test(test_passing_over),
        cmocka_unit_test(test_formats_are_chosen),
        cmocka_unit_test(test_numbers_are_bounded),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_long_headers),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_damage_has_a_sentence),
        cmocka_unit_test(test_a_source_that_fails),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
