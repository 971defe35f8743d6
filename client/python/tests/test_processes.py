# SPDX-License-Identifier: MIT
"""Children, private daemons, lost daemons, interrupts."""

import gc
import os
import pathlib
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import shufd
from shufd import _connection, _serve, _wait
from shufd._serve import program_of
from conftest import LAUNCHERS, Daemon, await_value, descriptor_count, lease_count, mapping_count, run_in_child


def test_lease_survives_fork(client):
    array = client.permute(100_000, 7)
    expected = array.copy()

    def child():
        nonlocal array
        assert (array == expected).all()
        assert (client.permute(100_000, 7) == expected).all()  # a new connection
        array = None  # drops the child's copy; the parent's lease stays
        client.close()

    leases_before = lease_count(client)
    run_in_child(child)
    assert lease_count(client) == leases_before >= 1 and (array == expected).all()
    assert (client.permute(1000, 7) == shufd.local.index(np.arange(1000), 1000, 7)).all()


def test_fork_while_other_threads_call(daemon):
    with shufd.connect(daemon.socket) as client:
        before = lease_count(client)
        stop = threading.Event()

        def work(seed):
            while not stop.is_set():
                client.permute(10_000, seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(20):
                run_in_child(lambda: client.permute(1000, 7))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        # The connections of the threads end a little later. Other clients may hold prefetches.
        assert await_value(lambda: lease_count(client), before) == before


def test_pickled_client_connects_again(client):
    other = pickle.loads(pickle.dumps(client))
    assert other.socket == client.socket and other.permute(10, 7).size == 10
    other.close()


def run_python(text, **environment):
    result = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        timeout=120,
        env={**{k: v for k, v in os.environ.items() if k != "SHUFD_SOCKET"},
             "XDG_RUNTIME_DIR": "/nonexistent", **environment},  # fmt: skip
    )
    assert result.returncode == 0, result.stderr
    return result


def private_daemon_sockets():
    """The sockets of all private daemons, from the command lines of all processes."""
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        found |= {w.decode() for w in words if b"/shufd-" in w and w.endswith(b"/shufd.sock")}
    return found


def skip_with_default_daemon():
    if os.path.exists("/run/shufd/shufd.sock"):
        pytest.skip("a daemon of this machine is running")


def test_private_daemon(tmp_path):
    skip_with_default_daemon()
    text = "import shufd; print(shufd.permute(10, seed=7)); print(shufd.default_client().socket)"
    result = run_python(text)
    order, socket = result.stdout.splitlines()
    assert order == "[4 0 5 1 2 9 6 8 7 3]"
    assert result.stderr.count("started a private daemon") == 1 and "SHUFD_SOCKET" not in result.stderr
    dead = run_python(text, SHUFD_SOCKET="/nonexistent/s")
    assert dead.stderr.endswith("and its children; no daemon answers on $SHUFD_SOCKET, /nonexistent/s\n")

    def is_left():
        return socket in private_daemon_sockets() or os.path.exists(os.path.dirname(socket))

    assert await_value(is_left, False) is False


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_private_daemon_lives_as_long_as_a_child(tmp_path, method):
    skip_with_default_daemon()
    script = tmp_path / "parent.py"
    script.write_text(
        "import multiprocessing, os, sys, time, shufd\n"
        "def child(ready, out):\n"
        "    client = shufd.serve(quiet=True)\n"
        "    ready.set()\n"
        "    while os.getppid() == parent_of[0]: time.sleep(0.01)\n"
        "    time.sleep(0.3)\n"
        "    order = client.permute(10, seed=7)\n"
        "    open(out, 'w').write(f'{order} {client.socket}')\n"
        "parent_of = [os.getppid()]\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context('{method}')\n"
        "    parent_of[0] = os.getpid()\n"
        "    shufd.serve()\n"
        "    ready = context.Event()\n"
        "    process = context.Process(target=child, args=(ready, sys.argv[1]))\n"
        "    process.start()\n"
        "    assert ready.wait(60)\n"
        "    os._exit(0)\n"
    )
    out = tmp_path / "out"
    environment = {k: v for k, v in os.environ.items() if k != "SHUFD_SOCKET"}
    with (tmp_path / "log").open("w") as log:
        subprocess.run([sys.executable, str(script), str(out)], check=True, timeout=120, env=environment,
                       stdout=log, stderr=log)  # fmt: skip
    assert await_value(
        lambda: out.exists() and "shufd.sock" in out.read_text(), True, 60
    ), (tmp_path / "log").read_text()
    order, _, socket = out.read_text().rpartition(" ")
    assert order == "[4 0 5 1 2 9 6 8 7 3]"
    assert await_value(lambda: socket in private_daemon_sockets(), False) is False


def test_private_daemon_starts_again_after_a_crash():
    """A program that cleans temporary folders may have removed its options."""
    skip_with_default_daemon()
    run_python(
        "import os, signal, shufd\n"
        "client = shufd.serve(host_memory='64Mi')\n"
        "array = client.permute(1000, 7)\n"
        "os.remove(os.path.join(os.path.dirname(client.socket), 'options'))\n"
        "os.kill(client.status()['pid'], signal.SIGKILL)\n"
        "assert (client.permute(1000, 7) == array).all()\n"
        "assert client.status()['host_limit'] == 64 << 20\n"
    )


