# SPDX-License-Identifier: MIT
"""Which tests the quick suite runs, and the parts that hold the long ones.

A pattern matches the whole name of a test. A test of the preset `dev` that no part names is in the quick
suite. Benchmarks, tools, further vector widths and Python run without a sanitizer only, except the test of the binding
in C, python_client.
"""
import collections

# The tests of `preset` that match `tests` and not `without`.
Run = collections.namedtuple("Run", "preset tests without", defaults=("",))

# `sources` are the paths that the part tests. CI runs a part if a file below them changed since the part
# last passed. `command`, if there is one, runs instead of ctest.
Part = collections.namedtuple("Part", "name runs sources command", defaults=(None,))

WIDTHS = r"(kernels|slices|rank_index|shuffle|streams|workspace)\.cpu\.(scalar|avx2|avx512|neon)"
OLD_KERNEL = r".*\.old_kernel|old_kernel|no_processes"
WIDEST = r".*\.cpu\.(avx512|neon)"  # as "cpu"
TOOLS = r"(quality|gauss_tables).*"
BENCHMARKS = r"bench\..*"
LAUNCHED = r"python_(agreement|global_shuffle|kernel_moves|processes)"
WITH_LONG = r"python_(examples|torch|torch_loaders)"  # quick tests that have long ones too
FRAMEWORKS = r"frameworks_.*"
SCRIPTS = (r"python_(?!client$).*|control_characters|exchange_model|exports.*|install_config|kubernetes|"
           r"layers|links|man|metrics_doc|packaged_.*|postinst|record_wire|shape|speed_again|units")
NOT_SANITIZED = "|".join((TOOLS, BENCHMARKS, WIDTHS, SCRIPTS, r".*\.cuda", "soak", "faults"))

# Programs with one thread, and tests of the daemon's one loop. ThreadSanitizer has nothing to see in them.
ONE_THREAD = (r"shufctl_.*|fuzz_.*|completion|distributions|format|hostile_directory|inline|install|options|snippets|"
              r"(connections|flood|loop_turns|user_limits)\.cpu|heap")

KERNEL_TESTS = tuple(f"tests/kernels/test_{name}.c" for name in ("kernels", "slices", "rank_index", "shuffle", "streams",
                                                         "workspace"))
# The paths that parts test.
BUILD = ("CMakeLists.txt", "CMakePresets.json", "cmake", "tests/CMakeLists.txt", "tests/parts.py")
PRODUCT = (*BUILD, "cli", "client", "config", "core", "daemon", "kernels", "proto", "tests")
EXAMPLES = ("README.md", "docs/library.md", "docs/usage.md")  # the test snippets compiles and runs them
C_PRODUCT = (*PRODUCT, ":(exclude)client/python")

PARTS = (
    Part("kernels", [Run("dev", WIDTHS)],
         (*BUILD, *KERNEL_TESTS, "core", "kernels", "tests/support", "tests/vectors")),
    Part("cuda", [Run("cuda", r".*\.cuda")], (*C_PRODUCT, "tools")),
    Part("quality", [Run("dev", TOOLS)], (*C_PRODUCT, "tools")),
    Part("launched", [Run("dev", f"{LAUNCHED}|{WITH_LONG}")],
         (*PRODUCT, "docs/cluster.md", "docs/loaders.md")),
    Part("frameworks", [Run("dev", FRAMEWORKS)], (*BUILD, "client", "docs/cluster.md", "docs/loaders.md")),
    Part("asan", [Run("asan", ".*", NOT_SANITIZED)], (*PRODUCT, *EXAMPLES, "packaging", "tools")),
    Part("tsan", [Run("tsan", ".*", f"{NOT_SANITIZED}|{ONE_THREAD}")], (*C_PRODUCT, *EXAMPLES, "packaging", "tools")),
    Part("old-kernel", [Run("dev", OLD_KERNEL)], C_PRODUCT),
    Part("endurance", [Run("dev", "soak|faults"), Run("asan", "soak|faults")], C_PRODUCT),
    Part("aarch64", [], (*BUILD, "core", "kernels", "tests/kernels", "tests/support", "tests/vectors"),
         ("./dev", "test-aarch64")),
    Part("system", [], (*PRODUCT, "dashboards", "debian", "dev", "docs", "packaging", "systemd", "tools"),
         ("./dev", "test-system")),
)

# The tests of parts have all sizes and cases, apart from those with a sanitizer.
ENVIRONMENT = {"dev": {"SHUF_TEST_FULL": "1"}, "cuda": {"SHUF_TEST_FULL": "1"}}

# The quick suite leaves the others to the parts.
QUICK = Run("dev", ".*", "|".join((WIDEST, TOOLS, LAUNCHED, FRAMEWORKS, OLD_KERNEL, "soak|faults", r".*\.cuda")))

# These start first in a fresh clone, so that no long one runs alone at the end.
LONGEST = ("frameworks_ray", "frameworks_trainers", "frameworks_properties", "interrupt.cpu", "parts.cpu", "python_torch",
           "python_torch_loaders", "fairness.cpu", "shuffle.cpu", "python_global_shuffle", "summary.cpu", "client_lease.cpu",
           "shufctl_stream.cpu", "reconnect.cpu", "shufctl.cpu", "kill.cpu", "index.cpu", "exchange", "end_guard", "syscalls",
           "kernels.cpu.scalar", "python_processes", "shufctl_errors.cpu", "shufctl_draw.cpu")

# The targets of tests whose commands do not name them.
NEEDS = {
    "completion": ("installed",), "dev": (), "faults_imports": ("faults",),
    "install": ("installed",), "install_config": ("installed",), "man": ("manuals",),
    "options": ("installed",), "packaged_pages": (), "python_types": (),
    "serve_gpus": ("shufd", "shufctl"), "snippets": ("installed",), "syscalls": ("all",), "units": ("installed",),
}
