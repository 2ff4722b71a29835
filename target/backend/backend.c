#include "target/backend/backend.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cluster/documents/state.h"
#include "common/clock.h"
#include "common/parse.h"

static const struct backend_ops *const rows[] = {&backend_dfc, &backend_gcs, &backend_http,
                                                 &backend_s3};

const struct backend_ops *backend_ops_of(const char *provider)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i]->provider, provider) == 0)
            return rows[i];
    }
    return NULL;
}

bool backend_can(const struct backend_ops *ops, enum backend_verb verb)
{
    return verb == BACKEND_READ || (ops->verbs & BACKEND_VERB(verb)) != 0;
}

enum http_method backend_method(const struct backend_ask *ask)
{
    static const enum http_method methods[] = {
        [BACKEND_PUT] = HTTP_PUT,          [BACKEND_DELETE] = HTTP_DELETE,
        [BACKEND_PARTS_BEGIN] = HTTP_POST, [BACKEND_PART] = HTTP_PUT,
        [BACKEND_PARTS_END] = HTTP_POST,   [BACKEND_PARTS_ABORT] = HTTP_DELETE,
        [BACKEND_LIST] = HTTP_GET,         [BACKEND_SESSION_BEGIN] = HTTP_POST,
        [BACKEND_SESSION_SEND] = HTTP_PUT, [BACKEND_SESSION_ABORT] = HTTP_DELETE,
        [BACKEND_COPY] = HTTP_PUT,         [BACKEND_PART_COPY] = HTTP_PUT,
        [BACKEND_REWRITE] = HTTP_POST,
    };
    return ask->verb == BACKEND_READ ? ask->method : methods[ask->verb];
}

/* --- pages of lists --------------------------------------------------------------------------- */

/* An array in an arena, twice as long when it is full. */
static void *grown(struct arena *a, void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    *room = *room > 0 ? 2 * *room : 64;
    void *more = arena_alloc(a, *room * size);
    if (count > 0)
        memcpy(more, items, count * size);
    return more;
}

void backend_page_add_entry(struct backend_page *page, const struct backend_entry *entry)
{
    if (object_name_check(entry->name, strlen(entry->name), NULL) != 0)
        return;
    page->entries = grown(page->arena, page->entries, page->entry_count, &page->entry_room,
                          sizeof page->entries[0]);
    struct backend_entry *e = &page->entries[page->entry_count++];
    *e = *entry;
    e->name = arena_strdup(page->arena, entry->name);
    e->etag = arena_strdup(page->arena, entry->etag);
}

void backend_page_add_prefix(struct backend_page *page, const char *name)
{
    if (object_name_check(name, strlen(name), NULL) != 0)
        return;
    page->prefixes = grown(page->arena, page->prefixes, page->prefix_count, &page->prefix_room,
                           sizeof page->prefixes[0]);
    page->prefixes[page->prefix_count++] = arena_strdup(page->arena, name);
}

/* --- heads ------------------------------------------------------------------------------------ */

/* Digits from *at on, which moves behind them. */
static bool take_number(const char **at, uint64_t *out)
{
    char digits[24];
    size_t len = strspn(*at, "0123456789");
    if (len == 0 || len >= sizeof digits)
        return false;
    memcpy(digits, *at, len);
    digits[len] = '\0';
    *at += len;
    return parse_u64(digits, out, NULL) == 0;
}

static bool take_char(const char **at, char c)
{
    if (**at != c)
        return false;
    (*at)++;
    return true;
}

bool backend_parse_content_range(const char *text, uint64_t *offset, uint64_t *length,
                                 int64_t *size)
{
    uint64_t first, last, total;
    if (strncmp(text, "bytes ", 6) != 0)
        return false;
    const char *at = text + 6;
    if (!take_number(&at, &first) || !take_char(&at, '-') || !take_number(&at, &last) ||
        !take_char(&at, '/') || last < first || last - first == UINT64_MAX)
        return false;
    *offset = first;
    *length = last - first + 1;
    *size = -1;
    if (strcmp(at, "*") == 0)
        return true;
    if (!take_number(&at, &total) || *at != '\0' || total <= last || total > INT64_MAX)
        return false;
    *size = (int64_t)total;
    return true;
}

int64_t backend_parse_time_ms(const char *text)
{
    struct tm tm = {.tm_isdst = 0};
    char z = '\0';
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%c", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec, &z) != 7 ||
        (z != 'Z' && z != '.'))
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    int64_t seconds = (int64_t)timegm(&tm);
    return seconds > 0 ? seconds * 1000 : 0;
}

bool backend_etag_is_strong(const char *etag)
{
    size_t len = strlen(etag);
    return len >= 2 && etag[0] == '"' && etag[len - 1] == '"';
}

const char *backend_format_digest(const struct checksum_value *sum,
                                  char out[static BACKEND_DIGEST_MAX])
{
    EVP_EncodeBlock((unsigned char *)out, sum->bytes, (int)checksum_size(sum->type));
    return out;
}

size_t backend_ask_lines(const struct backend_ask *ask, struct arena *a, const char **out)
{
    char date[32];
    size_t n = 0;
    if (ask->range != NULL)
        out[n++] = arena_printf(a, "range: %s", ask->range);
    if (ask->if_match != NULL)
        out[n++] = arena_printf(a, "if-match: %s", ask->if_match);
    if (ask->if_none_match != NULL)
        out[n++] = arena_printf(a, "if-none-match: %s", ask->if_none_match);
    else if (ask->if_modified_since_s > 0)
        out[n++] = arena_printf(a, "if-modified-since: %s",
                                clock_format_http(ask->if_modified_since_s, date));
    return n;
}

bool backend_ask_compares(const struct backend_ask *ask)
{
    return ask->if_none_match != NULL || ask->if_modified_since_s > 0;
}
