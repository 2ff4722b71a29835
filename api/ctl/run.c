/* ctl_main(): from the command line to the exit code. */
#include "api/ctl/ctl.h"

#include <errno.h>
#include <unistd.h>

#include "api/ctl/help.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/key_file.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"

#define RETRIES_DEFAULT 4

static bool wants_colour(const struct ctl *ctl)
{
    const char *no = getenv("NO_COLOR"); /* no-color.org: any value but the empty one */
    const char *term = getenv("TERM");
    return ctl->out_tty && (no == NULL || no[0] == '\0') &&
           (term == NULL || strcmp(term, "dumb") != 0);
}

/* Before the flags are known: an error in them must be printed in the form that they ask for. */
static bool json_is_wanted(int argc, char *const *argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "-ojson") == 0 || strcmp(argv[i], "--output=json") == 0)
            return true;
        bool flag = strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--output") == 0;
        if (flag && i + 1 < argc && strcmp(argv[i + 1], "json") == 0)
            return true;
    }
    return false;
}

static void ctl_init(struct ctl *ctl, int argc, char *const *argv)
{
    *ctl = (struct ctl){
        .out = stdout,
        .err = stderr,
        .json = json_is_wanted(argc, argv),
        .headers = true,
        .in_tty = isatty(STDIN_FILENO),
        .out_tty = isatty(STDOUT_FILENO),
        .err_tty = isatty(STDERR_FILENO),
    };
    ctl->colour = wants_colour(ctl);
}

static void ctl_apply(struct ctl *ctl, const struct args *a)
{
    ctl->headers = !a->given[F_no_headers];
    ctl->quiet = a->given[F_quiet];
    ctl->verbose = a->given[F_verbose];
    ctl->raw_units = a->given[F_units] && strcmp(a->text[F_units], "raw") == 0;
}

static const char *key_file(const struct args *a)
{
    const char *endpoints = a->given[F_endpoint] ? a->text[F_endpoint] : getenv("DFC_ENDPOINT");
    return key_file_choose(a->text[F_cluster_key_file], getenv("DFC_CLUSTER_KEY_FILE"), endpoints,
                           access(KEY_FILE_LOCAL, F_OK) == 0);
}

static int ctl_connect(struct ctl *ctl, const struct args *a)
{
    struct dfc_error err;
    uint64_t retries = a->given[F_retries] ? a->number[F_retries] : RETRIES_DEFAULT;
    uint64_t idle_ms = a->given[F_idle_timeout] ? a->number[F_idle_timeout] : 0;
    const struct dfc_client_options options = {
        .endpoints = a->text[F_endpoint],
        .attempts = retries < 1000 ? (uint32_t)retries + 1 : 1000,
        .idle_timeout_ms = idle_ms < UINT32_MAX ? (uint32_t)idle_ms : UINT32_MAX,
        .user_agent = "dfcctl/" DFC_VERSION,
        .cluster_key_file = key_file(a),
        .control_endpoints = a->text[F_control],
        .ca_file = a->text[F_ca_file],
        .profile = a->text[F_profile],
        .keep_token = true,
        .insecure = a->given[F_insecure],
    };
    if (a->given[F_endpoint] && options.endpoints[0] == '\0')
        return ctl_usage(ctl, "--endpoint is empty: expected http://HOST:PORT");
    if (dfc_client_open(&options, &ctl->client, &err) != DFC_OK)
        return ctl_fail(ctl, &err, NULL) == EXIT_OK ? EXIT_OK : EXIT_USAGE;
    interrupt_install(ctl->client);
    if (options.insecure) /* also with --quiet */
        fprintf(ctl->err,
                "dfcctl: warning: --insecure: the cluster's certificate is not checked\n");
    return EXIT_OK;
}

static void watch_separate(const struct ctl *ctl)
{
    char now[32];
    if (ctl->json)
        return;
    if (ctl->out_tty)
        fputs("\033[H\033[2J", ctl->out);
    fprintf(ctl->out, "%s\n", clock_format_rfc3339(clock_wall_ms(), now));
}

static int watch(struct ctl *ctl, const struct args *a)
{
    for (uint64_t shown = 0;;) {
        watch_separate(ctl);
        int code = a->command->run(ctl, a);
        if (fflush(ctl->out) != 0 || code != EXIT_OK)
            return code;
        shown++;
        if (ctl->watch_end || (a->given[F_count] && shown >= a->number[F_count]))
            return code;
        if (!interrupt_pause(a->given[F_watch] ? a->number[F_watch] : WATCH_DEFAULT_MS))
            return EXIT_INTERRUPTED;
    }
}

static int run_command(struct ctl *ctl, const struct args *a)
{
    if (a->command->local) {
        interrupt_install(NULL);
        return a->command->run(ctl, a);
    }
    int code = ctl_connect(ctl, a);
    if (code == EXIT_OK)
        code = a->given[F_watch] || a->command->watches ? watch(ctl, a) : a->command->run(ctl, a);
    interrupt_install(NULL);
    dfc_client_close(ctl->client);
    return interrupted() && code != EXIT_OK ? EXIT_INTERRUPTED : code;
}

static int run(struct ctl *ctl, const struct args *a)
{
    if (a->command != NULL && !a->given[F_help])
        return run_command(ctl, a);
    if (a->command != NULL)
        help_command(ctl->out, a->command);
    else if (a->noun != NULL)
        help_noun(ctl->out, a->noun);
    else
        help_all(ctl->out);
    return a->given[F_help] ? EXIT_OK : EXIT_USAGE;
}

/* A full disk under standard output must not look like success.  A reader that went away ("| head")
 * got what it wanted, and is told nothing. */
static int finish_output(const struct ctl *ctl, int code)
{
    errno = 0;
    if (fflush(ctl->out) == 0 && !ferror(ctl->out))
        return code;
    if (errno != EPIPE && errno != 0)
        fprintf(ctl->err, "dfcctl: write to standard output: %s\n", strerror(errno));
    return code == EXIT_OK ? EXIT_FAILED : code;
}

int ctl_main(int argc, char **argv)
{
    struct ctl ctl;
    struct error err = ERROR_INIT;
    _cleanup_(args_done)
    struct args args;
    ctl_init(&ctl, argc, argv);
    static char version[] = "version"; /* "--version" is what many type */
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        argv[1] = version;
    if (args_parse(&args, argc, argv, &err) != 0)
        return ctl_fail_common(&ctl, &err, EXIT_USAGE);
    ctl_apply(&ctl, &args);
    return finish_output(&ctl, run(&ctl, &args));
}
