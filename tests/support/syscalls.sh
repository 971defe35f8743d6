# SPDX-License-Identifier: MIT
#
# Lists the system calls that a filter of systemd admits.

# calls_of GROUP: prints the calls of a group and of the groups in it
calls_of() {
    systemd-analyze syscall-filter --no-pager "$1" | sed -n 's/^  *\([^# ].*\)/\1/p' |
        while read -r call; do
            case $call in
            @*) calls_of "$call" ;;
            *) echo "$call" ;;
            esac
        done
}

# calls_admitted ENTRY...: prints the calls that SystemCallFilter= with these groups and calls admits
calls_admitted() {
    for entry in @default "$@"; do
        case $entry in
        @*) calls_of "$entry" ;;
        *) echo "$entry" ;;
        esac
    done | sort -u
}