def test_private_daemon_after_a_sigterm_to_the_whole_job():
    """A program that writes a checkpoint after SIGTERM still needs its daemon, which ends with the program."""
    skip_with_default_daemon()
    result = run_python(
        "import os, shufd, signal\n"
        "from shufd import _serve\n"
        "signal.signal(signal.SIGTERM, lambda *_: None)\n"
        "client = shufd.serve()\n"
        "((_, guardian),) = _serve._guardians.values()\n"
        "for _ in range(7):\n"
        "    before = client.status()['pid']\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    os.killpg(guardian.pid, signal.SIGTERM)\n"
        "    while client.status()['pid'] == before: pass\n"
        "print(client.permute(10, 7), client.socket)\n"
    )
    order, _, socket = result.stdout.rstrip().rpartition(" ")
    assert order == "[4 0 5 1 2 9 6 8 7 3]"
    assert await_value(lambda: socket in private_daemon_sockets(), False) is False


def test_serve_restarts_a_daemon_with_a_long_job():
    """The job outlasts drain_timeout, and goes on in the next daemon."""
    skip_with_default_daemon()
    run_python(
        "import os, shufd, threading, time\n"
        "client = shufd.serve(host_memory='64Mi')\n"
        "thread = threading.Thread(target=client.fingerprint, args=(1 << 44, 7))\n"
        "thread.start()\n"
        "with shufd.connect() as other:\n"
        "    while other.status()['queued'] == 0: time.sleep(0.01)\n"
        "    order = other.permute(1000, 7)\n"
        "    again = shufd.serve(host_memory='128Mi')\n"
        "    assert again.status()['host_limit'] == 128 << 20\n"
        "    assert (other.permute(1000, 7) == order).all()\n"
        "    while other.status()['queued'] == 0: time.sleep(0.01)\n"
        "assert thread.is_alive()\n"
        "os._exit(0)\n"
    )


def test_private_daemon_of_a_thread_that_blocks_signals():
    """The shell that starts the daemon again needs SIGCHLD."""
    skip_with_default_daemon()
    run_python(
        "import os, shufd, signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n"
        "client = shufd.serve()\n"
        "array = client.permute(1000, 7)\n"
        "os.kill(client.status()['pid'], signal.SIGKILL)\n"
        "assert (client.permute(1000, 7) == array).all()\n"
    )


def test_private_daemon_of_a_process_without_standard_error():
    """Its line is not written to the standard output, and long calls find out that no terminal sees them."""
    skip_with_default_daemon()
    text = "import shufd, sys; sys.stderr = None; print(shufd.default_client().fingerprint(1 << 23, 7))"
    result = run_python(text)
    assert result.stdout.startswith("0x") and result.stdout.count("\n") == 1
    run_python("import shufd, sys; sys.stderr = open('/dev/full', 'w', buffering=1); shufd.serve(); sys.stderr = None")


def test_fork_beside_a_thread_that_starts_the_private_daemon():
    skip_with_default_daemon()
    run_python(
        "import os, shufd, threading, time\n"
        "thread = threading.Thread(target=shufd.permute, args=(10, 7))\n"
        "thread.start()\n"
        "while not shufd._serve._guardians: time.sleep(0.001)\n"
        "if (child := os.fork()) == 0:\n"
        "    os._exit(shufd.permute(10, 7)[0])\n"
        "thread.join()\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4\n"
    )


def test_interrupt_of_a_restart_leaves_the_options():
    """serve() then does not take the daemon for one with the new options."""
    skip_with_default_daemon()
    run_python(
        "import shufd\n"
        "from shufd import _serve\n"
        "client, end = shufd.serve(host_memory='64Mi'), _serve._end\n"
        "def interrupt(daemon): raise KeyboardInterrupt\n"
        "_serve._end = interrupt\n"
        "try: shufd.serve(host_memory='128Mi')\n"
        "except KeyboardInterrupt: _serve._end = end\n"
        "assert shufd.serve(host_memory='128Mi').status()['host_limit'] == 128 << 20\n"
    )


def test_private_daemon_ends_without_its_files():
    """A program that cleans temporary folders may have removed them."""
    skip_with_default_daemon()
    result = run_python(
        "import os, shufd, shutil\n"
        "client = shufd.serve()\n"
        "shutil.rmtree(os.path.dirname(client.socket))\n"
        "print(client.permute(10, 7), client.socket)\n"
    )
    order, _, socket = result.stdout.rstrip().rpartition(" ")
    assert order == "[4 0 5 1 2 9 6 8 7 3]"
    assert await_value(lambda: socket in private_daemon_sockets(), False) is False


def test_private_daemon_of_a_service(tmp_path):
    """The variables of the service manager are for the program, not for its daemon."""
    skip_with_default_daemon()
    (tmp_path / "password").write_text("not a key")
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(tmp_path / "notify"))
    manager.setblocking(False)
    result = run_python(
        "import shufd\n"
        "shufd.serve(host_memory='64Mi')\n"
        "print(shufd.serve(host_memory='128Mi').permute(10, 7))\n",
        CREDENTIALS_DIRECTORY=str(tmp_path), NOTIFY_SOCKET=str(tmp_path / "notify"),
    )  # fmt: skip
    assert result.stdout == "[4 0 5 1 2 9 6 8 7 3]\n"
    with manager, pytest.raises(BlockingIOError):
        manager.recv(4096)


