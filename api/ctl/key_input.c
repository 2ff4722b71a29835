#include "api/ctl/key_input.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <termios.h>
#include <unistd.h>

#include "api/identity/secret.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

enum { INPUT_MAX = 4096 };

static int read_all(char text[static INPUT_MAX], size_t *len, struct error *err)
{
    *len = fread(text, 1, INPUT_MAX, stdin);
    if (ferror(stdin))
        return error_errno(err, errno, "read standard input");
    return *len < INPUT_MAX ? 0 : error_set(err, E_INVALID, "the input is too large for a secret");
}

static int read_pipe(const struct ctl *ctl, struct key_pair *out)
{
    char text[INPUT_MAX];
    size_t len;
    struct error err = ERROR_INIT;
    int rc = read_all(text, &len, &err);
    if (rc == 0)
        rc = key_pair_parse(text, len, out, &err);
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

static int read_terminal(const struct ctl *ctl, struct key_pair *out)
{
    char access[INPUT_MAX], secret[INPUT_MAX];
    struct error err = ERROR_INIT;
    _cleanup_(buf_done)
    struct buf both = BUF_INIT;
    if (!ask(ctl, "Access key: ", access) || !ask_unseen(ctl, "Secret key: ", secret))
        return ctl_usage(ctl, "the input ended before the keys");
    buf_printf(&both, "%s%s", access, secret);
    int rc = key_pair_parse(buf_str(&both), both.len, out, &err);
    OPENSSL_cleanse(secret, sizeof secret);
    OPENSSL_cleanse(both.data, both.len);
    return rc == 0 ? EXIT_OK : ctl_fail_common(ctl, &err, EXIT_USAGE);
}

int key_input_read(const struct ctl *ctl, bool piped, struct key_pair *out)
{
    if (piped)
        return read_pipe(ctl, out);
    if (!ctl->in_tty || !ctl->err_tty)
        return ctl_usage(ctl, "Not a terminal: give the keys on standard input, with --stdin.");
    return read_terminal(ctl, out);
}

/* ---- a password ---- */

/* Without the end of its line: spaces are a part of it.  It is wiped where it was. */
static char *line_of(char *text, size_t len)
{
    char *line = xstrndup(text, strcspn(text, "\r\n"));
    OPENSSL_cleanse(text, len);
    return line;
}

static int password_of_pipe(const struct ctl *ctl, char **password)
{
    char text[INPUT_MAX + 1] = "";
    size_t len;
    struct error err = ERROR_INIT;
    int rc = read_all(text, &len, &err);
    *password = line_of(text, sizeof text);
    return rc == 0 ? EXIT_OK : ctl_fail_common(ctl, &err, EXIT_USAGE);
}

static int password_of_terminal(const struct ctl *ctl, bool twice, char **password)
{
    char first[INPUT_MAX] = "", second[INPUT_MAX] = "";
    bool got = ask_unseen(ctl, "Password: ", first);
    if (got && twice)
        got = ask_unseen(ctl, "Password again: ", second);
    bool same = !twice || strcmp(first, second) == 0;
    OPENSSL_cleanse(second, sizeof second);
    *password = line_of(first, sizeof first);
    if (!got)
        return ctl_usage(ctl, "the input ended before the password");
    return same ? EXIT_OK : ctl_usage(ctl, "the two passwords differ");
}

int password_input_read(const struct ctl *ctl, bool piped, bool twice, char **password)
{
    if (!piped && (!ctl->in_tty || !ctl->err_tty))
        return ctl_usage(ctl, "Not a terminal: give the password on standard input, with --stdin.");
    int code = piped ? password_of_pipe(ctl, password) : password_of_terminal(ctl, twice, password);
    if (code == EXIT_OK && (*password)[0] == '\0')
        return ctl_usage(ctl, "the password is empty");
    return code;
}
