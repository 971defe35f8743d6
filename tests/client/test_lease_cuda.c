/* SPDX-License-Identifier: MIT
 *
 * Leases of device memory without a GPU: libshuf with a fake libcuda (fake/cuda.h), against a fake
 * daemon. Each call of CUDA fails once, and libshuf must release everything. With the argument
 * "missing" the machine has no libcuda.
 */
#include "fake/cuda.h"
#include "support/cmocka_all.h"
#include "support/peer.h"
#include "support/take.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fake_cuda *cuda;
static char id_0[] = FAKE_ID_0, id_1[] = FAKE_ID_1, id_none[] = "GPU-no-such";

/* Device memory of the fake daemon; LEASE_SERVER_LARGE values fit. */
static struct fake_memory memories[LEASE_SERVER_BLOCKS];
static struct fake_event event;
static bool with_event;
static uint8_t handle_bytes[64], event_bytes[64];

static void reply_device_memory(struct lease_server_reply *p)
{
    struct fake_memory *memory = &memories[p->reply.block];
    if (!memory->bytes) {
        memory->size = p->file;
        memory->bytes = calloc(1, p->file);
        uint32_t *values = (uint32_t *)(void *)(memory->bytes + LEASE_SERVER_OFFSET);
        for (uint64_t i = 0; i < LEASE_SERVER_SMALL; i++)
            values[i] = lease_server_value(0, p->reply.block, i);
    }
    memcpy(handle_bytes, &memory, sizeof memory);
    memcpy(event_bytes, &(void *){&event}, sizeof(void *));
    p->reply.ipc_handle.data = handle_bytes;
    p->reply.ipc_handle.len = sizeof handle_bytes;
    p->reply.ipc_event.data = event_bytes;
    p->reply.ipc_event.len = with_event ? sizeof event_bytes : 0;
}

static shuf *begin(Shuf__Transport transport)
{
    lease_server.transport = transport;
    lease_server.device_id = id_1;
    lease_server.set_ipc_handles = reply_device_memory;
    return lease_server_start(lease_server_script);
}

/* Closes the handle, and checks that nothing of CUDA stays acquired. */
static void finish(shuf *handle, const char *log)
{
    lease_server_finish(handle, log);
    assert_true(cuda->primaries[0] == 0 && cuda->primaries[1] == 0);
    assert_true(cuda->allocations == 0 && cuda->reserved == 0 && cuda->mapped == 0);
    assert_true(cuda->opened == 0 && cuda->events == 0);
    assert_int_equal(cuda->depth, 0);
    for (int i = 0; i < LEASE_SERVER_BLOCKS; i++)
        free(memories[i].bytes);
    memset(memories, 0, sizeof memories);
}

static void check_lease(shuf *handle, const shuf_lease *lease, uint64_t block)
{
    uint32_t values[LEASE_SERVER_SMALL];
    assert_string_equal(lease->device_id, id_1);
    assert_int_equal(shuf_lease_read(handle, lease, 0, sizeof values, values), SHUF_OK);
    for (uint64_t i = 0; i < LEASE_SERVER_SMALL; i++)
        assert_int_equal(values[i], lease_server_value(0, block, i));
    assert_int_equal(shuf_lease_read(handle, lease, 4, 4, values), SHUF_OK);
    assert_int_equal(values[0], lease_server_value(0, block, 1));
}

static void expect_failure(shuf *handle, shuf_status status, const char *words)
{
    if (status != SHUF_DEVICE || !strstr(shuf_message(handle), words))
        fprintf(stderr, "expected '%s': %s\n", words, shuf_message(handle));
    assert_int_equal(status, SHUF_DEVICE);
    assert_non_null(strstr(shuf_message(handle), words));
}

/* ---- Views ---- */

