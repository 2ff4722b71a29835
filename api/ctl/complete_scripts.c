#include "api/ctl/complete.h"

#include <stddef.h>

/* Each script hands the whole line's words to `dfcctl __complete` and offers what that prints.
 * "@files" asks for names of files; a candidate that ends with / or = gets no space.  The daemons'
 * options are those of their --help.
 *
 * bash splits words at ':' and '=' too; the script undoes that. */
static const char bash_script[] =
    "# bash completion for dfcctl and the daemons; made by: dfcctl completion bash\n"
    "_dfcctl() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} current cut one\n"
    "    local -a words found\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=(\"\")\n"
    "    current=${words[${#words[@]}-1]}\n"
    "    cut=${current%\"${current##*[:=]}\"}\n"
    "    mapfile -t found < <(\"${words[0]}\" __complete -- \"${words[@]:1}\" 2>/dev/null)\n"
    "    COMPREPLY=()\n"
    "    for one in \"${found[@]}\"; do\n"
    "        if [[ $one == @files ]]; then\n"
    "            compopt -o filenames\n"
    "            mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$current\")\n"
    "            continue\n"
    "        fi\n"
    "        [[ $one == */ || $one == *= ]] && compopt -o nospace\n"
    "        printf -v one %q \"${one#\"$cut\"}\"\n" /* a name may have a command in it */
    "        COMPREPLY+=(\"$one\")\n"
    "    done\n"
    "}\n"
    "complete -F _dfcctl dfcctl\n"
    "_dfc_daemon() {\n"
    "    compopt -o nospace\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$(\"$1\" --help 2>/dev/null |\n"
    "        sed -n 's/^  \\(--[a-z0-9-]*\\).*/\\1=/p')\" -- \"$2\")\n"
    "}\n"
    "complete -o default -F _dfc_daemon dfc-proxyd dfc-targetd dfc-cached\n";

/* compadd quotes what it offers. */
static const char zsh_script[] =
    "#compdef dfcctl dfc-proxyd dfc-targetd dfc-cached\n"
    "# zsh completion for dfcctl and the daemons; made by: dfcctl completion zsh\n"
    "_dfcctl() {\n"
    "    local one none=1\n"
    "    local -a found plain open\n"
    "    if [[ ${words[1]:t} != dfcctl ]]; then\n"
    "        _gnu_generic\n"
    "        return\n"
    "    fi\n"
    "    found=(\"${(@f)$(\"${words[1]}\" __complete -- \"${(@Q)words[2,CURRENT-1]}\" \\\n"
    "        \"${(Q)PREFIX}\" 2>/dev/null)}\")\n"
    "    for one in \"${found[@]}\"; do\n"
    "        case $one in\n"
    "        '') ;;\n"
    "        @files) _files && none=0 ;;\n"
    "        */ | *=) open+=(\"$one\") ;;\n"
    "        *) plain+=(\"$one\") ;;\n"
    "        esac\n"
    "    done\n"
    "    (( $#open )) && compadd -S '' -- \"${open[@]}\" && none=0\n"
    "    (( $#plain )) && compadd -- \"${plain[@]}\" && none=0\n"
    "    return none\n"
    "}\n"
    "if [ \"$funcstack[1]\" = \"_dfcctl\" ]; then\n"
    "    _dfcctl \"$@\"\n" /* it was loaded as a function of fpath */
    "elif (( $+functions[compdef] )); then\n"
    "    compdef _dfcctl dfcctl dfc-proxyd dfc-targetd dfc-cached\n"
    "fi\n";

static const char fish_script[] =
    "# fish completion for dfcctl and the daemons; made by: dfcctl completion fish\n"
    "function __dfcctl_offers\n"
    "    set -l words (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    for one in ($words[1] __complete -- $words[2..-1] \"$current\" 2>/dev/null)\n"
    "        if test $one = @files\n"
    "            __fish_complete_path \"$current\"\n"
    "        else\n"
    "            echo $one\n"
    "        end\n"
    "    end\n"
    "end\n"
    "function __dfc_daemon_offers\n"
    "    set -l words (commandline -opc)\n"
    "    $words[1] --help 2>/dev/null | string replace -rf '^  (--[a-z0-9-]+).*' '$1='\n"
    "end\n"
    "complete -c dfcctl -f -a '(__dfcctl_offers)'\n"
    "for daemon in dfc-proxyd dfc-targetd dfc-cached\n"
    "    complete -c $daemon -a '(__dfc_daemon_offers)'\n"
    "end\n";

const struct completion_script completion_scripts[] = {
    {"bash", bash_script},
    {"zsh", zsh_script},
    {"fish", fish_script},
    {NULL, NULL},
};