def test_private_daemon_beside_the_configuration_of_the_machine(tmp_path):
    """It has the limits of this file, but not its group, keys and metrics."""
    skip_with_default_daemon()
    (tmp_path / "shufd.conf").write_text(
        "host_memory = 64Mi\nsocket_group = no-such-group\nsocket_mode = 0666\nkeys = /nonexistent\n"
        f"metrics = 127.0.0.1:9477\nmetrics_file = {tmp_path}/%i.prom\n"
    )
    program = tmp_path / "shufd"
    program.write_text(f"#!/bin/sh\nexec '{program_of('shufd')}' --config '{tmp_path}/shufd.conf' \"$@\"\n")
    program.chmod(0o755)
    text = f"""
import os, shufd, shufd._serve as serve
serve.program_of = lambda name: {str(program)!r}
state = shufd.serve().status()
words = open(f"/proc/{{state['pid']}}/cmdline").read().split(chr(0))
print(state['host_limit'] >> 20, '--metrics=off' in words, oct(os.stat(shufd.serve().socket).st_mode & 0o777))
print(shufd.serve(host_memory='32Mi').status()['host_limit'] >> 20)
"""
    assert run_python(text).stdout == "64 True 0o600\n32\n"


def test_private_daemon_with_another_path():
    """Its shell needs programs of the system."""
    skip_with_default_daemon()
    assert run_python("import shufd; print(shufd.permute(10, 7))", PATH="/nonexistent").stdout == "[4 0 5 1 2 9 6 8 7 3]\n"


def test_private_daemon_without_a_temporary_folder():
    skip_with_default_daemon()
    text = (
        "import shufd, tempfile\n"
        "tempfile.tempdir = '/nonexistent'\n"
        "try: shufd.permute(10, 7)\n"
        "except shufd.NoDaemon as e: print(e)\n"
    )
    assert run_python(text).stdout.startswith("not started privately: [Errno 2] No such file or directory: '/nonexistent/")


def test_private_daemon_without_its_shell():
    """The error has the last words of the shell, and does not wait for a daemon."""
    skip_with_default_daemon()
    text = """
import shufd, shufd._serve as serve, time
serve._GUARDIAN = "echo sh: Cannot fork >&2; exit 2"
begin = time.monotonic()
try: shufd.serve()
except shufd.NoDaemon as e: print(e, time.monotonic() - begin < serve._START_SECONDS)
"""
    assert run_python(text).stdout == "shufd did not start: sh: Cannot fork True\n"


def test_private_daemon_that_always_crashes(tmp_path):
    """It starts a few times, and the error has its last words."""
    skip_with_default_daemon()
    program = tmp_path / "shufd"
    program.write_text(f"#!/bin/sh\necho start >>{tmp_path}/starts\necho last words >&2\nkill -SEGV $$\n")
    program.chmod(0o755)
    text = f"""
import shufd, shufd._serve as serve
serve.program_of = lambda name: {str(program)!r}
try: shufd.serve()
except shufd.NoDaemon as e: print(e)
"""
    assert run_python(text).stdout == (
        "shufd did not start: 5 crashes in a row, status 139; its last line: last words\n")  # fmt: skip
    assert (tmp_path / "starts").read_text() == 5 * "start\n"


def test_private_daemon_start_failure(tmp_path):
    skip_with_default_daemon()
    # A build with CUDA names the missing driver or GPU, one without CUDA the backend.
    for backend, reason in (("cuda:99", "cuda"), ("abacus", "abacus: expected auto, cpu or cuda")):
        text = f"import shufd\ntry: shufd.serve(backend={backend!r})\nexcept shufd.NoDaemon as e: print(e)"
        assert run_python(text).stdout.startswith(f"shufd did not start: backend {reason}")


def test_private_daemon_start_failure_told_to_a_connection(tmp_path):
    """A daemon that cannot start refuses the connections that it has not accepted yet."""
    skip_with_default_daemon()
    text = """
import shufd, shufd._serve as serve
start, client = serve._start, serve.Client

def refuse(*arguments, **options):
    serve.Client = client
    raise shufd.DeviceError("the daemon cannot start: backend abacus")

def start_refusing(*arguments):
    start(*arguments)
    serve.Client = refuse

serve._start = start_refusing
try: shufd.serve(backend="abacus")
except shufd.NoDaemon as e: print(e, serve.Client is client)
"""
    result = run_python(text)
    assert result.stdout.startswith("shufd did not start: backend abacus: expected auto, cpu or cuda")
    assert result.stdout.endswith(" True\n")


