# SPDX-License-Identifier: MIT
"""Which tests the quick suite runs, and the parts that hold the long ones.

A pattern matches the whole name of a test. A test of the preset `dev` that no part names is in the quick
suite. With a sanitizer the quick suite has one test for each parser, each kind of request, and each place
where threads meet. Benchmarks, tools, further vector widths and Python run without a sanitizer only, except the test
of the binding in C, python_client.
"""
import collections

# The tests of `preset` that match `tests` and not `without`, with these variables in their environment.
Run = collections.namedtuple("Run", "preset tests without environment", defaults=("", {}))

# `sources` are the paths that the part tests. CI runs a part if a file below them changed since the part
# last passed. `command`, if there is one, runs instead of ctest.
Part = collections.namedtuple("Part", "name runs sources command", defaults=(None,))

WIDTHS = r"(kernels|slices|rank_index|shuffle|streams|workspace)\.cpu\.(scalar|avx2|avx512)"
OLD_KERNEL = r".*\.old_kernel|old_kernel|no_processes"
AVX512 = r".*\.cpu\.avx512"
TOOLS = r"(quality|gauss_tables).*"
BENCHMARKS = r"bench_load|shufctl_bench\..*"
LAUNCHED = r"python_(example|global_shuffle|global_shuffle_ends|idle_threads|kernel_moves|processes|ray|store_gather|torch_faults)"
PROGRAMS = r"[a-z_]+(\.[a-z0-9_.]+)?"
SCRIPTS = (r"python_(?!client$).*|completion|dashboards|dev|exchange_model|exports.*|hardened|install.*|kubernetes|layers|links|"
           r"man|metrics_doc|options|packaged_.*|postinst|serve_gpus|shape|snippets|speed_again|syscalls|units")
NOT_SANITIZED = "|".join((TOOLS, BENCHMARKS, WIDTHS, SCRIPTS, r".*\.cuda", "soak", "faults.*"))

QUICK_ASAN = (r"fuzz_.*|message|frame|request.*|npy|format|inbox|reading|lease_table|spans|partition|"
              r"(server|leases|cache|blocks|client|client_lease|client_exchange|shuffle_wire|buffer_wire|"
              r"stream_wire|index|keys|config)\.cpu|"
              r"client_peer|lease_peer|listing_peer|(kernels|shuffle|streams|exchange_device)\.cpu")
QUICK_TSAN = r"device|turns|log\.cpu|(server|prefetch|cancel|in_use|client|warm_daemon)\.cpu|(kernels|shuffle)\.cpu"

QUICK = (
    Run("dev", PROGRAMS),
    Run("asan", QUICK_ASAN),
    Run("tsan", QUICK_TSAN),
)

BUILD = ("CMakeLists.txt", "CMakePresets.json", "cmake", "tests/parts.py")
LIBRARY = ("core", "proto", "kernels", "client/*.c", "client/*.h", "client/CMakeLists.txt", "client/include")
DAEMON = (*LIBRARY, "daemon", "cli", "client/shufctl")
C_TESTS = ("tests/*.c", "tests/*.h", "tests/*.txt", "tests/fake", "tests/fuzz", "tests/support", "tests/vectors")

KERNEL_TESTS = tuple(f"tests/test_{name}.c" for name in ("kernels", "slices", "rank_index", "shuffle", "streams",
                                                         "workspace"))

PARTS = (
    Part("kernels", [Run("dev", WIDTHS, environment={"SHUF_TEST_FULL": "1"})],
         ("core", "kernels", "tests/support", "tests/vectors", *KERNEL_TESTS, *BUILD)),
    Part("cuda", [Run("cuda", r".*\.cuda")], ("core", "kernels", "client/nccl", "tests/*.cu", *BUILD)),
    Part("quality", [Run("dev", TOOLS)], ("core", "kernels/inline", "tools", "tests/test_quality*", "tests/test_gauss*",
                                          *BUILD)),
    Part("launched", [Run("dev", LAUNCHED + "|python_torch", environment={"SHUF_TEST_FULL": "1"})], (*LIBRARY, "client/python", *BUILD)),
    Part("asan", [Run("asan", PROGRAMS, f"{QUICK_ASAN}|{NOT_SANITIZED}")], (*DAEMON, *C_TESTS, *BUILD)),
    Part("tsan", [Run("tsan", PROGRAMS, f"{QUICK_TSAN}|{NOT_SANITIZED}")], (*DAEMON, *C_TESTS, *BUILD)),
    Part("old-kernel", [Run("dev", OLD_KERNEL)], (*DAEMON, *C_TESTS, *BUILD)),
    Part("endurance", [Run("dev", "soak|faults.*"), Run("asan", "soak|faults.*")],
         (*DAEMON, "tests/soak", "tests/faults", *BUILD)),
    Part("system", [], (*DAEMON, "client/python", "config", "debian", "docs/man", "docs/node.md", "packaging", "systemd",
                        "dev", "tests/system", *BUILD), ("./dev", "test-system")),
)

# In the quick suite the widest vectors run in full, and these parts are left to their own runs.
LONG = {"dev": "|".join((AVX512, TOOLS, LAUNCHED, OLD_KERNEL, "soak|faults.*", r".*\.cuda"))}

# What a test needs from the build, if its command does not name it.
NEEDS = {
    "dev": (), "faults_imports": ("shufd", "shufctl", "shuf_shared"),
    "install": ("installed",), "install_config": ("installed",), "man": ("manuals",),
    "options": ("shufd", "shufctl", "shuf-quality"), "packaged_pages": (), "python_types": (),
    "serve_gpus": ("shufd", "shufctl"), "snippets": ("installed",), "syscalls": ("all",), "units": ("installed",),
}
