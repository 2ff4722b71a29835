/* Texts that are wiped from memory before they are freed. */
#pragma once

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

/* NULL is fine. */
static inline void secret_free(char *text)
{
    if (text != NULL)
        OPENSSL_cleanse(text, strlen(text));
    free(text);
}
DEFINE_CLEANUP(char, secret_free);