static void block_is_mapped_by_descriptor(void **state)
{
    (void)state;
    shuf_lease *lease = NULL;
    shuf *handle = begin(SHUF__TRANSPORT__TRANSPORT_CUDA_FD);
    lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
    check_lease(handle, lease, 5);
    assert_int_equal(cuda->primaries[1], 1);
    /* the mapping keeps the memory, so the handle of the allocation was released */
    assert_int_equal(cuda->allocations, 0);
    for (int i = 0; i < 4; i++) {
        lease_server_take(handle, 5 + (uint64_t)i % 2, LEASE_SERVER_SMALL, &lease);
        check_lease(handle, lease, 5 + (uint64_t)i % 2);
    }
    assert_int_equal(cuda->mapped, 2);
    assert_int_equal(cuda->primaries[1], 1);
    lease_server_take(handle, 7, LEASE_SERVER_LARGE, &lease);
    check_lease(handle, lease, 7);
    assert_int_equal(cuda->mapped, 3);
    lease_server_release(handle, &lease);
    assert_int_equal(cuda->mapped, 2);
    finish(handle, "hello take+ take-1 take-2+ take-3 take-4 take-5+ release-6/7 goodbye");
}

static void take_and_release(shuf *handle, uint64_t first, uint64_t count, uint64_t n)
{
    shuf_lease *lease = NULL;
    for (uint64_t block = first; block < first + count; block++) {
        lease_server_take(handle, block, n, &lease);
        lease_server_release(handle, &lease);
    }
}

static void large_blocks_stay_mapped_by_a_limit(void **state)
{
    enum { MI = 1 << 20, BLOCK = 6 * MI, STAY = 30 }; /* BLOCK: of LEASE_SERVER_LARGE values */
    (void)state;
    shuf_lease *lease = NULL;
    shuf *handle = begin(SHUF__TRANSPORT__TRANSPORT_CUDA_FD);
    assert_int_equal(shuf_set_idle_mappings(handle, STAY * BLOCK), SHUF_OK);
    take_and_release(handle, 1, STAY + 2, LEASE_SERVER_LARGE);
    assert_int_equal(cuda->mapped, STAY);
    lease_server_take(handle, STAY, LEASE_SERVER_LARGE, &lease);
    check_lease(handle, lease, STAY);
    assert_int_equal(shuf_set_idle_mappings(handle, 2 * STAY * BLOCK), SHUF_OK);
    assert_int_equal(cuda->mapped, STAY);
    assert_int_equal(shuf_set_idle_mappings(handle, BLOCK), SHUF_OK);
    assert_int_equal(cuda->mapped, 1);
    check_lease(handle, lease, STAY); /* that of a lease stays */
    lease_server_release(handle, &lease);
    assert_int_equal(cuda->mapped, 1);
    take_and_release(handle, 101, 65, LEASE_SERVER_SMALL); /* a low limit does not count */
    assert_int_equal(cuda->mapped, 66);
    assert_int_equal(shuf_set_idle_mappings(handle, 0), SHUF_OK);
    assert_int_equal(cuda->mapped, 0);
    take_and_release(handle, 1, 1, LEASE_SERVER_LARGE);
    assert_int_equal(cuda->mapped, 0);
    assert_non_null(strstr(lease_server.log, "/3/4/5/")); /* the daemon hears of each */
    assert_non_null(strstr(lease_server.log, "/165 take"));
    lease_server.log[0] = '\0';
    finish(handle, " goodbye");
}

static void block_is_mapped_by_ipc_handle(void **state)
{
    (void)state;
    shuf_lease *lease = NULL, *other = NULL;
    shuf *handle = begin(SHUF__TRANSPORT__TRANSPORT_CUDA_IPC);
    lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
    check_lease(handle, lease, 5);
    assert_ptr_equal(lease->data, memories[5].bytes + LEASE_SERVER_OFFSET);
    assert_ptr_equal(memories[5].opened_in, &cuda->primary[1]);
    /* CUDA opens a handle only once in a process, so both leases share one opening. */
    lease_server_take(handle, 5, LEASE_SERVER_SMALL, &other);
    check_lease(handle, other, 5);
    lease_server_take(handle, 7, LEASE_SERVER_LARGE, &lease);
    lease_server_release(handle, &lease);
    assert_int_equal(cuda->opened, 1);
    finish(handle, "hello take take take-1 release-3/7 goodbye");
}

