#include "target/backend/aws_question.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "io/file.h"

#define CONTAINER_HOST "http://169.254.170.2"
#define INSTANCE_HOST "http://169.254.169.254"
#define INSTANCE_HOST_6 "http://[fd00:ec2::254]"
#define INSTANCE_ROLES "/latest/meta-data/iam/security-credentials/"
#define STS_GLOBAL "https://sts.amazonaws.com"

enum {
    FILE_MAX = 64 << 10,
    SESSION_NAME_MAX = 64,
    HOST_MAX = 256,
    STS_TIMEOUT_MS = 20 * 1000,
    CONTAINER_TIMEOUT_MS = 5 * 1000, /* it is next door … */
    INSTANCE_TIMEOUT_MS = 2 * 1000,  /* … or not there at all */
};

static const char *env_or(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : otherwise;
}

/* A file's one line.  The arena's. */
static int read_line(const char *variable, const char *path, struct arena *a, char **out,
                     struct error *err)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    struct error why = ERROR_INIT;
    if (file_read_all(path, FILE_MAX, &text, &why) != 0)
        return error_set(err, E_BACKEND_DENIED, "%s: '%s' cannot be read", variable, path);
    size_t len = strlen(buf_str(&text));
    while (len > 0 && isspace((unsigned char)text.data[len - 1]))
        len--;
    *out = arena_strndup(a, buf_str(&text), len);
    OPENSSL_cleanse(text.data, text.len);
    return len > 0 ? 0 : error_set(err, E_BACKEND_DENIED, "%s: '%s' is empty", variable, path);
}

/* --- where ------------------------------------------------------------------------------------ */

struct place {
    size_t origin_len; /* of the URL: "http://host:port", which messages may say */
    char host[HOST_MAX];
    bool is_https;
};

static int find_place(const char *variable, const char *url, struct place *out, struct error *err)
{
    out->is_https = strncmp(url, "https://", 8) == 0;
    const char *host = url + (out->is_https ? 8 : 7);
    if (!out->is_https && strncmp(url, "http://", 7) != 0)
        return error_set(err, E_BACKEND_DENIED, "%s is no http(s) URL", variable);
    size_t all = strcspn(host, "/?#");
    size_t len = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?#");
    out->origin_len = (size_t)(host - url) + all;
    for (const char *at = url; *at != '\0'; at++) {
        if (*at <= ' ' || *at >= 0x7f || *at == '\\')
            return error_set(err, E_BACKEND_DENIED, "%s has a character that no URL has", variable);
    }
    bool is_alone =
        len > 0 && len <= all && len < sizeof out->host && (len == all || host[len] == ':');
    if (!is_alone || memchr(host, '@', all) != NULL)
        return error_set(err, E_BACKEND_DENIED, "%s names no host alone", variable);
    memcpy(out->host, host, len);
    out->host[len] = '\0';
    return 0;
}

/* Without the slashes at its end. */
static const char *base_of(struct arena *a, const char *url)
{
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/')
        len--;
    return arena_strndup(a, url, len);
}

static const char *who_is(struct arena *a, const char *what, const char *url,
                          const struct place *place)
{
    return arena_printf(a, "%s '%.*s'", what, (int)place->origin_len, url);
}

/* --- STS -------------------------------------------------------------------------------------- */

static const char *sts_url(struct arena *a)
{
    const char *url = env_or("AWS_ENDPOINT_URL_STS", NULL);
    const char *region = env_or("AWS_REGION", env_or("AWS_DEFAULT_REGION", NULL));
    if (url != NULL)
        return url;
    if (region == NULL)
        return STS_GLOBAL;
    return arena_printf(a, "https://sts.%s.amazonaws.com%s", region,
                        strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
}

/* "dfc-HOST": audit logs have it. */
static const char *session_name(struct arena *a)
{
    char host[HOST_MAX] = "";
    const char *given = env_or("AWS_ROLE_SESSION_NAME", NULL);
    if (given != NULL)
        return given;
    if (gethostname(host, sizeof host - 1) != 0 || *host == '\0')
        return "dfc-target";
    char *name = arena_printf(a, "dfc-%.*s", SESSION_NAME_MAX - 4, host);
    for (char *at = name; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && strchr(".-_", *at) == NULL)
            *at = '-';
    }
    return name;
}

static void put_field(struct buf *form, const char *name, const char *value)
{
    buf_printf(form, "&%s=", name);
    buf_put_url_escaped(form, value, strlen(value), "");
}

