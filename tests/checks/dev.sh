#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Tests the messages of ./dev while it builds, installs and uninstalls. A fake cmake only records its arguments.
#     dev.sh SOURCE BUILD
set -eu
directory=$2/dev-test
rm -rf "$directory"
mkdir -p "$directory/bin" "$directory/build/release"
cp "$1/dev" "$directory"
cat >"$directory/bin/cmake" <<'END'
#!/bin/sh
echo "$@" >>build/commands
case $* in
--preset*) echo "$CACHE" >build/release/CMakeCache.txt ;;
--build*)
    echo "[17/629] Building C object x.o"
    sleep "${SLOW-0}"
    [ -z "${BREAK-}" ] || { echo "x.c:1: error: broken"; exit 1; }
    ;;
*-P*) printf '%s\n' "-- Removing: x" "-- Kept: shufd.conf, which was edited" ${ACTIVE+"Warning: units" "    systemctl stop"} ;;
esac
END
printf '#!/bin/sh\necho "ii "\n' >"$directory/bin/dpkg-query"
chmod +x "$directory"/bin/*
export PATH="$directory/bin:$PATH" CACHE="CMAKE_INSTALL_LIBDIR:PATH=lib64" DEV_REPORT_SECONDS=1
cd "$directory"

# expect TEXT: the last run must have printed this
expect() {
    grep -qF -- "$1" output || {
        echo "expected '$1' in:" >&2
        cat output >&2
        exit 1
    }
}

# expect_not TEXT: the last run must not have printed this
expect_not() {
    if grep -qF -- "$1" output; then
        echo "expected no '$1' in:" >&2
        cat output >&2
        exit 1
    fi
}

SLOW=2 PREFIX=$directory/prefix ./dev install >output 2>&1
expect "dev: [17/629] Building C object x.o"
expect "export PATH=$directory/prefix/bin:\$PATH"
expect "export LD_LIBRARY_PATH=$directory/prefix/lib64"
expect "export PKG_CONFIG_PATH=$directory/prefix/lib64/pkgconfig"
expect "export CMAKE_PREFIX_PATH=$directory/prefix"
expect_not nvcc
grep -q -- "--preset release -DSHUF_CUDA=ON" build/commands
grep -q -- "--build --preset release --target installed" build/commands

# After an upgrade, the services that run the replaced program of this prefix need a restart.
cat >"$directory/bin/systemctl" <<END
#!/bin/sh
case "\$*" in
list-units*) printf '%s loaded active running x\n' shufd.service shufd@GPU-1.service shufd@GPU-2.service shufd@GPU-3.service ;;
*MainPID*GPU-3*) echo MainPID=3 ;;
*MainPID*) echo MainPID=1 ;;
*GPU-2*) echo "ExecStart={ path=/usr/bin/shufd ; }" ;;
show*) echo "ExecStart={ path=$directory/prefix/bin/shufd ; }" ;;
esac
END
expect_not systemctl
printf '#!/bin/sh\nexec "$@"\n' >"$directory/bin/sudo"
chmod +x "$directory/bin/systemctl" "$directory/bin/sudo"
export SHUFD_UNITS=$directory/root
mkdir -p "$SHUFD_UNITS/proc/1" "$SHUFD_UNITS/proc/3"
ln -s "$directory/prefix/bin/shufd (deleted)" "$SHUFD_UNITS/proc/1/exe"
ln -s "$directory/prefix/bin/shufd" "$SHUFD_UNITS/proc/3/exe" # the installation has not changed the program
PREFIX=$directory/prefix ./dev install >output 2>&1
expect "dev: installed; shufd.service shufd@GPU-1.service runs the old version until a restart"
expect "systemctl daemon-reload && sudo systemctl restart shufd.service shufd@GPU-1.service"
expect_not GPU-2
expect_not GPU-3
unset SHUFD_UNITS
printf '#!/bin/sh\nexit 1\n' >"$directory/bin/systemctl" # no systemd runs
PREFIX=$directory/prefix ./dev install >output 2>&1
expect_not systemctl

# Where systemd runs and finds the units, ./dev makes their user and directory, and systemd reads them.
for command in systemd-sysusers systemd-tmpfiles systemctl ldconfig mandb; do
    printf '#!/bin/sh\necho %s "$@" >>%s/ran\n' $command "$directory" >"$directory/bin/$command"
done
chmod +x "$directory"/bin/*
export SHUFD_UNITS=$directory/root
for file in sysusers.d/shufd.conf tmpfiles.d/shufd.conf; do
    mkdir -p "$SHUFD_UNITS/usr/local/lib/${file%/*}"
    touch "$SHUFD_UNITS/usr/local/lib/$file"
done
./dev install >output 2>&1 # systemd does not run
expect_not "systemd has the units"
mkdir -p "$SHUFD_UNITS/run/systemd/system"
PREFIX=$directory/prefix ./dev install >output 2>&1 # systemd does not find the units
DESTDIR=$directory/image ./dev install >output 2>&1
expect_not "systemd has the units"
if grep systemd- ran || grep daemon-reload ran; then
    echo "expected no command of systemd" >&2
    exit 1
fi

# man -k finds the pages below /usr/local after an installation. One into another folder does not read them.
[ "$(grep -c ^mandb ran)" -eq 1 ]
grep -qx "mandb --quiet" ran
echo 'exit 1' >>"$directory/bin/mandb" # the installation goes on
./dev install >output 2>&1
expect "dev: systemd has the units, their user shufd and /run/shufd"
grep -q "^systemd-sysusers $SHUFD_UNITS/usr/local/lib/sysusers.d/shufd.conf" ran
grep -q "^systemd-tmpfiles --create $SHUFD_UNITS/usr/local/lib/tmpfiles.d/shufd.conf" ran
grep -q "^systemctl daemon-reload" ran
expect_not "start them" # the fake systemctl says that the target is enabled and active
expect_not "the package shufd"
mkdir -p "$SHUFD_UNITS/usr/lib/systemd/system"
touch "$SHUFD_UNITS/usr/lib/systemd/system/shufd.service"
./dev install >output 2>&1
expect "the package shufd is installed too: at their next start, the units under /usr/local replace its units"
rm -r "$SHUFD_UNITS/usr/lib"
for state in is-enabled is-active; do
    printf '#!/bin/sh\n[ "$1" != %s ]\n' $state >"$directory/bin/systemctl"
    ./dev install >output 2>&1
    expect "dev: start them: systemctl enable --now shufd.target"
done
printf '#!/bin/sh\necho systemctl "$@" >>%s/ran\n' "$directory" >"$directory/bin/systemctl"

# ./dev uninstall removes only the installation under $PREFIX. Its last lines are the warning of active units. With
# active units systemd must not read the missing units.
installed() {
    printf "$1/%s\n" include/shuf.h include/shuf_daemon.h >build/release/install_manifest.txt
    PREFIX=$1 ./dev install >output 2>&1
}
rm -f build/release/installed-*.txt
if ./dev uninstall >output 2>&1; then exit 1; fi
expect "uninstall: nothing is installed under /usr/local from here"
installed /usr/local
if PREFIX=$directory/prefix ./dev uninstall >output 2>&1; then exit 1; fi
expect "nothing is installed under $directory/prefix from here; installed under /usr/local: set PREFIX"
installed "$directory/prefix" # it does not hide the first one
PREFIX=$directory/prefix ./dev uninstall >output 2>&1
if PREFIX=$directory/prefix ./dev uninstall >output 2>&1; then exit 1; fi
rm -f build/commands ran
ACTIVE=1 ./dev uninstall >output 2>&1
expect "dev: kept: shufd.conf, which was edited"
[ "$(tail -n 2 output)" = "$(printf 'dev: Warning: units\n    systemctl stop')" ]
grep -q -- "-DMANIFEST=$directory/build/release/installed-usr-local.txt .* -P $directory/cmake/Uninstall.cmake" build/commands
grep -q "^ldconfig" ran
if grep daemon-reload ran; then exit 1; fi
installed /usr/local
./dev uninstall >output 2>&1
expect_not Warning
grep -q "^systemctl daemon-reload" ran

unset SHUFD_UNITS
for command in systemd-sysusers systemd-tmpfiles systemctl ldconfig mandb sudo; do
    rm "$directory/bin/$command"
done

# The installed program refuses the present configuration.
mkdir -p prefix/bin
printf '#!/bin/sh\necho "error: shufd.conf:1: leeses: no such key: $*" >&2\nexit 78\n' >prefix/bin/shufd
chmod +x prefix/bin/shufd
PREFIX=$directory/prefix ./dev install >output 2>&1
expect "dev: shufd does not start with its configuration; correct it before a start or a restart:"
expect "error: shufd.conf:1: leeses: no such key: --check-service"
printf '#!/bin/sh\necho cpu\n' >prefix/bin/shufd
PREFIX=$directory/prefix ./dev install >output 2>&1
expect_not "does not start"
rm -r prefix

cuda=$(printf '%s\nSHUF_NVCC:FILEPATH=/usr/local/cuda/bin/nvcc' "$CACHE")
CACHE=$cuda PREFIX=$directory/prefix ./dev install >output 2>&1
expect "nvcc found: building the CUDA backend too"

SHUF_CUDA=OFF CACHE=$cuda PREFIX=$directory/prefix ./dev install >output 2>&1
expect_not nvcc
grep -q -- "--preset release -DSHUF_CUDA=OFF" build/commands

if BREAK=1 PREFIX=$directory/prefix ./dev install >output 2>&1; then
    echo "a build that fails: expected a failure" >&2
    exit 1
fi
expect "x.c:1: error: broken"
expect "dev: failed with status 1: cmake --build --preset release"

# reject TEXT ARGUMENT...: ./dev must refuse these arguments with this text, and do nothing.
reject() {
    words=$1
    shift
    rm -f build/commands
    if ./dev "$@" >output 2>&1 || [ -e build/commands ]; then
        echo "./dev $*: expected a failure before it begins" >&2
        exit 1
    fi
    expect "$words"
}

reject "dev: install: argument /some/dir: expected none; PREFIX=/some/dir ./dev install installs there" install /some/dir
reject "dev: uninstall: argument /some/dir: expected none; PREFIX=/some/dir ./dev uninstall uninstalls there" uninstall /some/dir
reject "dev: demo: argument --quick: expected none" demo --quick
reject "dev: install: argument a: expected none" install a b
reject "dev: package: argument --all: expected a directory" package --all
reject "dev: bench: argument b: expected one directory" bench a b
for command in install uninstall test demo package format; do
    rm -f build/commands
    ./dev $command --help >output 2>&1
    expect "./dev install            build and install"
    [ ! -e build/commands ]
done

# The commands of tests pass their arguments to tests/suite. Without network ./dev test-parts goes on without
# the frameworks, unless DEV_REQUIRE_FRAMEWORKS is set.
mkdir tests
printf '#!/bin/sh\necho "suite $*"\n' >tests/suite
chmod +x tests/suite
./dev test --busy >output 2>&1
expect "suite quick --busy"
./dev check --repeat 200 server >output 2>&1
expect "suite check --repeat 200 server"
printf '#!/bin/sh\necho "no network" >&2\nexit 1\n' >bin/python3
chmod +x bin/python3
DEV_REQUIRE_FRAMEWORKS='' ./dev test-parts --changed kernels >output 2>&1
expect "no network"
expect "dev: the frameworks could not be installed: ctest skips their tests"
expect "suite parts --changed kernels"
if DEV_REQUIRE_FRAMEWORKS=1 ./dev test-parts >output 2>&1; then exit 1; fi
expect "dev: the frameworks could not be installed, and DEV_REQUIRE_FRAMEWORKS is set"
expect_not "suite parts"
rm bin/python3

# A build by pip needs the headers of Python. Without them and without apt-get, ./dev names the packages.
printf '#!/bin/sh\ncase $* in *python3*) exit 1 ;; esac\necho "ii "\n' >bin/dpkg-query
for command in apt-get sudo; do
    printf '#!/bin/sh\n' >"bin/$command"
done
chmod +x bin/*
./dev setup >output 2>&1
expect " python3-dev python3-venv"
printf '#!/bin/sh\necho "ii "\n' >bin/dpkg-query
./dev setup >output 2>&1
expect_not python3-dev

# On a terminal, ./dev shows the output of cmake itself.
if command -v script >/dev/null; then
    PREFIX=$directory/prefix script -qec "./dev install" output >/dev/null
    expect "[17/629]"
    expect_not "dev: [17/629]"
fi

# The packages, by a fake dpkg-buildpackage.
cat >bin/dpkg-buildpackage <<'END'
#!/bin/sh
echo "[3/9] Building C object y.o"
sleep 3
[ -z "${BREAK-}" ] || { echo "y.c:1: error: broken"; exit 1; }
touch ../y.deb ../y.changes
END
printf '#!/bin/sh\n' >bin/lintian
chmod +x bin/*
./dev package packages >output 2>&1
expect "dev: [3/9] Building C object y.o"
expect "dev: lintian: no errors"
expect "/packages/y.deb"
status=0
BREAK=1 ./dev package packages >output 2>&1 || status=$?
[ "$status" -eq 1 ]
expect "y.c:1: error: broken"
expect_not "lintian: no errors"