static void event_is_awaited_before_read(void **state)
{
    (void)state;
    shuf_lease *lease = NULL;
    with_event = true;
    event.waits = 0;
    shuf *handle = begin(SHUF__TRANSPORT__TRANSPORT_CUDA_IPC);
    lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
    assert_ptr_equal(lease->event, &event);
    assert_int_equal(event.waits, 0);
    check_lease(handle, lease, 5);
    assert_true(event.waits > 0); /* libshuf has waited before it read */
    lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
    assert_int_equal(cuda->events, 1);
    with_event = false;
    lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
    assert_null(lease->event);
    assert_int_equal(cuda->events, 0);
    with_event = true;
    lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
    finish(handle, "hello take take-1 take-2 take-3 goodbye");
    with_event = false;
}

/* CUDA does not work in a forked child, so the child makes no call of CUDA for the leases of its
 * parent. */
static void forked_child_calls_no_cuda(void **state)
{
    (void)state;
    static const Shuf__Transport transports[] = {SHUF__TRANSPORT__TRANSPORT_CUDA_FD,
                                                 SHUF__TRANSPORT__TRANSPORT_CUDA_IPC};
    for (int i = 0; i < 2; i++) {
        int end;
        shuf_lease *leases[2] = {NULL, NULL};
        with_event = i == 1;
        shuf *handle = begin(transports[i]);
        lease_server_take(handle, 5, LEASE_SERVER_SMALL, &leases[0]);
        lease_server_take(handle, 7, LEASE_SERVER_LARGE, &leases[1]);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct fake_cuda before = *cuda;
            bool right = shuf_lease_release(handle, &leases[1]) == SHUF_OK;
            shuf_close(handle);
            _exit(right && memcmp(&before, cuda, sizeof before) == 0 ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &end, 0), child);
        assert_true(WIFEXITED(end) && WEXITSTATUS(end) == 0);
        check_lease(handle, leases[0], 5);
        check_lease(handle, leases[1], 7);
        finish(handle, i == 0 ? "hello take+ take+ goodbye" : "hello take take goodbye");
    }
    with_event = false;
}

/* ---- Contexts ---- */

static void push(struct fake_context *context)
{
    cuda->stack[cuda->depth++] = context;
}

static void current_context_is_used(void **state)
{
    (void)state;
    struct fake_context own = {.gpu = 1};
    for (int i = 0; i < 2; i++) {
        shuf_lease *lease = NULL;
        push(&own);
        shuf *handle = begin(i == 0 ? SHUF__TRANSPORT__TRANSPORT_CUDA_FD
                                    : SHUF__TRANSPORT__TRANSPORT_CUDA_IPC);
        lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
        check_lease(handle, lease, 5);
        assert_int_equal(cuda->primaries[1], 0);
        assert_true(i == 0 || memories[5].opened_in == &own);
        assert_true(cuda->depth == 1 && cuda->stack[0] == &own);
        cuda->depth = 0; /* the context is no longer current */
        check_lease(handle, lease, 5);
        lease_server_release(handle, &lease);
        finish(handle, i == 0 ? "hello take+ release-1 goodbye" : "hello take release-1 goodbye");
    }
}

/* libshuf cannot use a current context of another GPU. It uses the primary context of its own GPU,
 * and the other one stays current. */
static void context_of_other_gpu_stays_current(void **state)
{
    (void)state;
    struct fake_context other = {.gpu = 0};
    for (int i = 0; i < 2; i++) {
        shuf_lease *lease = NULL;
        push(&other);
        shuf *handle = begin(i == 0 ? SHUF__TRANSPORT__TRANSPORT_CUDA_FD
                                    : SHUF__TRANSPORT__TRANSPORT_CUDA_IPC);
        lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
        check_lease(handle, lease, 5);
        assert_int_equal(cuda->primaries[1], 1);
        assert_true(cuda->depth == 1 && cuda->stack[0] == &other);
        lease_server_release(handle, &lease);
        cuda->depth = 0;
        finish(handle, i == 0 ? "hello take+ release-1 goodbye" : "hello take release-1 goodbye");
    }
}

