#include "api/ctl/key_input.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <termios.h>
#include <unistd.h>

#include "api/secret.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { INPUT_MAX = 4096 };

void key_input_done(struct key_input *k)
{
    free(k->access_key);
    secret_free(k->secret_key);
    *k = (struct key_input){0};
}

static int parse_document(const char *text, size_t len, struct key_input *out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *access, *secret;
    int rc = json_parse(text, len, &doc, err);
    if (rc == 0)
        rc = json_need_str(doc, "", "access_key", &access, err);
    if (rc == 0)
        rc = json_need_str(doc, "", "secret_key", &secret, err);
    if (rc == 0)
        *out = (struct key_input){xstrdup(access), xstrdup(secret)};
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

int key_input_parse(const char *text, size_t len, struct key_input *out, struct error *err)
{
    const char *end = text + len;
    *out = (struct key_input){0};
    while (text < end && isspace((unsigned char)*text))
        text++;
    if (text < end && *text == '{')
        return parse_document(text, (size_t)(end - text), out, err);
    out->access_key = next_line(&text, end);
    out->secret_key = next_line(&text, end);
    if (out->access_key[0] != '\0' && out->secret_key[0] != '\0')
        return 0;
    key_input_done(out);
    return error_set(err, E_INVALID,
                     "the input has no keys: expected a line with the access key and one with the "
                     "secret key, or a JSON document with access_key and secret_key");
}

static int read_pipe(const struct ctl *ctl, struct key_input *out)
{
    char text[INPUT_MAX];
    struct error err = ERROR_INIT;
    size_t len = fread(text, 1, sizeof text, stdin);
    int rc = ferror(stdin)        ? error_errno(&err, errno, "read standard input")
             : len == sizeof text ? error_set(&err, E_INVALID, "the input is too large for keys")
                                  : key_input_parse(text, len, out, &err);
    OPENSSL_cleanse(text, sizeof text);
    return rc == 0 ? EXIT_OK : ctl_fail_common(ctl, &err, EXIT_USAGE);
}

/* False: the input ended. */
static bool ask(const struct ctl *ctl, const char *prompt, char line[static INPUT_MAX])
{
    fputs(prompt, ctl->err);
    fflush(ctl->err);
    return fgets(line, INPUT_MAX, stdin) != NULL;
}

static bool ask_unseen(const struct ctl *ctl, const char *prompt, char line[static INPUT_MAX])
{
    struct termios before;
    bool is_terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    struct termios unseen = before;
    unseen.c_lflag &= ~(tcflag_t)ECHO;
    if (is_terminal)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &unseen);
    bool got = ask(ctl, prompt, line);
    if (is_terminal)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    fputc('\n', ctl->err);
    return got;
}

static int read_terminal(const struct ctl *ctl, struct key_input *out)
{
    char access[INPUT_MAX], secret[INPUT_MAX];
    struct error err = ERROR_INIT;
    _cleanup_(buf_done)
    struct buf both = BUF_INIT;
    if (!ask(ctl, "Access key: ", access) || !ask_unseen(ctl, "Secret key: ", secret))
        return ctl_usage(ctl, "the input ended before the keys");
    buf_printf(&both, "%s%s", access, secret);
    int rc = key_input_parse(buf_str(&both), both.len, out, &err);
    OPENSSL_cleanse(secret, sizeof secret);
    OPENSSL_cleanse(both.data, both.len);
    return rc == 0 ? EXIT_OK : ctl_fail_common(ctl, &err, EXIT_USAGE);
}

int key_input_read(const struct ctl *ctl, bool piped, struct key_input *out)
{
    if (piped)
        return read_pipe(ctl, out);
    if (!ctl->in_tty || !ctl->err_tty)
        return ctl_usage(ctl, "Not a terminal: give the keys on standard input, with --stdin.");
    return read_terminal(ctl, out);
}
