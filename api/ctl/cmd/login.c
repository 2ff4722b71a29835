/* login, logout, whoami. */
#include "api/ctl/commands.h"

#include <stdlib.h>

#include "api/ctl/key_input.h"
#include "api/ctl/print/user_print.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

static const char *flag_or(const struct args *args, enum flag_id flag, const char *variable)
{
    const char *text = args->given[flag] ? args->text[flag] : getenv(variable);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* What the user of these keys is called; malloc'ed.  DFC_OK: the cluster takes them. */
static int try(const struct args *args, const struct key_pair *keys, char **endpoint, char **name,
               struct dfc_error *err)
{
    bool anew = flag_or(args, F_endpoint, "DFC_ENDPOINT") != NULL; /* perhaps a first login */
    const struct dfc_client_options options = {.endpoints = args->text[F_endpoint],
                                               .profile = anew ? "" : args->text[F_profile],
                                               .ca_file = args->text[F_ca_file],
                                               .keep_token = true,
                                               .insecure = args->given[F_insecure],
                                               .access_key = keys->access_key,
                                               .secret_key = keys->secret_key,
                                               .user_agent = "dfcctl/" DFC_VERSION,
                                               .attempts = 2};
    struct dfc_client *client;
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_free_ char *text = NULL;
    int rc = dfc_client_open(&options, &client, err);
    if (rc != DFC_OK)
        return rc;
    rc = dfc_whoami(client, &text, err);
    *endpoint = xstrdup(dfc_client_endpoint(client));
    dfc_client_close(client);
    const char *said = NULL;
    if (rc == DFC_OK && json_parse(text, strlen(text), &doc, NULL) == 0)
        said = json_string_value(json_object_get(doc, "name"));
    *name = xstrdup(said != NULL ? said : keys->access_key);
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

static int save(struct ctl *ctl, const struct args *args, const struct key_pair *keys,
                const char *endpoint, const char *name)
{
    struct dfc_error err;
    const char *endpoints = flag_or(args, F_endpoint, "DFC_ENDPOINT");
    _cleanup_free_ char *ca_file = ca_file_of(args, endpoints);
    _cleanup_free_ char *path = dfc_profile_path();
    _cleanup_free_ char *saved = NULL;
    const struct dfc_profile profile = {.endpoints = endpoints != NULL ? endpoints : endpoint,
                                        .access_key = keys->access_key,
                                        .secret_key = keys->secret_key,
                                        .ca_file = ca_file};
    if (dfc_profile_save(args->text[F_profile], &profile, &saved, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "login");
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s, s:s, s:s}", "user", name, "profile", saved, "endpoint",
                                      endpoint));
    else
        ctl_say(ctl, "logged in as '%s' at %s; profile '%s' in %s", name, endpoint, saved, path);
    return EXIT_OK;
}

int session_login(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_(key_pair_done)
    struct key_pair keys = {0};
    _cleanup_free_ char *endpoint = NULL;
    _cleanup_free_ char *name = NULL;
    int code = key_input_read(ctl, args->given[F_stdin], &keys);
    if (code != EXIT_OK)
        return code;
    if (try(args, &keys, &endpoint, &name, &err) != DFC_OK)
        return ctl_fail(ctl, &err, "login");
    return save(ctl, args, &keys, endpoint, name);
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