/* CUDA opens a handle in one context. libshuf can open it in another one only after the last lease
 * in the first has ended. */
static void handle_is_opened_again_in_other_context(void **state)
{
    (void)state;
    struct fake_context one = {.gpu = 1}, other = {.gpu = 1};
    shuf_request request = {.permutation = {.n = LEASE_SERVER_SMALL, .seed = 5}};
    shuf_lease_options options = {.transports = SHUF_CUDA_IPC};
    shuf_lease *lease = NULL, *second = NULL;
    shuf *handle = begin(SHUF__TRANSPORT__TRANSPORT_CUDA_IPC);
    push(&one);
    lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
    cuda->stack[0] = &other;
    expect_failure(handle, shuf_lease_take(handle, &request, &options, &second),
                   "block 5 is leased in another context of " FAKE_ID_1);
    assert_null(second);
    check_lease(handle, lease, 5);
    lease_server_release(handle, &lease);
    assert_ptr_equal(memories[5].opened_in, &one);
    lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
    assert_ptr_equal(memories[5].opened_in, &other);
    check_lease(handle, lease, 5);
    cuda->depth = 0;
    finish(handle, "hello take take release-2 release-1 take goodbye");
}

/* ---- Failures ---- */

/* libshuf releases the lease, reports the block as unmapped, and the connection still works. */
static void hidden_gpu_is_an_error(void **state)
{
    (void)state;
    shuf_request request = {.permutation = {.n = LEASE_SERVER_SMALL, .seed = 5}};
    shuf_lease_options options = {.transports = SHUF_CUDA_FD};
    shuf_lease *lease = NULL;
    shuf *handle = begin(SHUF__TRANSPORT__TRANSPORT_CUDA_FD);
    lease_server.device_id = id_none;
    expect_failure(handle, shuf_lease_take(handle, &request, &options, &lease),
                   "device GPU-no-such: not among the 2 that this process sees");
    assert_null(lease);
    lease_server.device_id = id_1;
    lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
    check_lease(handle, lease, 5);
    finish(handle, "hello take+ release-1/5 take+ goodbye");
}

static void set_other_gpu(struct lease_server_reply *p)
{
    if (lease_server.takes == 2)
        p->reply.device_id = id_0;
}

static void block_on_other_gpu_is_an_error(void **state)
{
    (void)state;
    shuf_request request = {.permutation = {.n = LEASE_SERVER_SMALL, .seed = 5}};
    shuf_lease_options options = {.transports = SHUF_CUDA_FD};
    shuf_lease *lease = NULL;
    shuf *handle = begin(SHUF__TRANSPORT__TRANSPORT_CUDA_FD);
    lease_server.corrupt = set_other_gpu;
    lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
    assert_int_equal(shuf_lease_take(handle, &request, &options, &lease), SHUF_PROTOCOL);
    assert_non_null(strstr(shuf_message(handle), "block 5 of"));
    finish(handle, "hello take+ take-1");
}

static void check_failing_calls(Shuf__Transport transport, const char *const *calls,
                                const char *log)
{
    shuf_request request = {.permutation = {.n = LEASE_SERVER_SMALL, .seed = 5}};
    shuf_lease_options options = {.transports = lease_server_transport(transport)};
    struct fake_context other = {.gpu = 0};
    for (; *calls; calls++) {
        char words[128];
        shuf_lease *lease = NULL;
        shuf *handle = begin(transport);
        push(&other); /* so that libshuf has to switch contexts */
        cuda->fails = *calls;
        snprintf(words, sizeof words, "device %s: %s: the fake fails", id_1, *calls);
        expect_failure(handle, shuf_lease_take(handle, &request, &options, &lease), words);
        cuda->fails = NULL;
        assert_true(cuda->depth == 1 && cuda->stack[0] == &other);
        lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease); /* the handle still works */
        check_lease(handle, lease, 5);
        cuda->depth = 0;
        finish(handle, log);
    }
}