def test_several_gpus_need_a_choice(tmp_path):
    gpus = tmp_path / "GPU-1.sock", tmp_path / "GPU-2.sock"
    for path in gpus:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    text = "import shufd\ntry: shufd.permute(10, seed=7)\nexcept shufd.NoDaemon as e: print(e)"
    environment = {"SHUFD_RUNTIME_DIR": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    result = run_python(text, **environment)
    assert "choose one by CUDA_VISIBLE_DEVICES=UUID or SHUFD_SOCKET" in result.stdout
    assert "start a daemon" not in result.stdout and "serve()" not in result.stdout
    assert "private daemon" not in result.stderr
    gpus[0].unlink()
    named = run_python(text, **environment, CUDA_VISIBLE_DEVICES="GPU-1")
    assert "(one, but no daemon of this GPU" in named.stdout and "private daemon" not in named.stderr
    gpus[1].unlink()
    assert "private daemon" in run_python(text, **environment).stderr


@pytest.mark.parametrize("environment", [{}, {"SHUFD_SOCKET": "/nonexistent/s"}], ids=["none", "dead"])
def test_ranks_start_no_private_daemons(environment):
    skip_with_default_daemon()
    for call in ("permute(10, seed=7)", "connect()", "normal(size=3, seed=7)"):
        text = f"import shufd\ntry: shufd.{call}\nexcept shufd.NoDaemon as e: print(e)"
        result = run_python(text, RANK="1", WORLD_SIZE="4", **environment)
        end = "" if call == "connect()" else "; not started privately for one of 4 ranks"
        assert f"; start a daemon with `shufd &` on each machine before the ranks{end}\n" in result.stdout
        assert "shufd.serve()" not in result.stdout and result.stderr == ""
    text = "import shufd; print(shufd.permute(10, seed=7))"
    assert "private daemon" in run_python(text, RANK="0", WORLD_SIZE="1", **environment).stderr


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_verify_needs_the_process_group_of_a_launcher(daemon, launcher):
    rank, world = LAUNCHERS[launcher]
    text = "import shufd\ntry: print(shufd.verify())\nexcept shufd.Invalid as e: print(e)"
    result = run_python(text, **{rank: "1", world: "4", "SHUFD_SOCKET": daemon.socket})
    assert result.stdout == (
        f"{world} is 4, but torch.distributed is not initialised: call torch.distributed.init_process_group() first\n"
    )
    one = run_python(text, **{rank: "0", world: "1", "SHUFD_SOCKET": daemon.socket})
    assert one.stdout == f"{shufd.verify()}\n"


def test_ranks_use_the_running_daemon(daemon):
    text = "import shufd; print(shufd.permute(10, seed=7))"
    result = run_python(text, RANK="1", WORLD_SIZE="4", SHUFD_SOCKET=daemon.socket)
    assert result.stdout == "[4 0 5 1 2 9 6 8 7 3]\n" and result.stderr == ""


def test_threads_of_a_private_daemon():
    """A launcher such as torchrun sets OMP_NUM_THREADS=1 for its ranks, and a job may bind its threads. The
    daemon uses its processors."""
    skip_with_default_daemon()
    allowed = sorted(os.sched_getaffinity(0))
    for processors in (allowed, allowed[:1]):
        text = f"import os, shufd; os.sched_setaffinity(0, {processors}); print(shufd.serve().status()['device'])"
        device = run_python(text, OMP_NUM_THREADS="1", OMP_PROC_BIND="true").stdout
        assert device.endswith(f", {len(processors)} thread{'s' if len(processors) > 1 else ''}\n")


def test_private_daemon_names_the_arguments_of_serve():
    skip_with_default_daemon()
    text = (
        "import shufd\n"
        "client = shufd.serve(host_memory='64Mi', device_memory='64Mi', quiet=True)\n"
        "try: client.permute(5 * 10**7, 7)\n"
        "except shufd.OutOfMemory as e: print(e)"
    )
    message = run_python(text).stdout
    assert "_memory to shufd.serve()" in message and "the limit is 64 MiB" in message
    assert "shufd.conf" not in message and "kill" not in message and "--" not in message


def test_options_of_other_users_beside_a_socket_are_not_read(tmp_path):
    """A socket may be in a folder such as /tmp."""
    options = tmp_path / "options"
    os.mkfifo(options)
    assert _serve._read_options(tmp_path) == {}  # does not wait for a writer
    options.unlink()
    (tmp_path / "real").write_text("--backend=cpu\n")
    options.symlink_to("real")
    assert _serve._read_options(tmp_path) == {}
    options.unlink()
    (tmp_path / "real").rename(options)
    assert _serve._read_options(tmp_path) == {"backend": "cpu"}
    if os.geteuid() == 0:
        os.chown(options, 65534, 65534)
        assert _serve._read_options(tmp_path) == {}


def test_serve_restarts_its_daemon_with_other_options():
    """After OutOfMemory, serve() with a larger limit helps. Arrays and older clients stay usable."""
    skip_with_default_daemon()
    result = run_python(
        "import shufd, threading\n"
        "client = shufd.serve(host_memory='64Mi')\n"
        "array, first = client.permute(1000, 7), client.status()\n"
        "try: client.permute(10**8, 7)\n"
        "except shufd.OutOfMemory as e: assert 'a larger host_memory to shufd.serve()' in str(e)\n"
        "for same in ('64Mi', 64 << 20, '67108864', None):\n"
        "    assert shufd.serve(host_memory=same, backend='cpu').status()['pid'] == first['pid']\n"
        "larger = shufd.serve(host_memory='512Mi')\n"
        "assert larger.status()['host_limit'] == 512 << 20 and larger.status()['pid'] != first['pid']\n"
        "assert larger.permute(10**8, 7)[0] < 10**8\n"
        "assert (client.permute(1000, 7) == array).all() and (shufd.permute(1000, 7) == array).all()\n"
        "done = threading.Event()\n"
        "def work():\n"
        "    while not done.is_set(): assert (client.permute(1000, 7) == array).all()\n"
        "threads = [threading.Thread(target=work) for _ in range(2)]\n"
        "for thread in threads: thread.start()\n"
        "for memory in ('100Mi', '200Mi'): larger = shufd.serve(host_memory=memory, quiet=True)\n"
        "done.set()\n"
        "for thread in threads: thread.join()\n"
        "assert larger.status()['host_limit'] == 200 << 20\n"
    )
    assert result.stderr.count("started a private daemon") == 2 and result.stderr.count("restarted") == 1


def test_serve_after_a_restart_and_a_crash_keeps_the_options():
    skip_with_default_daemon()
    run_python(
        "import os, signal, shufd\n"
        "shufd.serve(host_memory='64Mi', backend='cpu:scalar')\n"
        "client = shufd.serve(host_memory='128Mi')\n"
        "assert '--backend=cpu:scalar' in open(f\"/proc/{client.status()['pid']}/cmdline\").read().split('\\0')\n"
        "os.kill(client.status()['pid'], signal.SIGKILL)\n"
        "assert client.status()['host_limit'] == 128 << 20\n"
    )


def test_serve_gives_the_module_another_daemon():
    """After the end of the private daemon and of the shell that starts it again."""
    skip_with_default_daemon()
    result = run_python(
        "import os, signal, shufd, time\n"
        "from shufd import _serve\n"
        "try: from shufd import torch\n"
        "except ImportError: torch = None\n"
        "array, client = shufd.permute(1000, 7), shufd.default_client()\n"
        "samplers = torch and [torch.RandomSampler(range(10), seed=7), torch.DistributedSampler(range(10), 2, 1)]\n"
        "before = torch and [list(sampler) for sampler in samplers]\n"
        "((_, guardian),) = _serve._guardians.values()\n"
        "os.killpg(guardian.pid, signal.SIGKILL)\n"
        "guardian.wait()\n"
        "while True:\n"
        "    try: shufd.connect(client.socket).close()\n"
        "    except shufd.NoDaemon: break\n"
        "    time.sleep(0.01)\n"
        "begin = time.monotonic()\n"
        "other = shufd.serve()\n"
        "assert (shufd.permute(1000, 7) == array).all() and shufd.default_client() is client\n"
        "assert client.socket == other.socket and client.status()['pid'] == other.status()['pid']\n"
        "if torch:\n"
        "    samplers[0].set_epoch(0)\n"
        "    assert [list(sampler) for sampler in samplers] == before\n"
        "assert shufd.serve().socket == client.socket and time.monotonic() - begin < 60\n"
    )
    assert result.stderr.count("started a private daemon") == 2


def test_serve_keeps_a_default_client_that_has_a_daemon(daemon):
    skip_with_default_daemon()
    run_python(
        "import os, shufd\n"
        "client, socket = shufd.default_client(), os.environ.pop('SHUFD_SOCKET')\n"
        "assert shufd.serve(quiet=True).socket != socket == shufd.default_client().socket\n",
        SHUFD_SOCKET=daemon.socket,
    )


CHECKED = {
    "host_memory='x'": "Invalid: host_memory x: expected a whole number",
    "host_memory=2.5": "Invalid: host_memory: 2.5: expected text such as 8Gi",
    "device_memory='-1'": "Invalid: device_memory -1: expected a whole number",
    "backend='cuda:99'": "backend",
}


@pytest.mark.parametrize("options", CHECKED)
def test_serve_checks_its_options_while_a_daemon_runs(daemon, options):
    """A daemon that this process started, and one that it did not start."""
    skip_with_default_daemon()
    call = f"try: shufd.serve({options})\nexcept shufd.Error as e: print(f'{{type(e).__name__}}: {{e}}')\n"
    own = run_python(f"import shufd\nclient = shufd.serve()\n{call}client.permute(10, 7)")
    other = run_python(f"import shufd\n{call}", SHUFD_SOCKET=daemon.socket)
    for result in (own, other):
        assert CHECKED[options] in result.stdout, result.stdout


def test_serve_refuses_other_values_of_a_running_daemon(daemon):
    with shufd.connect(daemon.socket) as client:
        state = client.status()
        assert shufd.serve(host_memory=state["host_limit"], backend="cpu").socket == client.socket
        message = (
            f"^host_memory: 4321: expected {state['host_limit']:,} bytes, as in the daemon that runs on {client.socket} "
            rf"\(pid {state['pid']}\); leave host_memory out, or change it in the configuration of this daemon$"
        )
        with pytest.raises(shufd.Invalid, match=message):
            shufd.serve(host_memory=4321)
        with pytest.raises(shufd.Invalid, match="^backend: cuda: expected cpu, as in the daemon"):
            shufd.serve(backend="cuda")


def test_child_may_repeat_the_options_but_not_change_them():
    skip_with_default_daemon()
    child = (
        "import shufd\n"
        "shufd.serve(host_memory='10%')\n"
        "try: shufd.serve(host_memory='1Gi')\n"
        "except shufd.Invalid as e: print(e)\n"
    )
    result = run_python(
        "import shufd, subprocess, sys\n"
        "shufd.serve(host_memory='10%')\n"
        f"subprocess.run([sys.executable, '-c', {child!r}], check=True)\n"
    )
    assert result.stdout.startswith("host_memory: 1Gi: expected ")
    assert "pass it to serve() in the process that started this daemon" in result.stdout


def test_import_loads_no_frameworks():
    run_python(
        "import shufd, sys; assert not {'torch', 'jax', 'grain', 'tqdm'} & set(sys.modules)\n"
        "assert 'libcuda' not in open('/proc/self/maps').read()"
    )


def test_submodules_that_need_an_import_are_named():
    result = run_python(
        "import shufd\n"
        "for name in ('torch', 'jax', 'ray'):\n"
        "    try: getattr(shufd, name)\n"
        "    except AttributeError as error: print(error)\n"
    )
    assert result.stdout.splitlines() == [
        f"module 'shufd' has no attribute '{name}'; import shufd.{name} first" for name in ("torch", "jax", "ray")
    ]


def test_array_outlives_killed_daemon(killable_daemon):
    with shufd.connect(killable_daemon.socket) as client:
        array = client.permute(100_000, 7)
        expected = array.copy()
        killable_daemon.kill()
        assert (array == expected).all()
        killable_daemon.start()
        assert (client.permute(100_000, 7) == expected).all()
        del array
        assert lease_count(client) == 0


def test_a_shuffle_fills_a_buffer_of_the_next_daemon(killable_daemon, monkeypatch):
    copyto, losses = np.copyto, []

    def lose_first_daemons(*arguments):
        copyto(*arguments)
        if len(losses) < 2:
            losses.append(killable_daemon.kill())
            killable_daemon.start()

    with shufd.connect(killable_daemon.socket) as client:
        monkeypatch.setattr(np, "copyto", lose_first_daemons)
        array = client.shuffle(np.arange(100_000), 7)
        assert len(losses) == 2 and (array == client.permute(100_000, 7)).all()


def test_lost_daemon_is_an_error(killable_daemon):
    with shufd.connect(killable_daemon.socket, reconnect=0.3) as client:
        array = client.permute(1000, 7)
        killable_daemon.kill()
        with pytest.raises(shufd.DaemonLost, match="start a daemon with `shufd --socket .*/shufd.sock &`$"):
            client.permute(1000, 8)
        assert array.sum() == 499_500
        killable_daemon.start()
        assert client.permute(1000, 8).size == 1000


@pytest.mark.parametrize("call", ["shuffle", "permute"])
def test_interrupt_ends_call(killable_daemon, call):
    """Ctrl-C ends a long call at once, while the daemon does not answer."""
    with shufd.connect(killable_daemon.socket) as client:
        array = np.zeros(60_000_000, np.uint8)
        client.permute(1000, 7)
        os.kill(killable_daemon.process.pid, signal.SIGSTOP)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        start = time.monotonic()
        try:
            with pytest.raises(KeyboardInterrupt):
                client.shuffle(array, 7) if call == "shuffle" else client.permute(60_000_000, 7)
            assert time.monotonic() - start < 20
        finally:
            os.kill(killable_daemon.process.pid, signal.SIGCONT)
        timer.join()
        assert client.permute(1000, 7).size == 1000
        assert await_value(lambda: lease_count(client), 0, 60) == 0


def raise_signal_at(line, files, call):
    """Calls call(), with SIGINT before this line of those that it runs in the files. True if it has so many."""

    def trace(frame, event, argument):
        nonlocal line
        line -= event == "line"
        if line < 0:
            sys.settrace(None)
            frame.f_trace = None
            signal.raise_signal(signal.SIGINT)
        return trace

    sys.settrace(lambda frame, *event: trace if frame.f_code.co_filename in files else None)
    try:
        call()
    finally:
        sys.settrace(None)
    return line < 0


def test_interrupt_at_each_line_of_long_call(client, monkeypatch):
    """Ctrl-C between any two lines ends the call in the same way, and the thread of the call too."""
    lines, unraisable = 0, []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    while True:
        try:
            if not raise_signal_at(lines, (_wait.__file__, threading.__file__), lambda: client.permute(5_000_000, 7)):
                break
        except KeyboardInterrupt:
            lines += 1
    assert lines > 10 and not unraisable
    assert client.permute(5_000_000, 7).size == 5_000_000
    assert await_value(lambda: lease_count(client), 0) == 0 and not unraisable


def test_interrupt_at_each_line_leaves_no_connection(killable_daemon):
    lines = 0
    with shufd.connect(killable_daemon.socket) as client:
        descriptors = descriptor_count()
        while True:
            try:
                if not raise_signal_at(lines, (_connection.__file__,), lambda: shufd.connect(client.socket).close()):
                    break
            except KeyboardInterrupt:
                lines += 1
        assert lines > 5
        gc.collect()  # without the GIL, cycles keep the frames of the exceptions
        assert await_value(lambda: client.status()["clients"], 1) == 1
        assert descriptor_count() == descriptors


SHORT_CALLS = {
    "permute": lambda client: client.permute(1000, 8),
    "shard": lambda client: client.permute(1000, 8, rank=0, world=2),
    "prefetch": lambda client: client.prefetch(1000, 8),
    "index": lambda client: client.index(5, 1000, 8),
    "shuffle": lambda client: client.shuffle(np.arange(10), 8),
    "normal": lambda client: client.normal(size=3, seed=8),
    "status": lambda client: client.status(),
    "connect": lambda client: shufd.connect(client.socket),
}


class Interruption:
    """Sends a signal to this process while the daemon is stopped, and lets the daemon continue afterwards."""

    def __init__(self, daemon, number=signal.SIGINT):
        self.daemon, self.timer = daemon, threading.Timer(0.3, os.kill, (os.getpid(), number))

    def __enter__(self):
        os.kill(self.daemon.process.pid, signal.SIGSTOP)
        self.timer.start()

    def __exit__(self, *error):
        os.kill(self.daemon.process.pid, signal.SIGCONT)
        self.timer.join()


@pytest.mark.parametrize("call", SHORT_CALLS)
def test_interrupt_ends_short_call(killable_daemon, call):
    """Ctrl-C ends any call while the daemon is stopped: before the handshake's limit of 10 s."""
    with shufd.connect(killable_daemon.socket) as client:
        array = client.permute(1_000_000, 7)
        expected = array[:9].copy()
        descriptors = descriptor_count()
        start = time.monotonic()
        with Interruption(killable_daemon), pytest.raises(KeyboardInterrupt):
            SHORT_CALLS[call](client)
        assert time.monotonic() - start < 8
        SHORT_CALLS[call](client)
        assert (array[:9] == expected).all() and (client.permute(1_000_000, 7)[:9] == expected).all()
        del array
        gc.collect()
        assert await_value(lambda: lease_count(client), 1 if call == "prefetch" else 0) <= 1
        assert descriptor_count() <= descriptors


def test_interrupt_ends_wait_for_lost_daemon(killable_daemon):
    with shufd.connect(killable_daemon.socket, reconnect=3600) as client:
        client.permute(1000, 7)
        killable_daemon.kill()
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            client.permute(1000, 8)
        timer.join()
        killable_daemon.start()
        assert client.permute(1000, 8).size == 1000


def test_interrupt_ends_release_of_a_lease(killable_daemon):
    """The release of a large array waits for the daemon. Garbage collection cannot raise the exception of the
    signal handler, so Python raises it right after the release."""
    with shufd.connect(killable_daemon.socket) as client:
        array = client.permute(1_000_000, 7)
        with Interruption(killable_daemon), pytest.raises(KeyboardInterrupt):
            del array
            await_value(lambda: False, True, 60)
        client.permute(1000, 7)
        assert await_value(lambda: lease_count(client), 0) == 0


def test_slow_release_needs_no_interrupt(killable_daemon):
    """Without a signal, the release of a large array waits for a slow daemon, and other arrays stay leased."""
    with shufd.connect(killable_daemon.socket) as client:
        kept, array = client.permute(1_000_000, 8), client.permute(1_000_000, 7)
        os.kill(killable_daemon.process.pid, signal.SIGSTOP)
        timer = threading.Timer(0.5, os.kill, (killable_daemon.process.pid, signal.SIGCONT))
        start = time.monotonic()
        timer.start()
        del array
        assert time.monotonic() - start > 0.4
        timer.join()
        assert kept.size == 1_000_000 and lease_count(client) == 1


def test_signal_handler_does_not_end_a_call(killable_daemon):
    """A handler that raises nothing runs during the call. It may use another client, but not the same one."""
    seen = []

    def handle(number, frame):
        os.kill(killable_daemon.process.pid, signal.SIGCONT)
        try:
            client.permute(10, 7)
        except shufd.Busy as error:
            seen.append(str(error))
        with shufd.connect(killable_daemon.socket) as other:
            seen.append(other.permute(10, 7).size)

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with shufd.connect(killable_daemon.socket) as client:
            with Interruption(killable_daemon, signal.SIGUSR1):
                assert client.permute(1000, 8).size == 1000
            assert "this signal handler interrupts a call of the client" in seen[0] and seen[1:] == [10]
            assert client.permute(1000, 8).size == 1000
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("algorithm", ["primefold", "philox24"])
def test_interrupt_ends_work_of_daemon(daemon, algorithm):
    """Ctrl-C cancels the job, which would last for hours. Arrays of the client stay readable."""
    with shufd.connect(daemon.socket) as client, shufd.connect(daemon.socket) as other:
        array = client.permute(1000, 7)

        def interrupt():
            await_value(lambda: other.status()["queued"], 1)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            client.fingerprint(1 << 44, 7, algorithm=algorithm)
        thread.join()
        assert await_value(lambda: client.status()["queued"], 0) == 0
        assert array.sum() == 499_500 and (client.permute(1000, 7) == array).all()


def test_faults_leak_nothing(killable_daemon):
    """Repeats a series of faults. Afterwards, there are no more leases, descriptors and mappings than before."""

    def interrupted(client):
        os.kill(killable_daemon.process.pid, signal.SIGSTOP)
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                client.shuffle(np.zeros(60_000_000, np.uint8), 7)
        finally:
            os.kill(killable_daemon.process.pid, signal.SIGCONT)
            timer.join()

    def lost(client):
        array = client.permute(100_000, 7)
        killable_daemon.kill()
        with pytest.raises(shufd.DaemonLost):
            client.permute(100_000, 8)
        killable_daemon.start()
        assert array.size == client.permute(100_000, 7).size

    def expect_error(client, error, call):
        with pytest.raises(error):
            call(client)

    faults = [
        lambda client: expect_error(client, shufd.Invalid, lambda c: c.permute(0, 7)),
        lambda client: expect_error(client, shufd.Invalid, lambda c: c.permute(10, 7, rank=3, world=3)),
        lambda client: expect_error(client, shufd.Invalid, lambda c: c.permute(10, 7, dtype="f32")),
        lambda client: expect_error(client, shufd.Invalid, lambda c: c.permute(10, 7, device="cuda")),
        lambda client: expect_error(client, shufd.OutOfMemory, lambda c: c.permute(1 << 50, 7)),
        lambda client: expect_error(client, ValueError, lambda c: c.permute(10, 7).__setitem__(0, 1)),
        lambda client: expect_error(client, shufd.NoDaemon, lambda c: shufd.connect("/nonexistent/s")),
        lambda client: run_in_child(lambda: client.permute(100_000, 7)),
        interrupted,
        lost,
    ]

    def cause_each_fault():
        with shufd.connect(killable_daemon.socket, reconnect=0.3) as client:
            for fault in faults:
                fault(client)
        with pytest.raises(shufd.Closed):
            client.permute(10, 7)
        gc.collect()

    def counts():
        with shufd.connect(killable_daemon.socket) as client:
            return lease_count(client), descriptor_count(), mapping_count()

    cause_each_fault()
    before = await_value(lambda: counts()[0], 0), *counts()[1:]
    for _ in range(2):
        cause_each_fault()
    assert before[0] == 0 and await_value(counts, before) == before


@pytest.mark.parametrize("by", ["argument", "variable", "unpickled", "thread"])
def test_connect_waits_for_the_daemon(tmp_path, monkeypatch, by):
    """As a service restarts: a client that has no connection yet gets the next daemon."""
    daemon = Daemon(tmp_path).start()
    client = shufd.connect(daemon.socket, reconnect=30)
    daemon.kill()
    begun = time.monotonic()
    with pytest.raises(shufd.NoDaemon):
        shufd.connect(daemon.socket)
    with pytest.raises(shufd.NoDaemon):
        shufd.connect(daemon.socket, wait=0.3)
    assert 0.3 <= time.monotonic() - begun < 5
    if by == "variable":
        monkeypatch.setenv("SHUFD_WAIT", "30")
    calls = {
        "argument": lambda: shufd.connect(daemon.socket, wait=30),
        "variable": lambda: shufd.connect(daemon.socket),
        "unpickled": lambda: pickle.loads(pickle.dumps(client)),
        "thread": lambda: client,
    }
    got = []
    thread = threading.Thread(target=lambda: got.append(calls[by]().permute(10, 7).tolist()))
    thread.start()
    time.sleep(0.5)
    assert not got
    daemon.start()
    thread.join(30)
    assert got == [list(shufd.local.Permutation(10, 7))]
    daemon.stop()


def test_wrong_waits_are_refused(monkeypatch):
    for value in (-1, float("nan"), 1e9):
        with pytest.raises(shufd.Invalid, match="^wait: .*: expected 0 to 4194304 seconds"):
            shufd.connect("/nonexistent/s", wait=value)
    for text in ("soon", "10s", "-1"):
        monkeypatch.setenv("SHUFD_WAIT", text)
        with pytest.raises(shufd.Invalid, match=rf"^\$SHUFD_WAIT: '{text}': expected 0 to"):
            shufd.connect("/nonexistent/s")


# ---- Threads that wait for their next work -------------------------------------------------------


@pytest.fixture
def seats(monkeypatch):
    """The threads that wait. They end after 3 s."""
    monkeypatch.setattr(_wait, "IDLE_S", 3)
    await_value(lambda: len(_wait._seats), 0)
    yield _wait._seats
    await_value(lambda: len(_wait._seats), 1, 1)  # that of the last work
    await_value(lambda: len(_wait._seats), 0)


def run(count):
    """The threads of so many works at the same time."""
    threads, all_run = [], threading.Barrier(count + 1)

    def work():
        threads.append(threading.get_ident())
        all_run.wait(30)

    for _ in range(count):
        _wait.start_in_idle_thread(work)
    all_run.wait(30)
    return set(threads)


def test_a_thread_that_waits_does_the_next_work(seats):
    first = run(3)
    assert len(first) == 3
    assert await_value(lambda: len(seats), 3) == 3
    assert run(3) == first
    assert await_value(lambda: len(seats), 3) == 3
    assert len(run(4) - first) == 1


def test_threads_without_work_end(seats):
    before = len(os.listdir("/proc/self/task"))
    run(2)
    assert await_value(lambda: len(seats), 0) == 0
    # A thread of an earlier test may still have been there before.
    assert await_value(lambda: len(os.listdir("/proc/self/task")) <= before, True)
    assert len(run(1)) == 1


def test_a_thread_that_is_taken_late_waits_longer(seats):
    run(1)
    await_value(lambda: len(seats), 1)
    seat = seats.pop()
    done = threading.Event()
    assert not done.wait(_wait.IDLE_S + 1)
    seat.work.append(done.set)
    seat.lock.release()
    assert done.wait(30)


def test_a_child_has_no_threads(seats):
    run(1)
    await_value(lambda: len(seats), 1)

    def child():
        done = threading.Event()
        _wait.start_in_idle_thread(done.set)
        assert done.wait(30)

    run_in_child(child)
