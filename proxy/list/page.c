#include "proxy/list/page.h"

#include <stdlib.h>
#include <string.h>

#include "common/arena.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/utf8.h"

enum { DEPTH_MAX = 8, ARENA_BYTES = 16 << 10 };

/* Where the scan stands; `bad` once it has failed, with the reason. */
struct scan {
    const char *at, *end;
    struct arena *arena;
    const char *bad;
};

struct items {
    struct list_item *items;
    size_t count, room;
};

/* A JSON string: between the quotes. */
struct text {
    const char *start;
    size_t len;
    bool escaped;
};

static bool fail(struct scan *s, const char *why)
{
    if (s->bad == NULL)
        s->bad = why;
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static void skip_space(struct scan *s)
{
    while (s->at < s->end && is_space(*s->at))
        s->at++;
}

/* Is the next thing this character?  Then it is taken. */
static bool take(struct scan *s, char c)
{
    skip_space(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static bool need(struct scan *s, char c)
{
    return take(s, c) || fail(s, "it is no JSON");
}

/* --- strings ---------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits behind "\u"; -1 where they are none. */
static int32_t hex4(const char *at, const char *end)
{
    int32_t value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* At the digits behind "\u", two of them where they are surrogates; 0 where they are no character
 * (NUL is none that a name can have). */
static uint32_t unescape_u(const char **at, const char *end)
{
    uint32_t high = (uint32_t)hex4(*at, end);
    *at += 4;
    if (high < 0xd800 || high > 0xdfff)
        return high;
    if (high > 0xdbff || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
        return 0;
    int32_t low = hex4(*at + 2, end);
    *at += 6;
    return low < 0xdc00 || low > 0xdfff
               ? 0
               : 0x10000 + ((high - 0xd800) << 10) + (uint32_t)low - 0xdc00;
}

static bool skip_escape(struct scan *s)
{
    if (s->end - s->at < 2)
        return fail(s, "it is cut short");
    char c = s->at[1];
    s->at += 2;
    if (c == 'u') {
        if (hex4(s->at, s->end) < 0)
            return fail(s, "it is no JSON");
        return unescape_u(&s->at, s->end) != 0 || fail(s, "it has a text that is none");
    }
    return (c != '\0' && strchr("\"\\/bfnrt", c) != NULL) || fail(s, "it is no JSON");
}

static bool skip_character(struct scan *s)
{
    if ((unsigned char)*s->at < 0x80) {
        s->at++;
        return true;
    }
    size_t size = utf8_sequence(s->at, (size_t)(s->end - s->at));
    s->at += size;
    return size != 0 || fail(s, "it is no UTF-8");
}

/* ASCII that stands for itself: most of it. */
static void skip_plain(struct scan *s)
{
    const char *at = s->at;
    while (at < s->end && *at >= 0x20 && (unsigned char)*at < 0x80 && *at != '"' && *at != '\\')
        at++;
    s->at = at;
}

static bool scan_string(struct scan *s, struct text *out)
{
    if (!need(s, '"'))
        return false;
    *out = (struct text){.start = s->at};
    for (skip_plain(s); s->at < s->end && *s->at != '"'; skip_plain(s)) {
        bool escape = *s->at == '\\';
        out->escaped |= escape;
        if ((unsigned char)*s->at < 0x20)
            return fail(s, "it is no JSON");
        if (escape ? !skip_escape(s) : !skip_character(s))
            return false;
    }
    out->len = (size_t)(s->at - out->start);
    return s->at++ < s->end || fail(s, "it is cut short");
}

static char *put_utf8(char *out, uint32_t c)
{
    static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    unsigned size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (unsigned i = size; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(size == 1 ? c : heads[size] | c);
    return out + size;
}

static const char *unescape(struct scan *s, const struct text *t)
{
    static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
    char *text = arena_bytes(s->arena, t->len + 1), *out = text;
    const char *end = t->start + t->len;
    for (const char *at = t->start; at < end;) {
        if (*at != '\\') {
            *out++ = *at++;
            continue;
        }
        char c = at[1];
        at += 2;
        const char *letter = strchr(letters, c);
        uint32_t code = c == 'u' ? unescape_u(&at, end)
                                 : (unsigned char)(letter != NULL ? meant[letter - letters] : c);
        out = put_utf8(out, code); /* never 0: scan_string() */
    }
    *out = '\0';
    return text;
}

/* The string as a text; "" where the scan has failed. */
static const char *take_text(struct scan *s)
{
    struct text t;
    if (!scan_string(s, &t))
        return "";
    return t.escaped ? unescape(s, &t) : arena_strndup(s->arena, t.start, t.len);
}

/* --- values that are passed on ---------------------------------------------------------------- */

static bool skip_digits(struct scan *s, long max)
{
    const char *start = s->at;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
        s->at++;
    return (s->at > start && s->at - start <= max) || fail(s, "it is no JSON, or too large");
}

static bool take_now(struct scan *s, const char *any)
{
    if (s->at == s->end || *s->at == '\0' || strchr(any, *s->at) == NULL)
        return false;
    s->at++;
    return true;
}

/* Such as every reader takes. */
static bool skip_number(struct scan *s)
{
    enum { DIGITS = 18, EXPONENT = 2 };
    (void)take_now(s, "-");
    if (!take_now(s, "0") && !skip_digits(s, DIGITS))
        return false;
    if (take_now(s, ".") && !skip_digits(s, DIGITS))
        return false;
    if (!take_now(s, "eE"))
        return true;
    (void)take_now(s, "+-");
    return skip_digits(s, EXPONENT);
}

static bool skip_word(struct scan *s)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++) {
        size_t len = strlen(words[i]);
        if ((size_t)(s->end - s->at) >= len && memcmp(s->at, words[i], len) == 0) {
            s->at += len;
            return true;
        }
    }
    return fail(s, "it is no JSON");
}

static bool skip_value(struct scan *s, unsigned depth);

/* Behind the opening bracket. */
static bool skip_members(struct scan *s, bool object, unsigned depth)
{
    char close = object ? '}' : ']';
    if (take(s, close))
        return true;
    do {
        struct text key;
        if (object && (!scan_string(s, &key) || !need(s, ':')))
            return false;
        if (!skip_value(s, depth + 1))
            return false;
    } while (take(s, ','));
    return need(s, close);
}

static bool skip_value(struct scan *s, unsigned depth)
{
    struct text unused;
    skip_space(s);
    if (depth > DEPTH_MAX)
        return fail(s, "it is nested too deeply");
    if (s->at == s->end)
        return fail(s, "it is cut short");
    if (*s->at == '"')
        return scan_string(s, &unused);
    if (take(s, '{'))
        return skip_members(s, true, depth);
    if (take(s, '['))
        return skip_members(s, false, depth);
    return *s->at == '-' || (*s->at >= '0' && *s->at <= '9') ? skip_number(s) : skip_word(s);
}

/* --- the page --------------------------------------------------------------------------------- */

static bool is_key(const struct text *key, const char *name)
{
    return key->len == strlen(name) && memcmp(key->start, name, key->len) == 0;
}

static bool take_version(struct scan *s, uint64_t version[3])
{
    struct text t;
    if (!scan_string(s, &t))
        return false;
    const char *at = t.start, *end = t.start + t.len;
    for (int i = 0; i < 3; i++) {
        char piece[24];
        size_t len = 0;
        while (at + len < end && at[len] != '.')
            len++;
        bool last = at + len == end;
        if (len >= sizeof piece || last != (i == 2))
            return fail(s, "an entry lacks its name or version");
        memcpy(piece, at, len);
        piece[len] = '\0';
        if (parse_u64(piece, &version[i], NULL) != 0)
            return fail(s, "an entry lacks its name or version");
        at += len + 1;
    }
    return true;
}

static bool take_entry(struct scan *s, struct list_item *item)
{
    bool has_version = false;
    skip_space(s);
    *item = (struct list_item){.text = s->at};
    if (!need(s, '{'))
        return false;
    if (!take(s, '}')) {
        do {
            struct text key;
            if (!scan_string(s, &key) || !need(s, ':'))
                return false;
            skip_space(s);
            bool string = s->at < s->end && *s->at == '"';
            if (string && is_key(&key, "name"))
                item->name = take_text(s);
            else if (string && is_key(&key, "version"))
                has_version = take_version(s, item->version);
            else if (is_key(&key, "deleted") && s->at < s->end && *s->at == 't')
                item->deleted = skip_word(s);
            else
                skip_value(s, 2);
            if (s->bad != NULL)
                return false;
        } while (take(s, ','));
        if (!need(s, '}'))
            return false;
    }
    item->len = (size_t)(s->at - item->text);
    return (item->name != NULL && has_version) || fail(s, "an entry lacks its name or version");
}

static bool take_prefix(struct scan *s, struct list_item *item)
{
    skip_space(s);
    *item = (struct list_item){.text = s->at, .is_prefix = true};
    if (s->at == s->end || *s->at != '"')
        return fail(s, "a prefix is no text");
    item->name = take_text(s);
    item->len = (size_t)(s->at - item->text);
    return s->bad == NULL;
}

static struct list_item *items_add(struct items *to)
{
    if (to->count == to->room) {
        to->room = to->room == 0 ? 64 : 2 * to->room;
        to->items = xrealloc(to->items, to->room * sizeof *to->items);
    }
    return &to->items[to->count++];
}

static bool take_items(struct scan *s, bool (*take_item)(struct scan *s, struct list_item *item),
                       struct items *out)
{
    out->count = 0; /* of two arrays of one name the last counts, as elsewhere */
    if (!need(s, '['))
        return false;
    if (take(s, ']'))
        return true;
    do {
        struct list_item *item = items_add(out);
        if (!take_item(s, item))
            return false;
        if (out->count > 1 && strcmp(item[-1].name, item->name) >= 0) {
            s->bad = arena_printf(s->arena, "'%.64s' is out of order", item->name);
            return false;
        }
    } while (take(s, ','));
    return need(s, ']');
}

static bool take_page(struct scan *s, struct list_page *p, struct items *entries,
                      struct items *prefixes)
{
    if (!need(s, '{'))
        return false;
    if (!take(s, '}')) {
        do {
            struct text key;
            if (!scan_string(s, &key) || !need(s, ':'))
                return false;
            if (is_key(&key, "entries"))
                take_items(s, take_entry, entries);
            else if (is_key(&key, "prefixes"))
                take_items(s, take_prefix, prefixes);
            else if (is_key(&key, "next"))
                p->next = take_text(s);
            else if (is_key(&key, "from"))
                p->from = take_text(s);
            else
                skip_value(s, 1);
            if (s->bad != NULL)
                return false;
        } while (take(s, ','));
        if (!need(s, '}'))
            return false;
    }
    skip_space(s);
    if (s->at < s->end)
        return fail(s, "something follows it");
    return p->next != NULL || fail(s, "it has no 'next'");
}

static void interleave(struct list_page *p, const struct items *entries,
                       const struct items *prefixes)
{
    size_t a = 0, b = 0;
    p->count = entries->count + prefixes->count;
    p->items = xcalloc(p->count + 1, sizeof *p->items);
    for (size_t i = 0; i < p->count; i++) {
        bool first =
            b == prefixes->count ||
            (a < entries->count && strcmp(entries->items[a].name, prefixes->items[b].name) < 0);
        p->items[i] = first ? entries->items[a++] : prefixes->items[b++];
    }
}

int list_page_read(char *text, size_t len, struct list_page **out, struct error *err)
{
    _cleanup_(list_page_freep)
    struct list_page *p = xcalloc(1, sizeof *p);
    struct items entries = {0}, prefixes = {0};
    p->arena = arena_new(len < ARENA_BYTES ? len : ARENA_BYTES); /* pages of a thousand targets */
    p->text = text;
    p->from = "";
    struct scan s = {.at = text, .end = text + len, .arena = p->arena};
    bool good = take_page(&s, p, &entries, &prefixes);
    if (good) {
        interleave(p, &entries, &prefixes);
        *out = steal(p);
    } else {
        error_set(err, E_CORRUPT, "%s", s.bad);
    }
    free(entries.items);
    free(prefixes.items);
    return good ? 0 : E_CORRUPT;
}

void list_page_free(struct list_page *p)
{
    if (p == NULL)
        return;
    free(p->items);
    free(p->text);
    arena_free(p->arena);
    free(p);
}
