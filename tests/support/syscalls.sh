# SPDX-License-Identifier: MIT
#
# Lists the system calls that a filter of systemd admits.

# expand_calls GROUP: prints the calls of a group and of the groups in it
expand_calls() {
    systemd-analyze syscall-filter --no-pager "$1" | sed -n 's/^  *\([^# ].*\)/\1/p' |
        while read -r call; do
            case $call in
            @*) expand_calls "$call" ;;
            *) echo "$call" ;;
            esac
        done
}

# admitted_calls ENTRY...: prints the calls that SystemCallFilter= with these groups and calls admits
admitted_calls() {
    for entry in @default "$@"; do
        case $entry in
        @*) expand_calls "$entry" ;;
        *) echo "$entry" ;;
        esac
    done | sort -u
}
