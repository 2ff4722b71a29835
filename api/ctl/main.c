#include "api/ctl/ctl.h"
#include "build_commit.h"
#include "common/build.h"

int main(int argc, char **argv)
{
    build_set_commit(BUILD_COMMIT);
    return ctl_main(argc, argv);
}
