#include "api/testing/mock_child.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <curl/curl.h>
#include <cmocka.h>

static pid_t mock_pid;
static int mock_input; /* closing it ends the mock */
char mock_endpoint[64];

static void mock_child(int in, int out)
{
    const char *script = getenv("DFC_MOCK");
    const char *python = getenv("DFC_PYTHON");
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    close(in);
    close(out);
    execlp(python != NULL ? python : "python3", "python3", script, (char *)NULL);
    _exit(127);
}

int mock_start(void **state)
{
    (void)state;
    int to[2], from[2];
    char line[16] = "";
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        return -1;
    mock_pid = fork();
    if (mock_pid == 0)
        mock_child(to[0], from[1]);
    close(to[0]);
    close(from[1]);
    mock_input = to[1];
    FILE *output = fdopen(from[0], "r");
    if (fgets(line, sizeof line, output) == NULL)
        return -1;
    fclose(output);
    line[strcspn(line, "\n")] = '\0';
    snprintf(mock_endpoint, sizeof mock_endpoint, "http://127.0.0.1:%s", line);
    return 0;
}

int mock_stop(void **state)
{
    (void)state;
    close(mock_input);
    int status;
    return waitpid(mock_pid, &status, 0) == mock_pid ? 0 : -1;
}

static size_t keep_reply(char *data, size_t one, size_t n, void *to)
{
    (void)one;
    if (to != NULL)
        buf_append(to, data, n);
    return n;
}

void mock_steer(const char *method, const char *path, const char *body, struct buf *reply)
{
    char url[128];
    CURL *e = curl_easy_init();
    snprintf(url, sizeof url, "%s%s", mock_endpoint, path);
    curl_easy_setopt(e, CURLOPT_URL, url);
    curl_easy_setopt(e, CURLOPT_PROXY, "");
    curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, keep_reply);
    curl_easy_setopt(e, CURLOPT_WRITEDATA, reply);
    curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, method);
    if (body != NULL)
        curl_easy_setopt(e, CURLOPT_POSTFIELDS, body);
    assert_int_equal(curl_easy_perform(e), CURLE_OK);
    curl_easy_cleanup(e);
}

void mock_plan(const char *steps)
{
    mock_steer("PUT", "/mock/plan", steps, NULL);
}

unsigned mock_logged(const char *text)
{
    struct buf log = BUF_INIT;
    unsigned n = 0;
    mock_steer("GET", "/mock/log", NULL, &log);
    for (const char *p = buf_str(&log); (p = strstr(p, text)) != NULL; p++)
        n++;
    buf_done(&log);
    return n;
}
