# SPDX-License-Identifier: MIT
#
# A part of tests/system/run. It builds packaging/oci/Containerfile with buildah, on the root of this
# test. Then it runs the program of the image in namespaces, as another user, without capabilities and
# with a read-only root.
storage=$work/containers

build_container() {
    buildah --root "$storage/root" --runroot "$storage/run" --storage-driver vfs "$@"
}

import_base() {
    build_container from --name base scratch &&
        build_container add --quiet base "$root" / &&
        build_container commit --quiet --rm base base
}

build_image() {
    build_container build --isolation chroot --network host --file "$here/../../packaging/oci/Containerfile" \
        --build-arg BASE=localhost/base --pull-never --tag shufd "$tree$packages_inside/first"
}

# image_field FIELD: prints a field of the image's configuration
image_field() {
    build_container inspect --type image --format "{{.OCIv1.Config.$1}}" shufd
}

start_container() {
    local folder
    folder=$(build_container mount "$(build_container from --name container shufd)")
    rm -rf "$work/sockets"
    install -d -o 970 -g 970 "$work/sockets"
    setpriv --pdeathsig KILL unshare --pid --mount --ipc --net --fork --kill-child "$BASH" -e -c '
        mount --make-rprivate /
        mount --rbind "$0" "$0"
        cd "$0"
        mount --rbind /dev dev
        mount -t proc proc proc
        mount --bind "$1" run/shufd
        mount -o remount,bind,ro .
        pivot_root . mnt
        umount --lazy /mnt
        cd /
        exec setpriv --reuid 970 --regid 970 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all \
            /usr/libexec/shufd/serve-gpus --backend cpu' "$folder" "$work/sockets" \
        >"$work/container.log" 2>&1 &
    container=$!
}

container_init() {
    cat "/proc/$container/task/$container/children"
}

# in_container COMMAND...: runs the command like a probe of Kubernetes
in_container() {
    nsenter --target $(container_init) --pid --mount --ipc --net --root --wd=/ \
        setpriv --reuid 970 --regid 970 --clear-groups "$@"
}

# as_pod GROUP COMMAND...: runs the command like another container of the node
as_pod() {
    local group=$1
    shift
    unshare --pid --fork --kill-child setpriv --reuid 1000 --regid 1000 --groups "$group" "$@"
}

test_image() {
    local shufctl=$build/client/shufctl/shufctl socket=$work/sockets/shufd.sock
    rm -rf --one-file-system "$storage"
    check "the base of the image" import_base
    check "the image is built" build_image
    check "... its user" is "$(image_field User)" 970:970
    check "... its program" is "$(image_field Entrypoint)" '[/usr/libexec/shufd/serve-gpus]'
    start_container
    check "its probe succeeds" await 60 in_container shufctl status
    check "its root is read-only" not in_container touch /tmp/x
    check "a client of another container" as_pod 970 "$shufctl" permute --n 1e6 --seed 7 --socket "$socket"
    check "... maps a result" \
        as_pod 970 "$shufctl" permute --n 1e6 --seed 7 --socket "$socket" --transport memfd
    check "... and only with the group" not as_pod 1000 "$shufctl" permute --n 10 --seed 7 --socket "$socket"
    kill -TERM $(container_init)
    wait $container
    check "it drains and ends" is $? 0
    build_container rm --all >/dev/null
    rm -rf --one-file-system "$storage"
}
