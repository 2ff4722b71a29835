#include "mount/program/client.h"

#include "api/dfc.h"
#include "mount/program/options.h"
#include "mount/program/program.h"

uint32_t client_tries(const struct options *o)
{
    return (uint32_t)o->retries + 1;
}

int client_open(const struct options *o, const char *ca_file, unsigned calls,
                struct dfc_client **client)
{
    struct dfc_error err;
    const struct dfc_client_options options = {
        .endpoints = o->endpoint,
        .attempts = client_tries(o),
        .idle_timeout_ms = (uint32_t)o->idle_timeout_ms,
        .idle_connections = (uint32_t)o->parallel + calls,
        .user_agent = "dfc-mount/" DFC_VERSION,
        .cluster_key_file = "",
        .ca_file = ca_file,
        .profile = o->profile,
        .keep_token = true,
        .insecure = o->insecure,
    };
    int rc = dfc_client_open(&options, client, &err);
    return rc == DFC_OK ? PROGRAM_OK : program_fail(client_exit_of(rc), "%s", err.message);
}

int client_exit_of(int result)
{
    static const struct {
        int result, code;
    } rows[] = {
        {DFC_INVALID, PROGRAM_USAGE},         {DFC_NOT_FOUND, PROGRAM_NOT_FOUND},
        {DFC_DENIED, PROGRAM_DENIED},         {DFC_UNREACHABLE, PROGRAM_UNREACHABLE},
        {DFC_TIMED_OUT, PROGRAM_UNREACHABLE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].result == result)
            return rows[i].code;
    }
    return PROGRAM_FAILED;
}

int client_exit_of_code(int code)
{
    switch (code) {
    case E_NOT_FOUND:
        return PROGRAM_NOT_FOUND;
    case E_INVALID:
    case E_UNSUPPORTED:
        return PROGRAM_USAGE;
    default:
        return PROGRAM_FAILED;
    }
}
