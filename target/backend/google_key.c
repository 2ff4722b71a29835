#include "target/backend/google_key.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdbool.h>
#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"

#define SCOPE "https://www.googleapis.com/auth/devstorage.read_write"

enum { LIFE_SECONDS = 3600 }; /* of a statement: the most that Google takes */

int google_key_parse(const char *text, size_t len, struct arena *a, struct google_key *out,
                     struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *type = "";
    struct google_key k = {.key_id = "", .token_uri = "https://oauth2.googleapis.com/token"};
    if (json_parse(text, len, &doc, NULL) != 0 || json_get_str(doc, "", "type", &type, NULL) != 0 ||
        strcmp(type, "service_account") != 0)
        return error_set(err, E_BACKEND_DENIED,
                         "the key file is not the JSON of a service account's key");
    if (json_need_str(doc, "", "client_email", &k.email, NULL) != 0 ||
        json_need_str(doc, "", "private_key", &k.private_key, NULL) != 0 ||
        json_get_str(doc, "", "private_key_id", &k.key_id, NULL) != 0 ||
        json_get_str(doc, "", "token_uri", &k.token_uri, NULL) != 0)
        return error_set(err, E_BACKEND_DENIED,
                         "the key file has no client_email with a private_key");
    if (strncmp(k.token_uri, "https://", 8) != 0 && strncmp(k.token_uri, "http://", 7) != 0)
        return error_set(err, E_BACKEND_DENIED, "token_uri of the key file is no http(s) URL");
    *out = (struct google_key){.email = arena_strdup(a, k.email),
                               .key_id = arena_strdup(a, k.key_id),
                               .private_key = arena_strdup(a, k.private_key),
                               .token_uri = arena_strdup(a, k.token_uri)};
    return 0;
}

/* Base64 as URLs have it, without what fills it up (RFC 4648, section 5). */
static void put_base64url(struct buf *out, const void *data, size_t len)
{
    _cleanup_free_ unsigned char *text = xmalloc((len + 2) / 3 * 4 + 1);
    int size = EVP_EncodeBlock(text, data, (int)len);
    for (int i = 0; i < size && text[i] != '='; i++)
        buf_putc(out, text[i] == '+' ? '-' : text[i] == '/' ? '_' : (char)text[i]);
}

static void put_json_part(struct buf *out, json_t *doc)
{
    _cleanup_free_ char *text = json_text(doc);
    put_base64url(out, text, strlen(text));
    json_decref(doc);
}

/* Of what stands there from `from` on. */
static int put_signature(EVP_PKEY *key, size_t from, struct buf *out, struct error *err)
{
    unsigned char signature[1024];
    size_t len = sizeof signature;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = ctx != NULL && EVP_PKEY_base_id(key) == EVP_PKEY_RSA &&
                EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
                EVP_DigestSign(ctx, signature, &len, (const unsigned char *)out->data + from,
                               out->len - from) == 1;
    EVP_MD_CTX_free(ctx);
    if (!good)
        return error_set(err, E_BACKEND_DENIED, "private_key of the key file cannot sign");
    buf_putc(out, '.');
    put_base64url(out, signature, len);
    return 0;
}

int google_key_sign(const struct google_key *key, int64_t now_s, struct buf *out, struct error *err)
{
    static char no_passphrase[] = ""; /* nobody is asked for one */
    const size_t from = out->len;
    BIO *bio = BIO_new_mem_buf(key->private_key, -1);
    EVP_PKEY *private =
        bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, NULL, no_passphrase) : NULL;
    BIO_free(bio);
    if (private == NULL)
        return error_set(err, E_BACKEND_DENIED, "private_key of the key file is no key in PEM");
    json_t *header = json_pack("{s:s, s:s}", "alg", "RS256", "typ", "JWT");
    if (*key->key_id != '\0')
        json_object_set_new(header, "kid", json_string(key->key_id));
    put_json_part(out, header);
    buf_putc(out, '.');
    put_json_part(out, json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", key->email, "scope", SCOPE,
                                 "aud", key->token_uri, "iat", (json_int_t)now_s, "exp",
                                 (json_int_t)(now_s + LIFE_SECONDS)));
    int code = put_signature(private, from, out, err);
    EVP_PKEY_free(private);
    return code;
}
