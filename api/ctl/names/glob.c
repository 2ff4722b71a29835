#include "api/ctl/names/glob.h"

#include <ctype.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/utf8.h"

#define SIGNS "*?["

/* Escapes count only beside signs: a name with a backslash alone needs none. */
static bool has_escapes(const char *key)
{
    return strpbrk(key, SIGNS) != NULL;
}

/* Appends the text before the first sign without an escape, and returns where that stands. */
static const char *put_plain(const char *key, struct buf *out)
{
    const char *at = key;
    for (; *at != '\0' && strchr(SIGNS, *at) == NULL; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
        buf_putc(out, *at);
    }
    return at;
}

bool glob_is(const char *key)
{
    _cleanup_(buf_done)
    struct buf plain = BUF_INIT;
    return has_escapes(key) && *put_plain(key, &plain) != '\0';
}

char *glob_prefix(const char *pattern)
{
    _cleanup_(buf_done)
    struct buf plain = BUF_INIT;
    put_plain(pattern, &plain);
    return xstrdup(buf_str(&plain));
}

/* ---- matching, by characters whatever the locale is ---- */

/* The next character.  A byte that is no UTF-8 is one, and equals no other. */
static uint32_t take(const char **at)
{
    static const uint32_t above_unicode = 0x110000;
    const char *text = *at;
    size_t n = utf8_sequence(text, strnlen(text, 4));
    *at += n > 0 ? n : 1;
    return n > 0 ? utf8_character(text, n) : above_unicode + (unsigned char)*text;
}

/* With the escape before it, if there is one. */
static uint32_t take_escaped(const char **at)
{
    if (**at == '\\' && (*at)[1] != '\0')
        ++*at;
    return take(at);
}

/* "[:digit:]" within a set, of ASCII: *at moves behind it. */
static bool take_class(const char **at, uint32_t c, bool *has)
{
    static const struct {
        const char *name;
        int (*holds)(int);
    } rows[] = {
        {"[:alnum:]", isalnum}, {"[:alpha:]", isalpha}, {"[:blank:]", isblank},
        {"[:cntrl:]", iscntrl}, {"[:digit:]", isdigit}, {"[:graph:]", isgraph},
        {"[:lower:]", islower}, {"[:print:]", isprint}, {"[:punct:]", ispunct},
        {"[:space:]", isspace}, {"[:upper:]", isupper}, {"[:xdigit:]", isxdigit},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = strlen(rows[i].name);
        if (strncmp(*at, rows[i].name, n) != 0)
            continue;
        *has = *has || (c < 0x80 && rows[i].holds((int)c) != 0);
        *at += n;
        return true;
    }
    return false;
}

/* Of the set behind a '[': where it ends, and whether it has c; NULL where no ']' ends it. */
static const char *take_set(const char *at, uint32_t c, bool *matches)
{
    bool others = *at == '!' || *at == '^', has = false;
    at += others;
    for (const char *first = at; *at != ']' || at == first;) {
        if (*at == '\0')
            return NULL;
        if (take_class(&at, c, &has))
            continue;
        uint32_t low = take_escaped(&at), high = low;
        if (at[0] == '-' && at[1] != ']' && at[1] != '\0') {
            at++;
            high = take_escaped(&at);
        }
        has = has || (low <= c && c <= high);
    }
    *matches = has != others;
    return at + 1;
}

/* One character c of the name against the pattern's next sign or character, which is no '*'. */
static bool take_one(const char **pattern, uint32_t c)
{
    const char *at = *pattern, *end;
    bool matches = true;
    if (*at == '\0')
        return false;
    if (*at == '?')
        at++;
    else if (*at == '[' && (end = take_set(at + 1, c, &matches)) != NULL)
        at = end;
    else
        matches = take_escaped(&at) == c;
    *pattern = at;
    return matches;
}

/* Only the last '*' is tried again with one character more: an earlier one gains nothing by it. */
bool glob_matches(const char *pattern, const char *name)
{
    const char *behind_star = NULL, *star_end = NULL;
    while (*name != '\0') {
        if (*pattern == '*') {
            behind_star = ++pattern;
            star_end = name;
            continue;
        }
        if (take_one(&pattern, take(&name)))
            continue;
        if (behind_star == NULL)
            return false;
        take(&star_end);
        name = star_end;
        pattern = behind_star;
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

/* ---- names ---- */

char *glob_name(const char *key)
{
    return has_escapes(key) ? glob_prefix(key) : xstrdup(key);
}

char *glob_escape(const char *name)
{
    struct buf key = BUF_INIT;
    buf_puts(&key, "");
    for (; *name != '\0'; name++) {
        if (strchr(SIGNS "\\", *name) != NULL)
            buf_putc(&key, '\\');
        buf_putc(&key, *name);
    }
    return buf_steal(&key);
}

bool glob_only_prefix(const char *pattern)
{
    _cleanup_(buf_done)
    struct buf plain = BUF_INIT;
    return strcmp(put_plain(pattern, &plain), "*") == 0;
}

int glob_open(struct dfc_client *client, const char *bucket, const char *pattern,
              struct glob_list *out, struct dfc_error *err)
{
    _cleanup_free_ char *prefix = glob_prefix(pattern);
    const struct dfc_list_options options = {.prefix = prefix};
    *out = (struct glob_list){.pattern = pattern};
    return dfc_list_open(client, bucket, &options, &out->list, err);
}

int glob_next(struct glob_list *g, const struct dfc_entry **entry, struct dfc_error *err)
{
    int rc;
    while ((rc = dfc_list_next(g->list, entry, err)) > 0) {
        if (glob_matches(g->pattern, (*entry)->name)) {
            g->matched++;
            return rc;
        }
    }
    return rc;
}

void glob_close(struct glob_list *g)
{
    if (g->list != NULL)
        dfc_list_close(g->list);
    g->list = NULL;
}
