#include "target/backend/backend.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/parse.h"

static const struct backend_ops *const rows[] = {&backend_dfc, &backend_http, &backend_s3};

const struct backend_ops *backend_ops_of(const char *provider)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i]->provider, provider) == 0)
            return rows[i];
    }
    return NULL;
}

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

bool backend_etag_is_strong(const char *etag)
{
    size_t len = strlen(etag);
    return len >= 2 && etag[0] == '"' && etag[len - 1] == '"';
}

bool backend_parse_digest(enum checksum_type type, const char *base64, struct checksum_value *out)
{
    unsigned char bytes[3 * ((2 * CHECKSUM_MAX) / 4)];
    size_t len = strlen(base64), want = checksum_size(type);
    if (want == 0 || len != (want + 2) / 3 * 4 || len > sizeof bytes / 3 * 4)
        return false;
    size_t padding = (3 - want % 3) % 3;
    for (size_t i = 0; i < padding; i++) {
        if (base64[len - 1 - i] != '=')
            return false;
    }
    if (EVP_DecodeBlock(bytes, (const unsigned char *)base64, (int)len) != (int)(want + padding))
        return false;
    *out = (struct checksum_value){.type = type};
    memcpy(out->bytes, bytes, want);
    return true;
}

static void keep_text(char *out, size_t size, const char *text)
{
    if (text != NULL && strlen(text) < size)
        memcpy(out, text, strlen(text) + 1);
}

void backend_read_head(const struct backend_ops *ops, const struct http_head *head,
                       struct backend_facts *out)
{
    const char *range = head->header(head, "Content-Range");
    const char *modified = head->header(head, "Last-Modified");
    uint64_t length;
    *out = (struct backend_facts){
        .status = head->status, .length = head->content_length, .size = -1, .modified_s = -1};
    keep_text(out->etag, sizeof out->etag, head->header(head, "ETag"));
    keep_text(out->content_type, sizeof out->content_type, head->header(head, "Content-Type"));
    if (modified == NULL || clock_parse_http(modified, &out->modified_s) != 0)
        out->modified_s = -1;
    if (out->status == 200)
        out->size = out->length;
    else if (out->status == 206 && range != NULL &&
             !backend_parse_content_range(range, &out->offset, &length, &out->size))
        out->size = -1;
    ops->sum(head, &out->sum);
}