static void failing_cuda_calls_are_reported(void **state)
{
    (void)state;
    static const char *const by_descriptor_calls[] = {"cuInit",
                                                      "cuDeviceGetCount",
                                                      "cuDeviceGet",
                                                      "cuDeviceGetUuid",
                                                      "cuCtxGetCurrent",
                                                      "cuCtxGetDevice",
                                                      "cuDevicePrimaryCtxRetain",
                                                      "cuCtxPushCurrent",
                                                      "cuMemImportFromShareableHandle",
                                                      "cuMemAddressReserve",
                                                      "cuMemMap",
                                                      "cuMemSetAccess",
                                                      NULL};
    static const char *const by_handle_calls[] = {"cuIpcOpenMemHandle", "cuIpcOpenEventHandle",
                                                  NULL};
    check_failing_calls(SHUF__TRANSPORT__TRANSPORT_CUDA_FD, by_descriptor_calls,
                        "hello take+ release-1/5 take+ goodbye");
    with_event = true;
    check_failing_calls(SHUF__TRANSPORT__TRANSPORT_CUDA_IPC, by_handle_calls,
                        "hello take release-1/5 take goodbye");
    with_event = false;
}

static void failing_reads_are_reported(void **state)
{
    (void)state;
    static const char *const calls[] = {"cuCtxGetCurrent", "cuCtxPushCurrent", "cuEventSynchronize",
                                        "cuMemcpyDtoH"};
    uint32_t value;
    shuf_lease *lease = NULL;
    with_event = true;
    shuf *handle = begin(SHUF__TRANSPORT__TRANSPORT_CUDA_IPC);
    lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        cuda->fails = calls[i];
        expect_failure(handle, shuf_lease_read(handle, lease, 0, 4, &value), calls[i]);
        cuda->fails = NULL;
    }
    check_lease(handle, lease, 5);
    finish(handle, "hello take goodbye");
    with_event = false;
}

static void cut_ipc_handle(struct lease_server_reply *p)
{
    p->reply.ipc_handle.len = 63;
}

static void cut_ipc_event(struct lease_server_reply *p)
{
    p->reply.ipc_event.len = 1;
}

static void add_descriptor(struct lease_server_reply *p)
{
    p->reply.descriptor = true;
    p->descriptors = 1;
}

