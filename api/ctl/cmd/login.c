/* login, logout, whoami. */
#include "api/ctl/commands.h"

#include <stdlib.h>

#include "api/ctl/key_input.h"
#include "api/ctl/print/user_print.h"
#include "api/identity/secret.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

static const char *flag_or(const struct args *args, enum flag_id flag, const char *variable)
{
    const char *text = args->given[flag] ? args->text[flag] : getenv(variable);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* What a login brings: the profile's part of it, and what to say.  All malloc'ed. */
struct session {
    struct key_pair keys; /* or … */
    char *token;
    char *endpoint, *name;
};

static void session_done(struct session *s)
{
    key_pair_done(&s->keys);
    secret_free(s->token);
    free(s->endpoint);
    free(s->name);
}

static struct dfc_client_options options_of(const struct args *args)
{
    bool anew = flag_or(args, F_endpoint, "DFC_ENDPOINT") != NULL; /* perhaps a first login */
    return (struct dfc_client_options){.endpoints = args->text[F_endpoint],
                                       .profile = anew ? "" : args->text[F_profile],
                                       .ca_file = args->text[F_ca_file],
                                       .insecure = args->given[F_insecure],
                                       .user_agent = "dfcctl/" DFC_VERSION,
                                       .attempts = 2};
}

/* DFC_OK: the cluster takes the keys. */
static int try_keys(const struct args *args, struct session *s, struct dfc_error *err)
{
    struct dfc_client_options options = options_of(args);
    options.access_key = s->keys.access_key;
    options.secret_key = s->keys.secret_key;
    options.keep_token = true;
    struct dfc_client *client;
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_free_ char *text = NULL;
    int rc = dfc_client_open(&options, &client, err);
    if (rc != DFC_OK)
        return rc;
    rc = dfc_whoami(client, &text, err);
    s->endpoint = xstrdup(dfc_client_endpoint(client));
    dfc_client_close(client);
    const char *said = NULL;
    if (rc == DFC_OK && json_parse(text, strlen(text), &doc, NULL) == 0)
        said = json_string_value(json_object_get(doc, "name"));
    s->name = xstrdup(said != NULL ? said : s->keys.access_key);
    return rc;
}

/* DFC_OK: the cluster has given a token for the password. */
static int try_password(const struct args *args, const char *password, struct session *s,
                        struct dfc_error *err)
{
    struct dfc_client_options options = options_of(args);
    options.attempts = 1; /* a 429 is told at once */
    options.token = "";   /* nobody's: neither the environment nor the profile says who */
    struct dfc_client *client;
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_(secret_freep)
    char *text = NULL;
    int rc = dfc_client_open(&options, &client, err);
    if (rc != DFC_OK)
        return rc;
    rc = dfc_login(client, args->text[F_user], password, &text, err);
    s->endpoint = xstrdup(dfc_client_endpoint(client));
    s->name = xstrdup(args->text[F_user]);
    dfc_client_close(client);
    if (rc == DFC_OK && json_parse(text, strlen(text), &doc, NULL) == 0)
        s->token = xstrdup(json_string_value(json_object_get(doc, "token")));
    return rc;
}

/* A place that later commands find from another directory.  The profile's own stays where its
 * endpoints do. */
static char *ca_file_of(const struct args *args, const char *endpoints)
{
    const char *path = flag_or(args, F_ca_file, "DFC_CA_FILE");
    char *full = path != NULL ? realpath(path, NULL) : NULL;
    return full != NULL || endpoints == NULL ? full : xstrdup("");
}

static int save(struct ctl *ctl, const struct args *args, const struct session *s)
{
    struct dfc_error err;
    const char *endpoints = flag_or(args, F_endpoint, "DFC_ENDPOINT");
    _cleanup_free_ char *ca_file = ca_file_of(args, endpoints);
    _cleanup_free_ char *path = dfc_profile_path();
    _cleanup_free_ char *saved = NULL;
    const struct dfc_profile profile = {.endpoints = endpoints != NULL ? endpoints : s->endpoint,
                                        .access_key = s->keys.access_key,
                                        .secret_key = s->keys.secret_key,
                                        .token = s->token,
                                        .ca_file = ca_file};
    if (dfc_profile_save(args->text[F_profile], &profile, &saved, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "login");
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s, s:s, s:s}", "user", s->name, "profile", saved,
                                      "endpoint", s->endpoint));
    else
        ctl_say(ctl, "logged in as '%s' at %s; profile '%s' in %s", s->name, s->endpoint, saved,
                path);
    return EXIT_OK;
}

static int login_with_keys(struct ctl *ctl, const struct args *args, struct session *s)
{
    struct dfc_error err;
    int code = key_input_read(ctl, args->given[F_stdin], &s->keys);
    if (code == EXIT_OK && try_keys(args, s, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "login");
    return code;
}

static int login_with_password(struct ctl *ctl, const struct args *args, struct session *s)
{
    struct dfc_error err;
    _cleanup_(secret_freep)
    char *password = NULL;
    int code = password_input_read(ctl, args->given[F_stdin], false, &password);
    if (code == EXIT_OK && try_password(args, password, s, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "login");
    return code;
}

int session_login(struct ctl *ctl, const struct args *args)
{
    _cleanup_(session_done)
    struct session s = {0};
    int code =
        args->given[F_user] ? login_with_password(ctl, args, &s) : login_with_keys(ctl, args, &s);
    return code == EXIT_OK ? save(ctl, args, &s) : code;
}

int session_logout(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_free_ char *removed = NULL;
    if (dfc_profile_remove(args->text[F_profile], &removed, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "logout");
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s}", "profile", removed));
    else
        ctl_say(ctl, "profile '%s' removed", removed);
    return EXIT_OK;
}

int session_whoami(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_free_ char *text = NULL;
    (void)args;
    if (dfc_whoami(ctl->client, &text, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "whoami");
    int code = ctl_parse(ctl, text, &doc);
    if (code == EXIT_OK && ctl->json)
        ctl_print_json(ctl, steal(doc));
    else if (code == EXIT_OK)
        user_print(ctl, doc);
    return code;
}
