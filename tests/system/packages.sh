# SPDX-License-Identifier: MIT
#
# Parts of tests/system/run. The packages are installed, upgraded under load and purged. A second build
# must give the same packages.
packages_inside=/var/lib/shufd-packages

# make_upgrade FROM TO: copies the packages and gives them a later version
make_upgrade() {
    local package version folder
    mkdir -p "$2"
    for package in "$1"/*.deb; do
        folder=$(mktemp -d)
        version=$(dpkg-deb --field "$package" Version)
        dpkg-deb --raw-extract "$package" "$folder/root"
        sed -i "s/^Version: .*/Version: $version+1/; s/(= $version)/(= $version+1)/" \
            "$folder/root/DEBIAN/control"
        dpkg-deb --root-owner-group -Znone --build "$folder/root" "$2" >/dev/null
        rm -r "$folder"
    done
}

# copy_packages FROM TO: copies the packages, except those for debuggers
copy_packages() {
    local package
    mkdir -p "$2"
    for package in "$1"/*.deb; do
        case $package in
        *-dbgsym_*) ;;
        *) cp "$package" "$2" ;;
        esac
    done
}

# The packages and their upgrades, which have a later version. With SHUF_PREVIOUS, a folder with the packages of an
# earlier release, these are the first ones, and the packages their upgrades.
provide_packages() {
    local to=$tree$packages_inside
    rm -rf "$to"
    if [ -n "${SHUF_PREVIOUS-}" ]; then
        copy_packages "$SHUF_PREVIOUS" "$to/first"
        copy_packages "$packages" "$to/second"
    else
        copy_packages "$packages" "$to/first"
        make_upgrade "$to/first" "$to/second"
    fi
}

install_packages() {
    inside sh -c "DEBIAN_FRONTEND=noninteractive dpkg --install $packages_inside/$1/*.deb"
}

package_names() {
    for package in "$tree$packages_inside"/first/*.deb; do
        dpkg-deb --field "$package" Package
    done
}

test_install() {
    files_before=$(shuf_files)
    check "the packages are installed" install_packages first
    check "... and complete" is "$(inside sh -c 'dpkg --verify && dpkg --audit' 2>&1)" ""
    check "pages are not compressed, so their links work" inside test -f /usr/share/doc/shufd/node.md
    check "the installation enables nothing" is "$(inside systemctl is-enabled shufd.target)" disabled
    check "... and starts nothing" is_inactive shufd.service
}

test_python() {
    check "the Python package agrees with shufctl" \
        is "$(inside python3 -c 'import shufd; print(*shufd.permute(10, seed=7))')" "4 0 5 1 2 9 6 8 7 3"
}

runs_new_program() {
    [ -n "$1" ] && [ "$1" != 0 ] && ! inside readlink "/proc/$1/exe" | grep -q deleted
}

# Installs the other version, and checks that the daemon then has this version.
upgrade() {
    local before next=second
    before=$(pid_of shufd.service)
    # shellcheck disable=SC2016 # a format of dpkg-query
    [ "$(inside dpkg-query --show --showformat='${Version}' shufd)" = \
        "$(dpkg-deb --field "$tree$packages_inside"/second/shufd_*.deb Version)" ] && next=first
    install_packages $next || return
    [ "$(pid_of shufd.service)" != "$before" ] && runs_new_program "$(pid_of shufd.service)"
}

test_upgrade() {
    under_load "upgrade" upgrade
}

# Prints the files with the name of the project, except those of the tests.
shuf_files() {
    inside find / -xdev \( -path "$packages_inside" -o -path /usr/libexec/shufd-test -o -path /proc \
        -o -path /sys -o -path /tmp -o -path /var/log \) -prune -o -name '*shuf*' -print
}

purge_quietly() {
    local output
    output=$(inside dpkg --purge $(package_names) 2>&1) && ! grep -q 'other members' <<<"$output"
}

# Purges the packages while all units are enabled and running.
test_purge() {
    inside rm -rf '/etc/systemd/system/shufd@.service.d'
    inside systemctl start shufd.target
    check "the group of shufd has other members" inside sh -c 'getent group shufd | grep erin'
    inside sed -i 's/^leases =.*/leases = none/' /etc/shufd/shufd.conf
    inside systemctl restart shufd.service 2>/dev/null || true
    check "the daemon has failed" is "$(inside systemctl is-failed shufd.service)" failed
    check "the packages are purged, without a word on the group" purge_quietly
    check "... with all files" is "$(shuf_files)" "$files_before"
    check "... the user and the group" not inside sh -c 'getent passwd shufd || getent group shufd'
    check "... the processes" not inside pgrep -x shufd
    check "... and the units" \
        is "$(inside systemctl list-units --all --no-legend --plain 'shufd*' | grep -v '\.slice')" ""
}

# Builds the same sources in another folder, while the other parts run.
start_second_build() {
    SHUF_CUDA=OFF nice "$here/../../dev" package "$work/second build" \
        >"$work/second.log" 2>&1 &
    second_build=$!
}

hashes() {
    (cd "$1" && sha256sum ./*.deb)
}

test_reproducible() {
    wait $second_build
    check "the packages are built a second time" is $? 0
    check "... with the same hashes" is "$(hashes "$work/second build")" "$(hashes "$packages")"
}