static void wrong_handles_are_refused(void **state)
{
    (void)state;
    static const struct {
        void (*corrupt)(struct lease_server_reply *reply);
        const char *words;
    } rows[] = {
        {cut_ipc_handle, "reply ipc_handle of 63 bytes: expected 64"},
        {cut_ipc_event, "reply ipc_event of 1 bytes: expected 64"},
        {add_descriptor, "reply with a descriptor: expected none with cuda-ipc"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        shuf_request request = {.permutation = {.n = LEASE_SERVER_SMALL, .seed = 5}};
        shuf_lease_options options = {.transports = SHUF_CUDA_IPC};
        shuf_lease *lease = NULL;
        lease_server.corrupt = rows[i].corrupt;
        shuf *handle = begin(SHUF__TRANSPORT__TRANSPORT_CUDA_IPC);
        assert_int_equal(shuf_lease_take(handle, &request, &options, &lease), SHUF_PROTOCOL);
        assert_non_null(strstr(shuf_message(handle), rows[i].words));
        finish(handle, i < 2 ? "hello take" : "hello take+");
    }
}

/* ---- Buffers ---- */

/* A buffer is mapped writable, written and read in place, and not kept after its release. */
static void check_buffer(Shuf__Transport transport, const char *log)
{
    enum { BYTES = 1000 };
    shuf_lease_options options = {.transports = lease_server_transport(transport)};
    shuf_lease *lease = NULL;
    uint8_t in[BYTES], out[BYTES];
    memset(in, 0x5a, sizeof in);
    shuf *handle = begin(transport);
    assert_int_equal(take_buffer(handle, BYTES, &options, &lease), SHUF_OK);
    assert_ptr_equal(lease->buffer, lease->data);
    assert_non_null(lease->buffer);
    assert_int_equal(shuf_lease_write(handle, lease, 300, 700, in), SHUF_OK);
    assert_int_equal(shuf_lease_read(handle, lease, 300, 700, out), SHUF_OK);
    assert_memory_equal(in, out, 700);
    assert_int_equal(shuf_lease_write(handle, lease, 301, 700, in), SHUF_INVALID);
    cuda->fails = "cuMemcpyHtoD";
    expect_failure(handle, shuf_lease_write(handle, lease, 0, 1, in), "cuMemcpyHtoD: ");
    cuda->fails = NULL;
    lease_server_release(handle, &lease);
    assert_true(cuda->mapped == 0 && cuda->opened == 0);
    finish(handle, log);
}

static void buffers_are_written_in_place(void **state)
{
    (void)state;
    check_buffer(SHUF__TRANSPORT__TRANSPORT_CUDA_FD, "hello buffer+ release-1/299 goodbye");
    check_buffer(SHUF__TRANSPORT__TRANSPORT_CUDA_IPC, "hello buffer release-1/299 goodbye");
}

/* libshuf does not write to a result. */
static void results_are_read_only(void **state)
{
    (void)state;
    shuf_lease *lease = NULL;
    shuf *handle = begin(SHUF__TRANSPORT__TRANSPORT_CUDA_FD);
    lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
    assert_null(lease->buffer);
    assert_int_equal(shuf_lease_write(handle, lease, 0, 1, ""), SHUF_INVALID);
    assert_non_null(strstr(shuf_message(handle), "a result, expected a buffer to write to"));
    finish(handle, "hello take+ goodbye");
}

/* There is no library to load: libshuf releases the lease, and host memory can still be leased. */
static void missing_libcuda_is_an_error(void **state)
{
    (void)state;
    shuf_request request = {.permutation = {.n = LEASE_SERVER_SMALL, .seed = 5}};
    shuf_lease_options options = {.transports = SHUF_CUDA_FD};
    shuf_lease *lease = NULL;
    shuf *handle = begin(SHUF__TRANSPORT__TRANSPORT_CUDA_FD);
    for (int i = 0; i < 2; i++)
        expect_failure(handle, shuf_lease_take(handle, &request, &options, &lease),
                       "libcuda.so.1: ");
    lease_server.transport = SHUF__TRANSPORT__TRANSPORT_MEMFD;
    lease_server_take(handle, 5, LEASE_SERVER_SMALL, &lease);
    lease_server_check(lease, 0, 5);
    lease_server_finish(handle, "hello take+ release-1/5 take+ release-2/5 take+");
}

static int load_fake(void **state)
{
    (void)state;
    struct fake_cuda *(*get)(void) = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library)
        *(void **)&get = dlsym(library, "fake_cuda");
    if (!get) {
        fprintf(stderr, "expected the fake libcuda.so.1 in LD_LIBRARY_PATH\n");
        return -1;
    }
    cuda = get();
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest missing[] = {
        cmocka_unit_test(missing_libcuda_is_an_error),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block_is_mapped_by_descriptor),
        cmocka_unit_test(large_blocks_stay_mapped_by_a_limit),
        cmocka_unit_test(block_is_mapped_by_ipc_handle),
        cmocka_unit_test(event_is_awaited_before_read),
        cmocka_unit_test(forked_child_calls_no_cuda),
        cmocka_unit_test(current_context_is_used),
        cmocka_unit_test(context_of_other_gpu_stays_current),
        cmocka_unit_test(handle_is_opened_again_in_other_context),
        cmocka_unit_test(hidden_gpu_is_an_error),
        cmocka_unit_test(block_on_other_gpu_is_an_error),
        cmocka_unit_test(failing_cuda_calls_are_reported),
        cmocka_unit_test(failing_reads_are_reported),
        cmocka_unit_test(wrong_handles_are_refused),
        cmocka_unit_test(buffers_are_written_in_place),
        cmocka_unit_test(results_are_read_only),
    };
    if (argc > 1 && strcmp(argv[1], "missing") == 0)
        return cmocka_run_group_tests(missing, NULL, NULL);
    return cmocka_run_group_tests(tests, load_fake, NULL);
}
