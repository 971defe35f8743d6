# SPDX-License-Identifier: MIT
#
# A part of tests/system/run. It runs the commands of docs/node.md like an operator, from the
# installation to the removal. The driver of this node lists eight GPUs, but the daemons compute on the
# CPU.
page=$here/../../docs/node.md
page_folder=/tmp/page # alice may write there

# Extracts the commands and files that an operator types. Each block of code becomes a file in
# $work/page: ```sh becomes the script NNN.root.sh, and ```sh USER the script NNN.USER.sh, where NNN is
# the line number. ```LANGUAGE NAME becomes the file files/NAME.
extract_blocks() {
    python3 - "$page" "$work/page" <<'PYTHON'
import pathlib
import re
import sys

FENCE = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

text = pathlib.Path(sys.argv[1]).read_text()
directory = pathlib.Path(sys.argv[2])
(directory / "files").mkdir(parents=True)
for block in FENCE.finditer(text):
    language, name, body = block.groups()
    line = text.count("\n", 0, block.start()) + 2
    path = f"{line:03}.{name or 'root'}.sh" if language == "sh" else f"files/{name}"
    (directory / path).write_text(body)
PYTHON
}

start_page() {
    local folder=$tree$packages_inside number
    extract_blocks
    sed -i 's/--backend cuda\(:%i\)\?/--backend cpu/' "$work/page"/*.sh
    inside mkdir -p $page_folder /run/systemd/system/shufd@.service.d
    inside sh -c "cp $packages_inside/first/*.deb $page_folder && cp -r $packages_inside/second $page_folder/new"
    for file in "$work/page/files"/*; do
        inside tee "$page_folder/${file##*/}" <"$file" >/dev/null
    done
    inside id alice >/dev/null 2>&1 || inside useradd alice
    inside chown alice $page_folder
    printf '%s\n' '[Service]' ExecStart= 'ExecStart=/usr/bin/shufd --backend cpu' |
        inside tee /run/systemd/system/shufd@.service.d/cpu.conf >/dev/null
    inside rm -rf /proc/driver/nvidia/gpus
    for number in 1 2 3 4 5 6 7 8; do
        list_gpu GPU-0000000$number-0000-0000-0000-000000000000
    done
}

# run_block SCRIPT: runs the script as the user in its name
run_block() {
    local user=${1%.sh}
    user=${user##*.}
    inside runuser -u "$user" -- env DEBIAN_FRONTEND=noninteractive \
        sh -eu -c "cd $page_folder && $(cat "$1")" >"$work/block.out" 2>&1 </dev/null
    local status=$?
    tee -a "$work/page.out" <"$work/block.out"
    return $status
}

output_matches() {
    grep -Eq -- "$1" "$work/page.out"
}

test_page() {
    local script line
    rm -rf "$work/page" "$work/page.out"
    start_page
    for script in "$work/page"/*.sh; do
        line=${script##*/}
        check "docs/node.md, line ${line%%.*}: $(grep -m 1 . "$script")" run_block "$script"
    done
    check "... a socket for each of eight GPUs" \
        is "$(grep -oE '^GPU-[0-9a-f-]*\.sock .* of [0-9]+ [KMGT]iB' "$work/page.out" | cut -d ' ' -f 1 | sort -u | wc -l)" 8
    check "... the permutation of ten" is "$(grep -xE '[0-9]' "$work/page.out" | tr '\n' ' ')" "4 0 5 1 2 9 6 8 7 3 "
    check "... equal fingerprints of eight daemons" output_matches '^ *8 fingerprint'
    check "... the same sample in Python" output_matches '^rank 3 of 8: 125000 samples, the first is ([0-9]+)$'
    check "... and in C" output_matches "the first sample is $(sed -n 's/.*samples, the first is //p' "$work/page.out")\$"
    check "... a smaller limit of one GPU" output_matches '^memory .* of 2 GiB'
    check "... metrics" output_matches '^shufd_clients [0-9]'
    check "... and in a file" output_matches '^shufd_clients\{daemon="GPU-'
    check "... nothing is left" is "$(shuf_files)" "$files_before"
    inside rm -r /run/systemd/system/shufd@.service.d
}
