/* The file of profiles with any bytes in it: it is refused with a sentence and stays as it is, or a
 * profile that is saved there is read back, the others stay, and it can be removed again. */
#include "api/identity/profile.h"

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"

#define SAVED "fuzz saves this"
#define OTHER "lab" /* which the seeds have */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char home[] = "/dev/shm/dfc-profile-fuzz-XXXXXX"; /* saving waits for the disk */
static char *file_path;

static void remove_home(void)
{
    _cleanup_free_ char *folder = xprintf("%s/dfc", home);
    unlink(file_path);
    rmdir(folder);
    rmdir(home);
    free(file_path);
}

static void make_home(void)
{
    if (file_path != NULL)
        return;
    bool made = mkdtemp(home) != NULL && setenv("XDG_CONFIG_HOME", home, 1) == 0 &&
                unsetenv("DFC_PROFILE") == 0;
    _cleanup_free_ char *folder = xprintf("%s/dfc", home);
    made = made && mkdir(folder, 0700) == 0;
    assert(made);
    (void)made;
    file_path = dfc_profile_path();
    atexit(remove_home);
}

static void write_file(const uint8_t *data, size_t size)
{
    int fd = open(file_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert(fd >= 0);
    ssize_t n = write(fd, data, size);
    assert(n == (ssize_t)size);
    (void)n;
    close(fd);
}

static void check_untouched(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *now = xmalloc(size + 1);
    int fd = open(file_path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, now, size + 1);
    assert(n == (ssize_t)size && memcmp(now, data, size) == 0);
    (void)n;
    close(fd);
}

static bool same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void check_saved(void)
{
    struct dfc_error err = {0};
    struct profile p;
    int rc = profile_load(SAVED, "http://elsewhere", &p, &err);
    assert(rc == DFC_OK && same(p.endpoints, "https://e") && same(p.access_key, "k") &&
           same(p.secret_key, "s"));
    profile_done(&p);
    rc = profile_load(NULL, "https://e", &p, &err); /* it is the current one now */
    assert(rc == DFC_OK && same(p.secret_key, "s"));
    profile_done(&p);
    rc = profile_load(NULL, "https://f", &p, &err); /* and of no other cluster */
    assert(rc == DFC_OK && p.secret_key == NULL);
    (void)rc;
    profile_done(&p);
}

/* The profile of this name is as before. */
static void check_other(int before_rc, const struct profile *before)
{
    struct dfc_error err = {0};
    struct profile now;
    int rc = profile_load(OTHER, NULL, &now, &err);
    assert(rc == before_rc && same(now.endpoints, before->endpoints) &&
           same(now.access_key, before->access_key) && same(now.secret_key, before->secret_key) &&
           same(now.ca_file, before->ca_file));
    (void)rc;
    (void)before;
    (void)before_rc;
    profile_done(&now);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct dfc_profile saved = {
        .endpoints = "https://e", .access_key = "k", .secret_key = "s"};
    struct dfc_error err = {0};
    struct profile other, p;
    make_home();
    write_file(data, size);
    int current = profile_load(NULL, NULL, &p, &err);
    profile_done(&p);
    assert(current == DFC_OK || err.message[0] != '\0');
    int rc = profile_load(OTHER, NULL, &other, &err);
    if (dfc_profile_save(SAVED, &saved, NULL, &err) != DFC_OK) {
        assert(current != DFC_OK && err.message[0] != '\0');
        check_untouched(data, size);
    } else {
        check_saved();
        check_other(rc, &other);
        int removed = dfc_profile_remove(SAVED, NULL, &err);
        assert(removed == DFC_OK);
        removed = dfc_profile_remove(SAVED, NULL, &err);
        assert(removed == DFC_NOT_FOUND);
        check_other(rc, &other);
    }
    profile_done(&other);
    return 0;
}
