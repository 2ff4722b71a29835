#include "api/ctl/ctl.h"
#include "build_commit.h"
#include "common/build.h"

int main(int argc, char **argv)
{
    build_set(BUILD_COMMIT_AND_DATE);
    return ctl_main(argc, argv);
}
