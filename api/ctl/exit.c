#include "api/ctl/exit.h"

#include <stddef.h>
#include <string.h>

#include "common/error.h"

const struct exit_row exit_rows[] = {
    {EXIT_OK, "done"},
    {EXIT_FAILED, "failed; a job failed or was aborted"},
    {EXIT_USAGE, "the command line, specification or request is wrong, or confirmation is missing "
                 "(`--yes`)"},
    {EXIT_NOT_FOUND, "a bucket, object, job or node that the command names does not exist"},
    {EXIT_NOTHING, "a prefix, template, glob or list matches nothing (`--allow-empty`: 0)"},
    {EXIT_UNREACHABLE, "the cluster or a node does not answer, or a wait ran out of time"},
    {EXIT_PARTIAL, "some of several objects failed or are missing; they are listed"},
    {EXIT_DENIED, "the cluster does not allow it (401, 403)"},
    {EXIT_INTERRUPTED, "interrupted (SIGINT)"},
    {0, NULL},
};

int exit_of_result(int result)
{
    switch (result) {
    case DFC_OK:
        return EXIT_OK;
    case DFC_NOT_FOUND:
        return EXIT_NOT_FOUND;
    case DFC_DENIED:
        return EXIT_DENIED;
    case DFC_UNREACHABLE:
    case DFC_TIMED_OUT:
        return EXIT_UNREACHABLE;
    case DFC_CANCELLED:
        return EXIT_INTERRUPTED;
    default:
        return EXIT_FAILED;
    }
}

int exit_of_code(int code)
{
    switch (code) {
    case E_NOTHING_MATCHED:
        return EXIT_NOTHING;
    case E_INVALID:
    case E_JSON:
    case E_NAME:
    case E_SPEC:
    case E_UNSUPPORTED:
        return EXIT_USAGE;
    default:
        return EXIT_FAILED;
    }
}

int exit_of_error(const struct dfc_error *err)
{
    if (strcmp(err->code, error_name(E_NOTHING_MATCHED)) == 0)
        return EXIT_NOTHING;
    /* The request is wrong, and was found so by the server or before it was sent. */
    if (err->result == DFC_INVALID &&
        (err->status == 0 || err->status == 400 || err->status == 501))
        return EXIT_USAGE;
    return exit_of_result(err->result);
}