int aws_question_web_identity(struct arena *a, struct question *out, struct error *err)
{
    static const char *const lines[] = {"content-type: application/x-www-form-urlencoded", NULL};
    const char *url = base_of(a, sts_url(a));
    struct place place;
    char *token = NULL;
    _cleanup_buf_ struct buf form = BUF_INIT;
    int code = find_place("AWS_ENDPOINT_URL_STS", url, &place, err);
    if (code == 0)
        code = read_line("AWS_WEB_IDENTITY_TOKEN_FILE", env_or("AWS_WEB_IDENTITY_TOKEN_FILE", ""),
                         a, &token, err);
    if (code != 0)
        return code;
    buf_puts(&form, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
    put_field(&form, "RoleArn", env_or("AWS_ROLE_ARN", ""));
    put_field(&form, "RoleSessionName", session_name(a));
    put_field(&form, "WebIdentityToken", token);
    OPENSSL_cleanse(token, strlen(token));
    *out = (struct question){.who = who_is(a, "STS", url, &place),
                             .url = arena_printf(a, "%s/", url),
                             .method = HTTP_POST,
                             .headers = lines,
                             .body = arena_strdup(a, buf_str(&form)),
                             .timeout_ms = STS_TIMEOUT_MS};
    OPENSSL_cleanse(form.data, form.len);
    return 0;
}

/* --- a container ------------------------------------------------------------------------------ */

/* This machine, and the agents of ECS and EKS. */
static bool is_near(const char *host)
{
    static const char *const agents[] = {"169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    struct in_addr four;
    for (size_t i = 0; i < sizeof agents / sizeof agents[0]; i++) {
        if (strcasecmp(host, agents[i]) == 0)
            return true;
    }
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
           (inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127);
}

static int container_url(struct arena *a, const char **out, struct place *place, struct error *err)
{
    const char *relative = env_or("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", NULL);
    *out = env_or("AWS_CONTAINER_CREDENTIALS_FULL_URI", "");
    if (relative != NULL && *relative != '/')
        return error_set(err, E_BACKEND_DENIED,
                         "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with '/'");
    if (relative != NULL)
        *out = arena_printf(a, CONTAINER_HOST "%s", relative);
    int code = find_place(relative != NULL ? "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"
                                           : "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                          *out, place, err);
    if (code == 0 && !place->is_https && !is_near(place->host))
        return error_set(err, E_BACKEND_DENIED,
                         "AWS_CONTAINER_CREDENTIALS_FULL_URI: '%s' is asked by https only: by http "
                         "this machine may be, 169.254.170.2, 169.254.170.23 and [fd00:ec2::23]",
                         place->host);
    return code;
}

/* NULL: none is to be sent. */
static int authorization(struct arena *a, char **out, struct error *err)
{
    const char *path = env_or("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", NULL);
    const char *variable = path != NULL ? "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"
                                        : "AWS_CONTAINER_AUTHORIZATION_TOKEN";
    const char *given = env_or("AWS_CONTAINER_AUTHORIZATION_TOKEN", NULL);
    char *token = given != NULL ? arena_strdup(a, given) : NULL;
    *out = NULL;
    int code = path != NULL ? read_line(variable, path, a, &token, err) : 0;
    if (code != 0 || token == NULL)
        return code;
    for (const char *at = token; *at != '\0'; at++) {
        if (*at < ' ' || *at >= 0x7f)
            return error_set(err, E_BACKEND_DENIED, "%s has a character that no header has",
                             variable);
    }
    *out = arena_printf(a, "authorization: %s", token);
    OPENSSL_cleanse(token, strlen(token));
    return 0;
}

static const char *const *one_line(struct arena *a, const char *line)
{
    const char **lines = arena_alloc(a, 2 * sizeof *lines);
    lines[0] = line;
    return lines;
}

int aws_question_container(struct arena *a, struct question *out, struct error *err)
{
    struct place place;
    const char *url;
    char *line;
    int code = container_url(a, &url, &place, err);
    if (code == 0)
        code = authorization(a, &line, err);
    if (code != 0)
        return code;
    *out = (struct question){.who = who_is(a, "the container's credentials at", url, &place),
                             .url = arena_strdup(a, url),
                             .method = HTTP_GET,
                             .headers = one_line(a, line),
                             .body = arena_strdup(a, ""),
                             .secret_line = line,
                             .timeout_ms = CONTAINER_TIMEOUT_MS};
    return 0;
}

/* --- an instance ------------------------------------------------------------------------------ */

static int instance_question(struct arena *a, const char *path, struct question *out,
                             struct error *err)
{
    const char *mode = env_or("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv4");
    const char *given = env_or("AWS_EC2_METADATA_SERVICE_ENDPOINT",
                               strcasecmp(mode, "IPv6") == 0 ? INSTANCE_HOST_6 : INSTANCE_HOST);
    const char *url = base_of(a, given);
    struct place place;
    int code = find_place("AWS_EC2_METADATA_SERVICE_ENDPOINT", url, &place, err);
    if (code != 0)
        return code;
    *out = (struct question){.who = who_is(a, "the instance's metadata service", url, &place),
                             .url = arena_printf(a, "%s%s", url, path),
                             .method = HTTP_GET,
                             .body = arena_strdup(a, ""),
                             .timeout_ms = INSTANCE_TIMEOUT_MS,
                             .is_metadata = true};
    return 0;
}

int aws_question_instance_token(struct arena *a, struct question *out, struct error *err)
{
    int code = instance_question(a, "/latest/api/token", out, err);
    if (code != 0)
        return code;
    out->method = HTTP_PUT;
    out->headers = one_line(a, "x-aws-ec2-metadata-token-ttl-seconds: 60");
    return 0;
}

int aws_question_instance(struct arena *a, const char *token, const char *role,
                          struct question *out, struct error *err)
{
    _cleanup_buf_ struct buf path = BUF_INIT;
    buf_puts(&path, INSTANCE_ROLES);
    if (role != NULL)
        buf_put_url_escaped(&path, role, strlen(role), "");
    int code = instance_question(a, buf_str(&path), out, err);
    if (code != 0)
        return code;
    out->secret_line = arena_printf(a, "x-aws-ec2-metadata-token: %s", token);
    out->headers = one_line(a, out->secret_line);
    return 0;
}
