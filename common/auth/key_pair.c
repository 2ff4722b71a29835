#include "common/auth/key_pair.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"

void key_pair_done(struct key_pair *k)
{
    free(k->access_key);
    if (k->secret_key != NULL)
        OPENSSL_cleanse(k->secret_key, strlen(k->secret_key));
    free(k->secret_key);
    *k = (struct key_pair){0};
}

static int parse_document(const char *text, size_t len, struct key_pair *out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *access, *secret;
    int rc = json_parse_secret(text, len, &doc, err);
    if (rc == 0)
        rc = json_need_str(doc, "", "access_key", &access, err);
    if (rc == 0)
        rc = json_need_str(doc, "", "secret_key", &secret, err);
    if (rc == 0)
        *out = (struct key_pair){xstrdup(access), xstrdup(secret)};
    return rc;
}

/* The next line without the spaces around it; malloc'ed, "" at the end. */
static char *next_line(const char **text, const char *end)
{
    const char *begin = *text;
    const char *feed = memchr(begin, '\n', (size_t)(end - begin));
    const char *stop = feed != NULL ? feed : end;
    *text = feed != NULL ? feed + 1 : end;
    while (begin < stop && isspace((unsigned char)*begin))
        begin++;
    while (stop > begin && isspace((unsigned char)stop[-1]))
        stop--;
    return xstrndup(begin, (size_t)(stop - begin));
}

int key_pair_parse(const char *text, size_t len, struct key_pair *out, struct error *err)
{
    const char *end = text + len;
    *out = (struct key_pair){0};
    while (text < end && isspace((unsigned char)*text))
        text++;
    if (text < end && *text == '{')
        return parse_document(text, (size_t)(end - text), out, err);
    out->access_key = next_line(&text, end);
    out->secret_key = next_line(&text, end);
    if (out->access_key[0] != '\0' && out->secret_key[0] != '\0')
        return 0;
    key_pair_done(out);
    return error_set(err, E_INVALID,
                     "the input has no keys: expected a line with the access key and one with the "
                     "secret key, or a JSON document with access_key and secret_key");
}
